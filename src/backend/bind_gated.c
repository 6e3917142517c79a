/* Gated feed-forward layers in chunks of rows. */
#include "backend/backend.h"
#include "ir/op.h"

/* x is input `first` of the node, the two matrices follow it. */
static pl_gated_layer layer_of(const pl_graph *g, const pl_node *n, const pl_addresses *a, int first)
{
    const pl_value *x = pl_in(g, n, first), *wgu = pl_in(g, n, first + 1), *wd = pl_in(g, n, first + 2);
    return (pl_gated_layer){.rows = pl_shape_rows(&x->shape),
                            .in = wgu->shape.dim[1],
                            .hidden = wd->shape.dim[1],
                            .out = wd->shape.dim[0],
                            .chunk_rows = n->attr[1].i,
                            .dots = pl_has_few_tokens(&x->shape),
                            .act = (pl_activation)n->attr[0].i,
                            .x = pl_address_of(g, a, n->in[first]),
                            .wgu = pl_address_of(g, a, n->in[first + 1]),
                            .wd = pl_address_of(g, a, n->in[first + 2]),
                            .type = pl_real_of(g, n->in[first])};
}

static void bind_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.gated = (pl_gated_call){
        .layer = layer_of(g, n, a, 0), .residual = pl_address_of(g, a, n->in[3]), .y = pl_address_of(g, a, n->out[0])};
}

static uint64_t workspace_forward(const pl_call *c, pl_team team)
{
    return pl_gated_workspace_bytes(&c->u.gated, team);
}
static void exec_forward(const pl_call *c, pl_team team) { pl_gated_exec(&c->u.gated, c->workspace, team); }

const pl_binding pl_binding_GATED_FEED_FORWARD = {bind_forward, workspace_forward, exec_forward};

static void bind_backward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.gated_bwd = (pl_gated_bwd_call){.layer = layer_of(g, n, a, 1),
                                            .dy = pl_address_of(g, a, n->in[0]),
                                            .partial = pl_address_of(g, a, n->in[6]),
                                            .dx = pl_address_of(g, a, n->out[0]),
                                            .dwgu = pl_address_of(g, a, n->out[1]),
                                            .dwd = pl_address_of(g, a, n->out[2])};
}

static uint64_t workspace_backward(const pl_call *c, pl_team team)
{
    return pl_gated_bwd_workspace_bytes(&c->u.gated_bwd, team);
}
static void exec_backward(const pl_call *c, pl_team team) { pl_gated_bwd_exec(&c->u.gated_bwd, c->workspace, team); }

const pl_binding pl_binding_GATED_FEED_FORWARD_BWD = {bind_backward, workspace_backward, exec_backward};
