#include "models/rollout_blocks.h"

#include <stdio.h>

#include "base/convolution.h"

enum { GROUPS = 8 };
#define NORM_EPS 1e-5

/* ---- convolutions ---- */

/* A builder that has failed gives values that are none. */
static int64_t size_of(const pl_rollout *r, pl_id x, int axis)
{
    return x == PL_NONE ? 1 : r->m->b.graph->value[x].shape.dim[axis];
}

/* A word that a shape does not allow leaves it direct. */
static int64_t algorithm_of(const pl_rollout *r, int64_t grid, int64_t in, const pl_rollout_conv *c)
{
    const int64_t outputs = pl_convolution_outputs(grid, c->kernel, c->stride, c->kernel / 2);
    const pl_convolution_shape s = {.batch = 1,
                                    .height = grid,
                                    .width = grid,
                                    .in = in,
                                    .out_height = outputs,
                                    .out_width = outputs,
                                    .out = c->out,
                                    .kernel = c->kernel,
                                    .stride = c->stride,
                                    .pad = c->kernel / 2};
    const pl_convolution_algorithm a =
        r->convolution < 0 ? pl_convolution_choose(&s) : (pl_convolution_algorithm)r->convolution;
    return pl_convolution_allows(&s, a) ? a : PL_CONVOLUTION_DIRECT;
}

static pl_id convolve(const pl_rollout *r, pl_id x, const pl_rollout_conv *c, pl_id bias, pl_id *moments)
{
    const int64_t grid = size_of(r, x, 1), in = size_of(r, x, 3);
    pl_conv2d_args a = pl_conv2d_none;
    a.x = x, a.bias = bias;
    a.weight = pl_rollout_weight(r, in * c->kernel * c->kernel, pl_shape_of(4, c->out, c->kernel, c->kernel, in),
                                 "%s.weight", c->name);
    a.act = PL_ACT_NONE, a.stride = c->stride, a.pad = c->kernel / 2, a.algorithm = algorithm_of(r, grid, in, c);
    if (moments) a.moments = PL_NONE;
    pl_build_conv2d(&r->m->b, &a);
    if (moments) *moments = a.moments;
    return a.y;
}

/* ---- blocks ---- */

/* Of a group norm at most eight groups, as many as divide the channels. */
static int64_t groups_of(const pl_rollout *r, int64_t channels)
{
    int64_t groups = GROUPS;
    while (channels % groups) groups--;
    return r->norm == PL_ROLLOUT_NORM_INSTANCE ? channels : groups;
}

/* With the statistics of an operator that was never trained. */
static pl_id evaluate_norm(const pl_rollout *r, pl_id x, pl_id residual, const pl_rollout_conv *c)
{
    pl_model *m = r->m;
    const pl_shape channels = pl_shape_of(1, c->out);
    pl_batch_norm_eval_args a = pl_batch_norm_eval_none;
    a.x = x, a.residual = residual, a.eps = NORM_EPS, a.act = r->activation;
    a.gamma = pl_model_weight(m, PL_INIT_ONE, channels, "%s.norm.weight", c->name);
    a.beta = pl_model_weight(m, PL_INIT_ZERO, channels, "%s.norm.bias", c->name);
    a.mean = pl_model_weight(m, PL_INIT_ZERO, channels, "%s.norm.running_mean", c->name);
    a.variance = pl_model_weight(m, PL_INIT_ONE, channels, "%s.norm.running_var", c->name);
    return pl_build_batch_norm_eval(&m->b, &a);
}

/* With those of each sample. */
static pl_id group_norm(const pl_rollout *r, pl_id x, pl_id moments, pl_id residual, const pl_rollout_conv *c)
{
    pl_model *m = r->m;
    const pl_shape channels = pl_shape_of(1, c->out);
    pl_group_norm_args a = pl_group_norm_none;
    a.x = x, a.moments = moments, a.residual = residual;
    a.groups = groups_of(r, c->out), a.eps = NORM_EPS, a.act = r->activation;
    a.gamma = pl_model_weight(m, PL_INIT_ONE, channels, "%s.norm.weight", c->name);
    a.beta = pl_model_weight(m, PL_INIT_ZERO, channels, "%s.norm.bias", c->name);
    return pl_build_group_norm(&m->b, &a);
}

