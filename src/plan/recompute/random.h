/* Random numbers of the planner: Philox blocks one behind the other, so that they are a function of (seed, round) and
 * the same on every machine. */
#ifndef PL_PLAN_RECOMPUTE_RANDOM_H
#define PL_PLAN_RECOMPUTE_RANDOM_H

#include <stdbool.h>

#include "base/philox.h"

typedef struct recompute_random {
    pl_philox key;
    uint64_t block;
    uint32_t values[4];
    uint32_t left;
} recompute_random;

static inline recompute_random recompute_random_begin(uint64_t seed, uint64_t round)
{
    return (recompute_random){.key = pl_philox_init(seed, pl_stream_id("recompute") + round)};
}

static inline uint32_t recompute_random_next(recompute_random *r)
{
    if (r->left == 0) {
        pl_philox_block(&r->key, 0, r->block++, 0, r->values);
        r->left = 4;
    }
    return r->values[--r->left];
}

static inline uint32_t recompute_random_below(recompute_random *r, uint32_t limit)
{
    return (uint32_t)((uint64_t)recompute_random_next(r) * limit >> 32);
}

static inline bool recompute_random_one_in(recompute_random *r, uint32_t n)
{
    return recompute_random_below(r, n) == 0;
}

#endif
