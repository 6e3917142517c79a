/* A gated feed-forward layer becomes the products and the gate that it is made of:
 *
 *      y = gated_feed_forward(x, Wgu, Wd, residual)
 *   →  u = linear(x, Wgu);   h = gated_activation(u);   y = linear(h, Wd, residual)
 *
 * for who looks at what comes to the second product, or does the products in another way. The same sums, so the same
 * numbers but for how the gate's are rounded. */
#include <stdio.h>

#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct unfolder {
    pl_graph *g;
    pl_builder b;
    pl_id *order;
    size_t placed;
} unfolder;

static bool is_meant(const pl_graph *g, pl_id program, const pl_node *n)
{
    const bool is_there = program == PL_NONE || pl_region_program(g, n->region) == program;
    return is_there && !n->dead && n->op == PL_OP_GATED_FEED_FORWARD && g->value[n->in[0]].dtype == PL_DTYPE_F32;
}

static pl_id add(unfolder *u, const pl_node *instead, pl_op op, pl_attr attr, int ins, const pl_id *in, pl_id out)
{
    pl_build_node(&u->b, op, &attr, ins, in, 1, &out);
    if (u->b.status != PL_OK) return PL_NONE;
    u->g->node[u->g->node_count - 1].predicate = instead->predicate;
    u->order[u->placed++] = (pl_id)u->g->node_count - 1;
    return out;
}

static pl_status unfold(unfolder *u, pl_id id)
{
    const pl_node n = u->g->node[id];
    const pl_attr none = pl_attr_i(PL_ACT_NONE);
    u->b.region = n.region;
    u->b.phase = n.phase;
    snprintf(u->b.scope, sizeof u->b.scope, "%s", n.scope);
    const pl_id wide = add(u, &n, PL_OP_LINEAR, none, 2, (pl_id[]){n.in[0], n.in[1]}, PL_NONE);
    const pl_id hidden = add(u, &n, PL_OP_GATED_ACTIVATION, n.attr[0], 1, &wide, PL_NONE);
    add(u, &n, PL_OP_LINEAR, none, 4, (pl_id[]){hidden, n.in[2], PL_NONE, n.in[3]}, n.out[0]);
    u->g->node[id].dead = true;
    return u->b.status;
}

pl_status pl_rewrite_unfold(pl_graph *g, pl_id program, pl_error *err)
{
    const size_t nodes = g->node_count;
    unfolder u = {.g = g, .b = pl_builder_begin(g, 0, err)};
    pl_status status = PL_OK;
    u.order = pl_alloc(4 * nodes + 1, sizeof *u.order);
    if (!u.order) return pl_fail(err, PL_E_NOMEM, "no memory to take feed-forward layers apart");
    for (size_t i = 0; i < nodes; i++) {
        if (is_meant(g, program, &g->node[i])) PL_TRY_DONE(unfold(&u, (pl_id)i));
        u.order[u.placed++] = (pl_id)i;
    }
    PL_TRY_DONE(pl_graph_reorder(g, u.order, err));
    pl_graph_sweep(g);
done:
    pl_free(u.order);
    return status;
}
