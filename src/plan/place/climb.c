/* Hill climbing on the order of the best greedy pass (as in Apache TVM's unified static memory planner): take a buffer
 * that touches the peak, move it in front of one that it conflicts with, place everything again by first fit, keep the
 * order unless it is worse. Its random numbers are fixed: the same problem gives the same climb. */
#include "part.h"

#include <string.h>

#include "base/alloc.h"

static uint64_t next_random(uint64_t *state) /* splitmix64 (Steele, Lea, Flood 2014) */
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

typedef struct climber {
    const place_part *part;
    uint32_t *order, *trial; /* trial: order with one buffer moved */
    uint32_t *place;         /* index in order, by item */
    uint32_t *high;          /* scratch: items at the peak */
    uint64_t *offsets;       /* of order */
    uint64_t peak, random;
} climber;

/* A random item among those in the top eighth of the arena; a peak of a few units has no eighth, so at least one. */
static uint32_t pick_high(climber *c)
{
    uint64_t line = c->peak - (c->peak / 8 ? c->peak / 8 : 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->part->count; i++)
        if (c->offsets[i] + c->part->items[i].size > line) c->high[count++] = i;
    return c->high[next_random(&c->random) % count];
}

/* trial = order with the item at `from` moved to `to` ≤ from. */
static void move_up(climber *c, uint32_t from, uint32_t to)
{
    memcpy(c->trial, c->order, c->part->count * sizeof *c->trial);
    uint32_t item = c->trial[from];
    memmove(&c->trial[to + 1], &c->trial[to], (from - to) * sizeof *c->trial);
    c->trial[to] = item;
}

static void adopt(climber *c, const uint64_t *offsets, uint64_t peak)
{
    memcpy(c->order, c->trial, c->part->count * sizeof *c->order);
    memcpy(c->offsets, offsets, c->part->count * sizeof *c->offsets);
    for (uint32_t i = 0; i < c->part->count; i++) c->place[c->order[i]] = i;
    c->peak = peak;
}

static void climb(climber *c, place_fitter *fitter, place_run *run, place_best *best, uint64_t stop_at)
{
    uint32_t count;
    memcpy(c->trial, best->order, c->part->count * sizeof *c->trial);
    uint64_t peak = place_fitter_run(fitter, run, c->trial, false, PL_PLACE_NONE, best->trial);
    adopt(c, best->trial, peak);
    while (best->peak > best->target && run->work < stop_at && !place_run_spend(run, 2 * c->part->count)) {
        uint32_t item = pick_high(c);
        const uint32_t *row = place_part_conflicts(c->part, item, &count);
        if (!count) continue;
        uint32_t other = row[next_random(&c->random) % count];
        uint32_t a = c->place[item], b = c->place[other];
        move_up(c, a > b ? a : b, a > b ? b : a);
        peak = place_fitter_run(fitter, run, c->trial, false, c->peak + 1, best->trial);
        if (peak == PL_PLACE_NONE) continue;
        adopt(c, best->trial, peak);
        if (peak >= best->peak) continue;
        memcpy(best->offsets, best->trial, c->part->count * sizeof *best->offsets);
        best->peak = peak;
        best->heuristic = "hill climbing";
    }
}

pl_status place_climb(place_part *part, place_run *run, place_best *best, uint64_t work_limit, pl_error *err)
{
    PL_TRY(place_part_link(part, err));
    climber c = {.part = part};
    c.order = pl_alloc(part->count, sizeof *c.order);
    c.trial = pl_alloc(part->count, sizeof *c.trial);
    c.place = pl_alloc(part->count, sizeof *c.place);
    c.high = pl_alloc(part->count, sizeof *c.high);
    c.offsets = pl_alloc(part->count, sizeof *c.offsets);
    place_fitter *fitter = place_fitter_create(part);
    int refused = !c.order || !c.trial || !c.place || !c.high || !c.offsets || !fitter;
    uint64_t stop_at = work_limit > UINT64_MAX - run->work ? UINT64_MAX : run->work + work_limit;
    if (!refused) climb(&c, fitter, run, best, stop_at);
    place_fitter_destroy(fitter);
    pl_free(c.offsets);
    pl_free(c.high);
    pl_free(c.place);
    pl_free(c.trial);
    pl_free(c.order);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}
