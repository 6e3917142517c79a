/* Scalar reference of kernels/cpu/pool.c; sums in double. */
#include <math.h>

#include "kernels/kernels.h"

void PL_KERNEL(max_pool_row)(int64_t columns, int64_t channels, pl_real type, const void *upper, const void *lower,
                             void *y, uint8_t *argmax)
{
    for (int64_t i = 0; i < columns * channels; i++) {
        int64_t at = 2 * (i / channels) * channels + i % channels;
        float best = pl_real_get(type, upper, at);
        uint8_t place = 0;
        for (uint8_t k = 1; k < 4; k++) {
            float x = pl_real_get(type, k < 2 ? upper : lower, at + (k & 1) * channels);
            if (x > best || isnan(x)) best = x, place = k;
        }
        pl_real_put(type, y, i, best);
        if (argmax) argmax[i] = place;
    }
}

void PL_KERNEL(max_pool_bwd_row)(int64_t columns, int64_t width, int64_t channels, int parity, pl_real type,
                                 const void *dy, const uint8_t *argmax, const void *add, void *dx)
{
    for (int64_t i = 0; i < width * channels; i++) {
        int64_t column = i / channels, from = column / 2 * channels + i % channels;
        float d = add ? pl_real_get(type, add, i) : 0;
        if (column < 2 * columns && argmax[from] == 2 * parity + column % 2) d += pl_real_get(type, dy, from);
        pl_real_put(type, dx, i, d);
    }
}

void PL_KERNEL(signed_max_pool_row)(int64_t columns, int64_t channels, pl_real type, const float *sign,
                                    const void *upper, const void *lower, void *pooled, uint8_t *argmax)
{
    for (int64_t i = 0; i < columns * channels; i++) {
        int64_t at = 2 * (i / channels) * channels + i % channels;
        float best = pl_real_get(type, upper, at), s = sign[i % channels];
        uint8_t place = 0;
        for (uint8_t k = 1; k < 4; k++) {
            float x = pl_real_get(type, k < 2 ? upper : lower, at + (k & 1) * channels);
            if (s != 0 && (x * s > best * s || isnan(x))) best = x, place = k;
        }
        pl_real_put(type, pooled, i, best);
        if (argmax) argmax[i] = place;
    }
}

void PL_KERNEL(spread_row)(int64_t columns, int64_t width, int64_t channels, int parity, pl_real type, const void *g,
                           const uint8_t *argmax, const float *spread, const void *y, void *dy)
{
    for (int64_t i = 0; i < width * channels; i++) {
        int64_t column = i / channels, c = i % channels, from = column / 2 * channels + c;
        double d = spread[c] + (double)spread[channels + c] * (pl_real_get(type, y, i) - spread[2 * channels + c]);
        if (column < 2 * columns && argmax[from] == 2 * parity + column % 2) d += pl_real_get(type, g, from);
        pl_real_put(type, dy, i, (float)d);
    }
}

void PL_KERNEL(resample_row)(const pl_resample_row *r, pl_real type, const void *x, const void *add, void *y)
{
    const pl_taps *t = &r->across;
    for (int64_t o = 0; o < r->columns; o++)
        for (int64_t c = 0; c < r->count; c++) {
            int64_t at = o * r->channels + c;
            double sum = add ? pl_real_get(type, add, at) : 0;
            for (int64_t i = 0; i < r->rows; i++)
                for (int64_t k = 0; k < t->count[o]; k++)
                    sum += (double)r->row_weight[i] * t->weight[t->at[o] + k] *
                           pl_real_get(type, x, i * r->row_ld + (t->first[o] + k) * r->channels + c);
            pl_real_put(type, y, at, (float)sum);
        }
}
