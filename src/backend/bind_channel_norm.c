/* Norms of images. */
#include "backend/backend.h"
#include "ir/op.h"

/* How x [samples, ..., positions, channels] is cut: rows of all samples, and positions of a row. */
typedef struct extent {
    int64_t samples, rows, positions, channels;
} extent;

static extent extent_of(const pl_shape *x)
{
    extent e = {x->dim[0], 1, x->rank > 2 ? x->dim[x->rank - 2] : 1, pl_shape_last(x)};
    for (uint32_t i = 1; i + 2 < x->rank; i++) e.rows *= x->dim[i];
    return e;
}

static void bind_moments(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    extent e = extent_of(&g->value[n->channel_moments.x].shape);
    call->u.channel_moments = (pl_channel_moments_call){e.samples * e.rows,
                                                        e.positions,
                                                        e.channels,
                                                        pl_address_of(g, a, n->channel_moments.x),
                                                        pl_address_of(g, a, n->channel_moments.moments),
                                                        pl_real_of(g, n->channel_moments.x)};
}

static void exec_moments(const pl_call *c, pl_team team) { pl_channel_moments_exec(&c->u.channel_moments, team); }

const pl_binding pl_binding_CHANNEL_MOMENTS = {bind_moments, NULL, exec_moments};

/* Samples that are normalised together are one with the rows of all. */
static extent extent_of_batch(const pl_shape *x)
{
    extent e = extent_of(x);
    e.rows *= e.samples;
    e.samples = 1;
    return e;
}

static pl_channel_norm_call sized_call(extent e, double eps, int64_t act)
{
    return (pl_channel_norm_call){.samples = e.samples,
                                  .rows = e.rows,
                                  .positions = e.positions,
                                  .channels = e.channels,
                                  .groups = e.channels,
                                  .eps = (float)eps,
                                  .act = (pl_activation)act};
}

#define SAME_PLACE(op, name)                                                                                           \
    _Static_assert(offsetof(pl_batch_norm_args, name) == offsetof(pl_##op##_args, name), "one function reads all")
SAME_PLACE(group_norm, beta);
SAME_PLACE(group_norm, rstd);
SAME_PLACE(pooled_batch_norm, beta);
SAME_PLACE(pooled_batch_norm, rstd);
#undef SAME_PLACE

/* What the norms by moments have in common. */
static pl_channel_norm_call norm_call(const pl_graph *g, const pl_node *n, const pl_addresses *a, extent e, double eps,
                                      int64_t act)
{
    const pl_batch_norm_args *x = &n->batch_norm;
    pl_channel_norm_call c = sized_call(e, eps, act);
    c.x = pl_address_of(g, a, x->x);
    c.moments = pl_address_of(g, a, x->moments);
    c.gamma = pl_address_of(g, a, x->gamma);
    c.beta = pl_address_of(g, a, x->beta);
    c.y = pl_address_of(g, a, x->y);
    c.mean = pl_address_of(g, a, x->mean);
    c.rstd = pl_address_of(g, a, x->rstd);
    c.type = pl_real_of(g, x->x);
    return c;
}

static void bind_group_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_group_norm_args *x = &n->group_norm;
    call->u.channel_norm = norm_call(g, n, a, extent_of(&g->value[x->x].shape), x->eps, x->act);
    call->u.channel_norm.groups = x->groups;
    call->u.channel_norm.residual = pl_address_of(g, a, x->residual);
}

static void bind_batch_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_batch_norm_args *x = &n->batch_norm;
    call->u.channel_norm = norm_call(g, n, a, extent_of_batch(&g->value[x->x].shape), x->eps, x->act);
    call->u.channel_norm.residual = pl_address_of(g, a, x->residual);
}

/* The moments are of more rows than x, of which a pool has left some. */
static void bind_pooled_batch_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_pooled_batch_norm_args *x = &n->pooled_batch_norm;
    const pl_shape *shape = &g->value[x->x].shape;
    call->u.channel_norm = norm_call(g, n, a, extent_of_batch(shape), x->eps, x->act);
    call->u.channel_norm.moment_rows = pl_shape_rows(&g->value[x->moments].shape) / 2;
    call->u.channel_norm.moment_positions = x->positions;
    call->u.channel_norm.film = pl_address_of(g, a, x->film);
    call->u.channel_norm.images = shape->dim[0];
}

