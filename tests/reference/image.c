/* Pools, bilinear ×2 and whole channels of images [B,H,W,C]. Means and interpolations are written as
 * what each pixel of x gives to each pixel of y; backward the same numbers go the other way. */
#include <math.h>

#include "base/philox.h"
#include "reference/state.h"

static double *at_pixel(double *x, const pl_shape *s, int64_t b, int64_t i, int64_t j, int64_t c)
{
    return &x[((b * s->dim[1] + i) * s->dim[2] + j) * s->dim[3] + c];
}

/* ---- the largest of 2×2 ---- */

void reference_max_pool(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t h = s->dim[1] / 2, w = s->dim[2] / 2, channels = s->dim[3];
    uint64_t count = (uint64_t)(s->dim[0] * h * w * channels);
    double *y = scratch(o, count), *place = scratch(o, count), *to = y, *where = place;
    for (int64_t r = 0; r < s->dim[0] * h; r++)
        for (int64_t e = 0; e < w * channels; e++, to++, where++) {
            *to = -INFINITY;
            for (int k = 0; k < 4; k++) {
                double x = *at_pixel(o->in[0], s, r / h, r % h * 2 + k / 2, e / channels * 2 + k % 2, e % channels);
                if (x > *to) *to = x, *where = k;
            }
        }
    put(o, 0, y);
    put(o, 1, place);
}

/* dx, which begins as what is added to it. */
static double *begin_gradient(operands *o, const pl_shape *s, int add)
{
    double *dx = scratch(o, pl_shape_elems(s));
    for (uint64_t e = 0; e < pl_shape_elems(s) && o->in[add]; e++) dx[e] = o->in[add][e];
    return dx;
}

void reference_max_pool_bwd(operands *o)
{
    const pl_shape *s = &o->r->graph->value[o->node->out[0]].shape, *small = &operand(o, 0)->shape;
    double *dx = begin_gradient(o, s, 2);
    int64_t h = small->dim[1], w = small->dim[2], channels = s->dim[3];
    for (uint64_t e = 0; e < pl_shape_elems(small); e++) {
        int64_t c = (int64_t)e % channels, j = (int64_t)e / channels % w, i = (int64_t)e / channels / w % h;
        int k = (int)o->in[1][e];
        *at_pixel(dx, s, (int64_t)e / channels / w / h, 2 * i + k / 2, 2 * j + k % 2, c) += o->in[0][e];
    }
    put(o, 0, dx);
}

/* ---- means and bilinear ×2 ---- */

/* What pixel i of n gives to pixel o of m, along one axis. */
typedef double (*share_of)(const pl_node *, int64_t i, int64_t n, int64_t o, int64_t m);

static double share_average(const pl_node *node, int64_t i, int64_t n, int64_t o, int64_t m)
{
    int64_t kernel = node->attr[0].i, stride = node->attr[1].i;
    (void)n, (void)m;
    return i >= o * stride && i < o * stride + kernel ? 1 / (double)kernel : 0;
}

static double share_adaptive(const pl_node *node, int64_t i, int64_t n, int64_t o, int64_t m)
{
    double first = floor((double)(o * n) / (double)m), end = ceil((double)((o + 1) * n) / (double)m);
    (void)node;
    return (double)i >= first && (double)i < end ? 1 / (end - first) : 0;
}

/* y lies at (o + ½)/2 − ½ of x, whose ends go on for ever. */
static double share_double(const pl_node *node, int64_t i, int64_t n, int64_t o, int64_t m)
{
    double at = fmin(fmax(((double)o + 0.5) / 2 - 0.5, 0), (double)(n - 1));
    (void)node, (void)m;
    return fmax(0, 1 - fabs(at - (double)i));
}

/* Tokens are one column. */
static pl_shape as_image(const pl_shape *s)
{
    return s->rank == 4 ? *s : pl_shape_of(4, s->dim[0], s->dim[1], (int64_t)1, s->dim[2]);
}

static void resample(operands *o, share_of share)
{
    const pl_shape from = as_image(&operand(o, 0)->shape), *x = &from;
    const pl_shape result = as_image(&o->r->graph->value[o->node->out[0]].shape), *y = &result;
    double *to = scratch(o, pl_shape_elems(y)), *at = to;
    for (int64_t b = 0; b < y->dim[0]; b++)
        for (int64_t p = 0; p < y->dim[1]; p++)
            for (int64_t q = 0; q < y->dim[2]; q++)
                for (int64_t c = 0; c < y->dim[3]; c++, at++)
                    for (int64_t i = 0; i < x->dim[1]; i++)
                        for (int64_t j = 0; j < x->dim[2]; j++)
                            *at += share(o->node, i, x->dim[1], p, y->dim[1]) *
                                   share(o->node, j, x->dim[2], q, y->dim[2]) * *at_pixel(o->in[0], x, b, i, j, c);
    put(o, 0, to);
}

