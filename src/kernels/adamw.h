/* What the kernels of AdamW and Adam-atan2 need besides the arrays. */
#ifndef PL_KERNELS_ADAMW_H
#define PL_KERNELS_ADAMW_H

#include <stdbool.h>
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

/* The same for every element, computed once a call in double. An angle stays when both its sides are multiplied, so for
 * Adam-atan2 the correction of m goes into root_scale and the rate is lr alone. */
typedef struct pl_adamw_rates {
    float beta1, rest1, beta2, rest2; /* rest = 1 − beta */
    float rate;                       /* lr/(1 − beta1ᵗ); of an angle lr */
    float root_scale;                 /* 1/√(1 − beta2ᵗ); of an angle (1 − beta1ᵗ)/√(1 − beta2ᵗ) */
    float eps;
    float decay;      /* lr·weight_decay */
    float grad_scale; /* 1 without clipping */
    float limit;      /* w ends within ±limit; infinity: anywhere */
    bool angle;       /* steps by atan2(m, √v·root_scale) in place of m/(√v·root_scale + eps) */
} pl_adamw_rates;

#endif
