/* Scalar reference of kernels/cpu/modulation.c, in double. */
#include "kernels/kernels.h"
#include "kernels/ref/activation.h"

void PL_KERNEL(gate)(int64_t positions, int64_t channels, int64_t gates, pl_real type, const void *x, const void *g,
                     void *y)
{
    for (int64_t i = 0; i < positions * channels; i++) {
        double gate = pl_real_get(type, g, gates == channels ? i : i / channels);
        pl_real_put(type, y, i, (float)(pl_real_get(type, x, i) * sigmoid(gate)));
    }
}

void PL_KERNEL(gate_bwd)(int64_t positions, int64_t channels, int64_t gates, pl_real type, const void *dy,
                         const void *x, const void *g, void *dx, void *dg)
{
    int64_t shared = channels / gates;
    for (int64_t k = 0; k < positions * gates; k++) {
        double gate = pl_real_get(type, g, k), sum = 0;
        for (int64_t i = k * shared; i < (k + 1) * shared; i++) {
            double d = pl_real_get(type, dy, i);
            sum += d * pl_real_get(type, x, i);
            if (dx) pl_real_put(type, dx, i, (float)(d * sigmoid(gate)));
        }
        if (dg) pl_real_put(type, dg, k, (float)(sum * ref_activation_slope(PL_ACT_SIGMOID, gate)));
    }
}

/* From the nearer of the two. */
void PL_KERNEL(blend)(int64_t begin, int64_t end, int64_t shared, int64_t width, pl_real type, const void *a,
                      const void *b, const void *z, void *y, float *g)
{
    for (int64_t i = begin * width; i < end * width; i++) {
        double logit = pl_real_get(type, z, i / width / shared);
        double near = pl_real_get(type, logit > 0 ? a : b, i), far = pl_real_get(type, logit > 0 ? b : a, i);
        pl_real_put(type, y, i, (float)(near + sigmoid(-fabs(logit)) * (far - near)));
        if (g && i % (width * shared) == 0) g[i / width / shared] = (float)sigmoid(logit);
    }
}

void PL_KERNEL(blend_bwd)(int64_t begin, int64_t end, int64_t shared, int64_t width, pl_real type, const void *dy,
                          const void *a, const void *b, const void *z, void *da, void *db, void *dz)
{
    for (int64_t k = begin; k < end; k++) {
        double logit = pl_real_get(type, z, k), sum = 0;
        for (int64_t i = k * shared * width; i < (k + 1) * shared * width; i++) {
            double d = pl_real_get(type, dy, i);
            sum += d * ((double)pl_real_get(type, a, i) - pl_real_get(type, b, i));
            if (da) pl_real_put(type, da, i, (float)(d * sigmoid(logit)));
            if (db) pl_real_put(type, db, i, (float)(d * sigmoid(-logit)));
        }
        if (dz) pl_real_put(type, dz, k, (float)(sum * ref_activation_slope(PL_ACT_SIGMOID, logit)));
    }
}

static void find_shares(int64_t times, pl_real type, const void *e, float *share)
{
    double largest = pl_real_get(type, e, 0), sum = 0;
    for (int64_t t = 1; t < times; t++) largest = fmax(largest, pl_real_get(type, e, t));
    for (int64_t t = 0; t < times; t++) sum += exp(pl_real_get(type, e, t) - largest);
    for (int64_t t = 0; t < times; t++) share[t] = (float)(exp(pl_real_get(type, e, t) - largest) / sum);
}

void PL_KERNEL(softmax_pool)(int64_t times, int64_t channels, pl_real type, const void *x, const void *e, float *share,
                             void *y)
{
    find_shares(times, type, e, share);
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t t = 0; t < times; t++) sum += (double)share[t] * pl_real_get(type, x, t * channels + c);
        pl_real_put(type, y, c, (float)sum);
    }
}

void PL_KERNEL(softmax_pool_bwd)(int64_t times, int64_t channels, pl_real type, const void *dy, const void *x,
                                 const void *e, float *share, void *dx, void *de)
{
    float *dot = share + times;
    double mean = 0;
    find_shares(times, type, e, share);
    for (int64_t t = 0; t < times; t++) {
        double sum = 0;
        for (int64_t c = 0; c < channels; c++)
            sum += (double)pl_real_get(type, dy, c) * pl_real_get(type, x, t * channels + c);
        dot[t] = (float)sum;
        mean += share[t] * sum;
    }
    for (int64_t t = 0; t < times; t++) {
        for (int64_t c = 0; c < channels && dx; c++)
            pl_real_put(type, dx, t * channels + c, share[t] * pl_real_get(type, dy, c));
        if (de) pl_real_put(type, de, t, (float)(share[t] * (dot[t] - mean)));
    }
}
