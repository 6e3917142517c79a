/* The pass for those in a hurry: buffers in the order of birth, each into the lowest gap that holds it, as an allocator
 * would do while the program runs. Only what is alive at the moment is looked at, so that 200,000 buffers take tenths
 * of a second, whatever they are, and it always ends: there is a sensible answer before a limit is looked at for the
 * first time. What is fixed is avoided as a whole: the rest begins above it.
 *
 * The gaps lie in chunks, of which each knows its largest: few are opened.
 *
 * Invariant: the gaps are sorted, do not touch each other, and hold all that is not taken now; the last one is open. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum {
    CHUNK = 128,
    MISSES_MAX = 64, /* chunks opened in vain because of alignment; from then on a gap must have room to align in */
};

typedef struct gap {
    uint64_t begin, end;
} gap;

typedef struct ending {
    uint64_t upper;
    uint32_t item;
} ending;

typedef struct chunk {
    uint32_t count; /* at least 1 */
    gap gaps[CHUNK];
} chunk;

typedef struct heap {
    chunk *chunks;
    uint32_t *order;   /* of chunks, by address */
    uint64_t *largest; /* by place in the order: room of the largest gap */
    uint32_t *unused;  /* a stack of chunks */
    uint32_t count, unused_count;
} heap;

static int compare_endings(const void *left, const void *right)
{
    const ending *a = left, *b = right;
    if (a->upper != b->upper) return a->upper < b->upper ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static void measure(heap *h, uint32_t k)
{
    const chunk *c = &h->chunks[h->order[k]];
    uint64_t largest = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->gaps[i].end - c->gaps[i].begin > largest) largest = c->gaps[i].end - c->gaps[i].begin;
    h->largest[k] = largest;
}

static void remove_gap(heap *h, uint32_t k, uint32_t i)
{
    chunk *c = &h->chunks[h->order[k]];
    memmove(&c->gaps[i], &c->gaps[i + 1], (--c->count - i) * sizeof *c->gaps);
    if (c->count) {
        measure(h, k);
        return;
    }
    h->unused[h->unused_count++] = h->order[k];
    h->count--;
    memmove(&h->order[k], &h->order[k + 1], (h->count - k) * sizeof *h->order);
    memmove(&h->largest[k], &h->largest[k + 1], (h->count - k) * sizeof *h->largest);
}

static void split(heap *h, uint32_t k)
{
    memmove(&h->order[k + 2], &h->order[k + 1], (h->count - k - 1) * sizeof *h->order);
    memmove(&h->largest[k + 2], &h->largest[k + 1], (h->count - k - 1) * sizeof *h->largest);
    h->count++;
    h->order[k + 1] = h->unused[--h->unused_count];
    chunk *low = &h->chunks[h->order[k]], *high = &h->chunks[h->order[k + 1]];
    low->count = high->count = CHUNK / 2;
    memcpy(high->gaps, &low->gaps[CHUNK / 2], CHUNK / 2 * sizeof *high->gaps);
    measure(h, k);
    measure(h, k + 1);
}

/* Puts it before gap i of chunk k, or behind its last one. */
static void insert_gap(heap *h, uint32_t k, uint32_t i, gap g)
{
    if (h->chunks[h->order[k]].count == CHUNK) {
        split(h, k);
        if (i > CHUNK / 2) k++, i -= CHUNK / 2;
    }
    chunk *c = &h->chunks[h->order[k]];
    memmove(&c->gaps[i + 1], &c->gaps[i], (c->count++ - i) * sizeof *c->gaps);
    c->gaps[i] = g;
    if (g.end - g.begin > h->largest[k]) h->largest[k] = g.end - g.begin;
}

/* The first gap of a chunk that holds the size and room to align it; the count if there is none. */
static uint32_t find_in(const chunk *c, uint64_t size, uint64_t alignment)
{
    uint32_t i = 0;
    while (i < c->count && (c->gaps[i].end - c->gaps[i].begin < size ||
                            pl_align_up(c->gaps[i].begin, alignment) + size > c->gaps[i].end))
        i++;
    return i;
}

static uint64_t take(heap *h, uint64_t size, uint64_t alignment)
{
    uint64_t room = size;
    uint32_t k = 0, i = 0;
    for (uint32_t misses = 0;; k++) { /* the last gap is open: it ends */
        if (h->largest[k] < room) continue;
        i = find_in(&h->chunks[h->order[k]], size, alignment);
        if (i < h->chunks[h->order[k]].count) break;
        if (++misses == MISSES_MAX) room = size + alignment - 1;
    }
    gap *g = &h->chunks[h->order[k]].gaps[i];
    uint64_t at = pl_align_up(g->begin, alignment);
    gap below = {g->begin, at}, above = {at + size, g->end};
    bool was_largest = g->end - g->begin == h->largest[k];
    bool any_below = below.begin < below.end, any_above = above.begin < above.end;
    if (!any_below && !any_above) {
        remove_gap(h, k, i);
        return at;
    }
    *g = any_above ? above : below;
    if (was_largest) measure(h, k);
    if (any_below && any_above) insert_gap(h, k, i, below);
    return at;
}

