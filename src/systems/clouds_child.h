/* Flights read by a child (base/child.h): libhdf5 can be crashed by what is in a damaged file. All that the work leaves
 * is the frame file, and what it tells is how far it is. */
#ifndef PL_SYSTEMS_CLOUDS_CHILD_H
#define PL_SYSTEMS_CLOUDS_CHILD_H

#include "systems/clouds_prepare.h"

/* What works: asks for nothing but the options, in which the child puts its own progress. */
typedef pl_status (*pl_clouds_work)(const pl_clouds_options *, pl_error *);

/* Its status, or, with the flight that it was at, PL_E_DATA where it crashed and PL_E_NOMEM where it was ended
 * otherwise. Progress is told here, by this process. */
pl_status pl_clouds_in_child(pl_clouds_work, const pl_clouds_options *, pl_error *);

#endif
