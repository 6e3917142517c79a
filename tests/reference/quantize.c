/* What a calibration sees, from what op_quantize.c and base/quantize.h say. */
#include <math.h>
#include <string.h>

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

void reference_observe_difference(operands *o)
{
    const uint64_t count = pl_shape_elems(&operand(o, 0)->shape);
    double *sums = o->in[2];
    for (uint64_t i = 0; i < count; i++) {
        const double x = o->in[0][i], d = x - o->in[1][i];
        sums[0] += d * d, sums[1] += x * x;
    }
    put(o, 0, sums);
}

void reference_overwrite(operands *o) { put(o, 0, o->in[1]); }

/* ---- linear_int8: weights are the numbers that they stand for ---- */

/* What it was rounded to, without its zero. */
static double rounded(const operands *o, const double *x, pl_quantization q)
{
    return (operand(o, 0)->dtype == PL_DTYPE_U8 ? *x : (double)pl_quantize(q, (float)*x)) - q.zero;
}

/* x Wᵀ + b, n columns, in room of the state. */
static double *product(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const int64_t rows = pl_shape_rows(x), k = pl_shape_last(x), n = operand(o, 1)->shape.dim[0];
    const pl_quantization q = pl_quantization_of((float)o->in[2][0], (float)o->in[2][1]);
    double *y = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows * n; i++) {
        const double *row = o->in[0] + i / n * k;
        const int64_t j = i % n;
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += rounded(o, row + p, q) * o->in[1][j * k + p];
        y[i] = sum * (double)q.scale + (o->in[3] ? o->in[3][j] : 0);
    }
    return y;
}

void reference_linear_int8(operands *o)
{
    const int64_t all = pl_shape_rows(&operand(o, 0)->shape) * operand(o, 1)->shape.dim[0];
    double *y = product(o), *act = scratch(o, (uint64_t)all);
    for (int64_t i = 0; i < all; i++) {
        y[i] += o->in[4] ? o->in[4][i] : 0;
        act[i] = reference_act((pl_activation)o->node->attr[0].i, y[i]);
    }
    put(o, 0, y);
    put(o, 1, act);
}

void reference_hidden_int8(operands *o)
{
    const int64_t n = operand(o, 1)->shape.dim[0], sides = o->node->attr[1].i ? 2 : 1, width = n / sides;
    const int64_t rows = pl_shape_rows(&operand(o, 0)->shape);
    const double *y = product(o);
    double *h = scratch(o, (uint64_t)(rows * width));
    for (int64_t i = 0; i < rows * width; i++) {
        const double *row = y + i / width * n, passed = sides == 2 ? row[width + i % width] : 1;
        h[i] = reference_act((pl_activation)o->node->attr[0].i, row[i % width]) * passed;
        if (o->in[4])
            h[i] = (double)pl_quantize(pl_quantization_of((float)o->in[4][0], (float)o->in[4][1]), (float)h[i]);
    }
    put(o, 0, h);
}