static void resample_bwd(operands *o, share_of share)
{
    const pl_shape result = as_image(&operand(o, 0)->shape), *y = &result;
    const pl_shape from = as_image(&o->r->graph->value[o->node->out[0]].shape), *x = &from;
    double *dx = begin_gradient(o, x, 1);
    for (uint64_t e = 0; e < pl_shape_elems(y); e++) {
        int64_t c = (int64_t)e % y->dim[3], q = (int64_t)e / y->dim[3] % y->dim[2];
        int64_t p = (int64_t)e / y->dim[3] / y->dim[2] % y->dim[1];
        for (int64_t i = 0; i < x->dim[1]; i++)
            for (int64_t j = 0; j < x->dim[2]; j++)
                *at_pixel(dx, x, (int64_t)e / y->dim[3] / y->dim[2] / y->dim[1], i, j, c) +=
                    share(o->node, i, x->dim[1], p, y->dim[1]) * share(o->node, j, x->dim[2], q, y->dim[2]) *
                    o->in[0][e];
    }
    put(o, 0, dx);
}

void reference_avg_pool(operands *o) { resample(o, share_average); }
void reference_avg_pool_bwd(operands *o) { resample_bwd(o, share_average); }
void reference_adaptive_avg_pool(operands *o) { resample(o, share_adaptive); }
void reference_adaptive_avg_pool_bwd(operands *o) { resample_bwd(o, share_adaptive); }
void reference_upsample_bilinear(operands *o) { resample(o, share_double); }
void reference_upsample_bilinear_bwd(operands *o) { resample_bwd(o, share_double); }

/* ---- whole channels ---- */

void reference_concat(operands *o)
{
    const pl_shape *s = &o->r->graph->value[o->node->out[0]].shape;
    int64_t all = pl_shape_last(s), first = 0;
    double *y = scratch(o, pl_shape_elems(s));
    for (int k = 0; k < PL_NODE_IN_MAX && o->in[k]; k++) {
        int64_t count = pl_shape_last(&operand(o, k)->shape);
        for (int64_t e = 0; e < pl_shape_rows(s) * count; e++) y[e / count * all + first + e % count] = o->in[k][e];
        first += count;
    }
    put(o, 0, y);
}

void reference_slice(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t first = o->node->attr[0].i, count = o->node->attr[1].i;
    double *y = scratch(o, (uint64_t)(pl_shape_rows(s) * count));
    for (int64_t e = 0; e < pl_shape_rows(s) * count; e++)
        y[e] = o->in[0][e / count * pl_shape_last(s) + first + e % count];
    put(o, 0, y);
}

void reference_slice_bwd(operands *o)
{
    const pl_shape *s = &o->r->graph->value[o->node->out[0]].shape;
    int64_t first = o->node->attr[0].i, count = pl_shape_last(&operand(o, 0)->shape);
    double *dx = begin_gradient(o, s, 1);
    for (int64_t e = 0; e < pl_shape_rows(s) * count; e++)
        dx[e / count * pl_shape_last(s) + first + e % count] += o->in[0][e];
    put(o, 0, dx);
}

void reference_append_coordinates(operands *o)
{
    const pl_shape *x = &operand(o, 0)->shape, *s = &o->r->graph->value[o->node->out[0]].shape;
    double *y = scratch(o, pl_shape_elems(s)), *at = y, *from = o->in[0];
    for (int64_t b = 0; b < x->dim[0]; b++)
        for (int64_t i = 0; i < x->dim[1]; i++)
            for (int64_t j = 0; j < x->dim[2]; j++) {
                for (int64_t c = 0; c < x->dim[3]; c++) *at++ = *from++;
                *at++ = x->dim[1] > 1 ? (double)i / (double)(x->dim[1] - 1) : 0;
                *at++ = x->dim[2] > 1 ? (double)j / (double)(x->dim[2] - 1) : 0;
            }
    put(o, 0, y);
}

/* Channel c of sample s is kept when uniform(bits of (step, first + s, c)) ≥ p; kept ones are scaled by 1/(1 − p). */
void reference_channel_dropout(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t channels = pl_shape_last(s), of_sample = (int64_t)pl_shape_elems(s) / s->dim[0];
    float p = (float)o->node->attr[0].f;
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[1].i, (uint64_t)o->node->attr[2].i);
    for (int64_t e = 0; e < s->dim[0] * of_sample; e++) {
        uint32_t bits[4], c = (uint32_t)(e % channels);
        pl_philox_block(&philox, (uint32_t)o->in[1][0], (uint64_t)o->in[2][0] + (uint64_t)(e / of_sample), c / 4, bits);
        o->in[0][e] = pl_uniform_f32(bits[c % 4]) >= p ? o->in[0][e] / (1 - (double)p) : 0;
    }
    put(o, 0, o->in[0]);
}

/* Part i of `paths` of sample s is kept when uniform(bits of (step, first + s, i)) ≥ p. */
void reference_path_dropout(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t paths = o->node->attr[0].i, of_sample = (int64_t)pl_shape_elems(s) / s->dim[0];
    float p = (float)o->node->attr[1].f;
    pl_philox philox = pl_philox_init((uint64_t)o->node->attr[2].i, (uint64_t)o->node->attr[3].i);
    for (int64_t e = 0; e < s->dim[0] * of_sample; e++) {
        uint32_t bits[4], i = (uint32_t)(e % of_sample / (of_sample / paths));
        pl_philox_block(&philox, (uint32_t)o->in[1][0], (uint64_t)o->in[2][0] + (uint64_t)(e / of_sample), i / 4, bits);
        if (pl_uniform_f32(bits[i % 4]) < p) o->in[0][e] = 0;
    }
    put(o, 0, o->in[0]);
}
