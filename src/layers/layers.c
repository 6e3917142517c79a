#include "layers/layers.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- shapes ---- */

pl_id pl_net_view(pl_net *n, pl_id x, pl_shape shape)
{
    int64_t stride[PL_RANK_MAX], elems = 1;
    if (n->b.status != PL_OK || x == PL_NONE) return PL_NONE;
    if (!pl_value_is_contiguous(&n->b.graph->value[x])) {
        n->b.status = pl_fail(n->err, PL_E_INTERNAL, "%s is a part of another value, and is viewed as a whole",
                              n->b.graph->value[x].name);
        return PL_NONE;
    }
    for (uint32_t i = shape.rank; i-- > 0;) {
        stride[i] = elems;
        elems *= shape.dim[i];
    }
    return pl_build_view(&n->b, x, shape, 0, stride);
}

pl_id pl_net_as_matrix(pl_net *n, pl_id weight)
{
    if (n->b.status != PL_OK || weight == PL_NONE) return PL_NONE;
    const pl_shape *s = &n->b.graph->value[weight].shape;
    int64_t rest = 1;
    for (uint32_t i = 1; i < s->rank; i++) rest *= s->dim[i];
    return s->rank == 2 ? weight : pl_net_view(n, weight, pl_shape_of(2, s->dim[0], rest));
}

pl_id pl_net_columns(pl_net *n, pl_id x, int64_t first, int64_t count)
{
    if (n->b.status != PL_OK || x == PL_NONE) return PL_NONE;
    pl_shape s = n->b.graph->value[x].shape;
    const int64_t stride[PL_RANK_MAX] = {s.dim[1] * s.dim[2], s.dim[2], 1};
    s.dim[2] = count;
    return pl_build_view(&n->b, x, s, first, stride);
}

pl_id pl_net_slice(pl_net *n, pl_id x, int64_t first, int64_t count)
{
    pl_slice_args a = pl_slice_none;
    a.x = x, a.first = first, a.channels = count;
    return pl_build_slice(&n->b, &a);
}

pl_id pl_net_join(pl_net *n, pl_id a, pl_id b)
{
    pl_concat_args both = pl_concat_none;
    both.part[0] = a, both.part[1] = b;
    return pl_build_concat(&n->b, &both);
}

/* A value of the program that is being built. */
static pl_id temporary(pl_net *n, pl_dtype dtype, pl_shape shape, const char *fmt, va_list args)
{
    char name[256];
    vsnprintf(name, sizeof name, fmt, args);
    return pl_build_temporary(&n->b, PL_ROLE_TEMPORARY, dtype, shape, "%s", name);
}

pl_id pl_net_cast(pl_net *n, pl_id x, pl_dtype dtype, const char *fmt, ...)
{
    pl_cast_args a = pl_cast_none;
    va_list args;
    if (n->b.status != PL_OK || x == PL_NONE) return PL_NONE;
    va_start(args, fmt);
    a.x = x, a.y = temporary(n, dtype, n->b.graph->value[x].shape, fmt, args);
    va_end(args);
    return pl_build_cast(&n->b, &a);
}

pl_id pl_net_fill(pl_net *n, pl_dtype dtype, double value, pl_shape shape, const char *fmt, ...)
{
    pl_fill_args a = pl_fill_none;
    va_list args;
    va_start(args, fmt);
    a.y = temporary(n, dtype, shape, fmt, args), a.value = value;
    va_end(args);
    return pl_build_fill(&n->b, &a);
}

/* ---- one number at a time ---- */

pl_id pl_net_add(pl_net *n, pl_id a, pl_id b)
{
    pl_add_args sum = pl_add_none;
    sum.a = a, sum.b = b;
    return pl_build_add(&n->b, &sum);
}

pl_id pl_net_activate(pl_net *n, pl_activation act, pl_id x)
{
    pl_activation_args a = pl_activation_none;
    a.x = x, a.act = act;
    return pl_build_activation(&n->b, &a);
}

pl_id pl_net_scale(pl_net *n, pl_id x, double factor)
{
    pl_scale_args a = pl_scale_none;
    a.x = x, a.factor = factor;
    return pl_build_scale(&n->b, &a);
}

pl_id pl_net_cap(pl_net *n, pl_id x, double cap)
{
    return cap > 0 ? pl_net_scale(n, pl_net_activate(n, PL_ACT_TANH, pl_net_scale(n, x, 1 / cap)), cap) : x;
}

pl_id pl_net_add_positions(pl_net *n, pl_id x, pl_id positions)
{
    pl_add_positions_args a = pl_add_positions_none;
    a.x = x, a.positions = positions;
    return pl_build_add_positions(&n->b, &a);
}

bool pl_net_drops(const pl_net *n, double probability) { return n->training && probability > 0; }

