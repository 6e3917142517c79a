/* What a batch carries from step to step. Rows are copied as bytes, by the threads that share them out; counts and one
 * number are one thread's. */
#include "backend/carry.h"

#include <stdbool.h>
#include <string.h>

#include "backend/parallel.h"
#include "base/philox.h"

/* Before a run begins, inputs hold anything, and every call is made once all the same. */
static int64_t first_place(const int64_t *first_sample, int64_t places)
{
    const int64_t place = *first_sample % places;
    return place < 0 ? place + places : place;
}

static void keep_below(const pl_carry_call *c, int32_t *id)
{
    for (int64_t i = 0; i < c->row_bytes / (int64_t)sizeof *id; i++)
        if (id[i] < -1 || id[i] >= c->below) id[i] = -1;
}

static void read_part(const void *context, int part, int parts)
{
    const pl_carry_call *c = context;
    const int64_t first = first_place(c->first_sample, c->places);
    const pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end; b++) {
        const bool taken = first + b < c->places && c->done[first + b] > 0;
        const char *from = taken ? c->state + (first + b) * c->row_bytes : (const char *)c->x + b * c->row_bytes;
        char *to = (char *)c->y + b * c->row_bytes;
        if (to != from) memcpy(to, from, (size_t)c->row_bytes);
        if (c->below > 0) keep_below(c, (int32_t *)(void *)to);
    }
}

void pl_carry_read_exec(const pl_carry_call *c, pl_team team)
{
    pl_parallel(team, c->samples * c->row_bytes / (int64_t)sizeof(float), read_part, c);
}

static void write_part(const void *context, int part, int parts)
{
    const pl_carry_call *c = context;
    const int64_t first = first_place(c->first_sample, c->places);
    const pl_range own = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t b = own.begin; b < own.end && first + b < c->places; b++)
        memcpy(c->state + (first + b) * c->row_bytes, (const char *)c->x + b * c->row_bytes, (size_t)c->row_bytes);
}

void pl_carry_write_exec(const pl_carry_call *c, pl_team team)
{
    pl_parallel(team, c->samples * c->row_bytes / (int64_t)sizeof(float), write_part, c);
}

/* ---- halting ---- */

/* The least number of steps of a sample: mostly none. */
static int64_t least_steps(const pl_halt_call *c, const pl_philox *philox, int64_t b)
{
    uint32_t bits[4];
    pl_philox_block(philox, (uint32_t)*c->step, (uint64_t)(*c->first_sample + b), 0, bits);
    if (!(pl_uniform_f32(bits[0]) < c->exploration) || c->limit < 2) return 0;
    return 2 + (int64_t)((double)pl_uniform_f32(bits[1]) * (double)(c->limit - 1));
}

void pl_halt_exec(const pl_halt_call *c, pl_team team)
{
    const pl_philox philox = pl_philox_init(c->seed, c->stream);
    const int64_t first = first_place(c->first_sample, c->places);
    (void)team;
    for (int64_t b = 0; b < c->samples && first + b < c->places; b++) {
        int32_t *done = &c->done[first + b];
        const int64_t steps = (int64_t)*done + 1;
        const bool may_end = pl_real_get(c->type, c->q, b) > 0 && steps >= least_steps(c, &philox, b);
        *done = steps >= c->limit || may_end ? 0 : (int32_t)steps;
    }
}

void pl_ramp_exec(const pl_ramp_call *c, pl_team team)
{
    const int64_t step = *c->step < c->last ? *c->step : c->last;
    const double way = (double)(step - c->second) / (double)(c->last - c->second);
    (void)team;
    *c->y = (float)(step <= c->first ? c->high : step <= c->second ? 0 : c->high * (1 - 2 * way));
}
