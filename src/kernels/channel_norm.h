/* Norms of images in N,H,W,C: what a channel is normalised with, and what their gradients are made of. All arrays have
 * a number a channel. */
#ifndef PL_KERNELS_CHANNEL_NORM_H
#define PL_KERNELS_CHANNEL_NORM_H

#include <stdint.h>

#include "base/activation.h"

/* z = (x − mean)·scale + beta, y = act(z); with film, y = film[c]·act(z) + film[channels + c] */
typedef struct pl_channel_affine {
    int64_t channels;
    pl_activation act;
    const float *mean, *scale, *beta;
    const float *film; /* [2, channels] or NULL; then there is no residual */
} pl_channel_affine;

/* dx = scale·dz + shift + (x − mean)·slope, dz = dy·film[c]·act'(z) */
typedef struct pl_channel_slope {
    pl_channel_affine z;
    const float *shift, *slope;
} pl_channel_slope;

#endif
