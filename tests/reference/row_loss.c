/* Losses of rows of numbers: loss += scale·Σ of the rows' terms; gradients times the loss scale. */
#include <math.h>

#include "base/row_loss.h"
#include "reference/state.h"

static void finish(operands *o, int scale, double sum, double *const gradient[2])
{
    double loss = o->in[scale + 1][0] + o->in[scale][0] * sum;
    put(o, 0, &loss);
    for (int k = 0; k < 2; k++) {
        if (!gradient[k] || !wanted(o, k + 1)) continue;
        for (uint64_t i = 0; i < pl_shape_elems(&operand(o, k)->shape); i++)
            gradient[k][i] *= o->in[scale][0] * (o->in[scale + 2] ? o->in[scale + 2][0] : 1);
        put(o, k + 1, gradient[k]);
    }
}

/* Does the sample of this row count? */
static bool counts(const operands *o, int scale, int64_t row)
{
    const pl_shape *s = &operand(o, 0)->shape;
    const double *counted = o->in[scale + 3];
    return !counted || counted[row / (pl_shape_rows(s) / s->dim[0])] != 0;
}

static double *gradient_of(operands *o, int in) { return scratch(o, pl_shape_elems(&operand(o, in)->shape)); }

/* p = s/Σs with s = exp, or as stablemax has it; dloss/dz_j = s'_j·(1/Σs − [j is the label]/s_j). */
static void cross_entropy(operands *o)
{
    const bool stable = o->node->attr[0].i == PL_CROSS_ENTROPY_STABLEMAX;
    const int64_t rows = pl_shape_rows(&operand(o, 0)->shape), width = pl_shape_last(&operand(o, 0)->shape);
    double *d = gradient_of(o, 0), *s = scratch(o, (uint64_t)width), *slope = scratch(o, (uint64_t)width), loss = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *z = o->in[0] + r * width;
        const int64_t label = (int64_t)o->in[1][r];
        const double of = o->in[5] ? o->in[5][r / (rows / operand(o, 0)->shape.dim[0])] : 1;
        double sum = 0;
        if (label < 0 || of == 0) continue;
        for (int64_t v = 0; v < width; v++) {
            s[v] = !stable ? exp(z[v]) : z[v] < 0 ? 1 / (1 - z[v]) : 1 + z[v];
            slope[v] = !stable ? s[v] : z[v] < 0 ? s[v] * s[v] : 1;
            sum += s[v];
        }
        loss -= log(s[label] / sum) / of;
        for (int64_t v = 0; v < width; v++) d[r * width + v] = slope[v] * (1 / sum - (v == label) / s[label]) / of;
    }
    finish(o, 2, loss, (double *[2]){d, NULL});
}

/* −y·log σ(q) − (1 − y)·log(1 − σ(q)), with slope σ(q) − y */
static void bce(operands *o)
{
    double *d = gradient_of(o, 0), loss = 0;
    for (int64_t i = 0; i < (int64_t)pl_shape_elems(&operand(o, 0)->shape); i++) {
        const double q = o->in[0][i], y = o->in[1][i];
        if (o->in[5] && o->in[5][i] == 0) continue;
        loss += y * log1p(exp(-q)) + (1 - y) * log1p(exp(q));
        d[i] = 1 / (1 + exp(-q)) - y;
    }
    finish(o, 2, loss, (double *[2]){d, NULL});
}

static void cosine(operands *o)
{
    const int64_t width = pl_shape_last(&operand(o, 0)->shape);
    double *da = gradient_of(o, 0), *db = gradient_of(o, 1), loss = 0;
    for (int64_t r = 0; r < pl_shape_rows(&operand(o, 0)->shape); r++) {
        const double *a = o->in[0] + r * width, *b = o->in[1] + r * width;
        if (!counts(o, 2, r)) continue;
        double ab = 0, aa = 0, bb = 0;
        for (int64_t i = 0; i < width; i++) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
        const double norms = sqrt(aa * bb), by = norms > PL_COSINE_EPS ? norms : PL_COSINE_EPS;
        loss += 1 - ab / by;
        for (int64_t i = 0; i < width; i++) {
            da[r * width + i] = (norms > PL_COSINE_EPS ? ab * a[i] / (norms * aa) : 0) - b[i] / by;
            db[r * width + i] = (norms > PL_COSINE_EPS ? ab * b[i] / (norms * bb) : 0) - a[i] / by;
        }
    }
    finish(o, 2, loss, (double *[2]){da, db});
}

static void squared_error(operands *o)
{
    double *da = gradient_of(o, 0), *db = gradient_of(o, 1), loss = 0;
    for (int64_t i = 0; i < (int64_t)pl_shape_elems(&operand(o, 0)->shape); i++) {
        const double e = o->in[0][i] - o->in[1][i];
        if (!counts(o, 2, i / pl_shape_last(&operand(o, 0)->shape))) continue;
        loss += e * e;
        da[i] = 2 * e, db[i] = -2 * e;
    }
    finish(o, 2, loss, (double *[2]){da, db});
}

static void norm_penalty(operands *o)
{
    const int64_t width = pl_shape_last(&operand(o, 0)->shape);
    double *d = gradient_of(o, 0), loss = 0;
    for (int64_t r = 0; r < pl_shape_rows(&operand(o, 0)->shape); r++) {
        const double *x = o->in[0] + r * width;
        double norm = 0;
        if (!counts(o, 1, r)) continue;
        for (int64_t i = 0; i < width; i++) norm = hypot(norm, x[i]);
        loss += (norm - 1) * (norm - 1);
        for (int64_t i = 0; i < width && norm > 0; i++) d[r * width + i] = 2 * (norm - 1) * x[i] / norm;
    }
    finish(o, 1, loss, (double *[2]){d, NULL});
}

void reference_row_loss(operands *o)
{
    switch (o->node->op) {
    case PL_OP_CROSS_ENTROPY:
    case PL_OP_CROSS_ENTROPY_BWD:
        cross_entropy(o);
        return;
    case PL_OP_BCE_WITH_LOGITS:
    case PL_OP_BCE_WITH_LOGITS_BWD:
        bce(o);
        return;
    case PL_OP_COSINE_LOSS:
    case PL_OP_COSINE_LOSS_BWD:
        cosine(o);
        return;
    case PL_OP_SQUARED_ERROR:
    case PL_OP_SQUARED_ERROR_BWD:
        squared_error(o);
        return;
    default:
        norm_penalty(o);
    }
}

/* Of each sample: rows with a label, those whose first largest logit is the label's, whether these are all. */
void reference_count_right(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    const int64_t width = pl_shape_last(s), rows = pl_shape_rows(s) / s->dim[0];
    double *y = scratch(o, 3 * (uint64_t)s->dim[0]);
    for (int64_t r = 0; r < rows * s->dim[0]; r++) {
        int64_t best = 0;
        if (o->in[1][r] < 0) continue;
        for (int64_t v = 1; v < width; v++)
            if (o->in[0][r * width + v] > o->in[0][r * width + best]) best = v;
        y[3 * (r / rows)]++;
        y[3 * (r / rows) + 1] += best == (int64_t)o->in[1][r];
    }
    for (int64_t b = 0; b < s->dim[0]; b++) y[3 * b + 2] = y[3 * b] == y[3 * b + 1];
    put(o, 0, y);
}
