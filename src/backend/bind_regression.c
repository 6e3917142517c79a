/* Losses of regression. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_loss(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bool backward = n->op == PL_OP_REGRESSION_LOSS_BWD || n->op == PL_OP_MINED_REGRESSION_LOSS_BWD;
    bool mined = n->op == PL_OP_MINED_REGRESSION_LOSS || n->op == PL_OP_MINED_REGRESSION_LOSS_BWD;
    call->u.regression_loss = (pl_regression_loss_call){.count = (int64_t)pl_shape_elems(&pl_in(g, n, 0)->shape),
                                                        .loss_of = {.kind = (pl_regression_kind)n->attr[0].i,
                                                                    .delta = n->attr[1].f,
                                                                    .alpha = n->attr[2].f,
                                                                    .gamma = n->attr[3].f,
                                                                    .under_weight = n->attr[4].f,
                                                                    .share = mined ? n->attr[5].f : 0,
                                                                    .factor = mined ? n->attr[6].f : 1},
                                                        .prediction = pl_address_of(g, a, n->in[0]),
                                                        .target = pl_address_of(g, a, n->in[1]),
                                                        .scale = pl_address_of(g, a, n->in[2]),
                                                        .loss = pl_address_of(g, a, n->out[0]),
                                                        .dprediction = backward ? pl_address_of(g, a, n->out[1]) : NULL,
                                                        .loss_scale = backward ? pl_address_of(g, a, n->in[4]) : NULL,
                                                        .type = pl_real_of(g, n->in[0])};
}

static uint64_t workspace_loss(const pl_call *c, pl_team team)
{
    return pl_regression_loss_workspace_bytes(&c->u.regression_loss, team);
}
static void exec_loss(const pl_call *c, pl_team team)
{
    pl_regression_loss_exec(&c->u.regression_loss, c->workspace, team);
}

const pl_binding pl_binding_REGRESSION_LOSS = {bind_loss, workspace_loss, exec_loss};
const pl_binding pl_binding_REGRESSION_LOSS_BWD = {bind_loss, workspace_loss, exec_loss};
const pl_binding pl_binding_MINED_REGRESSION_LOSS = {bind_loss, workspace_loss, exec_loss};
const pl_binding pl_binding_MINED_REGRESSION_LOSS_BWD = {bind_loss, workspace_loss, exec_loss};
