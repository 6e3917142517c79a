/* Dropout with Philox4x32-10 on BLOCKS counters at a time: the lanes of a batch are independent, each round is four
 * widening products, which the compiler turns into vector code at every level. Bit for bit the mask of base/philox.h
 * (tests/unit/kernels/test_dropout.c). The comparison is made on integers: bits >> 8 ≥ p·2²⁴. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

enum { BLOCKS = 2 * PL_VW };

typedef struct batch {
    uint32_t c[4][BLOCKS];
} batch;

static void round_once(batch *b, uint32_t k0, uint32_t k1)
{
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t p = (uint64_t)0xD2511F53u * b->c[0][i], q = (uint64_t)0xCD9E8D57u * b->c[2][i];
        b->c[0][i] = (uint32_t)(q >> 32) ^ b->c[1][i] ^ k0;
        b->c[1][i] = (uint32_t)q;
        b->c[2][i] = (uint32_t)(p >> 32) ^ b->c[3][i] ^ k1;
        b->c[3][i] = (uint32_t)p;
    }
}

static void generate(const pl_dropout_range *range, uint32_t first_block, batch *b)
{
    for (int i = 0; i < BLOCKS; i++) {
        b->c[0][i] = first_block + (uint32_t)i;
        b->c[1][i] = (uint32_t)range->sample;
        b->c[2][i] = (uint32_t)(range->sample >> 32);
        b->c[3][i] = range->step;
    }
    uint32_t k0 = range->philox.key[0], k1 = range->philox.key[1];
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) round_once(b, k0, k1);
}

/* factor[4·block + word] = kept ? scale : 0 */
static void factors(const batch *b, float probability, float scale, float *factor)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int word = 0; word < 4; word++)
            factor[4 * i + word] = pl_uniform_f32(b->c[word][i]) >= probability ? scale : 0;
}

void PL_KERNEL(dropout)(const pl_dropout_range *range, const float *x, const float *residual, float *y)
{
    float scale = 1 / (1 - range->probability), factor[4 * BLOCKS];
    batch b;
    for (int64_t at = 0; at < range->count; at += 4 * BLOCKS) {
        int64_t n = range->count - at < 4 * BLOCKS ? range->count - at : 4 * BLOCKS;
        generate(range, (uint32_t)((uint64_t)(range->first + at) / 4), &b);
        factors(&b, range->probability, scale, factor);
        if (residual)
            for (int64_t i = 0; i < n; i++) y[at + i] = residual[at + i] + (factor[i] > 0 ? x[at + i] * factor[i] : 0);
        else
            for (int64_t i = 0; i < n; i++) y[at + i] = factor[i] > 0 ? x[at + i] * factor[i] : 0;
    }
}
