/* Layers of signs whose weights lie packed in a file (base/binary.h): nothing is left to pack, and no latent weight.
 *
 *      S = pack_signs(W);  y = linear_binary(x, S, …)      →      y = linear_binary(x, W.binary, …)
 *
 * W.binary is read with the weights: no program makes its first values. What the file has as numbers stays as it is. */
#include <stdio.h>

#include "base/binary.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

/* The weight itself becomes its bits: nothing of it stays in f32. */
static pl_status take(pl_graph *g, pl_id weight, pl_error *err)
{
    char name[256];
    pl_value *v = &g->value[weight];
    snprintf(name, sizeof name, "%.230s" PL_BINARY_PACKED, v->name);
    const char *kept = pl_pool_strdup(g->pool, name);
    if (!kept) return pl_fail(err, PL_E_NOMEM, "no memory for layers of signs");
    v->name = kept;
    v->encoding = PL_ENCODING_SIGNS;
    v->latent = false;
    v->frozen = true;
    return PL_OK;
}

static void read_instead(pl_graph *g, pl_id signs, pl_id weight)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX; k++)
            if (g->node[i].in[k] == signs) g->node[i].in[k] = weight;
}

/* Who gives it first values, or is trained, would need numbers. */
static void drop_writers(pl_graph *g, pl_id weight)
{
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (g->node[i].out[k] == weight) g->node[i].dead = true;
}

pl_status pl_rewrite_binary(pl_graph *g, const pl_packed_choice *choice, pl_error *err)
{
    bool *packed = pl_alloc(g->value_count + 1, sizeof *packed);
    pl_status status = packed ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for layers of signs");
    for (size_t i = 0; i < g->node_count && status == PL_OK; i++) {
        pl_node *n = &g->node[i];
        const pl_id weight = n->pack_signs.weight, signs = n->pack_signs.packed;
        if (n->dead || n->op != PL_OP_PACK_SIGNS) continue;
        if (!packed[weight] && !choice->is_packed(choice->context, g->value[weight].name)) continue;
        if (!packed[weight]) status = take(g, weight, err);
        packed[weight] = true;
        n->dead = true;
        read_instead(g, signs, weight);
        drop_writers(g, weight);
    }
    pl_free(packed);
    if (status == PL_OK) pl_graph_sweep(g);
    return status;
}
