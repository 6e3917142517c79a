/* Activations, their derivatives and sums over a flat range, and conversions. Kind and type are settled outside the
 * loop: one function each, so that the switches of pl_v_act_of and of the type fold away. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

/* n vectors side by side, or the `count` lanes of one. */
PL_V_INLINE void map_lanes(pl_real type, pl_activation act, int n, const void *x, void *y, int64_t i, int64_t count)
{
    pl_vf from[PL_V_ABREAST], to[PL_V_ABREAST];
    PL_V_EACH from[v] = pl_v_get(type, x, i + v * PL_VW, count);
    pl_v_act_of(act, n, from, to);
    PL_V_EACH pl_v_put(type, y, i + v * PL_VW, to[v], count);
}

PL_V_INLINE void map(pl_real type, pl_activation act, int64_t count, const void *x, void *y)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    int64_t i = 0;
    for (; i + many <= count; i += many) map_lanes(type, act, PL_V_ABREAST, x, y, i, PL_VW);
    for (; i + PL_VW <= count; i += PL_VW) map_lanes(type, act, 1, x, y, i, PL_VW);
    if (i < count) map_lanes(type, act, 1, x, y, i, count - i);
}

void PL_KERNEL(activation)(pl_activation act, int64_t count, pl_real type, const void *x, void *y)
{
    switch (act) {
    case PL_ACT_GELU:
        PL_REAL_EACH(type, map(REAL, PL_ACT_GELU, count, x, y));
        break;
    case PL_ACT_SILU:
        PL_REAL_EACH(type, map(REAL, PL_ACT_SILU, count, x, y));
        break;
    case PL_ACT_TANH:
        PL_REAL_EACH(type, map(REAL, PL_ACT_TANH, count, x, y));
        break;
    case PL_ACT_RELU:
        PL_REAL_EACH(type, map(REAL, PL_ACT_RELU, count, x, y));
        break;
    case PL_ACT_LEAKY_RELU:
        PL_REAL_EACH(type, map(REAL, PL_ACT_LEAKY_RELU, count, x, y));
        break;
    case PL_ACT_SIGMOID:
        PL_REAL_EACH(type, map(REAL, PL_ACT_SIGMOID, count, x, y));
        break;
    case PL_ACT_QUICK_GELU:
        PL_REAL_EACH(type, map(REAL, PL_ACT_QUICK_GELU, count, x, y));
        break;
    case PL_ACT_GELU_TANH:
        PL_REAL_EACH(type, map(REAL, PL_ACT_GELU_TANH, count, x, y));
        break;
    default:
        PL_REAL_EACH(type, map(REAL, PL_ACT_NONE, count, x, y));
        break;
    }
}

PL_V_INLINE void grad_lanes(pl_real type, pl_activation act, int n, const void *x, const void *dy, void *dx, int64_t i,
                            int64_t count)
{
    pl_vf from[PL_V_ABREAST], slope[PL_V_ABREAST];
    PL_V_EACH from[v] = pl_v_get(type, x, i + v * PL_VW, count);
    pl_v_act_grad_of(act, n, from, slope);
    PL_V_EACH pl_v_put(type, dx, i + v * PL_VW, pl_v_get(type, dy, i + v * PL_VW, count) * slope[v], count);
}

PL_V_INLINE void map_grad(pl_real type, pl_activation act, int64_t count, const void *x, const void *dy, void *dx)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    int64_t i = 0;
    for (; i + many <= count; i += many) grad_lanes(type, act, PL_V_ABREAST, x, dy, dx, i, PL_VW);
    for (; i + PL_VW <= count; i += PL_VW) grad_lanes(type, act, 1, x, dy, dx, i, PL_VW);
    if (i < count) grad_lanes(type, act, 1, x, dy, dx, i, count - i);
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, pl_real type, const void *x, const void *dy, void *dx)
{
    switch (act) {
    case PL_ACT_GELU:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_GELU, count, x, dy, dx));
        break;
    case PL_ACT_SILU:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_SILU, count, x, dy, dx));
        break;
    case PL_ACT_TANH:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_TANH, count, x, dy, dx));
        break;
    case PL_ACT_RELU:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_RELU, count, x, dy, dx));
        break;
    case PL_ACT_LEAKY_RELU:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_LEAKY_RELU, count, x, dy, dx));
        break;
    case PL_ACT_SIGMOID:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_SIGMOID, count, x, dy, dx));
        break;
    case PL_ACT_QUICK_GELU:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_QUICK_GELU, count, x, dy, dx));
        break;
    case PL_ACT_GELU_TANH:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_GELU_TANH, count, x, dy, dx));
        break;
    default:
        PL_REAL_EACH(type, map_grad(REAL, PL_ACT_NONE, count, x, dy, dx));
        break;
    }
}

PL_V_INLINE void add_lanes(pl_real type, const void *a, const void *b, void *y, int64_t i, int64_t n)
{
    pl_v_put(type, y, i, pl_v_get(type, a, i, n) + pl_v_get(type, b, i, n), n);
}

PL_V_INLINE void add(pl_real type, int64_t count, const void *a, const void *b, void *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) add_lanes(type, a, b, y, i, PL_VW);
    if (i < count) add_lanes(type, a, b, y, i, count - i);
}

