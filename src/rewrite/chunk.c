/* Two linears with an activation between them become one node that does them in chunks of rows, and so do their
 * derivatives:
 *
 *      u = linear(x, W1, b1)                    dW2' = linear_dw(dy, a)        du = activation_bwd(u, da)
 *      a = activation(u)                        da = linear_dx(dy, W2)         db1' = column_sum(du)
 *      y = linear(a, W2, b2, residual)                                         dW1' = linear_dw(du, x)
 *                                                                              dx = linear_dx(du, W1, partial)
 *   →  y = feed_forward(x, W1, W2, …)        →  dx, dW1', dW2', db1' = feed_forward_bwd(dy, x, W1, W2, …)
 *
 * u, a, da and du are then never whole, and x alone is kept for the backward pass. Derivatives may be missing: of what
 * is frozen, of what nothing trained has made. A layer whose inner values somebody else reads, or that has other
 * derivatives than these, stays as it is. What flows may be f32, bf16 or f16: of one type in each node, so in all. */
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

typedef struct layer { /* nodes */
    pl_id first, act, second;
    pl_id dw2, da, act_bwd, db1, dw1, dx; /* PL_NONE: there is none; da and act_bwd go together */
    pl_id last;                           /* of these; PL_NONE: there are none at all */
} layer;

typedef struct chunker {
    pl_graph *g;
    pl_readers readers;
} chunker;

/* The node is `op` and reads `value` there and nowhere else; the first such one. */
static bool take(const chunker *c, pl_id node, pl_op op, int slot, pl_id value, pl_id *place)
{
    const pl_node *n = &c->g->node[node];
    if (n->op != op || n->in[slot] != value || *place != PL_NONE) return false;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (k != slot && n->in[k] == value) return false;
    *place = node;
    return true;
}

static bool find_readers_of_hidden(const chunker *c, pl_id u, pl_id a, layer *l)
{
    pl_id act = PL_NONE;
    for (const pl_reader *r = pl_readers_first(&c->readers, u); r; r = pl_readers_next(&c->readers, r))
        if (!c->g->node[r->node].dead && !take(c, r->node, PL_OP_ACTIVATION, PL_IN_OF(activation, x), u, &act) &&
            !take(c, r->node, PL_OP_ACTIVATION_BWD, PL_IN_OF(activation_bwd, x), u, &l->act_bwd))
            return false;
    for (const pl_reader *r = pl_readers_first(&c->readers, a); r; r = pl_readers_next(&c->readers, r))
        if (!c->g->node[r->node].dead && !take(c, r->node, PL_OP_LINEAR, PL_IN_OF(linear, x), a, &l->second) &&
            !take(c, r->node, PL_OP_LINEAR_DW, PL_IN_OF(linear_dw, x), a, &l->dw2))
            return false;
    return act == l->act && l->second != PL_NONE;
}

static bool find_readers_of_gradient(const chunker *c, pl_id du, layer *l)
{
    for (const pl_reader *r = pl_readers_first(&c->readers, du); r; r = pl_readers_next(&c->readers, r))
        if (!c->g->node[r->node].dead && !take(c, r->node, PL_OP_LINEAR_DX, PL_IN_OF(linear_dx, dy), du, &l->dx) &&
            !take(c, r->node, PL_OP_LINEAR_DW, PL_IN_OF(linear_dw, dy), du, &l->dw1) &&
            !take(c, r->node, PL_OP_COLUMN_SUM, PL_IN_OF(column_sum, x), du, &l->db1))
            return false;
    return l->dx != PL_NONE || l->dw1 != PL_NONE || l->db1 != PL_NONE;
}

static void find_last(layer *l)
{
    const pl_id made[] = {l->dw2, l->db1, l->dw1, l->dx};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (made[i] != PL_NONE && (l->last == PL_NONE || made[i] > l->last)) l->last = made[i];
}

