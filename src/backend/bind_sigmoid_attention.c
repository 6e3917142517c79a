/* Attention with sigmoids. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *q = &g->value[n->sigmoid_attention.q].shape;
    call->u.sigmoid_attention = (pl_sigmoid_attention_call){.samples = q->dim[0],
                                                            .tokens = q->dim[1],
                                                            .width = q->dim[2],
                                                            .scale = (float)n->sigmoid_attention.scale,
                                                            .type = pl_real_of(g, n->sigmoid_attention.q),
                                                            .q = pl_address_of(g, a, n->sigmoid_attention.q),
                                                            .k = pl_address_of(g, a, n->sigmoid_attention.k),
                                                            .v = pl_address_of(g, a, n->sigmoid_attention.v),
                                                            .u = pl_address_of(g, a, n->sigmoid_attention.u),
                                                            .o = pl_address_of(g, a, n->sigmoid_attention.o)};
}

static uint64_t workspace_forward(const pl_call *c, pl_team team)
{
    return pl_sigmoid_attention_workspace_bytes(&c->u.sigmoid_attention, team);
}
static void exec_forward(const pl_call *c, pl_team team)
{
    pl_sigmoid_attention_exec(&c->u.sigmoid_attention, c->workspace, team);
}

const pl_binding pl_binding_SIGMOID_ATTENTION = {bind_forward, workspace_forward, exec_forward};

static void bind_backward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *q = &g->value[n->sigmoid_attention_bwd.q].shape;
    call->u.sigmoid_attention_bwd =
        (pl_sigmoid_attention_bwd_call){.samples = q->dim[0],
                                        .tokens = q->dim[1],
                                        .width = q->dim[2],
                                        .scale = (float)n->sigmoid_attention_bwd.scale,
                                        .type = pl_real_of(g, n->sigmoid_attention_bwd.q),
                                        .d_o = pl_address_of(g, a, n->sigmoid_attention_bwd.d_o),
                                        .q = pl_address_of(g, a, n->sigmoid_attention_bwd.q),
                                        .k = pl_address_of(g, a, n->sigmoid_attention_bwd.k),
                                        .v = pl_address_of(g, a, n->sigmoid_attention_bwd.v),
                                        .dq = pl_address_of(g, a, n->sigmoid_attention_bwd.dq),
                                        .dk = pl_address_of(g, a, n->sigmoid_attention_bwd.dk),
                                        .dv = pl_address_of(g, a, n->sigmoid_attention_bwd.dv),
                                        .du = pl_address_of(g, a, n->sigmoid_attention_bwd.du)};
}

static uint64_t workspace_backward(const pl_call *c, pl_team team)
{
    return pl_sigmoid_attention_bwd_workspace_bytes(&c->u.sigmoid_attention_bwd, team);
}
static void exec_backward(const pl_call *c, pl_team team)
{
    pl_sigmoid_attention_bwd_exec(&c->u.sigmoid_attention_bwd, c->workspace, team);
}

const pl_binding pl_binding_SIGMOID_ATTENTION_BWD = {bind_backward, workspace_backward, exec_backward};
