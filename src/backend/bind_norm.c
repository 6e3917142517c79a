/* Layer norm and RMS norm, forward and backward. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_layer_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->layer_norm.x];
    call->u.norm = (pl_norm_call){.rows = pl_shape_rows(&x->shape),
                                  .width = pl_shape_last(&x->shape),
                                  .eps = (float)n->layer_norm.eps,
                                  .x = pl_address_of(g, a, n->layer_norm.x),
                                  .gamma = pl_address_of(g, a, n->layer_norm.gamma),
                                  .beta = pl_address_of(g, a, n->layer_norm.beta),
                                  .y = pl_address_of(g, a, n->layer_norm.y),
                                  .mean = pl_address_of(g, a, n->layer_norm.mean),
                                  .rstd = pl_address_of(g, a, n->layer_norm.rstd),
                                  .type = pl_real_of(g, n->layer_norm.x)};
}

static void bind_rms_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->rms_norm.x];
    call->u.norm = (pl_norm_call){.rows = pl_shape_rows(&x->shape),
                                  .width = pl_shape_last(&x->shape),
                                  .rms = 1,
                                  .eps = (float)n->rms_norm.eps,
                                  .x = pl_address_of(g, a, n->rms_norm.x),
                                  .gamma = pl_address_of(g, a, n->rms_norm.gamma),
                                  .y = pl_address_of(g, a, n->rms_norm.y),
                                  .rstd = pl_address_of(g, a, n->rms_norm.rstd),
                                  .type = pl_real_of(g, n->rms_norm.x)};
}

static void exec_norm(const pl_call *c, pl_team team) { pl_norm_exec(&c->u.norm, team); }

const pl_binding pl_binding_LAYER_NORM = {bind_layer_norm, NULL, exec_norm};
const pl_binding pl_binding_RMS_NORM = {bind_rms_norm, NULL, exec_norm};

static void bind_layer_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->layer_norm_bwd.x];
    call->u.norm_bwd = (pl_norm_bwd_call){.rows = pl_shape_rows(&x->shape),
                                          .tokens = pl_tokens_of(&x->shape),
                                          .width = pl_shape_last(&x->shape),
                                          .dy = pl_address_of(g, a, n->layer_norm_bwd.dy),
                                          .x = pl_address_of(g, a, n->layer_norm_bwd.x),
                                          .gamma = pl_address_of(g, a, n->layer_norm_bwd.gamma),
                                          .mean = pl_address_of(g, a, n->layer_norm_bwd.mean),
                                          .rstd = pl_address_of(g, a, n->layer_norm_bwd.rstd),
                                          .add = pl_address_of(g, a, n->layer_norm_bwd.add),
                                          .dx = pl_address_of(g, a, n->layer_norm_bwd.dx),
                                          .dgamma = pl_address_of(g, a, n->layer_norm_bwd.dgamma_new),
                                          .dbeta = pl_address_of(g, a, n->layer_norm_bwd.dbeta_new),
                                          .type = pl_real_of(g, n->layer_norm_bwd.x)};
}

static void bind_rms_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->rms_norm_bwd.x];
    call->u.norm_bwd = (pl_norm_bwd_call){.rows = pl_shape_rows(&x->shape),
                                          .tokens = pl_tokens_of(&x->shape),
                                          .width = pl_shape_last(&x->shape),
                                          .rms = 1,
                                          .dy = pl_address_of(g, a, n->rms_norm_bwd.dy),
                                          .x = pl_address_of(g, a, n->rms_norm_bwd.x),
                                          .gamma = pl_address_of(g, a, n->rms_norm_bwd.gamma),
                                          .rstd = pl_address_of(g, a, n->rms_norm_bwd.rstd),
                                          .add = pl_address_of(g, a, n->rms_norm_bwd.add),
                                          .dx = pl_address_of(g, a, n->rms_norm_bwd.dx),
                                          .dgamma = pl_address_of(g, a, n->rms_norm_bwd.dgamma_new),
                                          .type = pl_real_of(g, n->rms_norm_bwd.x)};
}

static uint64_t workspace_norm_bwd(const pl_call *c, pl_team team)
{
    return pl_norm_bwd_workspace_bytes(&c->u.norm_bwd, team);
}
static void exec_norm_bwd(const pl_call *c, pl_team team) { pl_norm_bwd_exec(&c->u.norm_bwd, c->workspace, team); }

const pl_binding pl_binding_LAYER_NORM_BWD = {bind_layer_norm_bwd, workspace_norm_bwd, exec_norm_bwd};
const pl_binding pl_binding_RMS_NORM_BWD = {bind_rms_norm_bwd, workspace_norm_bwd, exec_norm_bwd};
