/* The mask of dropout: element e of sample s is kept when uniform(bits[e mod 4] of Philox block e/4) ≥ probability,
 * with the counter (step, sample, block) of base/philox.h. Kept elements are scaled by 1/(1 − probability). */
#ifndef PL_KERNELS_DROPOUT_H
#define PL_KERNELS_DROPOUT_H

#include <stdint.h>

#include "base/philox.h"

typedef struct pl_dropout_range {
    pl_philox philox;
    uint32_t step;
    uint64_t sample;      /* global sample index */
    int64_t first, count; /* elements [first, first + count) of the sample; first is a multiple of 4 */
    float probability;    /* [0, 1) */
} pl_dropout_range;       /* the pointers that go with it point at element `first` */

#endif