pl_id pl_net_dropout(pl_net *n, double probability, pl_id x, pl_id residual)
{
    pl_dropout_args a = pl_dropout_none;
    if (!pl_net_drops(n, probability)) return residual == PL_NONE ? x : pl_net_add(n, residual, x);
    a.x = x, a.step = n->input[PL_INPUT_STEP], a.first_sample = n->input[PL_INPUT_FIRST_SAMPLE], a.residual = residual;
    a.probability = probability, a.seed = n->dropout_seed, a.stream = pl_net_stream(n, "");
    return pl_build_dropout(&n->b, &a);
}

/* ---- linear layers ---- */

pl_affine_init pl_affine_torch(pl_dtype type, int64_t fan_in)
{
    const pl_init init = pl_init_within(1 / sqrt((double)fan_in));
    return (pl_affine_init){.weight = init, .bias = init, .type = type};
}

pl_affine pl_net_affine(pl_net *n, const pl_affine_init *a, pl_shape shape, const char *name)
{
    const pl_id weight = pl_net_weight(n, a->weight, a->type, shape, "%s.weight", name);
    const pl_id bias = pl_net_weight(n, a->bias, PL_DTYPE_F32, pl_shape_of(1, shape.dim[0]), "%s.bias", name);
    return (pl_affine){weight, bias};
}

pl_id pl_net_flow(pl_net *n, pl_id x, pl_id weight)
{
    pl_cast_args a = pl_cast_none;
    if (n->b.status != PL_OK || !n->flow || pl_encoding_block(n->b.graph->value[weight].encoding) == 1) return x;
    if (n->flowing == x) return n->rounded;
    a.x = n->flowing = x;
    a.y = pl_build_temporary(&n->b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, n->b.graph->value[x].shape, "%s.%zu",
                             pl_encoding_name(n->flow), n->b.graph->value_count);
    if (a.y != PL_NONE) n->b.graph->value[a.y].encoding = n->flow;
    return n->rounded = pl_build_cast(&n->b, &a);
}

pl_id pl_net_linear(pl_net *n, pl_id x, pl_affine w, pl_id residual)
{
    pl_linear_args a = pl_linear_none;
    a.x = pl_net_flow(n, x, w.weight), a.weight = w.weight, a.bias = w.bias, a.residual = residual, a.act = PL_ACT_NONE;
    return pl_build_linear(&n->b, &a);
}

pl_id pl_net_torch_linear(pl_net *n, pl_id x, pl_dtype type, pl_shape shape, const char *name)
{
    const pl_affine_init init = pl_affine_torch(type, (int64_t)pl_shape_elems(&shape) / shape.dim[0]);
    pl_affine w = pl_net_affine(n, &init, shape, name);
    w.weight = pl_net_as_matrix(n, w.weight);
    return pl_net_linear(n, x, w, PL_NONE);
}

pl_id pl_net_two_linears(pl_net *n, pl_id x, pl_dtype type, int64_t inner, pl_activation act, int64_t out,
                         const char *name)
{
    char layer[PL_NET_NAME_BYTES];
    snprintf(layer, sizeof layer, "%s.0", name);
    x = pl_net_torch_linear(n, x, type, pl_shape_of(2, inner, pl_net_last_extent(n, x)), layer);
    snprintf(layer, sizeof layer, "%s.2", name);
    return pl_net_torch_linear(n, pl_net_activate(n, act, x), type, pl_shape_of(2, out, inner), layer);
}

/* ---- norms ---- */

static pl_id rms_norm(pl_net *n, pl_id x, const pl_norm *norm, pl_id gain)
{
    pl_rms_norm_args a = pl_rms_norm_none;
    a.x = x, a.eps = norm->eps, a.gamma = gain;
    if (n->training && !norm->is_detached) a.rstd = PL_NONE;
    return pl_build_rms_norm(&n->b, &a);
}

static pl_id layer_norm(pl_net *n, pl_id x, const pl_norm *norm, pl_id gain, pl_id bias)
{
    pl_layer_norm_args a = pl_layer_norm_none;
    a.x = x, a.eps = norm->eps, a.gamma = gain, a.beta = bias;
    if (n->training && !norm->is_detached) a.mean = a.rstd = PL_NONE;
    return pl_build_layer_norm(&n->b, &a);
}

pl_id pl_net_norm(pl_net *n, pl_id x, const pl_norm *norm, const char *name)
{
    const pl_affine_init init = {.weight = pl_init_all(1),
                                 .bias = norm->is_rms ? (pl_init){PL_INIT_ABSENT} : pl_init_all(0)};
    pl_affine w = {PL_NONE, PL_NONE};
    if (name) w = pl_net_affine(n, &init, pl_shape_of(1, pl_net_last_extent(n, x)), name);
    return norm->is_rms ? rms_norm(n, x, norm, w.weight) : layer_norm(n, x, norm, w.weight, w.bias);
}
