/* A gated feed-forward layer becomes the products and the gate that it is made of:
 *
 *      y = gated_feed_forward(x, Wgu, Wd, residual)
 *   →  u = linear(x, Wgu);   h = gated_activation(u);   y = linear(h, Wd, residual)
 *
 * for who looks at what comes to the second product, or does the products in another way. The same sums, so the same
 * numbers but for how the gate's are rounded. */

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
    return is_there && !n->dead && n->op == PL_OP_GATED_FEED_FORWARD &&
           g->value[n->gated_feed_forward.x].dtype == PL_DTYPE_F32;
}

/* The node that was just built: it runs where the one that it stands for does, and comes next. */
static void place(unfolder *u, const pl_node *instead)
{
    if (u->b.status != PL_OK) return;
    u->g->node[u->g->node_count - 1].predicate = instead->predicate;
    u->order[u->placed++] = (pl_id)u->g->node_count - 1;
}

static pl_status unfold(unfolder *u, pl_id id)
{
    const pl_node n = u->g->node[id];
    const pl_gated_feed_forward_args *a = &n.gated_feed_forward;
    pl_linear_args up = pl_linear_none, down = pl_linear_none;
    pl_gated_activation_args gate = pl_gated_activation_none;
    pl_builder_at_node(&u->b, &n);
    u->b.phase = n.phase;
    up.x = a->x, up.weight = a->gate_up, up.act = PL_ACT_NONE;
    gate.x = pl_build_linear(&u->b, &up), gate.act = a->act;
    place(u, &n);
    down.x = pl_build_gated_activation(&u->b, &gate), down.weight = a->down, down.act = PL_ACT_NONE;
    place(u, &n);
    down.residual = a->residual, down.y = a->y;
    pl_build_linear(&u->b, &down);
    place(u, &n);
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
