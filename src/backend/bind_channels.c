/* Pools, changes of size, and whole channels. */
#include "backend/backend.h"
#include "ir/op.h"

static void bind_max_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *s = &g->value[n->max_pool.x].shape;
    call->u.max_pool = (pl_max_pool_call){s->dim[0],
                                          s->dim[1],
                                          s->dim[2],
                                          s->dim[3],
                                          pl_address_of(g, a, n->max_pool.x),
                                          pl_address_of(g, a, n->max_pool.y),
                                          pl_address_of(g, a, n->max_pool.argmax),
                                          pl_real_of(g, n->max_pool.x)};
}

static void exec_max_pool(const pl_call *c, pl_team team) { pl_max_pool_exec(&c->u.max_pool, team); }

const pl_binding pl_binding_MAX_POOL = {bind_max_pool, NULL, exec_max_pool};

static void bind_max_pool_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *s = &g->value[n->max_pool_bwd.dx].shape;
    call->u.max_pool_bwd = (pl_max_pool_bwd_call){s->dim[0],
                                                  s->dim[1],
                                                  s->dim[2],
                                                  s->dim[3],
                                                  pl_address_of(g, a, n->max_pool_bwd.dy),
                                                  pl_address_of(g, a, n->max_pool_bwd.argmax),
                                                  pl_address_of(g, a, n->max_pool_bwd.add),
                                                  pl_address_of(g, a, n->max_pool_bwd.dx),
                                                  pl_real_of(g, n->max_pool_bwd.dy)};
}

static void exec_max_pool_bwd(const pl_call *c, pl_team team) { pl_max_pool_bwd_exec(&c->u.max_pool_bwd, team); }

const pl_binding pl_binding_MAX_POOL_BWD = {bind_max_pool_bwd, NULL, exec_max_pool_bwd};

/* Tokens are an image of one column. */
static int64_t columns_of(const pl_shape *s) { return s->rank == 4 ? s->dim[2] : 1; }

static pl_resample_call resample_between(const pl_graph *g, pl_resample_kind kind, pl_id image, pl_id resampled)
{
    const pl_shape *x = &g->value[image].shape, *y = &g->value[resampled].shape;
    return (pl_resample_call){.kind = kind,
                              .samples = x->dim[0],
                              .channels = pl_shape_last(x),
                              .height = x->dim[1],
                              .width = columns_of(x),
                              .out_height = y->dim[1],
                              .out_width = columns_of(y)};
}

static pl_resample_call resample_call(const pl_graph *g, const pl_addresses *a, pl_resample_kind kind, pl_id x, pl_id y)
{
    pl_resample_call c = resample_between(g, kind, x, y);
    c.from = pl_address_of(g, a, x);
    c.to = pl_address_of(g, a, y);
    c.type = pl_real_of(g, x);
    return c;
}

static pl_resample_call resample_bwd_call(const pl_graph *g, const pl_addresses *a, pl_resample_kind kind, pl_id dy,
                                          pl_id add, pl_id dx)
{
    pl_resample_call c = resample_between(g, kind, dx, dy);
    c.backward = true;
    c.from = pl_address_of(g, a, dy);
    c.add = pl_address_of(g, a, add);
    c.to = pl_address_of(g, a, dx);
    c.type = pl_real_of(g, dy);
    return c;
}

static void bind_avg_pool(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_avg_pool_args *x = &n->avg_pool;
    call->u.resample = resample_call(g, a, PL_RESAMPLE_AVERAGE, x->x, x->y);
    call->u.resample.kernel = x->kernel;
    call->u.resample.stride = x->stride;
}

static void bind_avg_pool_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_avg_pool_bwd_args *x = &n->avg_pool_bwd;
    call->u.resample = resample_bwd_call(g, a, PL_RESAMPLE_AVERAGE, x->dy, x->add, x->dx);
    call->u.resample.kernel = x->kernel;
    call->u.resample.stride = x->stride;
}

static void bind_adaptive(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_adaptive_avg_pool_args *x = &n->adaptive_avg_pool;
    call->u.resample = resample_call(g, a, PL_RESAMPLE_ADAPTIVE, x->x, x->y);
}

static void bind_adaptive_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_adaptive_avg_pool_bwd_args *x = &n->adaptive_avg_pool_bwd;
    call->u.resample = resample_bwd_call(g, a, PL_RESAMPLE_ADAPTIVE, x->dy, x->add, x->dx);
}

static void bind_upsample(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_upsample_bilinear_args *x = &n->upsample_bilinear;
    call->u.resample = resample_call(g, a, PL_RESAMPLE_DOUBLE, x->x, x->y);
}

static void bind_upsample_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_upsample_bilinear_bwd_args *x = &n->upsample_bilinear_bwd;
    call->u.resample = resample_bwd_call(g, a, PL_RESAMPLE_DOUBLE, x->dy, x->add, x->dx);
}

static uint64_t workspace_resample(const pl_call *c, pl_team team)
{
    return pl_resample_workspace_bytes(&c->u.resample, team);
}
static void exec_resample(const pl_call *c, pl_team team) { pl_resample_exec(&c->u.resample, c->workspace, team); }

const pl_binding pl_binding_AVG_POOL = {bind_avg_pool, workspace_resample, exec_resample};
const pl_binding pl_binding_AVG_POOL_BWD = {bind_avg_pool_bwd, workspace_resample, exec_resample};
const pl_binding pl_binding_ADAPTIVE_AVG_POOL = {bind_adaptive, workspace_resample, exec_resample};
const pl_binding pl_binding_ADAPTIVE_AVG_POOL_BWD = {bind_adaptive_bwd, workspace_resample, exec_resample};
const pl_binding pl_binding_UPSAMPLE_BILINEAR = {bind_upsample, workspace_resample, exec_resample};
const pl_binding pl_binding_UPSAMPLE_BILINEAR_BWD = {bind_upsample_bwd, workspace_resample, exec_resample};

