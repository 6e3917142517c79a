/* Features of an operator O at a field x: how it answers to small changes of x and to x made smaller or larger.
 *
 *   lipschitz_eps_E   |O(x + d) − O(x)| / |d|, each number of d normal with deviation E
 *   gain_scale_S      |O(S·x)| / |O(x)|
 *   linearity_r2      of the least-squares line through the four (S, gain): 1 − Σ(gain − line)²/Σ(gain − mean)²
 *   saturation_degree, compression_ratio      1.5 − gain(1.5), gain(0.5)/gain(1.5)
 *
 * |·| is the Euclidean norm over all numbers of a field. Divisors get 1e-10 more, so that a field or an answer of zeros
 * has features; a gain that does not change at all, as that of an operator that begins with a norm, is a line: 1. These
 * are the ten that the documentation of such data sets defines; where it says twelve it has miscounted.
 *
 * They are made from the answers to eight inputs: x itself, then the others. Random numbers are a function of (seed,
 * operator, which E, element); sums are in double, an element after the other. */
#ifndef PL_DATA_FEATURES_H
#define PL_DATA_FEATURES_H

#include "base/narrow.h"
#include "base/philox.h"
#include "base/rollout.h"

enum { PL_FEATURE_CHANGES = 3, PL_FEATURE_SCALES = 4, PL_FEATURE_INPUTS = 1 + PL_FEATURE_CHANGES + PL_FEATURE_SCALES };

typedef struct pl_features {
    pl_philox philox;
    uint64_t number; /* of the operator */
    int64_t elems;   /* of a field */
    const float *x;
    float *base;                       /* O(x), once it was taken */
    double change[PL_FEATURE_CHANGES]; /* |d| as rounding left it */
    double answer[PL_FEATURE_INPUTS];  /* |O(x)|, |O(x + d) − O(x)|, |O(S·x)| */
} pl_features;

/* x and base, room for an answer, stay the caller's. */
void pl_features_begin(pl_features *, uint64_t seed, uint64_t number, int64_t elems, const float *x, float *base);
void pl_features_input(pl_features *, int input, float *to);
/* The answer to input 0 comes before the others. */
void pl_features_take(pl_features *, int input, pl_real, const void *answer);
/* When all were taken. */
void pl_features_finish(const pl_features *, float feature[PL_OPERATOR_FEATURES]);

#endif
