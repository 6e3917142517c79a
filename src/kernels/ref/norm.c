/* Scalar reference of kernels/cpu/norm.c; sums in double. */
#include <math.h>
#include <stddef.h>

#include "kernels/kernels.h"

static double row_mean(int64_t width, const float *x)
{
    double sum = 0;
    for (int64_t j = 0; j < width; j++) sum += x[j];
    return sum / (double)width;
}

static double row_variance(int64_t width, const float *x, double mean)
{
    double sum = 0;
    for (int64_t j = 0; j < width; j++) sum += (x[j] - mean) * (x[j] - mean);
    return sum / (double)width;
}

void PL_KERNEL(norm_rows)(int64_t begin, int64_t end, int64_t width, int rms, float eps, const float *x,
                          const float *gamma, const float *beta, float *y, float *mean, float *rstd)
{
    for (int64_t r = begin; r < end; r++) {
        const float *row = x + r * width;
        double m = rms ? 0 : row_mean(width, row), s = 1 / sqrt(row_variance(width, row, m) + eps);
        for (int64_t j = 0; j < width; j++)
            y[r * width + j] = (float)((row[j] - m) * s * gamma[j] + (beta ? beta[j] : 0));
        if (mean) mean[r] = (float)m;
        if (rstd) rstd[r] = (float)s;
    }
}

static void bwd_row(int64_t width, int rms, double mean, double rstd, const float *dy, const float *x,
                    const float *gamma, const float *add, float *dx)
{
    double sum_g = 0, sum_gx = 0;
    for (int64_t j = 0; j < width; j++) {
        double g = (double)dy[j] * gamma[j];
        sum_g += rms ? 0 : g;
        sum_gx += g * (x[j] - mean) * rstd;
    }
    for (int64_t j = 0; j < width; j++) {
        double g = (double)dy[j] * gamma[j], normal = (x[j] - mean) * rstd;
        dx[j] = (float)((add ? add[j] : 0) + rstd * (g - sum_g / (double)width - normal * sum_gx / (double)width));
    }
}

void PL_KERNEL(norm_bwd_rows)(int64_t begin, int64_t end, int64_t width, int rms, const float *dy, const float *x,
                              const float *gamma, const float *mean, const float *rstd, const float *add, float *dx,
                              float *partial_gamma, float *partial_beta)
{
    for (int64_t j = 0; j < width; j++) {
        partial_gamma[j] = 0;
        if (partial_beta) partial_beta[j] = 0;
    }
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * width;
        double m = rms ? 0 : mean[r];
        for (int64_t j = 0; j < width; j++) {
            partial_gamma[j] += (float)(dy[at + j] * (x[at + j] - m) * rstd[r]);
            if (partial_beta) partial_beta[j] += dy[at + j];
        }
        bwd_row(width, rms, m, rstd[r], dy + at, x + at, gamma, add ? add + at : NULL, dx + at);
    }
}

void PL_KERNEL(add_blocks)(int64_t begin, int64_t end, int64_t blocks, int64_t ld, const float *partial, float *out)
{
    for (int64_t j = begin; j < end; j++)
        for (int64_t b = 0; b < blocks; b++) out[j] += partial[b * ld + j];
}
