/* The products of a finished model in 8 bits, as a calibration has found them (observe.c):
 *
 *      y = linear(x, W, b, residual)      →      y = linear_int8(x, W.int8, SITE, b, residual)
 *
 * W.int8 are packed weights (base/quantize.h), SITE ("W.input.0") is the range of what comes to the site. Both are read
 * with the weights: no program makes their first values. Of layers that are kept in f32 nothing changes. */
#include <stdio.h>

#include "base/quantize.h"
#include "ir/op.h"
#include "rewrite/int8_sites.h"
#include "rewrite/rewrite.h"

typedef struct quantizer {
    pl_graph *g;
    pl_builder b;
    pl_int8_sites sites;
    const pl_int8_choice *choice;
    bool *packed; /* [values before] a weight that is bytes now */
    pl_id *range; /* [sites] PL_NONE: not yet */
    size_t values;
} quantizer;

static bool is_kept(const quantizer *q, pl_id weight)
{
    return !q->choice->is_packed(q->choice->context, q->g->value[weight].name);
}

/* The weight itself becomes that, with all views of it: nothing of it stays in f32. */
static pl_status pack(quantizer *q, pl_id weight, const pl_shape *matrix)
{
    char name[PL_INT8_NAME_BYTES];
    snprintf(name, sizeof name, "%s" PL_INT8_PACKED, q->g->value[weight].name);
    const char *kept = pl_pool_strdup(q->g->pool, name);
    if (!kept) return pl_fail(q->b.err, PL_E_NOMEM, "no memory for products of 8 bits");
    for (size_t i = 0; i < q->values; i++) {
        pl_value *v = &q->g->value[i];
        if (pl_value_root(q->g, (pl_id)i) != weight) continue;
        v->encoding = PL_ENCODING_INT8;
        v->shape = *matrix;
        pl_value_default_strides(v);
    }
    q->g->value[weight].name = kept;
    q->g->value[weight].frozen = true;
    q->packed[weight] = true;
    return PL_OK;
}

static pl_id range_of(quantizer *q, uint32_t site)
{
    char name[PL_INT8_NAME_BYTES];
    if (q->range[site] != PL_NONE) return q->range[site];
    pl_int8_site_name(q->g, &q->sites.site[site], name);
    q->range[site] = pl_graph_find_value(q->g, name); /* of another program */
    if (q->range[site] != PL_NONE) return q->range[site];
    pl_id range = pl_build_persistent(&q->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, pl_shape_of(1, (int64_t)2), "%s", name);
    if (range != PL_NONE) q->g->value[range].frozen = true;
    return q->range[site] = range;
}

static bool is_changed(const quantizer *q, pl_id id)
{
    return q->sites.of[id] != PL_NONE && !is_kept(q, pl_value_root(q->g, q->g->node[id].linear.weight));
}

/* Before any weight has another name. */
static pl_status make_ranges(quantizer *q)
{
    for (size_t i = 0; i < q->sites.count; i++) q->range[i] = PL_NONE;
    for (size_t i = 0; i < q->g->node_count && q->b.status == PL_OK; i++)
        if (is_changed(q, (pl_id)i)) (void)range_of(q, q->sites.of[i]);
    return q->b.status;
}

/* In its place: the same outputs, at the same position. */
static void change(quantizer *q, pl_id id)
{
    pl_node *n = &q->g->node[id];
    const pl_linear_args old = n->linear;
    pl_linear_int8_args *a = &n->linear_int8;
    n->op = PL_OP_LINEAR_INT8;
    a->x = old.x, a->weight = old.weight, a->bias = old.bias, a->residual = old.residual;
    a->range = q->range[q->sites.of[id]];
    a->y = old.y, a->act_y = old.act_y;
    a->act = old.act;
}

static pl_status change_layers(quantizer *q)
{
    for (size_t i = 0; i < q->g->node_count; i++) {
        const pl_node *n = &q->g->node[i];
        if (q->sites.of[i] == PL_NONE) continue;
        const pl_id weight = pl_value_root(q->g, n->linear.weight);
        if (!q->packed[weight] && is_kept(q, weight)) continue;
        const pl_shape matrix = q->g->value[n->linear.weight].shape;
        if (!q->packed[weight]) PL_TRY(pack(q, weight, &matrix));
        change(q, (pl_id)i);
    }
    return PL_OK;
}

/* First values of what nobody reads any more are not made. */
static void drop_first_values(quantizer *q)
{
    for (size_t i = 0; i < q->g->node_count; i++) {
        pl_node *n = &q->g->node[i];
        for (int k = 0; k < PL_NODE_OUT_MAX; k++) {
            if (n->out[k] == PL_NONE) continue;
            const pl_id root = pl_value_root(q->g, n->out[k]);
            if (root < q->values && q->packed[root]) n->dead = true;
        }
    }
    pl_graph_sweep(q->g);
}

static pl_status change_all(quantizer *q)
{
    PL_TRY(make_ranges(q));
    PL_TRY(change_layers(q));
    drop_first_values(q);
    return PL_OK;
}

pl_status pl_rewrite_int8(pl_graph *g, pl_id program, const pl_int8_choice *choice, pl_error *err)
{
    quantizer q = {.g = g, .b = pl_builder_begin(g, 0, err), .choice = choice, .values = g->value_count};
    pl_status status = PL_OK;
    PL_TRY(pl_int8_sites_find(g, program, NULL, &q.sites, err));
    q.packed = pl_alloc(q.values + 1, sizeof *q.packed);
    q.range = pl_alloc(q.sites.count + 1, sizeof *q.range);
    if (!q.packed || !q.range) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for products of 8 bits"));
    PL_TRY_DONE(change_all(&q));
done:
    pl_int8_sites_deinit(&q.sites);
    pl_free(q.packed);
    pl_free(q.range);
    return status;
}
