/* Convolutions, each of the three as a sum over pairs of a pixel of y and a pixel of x that it sees (appendix A). */
#include "reference/state.h"

typedef struct sizes {
    int64_t batch, height, width, in, out_height, out_width, out, kernel, stride, pad;
} sizes;

static sizes sizes_of(const pl_shape *x, const pl_shape *w, const pl_shape *y, const pl_attr *window)
{
    return (sizes){x->dim[0], x->dim[1], x->dim[2], x->dim[3],   y->dim[1],
                   y->dim[2], y->dim[3], w->dim[1], window[0].i, window[1].i};
}

typedef struct pair { /* places of the first channel: of the pixel of y, of that of x, and of their weight */
    int64_t y, x, w;
} pair;

/* f for every pixel of y, tap of the kernel and pixel of x that belong together. */
static void each_pair(const sizes *s, void (*f)(const sizes *, pair, double *, double *, double *), double *y,
                      double *x, double *w)
{
    int64_t pixels = s->batch * s->out_height * s->out_width, taps = s->kernel * s->kernel;
    for (int64_t i = 0; i < pixels * taps; i++) {
        int64_t pixel = i / taps, u = i % taps / s->kernel, v = i % s->kernel;
        int64_t image = pixel / s->out_width / s->out_height;
        int64_t row = pixel / s->out_width % s->out_height * s->stride + u - s->pad;
        int64_t column = pixel % s->out_width * s->stride + v - s->pad;
        if (row < 0 || row >= s->height || column < 0 || column >= s->width) continue;
        pair p = {pixel * s->out, ((image * s->height + row) * s->width + column) * s->in, (u * s->kernel + v) * s->in};
        f(s, p, y, x, w);
    }
}

static int64_t weight_place(const sizes *s, int64_t out, int64_t in)
{
    return out * s->kernel * s->kernel * s->in + in;
}

static void forward(const sizes *s, pair p, double *y, double *x, double *w)
{
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++) y[p.y + o] += x[p.x + c] * w[p.w + weight_place(s, o, c)];
}

static void to_x(const sizes *s, pair p, double *y, double *x, double *w)
{
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++) x[p.x + c] += y[p.y + o] * w[p.w + weight_place(s, o, c)];
}

static void to_w(const sizes *s, pair p, double *y, double *x, double *w)
{
    for (int64_t o = 0; o < s->out; o++)
        for (int64_t c = 0; c < s->in; c++) w[p.w + weight_place(s, o, c)] += y[p.y + o] * x[p.x + c];
}

/* Of each row of pixels, each channel's mean and squared deviations from it. */
static void put_moments(operands *o, const sizes *s, const double *y)
{
    double *moments = scratch(o, (uint64_t)(s->batch * s->out_height * 2 * s->out));
    for (int64_t i = 0; i < s->batch * s->out_height * s->out; i++) {
        const double *first = y + i / s->out * s->out_width * s->out + i % s->out;
        double *mean = moments + i / s->out * 2 * s->out + i % s->out, *squares = mean + s->out;
        for (int64_t q = 0; q < s->out_width; q++) *mean += first[q * s->out] / (double)s->out_width;
        for (int64_t q = 0; q < s->out_width; q++)
            *squares += (first[q * s->out] - *mean) * (first[q * s->out] - *mean);
    }
    put(o, 2, moments);
}

void reference_conv2d(operands *o)
{
    pl_shape shape = o->r->graph->value[o->node->out[0]].shape;
    sizes s = sizes_of(&operand(o, 0)->shape, &operand(o, 1)->shape, &shape, o->node->attr + 1);
    int64_t elems = (int64_t)pl_shape_elems(&shape);
    double *y = scratch(o, (uint64_t)elems), *a = scratch(o, (uint64_t)elems);
    each_pair(&s, forward, y, o->in[0], o->in[1]);
    for (int64_t i = 0; i < elems; i++) {
        y[i] += (o->in[2] ? o->in[2][i % s.out] : 0) + (o->in[3] ? o->in[3][i] : 0);
        a[i] = reference_act((pl_activation)o->node->attr[0].i, y[i]);
    }
    put(o, 0, y);
    put(o, 1, a);
    put_moments(o, &s, y);
}

void reference_conv2d_dx(operands *o)
{
    pl_shape shape = o->r->graph->value[o->node->out[0]].shape;
    pl_activation act = (pl_activation)o->node->attr[0].i;
    sizes s = sizes_of(&shape, &operand(o, 1)->shape, &operand(o, 0)->shape, o->node->attr + 1);
    uint64_t elems = pl_shape_elems(&shape);
    double *dx = scratch(o, elems), *again = scratch(o, elems);
    each_pair(&s, to_x, o->in[0], dx, o->in[1]);
    for (uint64_t i = 0; i < elems; i++) {
        if (o->in[2]) dx[i] += o->in[2][i];
        if (!o->in[3]) continue;
        again[i] = reference_act(act, o->in[3][i]);
        dx[i] *= reference_act_slope(act, o->in[3][i]);
    }
    put(o, 0, dx);
    put(o, 1, again);
}

void reference_conv2d_dw(operands *o)
{
    sizes s = sizes_of(&operand(o, 1)->shape, &operand(o, 2)->shape, &operand(o, 0)->shape, o->node->attr);
    each_pair(&s, to_w, o->in[0], o->in[1], o->in[2]);
    put(o, 0, o->in[2]);
}

/* y[b, i·s + u, j·s + v] += x[b, i, j]·W[·, u, v] */
void reference_conv_transpose2d(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape, *w = &operand(o, 1)->shape;
    const pl_shape *y = &o->r->graph->value[o->node->out[0]].shape;
    int64_t stride = o->node->attr[0].i, kernel = w->dim[1], in = w->dim[0], out = w->dim[3];
    double *to = scratch(o, pl_shape_elems(y));
    for (uint64_t e = 0; e < pl_shape_elems(y); e++)
        to[e] = (o->in[2] ? o->in[2][e % (uint64_t)out] : 0) + (o->in[3] ? o->in[3][e] : 0);
    for (int64_t p = 0; p < x->dim[0] * x->dim[1] * x->dim[2]; p++)
        for (int64_t k = 0; k < kernel * kernel * in * out; k++) {
            int64_t c = k % out, n = k / out % in, v = k / out / in % kernel, u = k / out / in / kernel;
            int64_t row = p / x->dim[2] % x->dim[1] * stride + u, column = p % x->dim[2] * stride + v;
            to[((p / x->dim[2] / x->dim[1] * y->dim[1] + row) * y->dim[2] + column) * out + c] +=
                o->in[0][p * in + n] * o->in[1][((n * kernel + u) * kernel + v) * out + c];
        }
    put(o, 0, to);
}
