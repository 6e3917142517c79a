/* Products of matrices. Linear: y = x Wᵀ + b, dx = dy W, dW += dyᵀ x, db += Σ dy. */
#include "reference/state.h"

static int64_t rows_of(const operands *o, int in) { return pl_shape_rows(&operand(o, in)->shape); }
static int64_t last_of(const operands *o, int in) { return pl_shape_last(&operand(o, in)->shape); }

void reference_linear(operands *o)
{
    int64_t rows = rows_of(o, 0), k = last_of(o, 0), n = operand(o, 1)->shape.dim[0];
    double *y = scratch(o, (uint64_t)(rows * n)), *a = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) {
            double s = 0;
            for (int64_t p = 0; p < k; p++) s += o->in[0][i * k + p] * o->in[1][j * k + p];
            if (o->in[2]) s += o->in[2][j];
            if (o->in[3]) s += o->in[3][i * n + j];
            y[i * n + j] = s;
            a[i * n + j] = reference_act((pl_activation)o->node->attr[0].i, s);
        }
    put(o, 0, y);
    put(o, 1, a);
}

void reference_linear_dx(operands *o)
{
    int64_t rows = rows_of(o, 0), n = last_of(o, 0), k = operand(o, 1)->shape.dim[1];
    pl_activation act = (pl_activation)o->node->attr[0].i;
    double *dx = scratch(o, (uint64_t)(rows * k)), *again = scratch(o, (uint64_t)(rows * k));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t p = 0; p < k; p++) {
            double s = 0;
            for (int64_t j = 0; j < n; j++) s += o->in[0][i * n + j] * o->in[1][j * k + p];
            if (o->in[2]) s += o->in[2][i * k + p];
            if (o->in[3]) {
                again[i * k + p] = reference_act(act, o->in[3][i * k + p]);
                s *= reference_act_slope(act, o->in[3][i * k + p]);
            }
            dx[i * k + p] = s;
        }
    put(o, 0, dx);
    put(o, 1, again);
}

void reference_linear_dw(operands *o)
{
    int64_t rows = rows_of(o, 0), n = last_of(o, 0), k = last_of(o, 1);
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = 0; i < rows; i++) o->in[2][j * k + p] += o->in[0][i * n + j] * o->in[1][i * k + p];
    put(o, 0, o->in[2]);
}

void reference_column_sum(operands *o)
{
    int64_t n = (int64_t)pl_shape_elems(&operand(o, 1)->shape);
    int64_t rows = (int64_t)pl_shape_elems(&operand(o, 0)->shape) / n;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < n; j++) o->in[1][j] += o->in[0][i * n + j];
    put(o, 0, o->in[1]);
}
