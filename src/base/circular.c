#include "base/circular.h"

#include <math.h>

/* Amplitudes of the frequencies 0, 1, … / n, those on both sides as one; how many of them count. */
static int64_t amplitudes(int64_t n, double width, double *amplitude)
{
    int64_t k = 0;
    for (; k <= n / 2; k++) {
        double x = (double)k / (double)n * width, both = k == 0 || 2 * k == n ? 1 : 2;
        amplitude[k] = both * exp(-x * x / 2) / (double)n;
        if (x > 9) break; /* below 1e-17 of the first */
    }
    return k <= n / 2 ? k : n / 2 + 1;
}

static int64_t radius_of(int64_t n, const double *weight)
{
    double all = 0, tail = 0;
    int64_t radius = n / 2;
    for (int64_t j = n / 2; j >= 0; j--) all += weight[j] * weight[j];
    while (radius > 0 && tail + weight[radius] * weight[radius] <= 1e-14 * all) {
        tail += weight[radius] * weight[radius];
        radius--;
    }
    return radius;
}

int64_t pl_circular_gaussian(int64_t n, double width, double *scratch, double *weight)
{
    double *cosine = scratch, *amplitude = scratch + n;
    int64_t frequencies = amplitudes(n, width, amplitude);
    for (int64_t i = 0; i < n; i++) cosine[i] = cos(6.283185307179586476925 * (double)i / (double)n);
    for (int64_t j = 0; j <= n / 2; j++) {
        weight[j] = 0;
        for (int64_t k = 0, at = 0; k < frequencies; k++, at = at + j < n ? at + j : at + j - n)
            weight[j] += amplitude[k] * cosine[at];
    }
    int64_t radius = radius_of(n, weight);
    if (n % 2 == 0 && radius == n / 2) weight[radius] /= 2;
    return radius;
}
