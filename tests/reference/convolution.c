/* Convolutions, each of the three as a sum over pairs of a pixel of y and a pixel of x that it sees. */
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

/* ---- with a pool behind it ---- */

static sizes sizes_of_pool(operands *o, int x)
{
    const pl_shape *from = &operand(o, x)->shape, *w = &operand(o, x + 1)->shape;
    const pl_attr *window = o->node->attr;
    pl_shape y = *from;
    for (int k = 1; k < 3; k++) y.dim[k] = (from->dim[k] + 2 * window[1].i - w->dim[1]) / window[0].i + 1;
    y.dim[3] = w->dim[0];
    return sizes_of(from, w, &y, window);
}

static double *make_y(operands *o, const sizes *s, int x, int bias)
{
    const int64_t elems = s->batch * s->out_height * s->out_width * s->out;
    double *y = scratch(o, (uint64_t)elems);
    each_pair(s, forward, y, o->in[x], o->in[x + 1]);
    for (int64_t i = 0; i < elems; i++) y[i] += o->in[bias] ? o->in[bias][i % s->out] : 0;
    return y;
}

/* Number e of the pool: the first element of its window in y. */
static int64_t window_of(const sizes *s, int64_t e)
{
    const int64_t h = s->out_height / 2, w = s->out_width / 2, c = e % s->out, j = e / s->out % w;
    const int64_t i = e / s->out / w % h, b = e / s->out / w / h;
    return ((b * s->out_height + 2 * i) * s->out_width + 2 * j) * s->out + c;
}

static int64_t place_in(const sizes *s, int k) { return (k / 2 * s->out_width + k % 2) * s->out; }

static int64_t pooled_elems(const sizes *s) { return s->batch * (s->out_height / 2) * (s->out_width / 2) * s->out; }

/* What a norm and film would make largest: by the sign of their slope. */
void reference_conv2d_pool(operands *o)
{
    const sizes s = sizes_of_pool(o, 0);
    const int64_t count = pooled_elems(&s);
    double *y = make_y(o, &s, 0, 3), *pooled = scratch(o, (uint64_t)count), *place = scratch(o, (uint64_t)count);
    for (int64_t e = 0; e < count; e++) {
        const int64_t first = window_of(&s, e), c = e % s.out, b = e / (count / s.batch);
        const double slope = o->in[2][c] * (o->in[4] ? o->in[4][2 * b * s.out + c] : 1);
        int best = 0;
        for (int k = 1; k < 4; k++)
            if (slope * y[first + place_in(&s, k)] > slope * y[first + place_in(&s, best)]) best = k;
        pooled[e] = y[first + place_in(&s, best)];
        place[e] = best;
    }
    put(o, 0, pooled);
    put(o, 1, place);
    put_moments(o, &s, y);
    put(o, 3, y);
}

/* dy in the place of y: shift + slope·(y − mean), and what reached the pool. */
static void spread(const sizes *s, double *y, const double *g, const double *argmax, const double *rows)
{
    for (int64_t i = 0; i < s->batch * s->out_height * s->out_width * s->out; i++) {
        const int64_t c = i % s->out;
        y[i] = rows[c] + rows[s->out + c] * (y[i] - rows[2 * s->out + c]);
    }
    for (int64_t e = 0; e < pooled_elems(s); e++) y[window_of(s, e) + place_in(s, (int)argmax[e])] += g[e];
}

void reference_batch_norm_spread(operands *o)
{
    const int64_t *dim = operand(o, 3)->shape.dim;
    const sizes s = {.batch = dim[0], .out_height = dim[1], .out_width = dim[2], .out = dim[3]};
    spread(&s, o->in[3], o->in[0], o->in[1], o->in[2]);
    put(o, 0, o->in[3]);
}

void reference_conv2d_pool_bwd(operands *o)
{
    const sizes s = sizes_of_pool(o, 3);
    double *y = make_y(o, &s, 3, 5), *dx = scratch(o, (uint64_t)(s.batch * s.height * s.width * s.in));
    spread(&s, y, o->in[0], o->in[1], o->in[2]);
    each_pair(&s, to_x, y, dx, o->in[4]);
    if (o->in[6]) each_pair(&s, to_w, y, o->in[3], o->in[6]);
    put(o, 0, dx);
    if (o->in[6]) put(o, 1, o->in[6]);
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
