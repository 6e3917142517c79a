/* An order of `count` places for each turn (each epoch), computed place by place: a pure function of (seed, stream,
 * turn, place), with no table and no state. A Feistel network over the next power of four, walked until it falls inside
 * (Black and Rogaway 2002), Philox as its round function. */
#ifndef PL_BASE_PERMUTATION_H
#define PL_BASE_PERMUTATION_H

#include "base/philox.h"

typedef struct pl_permutation {
    uint64_t count;
    uint32_t half_bits; /* of a place */
    pl_philox random;
} pl_permutation;

pl_permutation pl_permutation_init(uint64_t count, pl_philox);
/* Where place `place` (below count, which is at least 1) goes in that turn: below count, each from one place. */
uint64_t pl_permutation_at(const pl_permutation *, uint64_t turn, uint64_t place);

#endif
