/* Gates, blends, feature-wise affine maps, sums over time with weights from a softmax. */
#include <math.h>

#include "reference/state.h"

static double open_by(double g) { return 1 / (1 + exp(-g)); }

/* The gate of element e of x, in input `g`. */
static int64_t gate_of(const operands *o, int x, int64_t e)
{
    int64_t channels = pl_shape_last(&operand(o, x)->shape), gates = pl_shape_last(&operand(o, x + 1)->shape);
    return gates == channels ? e : e / channels;
}

void reference_gate(operands *o)
{
    int64_t n = (int64_t)pl_shape_elems(&operand(o, 0)->shape);
    for (int64_t e = 0; e < n; e++) o->in[0][e] *= open_by(o->in[1][gate_of(o, 0, e)]);
    put(o, 0, o->in[0]);
}

void reference_gate_bwd(operands *o)
{
    int64_t n = (int64_t)pl_shape_elems(&operand(o, 1)->shape);
    double *dx = scratch(o, (uint64_t)n), *dg = scratch(o, pl_shape_elems(&operand(o, 2)->shape));
    for (int64_t e = 0; e < n; e++) {
        double open = open_by(o->in[2][gate_of(o, 1, e)]);
        dx[e] = o->in[0][e] * open;
        dg[gate_of(o, 1, e)] += o->in[0][e] * o->in[1][e] * open * (1 - open);
    }
    put(o, 0, dx);
    put(o, 1, dg);
}

/* The logit of element e of a, in input `z`. */
static int64_t logit_of(const operands *o, int a, int64_t e)
{
    return e / (int64_t)(pl_shape_elems(&operand(o, a)->shape) / pl_shape_elems(&operand(o, a + 2)->shape));
}

void reference_blend(operands *o)
{
    int64_t n = (int64_t)pl_shape_elems(&operand(o, 0)->shape), gates = (int64_t)pl_shape_elems(&operand(o, 2)->shape);
    double *y = scratch(o, (uint64_t)n), *open = scratch(o, (uint64_t)gates);
    for (int64_t k = 0; k < gates; k++) open[k] = open_by(o->in[2][k]);
    for (int64_t e = 0; e < n; e++) {
        double g = open[logit_of(o, 0, e)];
        y[e] = g * o->in[0][e] + (1 - g) * o->in[1][e];
    }
    put(o, 0, y);
    put(o, 1, open);
}

void reference_blend_bwd(operands *o)
{
    int64_t n = (int64_t)pl_shape_elems(&operand(o, 1)->shape);
    double *da = scratch(o, (uint64_t)n), *db = scratch(o, (uint64_t)n);
    double *dz = scratch(o, pl_shape_elems(&operand(o, 3)->shape));
    for (int64_t e = 0; e < n; e++) {
        double g = open_by(o->in[3][logit_of(o, 1, e)]), dy = o->in[0][e];
        da[e] = g * dy;
        db[e] = (1 - g) * dy;
        dz[logit_of(o, 1, e)] += dy * (o->in[1][e] - o->in[2][e]) * g * (1 - g);
    }
    put(o, 0, da);
    put(o, 1, db);
    put(o, 2, dz);
}

void reference_film(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t n = (int64_t)pl_shape_elems(s), channels = pl_shape_last(s), of_sample = n / s->dim[0];
    for (int64_t e = 0; e < n; e++) {
        const double *both = o->in[1] + e / of_sample * 2 * channels;
        o->in[0][e] = both[e % channels] * o->in[0][e] + both[channels + e % channels];
    }
    put(o, 0, o->in[0]);
}

void reference_film_bwd(operands *o)
{
    const pl_shape *s = &operand(o, 1)->shape;
    int64_t n = (int64_t)pl_shape_elems(s), channels = pl_shape_last(s), of_sample = n / s->dim[0];
    double *dx = scratch(o, (uint64_t)n), *ds = scratch(o, (uint64_t)(2 * s->dim[0] * channels));
    for (int64_t e = 0; e < n; e++) {
        int64_t both = e / of_sample * 2 * channels, c = e % channels;
        dx[e] = o->in[2][both + c] * o->in[0][e];
        ds[both + c] += o->in[0][e] * o->in[1][e];
        ds[both + channels + c] += o->in[0][e];
    }
    put(o, 0, dx);
    put(o, 1, ds);
}

