/* Numbers to mean 0 and variance 1: their mean and the population's deviation, gathered one by one, in the order in
 * which they come (Welford 1962). While they are gathered, equal numbers have a deviation of exactly 0. */
#ifndef PL_BASE_SCALER_H
#define PL_BASE_SCALER_H

#include <stdint.h>

typedef struct pl_scaler_sum {
    uint64_t count;
    double mean, squares; /* sum of squared differences from the mean */
} pl_scaler_sum;

typedef struct pl_scaler {
    double mean, deviation; /* above 0 */
} pl_scaler;

static inline void pl_scaler_add(pl_scaler_sum *s, double x)
{
    const double difference = x - s->mean;
    s->mean += difference / (double)++s->count;
    s->squares += difference * (x - s->mean);
}

/* Where all numbers are equal there is nothing to scale: the deviation is 1. */
pl_scaler pl_scaler_finish(const pl_scaler_sum *);
static inline double pl_scale(const pl_scaler *s, double x) { return (x - s->mean) / s->deviation; }
/* Scales these numbers by their own mean and deviation: where all are equal they become 0. */
void pl_scale_each(float *x, uint64_t count);
static inline double pl_unscale(const pl_scaler *s, double x) { return x * s->deviation + s->mean; }

#endif
