/* Who computes: the number of threads and the instruction-set level. Passed by value into every call; the same for the
 * whole life of a program. */
#ifndef PL_KERNELS_TEAM_H
#define PL_KERNELS_TEAM_H

#include "base/isa.h"

typedef struct pl_team {
    int threads; /* ≥ 1; parallel regions open with all of them or with one */
    pl_isa isa;
} pl_team;

#endif
