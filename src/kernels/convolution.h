/* Convolutions as the scalar reference computes them: output by output, from the definition, sums in double. The other
 * levels run on the tiles of the matrix product (gemm.h; backend/convolution.c says how). */
#ifndef PL_KERNELS_CONVOLUTION_H
#define PL_KERNELS_CONVOLUTION_H

#include "base/convolution.h"
#include "kernels/gemm.h"

/* Rows [begin, end) of all images one under the other; the epilogue's rows are pixels, one after the other. */
void pl_convolution_ref(const pl_convolution_shape *, pl_real type, const void *x, const void *weight,
                        const pl_gemm_epilogue *, int64_t begin, int64_t end); /* of y */
void pl_convolution_dx_ref(const pl_convolution_shape *, pl_real type, const void *dy, const void *weight,
                           const pl_gemm_epilogue *, int64_t begin, int64_t end); /* of dx */
/* Output channels [begin, end); each sum goes on from dw, pixel by pixel, and each of its steps is rounded. */
void pl_convolution_dw_ref(const pl_convolution_shape *, pl_real type, const void *dy, const void *x, float *dw,
                           int64_t begin, int64_t end);

#endif
