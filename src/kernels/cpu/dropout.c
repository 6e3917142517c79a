/* Dropout: the random numbers of philox.h, then a comparison. Bit for bit the mask of base/philox.h
 * (tests/unit/backend/test_elementwise.c). */
#include "kernels/cpu/philox.h"
#include "kernels/kernels.h"

/* Dropped (0, not x·0) where uniform < probability, both times 2²⁴. */
PL_V_INLINE pl_vf drop(pl_vu bits, float probability, pl_vf scaled)
{
    pl_vf uniform = __builtin_convertvector((pl_vi)(bits >> 8), pl_vf);
    return pl_v_select_gt(pl_v_set(probability * 0x1p24f), uniform, pl_v_zero(), scaled);
}

PL_V_INLINE void apply(pl_vu bits, float probability, float scale, int64_t at, int64_t count, const float *x,
                       const float *residual, float *y)
{
    if (count >= PL_VW) {
        pl_vf kept = drop(bits, probability, scale * pl_v_load(x + at));
        pl_v_store(y + at, residual ? pl_v_load(residual + at) + kept : kept);
    } else if (count > 0) {
        pl_vf kept = drop(bits, probability, scale * pl_v_load_part(x + at, count));
        pl_v_store_part(y + at, residual ? pl_v_load_part(residual + at, count) + kept : kept, count);
    }
}

void PL_KERNEL(dropout)(const pl_dropout_range *range, const float *x, const float *residual, float *y)
{
    float scale = 1 / (1 - range->probability);
    for (int64_t at = 0; at < range->count; at += PL_V_PHILOX_ELEMS) {
        pl_vu rows[PL_V_PHILOX_ROWS];
        pl_v_philox(&range->philox, range->step, range->sample, (uint32_t)((uint64_t)(range->first + at) / 4), rows);
        PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++)
        {
            int64_t element = at + r * PL_VW;
            apply(rows[r], range->probability, scale, element, range->count - element, x, residual, y);
        }
    }
}
