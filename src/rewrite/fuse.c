#include "ir/op.h"
#include "rewrite/rewrite.h"

static bool reads(const pl_node *n, pl_id value)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] == value) return true;
    return false;
}

/* Looked at through a window, a value has readers that count_readers does not see. */
static bool is_viewed(const pl_graph *g, pl_id value)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].view_of == value) return true;
    return false;
}

static int count_readers(const pl_graph *g, pl_id value)
{
    int readers = 0;
    for (size_t i = 0; i < g->node_count; i++)
        for (int k = 0; k < PL_NODE_IN_MAX && !g->node[i].dead; k++) readers += g->node[i].in[k] == value;
    return readers;
}

/* y = linear(x); a = act(y)  →  y, a = linear(x, act) */
static void fuse_forward(pl_graph *g, pl_node *act)
{
    pl_id producer = g->value[act->in[0]].producer;
    if (producer == PL_NONE) return;
    pl_node *linear = &g->node[producer];
    if (linear->op != PL_OP_LINEAR || linear->dead || linear->attr[0].i != PL_ACT_NONE || linear->phase != act->phase ||
        linear->region != act->region)
        return;
    if (linear->out[1] != PL_NONE || linear->predicate != act->predicate) return;
    if (g->value[linear->out[0]].update_of != PL_NONE || g->value[act->out[0]].update_of != PL_NONE) return;
    linear->attr[0] = act->attr[0];
    linear->out[1] = act->out[0];
    act->dead = true;
    g->value[linear->out[1]].producer = producer;
}

/* The same activation of u made again in the backward pass, if there is one. */
static pl_node *find_again(pl_graph *g, const pl_node *bwd)
{
    for (pl_node *n = g->node; n < bwd; n++)
        if (n->op == PL_OP_ACTIVATION && !n->dead && n->phase == PL_PHASE_BACKWARD && n->in[0] == bwd->in[0] &&
            n->attr[0].i == bwd->attr[0].i && n->region == bwd->region)
            return n;
    return NULL;
}

/* A weight's gradient that reads `made` may wait until after node `last`, unless something up to there reads what it
 * gives (a second gradient of the same weight). */
static bool may_wait(const pl_graph *g, pl_id id, pl_id last, pl_id made)
{
    const pl_node *n = &g->node[id];
    if (n->op != PL_OP_LINEAR_DW || n->in[1] != made || n->in[0] == made) return false;
    for (pl_id i = id + 1; i <= last; i++)
        if (!g->node[i].dead && reads(&g->node[i], n->out[0])) return false;
    return true;
}

static bool all_may_wait(const pl_graph *g, pl_id first, pl_id last, pl_id made)
{
    for (pl_id i = first; i <= last; i++)
        if (!g->node[i].dead && reads(&g->node[i], made) && (i == last || !may_wait(g, i, last, made))) return false;
    return true;
}

/* Moves the readers of `made` in [begin, last] behind `last`. */
static pl_status move_readers(pl_graph *g, pl_id begin, pl_id last, pl_id made, pl_error *err)
{
    pl_id *order = pl_alloc(g->node_count, sizeof *order), at = 0;
    if (!order) return pl_fail(err, PL_E_NOMEM, "no memory to order the graph");
    for (pl_id i = 0; i < begin; i++) order[at++] = i;
    for (int late = 0; late < 2; late++)
        for (pl_id i = begin; i <= last; i++)
            if ((!g->node[i].dead && reads(&g->node[i], made)) == (late == 1)) order[at++] = i;
    for (pl_id i = last + 1; i < g->node_count; i++) order[at++] = i;
    pl_status status = pl_graph_reorder(g, order, err);
    pl_free(order);
    return status;
}

/* d = linear_dx(dy, W); du = act'(u)·d  →  du[, act(u)] = linear_dx(dy, W, u). What reads act(u) between the two must
 * then come after: those readers (the weight's gradient) are moved behind the fused node. u must be there before it. */
static pl_status fuse_backward(pl_graph *g, pl_id id, pl_error *err)
{
    pl_node *bwd = &g->node[id];
    pl_id d = bwd->in[1], producer = g->value[d].producer;
    if (producer == PL_NONE || count_readers(g, d) != 1 || is_viewed(g, d)) return PL_OK;
    pl_node *dx = &g->node[producer];
    if (dx->op != PL_OP_LINEAR_DX || dx->in[3] != PL_NONE || dx->region != bwd->region || id < producer) return PL_OK;
    pl_id u_from = g->value[pl_value_root(g, bwd->in[0])].producer;
    if (dx->predicate != bwd->predicate || (u_from != PL_NONE && u_from >= producer)) return PL_OK;
    dx->attr[0] = bwd->attr[0];
    dx->in[3] = bwd->in[0];
    dx->out[0] = bwd->out[0];
    g->value[dx->out[0]].producer = producer;
    bwd->dead = true;
    pl_node *again = find_again(g, bwd);
    if (!again) return PL_OK;
    pl_id begin = (pl_id)(again - g->node), made = again->out[0];
    if (begin < producer && !all_may_wait(g, begin + 1, producer, made)) return PL_OK;
    dx->out[1] = made;
    g->value[made].producer = producer;
    again->dead = true;
    return begin < producer ? move_readers(g, begin, producer, made, err) : PL_OK;
}

pl_status pl_rewrite_fuse(pl_graph *g, pl_error *err)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_ACTIVATION_BWD && !g->node[i].dead) PL_TRY(fuse_backward(g, (pl_id)i, err));
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_ACTIVATION && !g->node[i].dead) fuse_forward(g, &g->node[i]);
    pl_graph_sweep(g);
    return PL_OK;
}