/* The place in the order of the last chunk that begins at or below the offset, or of the first one. */
static uint32_t chunk_at(const heap *h, uint64_t offset)
{
    uint32_t low = 0, high = h->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (h->chunks[h->order[middle]].gaps[0].begin <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void give_back(heap *h, gap g)
{
    uint32_t k = chunk_at(h, g.begin), i = 0;
    chunk *c = &h->chunks[h->order[k]];
    while (i < c->count && c->gaps[i].begin < g.begin) i++; /* the first gap above g */
    bool joins = i && c->gaps[i - 1].end == g.begin;
    uint32_t above_k = i < c->count ? k : k + 1, above = i < c->count ? i : 0;
    if (above_k < h->count && h->chunks[h->order[above_k]].gaps[above].begin == g.end) {
        gap *up = &h->chunks[h->order[above_k]].gaps[above];
        if (!joins) {
            up->begin = g.begin;
            if (up->end - up->begin > h->largest[above_k]) h->largest[above_k] = up->end - up->begin;
            return;
        }
        g.end = up->end;
        remove_gap(h, above_k, above); /* g joins what is below: k and i - 1 stay */
    }
    if (!joins) {
        insert_gap(h, k, i, g);
        return;
    }
    c->gaps[i - 1].end = g.end;
    if (g.end - c->gaps[i - 1].begin > h->largest[k]) h->largest[k] = g.end - c->gaps[i - 1].begin;
}

static void heap_begin(heap *h, uint32_t room, uint64_t floor)
{
    for (h->unused_count = 0; h->unused_count < room; h->unused_count++)
        h->unused[h->unused_count] = room - 1 - h->unused_count;
    h->order[0] = h->unused[--h->unused_count];
    h->chunks[h->order[0]].count = 1;
    h->chunks[h->order[0]].gaps[0] = (gap){floor, PL_PLACE_NONE};
    h->count = 1;
    measure(h, 0);
}

static uint64_t run_through(const place_part *part, heap *h, uint32_t room, const ending *endings, uint64_t *offsets)
{
    uint64_t floor = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        if (item->fixed == PL_PLACE_NONE) continue;
        offsets[i] = item->fixed;
        if (item->fixed + item->size > floor) floor = item->fixed + item->size;
    }
    uint64_t peak = floor;
    heap_begin(h, room, floor);
    for (uint32_t i = 0, end = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        for (; endings[end].upper <= item->lower; end++) {
            const place_item *gone = &part->items[endings[end].item];
            uint64_t at = offsets[endings[end].item];
            if (gone->fixed == PL_PLACE_NONE) give_back(h, (gap){at, at + gone->size});
        }
        if (item->fixed != PL_PLACE_NONE) continue;
        offsets[i] = take(h, item->size, item->alignment);
        if (offsets[i] + item->size > peak) peak = offsets[i] + item->size;
    }
    return peak;
}

pl_status place_quick(const place_part *part, place_best *best, pl_error *err)
{
    /* One gap below each that is alive; a chunk is emptied, not joined, so few gaps may lie in many chunks: each split
     * takes CHUNK / 2 insertions, of which each item makes at most two. */
    uint32_t room = part->count / (CHUNK / 4) + 2;
    heap h = {.chunks = pl_alloc(room, sizeof *h.chunks)};
    h.order = pl_alloc(room + 1, sizeof *h.order);
    h.largest = pl_alloc(room + 1, sizeof *h.largest);
    h.unused = pl_alloc(room, sizeof *h.unused);
    ending *endings = pl_alloc(part->count, sizeof *endings);
    bool refused = !h.chunks || !h.order || !h.largest || !h.unused || !endings;
    if (!refused) {
        for (uint32_t i = 0; i < part->count; i++) endings[i] = (ending){part->items[i].upper, i};
        qsort(endings, part->count, sizeof *endings, compare_endings);
        best->peak = run_through(part, &h, room, endings, best->offsets);
        best->heuristic = "birth, free list";
    }
    pl_free(endings);
    pl_free(h.unused);
    pl_free(h.largest);
    pl_free(h.order);
    pl_free(h.chunks);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}
