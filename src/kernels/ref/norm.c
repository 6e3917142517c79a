/* Scalar reference of kernels/cpu/norm.c; sums in double. */
#include <math.h>
#include <stddef.h>

#include "kernels/kernels.h"

static double row_mean(int64_t width, pl_real type, const void *x)
{
    double sum = 0;
    for (int64_t j = 0; j < width; j++) sum += pl_real_get(type, x, j);
    return sum / (double)width;
}

static double row_variance(int64_t width, pl_real type, const void *x, double mean)
{
    double sum = 0;
    for (int64_t j = 0; j < width; j++) sum += (pl_real_get(type, x, j) - mean) * (pl_real_get(type, x, j) - mean);
    return sum / (double)width;
}

void PL_KERNEL(norm_rows)(int64_t begin, int64_t end, int64_t width, int rms, float eps, pl_real type, const void *x,
                          const float *gamma, const float *beta, void *y, float *mean, float *rstd)
{
    for (int64_t r = begin; r < end; r++) {
        const void *row = pl_real_at(type, x, r * width);
        double m = rms ? 0 : row_mean(width, type, row), s = 1 / sqrt(row_variance(width, type, row, m) + eps);
        for (int64_t j = 0; j < width; j++) {
            double normal = (pl_real_get(type, row, j) - m) * s;
            pl_real_put(type, y, r * width + j, (float)(normal * (gamma ? gamma[j] : 1) + (beta ? beta[j] : 0)));
        }
        if (mean) mean[r] = (float)m;
        if (rstd) rstd[r] = (float)s;
    }
}

/* One row as numbers: f32 already, whatever it is stored as. */
typedef struct bwd_row {
    pl_real type;
    int rms;
    double mean, rstd;
    const void *dy, *x, *add;
    void *dx;
} bwd_row;

static double normal_at(const bwd_row *w, int64_t j) { return (pl_real_get(w->type, w->x, j) - w->mean) * w->rstd; }

static void bwd(int64_t width, const bwd_row *w, const float *gamma)
{
    double sum_g = 0, sum_gx = 0;
    for (int64_t j = 0; j < width; j++) {
        double g = (double)pl_real_get(w->type, w->dy, j) * (gamma ? gamma[j] : 1);
        sum_g += w->rms ? 0 : g;
        sum_gx += g * normal_at(w, j);
    }
    for (int64_t j = 0; j < width; j++) {
        double g = (double)pl_real_get(w->type, w->dy, j) * (gamma ? gamma[j] : 1), add = 0;
        if (w->add) add = pl_real_get(w->type, w->add, j);
        double centred = g - sum_g / (double)width - normal_at(w, j) * sum_gx / (double)width;
        pl_real_put(w->type, w->dx, j, (float)(add + w->rstd * centred));
    }
}

void PL_KERNEL(norm_bwd_rows)(int64_t begin, int64_t end, int64_t width, int rms, pl_real type, const void *dy,
                              const void *x, const float *gamma, const float *mean, const float *rstd, const void *add,
                              void *dx, float *partial_gamma, float *partial_beta)
{
    for (int64_t j = 0; j < width; j++) {
        if (partial_gamma) partial_gamma[j] = 0;
        if (partial_beta) partial_beta[j] = 0;
    }
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * width;
        bwd_row w = {.type = type,
                     .rms = rms,
                     .mean = rms ? 0 : mean[r],
                     .rstd = rstd[r],
                     .dy = pl_real_at(type, dy, at),
                     .x = pl_real_at(type, x, at),
                     .add = add ? pl_real_at(type, add, at) : NULL,
                     .dx = dx ? pl_real_at(type, dx, at) : NULL};
        for (int64_t j = 0; j < width; j++) {
            float d = pl_real_get(type, w.dy, j);
            if (partial_gamma) partial_gamma[j] += (float)(d * (pl_real_get(type, w.x, j) - w.mean) * rstd[r]);
            if (partial_beta) partial_beta[j] += d;
        }
        if (dx) bwd(width, &w, gamma);
    }
}

void PL_KERNEL(add_blocks)(int64_t begin, int64_t end, int64_t blocks, int64_t ld, const float *partial, float *out)
{
    for (int64_t j = begin; j < end; j++)
        for (int64_t b = 0; b < blocks; b++) out[j] += partial[b * ld + j];
}
