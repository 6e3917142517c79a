/* Losses of regression (base/regression.h), as a plain value; see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_REGRESSION_H
#define PL_BACKEND_REGRESSION_H

#include <stdint.h>

#include "base/narrow.h"
#include "base/regression.h"
#include "kernels/team.h"

/* loss[0] (f64) += Σ weight·loss of each item, one after the other; dprediction is its derivative, times *scale and
 * *loss_scale. weight is `factor` for the ⌊share·n⌋ items with the largest losses of the n counted ones of this call,
 * else 1. An item whose target is not a number is not counted, and its gradient is 0. */
typedef struct pl_regression_loss_call {
    int64_t count;
    pl_regression loss_of; /* share 0: none is hard, and calls may be cut anywhere */
    const void *prediction;
    const float *target;
    const float *scale;      /* (run) [1]: 1 / number of counted items of the whole step */
    double *loss;            /* [1] accumulates */
    void *dprediction;       /* NULL: loss only; may be prediction */
    const float *loss_scale; /* (run) [1] or NULL: the gradient is that many times as large */
    pl_real type;
} pl_regression_loss_call;
uint64_t pl_regression_loss_workspace_bytes(const pl_regression_loss_call *, pl_team);
void pl_regression_loss_exec(const pl_regression_loss_call *, void *workspace, pl_team);

#endif
