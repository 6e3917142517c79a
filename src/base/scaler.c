#include "base/scaler.h"

#include <math.h>

pl_scaler pl_scaler_finish(const pl_scaler_sum *s)
{
    const double variance = s->count ? s->squares / (double)s->count : 0;
    return (pl_scaler){s->mean, variance > 0 ? sqrt(variance) : 1};
}

void pl_scale_each(float *x, uint64_t count)
{
    pl_scaler_sum sum = {0};
    for (uint64_t i = 0; i < count; i++) pl_scaler_add(&sum, (double)x[i]);
    const pl_scaler s = pl_scaler_finish(&sum);
    for (uint64_t i = 0; i < count; i++) x[i] = (float)pl_scale(&s, (double)x[i]);
}
