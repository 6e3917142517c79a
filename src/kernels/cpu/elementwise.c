/* Activations, their derivatives and sums over a flat range. The kind is settled outside the loop. */
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

/* The loops are inlined into one function per kind, so that the switch of pl_v_act folds away. */
PL_V_INLINE void map(pl_activation act, int64_t count, const float *x, float *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) pl_v_store(y + i, pl_v_act(act, pl_v_load(x + i)));
    if (i < count) pl_v_store_part(y + i, pl_v_act(act, pl_v_load_part(x + i, count - i)), count - i);
}

void PL_KERNEL(activation)(pl_activation act, int64_t count, const float *x, float *y)
{
    switch (act) {
    case PL_ACT_GELU:
        map(PL_ACT_GELU, count, x, y);
        break;
    case PL_ACT_SILU:
        map(PL_ACT_SILU, count, x, y);
        break;
    case PL_ACT_TANH:
        map(PL_ACT_TANH, count, x, y);
        break;
    case PL_ACT_RELU:
        map(PL_ACT_RELU, count, x, y);
        break;
    default:
        map(PL_ACT_NONE, count, x, y);
        break;
    }
}

PL_V_INLINE void map_grad(pl_activation act, int64_t count, const float *x, const float *dy, float *dx)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) pl_v_store(dx + i, pl_v_load(dy + i) * pl_v_act_grad(act, pl_v_load(x + i)));
    int64_t n = count - i;
    if (n > 0) pl_v_store_part(dx + i, pl_v_load_part(dy + i, n) * pl_v_act_grad(act, pl_v_load_part(x + i, n)), n);
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, const float *x, const float *dy, float *dx)
{
    switch (act) {
    case PL_ACT_GELU:
        map_grad(PL_ACT_GELU, count, x, dy, dx);
        break;
    case PL_ACT_SILU:
        map_grad(PL_ACT_SILU, count, x, dy, dx);
        break;
    case PL_ACT_TANH:
        map_grad(PL_ACT_TANH, count, x, dy, dx);
        break;
    case PL_ACT_RELU:
        map_grad(PL_ACT_RELU, count, x, dy, dx);
        break;
    default:
        map_grad(PL_ACT_NONE, count, x, dy, dx);
        break;
    }
}

void PL_KERNEL(add)(int64_t count, const float *a, const float *b, float *y)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) pl_v_store(y + i, pl_v_load(a + i) + pl_v_load(b + i));
    int64_t n = count - i;
    if (n > 0) pl_v_store_part(y + i, pl_v_load_part(a + i, n) + pl_v_load_part(b + i, n), n);
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
