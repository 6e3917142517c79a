/* Activations, their derivatives and sums, scalar, with the C library's functions in double precision. */
#include <math.h>

#include "kernels/kernels.h"

static double normal_cdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static double value(pl_activation act, double x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x < -40 ? 0 : x * normal_cdf(x);
    case PL_ACT_SILU:
        return x < -740 ? 0 : x * sigmoid(x);
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x < 0 ? 0 : x;
    default:
        return x;
    }
}

static double slope(pl_activation act, double x)
{
    double c = x < -700 ? -700 : x > 700 ? 700 : x; /* keeps inf·0 away; NaN passes */
    switch (act) {
    case PL_ACT_GELU:
        return normal_cdf(c) + c * exp(-0.5 * c * c) * 0.39894228040143267794;
    case PL_ACT_SILU:
        return sigmoid(c) * (1 + c * sigmoid(-c));
    case PL_ACT_TANH:
        return 1 - tanh(x) * tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? 1 : x <= 0 ? 0 : x;
    default:
        return 1;
    }
}

void PL_KERNEL(activation)(pl_activation act, int64_t count, pl_real type, const void *x, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, (float)value(act, pl_real_get(type, x, i)));
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, pl_real type, const void *x, const void *dy, void *dx)
{
    for (int64_t i = 0; i < count; i++)
        pl_real_put(type, dx, i, (float)(pl_real_get(type, dy, i) * slope(act, pl_real_get(type, x, i))));
}

void PL_KERNEL(add)(int64_t count, pl_real type, const void *a, const void *b, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, pl_real_get(type, a, i) + pl_real_get(type, b, i));
}

void PL_KERNEL(cast)(int64_t count, pl_real from, const void *x, pl_real to, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(to, y, i, pl_real_get(from, x, i));
}

void PL_KERNEL(vecmath)(pl_vecmath function, int64_t count, const float *x, float *y)
{
    static double (*const functions[])(double) = {[PL_VECMATH_EXP] = exp,
                                                  [PL_VECMATH_EXP2] = exp2,
                                                  [PL_VECMATH_LOG] = log,
                                                  [PL_VECMATH_ERF] = erf,
                                                  [PL_VECMATH_SIGMOID] = sigmoid};
    for (int64_t i = 0; i < count; i++) y[i] = (float)functions[function](x[i]);
}
