#include "models/rollout_blocks.h"

#include <stdio.h>

enum { GROUPS = 8 };
#define NORM_EPS 1e-5

/* ---- convolutions ---- */

static pl_id convolve(const pl_rollout *r, pl_id x, const pl_rollout_conv *c, pl_id bias, pl_id *moments)
{
    pl_net *n = &r->m->net;
    const int64_t in = pl_net_last_extent(n, x);
    const pl_affine_init init = pl_affine_torch(r->precision, in * c->kernel * c->kernel);
    const pl_affine w = {pl_net_weight(n, init.weight, init.type, pl_shape_of(4, c->out, c->kernel, c->kernel, in),
                                       "%s.weight", c->name),
                         bias};
    return pl_net_convolve(n, x, w, c->stride, r->convolution, moments);
}

/* ---- blocks ---- */

/* A group norm has at most eight groups, as many as divide the channels. */
static int64_t groups_of(const pl_rollout *r, int64_t channels)
{
    int64_t groups = GROUPS;
    while (channels % groups) groups--;
    return r->norm == PL_ROLLOUT_NORM_INSTANCE ? channels : groups;
}

static pl_id lasting(const pl_rollout *r, double value, const pl_rollout_conv *c, const char *part)
{
    return pl_net_weight(&r->m->net, pl_init_all(value), PL_DTYPE_F32, pl_shape_of(1, c->out), "%s.norm.%s", c->name,
                         part);
}

/* With the statistics of an operator that was never trained. */
static pl_id evaluate_norm(const pl_rollout *r, pl_id x, pl_id residual, const pl_rollout_conv *c)
{
    pl_batch_norm_eval_args a = pl_batch_norm_eval_none;
    a.x = x, a.residual = residual, a.eps = NORM_EPS, a.act = r->activation;
    a.gamma = lasting(r, 1, c, "weight");
    a.beta = lasting(r, 0, c, "bias");
    a.mean = lasting(r, 0, c, "running_mean");
    a.variance = lasting(r, 1, c, "running_var");
    return pl_build_batch_norm_eval(&r->m->net.b, &a);
}

/* With those of each sample. */
static pl_id group_norm(const pl_rollout *r, pl_id x, pl_id moments, pl_id residual, const pl_rollout_conv *c)
{
    pl_group_norm_args a = pl_group_norm_none;
    a.x = x, a.moments = moments, a.residual = residual;
    a.groups = groups_of(r, c->out), a.eps = NORM_EPS, a.act = r->activation;
    a.gamma = lasting(r, 1, c, "weight");
    a.beta = lasting(r, 0, c, "bias");
    return pl_build_group_norm(&r->m->net.b, &a);
}

pl_id pl_rollout_conv_block(const pl_rollout *r, pl_id x, const pl_rollout_conv *c, pl_id residual)
{
    const bool drops = pl_rollout_drops(r), is_batch = r->norm == PL_ROLLOUT_NORM_BATCH;
    pl_id moments = PL_NONE, added = drops ? PL_NONE : residual;
    pl_id y = convolve(r, x, c, PL_NONE, is_batch ? NULL : &moments);
    y = is_batch ? evaluate_norm(r, y, added, c) : group_norm(r, y, moments, added, c);
    y = pl_rollout_dropout(r, y, c->name);
    return added == residual ? y : pl_net_add(&r->m->net, y, residual);
}

static pl_id skip_of(const pl_rollout *r, pl_id x, int64_t out, const char *name)
{
    char path[64];
    if (pl_net_last_extent(&r->m->net, x) == out) return x;
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
    pl_builder *b = &r->m->net.b;
    pl_builder_enter(b, "noise");
    pl_id h = pl_rollout_noise(r, x);
    pl_builder_leave(b);
    pl_builder_enter(b, "output");
    const pl_affine_init init = pl_affine_torch(r->precision, pl_net_last_extent(&r->m->net, h));
    const pl_shape channels = pl_shape_of(1, (int64_t)PL_ROLLOUT_CHANNELS);
    pl_id bias = pl_net_weight(&r->m->net, init.bias, PL_DTYPE_F32, channels, "output.bias");
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
