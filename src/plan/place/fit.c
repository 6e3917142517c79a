/* Places items one after another in a given order, each into the lowest gap it fits (first fit) or the tightest (best
 * fit). What is placed is kept sorted by offset, in chunks: the search for a gap is a walk upwards in which, for each
 * entry alive together with the item, the gap below it is tried.
 *
 * A chunk knows two things about its entries that spare most walks. Their lives lie within a hull: an item outside of
 * it meets none of them. And all of them live during a core (where lives begin and end like a stack's, neighbours are
 * alike): an item that meets the core of a chunk meets all of it, and where no gap between entries is large enough it
 * passes at once. Both are exact: the offsets are those of the plain walk.
 *
 * Of many items most are far away in time. The time line is then cut into windows as wide as a mean life, or wider
 * where that would be more windows than full chunks, and what is placed is listed in each window that it touches. An
 * item that touches several of them climbs in one until a gap is large enough, and from that floor in the next, until
 * all agree: exact as well. */
#include "part.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum {
    CHUNK = 128,
    STEPS_PER_LOOK = 100000,  /* at the limits */
    ONE_WINDOW_ITEMS = 10000, /* up to it windows save little */
    STEPS_PER_ENTRY = 2, /* where there are windows, what is booked is what is done, and much is not in the cache */
    STEPS_PER_CHUNK = 16,
    STEPS_PER_INSERT = 250,
    STEPS_PER_ITEM = 400, /* its place in the sorted order, and more */
};

typedef struct placed {
    uint64_t begin, end;
    uint32_t first, last;
} placed;

typedef struct chunk {
    uint32_t count;
    uint32_t first_min, first_max, last_min, last_max; /* hull [first_min, last_max), core [first_max, last_min) */
    uint64_t end, gap;                                 /* highest end; no gap between two entries is larger */
    placed entry[CHUNK];                               /* sorted by begin */
} chunk;

typedef struct window {
    uint32_t *order; /* of chunks, by offset */
    uint32_t chunk_count, placed_count;
} window;

typedef struct cursor {
    uint32_t chunk, entry;
} cursor;

struct place_fitter {
    const place_part *part;
    uint32_t width, window_count; /* sections of a window */
    window *windows;
    cursor *cursors; /* by window: scratch */
    chunk *chunks;
    uint32_t *orders; /* of all windows */
    uint32_t chunk_count;
    uint64_t steps;
};

static uint32_t window_of(const place_fitter *fitter, uint32_t section) { return section / fitter->width; }

/* Each window has chunks of its own: a hundred thousand windows with a few items in each would take hundreds of MiB. */
static void choose_width(place_fitter *fitter)
{
    const place_part *part = fitter->part;
    uint64_t spans = 0;
    for (uint32_t i = 0; i < part->count; i++) spans += part->items[i].last - part->items[i].first;
    fitter->width = part->section_count;
    if (part->count > ONE_WINDOW_ITEMS) {
        uint32_t mean_life = (uint32_t)(spans / part->count) + 1;
        uint32_t full_chunk = (uint32_t)((uint64_t)part->section_count * CHUNK / part->count);
        fitter->width = mean_life > full_chunk ? mean_life : full_chunk;
    }
    fitter->window_count = (part->section_count - 1) / fitter->width + 1;
}

/* Gives each window room for all that can touch it; a chunk that was split is half full. */
static bool divide_room(place_fitter *fitter)
{
    const place_part *part = fitter->part;
    fitter->windows = pl_alloc(fitter->window_count, sizeof *fitter->windows);
    fitter->cursors = pl_alloc(fitter->window_count, sizeof *fitter->cursors);
    if (!fitter->windows || !fitter->cursors) return false;
    for (uint32_t i = 0; i < part->count; i++)
        for (uint32_t w = window_of(fitter, part->items[i].first); w <= window_of(fitter, part->items[i].last - 1); w++)
            fitter->windows[w].placed_count++;
    size_t room = 0;
    for (uint32_t w = 0; w < fitter->window_count; w++) room += fitter->windows[w].placed_count / (CHUNK / 2) + 2;
    fitter->chunks = pl_alloc(room, sizeof *fitter->chunks);
    fitter->orders = pl_alloc(room, sizeof *fitter->orders);
    if (!fitter->chunks || !fitter->orders) return false;
    uint32_t *next = fitter->orders;
    for (uint32_t w = 0; w < fitter->window_count; w++) {
        fitter->windows[w].order = next;
        next += fitter->windows[w].placed_count / (CHUNK / 2) + 2;
    }
    return true;
}