static double share_of(const double *e, int64_t times, int64_t t)
{
    double sum = 0;
    for (int64_t k = 0; k < times; k++) sum += exp(e[k] - e[t]);
    return 1 / sum;
}

void reference_softmax_pool(operands *o)
{
    const pl_shape *e = &operand(o, 1)->shape;
    int64_t times = (int64_t)pl_shape_elems(e) / e->dim[0],
            channels = (int64_t)pl_shape_elems(&operand(o, 0)->shape) / e->dim[0] / times;
    double *y = scratch(o, (uint64_t)(e->dim[0] * channels));
    for (int64_t b = 0; b < e->dim[0]; b++)
        for (int64_t t = 0; t < times; t++)
            for (int64_t c = 0; c < channels; c++)
                y[b * channels + c] +=
                    share_of(o->in[1] + b * times, times, t) * o->in[0][(b * times + t) * channels + c];
    put(o, 0, y);
}

/* de_t = Σ_k dπ_k·π_k·((k = t) − π_t), written out */
void reference_softmax_pool_bwd(operands *o)
{
    const pl_shape *e = &operand(o, 2)->shape;
    int64_t times = (int64_t)pl_shape_elems(e) / e->dim[0], channels = pl_shape_last(&operand(o, 0)->shape);
    double *dx = scratch(o, (uint64_t)(e->dim[0] * times * channels));
    double *de = scratch(o, (uint64_t)(e->dim[0] * times));
    for (int64_t b = 0; b < e->dim[0]; b++)
        for (int64_t k = 0; k < times; k++) {
            double share = share_of(o->in[2] + b * times, times, k);
            for (int64_t c = 0; c < channels; c++) {
                double dy = o->in[0][b * channels + c], x = o->in[1][(b * times + k) * channels + c];
                dx[(b * times + k) * channels + c] = share * dy;
                for (int64_t t = 0; t < times; t++)
                    de[b * times + t] += dy * x * share * ((k == t) - share_of(o->in[2] + b * times, times, t));
            }
        }
    put(o, 0, dx);
    put(o, 1, de);
}

/* σ(scale·q_i·k_j) of sample b; q in input `q`, k in the next one. */
static double weight_of(const operands *o, int q, int64_t b, int64_t i, int64_t j)
{
    const pl_shape *s = &operand(o, q)->shape;
    const double *query = o->in[q] + (b * s->dim[1] + i) * s->dim[2];
    const double *key = o->in[q + 1] + (b * s->dim[1] + j) * s->dim[2];
    double score = 0;
    for (int64_t d = 0; d < s->dim[2]; d++) score += query[d] * key[d];
    return open_by(o->node->attr[0].f * score);
}

void reference_sigmoid_attention(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    const int64_t t = s->dim[1], width = s->dim[2];
    double *y = scratch(o, pl_shape_elems(s));
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t i = 0; i < t; i++)
            for (int64_t j = 0; j < t; j++)
                for (int64_t d = 0; d < width; d++)
                    y[(b * t + i) * width + d] += weight_of(o, 0, b, i, j) * o->in[2][(b * t + j) * width + d] +
                                                  o->in[3][(b * t + j) * width + d];
    put(o, 0, y);
}

void reference_sigmoid_attention_bwd(operands *o)
{
    const pl_shape *s = &operand(o, 1)->shape;
    const int64_t t = s->dim[1], width = s->dim[2];
    const double *d_o = o->in[0], *q = o->in[1], *k = o->in[2], *v = o->in[3];
    double *d[4];
    for (int i = 0; i < 4; i++) d[i] = scratch(o, pl_shape_elems(s));
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t i = 0; i < t; i++)
            for (int64_t j = 0; j < t; j++) {
                const int64_t of_i = (b * t + i) * width, of_j = (b * t + j) * width;
                double a = weight_of(o, 1, b, i, j), da = 0;
                for (int64_t c = 0; c < width; c++) da += d_o[of_i + c] * v[of_j + c];
                const double ds = da * a * (1 - a) * o->node->attr[0].f;
                for (int64_t c = 0; c < width; c++) {
                    d[0][of_i + c] += ds * k[of_j + c];
                    d[1][of_j + c] += ds * q[of_i + c];
                    d[2][of_j + c] += a * d_o[of_i + c];
                    d[3][of_j + c] += d_o[of_i + c];
                }
            }
    for (int i = 0; i < 4; i++) put(o, i, d[i]);
}