static void bind_concat(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_id *part = n->concat.part;
    pl_concat_call *c = &call->u.concat;
    *c = (pl_concat_call){.positions = pl_shape_rows(&g->value[part[0]].shape),
                          .y = pl_address_of(g, a, n->concat.y),
                          .type = pl_real_of(g, part[0])};
    for (; c->inputs < PL_CONCAT_MAX && part[c->inputs] != PL_NONE; c->inputs++) {
        c->channels[c->inputs] = pl_shape_last(&g->value[part[c->inputs]].shape);
        c->x[c->inputs] = pl_address_of(g, a, part[c->inputs]);
    }
}

static void exec_concat(const pl_call *c, pl_team team) { pl_concat_exec(&c->u.concat, team); }

const pl_binding pl_binding_CONCAT = {bind_concat, NULL, exec_concat};

static void bind_slice(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->slice.x].shape;
    call->u.slice = (pl_slice_call){pl_shape_rows(x),
                                    pl_shape_last(x),
                                    n->slice.first,
                                    n->slice.channels,
                                    pl_address_of(g, a, n->slice.x),
                                    pl_address_of(g, a, n->slice.y),
                                    pl_real_of(g, n->slice.x)};
}

static void exec_slice(const pl_call *c, pl_team team) { pl_slice_exec(&c->u.slice, team); }

const pl_binding pl_binding_SLICE = {bind_slice, NULL, exec_slice};

static void bind_slice_bwd(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *dy = &g->value[n->slice_bwd.dy].shape;
    call->u.slice_bwd = (pl_slice_bwd_call){pl_shape_rows(dy),
                                            n->slice_bwd.channels,
                                            n->slice_bwd.first,
                                            pl_shape_last(dy),
                                            pl_address_of(g, a, n->slice_bwd.dy),
                                            pl_address_of(g, a, n->slice_bwd.add),
                                            pl_address_of(g, a, n->slice_bwd.dx),
                                            pl_real_of(g, n->slice_bwd.dy)};
}

static void exec_slice_bwd(const pl_call *c, pl_team team) { pl_slice_bwd_exec(&c->u.slice_bwd, team); }

const pl_binding pl_binding_SLICE_BWD = {bind_slice_bwd, NULL, exec_slice_bwd};

static void bind_append_coordinates(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const int64_t *dim = g->value[n->append_coordinates.x].shape.dim;
    call->u.append_coordinates = (pl_append_coordinates_call){.samples = dim[0],
                                                              .height = dim[1],
                                                              .width = dim[2],
                                                              .channels = dim[3],
                                                              .x = pl_address_of(g, a, n->append_coordinates.x),
                                                              .y = pl_address_of(g, a, n->append_coordinates.y),
                                                              .type = pl_real_of(g, n->append_coordinates.x)};
}

static void exec_append_coordinates(const pl_call *c, pl_team team)
{
    pl_append_coordinates_exec(&c->u.append_coordinates, team);
}

const pl_binding pl_binding_APPEND_COORDINATES = {bind_append_coordinates, NULL, exec_append_coordinates};

static void bind_channel_dropout(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->channel_dropout.x].shape;
    call->u.channel_dropout =
        (pl_channel_dropout_call){.samples = x->dim[0],
                                  .positions = pl_shape_rows(x) / x->dim[0],
                                  .channels = pl_shape_last(x),
                                  .probability = (float)n->channel_dropout.probability,
                                  .seed = (uint64_t)n->channel_dropout.seed,
                                  .stream = (uint64_t)n->channel_dropout.stream,
                                  .step = pl_address_of(g, a, n->channel_dropout.step),
                                  .first_sample = pl_address_of(g, a, n->channel_dropout.first_sample),
                                  .x = pl_address_of(g, a, n->channel_dropout.x),
                                  .y = pl_address_of(g, a, n->channel_dropout.y),
                                  .type = pl_real_of(g, n->channel_dropout.x)};
}

static uint64_t workspace_channel_dropout(const pl_call *c, pl_team team)
{
    return pl_channel_dropout_workspace_bytes(&c->u.channel_dropout, team);
}
static void exec_channel_dropout(const pl_call *c, pl_team team)
{
    pl_channel_dropout_exec(&c->u.channel_dropout, c->workspace, team);
}

const pl_binding pl_binding_CHANNEL_DROPOUT = {bind_channel_dropout, workspace_channel_dropout, exec_channel_dropout};

static void bind_path_dropout(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_shape *x = &g->value[n->path_dropout.x].shape;
    call->u.path_dropout =
        (pl_path_dropout_call){.samples = x->dim[0],
                               .paths = n->path_dropout.paths,
                               .elems = (int64_t)pl_shape_elems(x) / x->dim[0] / n->path_dropout.paths,
                               .probability = (float)n->path_dropout.probability,
                               .seed = (uint64_t)n->path_dropout.seed,
                               .stream = (uint64_t)n->path_dropout.stream,
                               .step = pl_address_of(g, a, n->path_dropout.step),
                               .first_sample = pl_address_of(g, a, n->path_dropout.first_sample),
                               .x = pl_address_of(g, a, n->path_dropout.x),
                               .y = pl_address_of(g, a, n->path_dropout.y),
                               .type = pl_real_of(g, n->path_dropout.x)};
}

static void exec_path_dropout(const pl_call *c, pl_team team) { pl_path_dropout_exec(&c->u.path_dropout, team); }

const pl_binding pl_binding_PATH_DROPOUT = {bind_path_dropout, NULL, exec_path_dropout};
