#include <math.h>
#include <stdio.h>

#include "layers/layers.h"

/* Those of PyTorch's batch norm. */
#define BATCH_NORM_EPS      1e-5
#define BATCH_NORM_MOMENTUM 0.1

/* ---- patches ---- */

static pl_id cut(pl_net *n, const pl_patch_embedding *p, pl_id images)
{
    pl_patches_args a = pl_patches_none;
    a.image = images, a.patch = p->patch, a.channels = p->channels, a.standardize = p->standardizes;
    pl_build_patches(&n->b, &a);
    return p->cast ? pl_net_cast(n, a.y, p->type, "%s", p->cast) : a.y;
}

static pl_id prepend(pl_net *n, const pl_patch_embedding *p, pl_id x, pl_id token)
{
    pl_prepend_row_args a = pl_prepend_row_none;
    a.x = x, a.row = token;
    return p->class_token ? pl_build_prepend_row(&n->b, &a) : x;
}

/* What lasts is made before the rows are put together. */
static pl_id place(pl_net *n, const pl_patch_embedding *p, pl_id x)
{
    const int64_t rows = p->tokens + (p->class_token != NULL), d = p->width;
    pl_id token = PL_NONE;
    if (p->class_token)
        token = pl_net_weight(n, p->position_init, PL_DTYPE_F32, pl_shape_of(1, d), "%s", p->class_token);
    pl_id positions = pl_net_weight(
        n, p->position_init, PL_DTYPE_F32,
        p->position_rank == 3 ? pl_shape_of(3, (int64_t)1, rows, d) : pl_shape_of(2, rows, d), "%s", p->positions);
    x = prepend(n, p, x, token);
    if (p->position_rank == 3) positions = pl_net_view(n, positions, pl_shape_of(2, rows, d));
    return pl_net_add_positions(n, x, positions);
}

pl_id pl_net_embed_patches(pl_net *n, const pl_patch_embedding *p, pl_id images)
{
    pl_builder_enter(&n->b, "embedding");
    pl_id x = cut(n, p, images);
    pl_affine w = pl_net_affine(n, &p->init, p->weight_shape, p->patches);
    w.weight = pl_net_as_matrix(n, w.weight);
    x = place(n, p, pl_net_linear(n, x, w, PL_NONE));
    pl_builder_leave(&n->b);
    return x;
}

/* ---- convolutions ---- */

static pl_convolution_shape shape_between(const pl_net *n, pl_id x, pl_id weight, int64_t stride)
{
    pl_convolution_shape s = {.batch = 1,
                              .height = pl_net_extent(n, x, 1),
                              .width = pl_net_extent(n, x, 2),
                              .in = pl_net_extent(n, x, 3),
                              .out = pl_net_extent(n, weight, 0),
                              .kernel = pl_net_extent(n, weight, 1),
                              .stride = stride};
    s.pad = s.kernel / 2;
    s.out_height = pl_convolution_outputs(s.height, s.kernel, stride, s.pad);
    s.out_width = pl_convolution_outputs(s.width, s.kernel, stride, s.pad);
    return s;
}

pl_id pl_net_convolve(pl_net *n, pl_id x, pl_affine w, int64_t stride, int64_t algorithm, pl_id *moments)
{
    const pl_convolution_shape s = shape_between(n, x, w.weight, stride);
    pl_convolution_algorithm by = algorithm < 0 ? pl_convolution_choose(&s) : (pl_convolution_algorithm)algorithm;
    pl_conv2d_args a = pl_conv2d_none;
    if (!pl_convolution_allows(&s, by)) by = PL_CONVOLUTION_DIRECT;
    a.x = x, a.weight = w.weight, a.bias = w.bias;
    a.act = PL_ACT_NONE, a.stride = s.stride, a.pad = s.pad, a.algorithm = by;
    if (moments) a.moments = PL_NONE;
    pl_build_conv2d(&n->b, &a);
    if (moments) *moments = a.moments;
    return a.y;
}

