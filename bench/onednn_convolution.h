/* oneDNN's convolution of the same shape, where the library was found at build time; an optional peer, never needed. */
#ifndef PL_BENCH_ONEDNN_CONVOLUTION_H
#define PL_BENCH_ONEDNN_CONVOLUTION_H

#include "base/convolution.h"
#include "base/narrow.h"
#include "kernels/team.h"

/* Best seconds of the forward pass (0), dX (1) or dW (2), in the layouts that it prefers. Negative: not built in, or
 * refused. */
double bench_onednn_convolution(int which, const pl_convolution_shape *, pl_real, pl_convolution_algorithm, pl_team);

#endif
