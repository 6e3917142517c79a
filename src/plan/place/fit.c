/* Places items one after another in a given order, each into the lowest gap it fits (first fit) or the tightest (best
 * fit). What is placed is kept sorted by offset, in chunks: the search for a gap is a walk upwards in which, for each
 * entry alive together with the item, the gap below it is tried.
 *
 * A chunk knows two things about its entries that spare most walks. Their lives lie within a hull: an item outside of
 * it meets none of them. And all of them live during a core (where lives begin and end like a stack's, neighbours are
 * alike): an item that meets the core of a chunk meets all of it, and where no gap between entries is large enough it
 * passes at once. Both are exact: the offsets, and the steps that are booked, are those of the plain walk. */
#include "part.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum {
    CHUNK = 128,
    STEPS_PER_LOOK = 100000, /* at the clock */
};

typedef struct placed {
    uint64_t begin, end;
    uint32_t first, last;
} placed;

typedef struct chunk {
    uint32_t count;
    uint32_t first_min, first_max, last_min, last_max; /* hull [first_min, last_max), core [first_max, last_min) */
    uint64_t end, gap;                                 /* highest end; largest gap between two entries */
    placed entry[CHUNK];                               /* sorted by begin */
} chunk;

struct place_fitter {
    const place_part *part;
    chunk *chunks;
    uint32_t *order; /* of chunks, by offset */
    uint32_t chunk_count, placed_count;
    uint64_t steps;
};

place_fitter *place_fitter_create(const place_part *part)
{
    place_fitter *fitter = pl_alloc(1, sizeof *fitter);
    if (!fitter) return NULL;
    size_t room = part->count / (CHUNK / 2) + 2; /* a chunk that was split is half full */
    fitter->part = part;
    fitter->chunks = pl_alloc(room, sizeof *fitter->chunks);
    fitter->order = pl_alloc(room, sizeof *fitter->order);
    if (fitter->chunks && fitter->order) return fitter;
    place_fitter_destroy(fitter);
    return NULL;
}

void place_fitter_destroy(place_fitter *fitter)
{
    if (!fitter) return;
    pl_free(fitter->chunks);
    pl_free(fitter->order);
    pl_free(fitter);
}

/* ---- the search for a gap ---- */

typedef struct search {
    const place_item *item;
    bool best_fit;
    uint64_t floor; /* nothing fits below, but perhaps at `best` */
    uint64_t best, best_room;
} search;

/* Tries the gap below an entry that is alive together with the item; true ends the search. */
static bool try_below(search *s, const placed *p)
{
    if (p->begin < s->floor + s->item->size) return false;
    uint64_t room = p->begin - s->floor;
    if (room < s->best_room) s->best = s->floor, s->best_room = room;
    return !s->best_fit;
}

static void rise(search *s, uint64_t end)
{
    if (end > s->floor) s->floor = pl_align_up(end, s->item->alignment);
}

/* Walks a chunk; returns how many entries it has looked at, fewer than there are when the search has ended. */
static uint32_t walk(search *s, const chunk *c)
{
    const place_item *item = s->item;
    for (uint32_t i = 0; i < c->count; i++) {
        const placed *p = &c->entry[i];
        if (p->first >= item->last || item->first >= p->last) continue;
        if (try_below(s, p)) return i;
        rise(s, p->end);
    }
    return c->count;
}

static uint32_t pass(search *s, const chunk *c)
{
    const place_item *item = s->item;
    if (c->first_min >= item->last || item->first >= c->last_max) return c->count;
    bool meets_all = c->first_max < item->last && item->first < c->last_min;
    if (!meets_all || c->gap >= item->size) return walk(s, c);
    if (try_below(s, &c->entry[0])) return 0;
    rise(s, c->end);
    return c->count;
}

static uint64_t find_gap(place_fitter *fitter, const place_item *item, bool best_fit)
{
    search s = {.item = item, .best_fit = best_fit, .best = PL_PLACE_NONE, .best_room = PL_PLACE_NONE};
    for (uint32_t k = 0; k < fitter->chunk_count; k++) {
        const chunk *c = &fitter->chunks[fitter->order[k]];
        uint32_t looked = pass(&s, c);
        fitter->steps += looked;
        if (looked < c->count) break;
    }
    return s.best == PL_PLACE_NONE ? s.floor : s.best;
}

/* ---- what is placed ---- */

