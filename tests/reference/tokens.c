/* Tokens: patches of images, positions, a row in front, rotations, capsules, what is picked and copied. */
#include <math.h>

#include "base/causal_lm.h"
#include "reference/state.h"

/* y[b, (i, j), c, r, q] = x[b, i·p + r, j·p + q, c]/255, or x[b, c, i·p + r, j·p + q] of planes */
void reference_patches(operands *o)
{
    static const double mean[] = {0.48145466, 0.4578275, 0.40821073},
                        deviation[] = {0.26862954, 0.26130258, 0.27577711};
    const pl_shape *s = &operand(o, 0)->shape;
    const bool planes = operand(o, 0)->dtype == PL_DTYPE_F32;
    const int64_t height = s->dim[planes ? 2 : 1], width = s->dim[planes ? 3 : 2];
    int64_t p = o->node->attr[0].i, channels = o->node->attr[1].i, depth = s->rank == 4 && !planes ? s->dim[3] : 1;
    double *y = scratch(o, reference_elems(o->r, o->node->out[0])), *at = y;
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t i = 0; i < height / p; i++)
            for (int64_t j = 0; j < width / p; j++)
                for (int64_t e = 0; e < channels * p * p; e++) {
                    int64_t c = e / (p * p), row = i * p + e / p % p, column = j * p + e % p;
                    int64_t pixel = ((planes ? b * channels + c : b) * height + row) * width + column;
                    const double v = planes ? o->in[0][pixel] : o->in[0][pixel * depth + (depth > 1 ? c : 0)] / 255;
                    *at++ = o->node->attr[2].i ? (v - mean[c]) / deviation[c] : v;
                }
    put(o, 0, y);
}

void reference_pixels(operands *o)
{
    const uint64_t n = pl_shape_elems(&operand(o, 0)->shape);
    for (uint64_t i = 0; i < n; i++) {
        const double v = 255 * o->in[0][i], down = floor(v), off = v - down;
        const bool up = off > 0.5 || (off == 0.5 && fmod(down, 2) != 0);
        o->in[0][i] = v >= 255 ? 255 : !(v > 0) ? 0 : down + up;
    }
    put(o, 0, o->in[0]);
}

void reference_add_positions(operands *o)
{
    uint64_t n = pl_shape_elems(&operand(o, 0)->shape), sample = pl_shape_elems(&operand(o, 1)->shape);
    for (uint64_t i = 0; i < n; i++) o->in[0][i] += o->in[1][i % sample];
    put(o, 0, o->in[0]);
}

/* y[b,0] = row, y[b,1 + n] = x[b,n] */
void reference_prepend_row(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    double *y = scratch(o, reference_elems(o->r, o->node->out[0])), *at = y;
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t n = 0; n < 1 + s->dim[1]; n++)
            for (int64_t d = 0; d < s->dim[2]; d++)
                *at++ = n > 0 ? o->in[0][(b * s->dim[1] + n - 1) * s->dim[2] + d] : o->in[1] ? o->in[1][d] : 0;
    put(o, 0, y);
}

void reference_drop_row(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    double *y = scratch(o, pl_shape_elems(s)), *at = y;
    const double *x = o->in[0];
    for (int64_t b = 0; b < s->dim[0]; b++)
        for (int64_t n = 0; n < s->dim[1]; n++)
            for (int64_t d = 0; d < s->dim[2]; d++, x++) {
                if (n > 0) *at++ = *x;
                if (n == 0 && o->in[1]) o->in[1][d] += *x;
            }
    put(o, 0, y);
    if (o->in[1]) put(o, 1, o->in[1]);
}

/* Of a head of 2h numbers q' = q·cos + rot(q)·sin, rot([a, b]) = [−b, a], of the angles t·theta^(−2i/2h), twice. */
void reference_rope(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    const pl_attr *attr = o->node->attr;
    int64_t width = pl_shape_last(s), head_width = width / attr[0].i, half = head_width / 2;
    double *y = scratch(o, pl_shape_elems(s));
    for (int64_t e = 0; e < (int64_t)pl_shape_elems(s); e++) {
        const int64_t tables = o->in[1] ? pl_shape_rows(&operand(o, 1)->shape) : s->dim[s->rank - 2];
        int64_t t = e / width % tables, head = e % width / head_width, i = e % head_width;
        double angle = (double)t * pow(attr[2].f, -2 * (double)(i % half) / (double)head_width);
        double cosine = o->in[1] ? o->in[1][t * half + i % half] : cos(angle);
        double sine = o->in[2] ? o->in[2][t * half + i % half] : sin(angle);
        double other = i < half ? -o->in[0][e + half] : o->in[0][e - half];
        y[e] = o->in[0][e];
        if (head < attr[1].i) y[e] = o->in[0][e] * cosine + other * (attr[3].i ? -sine : sine);
    }
    put(o, 0, y);
}

