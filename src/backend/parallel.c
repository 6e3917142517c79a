/* The one parallel region of the calls that share out rows or elements. */
#include "backend/parallel.h"

#include <omp.h>

void pl_parallel(pl_team team, int64_t elems, pl_body *body, const void *work)
{
    if (team.threads <= 1 || elems < PL_SERIAL_BELOW_ELEMS) {
        body(work, 0, 1);
        return;
    }
#pragma omp parallel num_threads(team.threads)
    body(work, omp_get_thread_num(), omp_get_num_threads());
}

void pl_barrier(void)
{
    /* Outside a region (one part) this is no operation. */
#pragma omp barrier
}
