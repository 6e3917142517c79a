#include "base/difference.h"

#include <math.h>

void pl_difference_add_row(pl_difference *d, uint64_t width, pl_real real, const void *row, const float *wide)
{
    double product = 0, a = 0, b = 0;
    for (uint64_t i = 0; i < width; i++) {
        const double x = (double)pl_real_get(real, row, (int64_t)i), y = (double)wide[i];
        product += x * y, a += x * x, b += y * y;
        d->off += (x - y) * (x - y);
    }
    d->size += b;
    if (width < 2) return;
    const double cosine = a > 0 && b > 0 ? product / sqrt(a * b) : a == b;
    d->sum += cosine;
    d->least = d->rows ? fmin(d->least, cosine) : cosine;
    d->rows++;
}

double pl_difference_share(const pl_difference *d) { return sqrt(d->size > 0 ? d->off / d->size : d->off); }
double pl_difference_mean_cosine(const pl_difference *d) { return d->rows ? d->sum / (double)d->rows : 1; }
double pl_difference_least_cosine(const pl_difference *d) { return d->rows ? d->least : 1; }