static void bind_batch_norm_eval(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_batch_norm_eval_args *x = &n->batch_norm_eval;
    pl_channel_norm_call c = sized_call(extent_of_batch(&g->value[x->x].shape), x->eps, x->act);
    c.x = pl_address_of(g, a, x->x);
    c.fixed_mean = pl_address_of(g, a, x->mean);
    c.fixed_variance = pl_address_of(g, a, x->variance);
    c.gamma = pl_address_of(g, a, x->gamma);
    c.beta = pl_address_of(g, a, x->beta);
    c.residual = pl_address_of(g, a, x->residual);
    c.y = pl_address_of(g, a, x->y);
    c.type = pl_real_of(g, x->x);
    call->u.channel_norm = c;
}

static uint64_t workspace_norm(const pl_call *c, pl_team team)
{
    return pl_channel_norm_workspace_bytes(&c->u.channel_norm, team);
}
static void exec_norm(const pl_call *c, pl_team team) { pl_channel_norm_exec(&c->u.channel_norm, c->workspace, team); }

const pl_binding pl_binding_GROUP_NORM = {bind_group_norm, workspace_norm, exec_norm};
const pl_binding pl_binding_BATCH_NORM = {bind_batch_norm, workspace_norm, exec_norm};
const pl_binding pl_binding_POOLED_BATCH_NORM = {bind_pooled_batch_norm, workspace_norm, exec_norm};
const pl_binding pl_binding_BATCH_NORM_EVAL = {bind_batch_norm_eval, workspace_norm, exec_norm};

static void bind_update(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *moments = &g->value[n->batch_norm_update.moments].shape;
    call->u.batch_norm_update =
        (pl_batch_norm_update_call){.rows = pl_shape_rows(moments) / 2,
                                    .positions = n->batch_norm_update.positions,
                                    .channels = pl_shape_last(moments),
                                    .momentum = (float)n->batch_norm_update.momentum,
                                    .moments = pl_address_of(g, a, n->batch_norm_update.moments),
                                    .mean = pl_address_of(g, a, n->batch_norm_update.mean_new),
                                    .variance = pl_address_of(g, a, n->batch_norm_update.variance_new)};
}

static uint64_t workspace_update(const pl_call *c, pl_team team)
{
    return pl_batch_norm_update_workspace_bytes(&c->u.batch_norm_update, team);
}
static void exec_update(const pl_call *c, pl_team team)
{
    pl_batch_norm_update_exec(&c->u.batch_norm_update, c->workspace, team);
}

const pl_binding pl_binding_BATCH_NORM_UPDATE = {bind_update, workspace_update, exec_update};

#define SAME_PLACE(op, name)                                                                                           \
    _Static_assert(offsetof(pl_batch_norm_bwd_args, name) == offsetof(pl_##op##_args, name), "one function reads all")
SAME_PLACE(group_norm_bwd, rstd);
SAME_PLACE(group_norm_bwd, dbeta_new);
SAME_PLACE(pooled_batch_norm_bwd, rstd);
SAME_PLACE(pooled_batch_norm_bwd, dbeta_new);
SAME_PLACE(batch_norm_eval_bwd, dbeta_new);
#undef SAME_PLACE
_Static_assert(offsetof(pl_batch_norm_bwd_args, rstd) == offsetof(pl_batch_norm_eval_bwd_args, variance),
               "one function reads both");

/* What the four have in common. */
static pl_channel_norm_bwd_call bwd_call(const pl_graph *g, const pl_node *n, const pl_addresses *a, extent e,
                                         int64_t act)
{
    const pl_batch_norm_bwd_args *x = &n->batch_norm_bwd;
    return (pl_channel_norm_bwd_call){.samples = e.samples,
                                      .rows = e.rows,
                                      .positions = e.positions,
                                      .channels = e.channels,
                                      .groups = e.channels,
                                      .act = (pl_activation)act,
                                      .dy = pl_address_of(g, a, x->dy),
                                      .x = pl_address_of(g, a, x->x),
                                      .gamma = pl_address_of(g, a, x->gamma),
                                      .beta = pl_address_of(g, a, x->beta),
                                      .mean = pl_address_of(g, a, x->mean),
                                      .rstd = pl_address_of(g, a, x->rstd),
                                      .dx = pl_address_of(g, a, x->dx),
                                      .dgamma = pl_address_of(g, a, x->dgamma_new),
                                      .dbeta = pl_address_of(g, a, x->dbeta_new),
                                      .type = pl_real_of(g, x->x)};
}

static void bind_group_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_group_norm_bwd_args *x = &n->group_norm_bwd;
    call->u.channel_norm_bwd = bwd_call(g, n, a, extent_of(&g->value[x->x].shape), x->act);
    call->u.channel_norm_bwd.groups = x->groups;
    call->u.channel_norm_bwd.add = pl_address_of(g, a, x->add);
}

static void bind_batch_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_batch_norm_bwd_args *x = &n->batch_norm_bwd;
    call->u.channel_norm_bwd = bwd_call(g, n, a, extent_of_batch(&g->value[x->x].shape), x->act);
    call->u.channel_norm_bwd.add = pl_address_of(g, a, x->add);
}

