/* Activations, their derivatives and sums, scalar, with the C library's functions in double precision. */
#include <math.h>

#include "kernels/kernels.h"
#include "kernels/ref/activation.h"

void PL_KERNEL(activation)(pl_activation act, int64_t count, const float *x, float *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = (float)ref_activation(act, x[i]);
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, const float *x, const float *dy, float *dx)
{
    for (int64_t i = 0; i < count; i++) dx[i] = (float)(dy[i] * ref_activation_slope(act, x[i]));
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
