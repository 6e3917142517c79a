/* Least, largest and median of numbers of [0, 1], of which only so much is kept: how many lie in each of equal bins.
 * Made of counts, so the order in which numbers come and how they are cut does not show.
 *
 * The median is the middle of the bin that holds it (of an even count: the mean of the middles of the two bins), but
 * not below the least number nor above the largest: at most half a bin from the exact one, and exact where all are
 * alike. */
#ifndef PL_BASE_HISTOGRAM_H
#define PL_BASE_HISTOGRAM_H

#include <stdint.h>

enum { PL_HISTOGRAM_BINS = 1024 };

typedef struct pl_histogram { /* zeroed: of nothing */
    uint64_t count;
    float least, largest;
    uint64_t bin[PL_HISTOGRAM_BINS];
} pl_histogram;

/* What lies outside [0, 1] counts in the first bin or the last; what is no number in the first. */
void pl_histogram_add(pl_histogram *, const float *x, uint64_t count);
double pl_histogram_median(const pl_histogram *); /* 0 of nothing */

#endif
