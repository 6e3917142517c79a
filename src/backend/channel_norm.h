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
    int64_t moment_rows, moment_positions; /* what the moments are of, where x is but a part of it: rows of a sample and
                                              pixels of a row; 0: x */
    const float *film;                     /* [images, 2, channels]: y = film[0]·act(…) + film[1]; NULL: none */
    int64_t images;                        /* with film: so many images make a sample */
} pl_channel_norm_call;
uint64_t pl_channel_norm_workspace_bytes(const pl_channel_norm_call *, pl_team);
void pl_channel_norm_exec(const pl_channel_norm_call *, void *workspace, pl_team);

/* dx = (add +) gradient;  dgamma += Σ dz·x̂;  dbeta += Σ dz, with dz = dy·act'(x̂·gamma + beta), with film times its
 * scale. dx may be dy, x or add. The sums over a sample depend on it alone and are added in the order of the samples,
 * so the bits do not depend on how many a call has. (The gradient of a residual is dy.) */
typedef struct pl_channel_norm_bwd_call {
    int64_t samples, rows, positions, channels, groups;
    pl_activation act;
    const void *dy, *x;
    const float *gamma, *beta;
    const float *mean, *rstd; /* [samples, groups] */
    const float *variance;    /* in place of rstd: mean and variance [channels] are given, not made of x */
    float eps;                /* with variance */
    const void *add;          /* as x, or NULL: a gradient that has already reached x by another path */
    void *dx;                 /* NULL: not wanted */
    float *dgamma, *dbeta;    /* likewise; they accumulate */
    pl_real type;
    const float *film; /* as forward, with images; then there is nothing to add */
    int64_t images;    /* of a sample, with film; blocks of rows end where they do */
    float *dfilm;      /* with film: its gradient, written; NULL: not wanted */
    int64_t whole;     /* x is what a pool left of so many positions a sample, which the statistics are of; 0: of x */
    float *spread;     /* with whole, when wanted: [3, channels], see pool.h; dx then has the rest alone */
} pl_channel_norm_bwd_call;
uint64_t pl_channel_norm_bwd_workspace_bytes(const pl_channel_norm_bwd_call *, pl_team);
void pl_channel_norm_bwd_exec(const pl_channel_norm_bwd_call *, void *workspace, pl_team);

/* mean += momentum·(batch mean − mean), variance likewise with the unbiased one of the batch, in place. Of one position
 * in all there is no such variance: the biased one, 0, is taken. */
typedef struct pl_batch_norm_update_call {
    int64_t rows, positions, channels;
    float momentum;
    const float *moments;
    float *mean, *variance;
} pl_batch_norm_update_call;
uint64_t pl_batch_norm_update_workspace_bytes(const pl_batch_norm_update_call *, pl_team);
void pl_batch_norm_update_exec(const pl_batch_norm_update_call *, void *workspace, pl_team);

#endif
