/* What a batch carries from step to step, and codebooks, from what op_carry.c and op_codebook.c say. */
#include <math.h>

#include "base/philox.h"
#include "reference/state.h"

/* The place of sample b of the micro-batch, or -1. */
static int64_t place_of(const operands *o, int first_sample, int64_t places, int64_t b)
{
    const int64_t place = (int64_t)o->in[first_sample][0] % places + b;
    return place < places ? place : -1;
}

static int64_t row_of(const pl_shape *s) { return (int64_t)pl_shape_elems(s) / s->dim[0]; }

void reference_carry_read(operands *o)
{
    const pl_shape *x = &operand(o, 1)->shape;
    const int64_t row = row_of(x), places = operand(o, 0)->shape.dim[0];
    const double below = (double)o->node->attr[0].i;
    for (int64_t e = 0; e < x->dim[0] * row; e++) {
        const int64_t place = place_of(o, 3, places, e / row);
        if (place >= 0 && o->in[2][place] >= 1) o->in[1][e] = o->in[0][place * row + e % row];
        if (below && (o->in[1][e] < -1 || o->in[1][e] >= below)) o->in[1][e] = -1;
    }
    put(o, 0, o->in[1]);
}

void reference_carry_write(operands *o)
{
    const pl_shape *x = &operand(o, 1)->shape;
    const int64_t row = row_of(x), places = operand(o, 0)->shape.dim[0];
    for (int64_t e = 0; e < x->dim[0] * row; e++) {
        const int64_t place = place_of(o, 2, places, e / row);
        if (place >= 0) o->in[0][place * row + e % row] = o->in[1][e];
    }
    put(o, 0, o->in[0]);
}

void reference_halt(operands *o)
{
    const double limit = (double)o->node->attr[0].i;
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[2].i, (uint64_t)o->node->attr[3].i);
    for (int64_t b = 0; b < operand(o, 1)->shape.dim[0]; b++) {
        const int64_t place = place_of(o, 3, operand(o, 0)->shape.dim[0], b);
        uint32_t bits[4];
        if (place < 0) continue;
        pl_philox_block(&philox, (uint32_t)o->in[2][0], (uint64_t)o->in[3][0] + (uint64_t)b, 0, bits);
        const bool explores = pl_uniform_f32(bits[0]) < (float)o->node->attr[1].f && limit > 1;
        const double least = explores ? 2 + floor((double)pl_uniform_f32(bits[1]) * (limit - 1)) : 0;
        const double steps = o->in[0][place] + 1;
        o->in[0][place] = steps >= limit || (o->in[1][b] > 0 && steps >= least) ? 0 : steps;
    }
    put(o, 0, o->in[0]);
}

void reference_ramp(operands *o)
{
    const pl_attr *a = o->node->attr;
    const double step = fmin(o->in[1][0], (double)a[3].i), fallen = step - (double)a[2].i;
    double y = a[0].f;
    if (step > (double)a[1].i) y = step <= (double)a[2].i ? 0 : y - 2 * y * fallen / (double)(a[3].i - a[2].i);
    put(o, 0, &y);
}

void reference_nearest_code(operands *o)
{
    const int64_t rows = pl_shape_rows(&operand(o, 0)->shape), width = pl_shape_last(&operand(o, 0)->shape);
    double *index = scratch(o, (uint64_t)rows), *code = scratch(o, (uint64_t)(rows * width));
    for (int64_t r = 0; r < rows; r++) {
        double least = INFINITY;
        for (int64_t v = 0; v < operand(o, 1)->shape.dim[0]; v++) {
            double d = 0;
            for (int64_t i = 0; i < width; i++) d += pow(o->in[0][r * width + i] - o->in[1][v * width + i], 2);
            if (d < least) least = d, index[r] = (double)v;
        }
        for (int64_t i = 0; i < width; i++) code[r * width + i] = o->in[1][(int64_t)index[r] * width + i];
    }
    put(o, 0, index);
    put(o, 1, code);
}

void reference_code_sum(operands *o)
{
    const pl_shape *z = &operand(o, 1)->shape;
    const int64_t rows = pl_shape_rows(z), width = pl_shape_last(z);
    for (int64_t r = 0; r < rows; r++) {
        double *sum = o->in[2] + (int64_t)o->in[0][r] * (width + 1);
        if (o->in[3] && o->in[3][r / (rows / z->dim[0])] == 0) continue;
        for (int64_t i = 0; i < width; i++) sum[i] += o->in[1][r * width + i];
        sum[width] += 1;
    }
    put(o, 0, o->in[2]);
}

void reference_code_update(operands *o)
{
    const int64_t codes = operand(o, 1)->shape.dim[0], width = operand(o, 1)->shape.dim[1];
    const double rate = o->node->attr[0].f, eps = o->node->attr[1].f;
    double counted = 0, all = 0;
    for (int64_t v = 0; v < codes; v++) counted += o->in[0][v * (width + 1) + width];
    for (int64_t v = 0; v < codes && counted > 0; v++) {
        o->in[2][v] = rate * o->in[2][v] + (1 - rate) * o->in[0][v * (width + 1) + width];
        all += o->in[2][v];
    }
    for (int64_t e = 0; e < codes * width && counted > 0; e++) {
        const int64_t v = e / width;
        o->in[3][e] = rate * o->in[3][e] + (1 - rate) * o->in[0][v * (width + 1) + e % width];
        o->in[1][e] = o->in[3][e] / ((o->in[2][v] + eps) / (all + (double)codes * eps) * all);
    }
    for (int64_t e = 0; e < codes * (width + 1); e++) o->in[0][e] = 0;
    for (int k = 0; k < 4; k++) put(o, k, o->in[k]);
}

void reference_straight_through(operands *o) { put(o, 0, o->in[1]); }
