/* Scalar reference of kernels/cpu/channel_norm.c; sums in double. */
#include "kernels/kernels.h"
#include "kernels/ref/activation.h"

void PL_KERNEL(row_moments)(int64_t positions, int64_t channels, int64_t ld, pl_real type, const void *x, float *mean,
                            float *squares)
{
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0, square = 0;
        for (int64_t p = 0; p < positions; p++) sum += pl_real_get(type, x, p * ld + c);
        mean[c] = (float)(sum / (double)positions);
        for (int64_t p = 0; p < positions; p++) {
            double d = pl_real_get(type, x, p * ld + c) - mean[c];
            square += d * d;
        }
        squares[c] = (float)square;
    }
}

void PL_KERNEL(merge_moments)(int64_t begin, int64_t end, int64_t rows, int64_t positions, int64_t channels,
                              const float *moments, float *mean, float *squares)
{
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, square = 0;
        for (int64_t r = 0; r < rows; r++) sum += moments[2 * r * channels + c];
        mean[c] = (float)(sum / (double)rows);
        for (int64_t r = 0; r < rows; r++) {
            double d = moments[2 * r * channels + c] - mean[c];
            square += moments[(2 * r + 1) * channels + c] + (double)positions * d * d;
        }
        squares[c] = (float)square;
    }
}

void PL_KERNEL(channel_affine)(const pl_channel_affine *a, int64_t positions, pl_real type, const void *x,
                               const void *residual, void *y)
{
    for (int64_t p = 0; p < positions; p++)
        for (int64_t c = 0; c < a->channels; c++) {
            int64_t at = p * a->channels + c;
            double z = ((double)pl_real_get(type, x, at) - a->mean[c]) * a->scale[c] + a->beta[c];
            double above = residual ? pl_real_get(type, residual, at) : 0;
            double made = ref_activation(a->act, z);
            if (a->film) made = made * a->film[c] + a->film[a->channels + c];
            pl_real_put(type, y, at, (float)(above + made));
        }
}

/* ---- backward ---- */

static double slope_at(const pl_channel_affine *a, pl_real type, const void *dy, const void *x, int64_t at, int64_t c)
{
    double z = ((double)pl_real_get(type, x, at) - a->mean[c]) * a->scale[c] + a->beta[c];
    return pl_real_get(type, dy, at) * ref_activation_slope(a->act, z) * (a->film ? a->film[c] : 1);
}

void PL_KERNEL(channel_bwd_sums)(const pl_channel_affine *a, int64_t rows, int64_t positions, pl_real type,
                                 const void *dy, const void *x, float *sum, float *sum_x)
{
    for (int64_t c = 0; c < a->channels; c++) {
        double s = 0, sx = 0;
        for (int64_t p = 0; p < rows * positions; p++) {
            int64_t at = p * a->channels + c;
            double dz = slope_at(a, type, dy, x, at, c);
            s += dz;
            sx += dz * ((double)pl_real_get(type, x, at) - a->mean[c]);
        }
        sum[c] = (float)s;
        sum_x[c] = (float)sx;
    }
}

void PL_KERNEL(channel_film_sums)(const pl_channel_affine *a, int64_t rows, int64_t positions, pl_real type,
                                  const void *dy, const void *x, float *sums, int64_t ld)
{
    PL_KERNEL(channel_bwd_sums)(a, rows, positions, type, dy, x, sums, sums + ld);
    for (int64_t c = 0; c < a->channels; c++) {
        double s = 0, sy = 0;
        for (int64_t p = 0; p < rows * positions; p++) {
            int64_t at = p * a->channels + c;
            double z = ((double)pl_real_get(type, x, at) - a->mean[c]) * a->scale[c] + a->beta[c];
            s += pl_real_get(type, dy, at);
            sy += pl_real_get(type, dy, at) * ref_activation(a->act, z);
        }
        sums[2 * ld + c] = (float)sy;
        sums[3 * ld + c] = (float)s;
    }
}

void PL_KERNEL(channel_bwd)(const pl_channel_slope *s, int64_t positions, pl_real type, const void *dy, const void *x,
                            const void *add, void *dx)
{
    const pl_channel_affine *a = &s->z;
    for (int64_t at = 0; at < positions * a->channels; at++) {
        int64_t c = at % a->channels;
        double d = slope_at(a, type, dy, x, at, c) * a->scale[c] + s->shift[c];
        d += ((double)pl_real_get(type, x, at) - a->mean[c]) * s->slope[c];
        pl_real_put(type, dx, at, (float)(d + (add ? pl_real_get(type, add, at) : 0)));
    }
}
