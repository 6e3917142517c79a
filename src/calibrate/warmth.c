#include "calibrate/warmth.h"

#include <string.h>

/* A coarser list for a larger model keeps it at half a megabyte. */
enum { BLOCK_BYTES_MIN = 64 << 10, BLOCKS_MAX = 1 << 16 };

static uint64_t blocks_of(uint64_t bytes, uint64_t block_bytes)
{
    return bytes / block_bytes + (bytes % block_bytes > 0);
}

static uint64_t count_blocks(pl_warmth *w)
{
    uint64_t count = 0;
    for (int k = 0; k < PL_AREA_COUNT; k++) {
        w->first[k] = count;
        count += blocks_of(w->layout->area[k].demand_bytes, w->block_bytes);
    }
    w->other = count;
    w->other_count = w->cache_blocks + 1;
    return count + w->other_count;
}

pl_status pl_warmth_init(pl_warmth *w, const pl_layout *l, uint64_t cache_bytes, pl_error *err)
{
    *w = (pl_warmth){.layout = l, .block_bytes = BLOCK_BYTES_MIN};
    for (;; w->block_bytes *= 2) {
        w->cache_blocks = cache_bytes / w->block_bytes + 1;
        w->block_count = count_blocks(w);
        if (w->block_count < BLOCKS_MAX) break;
    }
    w->newer = pl_alloc(w->block_count + 1, sizeof *w->newer);
    w->older = pl_alloc(w->block_count + 1, sizeof *w->older);
    if (!w->newer || !w->older) {
        pl_warmth_deinit(w);
        return pl_fail(err, PL_E_NOMEM, "no memory to follow the caches of a calibration");
    }
    for (uint64_t i = 0; i < w->block_count; i++) w->newer[i] = w->older[i] = PL_NONE;
    w->newer[w->block_count] = w->older[w->block_count] = (uint32_t)w->block_count;
    return PL_OK;
}

void pl_warmth_deinit(pl_warmth *w)
{
    pl_free(w->newer);
    pl_free(w->older);
    *w = (pl_warmth){0};
}

static void take_out(pl_warmth *w, uint32_t block)
{
    w->older[w->newer[block]] = w->older[block];
    w->newer[w->older[block]] = w->newer[block];
    w->newer[block] = w->older[block] = PL_NONE;
    w->held--;
}

static void use(pl_warmth *w, uint32_t block)
{
    uint32_t end = (uint32_t)w->block_count; /* the newest is its `older`, the oldest its `newer` */
    if (w->newer[block] != PL_NONE) take_out(w, block);
    if (w->held == w->cache_blocks) take_out(w, w->newer[end]);
    w->newer[block] = end;
    w->older[block] = w->older[end];
    w->newer[w->older[end]] = block;
    w->older[end] = block;
    w->held++;
}

/* Where the byte of the root lies in memory without end. */
static uint64_t place_of(const pl_warmth *w, pl_id root, uint64_t byte) { return w->layout->home[root] + byte; }

void pl_warmth_find_cold(const pl_warmth *w, pl_id root, uint64_t begin, uint64_t end, pl_warmth_cold *cold,
                         void *context)
{
    uint64_t first = w->first[w->layout->kind[root]];
    for (uint64_t next; begin < end; begin = next) {
        uint64_t at = place_of(w, root, begin), left = w->block_bytes - at % w->block_bytes;
        next = end - begin < left ? end : begin + left;
        if (w->newer[first + at / w->block_bytes] == PL_NONE) cold(context, root, begin, next);
    }
}

void pl_warmth_touch(pl_warmth *w, pl_id root, uint64_t begin, uint64_t end)
{
    if (begin >= end) return;
    uint64_t first = w->first[w->layout->kind[root]], last = place_of(w, root, end - 1) / w->block_bytes;
    for (uint64_t b = place_of(w, root, begin) / w->block_bytes; b <= last; b++) use(w, (uint32_t)(first + b));
}

void pl_warmth_pass(pl_warmth *w, uint64_t bytes)
{
    uint64_t all = w->passed_bytes + bytes, blocks = all / w->block_bytes;
    w->passed_bytes = all % w->block_bytes;
    for (uint64_t i = 0; i < blocks && i < w->other_count; i++) {
        use(w, (uint32_t)(w->other + w->next_other));
        w->next_other = (w->next_other + 1) % w->other_count;
    }
}
