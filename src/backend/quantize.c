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

/* ---- differences ---- */

enum { PIECE = 4096 };

typedef struct difference_job {
    const pl_difference_call *call;
    double (*sums)[2]; /* of each piece */
} difference_job;

static int64_t count_pieces(const pl_difference_call *c) { return (c->count + PIECE - 1) / PIECE; }

uint64_t pl_difference_workspace_bytes(const pl_difference_call *c)
{
    return (uint64_t)count_pieces(c) * 2 * sizeof(double);
}

static void difference_part(const void *context, int part, int parts)
{
    const difference_job *j = context;
    const pl_difference_call *c = j->call;
    const pl_range own = pl_range_of_part(count_pieces(c), 1, part, parts);
    for (int64_t p = own.begin; p < own.end; p++) {
        const int64_t end = (p + 1) * PIECE < c->count ? (p + 1) * PIECE : c->count;
        double error = 0, all = 0;
        for (int64_t i = p * PIECE; i < end; i++) {
            const double x = c->x[i], d = x - (double)c->y[i];
            error += d * d;
            all += x * x;
        }
        j->sums[p][0] = error, j->sums[p][1] = all;
    }
}

void pl_difference_exec(const pl_difference_call *c, void *workspace, pl_team team)
{
    difference_job j = {c, workspace};
    pl_parallel(team, c->count, difference_part, &j);
    for (int64_t p = 0; p < count_pieces(c); p++) c->sums[0] += j.sums[p][0], c->sums[1] += j.sums[p][1];
}

/* ---- what takes the place of something else ---- */

static void overwrite_part(const void *context, int part, int parts)
{
    const pl_overwrite_call *c = context;
    const pl_range own = pl_range_of_part(c->count, 16, part, parts);
    memcpy(c->y + own.begin, c->z + own.begin, (size_t)(own.end - own.begin) * sizeof *c->y);
}

void pl_overwrite_exec(const pl_overwrite_call *c, pl_team team) { pl_parallel(team, c->count, overwrite_part, c); }

/* ---- products ---- */

void pl_linear_int8_exec(const pl_linear_int8_call *c, void *workspace, pl_team team)
{
    pl_int8_call product = c->product;
    const pl_quantization q = pl_quantization_of(c->range[0], c->range[1]);
    product.x_scale = q.scale, product.x_zero = q.zero;
    if (c->out_range) {
        const pl_quantization out = pl_quantization_of(c->out_range[0], c->out_range[1]);
        product.q_scale = out.scale, product.q_zero = out.zero;
    }
    pl_int8_exec(&product, workspace, team);
}
