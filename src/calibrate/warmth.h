/* What a run would find in the caches. A replay goes over less memory than the run, in a scratch memory that may lie in
 * the last-level cache as a whole; so the cache of the run is followed beside it: the blocks of the places that values
 * would have in memory without end (pl_layout.home), the least recently used leave first (Mattson et al., 1970). What
 * is not in that cache is taken out of the real one before a node is timed.
 *
 * Invariant: at most cache_blocks blocks are in the list, the newest at its head. */
#ifndef PL_CALIBRATE_WARMTH_H
#define PL_CALIBRATE_WARMTH_H

#include "calibrate/layout.h"

typedef struct pl_warmth {
    const pl_layout *layout;
    uint64_t block_bytes, cache_blocks, held;
    uint64_t first[PL_AREA_COUNT];    /* block with which an area begins */
    uint64_t other, other_count;      /* blocks that stand for what has no place: used in turn */
    uint32_t *newer, *older;          /* [blocks, and one that ends the list]; PL_NONE: not in the cache */
    uint64_t block_count, next_other; /* of all; which of the others is next */
    uint64_t passed_bytes;            /* less than a block, not yet in the list */
} pl_warmth;

pl_status pl_warmth_init(pl_warmth *, const pl_layout *, uint64_t cache_bytes, pl_error *);
void pl_warmth_deinit(pl_warmth *);

/* A node is about to run on these: calls `cold` for each stretch [begin, end) of the root's bytes that the cache does
 * not hold. */
typedef void pl_warmth_cold(void *context, pl_id root, uint64_t begin, uint64_t end);
void pl_warmth_find_cold(const pl_warmth *, pl_id root, uint64_t begin, uint64_t end, pl_warmth_cold *, void *context);
/* It has run. */
void pl_warmth_touch(pl_warmth *, pl_id root, uint64_t begin, uint64_t end);
/* Something ran in the run that is left out here. */
void pl_warmth_pass(pl_warmth *, uint64_t bytes);

#endif
