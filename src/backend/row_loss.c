/* Losses of rows of numbers. The team makes the term of each row, and its gradient, in double; one thread adds the
 * terms up. Beside the products of a model these are few numbers, so there are no kernels for them.
 *
 * Several losses add to one value, whose micro-batches take turns: with two micro-batches the terms of the first loss
 * are not all there when those of the second begin, and in the backward pass the last loss comes first. So that the sum
 * has the same bits in whichever order they come, each term is rounded to a multiple of 2⁻³⁶, and sums of these are
 * exact in double as long as they stay below 2¹⁷. That is 1e-11 a term, and no loss that still means something is as
 * large as that; a larger one is only rounded as sums in double are.
 *
 * Workspace: [term of each row: f64]. */
#include "backend/row_loss.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "backend/parallel.h"

static const double GRID = 0x1p36;

typedef struct work {
    const pl_row_loss_call *call;
    double *term;
    double slope_scale; /* of the gradients */
} work;

static double get(const pl_row_loss_call *c, const void *from, int64_t i)
{
    return (double)pl_real_get(c->type, from, i);
}

static void put(const pl_row_loss_call *c, void *to, int64_t i, double x) { pl_real_put(c->type, to, i, (float)x); }

/* ---- cross-entropy: rows begin at element `at` ---- */

static void put_zeros(const pl_row_loss_call *c, int64_t at)
{
    for (int64_t v = at; v < at + c->width && c->da; v++) put(c, c->da, v, 0);
    for (int64_t v = at; v < at + c->width && c->db; v++) put(c, c->db, v, 0);
}

static double softmax_row(const work *w, int64_t at, int64_t label)
{
    const pl_row_loss_call *c = w->call;
    double top = -INFINITY, sum = 0, of_label = get(c, c->a, at + label);
    for (int64_t v = at; v < at + c->width; v++) top = fmax(top, get(c, c->a, v));
    for (int64_t v = at; v < at + c->width; v++) sum += exp(get(c, c->a, v) - top);
    for (int64_t v = at; v < at + c->width && c->da; v++)
        put(c, c->da, v, w->slope_scale * (exp(get(c, c->a, v) - top) / sum - (v == at + label)));
    return top + log(sum) - of_label;
}

static double stable(double z) { return z >= 0 ? z + 1 : 1 / (1 - z); }
static double stable_slope(double z) { return z >= 0 ? 1 : 1 / ((1 - z) * (1 - z)); }

static double stablemax_row(const work *w, int64_t at, int64_t label)
{
    const pl_row_loss_call *c = w->call;
    double sum = 0, of_label = stable(get(c, c->a, at + label));
    for (int64_t v = at; v < at + c->width; v++) sum += stable(get(c, c->a, v));
    for (int64_t v = at; v < at + c->width && c->da; v++) {
        double slope = 1 / sum - (v == at + label ? 1 / of_label : 0);
        put(c, c->da, v, w->slope_scale * slope * stable_slope(get(c, c->a, v)));
    }
    return log(sum) - log(of_label);
}

static double cross_entropy_row(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    const int64_t at = row * c->width, label = c->target[row];
    if (label < 0) {
        put_zeros(c, at);
        return 0;
    }
    assert(label < c->width);
    return c->kind == PL_ROW_LOSS_SOFTMAX ? softmax_row(w, at, label) : stablemax_row(w, at, label);
}

/* ---- the others ---- */

static double bce_row(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    const double q = get(c, c->a, row), y = (double)c->y[row * c->y_stride], e = exp(-fabs(q));
    if (c->da) put(c, c->da, row, w->slope_scale * ((q >= 0 ? 1 / (1 + e) : e / (1 + e)) - y));
    return fmax(q, 0) - q * y + log1p(e);
}

/* 1 − cos, with cos = a·b/m and m = max(‖a‖·‖b‖, eps); where m is the product its slope by a is b/m − cos·a/‖a‖². */
static double cosine_row(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    const int64_t begin = row * c->width, end = begin + c->width;
    double dot = 0, aa = 0, bb = 0;
    for (int64_t i = begin; i < end; i++) {
        double a = get(c, c->a, i), b = get(c, c->b, i);
        dot += a * b, aa += a * a, bb += b * b;
    }
    const double product = sqrt(aa) * sqrt(bb);
    const bool is_small = product < PL_COSINE_EPS;
    const double m = is_small ? PL_COSINE_EPS : product, cosine = dot / m;
    const double by_a = is_small ? 0 : cosine / aa, by_b = is_small ? 0 : cosine / bb;
    for (int64_t i = begin; i < end && (c->da || c->db); i++) {
        double a = get(c, c->a, i), b = get(c, c->b, i);
        if (c->da) put(c, c->da, i, w->slope_scale * (by_a * a - b / m));
        if (c->db) put(c, c->db, i, w->slope_scale * (by_b * b - a / m));
    }
    return 1 - cosine;
}

