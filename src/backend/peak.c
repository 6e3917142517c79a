#include "backend/peak.h"

#include <stdatomic.h>

#include "backend/parallel.h"
#include "kernels/kernels.h"

typedef struct peak_work {
    const pl_kernels *kernels;
    pl_isa isa;
    pl_arithmetic what;
    int64_t rounds;
} peak_work;

static void run_peak(const void *work, int part, int parts)
{
    const peak_work *w = work;
    (void)part, (void)parts;
    (void)w->kernels->peak(w->isa, w->what, w->rounds);
}

double pl_peak_exec(pl_team team, pl_arithmetic what, int64_t rounds)
{
    const peak_work w = {pl_kernels_get(team.isa), team.isa, what, rounds};
    const double operations = w.kernels->peak(team.isa, what, 1);
    if (operations > 0) pl_parallel(team, INT64_MAX, run_peak, &w);
    return operations * (double)rounds * team.threads;
}

typedef struct read_work {
    const pl_kernels *kernels;
    const uint64_t *word;
    int64_t count;
} read_work;

/* What is read is used, so that no compiler leaves it away. */
static void run_read(const void *work, int part, int parts)
{
    static _Atomic uint64_t seen;
    const read_work *w = work;
    const pl_range own = pl_range_of_part(w->count, 512, part, parts);
    atomic_store_explicit(&seen, w->kernels->read_words(own.end - own.begin, w->word + own.begin),
                          memory_order_relaxed);
}

void pl_read_exec(pl_team team, const void *memory, uint64_t bytes)
{
    const read_work w = {pl_kernels_get(team.isa), memory, (int64_t)(bytes / sizeof(uint64_t))};
    pl_parallel(team, INT64_MAX, run_read, &w);
}
