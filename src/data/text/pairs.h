/* How often each pair of symbols occurs, and which occurs most: a hash table whose entries are at the same time a heap.
 * The top is the pair with the highest count; among equals the one with the lower ids, as in Hugging Face's trainer. */
#ifndef PL_DATA_PAIRS_H
#define PL_DATA_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_pair {
    uint64_t count;
    uint32_t key;  /* left << 16 | right */
    uint32_t slot; /* where `slots` points here */
} pl_pair;

typedef struct pl_pairs {
    pl_pair *heap;
    uint32_t *slots; /* [mask + 1] -> place in heap + 1; 0 = free */
    uint32_t count, capacity, mask;
} pl_pairs;

static inline uint32_t pl_pair_key(uint16_t left, uint16_t right) { return (uint32_t)left << 16 | right; }

uint64_t pl_pairs_bytes(uint32_t capacity); /* heap memory for at most so many pairs at a time */
pl_status pl_pairs_init(pl_pairs *, uint32_t capacity, pl_error *);
void pl_pairs_deinit(pl_pairs *);
void pl_pairs_add(pl_pairs *, uint32_t key, uint64_t count);
/* A pair that is not there is left alone; one whose count reaches 0 leaves. */
void pl_pairs_subtract(pl_pairs *, uint32_t key, uint64_t count);
void pl_pairs_remove(pl_pairs *, uint32_t key);
uint64_t pl_pairs_count_of(const pl_pairs *, uint32_t key);
const pl_pair *pl_pairs_top(const pl_pairs *); /* NULL when empty */

#endif