void PL_KERNEL(add)(int64_t count, pl_real type, const void *a, const void *b, void *y)
{
    PL_REAL_EACH(type, add(REAL, count, a, b, y));
}

PL_V_INLINE void scale(pl_real type, int64_t count, float factor, const void *x, void *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) pl_v_put(type, y, i, factor * pl_v_get(type, x, i, PL_VW), PL_VW);
    if (i < count) pl_v_put(type, y, i, factor * pl_v_get(type, x, i, count - i), count - i);
}

void PL_KERNEL(scale)(int64_t count, pl_real type, float factor, const void *x, void *y)
{
    PL_REAL_EACH(type, scale(REAL, count, factor, x, y));
}

PL_V_INLINE void cast(pl_real from, pl_real to, int64_t count, const void *x, void *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) pl_v_put(to, y, i, pl_v_get(from, x, i, PL_VW), PL_VW);
    if (i < count) pl_v_put(to, y, i, pl_v_get(from, x, i, count - i), count - i);
}

/* To or from f32 at full speed; between the two of 16 bits, which nothing needs often, the types are looked at again
 * and again. */
void PL_KERNEL(cast)(int64_t count, pl_real from, const void *x, pl_real to, void *y)
{
    if (from == PL_REAL_F32)
        PL_REAL_EACH(to, cast(PL_REAL_F32, REAL, count, x, y));
    else if (to == PL_REAL_F32)
        PL_REAL_EACH(from, cast(REAL, PL_REAL_F32, count, x, y));
    else
        cast(from, to, count, x, y);
}

PL_V_INLINE pl_vf apply(pl_vecmath function, pl_vf x)
{
    switch (function) {
    case PL_VECMATH_EXP:
        return pl_v_exp(x);
    case PL_VECMATH_EXP2:
        return pl_v_exp2_flush(x);
    case PL_VECMATH_LOG:
        return pl_v_log(x);
    case PL_VECMATH_ERF:
        return pl_v_erf(x);
    default:
        return pl_v_sigmoid(x);
    }
}

void PL_KERNEL(vecmath)(pl_vecmath function, int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = count - i < PL_VW ? count - i : PL_VW;
        pl_v_store_part(y + i, apply(function, pl_v_load_part(x + i, n)), n);
    }
}

PL_V_INLINE void open_lanes(pl_activation act, int n, const float *gate, const float *up, float *y, int64_t i,
                            int64_t count)
{
    pl_vf g[PL_V_ABREAST], open[PL_V_ABREAST];
    PL_V_EACH g[v] = pl_v_get(PL_REAL_F32, gate, i + v * PL_VW, count);
    pl_v_any_act(act, n, g, open);
    PL_V_EACH pl_v_put(PL_REAL_F32, y, i + v * PL_VW, open[v] * pl_v_get(PL_REAL_F32, up, i + v * PL_VW, count), count);
}

void PL_KERNEL(gated)(pl_activation act, int64_t count, const float *gate, const float *up, float *y)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    int64_t i = 0;
    for (; i + many <= count; i += many) open_lanes(act, PL_V_ABREAST, gate, up, y, i, PL_VW);
    for (; i + PL_VW <= count; i += PL_VW) open_lanes(act, 1, gate, up, y, i, PL_VW);
    if (i < count) open_lanes(act, 1, gate, up, y, i, count - i);
}

PL_V_INLINE void gated_lanes(pl_real type, pl_activation act, int n, void *gate, void *up, void *d, int64_t i,
                             int64_t count)
{
    pl_vf g[PL_V_ABREAST], u[PL_V_ABREAST], dh[PL_V_ABREAST], open[PL_V_ABREAST], slope[PL_V_ABREAST];
    PL_V_EACH g[v] = pl_v_get(type, gate, i + v * PL_VW, count);
    PL_V_EACH u[v] = pl_v_get(type, up, i + v * PL_VW, count);
    PL_V_EACH dh[v] = pl_v_get(type, d, i + v * PL_VW, count);
    pl_v_any_act(act, n, g, open);
    pl_v_any_act_grad(act, n, g, slope);
    PL_V_EACH pl_v_put(type, gate, i + v * PL_VW, dh[v] * u[v] * slope[v], count);
    PL_V_EACH pl_v_put(type, up, i + v * PL_VW, dh[v] * open[v], count);
    PL_V_EACH pl_v_put(type, d, i + v * PL_VW, open[v] * u[v], count);
}

PL_V_INLINE void gated_bwd(pl_real type, pl_activation act, int64_t count, void *gate, void *up, void *d)
{
    const int64_t many = PL_V_ABREAST * PL_VW;
    int64_t i = 0;
    for (; i + many <= count; i += many) gated_lanes(type, act, PL_V_ABREAST, gate, up, d, i, PL_VW);
    for (; i + PL_VW <= count; i += PL_VW) gated_lanes(type, act, 1, gate, up, d, i, PL_VW);
    if (i < count) gated_lanes(type, act, 1, gate, up, d, i, count - i);
}

void PL_KERNEL(gated_bwd)(pl_activation act, int64_t count, pl_real type, void *gate, void *up, void *d)
{
    PL_REAL_EACH(type, gated_bwd(REAL, act, count, gate, up, d));
}
