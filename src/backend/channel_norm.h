/* Norms of images, N,H,W,C (group, instance and batch norm), as plain values; see calls.h, whose rules hold here too.
 *
 * A sample is `rows` rows of `positions` pixels of `channels` numbers. Moments are f32 [samples·rows, 2, channels]: for
 * each row and channel the mean over the row's positions and Σ (x − mean)². Instance norm is group norm with a group a
 * channel; batch norm is instance norm over one sample that has the rows of all. */
#ifndef PL_BACKEND_CHANNEL_NORM_H
#define PL_BACKEND_CHANNEL_NORM_H

#include <stdint.h>

#include "base/activation.h"
#include "base/narrow.h"
#include "kernels/team.h"

typedef struct pl_channel_moments_call {
    int64_t rows, positions, channels; /* rows of all samples */
    const void *x;
    float *moments;
    pl_real type;
} pl_channel_moments_call;
void pl_channel_moments_exec(const pl_channel_moments_call *, pl_team);

/* y = act((x − μ)·r·gamma + beta) (+ residual), r = 1/√(var + eps), biased variance over a group's channels and all its
 * positions. One pass over x, the moments being there. */
typedef struct pl_channel_norm_call {
    int64_t samples, rows, positions, channels, groups; /* groups divides channels */
    float eps;
    pl_activation act;
    const void *x;
    const float *moments;                     /* NULL: these statistics [channels] instead, one group a channel */
    const float *fixed_mean, *fixed_variance; /* NULL with moments */
    const float *gamma, *beta;                /* [channels] */
    const void *residual;                     /* as x, or NULL */
    void *y;                                  /* may be x or residual */
    float *mean, *rstd;                       /* [samples, groups] or NULL */
    pl_real type;
} pl_channel_norm_call;
uint64_t pl_channel_norm_workspace_bytes(const pl_channel_norm_call *, pl_team);
void pl_channel_norm_exec(const pl_channel_norm_call *, void *workspace, pl_team);

#endif
