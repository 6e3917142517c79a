/* What a team can do at most: operations on registers, bytes from memory. For measuring (calibrate/rates.c). */
#ifndef PL_BACKEND_PEAK_H
#define PL_BACKEND_PEAK_H

#include <stdint.h>

#include "base/arithmetic.h"
#include "kernels/team.h"

/* All threads do so many rounds; returns the operations of all, two for each multiply-add. 0: the level has no
 * instruction whose rate would be a ceiling. */
double pl_peak_exec(pl_team, pl_arithmetic, int64_t rounds);
/* The team reads all of it. */
void pl_read_exec(pl_team, const void *memory, uint64_t bytes);

#endif
