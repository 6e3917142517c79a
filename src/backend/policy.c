/* What a policy draws and tries. Samples and pages are shared out; each number is a function of its place alone. */
#include "backend/policy.h"

#include <math.h>
#include <string.h>

#include "backend/parallel.h"
#include "base/philox.h"

/* ---- perturb ---- */

/* In double: every level has the same bits. u is never 0 nor 1. */
static float gumbel(uint32_t bits) { return (float)-log(-log(((double)(bits >> 8) + 0.5) * 0x1p-24)); }

static void draw_gumbel(const pl_philox *random, uint32_t step, uint64_t sample, int64_t count, float *y)
{
    uint32_t bits[4];
    for (int64_t e = 0; e < count; e++) {
        if (e % 4 == 0) pl_philox_block(random, step, sample, (uint32_t)(e / 4), bits);
        y[e] = gumbel(bits[e % 4]);
    }
}

static void perturb_part(const void *context, int part, int parts)
{
    const pl_perturb_call *c = context;
    const pl_philox random = pl_philox_init(c->seed, c->stream);
    const pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    const int64_t all = c->count * c->width;
    for (int64_t b = own.begin; b < own.end; b++) {
        const uint64_t sample = (uint64_t)(*c->first_sample + b);
        const float *x = c->x + b * c->width;
        float *y = c->y + b * all;
        if (c->kind == PL_PERTURB_GUMBEL)
            draw_gumbel(&random, (uint32_t)*c->step, sample, all, y);
        else
            pl_philox_normal_f32(&random, (uint32_t)*c->step, sample, 0, (uint64_t)all, y);
        for (int64_t e = 0; e < all; e++) y[e] = (float)((double)x[e % c->width] + c->scale * (double)y[e]);
    }
}

void pl_perturb_exec(const pl_perturb_call *c, pl_team team)
{
    enum { WORK = 64 }; /* of a number, beside that of one that is copied */
    pl_parallel(team, c->samples * c->count * c->width * WORK, perturb_part, c);
}

/* ---- shift ---- */

enum { PAPER = 255 };

static int64_t shift_of(const pl_shift_call *c, int32_t choice)
{
    return (choice < 0 ? 0 : choice > 2 * c->reach ? 2 * c->reach : choice) - c->reach;
}

/* A row of width numbers, `by` to the right. */
static void shift_row(const uint8_t *x, int64_t width, int64_t by, uint8_t *y)
{
    const int64_t away = by < 0 ? -by : by, kept = away < width ? width - away : 0;
    memset(y, PAPER, (size_t)width);
    memcpy(y + (by > 0 ? width - kept : 0), x + (by < 0 ? width - kept : 0), (size_t)kept);
}

static void shift_part(const void *context, int part, int parts)
{
    const pl_shift_call *c = context;
    const pl_range own = pl_range_of_part(c->pages * c->height, 1, part, parts);
    for (int64_t i = own.begin; i < own.end; i++) {
        const int64_t page = i / c->height, from = i % c->height - shift_of(c, c->down[page]);
        uint8_t *y = c->y + i * c->width;
        if (from < 0 || from >= c->height)
            memset(y, PAPER, (size_t)c->width);
        else
            shift_row(c->x + (page * c->height + from) * c->width, c->width, shift_of(c, c->across[page]), y);
    }
}

void pl_shift_exec(const pl_shift_call *c, pl_team team)
{
    pl_parallel(team, c->pages * c->height * c->width / (int64_t)sizeof(float), shift_part, c);
}
