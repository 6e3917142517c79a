/* Scalar reference of kernels/cpu/rope.c. */
#include "kernels/kernels.h"

static void turn(const pl_rope *h, int64_t angle, int64_t at, pl_real type, const void *x, void *y)
{
    double a = pl_real_get(type, x, at), b = pl_real_get(type, x, at + h->half);
    double c = h->cosine[angle], s = h->sine[angle];
    pl_real_put(type, y, at, (float)(a * c - b * s));
    pl_real_put(type, y, at + h->half, (float)(b * c + a * s));
}

void PL_KERNEL(rope_rows)(const pl_rope *h, int64_t begin, int64_t end, pl_real type, const void *x, void *y)
{
    for (int64_t r = begin; r < end; r++) {
        int64_t first = r * h->heads * 2 * h->half;
        for (int64_t e = 0; e < h->rotated * h->half; e++) {
            int64_t head = e / h->half, i = e % h->half;
            turn(h, r % h->positions * h->half + i, first + head * 2 * h->half + i, type, x, y);
        }
        for (int64_t e = h->rotated * 2 * h->half; e < h->heads * 2 * h->half; e++)
            pl_real_put(type, y, first + e, pl_real_get(type, x, first + e));
    }
}