void reference_rope_table(operands *o)
{
    const pl_rope_table_args *a = &o->node->rope_table;
    const pl_rope_scaling scaling = {(pl_rope_kind)a->kind,
                                     a->theta,
                                     a->factor,
                                     a->original,
                                     a->low,
                                     a->high,
                                     .beta_fast = a->high,
                                     .beta_slow = a->low,
                                     .keeps_fractions = a->keeps_fractions != 0};
    const double m = a->magnitude == 0 ? 1 : a->magnitude;
    const int64_t samples = o->in[0] ? operand(o, 0)->shape.dim[0] : 1, table = a->positions * a->half;
    double *cosine = scratch(o, (uint64_t)(samples * table)), *sine = scratch(o, (uint64_t)(samples * table));
    for (int64_t e = 0; e < samples * table; e++) {
        double f = pl_rope_frequency(&scaling, a->half, e % a->half) / (o->in[1] ? o->in[1][e % a->half] : 1);
        double angle = f * (double)(e % table / a->half + (o->in[0] ? (int64_t)o->in[0][e / table] : 0));
        cosine[e] = m * cos(angle), sine[e] = m * sin(angle);
    }
    put(o, 0, cosine);
    put(o, 1, sine);
}

/* ---- capsules: a_k = softmax over the positions of the logits of k; y_k = Σ_n a_kn t_n ---- */

typedef struct sizes {
    int64_t samples, positions, width, capsules;
} sizes;

static sizes sizes_of(const pl_shape *t, const pl_shape *logits)
{
    int64_t width = pl_shape_last(t), positions = (int64_t)pl_shape_elems(t) / t->dim[0] / width;
    return (sizes){t->dim[0], positions, width, pl_shape_last(logits)};
}

/* [samples, capsules, positions] */
static double *weights(operands *o, const sizes *s, const double *logits)
{
    double *a = scratch(o, (uint64_t)(s->samples * s->capsules * s->positions));
    for (int64_t b = 0; b < s->samples; b++)
        for (int64_t k = 0; k < s->capsules; k++) {
            double sum = 0, *row = a + (b * s->capsules + k) * s->positions;
            for (int64_t n = 0; n < s->positions; n++)
                sum += row[n] = exp(logits[(b * s->positions + n) * s->capsules + k]);
            for (int64_t n = 0; n < s->positions; n++) row[n] /= sum;
        }
    return a;
}

void reference_capsule_pool(operands *o)
{
    sizes s = sizes_of(&operand(o, 0)->shape, &operand(o, 1)->shape);
    double *a = weights(o, &s, o->in[1]), *y = scratch(o, (uint64_t)(s.samples * s.capsules * s.width));
    for (int64_t i = 0; i < s.samples * s.capsules; i++)
        for (int64_t n = 0; n < s.positions; n++)
            for (int64_t d = 0; d < s.width; d++)
                y[i * s.width + d] +=
                    a[i * s.positions + n] * o->in[0][(i / s.capsules * s.positions + n) * s.width + d];
    put(o, 0, y);
    put(o, 1, a);
}

