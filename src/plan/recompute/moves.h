/* Moves of the annealing: random changes of the matrix. */
#ifndef PL_PLAN_RECOMPUTE_MOVES_H
#define PL_PLAN_RECOMPUTE_MOVES_H

#include "matrix.h"
#include "random.h"

/* Fills *change; false when this try came to nothing. */
bool moves_pick(const matrix *, const pl_recompute_options *, recompute_random *, matrix_change *);

#endif
