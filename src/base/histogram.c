#include "base/histogram.h"

#include <math.h>

static int bin_of(float x)
{
    if (!(x > 0)) return 0;
    return x < 1 ? (int)(x * PL_HISTOGRAM_BINS) : PL_HISTOGRAM_BINS - 1;
}

void pl_histogram_add(pl_histogram *h, const float *x, uint64_t count)
{
    if (h->count == 0) h->least = INFINITY, h->largest = -INFINITY;
    for (uint64_t i = 0; i < count; i++) {
        h->bin[bin_of(x[i])]++;
        if (x[i] < h->least) h->least = x[i];
        if (x[i] > h->largest) h->largest = x[i];
    }
    h->count += count;
}

/* Of the number with so many before it. */
static double middle_of(const pl_histogram *h, uint64_t before)
{
    uint64_t so_far = 0;
    int i = 0;
    while (i < PL_HISTOGRAM_BINS - 1 && so_far + h->bin[i] <= before) so_far += h->bin[i++];
    return (i + 0.5) / PL_HISTOGRAM_BINS;
}

double pl_histogram_median(const pl_histogram *h)
{
    if (h->count == 0) return 0;
    const double middle = (middle_of(h, (h->count - 1) / 2) + middle_of(h, h->count / 2)) / 2;
    return fmin(fmax(middle, (double)h->least), (double)h->largest);
}
