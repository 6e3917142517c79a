/* Losses of regression, of an error e = target − prediction, and how the hardest items of a batch count more.
 *
 *   MSE               e²
 *   MAE               |e|
 *   HUBER             h = e²/2 where |e| ≤ delta, else delta·(|e| − delta/2)
 *   MSE_MAE           alpha·e² + (1 − alpha)·|e|
 *   HUBER_MAE         alpha·h + (1 − alpha)·|e|^gamma
 *   WEIGHTED_HUBER    u·h, with u = under_weight where the prediction is too low (e > 0), else 1
 *   WEIGHTED_HUBER_MAE   alpha·u·h + (1 − alpha)·|e|^gamma: the power is not weighted, as in the source of System 002
 *
 * The slope of |e| at 0 is 0. gamma is at least 1: below, the slope at 0 would be infinite.
 *
 * Hard mining: of n items the ⌊share·n⌋ with the largest losses (of equal ones the first) count `factor` times; the sum
 * is still divided by n. Which they are is taken as given: no gradient goes through the choice. */
#ifndef PL_BASE_REGRESSION_H
#define PL_BASE_REGRESSION_H

typedef enum pl_regression_kind {
    PL_REGRESSION_MSE,
    PL_REGRESSION_MAE,
    PL_REGRESSION_HUBER,
    PL_REGRESSION_MSE_MAE,
    PL_REGRESSION_HUBER_MAE,
    PL_REGRESSION_WEIGHTED_HUBER,
    PL_REGRESSION_WEIGHTED_HUBER_MAE,
    PL_REGRESSION_COUNT
} pl_regression_kind;

/* The numbers of the kinds that use them; all are in range, also where they are not used. */
typedef struct pl_regression {
    pl_regression_kind kind;
    double delta;        /* > 0 */
    double alpha;        /* in [0, 1] */
    double gamma;        /* ≥ 1 */
    double under_weight; /* ≥ 0 */
    double share;        /* of the items that are hard, in [0, 1] */
    double factor;       /* ≥ 0; 1: none counts more */
} pl_regression;

#endif
