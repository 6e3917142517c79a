/* AdamW and Adam-atan2, averages of weights, the sum of squares of gradients, the factor that clips them. Elements are
 * shared out at multiples of a grain, so that the same elements go through the vector loop and its tail, and blocks of
 * 8-bit moments are not cut, whatever the team. */
#include <assert.h>
#include <math.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "base/block8.h"
#include "kernels/kernels.h"

enum { GRAIN_ELEMS = 1024 };
_Static_assert(GRAIN_ELEMS % PL_BLOCK8_ELEMS == 0, "blocks are not cut");

typedef struct adamw_work {
    const pl_adamw_call *call;
    const pl_kernels *kernels;
    pl_adamw_rates rates;
    pl_adamw_random random;
} adamw_work;

/* A step that overflowed left the moments as they were: their correction does not count it. */
static int64_t skipped_before(const pl_adamw_call *c) { return c->skipped_steps ? *c->skipped_steps : 0; }

/* What is the same for every element, in double: the powers lose their digits in f32 (1 − 0.999 at step 1). */
static pl_adamw_rates rates_of(const pl_adamw_call *c)
{
    /* The first step is 1, whatever else a plan's text makes of the count of those that were skipped. */
    double t = fmax((double)(*c->step - skipped_before(c)), 1), lr = *c->lr;
    double correction1 = 1 - pow(c->beta1, t), correction2 = 1 - pow(c->beta2, t);
    return (pl_adamw_rates){.beta1 = c->beta1,
                            .rest1 = (float)(1 - (double)c->beta1),
                            .beta2 = c->beta2,
                            .rest2 = (float)(1 - (double)c->beta2),
                            .rate = (float)(c->angle ? lr : lr / correction1),
                            .root_scale = (float)((c->angle ? correction1 : 1) / sqrt(correction2)),
                            .eps = c->eps,
                            .decay = (float)(lr * c->weight_decay),
                            .grad_scale = c->grad_scale ? *c->grad_scale : 1,
                            .limit = c->limit > 0 ? c->limit : INFINITY,
                            .angle = c->angle};
}

static void adamw_part(const void *work, int part, int parts)
{
    const adamw_work *w = work;
    const pl_adamw_call *c = w->call;
    pl_range range = pl_range_of_part(c->count, GRAIN_ELEMS, part, parts);
    switch (c->state) {
    case PL_ADAMW_F32:
        w->kernels->adamw(range.begin, range.end, &w->rates, c->w, c->m, c->v, c->g);
        break;
    case PL_ADAMW_BF16:
        w->kernels->adamw_bf16(range.begin, range.end, &w->rates, &w->random, c->w, c->m, c->v, c->g);
        break;
    case PL_ADAMW_8BIT:
        w->kernels->adamw_8bit(range.begin, range.end, &w->rates, &w->random, c->w, c->m, c->v, c->g);
        break;
    }
}

void pl_adamw_exec(const pl_adamw_call *call, pl_team team)
{
    assert(call->count >= 0);
    adamw_work work = {.call = call,
                       .kernels = pl_kernels_get(team.isa),
                       .rates = rates_of(call),
                       .random = {pl_philox_init(call->seed, call->stream), (uint32_t)*call->step}};
    pl_parallel(team, call->count, adamw_part, &work);
}

/* ---- averages ---- */

typedef struct ema_work {
    const pl_ema_call *call;
    const pl_kernels *kernels;
} ema_work;

static void ema_part(const void *work, int part, int parts)
{
    const ema_work *w = work;
    const pl_ema_call *c = w->call;
    pl_range range = pl_range_of_part(c->count, GRAIN_ELEMS, part, parts);
    w->kernels->ema(range.begin, range.end, (float)(1 - (double)c->rate), c->average, c->w);
}

void pl_ema_exec(const pl_ema_call *call, pl_team team)
{
    ema_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->count, ema_part, &work);
}

/* ---- sum of squares: at most MAX_BLOCKS blocks, cut by the count alone, added in order ---- */

enum { MAX_BLOCKS = 256, MIN_BLOCK_ELEMS = 4096 };

typedef struct sum_work {
    const pl_sum_squares_call *call;
    const pl_kernels *kernels;
    int64_t block_elems, blocks;
    double *partial;
} sum_work;

static sum_work sum_layout(const pl_sum_squares_call *c)
{
    int64_t block = (c->count + MAX_BLOCKS - 1) / MAX_BLOCKS;
    block = (block + GRAIN_ELEMS - 1) / GRAIN_ELEMS * GRAIN_ELEMS;
    if (block < MIN_BLOCK_ELEMS) block = MIN_BLOCK_ELEMS;
    return (sum_work){c, NULL, block, (c->count + block - 1) / block, NULL};
}

uint64_t pl_sum_squares_workspace_bytes(const pl_sum_squares_call *c, pl_team team)
{
    (void)team;
    return (uint64_t)sum_layout(c).blocks * sizeof(double);
}

static void sum_part(const void *work, int part, int parts)
{
    const sum_work *w = work;
    pl_range blocks = pl_range_of_part(w->blocks, 1, part, parts);
    for (int64_t b = blocks.begin; b < blocks.end; b++) {
        int64_t end = (b + 1) * w->block_elems;
        w->partial[b] =
            w->kernels->sum_squares(b * w->block_elems, end < w->call->count ? end : w->call->count, w->call->x);
    }
}

void pl_sum_squares_exec(const pl_sum_squares_call *call, void *workspace, pl_team team)
{
    sum_work work = sum_layout(call);
    work.kernels = pl_kernels_get(team.isa);
    work.partial = workspace;
    pl_parallel(team, call->count, sum_part, &work);
    double sum = 0;
    for (int64_t b = 0; b < work.blocks; b++) sum += work.partial[b];
    *call->sum += sum;
}

void pl_clip_scale_exec(const pl_clip_scale_call *call, pl_team team)
{
    (void)team;
    double loss_scale = call->loss_scale ? *call->loss_scale : 1;
    double norm = sqrt(*call->sum) / loss_scale, scale = call->max_norm > 0 ? call->max_norm / (norm + 1e-6) : 1;
    *call->finite = isfinite(*call->sum) ? 1 : 0;
    if (!*call->finite && call->skipped_steps) ++*call->skipped_steps;
    /* 0: whoever forgets `finite` changes nothing */
    *call->scale = !*call->finite ? 0 : (float)((scale < 1 ? scale : 1) / loss_scale);
}

#define LOSS_SCALE_MAX 0x1p24f /* nothing that f16 can hold needs more */

void pl_loss_scale_exec(const pl_loss_scale_call *c, pl_team team)
{
    (void)team;
    if (*c->finite == 0) {
        *c->scale = *c->scale > 2 ? *c->scale / 2 : 1;
        *c->good_steps = 0;
    } else if (++*c->good_steps >= c->growth_steps) {
        *c->scale = *c->scale < LOSS_SCALE_MAX ? *c->scale * 2 : LOSS_SCALE_MAX;
        *c->good_steps = 0;
    }
}
