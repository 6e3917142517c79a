/* The arena over time as text, for the plan's report and for humans with a terminal (after TensorFlow Lite Micro's
 * PrintMemoryPlan). */
#ifndef PL_PLAN_PLACE_MAP_H
#define PL_PLAN_PLACE_MAP_H

#include "plimsoll/place.h"
#include "base/str.h"

/* `width` columns of time by `height` rows of address, highest address first. A letter names the buffer that fills most
 * of a cell (the legend lists the largest ones), '.' is free, '!' marks bytes claimed twice. Either dimension 0 gives
 * nothing. PL_E_NOMEM when memory is refused. */
pl_status pl_place_map(const pl_place_problem *, const pl_place_solution *, unsigned width, unsigned height,
                       pl_str *out, pl_error *);

#endif