pl_id pl_rollout_conv_block(const pl_rollout *r, pl_id x, const pl_rollout_conv *c, pl_id residual)
{
    const bool drops = pl_rollout_drops(r), is_batch = r->norm == PL_ROLLOUT_NORM_BATCH;
    pl_add_args sum = pl_add_none;
    pl_id moments = PL_NONE, beside = drops ? PL_NONE : residual;
    pl_id y = convolve(r, x, c, PL_NONE, is_batch ? NULL : &moments);
    y = is_batch ? evaluate_norm(r, y, beside, c) : group_norm(r, y, moments, beside, c);
    sum.a = pl_rollout_dropout(r, y, c->name), sum.b = residual;
    return beside == residual ? sum.a : pl_build_add(&r->m->b, &sum);
}

static pl_id skip_of(const pl_rollout *r, pl_id x, int64_t out, const char *name)
{
    char path[64];
    if (size_of(r, x, 3) == out) return x;
    snprintf(path, sizeof path, "%s.skip", name);
    return convolve(r, x, &(pl_rollout_conv){out, 1, 1, path}, PL_NONE, NULL);
}

pl_id pl_rollout_residual_block(const pl_rollout *r, pl_id x, int64_t out, const char *name)
{
    char first[64], second[64];
    snprintf(first, sizeof first, "%s.conv1", name);
    snprintf(second, sizeof second, "%s.conv2", name);
    pl_id h = pl_rollout_conv_block(r, x, &(pl_rollout_conv){out, r->kernel, 1, first}, PL_NONE);
    return pl_rollout_conv_block(r, h, &(pl_rollout_conv){out, r->kernel, 1, second}, skip_of(r, x, out, name));
}

pl_id pl_rollout_output(pl_rollout *r, pl_id x)
{
    pl_builder *b = &r->m->b;
    pl_builder_enter(b, "noise");
    pl_id h = pl_rollout_noise(r, x);
    pl_builder_leave(b);
    pl_builder_enter(b, "output");
    pl_id bias = pl_rollout_bias(r, size_of(r, h, 3), PL_ROLLOUT_CHANNELS, "output");
    h = convolve(r, h, &(pl_rollout_conv){PL_ROLLOUT_CHANNELS, 1, 1, "output"}, bias, NULL);
    pl_builder_leave(b);
    return h;
}

/* ---- grids ---- */

static pl_status check_one(const pl_config *c, const char *key, int64_t grid, int64_t multiple, int64_t least,
                           const char *why, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], path[96], only[64] = "";
    if (grid % multiple == 0 && grid >= least) return PL_OK;
    snprintf(path, sizeof path, "parameter_space.operator.grid_size.%s", key);
    if (multiple > 1) snprintf(only, sizeof only, ", a multiple of %lld", (long long)multiple);
    return pl_fail(err, PL_E_CONFIG, "%s: a grid of %lld does not fit %s; take at least %lld%s",
                   pl_config_where(c, path, where, sizeof where), (long long)grid, why, (long long)least, only);
}

pl_status pl_rollout_check_grid(const pl_config *c, int64_t multiple, int64_t least, const char *why, pl_error *err)
{
    const pl_config_dimension d = pl_config_dimension_of(c, PL_CONFIG_DIMENSION_grid_size);
    for (int64_t i = 0; d.type == PL_CONFIG_DIMENSION_CHOICE && i < d.choices->count; i++)
        PL_TRY(check_one(c, "choices", (int64_t)d.choices->item[i], multiple, least, why, err));
    if (d.type == PL_CONFIG_DIMENSION_CHOICE || !d.bounds) return PL_OK;
    const int64_t low = (int64_t)d.bounds->item[0], high = (int64_t)d.bounds->item[1];
    PL_TRY(check_one(c, "bounds", low, multiple, least, why, err));
    return low == high ? PL_OK : check_one(c, "bounds", low + 1, multiple, least, why, err);
}
