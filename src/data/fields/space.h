/* A parameter space: named dimensions, each an interval or a list to choose from, and its points. Point n is that of a
 * Sobol sequence, each coordinate mapped onto its dimension; a pure function of n, so that shares of a job, or a job
 * that goes on, need to know nothing of each other.
 *
 *   integer     low + floor(u (high - low + 1)): every number has the same share, the two ends too
 *   continuous  low + u (high - low), or with log_scale the same between the logarithms
 *   choice      the first whose weights, with those before it, sum to more than u; without weights all are alike
 *   boolean     u > 1/2
 *
 * Some dimensions decide the *shape* of what is made at a point (how many layers, how wide), so what has to be planned;
 * points with the same numbers there are a group, and a job goes through the points group by group. */
#ifndef PL_DATA_SPACE_H
#define PL_DATA_SPACE_H

#include <stdbool.h>

#include "data/fields/sobol.h"

enum { PL_SPACE_DIMENSIONS = 32, PL_SPACE_CHOICES = 16, PL_SPACE_POINTS = 1 << 30 };

typedef enum pl_dimension_type {
    PL_DIMENSION_INTEGER,
    PL_DIMENSION_CONTINUOUS,
    PL_DIMENSION_CHOICE,
    PL_DIMENSION_BOOLEAN,
} pl_dimension_type;

typedef struct pl_dimension {
    const char *name; /* the caller's */
    pl_dimension_type type;
    bool log_scale;   /* CONTINUOUS */
    bool is_shape;    /* not CONTINUOUS */
    double low, high; /* INTEGER, CONTINUOUS: both belong to it, and may be equal */
    uint32_t choices; /* CHOICE */
    double choice[PL_SPACE_CHOICES];
    double weight[PL_SPACE_CHOICES]; /* sum 1; all 0: alike */
} pl_dimension;

typedef struct pl_space {
    pl_sobol sobol;
    uint32_t dimensions;
    pl_dimension dimension[PL_SPACE_DIMENSIONS];
} pl_space;

/* Checks and copies the dimensions, and begins their sequence (not scrambled: pl_sobol_scramble on .sobol does). */
pl_status pl_space_init(pl_space *, const pl_dimension *, uint32_t dimensions, pl_error *);
/* Where u in [0, 1) lies on the dimension: a number of it; of a choice, what it stands for; of a boolean, 0 or 1. */
double pl_dimension_value(const pl_dimension *, double u);
/* Point n, a number for each dimension; u, unless it is NULL, gets the coordinates in the cube. */
void pl_space_point(const pl_space *, uint32_t n, double *value, double *u);

/* Points first … first + count - 1 by shape, in memory of the caller's. Groups come in the order of their numbers,
 * the first shape dimension counting most, and within a group points come in their own order. */
typedef struct pl_space_groups {
    uint32_t points, groups;
    uint64_t *entry; /* sorted: shape above, point below */
    uint32_t *first; /* of each group the place among the entries, and behind the last the end */
} pl_space_groups;

/* How much memory `count` points need: 12 bytes a point at most. PL_E_CONFIG for no point, too many, or shapes that
 * cannot be counted in 32 bits. */
pl_status pl_space_groups_bytes(const pl_space *, uint32_t count, uint64_t *bytes, pl_error *);
/* memory: aligned to 8. What pl_space_groups_bytes refuses must not come here. */
void pl_space_groups_init(pl_space_groups *, const pl_space *, uint32_t first, uint32_t count, void *memory);
/* The i-th of the points in that order. */
static inline uint32_t pl_space_groups_point(const pl_space_groups *g, uint32_t i) { return (uint32_t)g->entry[i]; }

#endif
