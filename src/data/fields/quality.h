/* How evenly the first points of a Sobol sequence lie: their centred discrepancy and how much two dimensions go
 * together. What a config's limits are held against. */
#ifndef PL_DATA_QUALITY_H
#define PL_DATA_QUALITY_H

#include "data/fields/sobol.h"

enum { PL_QUALITY_POINTS = 4096 }; /* the discrepancy takes time by their square: of so many at most */

typedef struct pl_quality {
    double discrepancy; /* CD^2 of Hickernell (1998), of the first PL_QUALITY_POINTS at most */
    double correlation; /* the largest |r| of Pearson's of two dimensions, of all points */
} pl_quality;

/* Of the scratch below. */
uint64_t pl_quality_bytes(uint32_t dimensions, uint32_t points);
/* scratch: aligned to 8. */
void pl_quality_measure(const pl_sobol *, uint32_t points, void *scratch, pl_quality *);
/* Whether neither is above its limit (INFINITY: none): PL_E_CONFIG. */
pl_status pl_quality_check(const pl_quality *, const pl_quality *limit, uint32_t points, pl_error *);

#endif