pl_batch_norm pl_net_make_batch_norm(pl_net *n, int64_t channels, const char *name)
{
    const pl_shape s = pl_shape_of(1, channels);
    pl_batch_norm norm;
    norm.gamma = pl_net_weight(n, pl_init_all(1), PL_DTYPE_F32, s, "%s.weight", name);
    norm.beta = pl_net_weight(n, pl_init_all(0), PL_DTYPE_F32, s, "%s.bias", name);
    norm.mean = pl_net_state(n, pl_init_all(0), s, "%s.running_mean", name);
    norm.variance = pl_net_state(n, pl_init_all(1), s, "%s.running_var", name);
    return norm;
}

/* The running statistics move toward those of the batch, whose moments are of rows of `positions`. */
static void update_running(pl_net *n, pl_id moments, int64_t positions, pl_batch_norm *norm)
{
    pl_batch_norm_update_args a = pl_batch_norm_update_none;
    a.moments = moments, a.mean = norm->mean, a.variance = norm->variance;
    a.momentum = BATCH_NORM_MOMENTUM, a.positions = positions;
    pl_build_batch_norm_update(&n->b, &a);
    norm->mean = a.mean_new, norm->variance = a.variance_new;
}

static pl_id norm_by_running(pl_net *n, pl_id x, const pl_batch_norm *norm, pl_activation act)
{
    pl_batch_norm_eval_args a = pl_batch_norm_eval_none;
    a.x = x, a.mean = norm->mean, a.variance = norm->variance, a.gamma = norm->gamma, a.beta = norm->beta;
    a.eps = BATCH_NORM_EPS, a.act = act;
    return pl_build_batch_norm_eval(&n->b, &a);
}

pl_id pl_net_batch_norm(pl_net *n, pl_id x, pl_batch_norm *norm, pl_activation act, bool learns)
{
    pl_channel_moments_args moments = pl_channel_moments_none;
    pl_batch_norm_args a = pl_batch_norm_none;
    if (!learns) return norm_by_running(n, x, norm, act);
    moments.x = x;
    pl_build_channel_moments(&n->b, &moments);
    update_running(n, moments.moments, pl_net_extent(n, x, 2), norm);
    a.x = x, a.moments = moments.moments, a.gamma = norm->gamma, a.beta = norm->beta;
    a.mean = a.rstd = PL_NONE;
    a.eps = BATCH_NORM_EPS, a.act = act;
    return pl_build_batch_norm(&n->b, &a);
}

static pl_id modulate_by_running(pl_net *n, pl_id x, const pl_batch_norm *norm, pl_activation act, pl_id film)
{
    pl_film_args a = pl_film_none;
    a.x = norm_by_running(n, x, norm, act), a.film = film;
    return film == PL_NONE ? a.x : pl_build_film(&n->b, &a);
}

static pl_id modulate_by_batch(pl_net *n, const pl_conv2d_pool_args *x, int64_t positions, pl_batch_norm *norm,
                               pl_activation act)
{
    pl_pooled_batch_norm_args a = pl_pooled_batch_norm_none;
    update_running(n, x->moments, positions, norm);
    a.x = x->pooled, a.moments = x->moments, a.gamma = norm->gamma, a.beta = norm->beta, a.film = x->film;
    a.mean = a.rstd = PL_NONE;
    a.eps = BATCH_NORM_EPS, a.act = act, a.positions = positions;
    return pl_build_pooled_batch_norm(&n->b, &a);
}

pl_id pl_net_convolve_and_pool(pl_net *n, pl_id x, pl_affine w, pl_batch_norm *norm, pl_activation act, pl_id film)
{
    const pl_convolution_shape s = shape_between(n, x, w.weight, 1);
    pl_conv2d_pool_args c = pl_conv2d_pool_none;
    c.x = x, c.weight = w.weight, c.gamma = norm->gamma, c.bias = w.bias, c.film = film;
    c.stride = s.stride, c.pad = s.pad, c.algorithm = pl_convolution_choose(&s);
    if (n->training) c.argmax = c.moments = c.y = PL_NONE;
    pl_build_conv2d_pool(&n->b, &c);
    return n->training ? modulate_by_batch(n, &c, s.out_width, norm, act)
                       : modulate_by_running(n, c.pooled, norm, act, film);
}

pl_id pl_net_mean_of_grid(pl_net *n, pl_id x, int64_t height, int64_t width)
{
    pl_adaptive_avg_pool_args a = pl_adaptive_avg_pool_none;
    a.x = x, a.height = height, a.width = width;
    return pl_build_adaptive_avg_pool(&n->b, &a);
}
