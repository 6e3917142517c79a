/* What AdamW's kernels need besides the arrays. */
#ifndef PL_KERNELS_ADAMW_H
#define PL_KERNELS_ADAMW_H

#include <stdint.h>

#include "base/philox.h"

/* How the two moments are kept. */
typedef enum pl_adamw_state {
    PL_ADAMW_F32,
    PL_ADAMW_BF16, /* bf16, rounded up or down at random */
    PL_ADAMW_8BIT, /* m and √v in blocks of base/block8.h, rounded up or down at random */
} pl_adamw_state;

/* The 16 bits by which element i's moments are rounded, both by the same, so that m/√v moves less than either: of the
 * words of this step's Philox blocks, one after the other, the halves in their order in memory (little-endian): the
 * i-th. */
typedef struct pl_adamw_random {
    pl_philox philox;
    uint32_t step;
} pl_adamw_random;

/* The same for every element, computed once a call in double. */
typedef struct pl_adamw_rates {
    float beta1, rest1, beta2, rest2; /* rest = 1 − beta */
    float rate;                       /* lr/(1 − beta1ᵗ) */
    float root_scale;                 /* 1/√(1 − beta2ᵗ) */
    float eps;
    float decay;      /* lr·weight_decay */
    float grad_scale; /* 1 without clipping */
} pl_adamw_rates;

#endif
