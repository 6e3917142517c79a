/* Scalar reference of kernels/cpu/field.c, in double. */
#include <math.h>
#include <stddef.h>

#include "kernels/kernels.h"

static double mean_of(int64_t count, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum / (double)count;
}

static double products(int64_t count, const float *x, double mx, const float *p, double mp)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (x[i] - mx) * (p[i] - mp);
    return sum;
}

static double variance(int64_t count, const float *x)
{
    double mean = mean_of(count, x);
    return count > 1 ? products(count, x, mean, x, mean) / (double)(count - 1) : 0;
}

static float least(int64_t count, const float *x)
{
    float low = x[0];
    for (int64_t i = 1; i < count; i++) low = x[i] < low ? x[i] : low;
    return low;
}

static float most(int64_t count, const float *x)
{
    float high = x[0];
    for (int64_t i = 1; i < count; i++) high = x[i] > high ? x[i] : high;
    return high;
}

static double advance(const pl_evolve *how, double x, double y)
{
    if (how->policy == PL_POLICY_RESIDUAL) return x + how->dt * y;
    if (how->policy == PL_POLICY_CONVEX) return how->alpha * x + (1 - (double)how->alpha) * y;
    return y;
}

static void post_process(const pl_evolve *how, int64_t count, float *x)
{
    double low = least(count, x), range = most(count, x) - low, mean = mean_of(count, x);
    double deviation = sqrt(variance(count, x)) + 1e-8;
    for (int64_t i = 0; i < count; i++)
        if (how->post_process == PL_POST_MINMAX)
            x[i] = (float)(range == 0 ? 0 : (x[i] - low) / range);
        else if (how->post_process == PL_POST_ZSCORE)
            x[i] = (float)((x[i] - mean) / deviation);
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] < how->clamp_low ? how->clamp_low : x[i] > how->clamp_high ? how->clamp_high : x[i];
}

void PL_KERNEL(evolve)(const pl_evolve *how, int64_t count, float *x, float *previous, pl_real type, const void *y)
{
    for (int64_t i = 0; i < count; i++) {
        if (previous) previous[i] = x[i];
        x[i] = (float)advance(how, x[i], pl_real_get(type, y, i));
    }
    post_process(how, count, x);
}

static double entropy(int64_t count, const float *x)
{
    int64_t bins[PL_FIELD_BINS + 1] = {0};
    double low = least(count, x), range = most(count, x) - low, sum = 0;
    if (range == 0) return 0;
    for (int64_t i = 0; i < count; i++) bins[(int)((x[i] - low) * (PL_FIELD_BINS / range))]++;
    bins[PL_FIELD_BINS - 1] += bins[PL_FIELD_BINS];
    for (int b = 0; b < PL_FIELD_BINS; b++)
        if (bins[b]) sum -= (double)bins[b] / (double)count * log((double)bins[b] / (double)count);
    return sum;
}

static double correlation(int64_t count, const float *x, const float *p)
{
    double mx = mean_of(count, x), mp = mean_of(count, p);
    if (least(count, x) == most(count, x) || least(count, p) == most(count, p)) return 0;
    return products(count, x, mx, p, mp) / sqrt(products(count, x, mx, x, mx) * products(count, p, mp, p, mp));
}

void PL_KERNEL(field_metrics)(int64_t count, const float *x, const float *previous, float *metrics)
{
    double energy = products(count, x, 0, x, 0), magnitude = 0;
    for (int64_t i = 0; i < count; i++) magnitude += fabs(x[i]) / (double)count;
    int finite = isfinite(energy);
    metrics[PL_FIELD_ENERGY] = (float)energy;
    metrics[PL_FIELD_ENTROPY] = finite ? (float)entropy(count, x) : NAN;
    metrics[PL_FIELD_AUTOCORRELATION] = !finite ? NAN : previous ? (float)correlation(count, x, previous) : 0;
    metrics[PL_FIELD_VARIANCE] = finite ? (float)variance(count, x) : NAN;
    metrics[PL_FIELD_MEAN_MAGNITUDE] = finite ? (float)magnitude : NAN;
}
