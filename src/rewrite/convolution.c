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
enum { CHEAP_MACS = 32, STRIDE = 0, Y = 3 };

typedef struct convolution { /* nodes */
    pl_id forward, spread, dw, dx, last;
} convolution;

static int64_t numbers_of_sample(const pl_shape *y) { return y->dim[1] * y->dim[2] * y->dim[3]; }

static bool is_meant(const pl_graph *g, const pl_node *n, int64_t limit)
{
    if (n->op != PL_OP_CONV2D_POOL || n->out[Y] == PL_NONE) return false;
    const pl_shape *w = &g->value[n->in[1]].shape;
    const bool cheap = w->dim[1] * w->dim[2] * w->dim[3] <= CHEAP_MACS;
    return cheap || (limit && numbers_of_sample(&g->value[n->out[Y]].shape) > limit);
}

/* The only reader of the value, if it reads it there; else PL_NONE. */
static pl_id only_reader(const pl_graph *g, const pl_readers *readers, pl_id value, pl_op op, int slot)
{
    pl_id only = PL_NONE;
    for (const pl_reader *r = pl_readers_first(readers, value); r; r = pl_readers_next(readers, r)) {
        if (g->node[r->node].dead) continue;
        if (only != PL_NONE || g->node[r->node].op != op || g->node[r->node].in[slot] != value) return PL_NONE;
        only = r->node;
    }
    return only;
}

/* dy is read by nothing but dW and dx, of the same x and W. */
static bool find_products(const pl_graph *g, const pl_readers *readers, convolution *c)
{
    const pl_node *forward = &g->node[c->forward];
    const pl_id dy = g->node[c->spread].out[0];
    for (const pl_reader *r = pl_readers_first(readers, dy); r; r = pl_readers_next(readers, r)) {
        const pl_node *n = &g->node[r->node];
        if (n->dead) continue;
        if (n->op == PL_OP_CONV2D_DW && c->dw == PL_NONE && n->in[0] == dy && n->in[1] == forward->in[0])
            c->dw = r->node;
        else if (n->op == PL_OP_CONV2D_DX && c->dx == PL_NONE && n->in[0] == dy && n->in[1] == forward->in[1] &&
                 n->in[2] == PL_NONE && n->in[3] == PL_NONE)
            c->dx = r->node;
        else
            return false;
        if (c->last == PL_NONE || r->node > c->last) c->last = r->node;
    }
    return c->last != PL_NONE;
}

static void take_apart(pl_graph *g, const convolution *c)
{
    const pl_node forward = g->node[c->forward], spread = g->node[c->spread];
    pl_node n = g->node[c->last];
    n.op = PL_OP_CONV2D_POOL_BWD;
    const pl_id in[PL_NODE_IN_MAX] = {spread.in[0],
                                      spread.in[1],
                                      spread.in[2],
                                      forward.in[0],
                                      forward.in[1],
                                      forward.in[3],
                                      c->dw == PL_NONE ? PL_NONE : g->node[c->dw].in[2],
                                      PL_NONE,
                                      PL_NONE};
    for (int k = 0; k < PL_NODE_IN_MAX; k++) n.in[k] = in[k];
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) n.out[k] = PL_NONE;
    for (int k = 0; k < PL_ATTR_MAX; k++) n.attr[k] = forward.attr[k];
    if (c->dx != PL_NONE) n.out[0] = g->node[c->dx].out[0];
    if (c->dw != PL_NONE) n.out[1] = g->node[c->dw].out[0];
    g->node[c->spread].dead = true;
    if (c->dw != PL_NONE) g->node[c->dw].dead = true;
    if (c->dx != PL_NONE) g->node[c->dx].dead = true;
    g->node[c->last] = n;
    g->node[c->forward].out[Y] = PL_NONE;
}

static void look_at(pl_graph *g, const pl_readers *readers, pl_id node)
{
    convolution c = {node, PL_NONE, PL_NONE, PL_NONE, PL_NONE};
    c.spread = only_reader(g, readers, g->node[node].out[Y], PL_OP_BATCH_NORM_SPREAD, Y);
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
