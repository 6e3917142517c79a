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

void PL_KERNEL(activation)(pl_activation act, int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = (float)value(act, x[i]);
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, const float *x, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++) dx[i] = (float)(dy[i] * slope(act, x[i]));
}

void PL_KERNEL(add)(int64_t count, const float *a, const float *b, float *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
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
