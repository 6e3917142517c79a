/* y = act(x W1ᵀ + b1) W2ᵀ + b2 (+ residual), a row and a hidden unit after the other, and its derivatives; likewise
 * y = (act(x Wgᵀ)·(x Wuᵀ)) Wdᵀ (+ residual). */
#include "reference/state.h"

static double hidden_of(const double *x, const double *w1, const double *b1, int64_t j, int64_t in)
{
    double u = b1 ? b1[j] : 0;
    for (int64_t p = 0; p < in; p++) u += x[p] * w1[j * in + p];
    return u;
}

void reference_feed_forward(operands *o)
{
    const pl_shape *w1 = &operand(o, 1)->shape;
    int64_t rows = pl_shape_rows(&operand(o, 0)->shape), in = w1->dim[1], hidden = w1->dim[0];
    int64_t out = operand(o, 2)->shape.dim[0];
    double *y = scratch(o, (uint64_t)(rows * out));
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t n = 0; n < out; n++)
            y[i * out + n] = (o->in[4] ? o->in[4][n] : 0) + (o->in[5] ? o->in[5][i * out + n] : 0);
        for (int64_t j = 0; j < hidden; j++) {
            double u = hidden_of(o->in[0] + i * in, o->in[1], o->in[3], j, in);
            double a = reference_act((pl_activation)o->node->attr[0].i, u);
            for (int64_t n = 0; n < out; n++) y[i * out + n] += a * o->in[2][n * hidden + j];
        }
    }
    put(o, 0, y);
}

void reference_feed_forward_bwd(operands *o)
{
    const pl_shape *w1 = &operand(o, 2)->shape;
    int64_t rows = pl_shape_rows(&operand(o, 1)->shape), in = w1->dim[1], hidden = w1->dim[0];
    int64_t out = operand(o, 3)->shape.dim[0];
    pl_activation act = (pl_activation)o->node->attr[0].i;
    double *dx = scratch(o, (uint64_t)(rows * in));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < hidden; j++) {
            const double *x = o->in[1] + i * in, *dy = o->in[0] + i * out;
            double u = hidden_of(x, o->in[2], o->in[6], j, in), da = 0;
            for (int64_t n = 0; n < out; n++) {
                da += dy[n] * o->in[3][n * hidden + j];
                if (o->in[5]) o->in[5][n * hidden + j] += dy[n] * reference_act(act, u);
            }
            double du = da * reference_act_slope(act, u);
            if (o->in[7]) o->in[7][j] += du;
            for (int64_t p = 0; p < in; p++) {
                dx[i * in + p] += du * o->in[2][j * in + p];
                if (o->in[4]) o->in[4][j * in + p] += du * x[p];
            }
        }
    for (int64_t i = 0; i < rows * in && o->in[8]; i++) dx[i] += o->in[8][i];
    put(o, 0, dx);
    if (o->in[4]) put(o, 1, o->in[4]);
    if (o->in[5]) put(o, 2, o->in[5]);
    if (o->in[7]) put(o, 3, o->in[7]);
}

void reference_gated_activation(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape;
    const int64_t joined = o->in[1] ? 1 : 2, rows = pl_shape_rows(x), hidden = pl_shape_last(x) / joined;
    double *y = scratch(o, (uint64_t)(rows * hidden));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < hidden; j++)
            y[i * hidden + j] = reference_act((pl_activation)o->node->attr[0].i, o->in[0][joined * i * hidden + j]) *
                                (o->in[1] ? o->in[1][i * hidden + j] : o->in[0][(2 * i + 1) * hidden + j]);
    put(o, 0, y);
}

void reference_gated_activation_bwd(operands *o)
{
    const pl_activation act = (pl_activation)o->node->attr[0].i;
    const pl_shape *x = &operand(o, 1)->shape;
    const int64_t rows = pl_shape_rows(x), hidden = pl_shape_last(x) / 2;
    double *dx = scratch(o, (uint64_t)(2 * rows * hidden));
    for (int64_t i = 0; i < rows * hidden; i++) {
        const int64_t gate = i / hidden * 2 * hidden + i % hidden, up = gate + hidden;
        dx[gate] = o->in[0][i] * o->in[1][up] * reference_act_slope(act, o->in[1][gate]);
        dx[up] = o->in[0][i] * reference_act(act, o->in[1][gate]);
    }
    put(o, 0, dx);
}

void reference_gated_feed_forward(operands *o)
{
    const pl_shape *wd = &operand(o, 2)->shape;
    int64_t rows = pl_shape_rows(&operand(o, 0)->shape), in = operand(o, 1)->shape.dim[1];
    int64_t hidden = wd->dim[1], out = wd->dim[0];
    double *y = scratch(o, (uint64_t)(rows * out));
    for (int64_t i = 0; i < rows * out && o->in[3]; i++) y[i] = o->in[3][i];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < hidden; j++) {
            double gate = hidden_of(o->in[0] + i * in, o->in[1], NULL, j, in);
            double up = hidden_of(o->in[0] + i * in, o->in[1], NULL, hidden + j, in);
            double h = reference_act((pl_activation)o->node->attr[0].i, gate) * up;
            for (int64_t n = 0; n < out; n++) y[i * out + n] += h * o->in[2][n * hidden + j];
        }
    put(o, 0, y);
}

/* What a gradient of one of the two products' element j does: to dx and to the row of the weights. */
static void pass_on(operands *o, double gradient, const double *x, double *dx, int64_t j, int64_t in)
{
    for (int64_t p = 0; p < in; p++) {
        dx[p] += gradient * o->in[2][j * in + p];
        if (o->in[4]) o->in[4][j * in + p] += gradient * x[p];
    }
}

void reference_gated_feed_forward_bwd(operands *o)
{
    const pl_shape *wd = &operand(o, 3)->shape;
    int64_t rows = pl_shape_rows(&operand(o, 1)->shape), in = operand(o, 2)->shape.dim[1];
    int64_t hidden = wd->dim[1], out = wd->dim[0];
    pl_activation act = (pl_activation)o->node->attr[0].i;
    double *dx = scratch(o, (uint64_t)(rows * in));
    for (int64_t i = 0; i < rows * in && o->in[6]; i++) dx[i] = o->in[6][i];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < hidden; j++) {
            const double *x = o->in[1] + i * in, *dy = o->in[0] + i * out;
            double gate = hidden_of(x, o->in[2], NULL, j, in), up = hidden_of(x, o->in[2], NULL, hidden + j, in);
            double dh = 0;
            for (int64_t n = 0; n < out; n++) {
                dh += dy[n] * o->in[3][n * hidden + j];
                if (o->in[5]) o->in[5][n * hidden + j] += dy[n] * reference_act(act, gate) * up;
            }
            pass_on(o, dh * up * reference_act_slope(act, gate), x, dx + i * in, j, in);
            pass_on(o, dh * reference_act(act, gate), x, dx + i * in, hidden + j, in);
        }
    put(o, 0, dx);
    if (o->in[4]) put(o, 1, o->in[4]);
    if (o->in[5]) put(o, 2, o->in[5]);
}
