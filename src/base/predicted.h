/* What the program "evaluate" gave out of the samples of an evaluation: of the first input of its STORE the rows, of
 * the further ones, f32 in [0, 1], what a histogram keeps of them. */
#ifndef PL_BASE_PREDICTED_H
#define PL_BASE_PREDICTED_H

#include "base/histogram.h"

typedef struct pl_predicted {
    const float *row;              /* of the first samples of the validation part, and perhaps of none behind them */
    uint64_t count;                /* f32 */
    const pl_histogram *histogram; /* in the order of the inputs */
} pl_predicted;

#endif
