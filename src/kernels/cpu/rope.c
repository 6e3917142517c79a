/* Rotary position embedding: a vector of the first half of a head and one of the second are turned together. */
#include <string.h>

#include "kernels/cpu/vec_real.h"
#include "kernels/kernels.h"

PL_V_INLINE void turn(pl_real type, int64_t half, const float *cosine, const float *sine, const void *x, void *y,
                      int64_t at, int64_t count)
{
    pl_vf a = pl_v_get(type, x, at, count), b = pl_v_get(type, x, at + half, count);
    pl_vf c = pl_v_get(PL_REAL_F32, cosine, 0, count), s = pl_v_get(PL_REAL_F32, sine, 0, count);
    pl_v_put(type, y, at, pl_v_fma(a, c, -(b * s)), count);
    pl_v_put(type, y, at + half, pl_v_fma(b, c, a * s), count);
}

PL_V_INLINE void rope_row(pl_real type, const pl_rope *h, const float *cosine, const float *sine, const void *x,
                          void *y, int64_t at)
{
    for (int64_t head = 0; head < h->rotated; head++, at += 2 * h->half) {
        int64_t i = 0;
        for (; i + PL_VW <= h->half; i += PL_VW) turn(type, h->half, cosine + i, sine + i, x, y, at + i, PL_VW);
        if (i < h->half) turn(type, h->half, cosine + i, sine + i, x, y, at + i, h->half - i);
    }
}

PL_V_INLINE void rope_rows(pl_real type, const pl_rope *h, int64_t begin, int64_t end, const void *x, void *y)
{
    const int64_t width = h->heads * 2 * h->half, rotated = h->rotated * 2 * h->half;
    for (int64_t r = begin; r < end; r++) {
        int64_t angle = r % h->positions * h->half, at = r * width;
        rope_row(type, h, h->cosine + angle, h->sine + angle, x, y, at);
        if (x != y && rotated < width)
            memcpy(pl_real_at(type, y, at + rotated), pl_real_at(type, x, at + rotated),
                   (size_t)((width - rotated) * pl_real_bytes(type)));
    }
}

void PL_KERNEL(rope_rows)(const pl_rope *h, int64_t begin, int64_t end, pl_real type, const void *x, void *y)
{
    PL_REAL_EACH(type, rope_rows(REAL, h, begin, end, x, y));
}
