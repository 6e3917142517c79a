/* Philox4x32-10 on PL_VW counters at a time, two such batches in flight. Bit for bit the words of base/philox.h.
 *
 * The four words of a block belong to four neighbouring elements, but sit in the same lane of four vectors. Lane 4g + r
 * works on block r·(PL_VW/4) + g, so that a transpose inside each group of four lanes leaves row r with the words of
 * consecutive blocks: PL_VW neighbouring elements, in order. */
#ifndef PL_KERNELS_CPU_PHILOX_H
#define PL_KERNELS_CPU_PHILOX_H

#include "base/philox.h"
#include "kernels/cpu/vec.h"

enum {
    PL_V_PHILOX_BATCHES = 2,
    PL_V_PHILOX_ROWS = 4 * PL_V_PHILOX_BATCHES,
    PL_V_PHILOX_ELEMS = PL_V_PHILOX_ROWS * PL_VW,
};

PL_V_INLINE pl_vu pl_v_philox_lanes(void)
{
    pl_vu blocks = {0};
    PL_V_UNROLL for (uint32_t l = 0; l < PL_VW; l++) blocks[l] = l % 4 * (PL_VW / 4) + l / 4;
    return blocks;
}

PL_V_INLINE void pl_v_philox_transpose(pl_vu c[4])
{
    pl_vu a = __builtin_shufflevector(c[0], c[1], PL_V_STAGE_1);
    pl_vu b = __builtin_shufflevector(c[0], c[1], PL_V_STAGE_1_ODD);
    pl_vu d = __builtin_shufflevector(c[2], c[3], PL_V_STAGE_1);
    pl_vu e = __builtin_shufflevector(c[2], c[3], PL_V_STAGE_1_ODD);
    c[0] = __builtin_shufflevector(a, d, PL_V_STAGE_2), c[2] = __builtin_shufflevector(a, d, PL_V_STAGE_2_ODD);
    c[1] = __builtin_shufflevector(b, e, PL_V_STAGE_2), c[3] = __builtin_shufflevector(b, e, PL_V_STAGE_2_ODD);
}

/* The words of PL_V_PHILOX_ELEMS/4 blocks before the transpose: rows[4b] holds the numbers of the blocks of batch b and
 * gets their first words, rows[4b + 1] the second ones, and so on. */
PL_V_INLINE void pl_v_philox_words(const pl_philox *philox, uint32_t step, uint64_t sample,
                                   pl_vu rows[PL_V_PHILOX_ROWS])
{
    uint32_t k0 = philox->key[0], k1 = philox->key[1];
    PL_V_UNROLL for (uint32_t b = 0; b < PL_V_PHILOX_BATCHES; b++)
    {
        rows[4 * b + 1] = (pl_vu){0} + (uint32_t)sample;
        rows[4 * b + 2] = (pl_vu){0} + (uint32_t)(sample >> 32);
        rows[4 * b + 3] = (pl_vu){0} + step;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        PL_V_UNROLL for (int b = 0; b < PL_V_PHILOX_BATCHES; b++)
        {
            pl_vu *c = rows + 4 * b, high0, high2;
            pl_vu low0 = pl_v_multiply_wide(c[0], 0xD2511F53u, &high0);
            pl_vu low2 = pl_v_multiply_wide(c[2], 0xCD9E8D57u, &high2);
            c[0] = high2 ^ c[1] ^ k0, c[1] = low2;
            c[2] = high0 ^ c[3] ^ k1, c[3] = low0;
        }
}

/* The words of PL_V_PHILOX_ELEMS/4 blocks from `block` on, in the order of the elements: PL_VW of them a row. */
PL_V_INLINE void pl_v_philox(const pl_philox *philox, uint32_t step, uint64_t sample, uint32_t block,
                             pl_vu rows[PL_V_PHILOX_ROWS])
{
    PL_V_UNROLL for (uint32_t b = 0; b < PL_V_PHILOX_BATCHES; b++) rows[4 * b] =
        pl_v_philox_lanes() + (block + b * PL_VW);
    pl_v_philox_words(philox, step, sample, rows);
    PL_V_UNROLL for (int b = 0; b < PL_V_PHILOX_BATCHES; b++) pl_v_philox_transpose(rows + 4 * b);
}

#endif
