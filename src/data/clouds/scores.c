#include "data/clouds/scores.h"

#include <math.h>
#include <string.h>

const double pl_score_quantile[PL_SCORE_QUANTILES] = {0.25, 0.5, 0.75, 0.9, 0.95};

typedef struct pairs {
    pl_score_at *at;
    const void *context;
    uint64_t count;
} pairs;

static double error_at(const pairs *p, uint64_t i)
{
    const pl_scored pair = p->at(p->context, i);
    return pair.predicted - pair.truth;
}

static uint64_t count_up_to(const pairs *p, double most)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < p->count; i++) count += fabs(error_at(p, i)) <= most;
    return count;
}

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The k-th smallest |e|, from 1: the least number that k of them do not exceed. */
static double kth_smallest(const pairs *p, uint64_t k)
{
    uint64_t below = 0, at = UINT64_C(0x7ff0000000000000); /* infinity: all are up to that */
    if (count_up_to(p, 0) >= k) return 0;
    while (at - below > 1) {
        const uint64_t middle = below + (at - below) / 2;
        if (count_up_to(p, of_bits(middle)) >= k)
            at = middle;
        else
            below = middle;
    }
    return of_bits(at);
}

static double ratio(double a, double b) { return b > 0 ? a / b : NAN; }

/* Sums in two passes: about the means. */
static void score_moments(const pairs *p, pl_scores *s)
{
    double truth = 0, error = 0, squares = 0, spread = 0, varies = 0, shares = 0;
    uint64_t shared = 0;
    const double n = (double)p->count;
    for (uint64_t i = 0; i < p->count; i++) {
        const pl_scored pair = p->at(p->context, i);
        const double e = pair.predicted - pair.truth;
        truth += pair.truth;
        error += e;
        s->mae += fabs(e) / n;
        squares += e * e;
        if (pair.truth != 0) shares += fabs(e / pair.truth), shared++;
    }
    s->mean_error = error / n;
    for (uint64_t i = 0; i < p->count; i++) {
        const double t = p->at(p->context, i).truth - truth / n, e = error_at(p, i) - s->mean_error;
        spread += t * t;
        varies += e * e;
    }
    s->mse = squares / n;
    s->rmse = sqrt(s->mse);
    s->mape = ratio(shares, (double)shared);
    s->std_error = sqrt(varies / n);
    s->r2 = 1 - ratio(squares, spread);
}

pl_scores pl_score(pl_score_at *at, const void *context, uint64_t count)
{
    enum { FEWEST = 9 }; /* below, the ⌈(n + 1)·0.9⌉-th is none of them */
    const pairs p = {at, context, count};
    pl_scores s = {.count = count};
    if (count == 0) {
        s = (pl_scores){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, {NAN, NAN, NAN, NAN, NAN}, NAN};
        return s;
    }
    score_moments(&p, &s);
    for (int k = 0; k < PL_SCORE_QUANTILES; k++) {
        const uint64_t rank = (uint64_t)ceil(pl_score_quantile[k] * (double)count);
        s.quantile[k] = kth_smallest(&p, rank ? rank : 1);
    }
    s.conformal = count < FEWEST ? NAN : kth_smallest(&p, (9 * (count + 1) + 9) / 10);
    return s;
}
