/* A convolution with a pool behind it leaves its whole output for the backward pass; where that is too large it is made
 * again there, a few samples at a time, and so are its derivatives:
 *
 *      pooled, argmax, moments, y = conv2d_pool(x, W, …)      dy = batch_norm_spread(dpooled, argmax, spread, y)
 *                                                             dW' = conv2d_dw(dy, x, dW)
 *                                                             dx = conv2d_dx(dy, W)
 *   →  pooled, argmax, moments = conv2d_pool(x, W, …)      →  dx, dW' = conv2d_pool_bwd(dpooled, argmax, spread, x, W)
 *
 * y and dy are then not kept, at the price of one more convolution. Of a small window that price is less than that
 * of writing y down and reading it again: those always go this way. */
#include "base/convolution.h"
#include "ir/index.h"
#include "ir/op.h"
#include "rewrite/rewrite.h"

/* Multiply-adds for a number of y that cost no more than its way to memory and back. */
enum { CHEAP_MACS = 32 };

typedef struct convolution { /* nodes */
    pl_id forward, spread, dw, dx, last;
} convolution;

static int64_t numbers_of_sample(const pl_shape *y) { return y->dim[1] * y->dim[2] * y->dim[3]; }

static bool is_meant(const pl_graph *g, const pl_node *n, int64_t limit)
{
    const pl_conv2d_pool_args *a = &n->conv2d_pool;
    if (n->op != PL_OP_CONV2D_POOL || a->y == PL_NONE) return false;
    const pl_shape *w = &g->value[a->weight].shape;
    const bool cheap = w->dim[1] * w->dim[2] * w->dim[3] <= CHEAP_MACS;
    return cheap || (limit && numbers_of_sample(&g->value[a->y].shape) > limit);
}

/* The only reader of y, if it spreads what came back to the pool over it; else PL_NONE. */
static pl_id find_spread(const pl_graph *g, const pl_readers *readers, pl_id y)
{
    pl_id only = PL_NONE;
    for (const pl_reader *r = pl_readers_first(readers, y); r; r = pl_readers_next(readers, r)) {
        const pl_node *n = &g->node[r->node];
        if (n->dead) continue;
        if (only != PL_NONE || n->op != PL_OP_BATCH_NORM_SPREAD || n->batch_norm_spread.y != y) return PL_NONE;
        only = r->node;
    }
    return only;
}

static bool is_dw(const pl_node *n, pl_id dy, const pl_conv2d_pool_args *forward)
{
    const pl_conv2d_dw_args *a = &n->conv2d_dw;
    return n->op == PL_OP_CONV2D_DW && a->dy == dy && a->x == forward->x;
}

static bool is_dx(const pl_node *n, pl_id dy, const pl_conv2d_pool_args *forward)
{
    const pl_conv2d_dx_args *a = &n->conv2d_dx;
    return n->op == PL_OP_CONV2D_DX && a->dy == dy && a->weight == forward->weight && a->partial == PL_NONE &&
           a->u == PL_NONE;
}

/* dy is read by nothing but dW and dx, of the same x and W. */
static bool find_products(const pl_graph *g, const pl_readers *readers, convolution *c)
{
    const pl_conv2d_pool_args *forward = &g->node[c->forward].conv2d_pool;
    const pl_id dy = g->node[c->spread].batch_norm_spread.dy;
    for (const pl_reader *r = pl_readers_first(readers, dy); r; r = pl_readers_next(readers, r)) {
        const pl_node *n = &g->node[r->node];
        if (n->dead) continue;
        if (c->dw == PL_NONE && is_dw(n, dy, forward))
            c->dw = r->node;
        else if (c->dx == PL_NONE && is_dx(n, dy, forward))
            c->dx = r->node;
        else
            return false;
        if (c->last == PL_NONE || r->node > c->last) c->last = r->node;
    }
    return c->last != PL_NONE;
}

/* In the place of the last of the two products, with nothing given yet. */
static pl_node backward_at(const pl_node *last)
{
    pl_node n = *last;
    n.op = PL_OP_CONV2D_POOL_BWD;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) n.in[k] = PL_NONE;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) n.out[k] = PL_NONE;
    for (int k = 0; k < PL_ATTR_MAX; k++) n.attr[k] = (pl_attr){0};
    return n;
}

static void take_apart(pl_graph *g, const convolution *c)
{
    pl_conv2d_pool_args *forward = &g->node[c->forward].conv2d_pool;
    const pl_batch_norm_spread_args *spread = &g->node[c->spread].batch_norm_spread;
    pl_node n = backward_at(&g->node[c->last]);
    pl_conv2d_pool_bwd_args *a = &n.conv2d_pool_bwd;
    a->dpooled = spread->dpooled, a->argmax = spread->argmax, a->spread = spread->spread;
    a->x = forward->x, a->weight = forward->weight, a->bias = forward->bias;
    a->stride = forward->stride, a->pad = forward->pad, a->algorithm = forward->algorithm;
    if (c->dx != PL_NONE) a->dx = g->node[c->dx].conv2d_dx.dx;
    if (c->dw != PL_NONE) {
        a->dweight = g->node[c->dw].conv2d_dw.dweight;
        a->dweight_new = g->node[c->dw].conv2d_dw.dweight_new;
    }
    g->node[c->spread].dead = true;
    if (c->dw != PL_NONE) g->node[c->dw].dead = true;
    if (c->dx != PL_NONE) g->node[c->dx].dead = true;
    g->node[c->last] = n;
    forward->y = PL_NONE;
}

static void look_at(pl_graph *g, const pl_readers *readers, pl_id node)
{
    convolution c = {node, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    c.spread = find_spread(g, readers, g->node[node].conv2d_pool.y);
    if (c.spread == PL_NONE || !find_products(g, readers, &c)) return;
    const pl_node *last = &g->node[c.last], *spread = &g->node[c.spread];
    bool together = last->region == spread->region && last->region == g->node[node].region;
    if (together && pl_readers_may_wait(readers, g, c.dw, c.last) && pl_readers_may_wait(readers, g, c.dx, c.last))
        take_apart(g, &c);
}

pl_status pl_rewrite_chunk_convolutions(pl_graph *g, pl_id program, int64_t limit, pl_error *err)
{
    pl_readers readers = {0};
    pl_status status = pl_readers_init(&readers, g, err);
    for (size_t i = 0; i < g->node_count && status == PL_OK; i++) {
        const pl_node *n = &g->node[i];
        if (!n->dead && pl_region_program(g, n->region) == program && is_meant(g, n, limit))
            look_at(g, &readers, (pl_id)i);
    }
    pl_readers_deinit(&readers);
    pl_graph_sweep(g);
    return status;
}
