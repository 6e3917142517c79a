/* Squeaky wheel optimisation (Joslin, Clements, JAIR 1999): buffers are placed by first fit, the larger size classes
 * first; those that ended above the target are moved to an earlier class, and all is placed again, for as long as that
 * helps. A pass costs what a greedy pass costs, and one in some ten finds a better placement, so this is what large
 * problems get, for which an exact search has no chance. Nothing in it is random. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    OCTAVE = 4,       /* classes from a size to its double */
    PATIENCE = 8,     /* passes without a better placement, then the next way to move */
    PASSES_MAX = 120, /* of one way */
};

typedef struct rank {
    int32_t class;
    uint32_t item; /* by birth: that is how the items are sorted */
} rank;

/* The higher class first, in it the earlier birth. */
static int compare_ranks(const void *left, const void *right)
{
    const rank *a = left, *b = right;
    if (a->class != b->class) return a->class > b->class ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

typedef struct wheel {
    const place_part *part;
    place_fitter *fitter;
    rank *ranks;     /* sorted by each pass */
    int32_t *class;  /* by item */
    uint32_t *order; /* of the pass */
} wheel;

static int32_t class_of(uint64_t size)
{
    int octave = 63 - __builtin_clzll(size);
    uint64_t rest = octave >= 2 ? size >> (octave - 2) & 3 : size << (2 - octave) & 3;
    return (int32_t)(octave * OCTAVE + (int)rest);
}

static uint64_t run_pass(wheel *w, place_run *run, uint64_t *offsets)
{
    uint32_t count = w->part->count;
    for (uint32_t i = 0; i < count; i++) w->ranks[i] = (rank){w->class[i], i};
    qsort(w->ranks, count, sizeof *w->ranks, compare_ranks);
    for (uint32_t i = 0; i < count; i++) w->order[i] = w->ranks[i].item;
    return place_fitter_run(w->fitter, run, w->order, false, PL_PLACE_NONE, offsets);
}

/* Whoever ended above the target goes up by `by` classes. */
static void move_up(wheel *w, const uint64_t *offsets, uint64_t target, int32_t by)
{
    for (uint32_t i = 0; i < w->part->count; i++)
        if (offsets[i] + w->part->items[i].size > target) w->class[i] += by;
}

static bool may_go_on(place_run *run, const place_best *best, uint64_t stop_at)
{
    return best->peak > best->target && run->work < stop_at && !place_run_spend(run, 1);
}

static void turn(wheel *w, place_run *run, place_best *best, uint64_t stop_at, int32_t by)
{
    for (uint32_t i = 0; i < w->part->count; i++) w->class[i] = class_of(w->part->items[i].size);
    for (int pass = 0, since = 0; pass < PASSES_MAX && since < PATIENCE && may_go_on(run, best, stop_at); pass++) {
        uint64_t peak = run_pass(w, run, best->trial);
        if (peak == PL_PLACE_NONE) return; /* out of time */
        move_up(w, best->trial, best->target, by);
        since = peak < best->peak ? 0 : since + 1;
        if (peak >= best->peak) continue;
        memcpy(best->offsets, best->trial, w->part->count * sizeof *best->offsets);
        best->peak = peak;
        best->heuristic = "squeaky wheel";
    }
}

pl_status place_squeaky(const place_part *part, place_run *run, place_best *best, uint64_t work_limit, pl_error *err)
{
    static const int32_t ways[] = {OCTAVE, 3, 1, 2 * OCTAVE, 2};
    wheel w = {.part = part, .fitter = place_fitter_create(part)};
    w.ranks = pl_alloc(part->count, sizeof *w.ranks);
    w.class = pl_alloc(part->count, sizeof *w.class);
    w.order = pl_alloc(part->count, sizeof *w.order);
    int refused = !w.fitter || !w.ranks || !w.class || !w.order;
    uint64_t stop_at = work_limit > UINT64_MAX - run->work ? UINT64_MAX : run->work + work_limit;
    for (size_t k = 0; k < sizeof ways / sizeof *ways && !refused && may_go_on(run, best, stop_at); k++)
        turn(&w, run, best, stop_at, ways[k]);
    place_fitter_destroy(w.fitter);
    pl_free(w.order);
    pl_free(w.class);
    pl_free(w.ranks);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}
