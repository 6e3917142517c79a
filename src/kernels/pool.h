/* Pools and changes of size of images, N,H,W,C, a row of the result at a time. */
#ifndef PL_KERNELS_POOL_H
#define PL_KERNELS_POOL_H

#include <stdint.h>

/* Along one axis, element o of a result is Σ weight[at[o] + k]·x[first[o] + k] for k in 0 … count[o], in this order. */
typedef struct pl_taps {
    int64_t *first, *count, *at;
    float *weight;
} pl_taps;

/* Each pixel of a row of the result: Σ over `rows` rows of x, row_weight[i]·(Σ of its taps across). */
typedef struct pl_resample_row {
    int64_t columns;  /* pixels of the result's row */
    int64_t channels; /* numbers from pixel to pixel; done are `count` of each */
    int64_t count;
    pl_taps across;
    int64_t rows, row_ld;
    const float *row_weight;
} pl_resample_row;

#endif
