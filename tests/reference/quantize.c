/* What a calibration sees, from what op_quantize.c and base/quantize.h say. */
#include <math.h>

#include "base/quantize.h"
#include "reference/state.h"

void reference_observe_extremes(operands *o)
{
    const uint64_t count = pl_shape_elems(&operand(o, 0)->shape);
    double *seen = o->in[1];
    for (uint64_t i = 0; i < count; i++) {
        const double x = o->in[0][i];
        if (!isfinite(x)) {
            seen[2]++;
            continue;
        }
        seen[0] = fmin(seen[0], x);
        seen[1] = fmax(seen[1], x);
    }
    put(o, 0, seen);
}

/* In float, as it is defined: a bin's edge is where its numbers are rounded to. */
void reference_observe_spread(operands *o)
{
    const uint64_t count = pl_shape_elems(&operand(o, 0)->shape);
    const float limit = fmaxf(-(float)o->in[1][0], (float)o->in[1][1]), scale = (float)PL_SPREAD_HALF / limit;
    for (uint64_t i = 0; i < count; i++) {
        const float x = (float)o->in[0][i];
        const double place = isfinite(scale) ? floor((double)(x * scale + (float)PL_SPREAD_HALF)) : PL_SPREAD_HALF;
        if (isfinite(x)) o->in[2][(int)fmin(fmax(place, 0), PL_SPREAD_BINS - 1)]++;
    }
    put(o, 0, o->in[2]);
}