/* da: the second linear's dx and nothing more, of the dy that dW2 is of, read by the activation's derivative alone. */
static bool find_da(const chunker *c, layer *l)
{
    const pl_graph *g = c->g;
    pl_id da = g->node[l->act_bwd].activation_bwd.dy, only = PL_NONE;
    l->da = g->value[da].producer;
    if (l->da == PL_NONE || !pl_readers_know(&c->readers, c->g, da)) return false;
    for (const pl_reader *r = pl_readers_first(&c->readers, da); r; r = pl_readers_next(&c->readers, r))
        if (!g->node[r->node].dead && !take(c, r->node, PL_OP_ACTIVATION_BWD, PL_IN_OF(activation_bwd, dy), da, &only))
            return false;
    const pl_node *n = &g->node[l->da];
    if (l->dw2 != PL_NONE && g->node[l->dw2].linear_dw.dy != n->linear_dx.dy) return false;
    return n->op == PL_OP_LINEAR_DX && n->linear_dx.weight == g->node[l->second].linear.weight &&
           n->linear_dx.partial == PL_NONE && n->linear_dx.u == PL_NONE;
}

/* What follows from du: the derivatives by what the first linear reads. */
static bool find_du(const chunker *c, layer *l)
{
    const pl_graph *g = c->g;
    const pl_node *bwd = &g->node[l->act_bwd], *first = &g->node[l->first];
    if (bwd->activation_bwd.act != g->node[l->act].activation.act ||
        !pl_readers_know(&c->readers, c->g, bwd->activation_bwd.dx))
        return false;
    if (!find_readers_of_gradient(c, bwd->activation_bwd.dx, l)) return false;
    const pl_node *dx = l->dx == PL_NONE ? NULL : &g->node[l->dx];
    if (dx && (dx->linear_dx.weight != first->linear.weight || dx->linear_dx.u != PL_NONE)) return false;
    return l->dw1 == PL_NONE || g->node[l->dw1].linear_dw.x == first->linear.x;
}

static bool find_backward(const chunker *c, layer *l)
{
    if (l->act_bwd != PL_NONE && !(find_da(c, l) && find_du(c, l))) return false;
    find_last(l);
    const pl_id made[] = {l->dw2, l->db1, l->dw1, l->dx};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!pl_readers_may_wait(&c->readers, c->g, made[i], l->last)) return false;
    return true;
}

static bool is_linear(const pl_node *n)
{
    return n->op == PL_OP_LINEAR && n->linear.act == PL_ACT_NONE && n->linear.act_y == PL_NONE;
}

/* All in one region, none predicated. */
static bool are_together(const chunker *c, const layer *l)
{
    const pl_id all[] = {l->first, l->second, l->dw2, l->da, l->act_bwd, l->db1, l->dw1, l->dx};
    const pl_node *act = &c->g->node[l->act];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const pl_node *n = all[i] == PL_NONE ? act : &c->g->node[all[i]];
        if (n->region != act->region || n->predicate != PL_NONE || n->wait != act->wait) return false;
    }
    return true;
}

static bool find_layer(const chunker *c, pl_id act, layer *l)
{
    const pl_graph *g = c->g;
    pl_id u = g->node[act].activation.x, a = g->node[act].activation.y;
    *l = (layer){g->value[u].producer, act, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    if (l->first == PL_NONE || !pl_readers_know(&c->readers, c->g, u) || !pl_readers_know(&c->readers, c->g, a))
        return false;
    const pl_node *first = &g->node[l->first];
    if (!is_linear(first) || first->linear.residual != PL_NONE || !find_readers_of_hidden(c, u, a, l)) return false;
    const pl_node *second = &g->node[l->second];
    return is_linear(second) && find_backward(c, l) && are_together(c, l);
}

/* In the place of a node, with nothing given yet. */
static pl_node fused_at(const pl_node *at, pl_op op)
{
    pl_node n = *at;
    n.op = op;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) n.in[k] = PL_NONE;
    for (int k = 0; k < PL_ATTR_MAX; k++) n.attr[k] = (pl_attr){0};
    return n;
}

