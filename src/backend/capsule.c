/* Capsules: sums over the tokens of a sample with weights from a softmax, tokens that are picked, and copies. Samples
 * or rows are shared out; every sum is one thread's, in one order, so the bits depend neither on the team nor on how
 * many samples a call has. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backend/parallel.h"
#include "backend/tokens.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { LINE_BYTES = 64 };

/* Where it is not wanted, it is nowhere. */
static void *at_or_null(pl_real type, const void *p, int64_t i) { return p ? pl_real_at(type, p, i) : NULL; }

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
    char *scratch;          /* of all threads */
    uint64_t scratch_bytes; /* of one */
} work;

static float *scratch_of(const work *w, int part)
{
    return (float *)(void *)(w->scratch + w->scratch_bytes * (uint64_t)part);
}

static uint64_t scratch_bytes(int64_t floats) { return pl_align_up((uint64_t)floats * sizeof(float), LINE_BYTES); }

/* ---- weighted sums ---- */

uint64_t pl_capsule_pool_workspace_bytes(const pl_capsule_pool_call *c, pl_team team)
{
    return c->a ? 0 : scratch_bytes(c->capsules * c->positions) * (uint64_t)team.threads;
}

static void pool_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_capsule_pool_call *c = w->call;
    int64_t weights = c->capsules * c->positions;
    pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++)
        w->kernels->capsule_pool(
            c->positions, c->channels, c->capsules, c->type, pl_real_at(c->type, c->t, b * c->positions * c->channels),
            pl_real_at(c->type, c->logits, b * weights), c->a ? c->a + b * weights : scratch_of(w, part),
            pl_real_at(c->type, c->y, b * c->capsules * c->channels));
}

void pl_capsule_pool_exec(const pl_capsule_pool_call *c, void *workspace, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa), workspace, scratch_bytes(c->capsules * c->positions)};
    pl_parallel(team, c->samples * c->positions * c->channels, pool_part, &w);
}

uint64_t pl_capsule_pool_bwd_workspace_bytes(const pl_capsule_pool_bwd_call *c, pl_team team)
{
    return scratch_bytes(2 * c->capsules * c->positions) * (uint64_t)team.threads;
}

static void pool_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_capsule_pool_bwd_call *c = w->call;
    int64_t weights = c->capsules * c->positions, tokens = c->positions * c->channels;
    pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++)
        w->kernels->capsule_pool_bwd(
            c->positions, c->channels, c->capsules, c->type, pl_real_at(c->type, c->dy, b * c->capsules * c->channels),
            pl_real_at(c->type, c->t, b * tokens), pl_real_at(c->type, c->logits, b * weights),
            c->da ? c->da + b * weights : NULL, at_or_null(c->type, c->partial, b * tokens), scratch_of(w, part),
            at_or_null(c->type, c->dt, b * tokens), at_or_null(c->type, c->dlogits, b * weights));
}

void pl_capsule_pool_bwd_exec(const pl_capsule_pool_bwd_call *c, void *workspace, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa), workspace, scratch_bytes(2 * c->capsules * c->positions)};
    pl_parallel(team, c->samples * c->positions * c->channels, pool_bwd_part, &w);
}

/* ---- what is picked ---- */

static void top_k_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_top_k_call *c = w->call;
    pl_range own = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t r = own.begin; r < own.end; r++)
        w->kernels->top_k(c->width, c->count, c->x + r * c->width, c->y + r * c->count);
}

void pl_top_k_exec(const pl_top_k_call *c, pl_team team)
{
    assert(c->count <= c->width);
    work w = {.call = c, .kernels = pl_kernels_get(team.isa)};
    pl_parallel(team, c->rows * c->width, top_k_part, &w);
}

static void gather_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_gather_rows_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * c->picks, 1, part, parts);
    for (int64_t j = own.begin; j < own.end; j++) {
        int64_t row = j / c->picks * c->positions + c->index[j];
        memcpy((char *)c->y + j * c->row_bytes, (const char *)c->t + row * c->row_bytes, (size_t)c->row_bytes);
    }
}

void pl_gather_rows_exec(const pl_gather_rows_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->samples * c->picks * c->row_bytes / 4, gather_part, &w);
}

static void gather_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_gather_rows_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * c->positions, 1, part, parts);
    for (int64_t r = own.begin, rows; r < own.end; r += rows) {
        int64_t b = r / c->positions, begin = r % c->positions, left = c->positions - begin;
        rows = left < own.end - r ? left : own.end - r;
        w->kernels->gather_rows_bwd(begin, begin + rows, c->picks, c->width, c->type,
                                    pl_real_at(c->type, c->dy, b * c->picks * c->width), c->index + b * c->picks,
                                    at_or_null(c->type, c->partial, r * c->width),
                                    pl_real_at(c->type, c->dt, r * c->width));
    }
}

void pl_gather_rows_bwd_exec(const pl_gather_rows_bwd_call *c, pl_team team)
{
    work w = {.call = c, .kernels = pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->positions * c->width, gather_bwd_part, &w);
}

/* ---- copies ---- */

static void repeat_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_repeat_call *c = w->call;
    pl_range own = pl_range_of_part(c->rows * c->count, 1, part, parts);
    for (int64_t i = own.begin; i < own.end; i++)
        memcpy((char *)c->y + i * c->row_bytes, (const char *)c->x + i / c->count * c->row_bytes, (size_t)c->row_bytes);
}

void pl_repeat_exec(const pl_repeat_call *c, pl_team team)
{
    work w = {.call = c};
    pl_parallel(team, c->rows * c->count * c->row_bytes / 4, repeat_part, &w);
}

static void repeat_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_repeat_bwd_call *c = w->call;
    pl_range own = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t r = own.begin; r < own.end; r++)
        w->kernels->sum_rows(c->count, c->width, c->type, pl_real_at(c->type, c->dy, r * c->count * c->width),
                             pl_real_at(c->type, c->dx, r * c->width));
}

void pl_repeat_bwd_exec(const pl_repeat_bwd_call *c, pl_team team)
{
    work w = {.call = c, .kernels = pl_kernels_get(team.isa)};
    pl_parallel(team, c->rows * c->count * c->width, repeat_bwd_part, &w);
}
