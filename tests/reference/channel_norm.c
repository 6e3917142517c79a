/* Norms over the positions of an image (0.3): each group of a sample's channels is normalised with its mean and biased
 * variance over all positions. The variance is taken from the moments, by Σ (x − μ)² = Σ_rows (Σ (x − m)² + n(m − μ)²),
 * so that a node which is given wrong moments shows. */
#include <math.h>

#include "reference/state.h"

typedef struct image {
    int64_t samples, rows, positions, channels;
} image;

static image image_of(const pl_shape *s)
{
    image i = {s->dim[0], 1, s->rank > 2 ? s->dim[s->rank - 2] : 1, pl_shape_last(s)};
    i.rows = (int64_t)pl_shape_elems(s) / (i.samples * i.positions * i.channels);
    return i;
}

void reference_channel_moments(operands *o)
{
    image i = image_of(&operand(o, 0)->shape);
    double *moments = scratch(o, (uint64_t)(i.samples * i.rows * 2 * i.channels));
    for (int64_t r = 0; r < i.samples * i.rows; r++)
        for (int64_t c = 0; c < i.channels; c++) {
            const double *x = o->in[0] + r * i.positions * i.channels + c;
            double mean = 0, squares = 0;
            for (int64_t p = 0; p < i.positions; p++) mean += x[p * i.channels] / (double)i.positions;
            for (int64_t p = 0; p < i.positions; p++) squares += pow(x[p * i.channels] - mean, 2);
            moments[2 * r * i.channels + c] = mean;
            moments[(2 * r + 1) * i.channels + c] = squares;
        }
    put(o, 0, moments);
}

/* Mean and 1/√(variance + eps) of the channels [first, first + count) of `rows` rows. */
static void statistics(const image *i, const double *moments, int64_t rows, int64_t first, int64_t count, double eps,
                       double *mean, double *rstd)
{
    double sum = 0, squares = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = first; c < first + count; c++) sum += moments[2 * r * i->channels + c];
    *mean = sum / (double)(rows * count);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = first; c < first + count; c++)
            squares += moments[(2 * r + 1) * i->channels + c] +
                       (double)i->positions * pow(moments[2 * r * i->channels + c] - *mean, 2);
    *rstd = 1 / sqrt(squares / (double)(rows * count * i->positions) + eps);
}

/* y = act((x − mean)·rstd·gamma + beta) (+ residual); the statistics of sample s and group g are number s·groups + g. */
static void normalise(operands *o, const image *i, int64_t groups, pl_activation act, const double *mean,
                      const double *rstd, const double *gamma, const double *beta, const double *residual)
{
    int64_t of_sample = i->rows * i->positions * i->channels;
    double *y = scratch(o, (uint64_t)(i->samples * of_sample));
    for (int64_t e = 0; e < i->samples * of_sample; e++) {
        int64_t c = e % i->channels, at = e / of_sample * groups + c / (i->channels / groups);
        y[e] = reference_act(act, (o->in[0][e] - mean[at]) * rstd[at] * gamma[c] + beta[c]);
        if (residual) y[e] += residual[e];
    }
    put(o, 0, y);
}

void reference_group_norm(operands *o)
{
    image i = image_of(&operand(o, 0)->shape);
    int64_t groups = o->node->attr[0].i, width = i.channels / groups;
    double *mean = scratch(o, (uint64_t)(i.samples * groups)), *rstd = scratch(o, (uint64_t)(i.samples * groups));
    for (int64_t k = 0; k < i.samples * groups; k++)
        statistics(&i, o->in[1] + k / groups * i.rows * 2 * i.channels, i.rows, k % groups * width, width,
                   o->node->attr[1].f, &mean[k], &rstd[k]);
    normalise(o, &i, groups, (pl_activation)o->node->attr[2].i, mean, rstd, o->in[2], o->in[3], o->in[4]);
    put(o, 1, mean);
    put(o, 2, rstd);
}
