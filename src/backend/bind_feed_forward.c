/* Feed-forward layers in chunks of rows. */
#include "backend/backend.h"
#include "ir/op.h"

typedef struct slots { /* which input of the node is which */
    int x, w1, w2, b1;
} slots;

static const slots forward_slots = {.x = 0, .w1 = 1, .w2 = 2, .b1 = 3},
                   backward_slots = {.x = 1, .w1 = 2, .w2 = 3, .b1 = 6};

static pl_feed_forward_layer layer_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, const slots *at)
{
    const pl_value *x = pl_in(g, n, at->x), *w1 = pl_in(g, n, at->w1), *w2 = pl_in(g, n, at->w2);
    return (pl_feed_forward_layer){.rows = pl_shape_rows(&x->shape),
                                   .in = w1->shape.dim[1],
                                   .hidden = w1->shape.dim[0],
                                   .out = w2->shape.dim[0],
                                   .chunk_rows = n->attr[1].i,
                                   .dots = pl_has_few_tokens(&x->shape),
                                   .act = (pl_activation)n->attr[0].i,
                                   .x = pl_address_of(g, a, n->in[at->x]),
                                   .w1 = pl_address_of(g, a, n->in[at->w1]),
                                   .w2 = pl_address_of(g, a, n->in[at->w2]),
                                   .b1 = pl_address_of(g, a, n->in[at->b1]),
                                   .type = pl_real_of(g, n->in[at->x])};
}

static void bind_feed_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.feed_forward = (pl_feed_forward_call){.layer = layer_of(g, n, a, &forward_slots),
                                                  .b2 = pl_address_of(g, a, n->in[4]),
                                                  .residual = pl_address_of(g, a, n->in[5]),
                                                  .y = pl_address_of(g, a, n->out[0])};
}

static uint64_t workspace_feed_forward(const pl_call *c, pl_team team)
{
    return pl_feed_forward_workspace_bytes(&c->u.feed_forward, team);
}
static void exec_feed_forward(const pl_call *c, pl_team team)
{
    pl_feed_forward_exec(&c->u.feed_forward, c->workspace, team);
}

const pl_binding pl_binding_FEED_FORWARD = {bind_feed_forward, workspace_feed_forward, exec_feed_forward};

static void bind_feed_forward_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.feed_forward_bwd = (pl_feed_forward_bwd_call){.layer = layer_of(g, n, a, &backward_slots),
                                                          .dy = pl_address_of(g, a, n->in[0]),
                                                          .partial = pl_address_of(g, a, n->in[8]),
                                                          .dx = pl_address_of(g, a, n->out[0]),
                                                          .dw1 = pl_address_of(g, a, n->out[1]),
                                                          .dw2 = pl_address_of(g, a, n->out[2]),
                                                          .db1 = pl_address_of(g, a, n->out[3])};
}

static uint64_t workspace_feed_forward_bwd(const pl_call *c, pl_team team)
{
    return pl_feed_forward_bwd_workspace_bytes(&c->u.feed_forward_bwd, team);
}
static void exec_feed_forward_bwd(const pl_call *c, pl_team team)
{
    pl_feed_forward_bwd_exec(&c->u.feed_forward_bwd, c->workspace, team);
}

const pl_binding pl_binding_FEED_FORWARD_BWD = {bind_feed_forward_bwd, workspace_feed_forward_bwd,
                                                exec_feed_forward_bwd};
