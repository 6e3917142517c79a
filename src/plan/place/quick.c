/* The pass for those in a hurry: buffers in the order of birth, each into the lowest gap that holds it, as an allocator
 * would do while the program runs. Only what is alive at the moment is looked at, so that 100,000 buffers take
 * hundredths of a second, and it always ends: there is a sensible answer before the clock is looked at for the first
 * time. What is fixed is avoided as a whole: the rest begins above it.
 *
 * Invariant: the gaps are sorted, do not touch each other, and hold all that is not taken now; the last one is open. */
#include "part.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

typedef struct gap {
    uint64_t begin, end;
} gap;

typedef struct ending {
    uint64_t upper;
    uint32_t item;
} ending;

typedef struct heap {
    gap *gaps;
    uint32_t count;
} heap;

static int compare_endings(const void *left, const void *right)
{
    const ending *a = left, *b = right;
    if (a->upper != b->upper) return a->upper < b->upper ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static void remove_gap(heap *h, uint32_t k)
{
    memmove(&h->gaps[k], &h->gaps[k + 1], (--h->count - k) * sizeof *h->gaps);
}

static void insert_gap(heap *h, uint32_t k, gap g)
{
    memmove(&h->gaps[k + 1], &h->gaps[k], (h->count++ - k) * sizeof *h->gaps);
    h->gaps[k] = g;
}

static uint64_t take(heap *h, uint64_t size, uint64_t alignment)
{
    uint32_t k = 0;
    uint64_t at = pl_align_up(h->gaps[0].begin, alignment);
    while (at + size > h->gaps[k].end) at = pl_align_up(h->gaps[++k].begin, alignment);
    gap below = {h->gaps[k].begin, at};
    h->gaps[k].begin = at + size;
    if (h->gaps[k].begin == h->gaps[k].end) remove_gap(h, k);
    if (below.begin < below.end) insert_gap(h, k, below);
    return at;
}

static void give_back(heap *h, gap g)
{
    uint32_t low = 0, high = h->count; /* the first gap above g */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->gaps[middle].begin < g.begin)
            low = middle + 1;
        else
            high = middle;
    }
    if (low && h->gaps[low - 1].end == g.begin) {
        g.begin = h->gaps[--low].begin;
        remove_gap(h, low);
    }
    if (h->gaps[low].begin == g.end) /* there is one: the open one is above everything */
        h->gaps[low].begin = g.begin;
    else
        insert_gap(h, low, g);
}

static uint64_t run_through(const place_part *part, heap *h, const ending *endings, uint64_t *offsets)
{
    uint64_t floor = 0;
    for (uint32_t i = 0; i < part->count; i++) {
        const place_item *item = &part->items[i];
        if (item->fixed == PL_PLACE_NONE) continue;
        offsets[i] = item->fixed;
        if (item->fixed + item->size > floor) floor = item->fixed + item->size;
    }
    uint64_t peak = floor;
    h->gaps[0] = (gap){floor, PL_PLACE_NONE};
    h->count = 1;
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
    heap h = {.gaps = pl_alloc((size_t)part->count + 2, sizeof *h.gaps)}; /* one below each that is alive */
    ending *endings = pl_alloc(part->count, sizeof *endings);
    bool refused = !h.gaps || !endings;
    if (!refused) {
        for (uint32_t i = 0; i < part->count; i++) endings[i] = (ending){part->items[i].upper, i};
        qsort(endings, part->count, sizeof *endings, compare_endings);
        best->peak = run_through(part, &h, endings, best->offsets);
        best->heuristic = "birth, free list";
    }
    pl_free(endings);
    pl_free(h.gaps);
    return refused ? pl_fail(err, PL_E_NOMEM, "no memory to place %u buffers", (unsigned)part->count) : PL_OK;
}
