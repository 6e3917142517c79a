/* How a call is shared out among the team. A body is a serial function that does part `part` of `parts`; it must give
 * the same bits for any number of parts. Regions open with the full team, or not at all when the work is too small to
 * repay waking it: libgomp makes a new team (and asks the heap for it) whenever the size of the team changes. */
#ifndef PL_BACKEND_PARALLEL_H
#define PL_BACKEND_PARALLEL_H

#include <stdint.h>

#include "kernels/team.h"

typedef struct pl_range {
    int64_t begin, end; /* half-open */
} pl_range;

/* Part `part` of [0, count), cut at multiples of `grain`, so that only the last part may end elsewhere. */
static inline pl_range pl_range_of_part(int64_t count, int64_t grain, int part, int parts)
{
    int64_t units = (count + grain - 1) / grain;
    int64_t begin = units * part / parts * grain, end = units * (part + 1) / parts * grain;
    return (pl_range){begin < count ? begin : count, end < count ? end : count};
}

/* Elements below which one thread is as fast as many (a region costs a few microseconds). */
enum { PL_SERIAL_BELOW_ELEMS = 8192 };

typedef void pl_body(const void *work, int part, int parts);

/* Runs the body on the whole team, or on this thread alone when `elems` is small. */
void pl_parallel(pl_team, int64_t elems, pl_body *, const void *work);

/* Inside a body: waits until every part has come here. */
void pl_barrier(void);

#endif
