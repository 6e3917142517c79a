/* Feed-forward layers in chunks of rows. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_feed_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0), *w1 = pl_in(g, n, 1), *w2 = pl_in(g, n, 2);
    call->u.feed_forward = (pl_feed_forward_call){.rows = pl_shape_rows(&x->shape),
                                                  .in = w1->shape.dim[1],
                                                  .hidden = w1->shape.dim[0],
                                                  .out = w2->shape.dim[0],
                                                  .chunk_rows = n->attr[1].i,
                                                  .dots = pl_has_few_tokens(&x->shape),
                                                  .act = (pl_activation)n->attr[0].i,
                                                  .x = pl_address_of(g, a, n->in[0]),
                                                  .w1 = pl_address_of(g, a, n->in[1]),
                                                  .b1 = pl_address_of(g, a, n->in[3]),
                                                  .w2 = pl_address_of(g, a, n->in[2]),
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
    const pl_value *x = pl_in(g, n, 1), *w1 = pl_in(g, n, 2), *w2 = pl_in(g, n, 3);
    call->u.feed_forward_bwd = (pl_feed_forward_bwd_call){.rows = pl_shape_rows(&x->shape),
                                                          .in = w1->shape.dim[1],
                                                          .hidden = w1->shape.dim[0],
                                                          .out = w2->shape.dim[0],
                                                          .chunk_rows = n->attr[1].i,
                                                          .dots = pl_has_few_tokens(&x->shape),
                                                          .act = (pl_activation)n->attr[0].i,
                                                          .dy = pl_address_of(g, a, n->in[0]),
                                                          .x = pl_address_of(g, a, n->in[1]),
                                                          .w1 = pl_address_of(g, a, n->in[2]),
                                                          .b1 = pl_address_of(g, a, n->in[6]),
                                                          .w2 = pl_address_of(g, a, n->in[3]),
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
