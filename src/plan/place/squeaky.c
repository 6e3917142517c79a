/* Squeaky wheel optimisation (Joslin, Clements, JAIR 1999): buffers are placed in classes, the higher ones first, in a
 * class by birth; those that ended above the target are moved to a higher class, and all is placed again, for as long
 * as that helps. A pass costs what a greedy pass costs, and one in some ten finds a better placement, so this is what
 * large problems get, for which an exact search has no chance.
 *
 * Some turns begin with classes of size; they are all that most problems need. What follows goes on until the limits:
 * classes of any measure with either fit, then each with noise, every other turn from the start that has led lowest.
 * The noise is a hash of numbers: nothing hangs on the machine. */
#include "part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    OCTAVE = 4,       /* classes from a measure to its double */
    FINE_OCTAVE = 32, /* the same in later turns, which have time to tell more apart */
    PATIENCE = 8,     /* passes without a better placement, then the next turn */
    PASSES_MAX = 120, /* of one turn */
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

typedef enum measure { SIZE, CONFLICTS, DURATION, AREA } measure;

typedef struct start {
    measure by;
    bool best_fit;
    int octave;     /* classes from a measure to its double */
    int32_t way;    /* classes that one goes up */
    uint64_t noise; /* 0 = none, else its seed */
    uint32_t slot;  /* in place_best.least */
} start;

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static int32_t class_of(const place_part *part, uint32_t i, const start *s)
{
    const place_item *item = &part->items[i];
    double value = (double)item->size, duration = (double)(item->upper - item->lower);
    if (s->by == CONFLICTS) value = 1 + (double)part->degree[i];
    if (s->by == DURATION) value = duration;
    if (s->by == AREA) value *= duration;
    int octave;
    double rest = frexp(value, &octave); /* from a half to 1: exact, so the same on every machine */
    int32_t class = octave * s->octave + (int32_t)((rest - 0.5) * 2 * s->octave);
    if (s->noise) class += (int32_t)(mix(s->noise + i * UINT64_C(0x9e3779b97f4a7c15)) % (uint64_t)s->octave);
    return class;
}

static const int32_t ways[] = {OCTAVE, 3, 1, 2 * OCTAVE, 2};
enum { WAYS = sizeof ways / sizeof *ways, TURNS = WAYS + PLACE_WHEEL_STARTS /* where they have an end */ };

/* The starts that place_best.least tells apart. */
static const struct {
    measure by;
    bool best_fit;
} starts[PLACE_WHEEL_STARTS] = {
    {CONFLICTS, true}, {CONFLICTS, false}, {SIZE, true},     {SIZE, false},
    {AREA, true},      {AREA, false},      {DURATION, true}, {DURATION, false},
};

static start choose_start(const place_best *best)
{
    if (best->turns < WAYS) return (start){SIZE, false, OCTAVE, ways[best->turns], 0, 0};
    uint32_t turn = best->turns - WAYS, slot = turn % PLACE_WHEEL_STARTS;
    if (turn >= PLACE_WHEEL_STARTS && turn % 2) {
        slot = 0;
        for (uint32_t k = 1; k < PLACE_WHEEL_STARTS; k++)
            if (best->least[k] < best->least[slot]) slot = k;
    } else if (turn >= PLACE_WHEEL_STARTS) {
        slot = turn / 2 % PLACE_WHEEL_STARTS;
    }
    uint64_t random = turn < PLACE_WHEEL_STARTS ? 0 : mix(turn);
    int octave = random & 1 ? OCTAVE : FINE_OCTAVE;
    int32_t way = random ? 1 + (int32_t)(mix(random) % (uint64_t)(2 * octave)) : octave;
    return (start){starts[slot].by, starts[slot].best_fit, octave, way, random, slot};
}

static uint64_t run_pass(wheel *w, place_run *run, bool best_fit, uint64_t *offsets)
{
    uint32_t count = w->part->count;
    for (uint32_t i = 0; i < count; i++) w->ranks[i] = (rank){w->class[i], i};
    qsort(w->ranks, count, sizeof *w->ranks, compare_ranks);
    for (uint32_t i = 0; i < count; i++) w->order[i] = w->ranks[i].item;
    return place_fitter_run(w->fitter, run, w->order, best_fit, PLACE_NO_CEILING, offsets);
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

static void turn(wheel *w, place_run *run, place_best *best, uint64_t stop_at)
{
    start s = choose_start(best);
    best->turns++;
    for (uint32_t i = 0; i < w->part->count; i++) w->class[i] = class_of(w->part, i, &s);
    for (int pass = 0, since = 0; pass < PASSES_MAX && since < PATIENCE && may_go_on(run, best, stop_at); pass++) {
        uint64_t peak = run_pass(w, run, s.best_fit, best->trial);
        if (peak == PL_PLACE_NONE) return; /* a limit is passed */
        move_up(w, best->trial, best->target, s.way);
        since = peak < best->peak ? 0 : since + 1;
        if (peak < best->least[s.slot]) best->least[s.slot] = peak;
        if (peak >= best->peak) continue;
        memcpy(best->offsets, best->trial, w->part->count * sizeof *best->offsets);
        best->peak = peak;
        best->heuristic = "squeaky wheel";
    }
}

pl_status place_squeaky(const place_part *part, place_run *run, place_best *best, uint64_t work_limit, bool endless,
                        pl_error *err)
{
    wheel w = {.part = part, .fitter = place_fitter_create(part)};
    w.ranks = pl_alloc(part->count, sizeof *w.ranks);
    w.class = pl_alloc(part->count, sizeof *w.class);
    w.order = pl_alloc(part->count, sizeof *w.order);
    int refused = !w.fitter || !w.ranks || !w.class || !w.order;
    uint64_t stop_at = work_limit > UINT64_MAX - run->work ? UINT64_MAX : run->work + work_limit;
    while (!refused && (endless || best->turns < TURNS) && may_go_on(run, best, stop_at)) turn(&w, run, best, stop_at);
    place_fitter_destroy(w.fitter);
    pl_free(w.order);
    pl_free(w.class);
    pl_free(w.ranks);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}
