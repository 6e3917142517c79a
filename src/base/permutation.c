#include "base/permutation.h"

enum { ROUNDS = 6 };

pl_permutation pl_permutation_init(uint64_t count, pl_philox random)
{
    uint32_t half = 1;
    while (half < 32 && count > (uint64_t)1 << 2 * half) half++;
    return (pl_permutation){.count = count, .half_bits = half, .random = random};
}

static uint64_t feistel(const pl_permutation *p, uint64_t turn, uint64_t place)
{
    uint32_t mask = (uint32_t)(((uint64_t)1 << p->half_bits) - 1);
    uint32_t left = (uint32_t)(place >> p->half_bits) & mask, right = (uint32_t)place & mask;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t random[4], old = left;
        pl_philox_block(&p->random, round, turn, right, random);
        left = right;
        right = (old ^ random[0]) & mask;
    }
    return (uint64_t)left << p->half_bits | right;
}

/* The network permutes [0, 4^half_bits). Following it from a place inside until it is inside again permutes the inside.
 */
uint64_t pl_permutation_at(const pl_permutation *p, uint64_t turn, uint64_t place)
{
    do place = feistel(p, turn, place);
    while (place >= p->count);
    return place;
}
