/* Which sample of a training list is number n of all that a run ever takes: a pure function of (seed, n), that goes on
 * over the end of an epoch, so that every step has a whole batch.
 *
 * Each once: n / N is the epoch, whose order is a permutation; n % N the place in it.
 * Weighted, with replacement: samples [begin, end) of the list weigh `factor`, the others 1. One number chooses between
 * the two kinds, in the ratio of their whole weights, another one of its kind: no table. */
#ifndef PL_DATA_DRAW_H
#define PL_DATA_DRAW_H

#include <stdbool.h>

#include "base/permutation.h"

typedef struct pl_draw {
    pl_permutation order;
    bool weighted;
    uint64_t begin, end;
    double share; /* of the draws that fall in [begin, end) */
} pl_draw;

pl_draw pl_draw_each_once(uint64_t samples, uint64_t seed);
/* factor: finite, above 0. */
pl_draw pl_draw_weighted(uint64_t samples, uint64_t begin, uint64_t end, double factor, uint64_t seed);
/* Below `samples`. */
uint64_t pl_draw_at(const pl_draw *, uint64_t number);

#endif
