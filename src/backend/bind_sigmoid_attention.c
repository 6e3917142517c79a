/* Attention with sigmoids. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_forward(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *q = &pl_in(g, n, 0)->shape;
    call->u.sigmoid_attention = (pl_sigmoid_attention_call){.samples = q->dim[0],
                                                            .tokens = q->dim[1],
                                                            .width = q->dim[2],
                                                            .scale = (float)n->attr[0].f,
                                                            .type = pl_real_of(g, n->in[0]),
                                                            .q = pl_address_of(g, a, n->in[0]),
                                                            .k = pl_address_of(g, a, n->in[1]),
                                                            .v = pl_address_of(g, a, n->in[2]),
                                                            .u = pl_address_of(g, a, n->in[3]),
                                                            .o = pl_address_of(g, a, n->out[0])};
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
    const pl_shape *q = &pl_in(g, n, 1)->shape;
    call->u.sigmoid_attention_bwd = (pl_sigmoid_attention_bwd_call){.samples = q->dim[0],
                                                                    .tokens = q->dim[1],
                                                                    .width = q->dim[2],
                                                                    .scale = (float)n->attr[0].f,
                                                                    .type = pl_real_of(g, n->in[1]),
                                                                    .d_o = pl_address_of(g, a, n->in[0]),
                                                                    .q = pl_address_of(g, a, n->in[1]),
                                                                    .k = pl_address_of(g, a, n->in[2]),
                                                                    .v = pl_address_of(g, a, n->in[3]),
                                                                    .dq = pl_address_of(g, a, n->out[0]),
                                                                    .dk = pl_address_of(g, a, n->out[1]),
                                                                    .dv = pl_address_of(g, a, n->out[2]),
                                                                    .du = pl_address_of(g, a, n->out[3])};
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
