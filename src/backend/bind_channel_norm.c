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

/* What the norms have in common: gamma is input `gamma`, and the attributes begin with eps at `eps`. */
static pl_channel_norm_call norm_call(const pl_graph *g, const pl_node *n, const pl_addresses *a, extent e, int gamma,
                                      int eps)
{
    return (pl_channel_norm_call){.samples = e.samples,
                                  .rows = e.rows,
                                  .positions = e.positions,
                                  .channels = e.channels,
                                  .groups = eps ? n->attr[0].i : e.channels,
                                  .eps = (float)n->attr[eps].f,
                                  .act = (pl_activation)n->attr[eps + 1].i,
                                  .x = pl_address_of(g, a, n->in[0]),
                                  .gamma = pl_address_of(g, a, n->in[gamma]),
                                  .beta = pl_address_of(g, a, n->in[gamma + 1]),
                                  .residual = pl_address_of(g, a, n->in[gamma + 2]),
                                  .y = pl_address_of(g, a, n->out[0]),
                                  .mean = pl_address_of(g, a, n->out[1]),
                                  .rstd = pl_address_of(g, a, n->out[2]),
                                  .type = pl_real_of(g, n->in[0])};
}

static void bind_group_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.channel_norm = norm_call(g, n, a, extent_of(&g->value[n->group_norm.x].shape), 2, 1);
    call->u.channel_norm.moments = pl_address_of(g, a, n->group_norm.moments);
}

static void bind_batch_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.channel_norm = norm_call(g, n, a, extent_of_batch(&g->value[n->batch_norm.x].shape), 2, 0);
    call->u.channel_norm.moments = pl_address_of(g, a, n->batch_norm.moments);
}

/* The moments are of more rows than x, of which a pool has left some. */
static void bind_pooled_batch_norm(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *moments = &g->value[n->pooled_batch_norm.moments].shape;
    bind_batch_norm(g, n, a, call);
    call->u.channel_norm.moment_rows = pl_shape_rows(moments) / 2;
    call->u.channel_norm.moment_positions = n->pooled_batch_norm.positions;
    call->u.channel_norm.residual = NULL;
    call->u.channel_norm.film = pl_address_of(g, a, n->pooled_batch_norm.film);
    call->u.channel_norm.images = g->value[n->pooled_batch_norm.x].shape.dim[0];
}

static void bind_batch_norm_eval(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.channel_norm = norm_call(g, n, a, extent_of_batch(&g->value[n->batch_norm_eval.x].shape), 3, 0);
    call->u.channel_norm.fixed_mean = pl_address_of(g, a, n->batch_norm_eval.mean);
    call->u.channel_norm.fixed_variance = pl_address_of(g, a, n->batch_norm_eval.variance);
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

static pl_channel_norm_bwd_call bwd_call(const pl_graph *g, const pl_node *n, const pl_addresses *a, extent e, int eps)
{
    return (pl_channel_norm_bwd_call){.samples = e.samples,
                                      .rows = e.rows,
                                      .positions = e.positions,
                                      .channels = e.channels,
                                      .groups = eps ? n->attr[0].i : e.channels,
                                      .act = (pl_activation)n->attr[eps + 1].i,
                                      .dy = pl_address_of(g, a, n->in[0]),
                                      .x = pl_address_of(g, a, n->in[1]),
                                      .gamma = pl_address_of(g, a, n->in[2]),
                                      .beta = pl_address_of(g, a, n->in[3]),
                                      .mean = pl_address_of(g, a, n->in[4]),
                                      .rstd = pl_address_of(g, a, n->in[5]),
                                      .add = pl_address_of(g, a, n->in[8]),
                                      .dx = pl_address_of(g, a, n->out[0]),
                                      .dgamma = pl_address_of(g, a, n->out[1]),
                                      .dbeta = pl_address_of(g, a, n->out[2]),
                                      .type = pl_real_of(g, n->in[1])};
}

static void bind_group_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.channel_norm_bwd = bwd_call(g, n, a, extent_of(&g->value[n->group_norm_bwd.x].shape), 1);
}

static void bind_batch_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.channel_norm_bwd = bwd_call(g, n, a, extent_of_batch(&g->value[n->batch_norm_bwd.x].shape), 0);
}

static void bind_pooled_batch_norm_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_batch_norm_bwd(g, n, a, call);
    call->u.channel_norm_bwd.add = NULL;
    call->u.channel_norm_bwd.whole =
        g->value[n->pooled_batch_norm_bwd.x].shape.dim[0] * n->pooled_batch_norm_bwd.positions;
    call->u.channel_norm_bwd.spread = pl_address_of(g, a, n->pooled_batch_norm_bwd.spread);
    call->u.channel_norm_bwd.film = pl_address_of(g, a, n->pooled_batch_norm_bwd.film);
    call->u.channel_norm_bwd.images = g->value[n->pooled_batch_norm_bwd.x].shape.dim[0];
    call->u.channel_norm_bwd.dfilm = pl_address_of(g, a, n->pooled_batch_norm_bwd.dfilm);
}

static void bind_spread(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t *dim = g->value[n->batch_norm_spread.y].shape.dim;
    call->u.spread = (pl_spread_call){.samples = dim[0],
                                      .height = dim[1],
                                      .width = dim[2],
                                      .channels = dim[3],
                                      .g = pl_address_of(g, a, n->batch_norm_spread.g),
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
    pl_channel_norm_bwd_call c = bwd_call(g, n, a, extent_of_batch(&g->value[n->batch_norm_eval_bwd.x].shape), 0);
    c.variance = c.rstd;
    c.rstd = NULL;
    c.eps = (float)n->batch_norm_eval_bwd.eps;
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
