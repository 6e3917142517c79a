/* Scalar reference of kernels/cpu/optimizer.c, in double. */
#include "kernels/kernels.h"
#include "kernels/ref/adamw_direction.h"

void PL_KERNEL(adamw)(int64_t begin, int64_t end, const pl_adamw_rates *k, float *w, float *m, float *v, const float *g)
{
    for (int64_t i = begin; i < end; i++) {
        double gradient = (double)g[i] * k->grad_scale;
        m[i] = (float)(k->beta1 * (double)m[i] + k->rest1 * gradient);
        v[i] = (float)(k->beta2 * (double)v[i] + k->rest2 * gradient * gradient);
        double step = k->rate * pl_adamw_direction(k, (double)m[i], sqrt((double)v[i]));
        w[i] = (float)(w[i] - (k->decay * (double)w[i] + step));
        if (fabs((double)w[i]) > k->limit) w[i] = copysignf(k->limit, w[i]);
    }
}

void PL_KERNEL(ema)(int64_t begin, int64_t end, float rest, float *average, const float *w)
{
    for (int64_t i = begin; i < end; i++) average[i] = (float)(average[i] + rest * ((double)w[i] - average[i]));
}

double PL_KERNEL(sum_squares)(int64_t begin, int64_t end, const float *x)
{
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += (double)x[i] * x[i];
    return sum;
}
