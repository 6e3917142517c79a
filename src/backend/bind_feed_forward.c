/* Feed-forward layers in chunks of rows, with a gate or without. */
#include "backend/backend.h"
#include "ir/op.h"

enum { NONE = -1 };

typedef struct slots { /* which input of the node is which; w1 and w2 follow x */
    int gated, x, b1, b2, added;
} slots;

static const slots forward = {0, .x = 0, .b1 = 3, .b2 = 4, .added = 5},
                   backward = {0, .x = 1, .b1 = 6, .b2 = NONE, .added = 8},
                   gated_forward = {1, .x = 0, .b1 = NONE, .b2 = NONE, .added = 3},
                   gated_backward = {1, .x = 1, .b1 = NONE, .b2 = NONE, .added = 6};

static void *input(const pl_graph *g, const pl_node *n, const pl_addresses *a, int slot)
{
    return slot == NONE ? NULL : pl_address_of(g, a, n->in[slot]);
}

static pl_feed_forward_layer layer_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, const slots *at)
{
    const pl_value *x = pl_in(g, n, at->x), *w1 = pl_in(g, n, at->x + 1), *w2 = pl_in(g, n, at->x + 2);
    return (pl_feed_forward_layer){.rows = pl_shape_rows(&x->shape),
                                   .tokens = pl_tokens_of(&x->shape),
                                   .in = w1->shape.dim[1],
                                   .hidden = w2->shape.dim[1],
                                   .out = w2->shape.dim[0],
                                   .chunk_rows = n->attr[1].i,
                                   .gated = at->gated,
                                   .dots = pl_has_few_tokens(&x->shape),
                                   .act = (pl_activation)n->attr[0].i,
                                   .x = input(g, n, a, at->x),
                                   .w1 = input(g, n, a, at->x + 1),
                                   .w2 = input(g, n, a, at->x + 2),
                                   .b1 = input(g, n, a, at->b1),
                                   .type = pl_real_of(g, n->in[at->x])};
}

static void bind_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const slots *at = n->op == PL_OP_GATED_FEED_FORWARD ? &gated_forward : &forward;
    call->u.feed_forward = (pl_feed_forward_call){.layer = layer_of(g, n, a, at),
                                                  .b2 = input(g, n, a, at->b2),
                                                  .residual = input(g, n, a, at->added),
                                                  .y = pl_address_of(g, a, n->out[0])};
}

static uint64_t workspace_forward(const pl_call *c, pl_team team)
{
    return pl_feed_forward_workspace_bytes(&c->u.feed_forward, team);
}
static void exec_forward(const pl_call *c, pl_team team)
{
    pl_feed_forward_exec(&c->u.feed_forward, c->workspace, team);
}

const pl_binding pl_binding_FEED_FORWARD = {bind_forward, workspace_forward, exec_forward};
const pl_binding pl_binding_GATED_FEED_FORWARD = {bind_forward, workspace_forward, exec_forward};

static void bind_backward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const slots *at = n->op == PL_OP_GATED_FEED_FORWARD_BWD ? &gated_backward : &backward;
    call->u.feed_forward_bwd = (pl_feed_forward_bwd_call){.layer = layer_of(g, n, a, at),
                                                          .dy = pl_address_of(g, a, n->in[0]),
                                                          .partial = input(g, n, a, at->added),
                                                          .dx = pl_address_of(g, a, n->out[0]),
                                                          .dw1 = pl_address_of(g, a, n->out[1]),
                                                          .dw2 = pl_address_of(g, a, n->out[2]),
                                                          .db1 = at->gated ? NULL : pl_address_of(g, a, n->out[3])};
}

static uint64_t workspace_backward(const pl_call *c, pl_team team)
{
    return pl_feed_forward_bwd_workspace_bytes(&c->u.feed_forward_bwd, team);
}
static void exec_backward(const pl_call *c, pl_team team)
{
    pl_feed_forward_bwd_exec(&c->u.feed_forward_bwd, c->workspace, team);
}

const pl_binding pl_binding_FEED_FORWARD_BWD = {bind_backward, workspace_backward, exec_backward};
const pl_binding pl_binding_GATED_FEED_FORWARD_BWD = {bind_backward, workspace_backward, exec_backward};
