/* The greedy passes. The orders (Pisarchyk & Lee 2020 found size the best single one for neural networks; size classes
 * by birth are the lanes of Buchsbaum et al. 2003) each with first and best fit. Then the fullest moment first: what is
 * alive there is stacked without a gap, the last to die lowest, so that from there on free room is always on top (and
 * before it, where lives are nested as in training); the others in one of the orders. And the skyline: always place
 * the buffer that can lie lowest, as the exact search does on its first way down. Each pass is given up as soon as it
 * cannot beat the best one; all end when the target is met. */
#include "part.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum {
    SKYLINE_ITEMS_MAX = 5000, /* beyond it the wheel finds more in the time */
    BEST_FIT_MAX = 8000,      /* beyond it best fit, which costs twice as much as first fit, comes after all else */
    STEPS_PER_LOOK = 100000,  /* at the clock */
};

typedef struct key {
    double major, minor;
    uint32_t item;
} key;

static int compare_keys(const void *left, const void *right) /* largest first, then by item: never equal */
{
    const key *a = left, *b = right;
    if (a->major != b->major) return a->major > b->major ? -1 : 1;
    if (a->minor != b->minor) return a->minor > b->minor ? -1 : 1;
    return a->item < b->item ? -1 : 1;
}

typedef enum measure { SIZE, CLASS, FINE, COARSE, AREA, DURATION, BIRTH, CONFLICTS, MEASURES, DEATH } measure;

static const char *const fit_names[MEASURES][2] = {
    [SIZE] = {"size, first fit", "size, best fit"},
    [CLASS] = {"size class, first fit", "size class, best fit"},
    [FINE] = {"fine size class, first fit", "fine size class, best fit"},
    [COARSE] = {"coarse size class, first fit", "coarse size class, best fit"},
    [AREA] = {"area, first fit", "area, best fit"},
    [DURATION] = {"duration, first fit", "duration, best fit"},
    [BIRTH] = {"birth, first fit", "birth, best fit"},
    [CONFLICTS] = {"conflicts, first fit", "conflicts, best fit"},
};

static const char *const moment_names[MEASURES][2] = {
    [SIZE] = {"fullest moment, size, first fit", "fullest moment, size, best fit"},
    [CLASS] = {"fullest moment, size class, first fit", "fullest moment, size class, best fit"},
    [AREA] = {"fullest moment, area, first fit", "fullest moment, area, best fit"},
};

/* So many classes to each doubling of the size, of equal width. */
static double size_class(uint64_t size, uint64_t parts)
{
    unsigned octave = 63 - (unsigned)__builtin_clzll(size);
    uint64_t above = size - (UINT64_C(1) << octave), width = (UINT64_C(1) << octave) / parts;
    return (double)(octave * parts + (width ? above / width : 0));
}

static double measure_item(const place_part *part, uint32_t i, measure by)
{
    const place_item *item = &part->items[i];
    double duration = (double)(item->upper - item->lower), size = (double)item->size;
    switch (by) {
    case SIZE:
        return size;
    case CLASS:
        return 64 - __builtin_clzll(item->size);
    case FINE:
        return size_class(item->size, 2);
    case COARSE:
        return (64 - __builtin_clzll(item->size)) / 3;
    case AREA:
        return size * duration;
    case DURATION:
        return duration;
    case BIRTH:
        return -(double)i; /* items are sorted by birth */
    case CONFLICTS:
        return (double)part->degree[i];
    case DEATH:
        return (double)item->upper;
    case MEASURES:
        break;
    }
    return 0;
}

static void sort_items(const place_part *part, key *keys, measure by, measure then, uint32_t *order)
{
    for (uint32_t i = 0; i < part->count; i++)
        keys[i] = (key){measure_item(part, i, by), measure_item(part, i, then), i};
    qsort(keys, part->count, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < part->count; i++) order[i] = keys[i].item;
}

/* Those alive at the fullest moment come first, the last to die before the others. */
static void sort_by_moment(const place_part *part, key *keys, measure by, uint32_t *order)
{
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        bool alive = item->lower <= part->bound_time && part->bound_time < item->upper;
        keys[i] = alive ? (key){DBL_MAX, (double)item->upper, i}
                        : (key){measure_item(part, i, by), measure_item(part, i, by == SIZE ? DURATION : BIRTH), i};
    }
    qsort(keys, part->count, sizeof *keys, compare_keys);
    for (uint32_t i = 0; i < part->count; i++) order[i] = keys[i].item;
}

static void keep_if_better(const place_part *part, place_best *best, uint64_t peak, const char *name)
{
    if (peak >= best->peak) return;
    memcpy(best->offsets, best->trial, part->count * sizeof *best->offsets);
    best->peak = peak;
    best->heuristic = name;
}

/* --- skyline: a binary heap of (lowest possible offset, rank), updated lazily --- */

typedef struct entry {
    uint64_t at;
    uint32_t rank;
} entry;