static double squared_error_row(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    double sum = 0;
    for (int64_t i = row * c->width; i < (row + 1) * c->width; i++) {
        double e = get(c, c->a, i) - get(c, c->b, i);
        sum += e * e;
        if (c->da) put(c, c->da, i, 2 * w->slope_scale * e);
        if (c->db) put(c, c->db, i, -2 * w->slope_scale * e);
    }
    return sum;
}

static double norm_penalty_row(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    const int64_t begin = row * c->width, end = begin + c->width;
    double sum = 0;
    for (int64_t i = begin; i < end; i++) sum += get(c, c->a, i) * get(c, c->a, i);
    const double norm = sqrt(sum), slope = sum == 0 ? 0 : 2 * (norm - 1) / norm;
    for (int64_t i = begin; i < end && c->da; i++) put(c, c->da, i, w->slope_scale * slope * get(c, c->a, i));
    return (norm - 1) * (norm - 1);
}

static double term_of(const work *w, int64_t row)
{
    const pl_row_loss_call *c = w->call;
    const double counted = c->counted ? (double)c->counted[row / c->rows_of_sample * c->counted_stride] : 1;
    if (counted == 0) {
        put_zeros(c, row * c->width);
        return 0;
    }
    const work of_sample = {c, w->term, w->slope_scale / counted};
    switch (c->kind) {
    case PL_ROW_LOSS_BCE:
        return bce_row(w, row);
    case PL_ROW_LOSS_COSINE:
        return cosine_row(w, row);
    case PL_ROW_LOSS_SQUARED_ERROR:
        return squared_error_row(w, row);
    case PL_ROW_LOSS_NORM_PENALTY:
        return norm_penalty_row(w, row);
    default:
        return cross_entropy_row(&of_sample, row) / counted;
    }
}

static void loss_part(const void *context, int part, int parts)
{
    const work *w = context;
    pl_range rows = pl_range_of_part(w->call->rows, 1, part, parts);
    for (int64_t row = rows.begin; row < rows.end; row++) w->term[row] = term_of(w, row);
}

uint64_t pl_row_loss_workspace_bytes(const pl_row_loss_call *c, pl_team team)
{
    (void)team;
    return (uint64_t)c->rows * sizeof(double);
}

void pl_row_loss_exec(const pl_row_loss_call *c, void *workspace, pl_team team)
{
    const float slope_scale = *c->scale * (c->loss_scale ? *c->loss_scale : 1);
    work w = {c, workspace, (double)slope_scale};
    pl_parallel(team, c->rows * c->width, loss_part, &w);
    for (int64_t row = 0; row < c->rows; row++) *c->loss += rint((double)*c->scale * w.term[row] * GRID) / GRID;
}

/* ---- how many are right ---- */

/* No other is larger, and none of the same size comes before it. */
static bool is_right(const pl_count_right_call *c, int64_t at, int64_t label)
{
    const float of_label = pl_real_get(c->type, c->logits, at + label);
    for (int64_t v = 0; v < c->width; v++) {
        float z = pl_real_get(c->type, c->logits, at + v);
        if (!(z < of_label || (z == of_label && v >= label))) return false;
    }
    return true;
}

static void count_part(const void *context, int part, int parts)
{
    const pl_count_right_call *c = context;
    pl_range samples = pl_range_of_part(c->samples, 1, part, parts);
    for (int64_t s = samples.begin; s < samples.end; s++) {
        int64_t labelled = 0, right = 0;
        for (int64_t row = s * c->rows; row < (s + 1) * c->rows; row++) {
            if (c->target[row] < 0) continue;
            labelled++;
            right += is_right(c, row * c->width, c->target[row]);
        }
        c->y[3 * s] = (float)labelled, c->y[3 * s + 1] = (float)right, c->y[3 * s + 2] = labelled == right;
    }
}

void pl_count_right_exec(const pl_count_right_call *c, pl_team team)
{
    pl_parallel(team, c->samples * c->rows * c->width, count_part, c);
}
