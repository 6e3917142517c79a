/* What a calibration sees. Numbers are shared out; each part has counts of its own, which are joined in the end: counts
 * and extremes are the same in any order. */
#include "backend/quantize.h"

#include <string.h>

#include "backend/parallel.h"

/* What one part has seen. */
typedef struct seen {
    pl_extremes extremes;
    int64_t bin[PL_SPREAD_BINS]; /* there only where bins are counted */
} seen;

typedef struct job {
    const pl_observe_call *call;
    char *workspace;
} job;

static uint64_t part_bytes(const pl_observe_call *c)
{
    const uint64_t bytes = c->bin ? sizeof(seen) : sizeof(pl_extremes);
    return (bytes + 63) / 64 * 64;
}

uint64_t pl_observe_workspace_bytes(const pl_observe_call *c, pl_team team)
{
    return part_bytes(c) * (uint64_t)team.threads;
}

static seen *seen_of(const job *j, int part)
{
    return (seen *)(void *)(j->workspace + part_bytes(j->call) * (uint64_t)part);
}

static void observe_part(const void *context, int part, int parts)
{
    const job *j = context;
    const pl_observe_call *c = j->call;
    const pl_range own = pl_range_of_part(c->count, 16, part, parts);
    const uint64_t count = (uint64_t)(own.end - own.begin);
    if (c->bin)
        pl_spread_add(seen_of(j, part)->bin, pl_extremes_limit(c->extremes), c->x + own.begin, count);
    else
        pl_extremes_add(&seen_of(j, part)->extremes, c->x + own.begin, count);
}

void pl_observe_exec(const pl_observe_call *c, void *workspace, pl_team team)
{
    job j = {c, workspace};
    memset(workspace, 0, pl_observe_workspace_bytes(c, team));
    pl_parallel(team, c->count, observe_part, &j);
    for (int part = 0; part < team.threads; part++) {
        const seen *s = seen_of(&j, part);
        if (c->bin)
            pl_spread_join(c->bin, s->bin);
        else
            pl_extremes_join(c->extremes, &s->extremes);
    }
}