place_fitter *place_fitter_create(const place_part *part)
{
    place_fitter *fitter = pl_alloc(1, sizeof *fitter);
    if (!fitter) return NULL;
    fitter->part = part;
    choose_width(fitter);
    if (divide_room(fitter)) return fitter;
    place_fitter_destroy(fitter);
    return NULL;
}

void place_fitter_destroy(place_fitter *fitter)
{
    if (!fitter) return;
    pl_free(fitter->windows);
    pl_free(fitter->cursors);
    pl_free(fitter->chunks);
    pl_free(fitter->orders);
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

static const chunk *chunk_of(const place_fitter *fitter, const window *w, uint32_t k)
{
    return &fitter->chunks[w->order[k]];
}

static uint64_t find_gap_in_one(place_fitter *fitter, const window *w, const place_item *item, bool best_fit)
{
    search s = {.item = item, .best_fit = best_fit, .best = PL_PLACE_NONE, .best_room = PL_PLACE_NONE};
    for (uint32_t k = 0; k < w->chunk_count; k++) {
        const chunk *c = chunk_of(fitter, w, k);
        uint32_t looked = pass(&s, c);
        fitter->steps += fitter->window_count > 1 ? STEPS_PER_ENTRY * looked : looked;
        if (looked < c->count) break;
    }
    return s.best == PL_PLACE_NONE ? s.floor : s.best;
}

/* Climbs from the cursor to the first entry with a gap below it that is large enough, above the floor, which rises on
 * the way; NULL: there is none. */
static const placed *climb(place_fitter *fitter, search *s, const window *w, cursor *at)
{
    const place_item *item = s->item;
    for (; at->chunk < w->chunk_count; at->chunk++, at->entry = 0) {
        const chunk *c = chunk_of(fitter, w, at->chunk);
        fitter->steps += STEPS_PER_CHUNK;
        if (c->end <= s->floor || c->first_min >= item->last || item->first >= c->last_max) continue;
        bool meets_all = c->first_max < item->last && item->first < c->last_min;
        if (at->entry == 0 && meets_all && c->gap < item->size) {
            if (c->entry[0].begin >= s->floor + item->size) return &c->entry[0];
            rise(s, c->end);
            continue;
        }
        uint32_t from = at->entry;
        for (; at->entry < c->count; at->entry++) {
            const placed *p = &c->entry[at->entry];
            if (p->end <= s->floor || p->first >= item->last || item->first >= p->last) continue;
            if (p->begin >= s->floor + item->size) break;
            rise(s, p->end);
        }
        fitter->steps += STEPS_PER_ENTRY * (at->entry - from);
        if (at->entry < c->count) return &c->entry[at->entry];
    }
    return NULL;
}

/* Climbs in all windows from `first` on in turn until none raises the floor; returns the lowest entry above the gap
 * there, or NULL. */
static const placed *agree(place_fitter *fitter, search *s, uint32_t first, uint32_t count)
{
    const placed *above = NULL;
    for (uint32_t agreed = 0, k = 0; agreed < count; k = k + 1 < count ? k + 1 : 0) {
        uint64_t floor = s->floor;
        const placed *p = climb(fitter, s, &fitter->windows[first + k], &fitter->cursors[first + k]);
        if (s->floor != floor || agreed == 0) above = NULL, agreed = 0;
        if (p && (!above || p->begin < above->begin)) above = p;
        agreed++;
    }
    return above;
}

static uint64_t find_gap(place_fitter *fitter, const place_item *item, bool best_fit)
{
    uint32_t first = window_of(fitter, item->first), count = window_of(fitter, item->last - 1) - first + 1;
    if (count == 1) return find_gap_in_one(fitter, &fitter->windows[first], item, best_fit);
    search s = {.item = item, .best = PL_PLACE_NONE, .best_room = PL_PLACE_NONE};
    memset(fitter->cursors + first, 0, count * sizeof *fitter->cursors);
    const placed *above;
    while ((above = agree(fitter, &s, first, count))) {
        if (!best_fit) return s.floor;
        uint64_t room = above->begin - s.floor;
        if (room < s.best_room) s.best = s.floor, s.best_room = room;
        rise(&s, above->end);
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

/* What an entry changes that was put in at this place. A gap that it lies in gets smaller, which is not looked into. */
static void add_to_summary(chunk *c, uint32_t at)
{
    const placed *p = &c->entry[at];
    uint64_t gap = 0;
    if (c->count == 1) {
        summarise(c);
        return;
    }
    if (at == 0 && c->entry[1].begin > p->end) gap = c->entry[1].begin - p->end;
    if (at + 1 == c->count && p->begin > c->end) gap = p->begin - c->end;
    if (gap > c->gap) c->gap = gap;
    if (p->end > c->end) c->end = p->end;
    if (p->first < c->first_min) c->first_min = p->first;
    if (p->first > c->first_max) c->first_max = p->first;
    if (p->last < c->last_min) c->last_min = p->last;
    if (p->last > c->last_max) c->last_max = p->last;
}

/* The place in the order of the first chunk with an entry at or above the offset, or of the last chunk. */
static uint32_t chunk_at(const place_fitter *fitter, const window *w, uint64_t offset)
{
    uint32_t low = 0, high = w->chunk_count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const chunk *c = chunk_of(fitter, w, middle);
        if (c->entry[c->count - 1].begin < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void split(place_fitter *fitter, window *w, uint32_t k)
{
    uint32_t fresh = fitter->chunk_count++;
    chunk *low = &fitter->chunks[w->order[k]], *high = &fitter->chunks[fresh];
    memmove(&w->order[k + 2], &w->order[k + 1], (w->chunk_count++ - k - 1) * sizeof *w->order);
    w->order[k + 1] = fresh;
    low->count = CHUNK / 2;
    high->count = CHUNK - CHUNK / 2;
    memcpy(high->entry, &low->entry[low->count], high->count * sizeof *high->entry);
    summarise(low);
    summarise(high);
}

static void insert_into(place_fitter *fitter, window *w, const place_item *item, uint64_t offset)
{
    if (w->chunk_count == 0) {
        w->order[w->chunk_count++] = fitter->chunk_count;
        fitter->chunks[fitter->chunk_count++].count = 0;
    }
    uint32_t k = chunk_at(fitter, w, offset), at = 0, below = 0;
    if (chunk_of(fitter, w, k)->count == CHUNK) {
        split(fitter, w, k);
        k = chunk_at(fitter, w, offset);
    }
    chunk *c = &fitter->chunks[w->order[k]];
    while (at < c->count && c->entry[at].begin < offset) at++;
    memmove(&c->entry[at + 1], &c->entry[at], (c->count++ - at) * sizeof *c->entry);
    c->entry[at] = (placed){offset, offset + item->size, item->first, item->last};
    add_to_summary(c, at);
    if (fitter->window_count > 1) {
        fitter->steps += STEPS_PER_INSERT;
        return;
    }
    for (uint32_t j = 0; j < k; j++) below += chunk_of(fitter, w, j)->count;
    fitter->steps += (w->placed_count++ - below - at) / 2; /* as if one array had been moved up */
}

static void insert(place_fitter *fitter, const place_item *item, uint64_t offset)
{
    for (uint32_t w = window_of(fitter, item->first); w <= window_of(fitter, item->last - 1); w++)
        insert_into(fitter, &fitter->windows[w], item, offset);
}

/* Books the steps done; says whether to give up. Where there must be an answer only the clock decides that. */
static bool look_at_limits(place_fitter *fitter, place_run *run, bool must_answer)
{
    if (fitter->steps < STEPS_PER_LOOK) return false;
    bool over = place_run_spend(run, fitter->steps);
    fitter->steps = 0;
    return must_answer ? run->out_of_time : over;
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
    fitter->chunk_count = 0;
    for (uint32_t w = 0; w < fitter->window_count; w++)
        fitter->windows[w].chunk_count = fitter->windows[w].placed_count = 0;
    fitter->steps = (uint64_t)part->count * (fitter->window_count > 1 ? STEPS_PER_ITEM : 1);
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
        if (look_at_limits(fitter, run, ceiling == PL_PLACE_NONE))
            return ceiling == PL_PLACE_NONE ? stack_up(part, order, k, peak, offsets) : PL_PLACE_NONE;
        uint64_t offset = find_gap(fitter, item, best_fit);
        if (offset + item->size > peak) peak = offset + item->size;
        insert(fitter, item, offset);
        offsets[order[k]] = offset;
    }
    place_run_spend(run, fitter->steps);
    return peak < ceiling ? peak : PL_PLACE_NONE;
}