static void summarise(chunk *c)
{
    c->first_min = c->last_min = UINT32_MAX;
    c->first_max = c->last_max = 0;
    c->end = c->gap = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        const placed *p = &c->entry[i];
        if (i && p->begin > c->end && p->begin - c->end > c->gap) c->gap = p->begin - c->end;
        if (p->end > c->end) c->end = p->end;
        if (p->first < c->first_min) c->first_min = p->first;
        if (p->first > c->first_max) c->first_max = p->first;
        if (p->last < c->last_min) c->last_min = p->last;
        if (p->last > c->last_max) c->last_max = p->last;
    }
}

/* The place in the order of the first chunk with an entry at or above the offset, or of the last chunk. */
static uint32_t chunk_at(const place_fitter *fitter, uint64_t offset)
{
    uint32_t low = 0, high = fitter->chunk_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const chunk *c = &fitter->chunks[fitter->order[middle]];
        if (c->entry[c->count - 1].begin < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void split(place_fitter *fitter, uint32_t k)
{
    uint32_t fresh = fitter->chunk_count++;
    chunk *low = &fitter->chunks[fitter->order[k]], *high = &fitter->chunks[fresh];
    memmove(&fitter->order[k + 2], &fitter->order[k + 1], (fresh - k - 1) * sizeof *fitter->order);
    fitter->order[k + 1] = fresh;
    low->count = CHUNK / 2;
    high->count = CHUNK - CHUNK / 2;
    memcpy(high->entry, &low->entry[low->count], high->count * sizeof *high->entry);
    summarise(low);
    summarise(high);
}

static void insert(place_fitter *fitter, const place_item *item, uint64_t offset)
{
    if (fitter->chunk_count == 0) {
        fitter->order[fitter->chunk_count++] = 0;
        fitter->chunks[0].count = 0;
    }
    uint32_t k = chunk_at(fitter, offset), at = 0, below = 0;
    if (fitter->chunks[fitter->order[k]].count == CHUNK) {
        split(fitter, k);
        k = chunk_at(fitter, offset);
    }
    chunk *c = &fitter->chunks[fitter->order[k]];
    while (at < c->count && c->entry[at].begin < offset) at++;
    memmove(&c->entry[at + 1], &c->entry[at], (c->count++ - at) * sizeof *c->entry);
    c->entry[at] = (placed){offset, offset + item->size, item->first, item->last};
    summarise(c);
    for (uint32_t j = 0; j < k; j++) below += fitter->chunks[fitter->order[j]].count;
    fitter->steps += (fitter->placed_count++ - below - at) / 2; /* as if one array had been moved up */
}

/* Books the steps done; says whether to give up, which only the clock decides. */
static bool look_at_clock(place_fitter *fitter, place_run *run)
{
    if (fitter->steps < STEPS_PER_LOOK) return false;
    place_run_spend(run, fitter->steps);
    fitter->steps = 0;
    return run->out_of_time;
}

/* No time is left, but there must be an answer: the rest goes on top, one above the other. */
static uint64_t stack_up(const place_part *part, const uint32_t *order, uint32_t begin, uint64_t peak,
                         uint64_t *offsets)
{
    for (uint32_t k = begin; k < part->count; k++) {
        const place_item *item = &part->items[order[k]];
        if (item->fixed != PL_PLACE_NONE) continue;
        offsets[order[k]] = pl_align_up(peak, item->alignment);
        peak = offsets[order[k]] + item->size;
    }
    return peak;
}

uint64_t place_fitter_run(place_fitter *fitter, place_run *run, const uint32_t *order, bool best_fit, uint64_t ceiling,
                          uint64_t *offsets)
{
    const place_part *part = fitter->part;
    uint64_t peak = 0;
    fitter->placed_count = fitter->chunk_count = 0;
    fitter->steps = part->count;
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        if (item->fixed == PL_PLACE_NONE) continue;
        offsets[i] = item->fixed;
        if (item->fixed + item->size > peak) peak = item->fixed + item->size;
        insert(fitter, item, item->fixed);
    }
    for (uint32_t k = 0; k < part->count && peak < ceiling; k++) {
        const place_item *item = &part->items[order[k]];
        if (item->fixed != PL_PLACE_NONE) continue;
        if (look_at_clock(fitter, run))
            return ceiling == PL_PLACE_NONE ? stack_up(part, order, k, peak, offsets) : PL_PLACE_NONE;
        uint64_t offset = find_gap(fitter, item, best_fit);
        if (offset + item->size > peak) peak = offset + item->size;
        insert(fitter, item, offset);
        offsets[order[k]] = offset;
    }
    place_run_spend(run, fitter->steps);
    return peak < ceiling ? peak : PL_PLACE_NONE;
}
