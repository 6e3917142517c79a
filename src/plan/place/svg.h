/* The pictures of a placement. */
#ifndef PL_PLAN_PLACE_SVG_H
#define PL_PLAN_PLACE_SVG_H

#include "plimsoll/place.h"
#include "base/str.h"

/* svg.c: the arena as SVG, time to the right, offset upward. */
void place_svg(const pl_place_problem *, const pl_place_solution *, pl_str *out);

#endif
