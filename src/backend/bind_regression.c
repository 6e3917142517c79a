/* Losses of regression. */
#include "backend/backend.h"
#include "ir/op.h"

#define SAME_PLACES(op)                                                                                                \
    _Static_assert(offsetof(pl_regression_loss_args, loss) == offsetof(pl_##op##_args, loss) &&                        \
                       offsetof(pl_regression_loss_args, loss_new) == offsetof(pl_##op##_args, loss_new) &&            \
                       offsetof(pl_regression_loss_args, under_weight) == offsetof(pl_##op##_args, under_weight),      \
                   "one function reads all")
SAME_PLACES(regression_loss_bwd);
SAME_PLACES(mined_regression_loss);
SAME_PLACES(mined_regression_loss_bwd);
#undef SAME_PLACES
_Static_assert(offsetof(pl_mined_regression_loss_args, factor) == offsetof(pl_mined_regression_loss_bwd_args, factor),
               "bind_mined reads both");

static void bind_loss(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_regression_loss_args *x = &n->regression_loss;
    call->u.regression_loss =
        (pl_regression_loss_call){.count = (int64_t)pl_shape_elems(&g->value[x->prediction].shape),
                                  .loss_of = {.kind = (pl_regression_kind)x->kind,
                                              .delta = x->delta,
                                              .alpha = x->alpha,
                                              .gamma = x->gamma,
                                              .under_weight = x->under_weight,
                                              .factor = 1},
                                  .prediction = pl_address_of(g, a, x->prediction),
                                  .target = pl_address_of(g, a, x->target),
                                  .scale = pl_address_of(g, a, x->scale),
                                  .loss = pl_address_of(g, a, x->loss_new),
                                  .type = pl_real_of(g, x->prediction)};
}

static void bind_loss_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_loss(g, n, a, call);
    call->u.regression_loss.dprediction = pl_address_of(g, a, n->regression_loss_bwd.dprediction);
    call->u.regression_loss.loss_scale = pl_address_of(g, a, n->regression_loss_bwd.loss_scale);
}

static void bind_mined(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_loss(g, n, a, call);
    call->u.regression_loss.loss_of.share = n->mined_regression_loss.share;
    call->u.regression_loss.loss_of.factor = n->mined_regression_loss.factor;
}

static void bind_mined_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_mined_regression_loss_bwd_args *x = &n->mined_regression_loss_bwd;
    bind_mined(g, n, a, call);
    call->u.regression_loss.dprediction = pl_address_of(g, a, x->dprediction);
    call->u.regression_loss.loss_scale = pl_address_of(g, a, x->loss_scale);
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
const pl_binding pl_binding_REGRESSION_LOSS_BWD = {bind_loss_bwd, workspace_loss, exec_loss};
const pl_binding pl_binding_MINED_REGRESSION_LOSS = {bind_mined, workspace_loss, exec_loss};
const pl_binding pl_binding_MINED_REGRESSION_LOSS_BWD = {bind_mined_bwd, workspace_loss, exec_loss};
