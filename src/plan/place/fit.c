/* Places items one after another in a given order, each into the lowest gap it fits (first fit) or the tightest (best
 * fit). What is placed is kept sorted by offset in three parallel columns, so that the search for a gap is one walk
 * over contiguous memory: for each entry alive together with the item, the gap below it is tried. */
#include "part.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

typedef struct placed {
    uint64_t begin, end;
    uint32_t first, last;
} placed;

struct place_fitter {
    const place_part *part;
    placed *column; /* sorted by begin */
    uint32_t placed_count;
    uint64_t steps;
};

place_fitter *place_fitter_create(const place_part *part)
{
    place_fitter *fitter = pl_alloc(1, sizeof *fitter);
    if (!fitter) return NULL;
    fitter->part = part;
    fitter->column = pl_alloc(part->count, sizeof *fitter->column);
    if (fitter->column) return fitter;
    pl_free(fitter);
    return NULL;
}

void place_fitter_destroy(place_fitter *fitter)
{
    if (!fitter) return;
    pl_free(fitter->column);
    pl_free(fitter);
}

static uint64_t find_gap(place_fitter *fitter, const place_item *item, bool best_fit)
{
    uint64_t floor = 0, best = PL_PLACE_NONE, best_room = PL_PLACE_NONE;
    uint32_t i;
    for (i = 0; i < fitter->placed_count; i++) {
        const placed *p = &fitter->column[i];
        if (p->first >= item->last || item->first >= p->last) continue;
        if (p->begin >= floor + item->size) {
            uint64_t room = p->begin - floor;
            if (room < best_room) best = floor, best_room = room;
            if (!best_fit) break;
        }
        if (p->end > floor) floor = pl_align_up(p->end, item->alignment);
    }
    fitter->steps += i;
    return best == PL_PLACE_NONE ? floor : best;
}

static void insert(place_fitter *fitter, const place_item *item, uint64_t offset)
{
    uint32_t low = 0, high = fitter->placed_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fitter->column[middle].begin < offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&fitter->column[low + 1], &fitter->column[low], (fitter->placed_count - low) * sizeof *fitter->column);
    fitter->column[low] = (placed){offset, offset + item->size, item->first, item->last};
    fitter->steps += (fitter->placed_count++ - low) / 2;
}

uint64_t place_fitter_run(place_fitter *fitter, place_run *run, const uint32_t *order, bool best_fit, uint64_t ceiling,
                          uint64_t *offsets)
{
    const place_part *part = fitter->part;
    uint64_t peak = 0;
    fitter->placed_count = 0;
    fitter->steps = 0;
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
        uint64_t offset = find_gap(fitter, item, best_fit);
        if (offset + item->size > peak) peak = offset + item->size;
        insert(fitter, item, offset);
        offsets[order[k]] = offset;
    }
    place_run_spend(run, fitter->steps + part->count);
    return peak < ceiling ? peak : PL_PLACE_NONE;
}
