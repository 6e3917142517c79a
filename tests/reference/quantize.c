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

/* ---- linear_int8: packed weights are bytes, one to a double here ---- */

static uint32_t word_at(const double *bytes, uint64_t at)
{
    uint32_t word = 0;
    for (int i = 0; i < 4; i++) word |= (uint32_t)bytes[at + (uint64_t)i] << 8 * i;
    return word;
}

static double scale_at(const double *packed, int64_t j)
{
    const uint32_t word = word_at(packed, 4 * (uint64_t)j);
    float scale;
    memcpy(&scale, &word, sizeof scale);
    return (double)scale;
}

/* Behind the scales and the sums of all rows of whole panels come the panels. */
static double weight_at(const double *packed, int64_t n, int64_t k, int64_t j, int64_t p)
{
    const int64_t rows = (n + PL_INT8_PANEL - 1) / PL_INT8_PANEL * PL_INT8_PANEL, fours = (k + 3) / 4;
    const int64_t panel = j / PL_INT8_PANEL * fours * PL_INT8_PANEL * 4;
    const double byte = packed[8 * rows + panel + (p / 4 * PL_INT8_PANEL + j % PL_INT8_PANEL) * 4 + p % 4];
    return byte < 128 ? byte : byte - 256;
}

/* What it was rounded to, without its zero. */
static double rounded(const operands *o, const double *x, pl_quantization q)
{
    return (operand(o, 0)->dtype == PL_DTYPE_U8 ? *x : (double)pl_quantize(q, (float)*x)) - q.zero;
}

/* x Wᵀ + b, n columns, in room of the state. */
static double *product(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const int64_t rows = pl_shape_rows(x), k = pl_shape_last(x), n = o->node->attr[0].i;
    const pl_quantization q = pl_quantization_of((float)o->in[2][0], (float)o->in[2][1]);
    double *y = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows * n; i++) {
        const double *row = o->in[0] + i / n * k;
        const int64_t j = i % n;
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += rounded(o, row + p, q) * weight_at(o->in[1], n, k, j, p);
        y[i] = sum * (double)q.scale * scale_at(o->in[1], j) + (o->in[3] ? o->in[3][j] : 0);
    }
    return y;
}

void reference_linear_int8(operands *o)
{
    const int64_t all = pl_shape_rows(&operand(o, 0)->shape) * o->node->attr[0].i;
    double *y = product(o), *act = scratch(o, (uint64_t)all);
    for (int64_t i = 0; i < all; i++) {
        y[i] += o->in[4] ? o->in[4][i] : 0;
        act[i] = reference_act((pl_activation)o->node->attr[1].i, y[i]);
    }
    put(o, 0, y);
    put(o, 1, act);
}

void reference_hidden_int8(operands *o)
{
    const int64_t n = o->node->attr[0].i, sides = o->node->attr[2].i ? 2 : 1, width = n / sides;
    const int64_t rows = pl_shape_rows(&operand(o, 0)->shape);
    const double *y = product(o);
    double *h = scratch(o, (uint64_t)(rows * width));
    for (int64_t i = 0; i < rows * width; i++) {
        const double *row = y + i / width * n, passed = sides == 2 ? row[width + i % width] : 1;
        h[i] = reference_act((pl_activation)o->node->attr[1].i, row[i % width]) * passed;
        if (o->in[4])
            h[i] = (double)pl_quantize(pl_quantization_of((float)o->in[4][0], (float)o->in[4][1]), (float)h[i]);
    }
    put(o, 0, h);
}
