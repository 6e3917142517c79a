/* Patches of images, and positions. A division, not a product with 1/255: a number is the one that any other program
 * makes of the byte. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vec_whole.h"
#include "kernels/kernels.h"

PL_V_INLINE void patch_line(int64_t count, int64_t depth, const uint8_t *x, float *y)
{
    int64_t i = 0;
    for (; depth == 1 && i + PL_VW <= count; i += PL_VW)
        pl_v_store(y + i, __builtin_convertvector(pl_v_load_u8(x + i), pl_vf) / 255.0f);
    for (; i < count; i++) y[i] = (float)x[i * depth] / 255.0f;
}

PL_V_INLINE void patch_plane(int64_t patch, int64_t depth, int64_t ld, const uint8_t *x, float *y)
{
    for (int64_t r = 0; r < patch; r++) patch_line(patch, depth, x + r * ld, y + r * patch);
}

void PL_KERNEL(patch_row)(int64_t columns, int64_t patch, int64_t channels, int64_t depth, int64_t ld,
                          const uint8_t *image, float *y)
{
    for (int64_t i = 0; i < columns; i++, image += patch * depth) {
        const float *first = y;
        for (int64_t c = 0; c < channels; c++, y += patch * patch)
            if (depth > 1)
                patch_plane(patch, depth, ld, image + c, y);
            else if (c == 0)
                patch_plane(patch, 1, ld, image, y);
            else
                memcpy(y, first, (size_t)(patch * patch) * sizeof *y);
    }
}

PL_V_INLINE void add_positions(pl_real type, int64_t count, const void *x, const float *p, void *y)
{
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = count - i < PL_VW ? count - i : PL_VW;
        pl_v_put(type, y, i, pl_v_get(type, x, i, n) + pl_v_get(PL_REAL_F32, p, i, n), n);
    }
}

void PL_KERNEL(add_positions)(int64_t count, pl_real type, const void *x, const float *p, void *y)
{
    PL_REAL_EACH(type, add_positions(REAL, count, x, p, y));
}
