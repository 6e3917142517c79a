/* How far the numbers of a form (8 bits, bf16, signs) are from those of f32: the size of what lies between them by
 * their own, and the cosine of each row with the same in f32. Rows of one number have none: it would say nothing. Two
 * rows of zeros are the same row, so theirs is 1; where only one of both is all zero it is 0. */
#ifndef PL_BASE_DIFFERENCE_H
#define PL_BASE_DIFFERENCE_H

#include "base/narrow.h"

typedef struct pl_difference { /* zeroed: of nothing */
    double off, size;          /* Σ (y − y_wide)², Σ y_wide² */
    double sum, least;         /* cosines of rows */
    uint64_t rows;             /* that have one */
} pl_difference;

void pl_difference_add_row(pl_difference *, uint64_t width, pl_real, const void *row, const float *wide);
double pl_difference_share(const pl_difference *);       /* the root of off/size; where all of f32 is 0, of off */
double pl_difference_mean_cosine(const pl_difference *); /* 1 where there is none */
double pl_difference_least_cosine(const pl_difference *);

#endif
