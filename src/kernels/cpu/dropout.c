/* Dropout: the random numbers of philox.h, then a comparison. Bit for bit the mask of base/philox.h
 * (tests/unit/backend/test_elementwise.c). */
#include "kernels/cpu/philox.h"
#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

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
    for (int64_t at = 0; at < range->count; at += PL_V_PHILOX_ELEMS) {
        pl_vu rows[PL_V_PHILOX_ROWS];
        pl_v_philox(&range->philox, range->step, range->sample, (uint32_t)((uint64_t)(range->first + at) / 4), rows);
        PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++)
        {
            int64_t element = at + r * PL_VW, left = range->count - element;
            if (left >= PL_VW)
                apply(type, rows[r], range->probability, scale, element, PL_VW, x, residual, y);
            else if (left > 0)
                apply(type, rows[r], range->probability, scale, element, left, x, residual, y);
        }
    }
}

void PL_KERNEL(dropout)(const pl_dropout_range *range, pl_real type, const void *x, const void *residual, void *y)
{
    PL_REAL_EACH(type, dropout(REAL, range, x, residual, y));
}

/* ---- whole channels ---- */

PL_V_INLINE void scale_lanes(pl_real type, const float *scale, const void *x, void *y, int64_t c, int64_t count)
{
    pl_vf s = pl_v_get(PL_REAL_F32, scale, c, count), scaled = s * pl_v_get(type, x, c, count);
    pl_v_put(type, y, c, pl_v_select_gt(s, pl_v_zero(), scaled, pl_v_zero()), count);
}

PL_V_INLINE void channel_scale(pl_real type, int64_t positions, int64_t channels, const float *scale, const void *x,
                               void *y)
{
    for (int64_t p = 0; p < positions; p++) {
        int64_t c = 0;
        const void *from = pl_real_at(type, x, p * channels);
        void *to = pl_real_at(type, y, p * channels);
        for (; c + PL_VW <= channels; c += PL_VW) scale_lanes(type, scale, from, to, c, PL_VW);
        if (c < channels) scale_lanes(type, scale, from, to, c, channels - c);
    }
}

void PL_KERNEL(channel_scale)(int64_t positions, int64_t channels, pl_real type, const float *scale, const void *x,
                              void *y)
{
    PL_REAL_EACH(type, channel_scale(REAL, positions, channels, scale, x, y));
}
