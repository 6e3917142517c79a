/* Pools and changes of size of images, N,H,W,C, as plain values; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_POOL_H
#define PL_BACKEND_POOL_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

/* y = the largest of each 2×2 (the last row and column of an odd size are left out). Of equal numbers the first counts,
 * row by row; NaN is larger than all. */
typedef struct pl_max_pool_call {
    int64_t samples, height, width, channels; /* of x */
    const void *x;
    void *y;
    uint8_t *argmax; /* 0 … 3, as y; NULL: not wanted */
    pl_real type;
} pl_max_pool_call;
void pl_max_pool_exec(const pl_max_pool_call *, pl_team);

/* dx = (add +) dy where the largest was, 0 elsewhere; dx may be add. */
typedef struct pl_max_pool_bwd_call {
    int64_t samples, height, width, channels; /* of x */
    const void *dy;
    const uint8_t *argmax;
    const void *add; /* as dx, or NULL */
    void *dx;
    pl_real type;
} pl_max_pool_bwd_call;
void pl_max_pool_bwd_exec(const pl_max_pool_bwd_call *, pl_team);

/* dy = shift + slope·(y − mean) of each channel, and where a number of the pool came from + its g; dy may be y. */
typedef struct pl_spread_call {
    int64_t samples, height, width, channels; /* of y */
    const void *g;
    const uint8_t *argmax;
    const float *spread; /* [3, channels]: shift, slope, mean */
    const void *y;
    void *dy;
    pl_real type;
} pl_spread_call;
void pl_spread_exec(const pl_spread_call *, pl_team);

/* Each pixel of y is a weighted sum of a rectangle of x, along each axis:
 *   AVERAGE   the mean of `kernel` from stride·o on
 *   ADAPTIVE  the mean of [⌊o·n/m⌋, ⌈(o + 1)·n/m⌉), of n pixels m
 *   DOUBLE    linear between the middles of pixels, which do not move: 3/4 of the nearest, 1/4 of the next
 * Backward it is the transposed sum: dx = (add +) Σ weights·dy. Sums are taken in ascending order. */
typedef enum pl_resample_kind { PL_RESAMPLE_AVERAGE, PL_RESAMPLE_ADAPTIVE, PL_RESAMPLE_DOUBLE } pl_resample_kind;

typedef struct pl_resample_call {
    pl_resample_kind kind;
    int backward;
    int64_t samples, channels;
    int64_t height, width;         /* of x, or of dx */
    int64_t out_height, out_width; /* of y, or of dy */
    int64_t kernel, stride;        /* AVERAGE */
    const void *from;              /* x, or dy */
    const void *add;               /* as dx, or NULL; backward alone */
    void *to;                      /* y; or dx, which may be add */
    pl_real type;
} pl_resample_call;
uint64_t pl_resample_workspace_bytes(const pl_resample_call *, pl_team);
void pl_resample_exec(const pl_resample_call *, void *workspace, pl_team);

#endif
