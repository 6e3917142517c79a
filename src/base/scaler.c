#include "base/scaler.h"

#include <math.h>

pl_scaler pl_scaler_finish(const pl_scaler_sum *s)
{
    const double variance = s->count ? s->squares / (double)s->count : 0;
    return (pl_scaler){s->mean, variance > 0 ? sqrt(variance) : 1};
}