typedef struct heap {
    entry *entries;
    size_t count, capacity;
} heap;

static bool before(entry a, entry b) { return a.at != b.at ? a.at < b.at : a.rank < b.rank; }

static int heap_push(heap *h, entry e)
{
    if (pl_grow(&h->entries, &h->capacity, h->count, sizeof *h->entries)) return -1;
    size_t at = h->count++;
    for (; at && before(e, h->entries[(at - 1) / 2]); at = (at - 1) / 2) h->entries[at] = h->entries[(at - 1) / 2];
    h->entries[at] = e;
    return 0;
}

static entry heap_pop(heap *h)
{
    entry top = h->entries[0], last = h->entries[--h->count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && before(h->entries[child + 1], h->entries[child])) child++;
        if (!before(h->entries[child], last)) break;
        h->entries[at] = h->entries[child];
    }
    h->entries[at] = last;
    return top;
}

typedef struct skyline {
    const place_part *part;
    const uint32_t *order; /* by rank */
    uint64_t *low;         /* lowest offset possible now, by item */
    bool *done;
    heap heap;
} skyline;

/* Moves an item up from at least `from`, past the fixed ones in its way. */
static uint64_t above_fixed(const place_part *part, const uint32_t *fixed, uint32_t fixed_count, uint32_t i,
                            uint64_t from)
{
    const place_item *item = &part->items[i];
    uint64_t at = pl_align_up(from, item->alignment);
    for (uint32_t k = 0; k < fixed_count; k++) { /* sorted by offset */
        const place_item *f = &part->items[fixed[k]];
        if (f->first >= item->last || item->first >= f->last) continue;
        if (f->fixed < at + item->size && at < f->fixed + f->size)
            at = pl_align_up(f->fixed + f->size, item->alignment);
    }
    return at;
}

/* Puts all items into the heap; returns the highest end of the fixed ones. */
static uint64_t skyline_fill(skyline *s, const uint32_t *fixed, uint32_t fixed_count, uint64_t *offsets, int *refused)
{
    const place_part *part = s->part;
    uint64_t peak = 0;
    s->heap.count = 0;
    for (uint32_t r = 0; r < part->count && !*refused; r++) {
        uint32_t i = s->order[r];
        const place_item *item = &part->items[i];
        s->done[i] = item->fixed != PL_PLACE_NONE;
        s->low[i] = s->done[i] ? item->fixed : above_fixed(part, fixed, fixed_count, i, 0);
        if (!s->done[i]) {
            *refused = heap_push(&s->heap, (entry){s->low[i], r});
            continue;
        }
        offsets[i] = item->fixed;
        if (item->fixed + item->size > peak) peak = item->fixed + item->size;
    }
    return peak;
}

static uint64_t skyline_run(skyline *s, place_run *run, const uint32_t *fixed, uint32_t fixed_count, uint64_t ceiling,
                            uint64_t *offsets, int *refused)
{
    const place_part *part = s->part;
    uint64_t peak = skyline_fill(s, fixed, fixed_count, offsets, refused), steps = part->count;
    while (s->heap.count && peak < ceiling && !*refused) {
        entry e = heap_pop(&s->heap);
        uint32_t i = s->order[e.rank], count;
        if (s->done[i]) continue;
        if (s->low[i] > e.at) { /* raised since it was put in */
            *refused = heap_push(&s->heap, (entry){s->low[i], e.rank});
            continue;
        }
        s->done[i] = true;
        offsets[i] = e.at;
        uint64_t top = e.at + part->items[i].size;
        if (top > peak) peak = top;
        const uint32_t *row = place_part_conflicts(part, i, &count);
        for (uint32_t k = 0; k < count; k++) {
            if (s->done[row[k]] || s->low[row[k]] >= top) continue;
            s->low[row[k]] = above_fixed(part, fixed, fixed_count, row[k], top);
            steps += fixed_count;
        }
        steps += count + 16 + (part->row ? 0 : i); /* without lists all before it were looked at */
        if (steps < STEPS_PER_LOOK) continue;
        place_run_spend(run, steps);
        steps = 0;
        if (run->out_of_time) return PL_PLACE_NONE;
    }
    place_run_spend(run, steps);
    return peak < ceiling ? peak : PL_PLACE_NONE;
}

static uint32_t list_fixed(const place_part *part, uint32_t *fixed)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        if (part->items[i].fixed == PL_PLACE_NONE) continue;
        uint32_t at = count++;
        for (; at && part->items[fixed[at - 1]].fixed > part->items[i].fixed; at--) fixed[at] = fixed[at - 1];
        fixed[at] = i;
    }
    return count;
}

