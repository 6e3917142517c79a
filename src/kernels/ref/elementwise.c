/* Activations, their derivatives and sums, scalar, with the C library's functions in double precision. */
#include <math.h>

#include "base/encoding.h"
#include "kernels/kernels.h"
#include "kernels/ref/activation.h"

void PL_KERNEL(activation)(pl_activation act, int64_t count, pl_real type, const void *x, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, (float)ref_activation(act, pl_real_get(type, x, i)));
}

void PL_KERNEL(activation_bwd)(pl_activation act, int64_t count, pl_real type, const void *x, const void *dy, void *dx)
{
    for (int64_t i = 0; i < count; i++)
        pl_real_put(type, dx, i,
                    (float)(pl_real_get(type, dy, i) * ref_activation_slope(act, pl_real_get(type, x, i))));
}

void PL_KERNEL(add)(int64_t count, pl_real type, const void *a, const void *b, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, pl_real_get(type, a, i) + pl_real_get(type, b, i));
}

void PL_KERNEL(scale)(int64_t count, pl_real type, float factor, const void *x, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, factor * pl_real_get(type, x, i));
}

void PL_KERNEL(cast)(int64_t count, pl_real from, const void *x, pl_real to, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(to, y, i, pl_real_get(from, x, i));
}

void PL_KERNEL(encode_q8_0)(int64_t blocks, const float *x, void *y)
{
    pl_encoding_narrow(PL_ENCODING_Q8_0, x, blocks * pl_encoding_block(PL_ENCODING_Q8_0), y);
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

void PL_KERNEL(gated)(pl_activation act, int64_t count, const float *gate, const float *up, float *y)
{
    for (int64_t i = 0; i < count; i++) y[i] = (float)(ref_activation(act, (double)gate[i]) * (double)up[i]);
}

void PL_KERNEL(gated_bwd)(pl_activation act, int64_t count, pl_real type, void *gate, void *up, void *d)
{
    for (int64_t i = 0; i < count; i++) {
        double g = pl_real_get(type, gate, i), u = pl_real_get(type, up, i), dh = pl_real_get(type, d, i);
        double open = ref_activation(act, g);
        pl_real_put(type, gate, i, (float)(dh * u * ref_activation_slope(act, g)));
        pl_real_put(type, up, i, (float)(dh * open));
        pl_real_put(type, d, i, (float)(open * u));
    }
}
