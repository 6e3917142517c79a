/* Dropout with Philox4x32-10 on PL_VW counters at a time, two such batches in flight. Bit for bit the mask of
 * base/philox.h (tests/unit/backend/test_elementwise.c).
 *
 * The four words of a block belong to four neighbouring elements, but sit in the same lane of four vectors. Lane 4g + r
 * works on block r·(PL_VW/4) + g, so that a transpose inside each group of four lanes leaves row r with the words of
 * consecutive blocks: PL_VW neighbouring elements, in order. */
#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

enum { BATCHES = 2, BATCH_ELEMS = 4 * PL_VW };

static inline pl_vu lane_blocks(void)
{
    pl_vu blocks = {0};
    PL_V_UNROLL for (uint32_t l = 0; l < PL_VW; l++) blocks[l] = l % 4 * (PL_VW / 4) + l / 4;
    return blocks;
}

/* The words of PL_VW blocks from `block` on, as BATCHES × 4 rows in the order of the elements. */
PL_V_INLINE void generate(const pl_dropout_range *range, uint32_t block, pl_vu rows[BATCHES][4])
{
    uint32_t k0 = range->philox.key[0], k1 = range->philox.key[1];
    PL_V_UNROLL for (uint32_t b = 0; b < BATCHES; b++)
    {
        rows[b][0] = lane_blocks() + (block + b * PL_VW);
        rows[b][1] = (pl_vu){0} + (uint32_t)range->sample;
        rows[b][2] = (pl_vu){0} + (uint32_t)(range->sample >> 32);
        rows[b][3] = (pl_vu){0} + range->step;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
        PL_V_UNROLL for (int b = 0; b < BATCHES; b++)
        {
            pl_vu *c = rows[b], high0, high2;
            pl_vu low0 = pl_v_multiply_wide(c[0], 0xD2511F53u, &high0);
            pl_vu low2 = pl_v_multiply_wide(c[2], 0xCD9E8D57u, &high2);
            c[0] = high2 ^ c[1] ^ k0, c[1] = low2;
            c[2] = high0 ^ c[3] ^ k1, c[3] = low0;
        }
}

PL_V_INLINE void transpose_groups(pl_vu c[4])
{
    pl_vu a = __builtin_shufflevector(c[0], c[1], PL_V_STAGE_1);
    pl_vu b = __builtin_shufflevector(c[0], c[1], PL_V_STAGE_1_ODD);
    pl_vu d = __builtin_shufflevector(c[2], c[3], PL_V_STAGE_1);
    pl_vu e = __builtin_shufflevector(c[2], c[3], PL_V_STAGE_1_ODD);
    c[0] = __builtin_shufflevector(a, d, PL_V_STAGE_2), c[2] = __builtin_shufflevector(a, d, PL_V_STAGE_2_ODD);
    c[1] = __builtin_shufflevector(b, e, PL_V_STAGE_2), c[3] = __builtin_shufflevector(b, e, PL_V_STAGE_2_ODD);
}

/* Dropped (0, not x·0) where uniform < probability, both times 2²⁴. */
PL_V_INLINE pl_vf drop(pl_vu bits, float probability, pl_vf scaled)
{
    pl_vf uniform = __builtin_convertvector((pl_vi)(bits >> 8), pl_vf);
    return pl_v_select_gt(pl_v_set(probability * 0x1p24f), uniform, pl_v_zero(), scaled);
}

PL_V_INLINE void apply(pl_real type, pl_vu bits, float probability, float scale, int64_t at, int64_t count,
                       const void *x, const void *residual, void *y)
{
    pl_vf kept = drop(bits, probability, scale * pl_v_get(type, x, at, count));
    pl_v_put(type, y, at, residual ? pl_v_get(type, residual, at, count) + kept : kept, count);
}

PL_V_INLINE void dropout(pl_real type, const pl_dropout_range *range, const void *x, const void *residual, void *y)
{
    float scale = 1 / (1 - range->probability);
    for (int64_t at = 0; at < range->count; at += BATCHES * BATCH_ELEMS) {
        pl_vu rows[BATCHES][4];
        generate(range, (uint32_t)((uint64_t)(range->first + at) / 4), rows);
        PL_V_UNROLL for (int b = 0; b < BATCHES; b++)
        {
            transpose_groups(rows[b]);
            PL_V_UNROLL for (int r = 0; r < 4; r++)
            {
                int64_t element = at + b * BATCH_ELEMS + r * PL_VW, left = range->count - element;
                if (left >= PL_VW)
                    apply(type, rows[b][r], range->probability, scale, element, PL_VW, x, residual, y);
                else if (left > 0)
                    apply(type, rows[b][r], range->probability, scale, element, left, x, residual, y);
            }
        }
    }
}

void PL_KERNEL(dropout)(const pl_dropout_range *range, pl_real type, const void *x, const void *residual, void *y)
{
    PL_REAL_EACH(type, dropout(REAL, range, x, residual, y));
}