/* dt_n = Σ_k a_kn dy_k (+ partial); e_kn = dy_k·t_n (+ da_kn); dl_kn = a_kn (e_kn − Σ_m a_km e_km) */
void reference_capsule_pool_bwd(operands *o)
{
    sizes s = sizes_of(&operand(o, 1)->shape, &operand(o, 2)->shape);
    const double *dy = o->in[0], *t = o->in[1];
    double *a = weights(o, &s, o->in[2]), *dt = scratch(o, (uint64_t)(s.samples * s.positions * s.width));
    double *dl = scratch(o, (uint64_t)(s.samples * s.positions * s.capsules)), *e = scratch(o, (uint64_t)s.positions);
    for (int64_t i = 0; i < s.samples * s.positions * s.width && o->in[4]; i++) dt[i] = o->in[4][i];
    for (int64_t i = 0; i < s.samples * s.capsules; i++) {
        int64_t first = i / s.capsules * s.positions;
        double mean = 0;
        for (int64_t n = 0; n < s.positions; n++) {
            e[n] = o->in[3] ? o->in[3][i * s.positions + n] : 0;
            for (int64_t d = 0; d < s.width; d++) {
                e[n] += dy[i * s.width + d] * t[(first + n) * s.width + d];
                dt[(first + n) * s.width + d] += a[i * s.positions + n] * dy[i * s.width + d];
            }
            mean += a[i * s.positions + n] * e[n];
        }
        for (int64_t n = 0; n < s.positions; n++)
            dl[(first + n) * s.capsules + i % s.capsules] = a[i * s.positions + n] * (e[n] - mean);
    }
    put(o, 0, dt);
    put(o, 1, dl);
}

/* One after the other: the largest that has not been taken, the first of equal ones; NaN when nothing else is left. */
void reference_top_k(operands *o)
{
    int64_t width = pl_shape_last(&operand(o, 0)->shape), rows = pl_shape_rows(&operand(o, 0)->shape);
    int64_t count = o->node->attr[0].i;
    double *y = scratch(o, (uint64_t)(rows * count)), *taken = scratch(o, (uint64_t)width);
    for (int64_t r = 0; r < rows; r++) {
        const double *x = o->in[0] + r * width;
        for (int64_t i = 0; i < width; i++) taken[i] = 0;
        for (int64_t j = 0; j < count; j++) {
            int64_t best = -1;
            for (int64_t i = 0; i < width; i++)
                if (taken[i] == 0 && (best < 0 || x[i] > x[best] || (isnan(x[best]) && !isnan(x[i])))) best = i;
            taken[best] = 1;
            y[r * count + j] = (double)best;
        }
    }
    put(o, 0, y);
}

/* Which row of t is picked j-th, of all samples. */
static int64_t picked(const operands *o, int64_t j, int64_t positions)
{
    const pl_shape *index = &operand(o, 1)->shape;
    return j / ((int64_t)pl_shape_elems(index) / index->dim[0]) * positions + (int64_t)o->in[1][j];
}

void reference_gather_rows(operands *o)
{
    const pl_shape *t = &operand(o, 0)->shape;
    int64_t width = pl_shape_last(t), picks = (int64_t)pl_shape_elems(&operand(o, 1)->shape);
    int64_t positions = pl_shape_rows(t) / t->dim[0];
    double *y = scratch(o, (uint64_t)(picks * width));
    for (int64_t j = 0; j < picks; j++)
        for (int64_t d = 0; d < width; d++) y[j * width + d] = o->in[0][picked(o, j, positions) * width + d];
    put(o, 0, y);
}

void reference_gather_rows_bwd(operands *o)
{
    uint64_t elems = reference_elems(o->r, o->node->out[0]);
    int64_t width = pl_shape_last(&operand(o, 0)->shape), picks = (int64_t)pl_shape_elems(&operand(o, 1)->shape);
    double *dt = scratch(o, elems);
    for (uint64_t i = 0; i < elems && o->in[2]; i++) dt[i] = o->in[2][i];
    for (int64_t j = 0; j < picks; j++)
        for (int64_t d = 0; d < width; d++) dt[picked(o, j, o->node->attr[0].i) * width + d] += o->in[0][j * width + d];
    put(o, 0, dt);
}

void reference_repeat(operands *o)
{
    uint64_t elems = reference_elems(o->r, o->node->out[0]), count = (uint64_t)o->node->attr[0].i;
    uint64_t width = (uint64_t)pl_shape_last(&operand(o, 0)->shape);
    double *y = scratch(o, elems);
    for (uint64_t i = 0; i < elems; i++) y[i] = o->in[0][i / width / count * width + i % width];
    put(o, 0, y);
}

void reference_repeat_bwd(operands *o)
{
    uint64_t elems = pl_shape_elems(&operand(o, 0)->shape), count = (uint64_t)o->node->attr[0].i;
    uint64_t width = (uint64_t)pl_shape_last(&operand(o, 0)->shape);
    double *dx = scratch(o, elems / count);
    for (uint64_t i = 0; i < elems; i++) dx[i / width / count * width + i % width] += o->in[0][i];
    put(o, 0, dx);
}
