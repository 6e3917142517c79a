/* Scalar reference of kernels/cpu/capsule.c, sums in double. */
#include <math.h>
#include <stddef.h>

#include "kernels/kernels.h"

static void find_shares(int64_t positions, int64_t capsules, pl_real type, const void *logits, float *share)
{
    for (int64_t k = 0; k < capsules; k++, share += positions) {
        double largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < positions; i++) largest = fmax(largest, pl_real_get(type, logits, i * capsules + k));
        for (int64_t i = 0; i < positions; i++) sum += exp(pl_real_get(type, logits, i * capsules + k) - largest);
        for (int64_t i = 0; i < positions; i++)
            share[i] = (float)(exp(pl_real_get(type, logits, i * capsules + k) - largest) / sum);
    }
}

void PL_KERNEL(capsule_pool)(int64_t positions, int64_t channels, int64_t capsules, pl_real type, const void *t,
                             const void *logits, float *share, void *y)
{
    find_shares(positions, capsules, type, logits, share);
    for (int64_t k = 0; k < capsules; k++)
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0;
            for (int64_t i = 0; i < positions; i++)
                sum += (double)share[k * positions + i] * pl_real_get(type, t, i * channels + c);
            pl_real_put(type, y, k * channels + c, (float)sum);
        }
}

static double worth_of(int64_t channels, pl_real type, const void *dy, const void *t, int64_t k, int64_t i)
{
    double sum = 0;
    for (int64_t c = 0; c < channels; c++)
        sum += (double)pl_real_get(type, dy, k * channels + c) * pl_real_get(type, t, i * channels + c);
    return sum;
}

void PL_KERNEL(capsule_pool_bwd)(int64_t positions, int64_t channels, int64_t capsules, pl_real type, const void *dy,
                                 const void *t, const void *logits, const float *da, const void *partial, float *share,
                                 void *dt, void *dlogits)
{
    float *worth = share + capsules * positions;
    find_shares(positions, capsules, type, logits, share);
    for (int64_t k = 0; k < capsules && dlogits; k++) {
        double mean = 0;
        for (int64_t i = 0; i < positions; i++) {
            double e = worth_of(channels, type, dy, t, k, i) + (da ? da[k * positions + i] : 0);
            worth[k * positions + i] = (float)e;
            mean += share[k * positions + i] * e;
        }
        for (int64_t i = 0; i < positions; i++)
            pl_real_put(type, dlogits, i * capsules + k,
                        (float)(share[k * positions + i] * (worth[k * positions + i] - mean)));
    }
    for (int64_t i = 0; i < positions * channels && dt; i++) {
        double sum = partial ? pl_real_get(type, partial, i) : 0;
        for (int64_t k = 0; k < capsules; k++)
            sum += (double)share[k * positions + i / channels] * pl_real_get(type, dy, k * channels + i % channels);
        pl_real_put(type, dt, i, (float)sum);
    }
}

/* Is i in front of j in the order of top_k? */
static int is_in_front(const float *x, int64_t i, int64_t j)
{
    int nan_i = isnan(x[i]), nan_j = isnan(x[j]);
    if (nan_i || nan_j) return nan_i == nan_j ? i < j : nan_j;
    return x[i] == x[j] ? i < j : x[i] > x[j];
}

/* As many are in front of it as its place says. */
void PL_KERNEL(top_k)(int64_t width, int64_t count, const float *x, int32_t *y)
{
    for (int64_t i = 0; i < width; i++) {
        int64_t place = 0;
        for (int64_t j = 0; j < width; j++) place += is_in_front(x, j, i);
        if (place < count) y[place] = (int32_t)i;
    }
}

void PL_KERNEL(gather_rows_bwd)(int64_t begin, int64_t end, int64_t picks, int64_t width, pl_real type, const void *dy,
                                const int32_t *index, const void *partial, void *dt)
{
    for (int64_t r = 0; r < end - begin; r++)
        for (int64_t c = 0; c < width; c++) {
            double sum = partial ? pl_real_get(type, partial, r * width + c) : 0;
            for (int64_t j = 0; j < picks; j++)
                if (index[j] == begin + r) sum += pl_real_get(type, dy, j * width + c);
            pl_real_put(type, dt, r * width + c, (float)sum);
        }
}

void PL_KERNEL(sum_rows)(int64_t rows, int64_t width, pl_real type, const void *x, void *y)
{
    for (int64_t c = 0; c < width; c++) {
        double sum = 0;
        for (int64_t r = 0; r < rows; r++) sum += pl_real_get(type, x, r * width + c);
        pl_real_put(type, y, c, (float)sum);
    }
}
