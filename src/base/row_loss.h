/* Losses of rows of numbers. Each row gives one term, in double:
 *
 *   cross-entropy  SOFTMAX     log Σ exp(z) − z of the label
 *                  STABLEMAX   log Σ s(z) − log s(z of the label), with s(z) = z + 1 where z ≥ 0, else 1/(1 − z)
 *                              (Prieto et al. 2025, "Grokking at the edge of numerical stability")
 *   binary cross-entropy of a logit q and a y in [0, 1]   max(q, 0) − q·y + log(1 + exp(−|q|))
 *   cosine loss    1 − a·b / max(‖a‖·‖b‖, PL_COSINE_EPS); below that bound the denominator is a constant
 *   squared error  Σ (a − b)²
 *   norm penalty   (‖x‖ − 1)²; its gradient at x = 0 is 0
 *
 * A negative label is none: the term of its row is 0, and so is its gradient. */
#ifndef PL_BASE_ROW_LOSS_H
#define PL_BASE_ROW_LOSS_H

typedef enum pl_cross_entropy_kind {
    PL_CROSS_ENTROPY_SOFTMAX,
    PL_CROSS_ENTROPY_STABLEMAX,
    PL_CROSS_ENTROPY_COUNT
} pl_cross_entropy_kind;

#define PL_COSINE_EPS 1e-8

#endif
