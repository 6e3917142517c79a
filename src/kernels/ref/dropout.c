/* Dropout, one Philox block after the other, straight from base/philox.h. */
#include "kernels/kernels.h"

void PL_KERNEL(dropout)(const pl_dropout_range *range, pl_real type, const void *x, const void *residual, void *y)
{
    float scale = 1 / (1 - range->probability);
    uint32_t bits[4];
    for (int64_t i = 0; i < range->count; i++) {
        uint32_t block = (uint32_t)((uint64_t)(range->first + i) / 4);
        if (i % 4 == 0) pl_philox_block(&range->philox, range->step, range->sample, block, bits);
        float kept = pl_uniform_f32(bits[i % 4]) >= range->probability ? pl_real_get(type, x, i) * scale : 0;
        pl_real_put(type, y, i, residual ? pl_real_get(type, residual, i) + kept : kept);
    }
}

void PL_KERNEL(channel_scale)(int64_t positions, int64_t channels, pl_real type, const float *scale, const void *x,
                              void *y)
{
    for (int64_t i = 0; i < positions * channels; i++) {
        float s = scale[i % channels];
        pl_real_put(type, y, i, s == 0 ? 0 : pl_real_get(type, x, i) * s);
    }
}
