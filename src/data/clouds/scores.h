/* How good predictions of a regression are: pairs of what is true and what was predicted, in the same unit.
 *
 *   MAE = Σ|e|/n, MSE = Σe²/n, RMSE = √MSE with e = predicted − true;  MAPE = Σ|e/true|/n, over what is not 0
 *   R² = 1 − Σe²/Σ(true − mean of true)²; a population's standard deviation of e; quantiles of |e|
 *   conformal: the ⌈(n + 1)·0.9⌉-th smallest |e|: of so many further samples that are drawn alike, nine in ten lie
 *   within that of their prediction (split conformal prediction); not a number where n < 9, which are too few
 *
 * The quantile p is the ⌈p·n⌉-th smallest. Nothing here asks for memory: the k-th smallest is found by halving the range
 * of the bits, which for numbers that are not negative are in their order. */
#ifndef PL_DATA_SCORES_H
#define PL_DATA_SCORES_H

#include <stdint.h>

enum { PL_SCORE_QUANTILES = 5 };
extern const double pl_score_quantile[PL_SCORE_QUANTILES]; /* 0.25, 0.5, 0.75, 0.9, 0.95 */

typedef struct pl_scored {
    double truth, predicted;
} pl_scored;

typedef struct pl_scores {
    uint64_t count;
    double mae, mse, rmse, mape, r2, mean_error, std_error;
    double quantile[PL_SCORE_QUANTILES], conformal;
} pl_scores;

/* Pair i of `count`; called several times for each. */
typedef pl_scored pl_score_at(const void *context, uint64_t i);
/* NAN in what is not defined: all of no pairs; R² where all that is true is the same. */
pl_scores pl_score(pl_score_at *, const void *context, uint64_t count);

#endif
