/* Tokens of images as plain values: patches, positions, capsules that sum tokens up, and tokens that are picked; see
 * calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_TOKENS_H
#define PL_BACKEND_TOKENS_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

/* ---- patches.c ---- */

/* y[b, gy·(W/p) + gx, c, r, q] = x[b, gy·p + r, gx·p + q, c]/255; of a grey image the same for each c. */
typedef struct pl_patches_call {
    int64_t samples, height, width, depth; /* depth: bytes of a pixel, 1 or `channels` */
    int64_t patch, channels;
    const uint8_t *x;
    float *y;
} pl_patches_call;
void pl_patches_exec(const pl_patches_call *, pl_team);

/* y[b] = x[b] + p */
typedef struct pl_add_positions_call {
    int64_t samples, elems_per_sample;
    const void *x;
    const float *p;
    void *y; /* may be x */
    pl_real type;
} pl_add_positions_call;
void pl_add_positions_exec(const pl_add_positions_call *, pl_team);

#endif
