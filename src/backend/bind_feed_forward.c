/* Feed-forward layers in chunks of rows, with a gate or without. */
#include "backend/backend.h"
#include "ir/op.h"

_Static_assert(offsetof(pl_feed_forward_args, rows) == offsetof(pl_feed_forward_bwd_args, rows) &&
                   offsetof(pl_feed_forward_args, rows) == offsetof(pl_gated_feed_forward_args, rows) &&
                   offsetof(pl_feed_forward_args, rows) == offsetof(pl_gated_feed_forward_bwd_args, rows),
               "one function reads the attributes of all");

static pl_feed_forward_layer layer_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_id x, pl_id up,
                                      pl_id down)
{
    const pl_shape *rows = &g->value[x].shape, *w1 = &g->value[up].shape, *w2 = &g->value[down].shape;
    return (pl_feed_forward_layer){.rows = pl_shape_rows(rows),
                                   .tokens = pl_tokens_of(rows),
                                   .in = w1->dim[1],
                                   .hidden = w2->dim[1],
                                   .out = w2->dim[0],
                                   .chunk_rows = n->feed_forward.rows,
                                   .dots = pl_has_few_tokens(rows),
                                   .act = (pl_activation)n->feed_forward.act,
                                   .x = pl_address_of(g, a, x),
                                   .w1 = pl_address_of(g, a, up),
                                   .w2 = pl_address_of(g, a, down),
                                   .encoding = {g->value[up].encoding, g->value[down].encoding},
                                   .type = pl_real_of(g, x)};
}

static void bind_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_feed_forward_args *x = &n->feed_forward;
    pl_feed_forward_call *c = &call->u.feed_forward;
    *c = (pl_feed_forward_call){.layer = layer_of(g, n, a, x->x, x->up, x->down),
                                .b2 = pl_address_of(g, a, x->down_bias),
                                .residual = pl_address_of(g, a, x->residual),
                                .y = pl_address_of(g, a, x->y)};
    c->layer.b1 = pl_address_of(g, a, x->up_bias);
}

static void bind_gated_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_gated_feed_forward_args *x = &n->gated_feed_forward;
    pl_feed_forward_call *c = &call->u.feed_forward;
    *c = (pl_feed_forward_call){.layer = layer_of(g, n, a, x->x, x->gate_up, x->down),
                                .residual = pl_address_of(g, a, x->residual),
                                .y = pl_address_of(g, a, x->y)};
    c->layer.gated = 1;
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
const pl_binding pl_binding_GATED_FEED_FORWARD = {bind_gated_forward, workspace_forward, exec_forward};

static void bind_backward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_feed_forward_bwd_args *x = &n->feed_forward_bwd;
    pl_feed_forward_bwd_call *c = &call->u.feed_forward_bwd;
    *c = (pl_feed_forward_bwd_call){.layer = layer_of(g, n, a, x->x, x->up, x->down),
                                    .dy = pl_address_of(g, a, x->dy),
                                    .partial = pl_address_of(g, a, x->partial),
                                    .dx = pl_address_of(g, a, x->dx),
                                    .dw1 = pl_address_of(g, a, x->dup_new),
                                    .dw2 = pl_address_of(g, a, x->ddown_new),
                                    .db1 = pl_address_of(g, a, x->dup_bias_new)};
    c->layer.b1 = pl_address_of(g, a, x->up_bias);
}

static void bind_gated_backward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_gated_feed_forward_bwd_args *x = &n->gated_feed_forward_bwd;
    pl_feed_forward_bwd_call *c = &call->u.feed_forward_bwd;
    *c = (pl_feed_forward_bwd_call){.layer = layer_of(g, n, a, x->x, x->gate_up, x->down),
                                    .dy = pl_address_of(g, a, x->dy),
                                    .partial = pl_address_of(g, a, x->partial),
                                    .dx = pl_address_of(g, a, x->dx),
                                    .dw1 = pl_address_of(g, a, x->dgate_up_new),
                                    .dw2 = pl_address_of(g, a, x->ddown_new)};
    c->layer.gated = 1;
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
const pl_binding pl_binding_GATED_FEED_FORWARD_BWD = {bind_gated_backward, workspace_backward, exec_backward};