static void bind_pooled_batch_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_pooled_batch_norm_bwd_args *x = &n->pooled_batch_norm_bwd;
    const pl_shape *shape = &g->value[x->x].shape;
    call->u.channel_norm_bwd = bwd_call(g, n, a, extent_of_batch(shape), x->act);
    call->u.channel_norm_bwd.whole = shape->dim[0] * x->positions;
    call->u.channel_norm_bwd.spread = pl_address_of(g, a, x->spread);
    call->u.channel_norm_bwd.film = pl_address_of(g, a, x->film);
    call->u.channel_norm_bwd.images = shape->dim[0];
    call->u.channel_norm_bwd.dfilm = pl_address_of(g, a, x->dfilm);
}

static void bind_spread(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t *dim = g->value[n->batch_norm_spread.y].shape.dim;
    call->u.spread = (pl_spread_call){.samples = dim[0],
                                      .height = dim[1],
                                      .width = dim[2],
                                      .channels = dim[3],
                                      .g = pl_address_of(g, a, n->batch_norm_spread.dpooled),
                                      .argmax = pl_address_of(g, a, n->batch_norm_spread.argmax),
                                      .spread = pl_address_of(g, a, n->batch_norm_spread.spread),
                                      .y = pl_address_of(g, a, n->batch_norm_spread.y),
                                      .dy = pl_address_of(g, a, n->batch_norm_spread.dy),
                                      .type = pl_real_of(g, n->batch_norm_spread.y)};
}

static void exec_spread(const pl_call *c, pl_team team) { pl_spread_exec(&c->u.spread, team); }

const pl_binding pl_binding_BATCH_NORM_SPREAD = {bind_spread, NULL, exec_spread};

static void bind_batch_norm_eval_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_batch_norm_eval_bwd_args *x = &n->batch_norm_eval_bwd;
    pl_channel_norm_bwd_call c = bwd_call(g, n, a, extent_of_batch(&g->value[x->x].shape), x->act);
    c.add = pl_address_of(g, a, x->add);
    c.variance = c.rstd;
    c.rstd = NULL;
    c.eps = (float)x->eps;
    call->u.channel_norm_bwd = c;
}

static uint64_t workspace_bwd(const pl_call *c, pl_team team)
{
    return pl_channel_norm_bwd_workspace_bytes(&c->u.channel_norm_bwd, team);
}
static void exec_bwd(const pl_call *c, pl_team team)
{
    pl_channel_norm_bwd_exec(&c->u.channel_norm_bwd, c->workspace, team);
}

const pl_binding pl_binding_GROUP_NORM_BWD = {bind_group_norm_bwd, workspace_bwd, exec_bwd};
const pl_binding pl_binding_BATCH_NORM_BWD = {bind_batch_norm_bwd, workspace_bwd, exec_bwd};
const pl_binding pl_binding_POOLED_BATCH_NORM_BWD = {bind_pooled_batch_norm_bwd, workspace_bwd, exec_bwd};
const pl_binding pl_binding_BATCH_NORM_EVAL_BWD = {bind_batch_norm_eval_bwd, workspace_bwd, exec_bwd};