static pl_status run_skylines(place_part *part, place_run *run, place_best *best, key *keys, uint32_t *order,
                              pl_error *err)
{
    static const struct {
        measure by, then;
        const char *name;
    } kinds[] = {{DURATION, AREA, "skyline by duration"},
                 {AREA, DURATION, "skyline by area"},
                 {SIZE, DURATION, "skyline by size"}};
    int refused = 0;
    if (best->peak <= best->target || place_run_spend(run, 0)) return PL_OK;
    PL_TRY(place_part_link(part, err));
    skyline s = {.part = part, .order = order};
    uint32_t *fixed = pl_alloc(part->count, sizeof *fixed);
    s.low = pl_alloc(part->count, sizeof *s.low);
    s.done = pl_alloc(part->count, sizeof *s.done);
    refused = !fixed || !s.low || !s.done;
    uint32_t fixed_count = refused ? 0 : list_fixed(part, fixed);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !refused; k++) {
        if (best->peak <= best->target || place_run_spend(run, 0)) break;
        sort_items(part, keys, kinds[k].by, kinds[k].then, order);
        uint64_t peak = skyline_run(&s, run, fixed, fixed_count, best->peak, best->trial, &refused);
        if (!refused) keep_if_better(part, best, peak, kinds[k].name);
    }
    pl_free(s.heap.entries);
    pl_free(s.done);
    pl_free(s.low);
    pl_free(fixed);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}

/* What the passes share. */
typedef struct passes {
    const place_part *part;
    place_run *run;
    place_best *best;
    place_fitter *fitter;
    key *keys;
    uint32_t *order;
} passes;

/* False: the target is met, or a limit passed. */
static bool run_fit(passes *p, bool best_fit, const char *name)
{
    const pl_place_options *o = p->run->options;
    if (!(best_fit ? o->best_fit : o->first_fit)) return true;
    if (p->best->peak != PL_PLACE_NONE && (p->best->peak <= p->best->target || place_run_spend(p->run, 0)))
        return false;
    uint64_t peak = place_fitter_run(p->fitter, p->run, p->order, best_fit, p->best->peak, p->best->trial);
    keep_if_better(p->part, p->best, peak, name);
    return true;
}

static bool run_orders(passes *p, bool first_fit, bool best_fit)
{
    const pl_place_options *o = p->run->options;
    const bool wanted[MEASURES] = {o->by_size, o->by_class,    o->by_class, o->by_class,
                                   o->by_area, o->by_duration, o->by_birth, o->by_conflicts};
    for (measure by = SIZE; by < MEASURES; by++) {
        if (!wanted[by]) continue;
        sort_items(p->part, p->keys, by,
                   by == SIZE                    ? DURATION
                   : by == FINE                  ? DEATH
                   : by == CLASS || by == COARSE ? BIRTH
                                                 : SIZE,
                   p->order);
        if (first_fit && !run_fit(p, false, fit_names[by][0])) return false;
        if (best_fit && !run_fit(p, true, fit_names[by][1])) return false;
    }
    return true;
}

static bool run_moments(passes *p, bool first_fit, bool best_fit)
{
    static const measure rest[] = {SIZE, CLASS, AREA};
    for (size_t k = 0; k < sizeof rest / sizeof *rest && p->run->options->by_moment; k++) {
        sort_by_moment(p->part, p->keys, rest[k], p->order);
        if (first_fit && !run_fit(p, false, moment_names[rest[k]][0])) return false;
        if (best_fit && !run_fit(p, true, moment_names[rest[k]][1])) return false;
    }
    return true;
}

static void run_fits(passes *p)
{
    bool best_fit_too = p->part->count <= BEST_FIT_MAX;
    bool go_on = run_orders(p, true, best_fit_too) && run_moments(p, true, best_fit_too);
    if (go_on && !best_fit_too && run_orders(p, false, true)) run_moments(p, false, true);
}

/* With every pass switched off there is still an answer: by birth, first fit. */
static void run_fallback(const place_part *part, place_run *run, place_best *best, place_fitter *fitter,
                         uint32_t *order)
{
    for (uint32_t i = 0; i < part->count; i++) order[i] = i;
    uint64_t peak = place_fitter_run(fitter, run, order, false, PL_PLACE_NONE, best->trial);
    keep_if_better(part, best, peak, fit_names[BIRTH][0]);
}

pl_status place_greedy(place_part *part, place_run *run, place_best *best, pl_error *err)
{
    pl_status status = PL_OK;
    key *keys = pl_alloc(part->count, sizeof *keys);
    uint32_t *order = pl_alloc(part->count, sizeof *order);
    place_fitter *fitter = place_fitter_create(part);
    if (!keys || !order || !fitter) {
        status = pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count);
    } else {
        run_fits(&(passes){part, run, best, fitter, keys, order});
        if (best->peak == PL_PLACE_NONE) run_fallback(part, run, best, fitter, order);
        if (run->options->skyline && part->count <= SKYLINE_ITEMS_MAX)
            status = run_skylines(part, run, best, keys, order, err);
    }
    place_fitter_destroy(fitter);
    pl_free(order);
    pl_free(keys);
    return status;
}
