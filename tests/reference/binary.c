/* Layers of signs, from what op_binary.c says. Packed weights are the numbers that they stand for. */
#include <math.h>
#include <string.h>

#include "reference/state.h"

static double sign_of(double x) { return x < 0 ? -1 : 1; }

static double mean_size(int64_t k, const double *x)
{
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += fabs(x[i]);
    return sum / (double)k;
}

void reference_pack_signs(operands *o)
{
    const pl_shape *w = &operand(o, 0)->shape;
    const int64_t n = w->dim[0], k = w->dim[1];
    double *packed = scratch(o, (uint64_t)(n * k));
    for (int64_t i = 0; i < n * k; i++)
        packed[i] = sign_of(o->in[0][i]) * (double)(float)mean_size(k, o->in[0] + i / k * k);
    put(o, 0, packed);
}

void reference_linear_binary(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const int64_t rows = pl_shape_rows(x), k = pl_shape_last(x), n = operand(o, 1)->shape.dim[0];
    double *y = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows * n; i++) {
        const double *row = o->in[0] + i / n * k;
        double sum = 0;
        for (int64_t p = 0; p < k; p++) sum += sign_of(row[p]) * o->in[1][i % n * k + p];
        y[i] = mean_size(k, row) * sum + (o->in[2] ? o->in[2][i % n] : 0) + (o->in[3] ? o->in[3][i] : 0);
    }
    put(o, 0, y);
}

void reference_linear_binary_dx(operands *o)
{
    const int64_t rows = pl_shape_rows(&operand(o, 2)->shape), k = pl_shape_last(&operand(o, 2)->shape),
                  n = pl_shape_last(&operand(o, 0)->shape);
    double *dx = scratch(o, (uint64_t)(rows * k));
    for (int64_t i = 0; i < rows; i++) {
        const double *x = o->in[2] + i * k;
        double *d = dx + i * k, of_beta = 0;
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++) d[p] += o->in[0][i * n + j] * o->in[1][j * k + p];
        for (int64_t p = 0; p < k; p++) of_beta += d[p] * sign_of(x[p]);
        for (int64_t p = 0; p < k; p++)
            d[p] = mean_size(k, x) * (fabs(x[p]) <= 1) * d[p] + (x[p] == 0 ? 0 : of_beta * sign_of(x[p])) / (double)k;
    }
    put(o, 0, dx);
}

void reference_linear_binary_dw(operands *o)
{
    const int64_t rows = pl_shape_rows(&operand(o, 1)->shape), k = pl_shape_last(&operand(o, 1)->shape),
                  n = pl_shape_last(&operand(o, 0)->shape);
    for (int64_t i = 0; i < rows; i++) {
        const double *x = o->in[1] + i * k, beta = mean_size(k, x);
        for (int64_t j = 0; j < n; j++)
            for (int64_t p = 0; p < k; p++) o->in[2][j * k + p] += o->in[0][i * n + j] * beta * sign_of(x[p]);
    }
    put(o, 0, o->in[2]);
}

void reference_latent_gradient(operands *o)
{
    const int64_t n = operand(o, 1)->shape.dim[0], k = operand(o, 1)->shape.dim[1];
    for (int64_t j = 0; j < n; j++) {
        const double *w = o->in[1] + j * k, alpha = mean_size(k, w);
        for (int64_t p = 0; p < k; p++) o->in[0][j * k + p] *= 1 / (double)k + alpha * (fabs(w[p]) <= 1);
    }
    put(o, 0, o->in[0]);
}