static pl_status put_inputs(chunker *c, pl_id node, const pl_node *n, pl_error *err)
{
    c->g->node[node] = *n;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE) PL_TRY(pl_readers_add(&c->readers, n->in[k], node, err));
    return PL_OK;
}

static pl_status fuse_forward(chunker *c, const layer *l, int64_t rows, pl_error *err)
{
    pl_node *first = &c->g->node[l->first], *act = &c->g->node[l->act], *second = &c->g->node[l->second];
    const pl_linear_args *one = &first->linear, *two = &second->linear;
    pl_node n = fused_at(second, PL_OP_FEED_FORWARD);
    pl_feed_forward_args *a = &n.feed_forward;
    a->x = one->x, a->up = one->weight, a->up_bias = one->bias;
    a->down = two->weight, a->down_bias = two->bias, a->residual = two->residual, a->y = two->y;
    a->act = act->activation.act, a->rows = rows;
    first->dead = act->dead = true;
    return put_inputs(c, l->second, &n, err);
}

/* The node itself, or one of which nothing is given. */
static pl_node node_or_none(const pl_graph *g, pl_id node)
{
    pl_node none = {0};
    for (int k = 0; k < PL_NODE_IN_MAX; k++) none.in[k] = PL_NONE;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) none.out[k] = PL_NONE;
    return node == PL_NONE ? none : g->node[node];
}

static pl_status fuse_backward(chunker *c, const layer *l, const pl_linear_args *first, const pl_linear_args *second,
                               int64_t rows, pl_error *err)
{
    pl_graph *g = c->g;
    const pl_id replaced[] = {l->dw2, l->da, l->act_bwd, l->db1, l->dw1, l->dx};
    const pl_node dw2 = node_or_none(g, l->dw2), dw1 = node_or_none(g, l->dw1), db1 = node_or_none(g, l->db1),
                  dx = node_or_none(g, l->dx), da = node_or_none(g, l->da);
    pl_node n = fused_at(&g->node[l->last], PL_OP_FEED_FORWARD_BWD);
    pl_feed_forward_bwd_args *a = &n.feed_forward_bwd;
    a->dy = l->dw2 == PL_NONE ? da.linear_dx.dy : dw2.linear_dw.dy;
    a->x = first->x, a->up = first->weight, a->up_bias = first->bias, a->down = second->weight;
    a->dup = dw1.linear_dw.dweight, a->dup_new = dw1.linear_dw.dweight_new;
    a->ddown = dw2.linear_dw.dweight, a->ddown_new = dw2.linear_dw.dweight_new;
    a->dup_bias = db1.column_sum.sum, a->dup_bias_new = db1.column_sum.sum_new;
    a->partial = dx.linear_dx.partial, a->dx = dx.linear_dx.dx;
    a->act = g->node[l->act].activation.act, a->rows = rows;
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (replaced[i] != PL_NONE) g->node[replaced[i]].dead = true;
    return put_inputs(c, l->last, &n, err);
}

pl_status pl_rewrite_chunk_feed_forward(pl_graph *g, pl_id program, int64_t rows, pl_error *err)
{
    chunker c = {.g = g};
    layer l;
    pl_status status = PL_OK;
    PL_TRY(pl_readers_init(&c.readers, g, err));
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        bool here = !n->dead && n->op == PL_OP_ACTIVATION && pl_region_program(g, n->region) == program;
        if (!here || !find_layer(&c, (pl_id)i, &l)) continue;
        pl_node first = g->node[l.first], second = g->node[l.second];
        PL_TRY_DONE(fuse_forward(&c, &l, rows, err));
        if (l.last != PL_NONE) PL_TRY_DONE(fuse_backward(&c, &l, &first.linear, &second.linear, rows, err));
    }
    pl_graph_sweep(g);
done:
    pl_readers_deinit(&c.readers);
    return status;
}
