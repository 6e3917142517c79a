/* Scalar reference of kernels/cpu/patches.c. */
#include "kernels/kernels.h"

void PL_KERNEL(patch_row)(int64_t columns, int64_t patch, int64_t channels, int64_t depth, int64_t ld,
                          const uint8_t *image, float *y)
{
    for (int64_t i = 0; i < columns; i++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t r = 0; r < patch; r++)
                for (int64_t q = 0; q < patch; q++)
                    *y++ = (float)image[r * ld + (i * patch + q) * depth + (depth > 1 ? c : 0)] / 255.0f;
}

void PL_KERNEL(add_positions)(int64_t count, pl_real type, const void *x, const float *p, void *y)
{
    for (int64_t i = 0; i < count; i++) pl_real_put(type, y, i, pl_real_get(type, x, i) + p[i]);
}
