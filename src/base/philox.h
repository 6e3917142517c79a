/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11): a counter-based
 * generator. Every random number of Plimsoll is a pure function of (seed, stream, step, sample, element), so results do
 * not depend on micro-batch, threads, recompute or placement (invariant 6). A stream is the hash of a scope path. */
#ifndef PL_BASE_PHILOX_H
#define PL_BASE_PHILOX_H

#include <stdint.h>

typedef struct pl_philox {
    uint32_t key[2]; /* from seed and stream */
} pl_philox;

/* Mixes a 64-bit seed and a 64-bit stream id into the 64-bit key. */
pl_philox pl_philox_init(uint64_t seed, uint64_t stream);

/* Four 32-bit numbers for the 128-bit counter (step: 32 bits, sample: 64 bits split, block = element / 4). */
void pl_philox_block(const pl_philox *, uint32_t step, uint64_t sample, uint32_t block, uint32_t out[4]);

/* Stream id of a scope path such as "block.3/dropout": 64-bit FNV-1a. */
uint64_t pl_stream_id(const char *scope);

static inline float pl_uniform_f32(uint32_t bits) { return (float)(bits >> 8) * 0x1p-24f; } /* [0, 1) */

/* Standard normals by Box–Muller for elements [begin, end) of (step, sample): the same bits for any split of the
 * range. */
void pl_philox_normal_f32(const pl_philox *, uint32_t step, uint64_t sample, uint64_t begin, uint64_t end, float *out);

#endif
