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

/* y = act((x − mean)·rstd·gamma + beta) (+ residual); the statistics of sample s and group g are number s·groups + g.
 */
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

void reference_batch_norm(operands *o)
{
    image i = image_of(&operand(o, 0)->shape);
    double *mean = scratch(o, (uint64_t)i.channels), *rstd = scratch(o, (uint64_t)i.channels);
    for (int64_t c = 0; c < i.channels; c++)
        statistics(&i, o->in[1], i.samples * i.rows, c, 1, o->node->attr[0].f, &mean[c], &rstd[c]);
    i.rows *= i.samples, i.samples = 1;
    normalise(o, &i, i.channels, (pl_activation)o->node->attr[1].i, mean, rstd, o->in[2], o->in[3], o->in[4]);
    put(o, 1, mean);
    put(o, 2, rstd);
}

void reference_batch_norm_eval(operands *o)
{
    image i = image_of(&operand(o, 0)->shape);
    double *rstd = scratch(o, (uint64_t)i.channels);
    for (int64_t c = 0; c < i.channels; c++) rstd[c] = 1 / sqrt(o->in[2][c] + o->node->attr[0].f);
    i.rows *= i.samples, i.samples = 1;
    normalise(o, &i, i.channels, (pl_activation)o->node->attr[1].i, o->in[1], rstd, o->in[3], o->in[4], o->in[5]);
}

/* running = (1 − momentum)·running + momentum·statistic, the variance unbiased */
void reference_batch_norm_update(operands *o)
{
    const pl_shape *s = &operand(o, 0)->shape;
    int64_t channels = pl_shape_last(s), rows = pl_shape_rows(s) / 2;
    double momentum = o->node->attr[0].f, positions = (double)o->node->attr[1].i, n = (double)rows * positions;
    for (int64_t c = 0; c < channels; c++) {
        double mean = 0, squares = 0;
        for (int64_t r = 0; r < rows; r++) mean += o->in[0][2 * r * channels + c] / (double)rows;
        for (int64_t r = 0; r < rows; r++)
            squares += o->in[0][(2 * r + 1) * channels + c] + positions * pow(o->in[0][2 * r * channels + c] - mean, 2);
        o->in[1][c] += momentum * (mean - o->in[1][c]);
        o->in[2][c] += momentum * (squares / (n > 1 ? n - 1 : 1) - o->in[2][c]);
    }
    put(o, 0, o->in[1]);
    put(o, 1, o->in[2]);
}

/* dx = r·(g − ⟨g⟩ − x̂⟨g x̂⟩) with g = dy·act'(z)·gamma and ⟨·⟩ the mean over a group; without the means where the
 * statistics are given. dgamma += dz·x̂, dbeta += dz. Statistics as in normalise. */
static void backward(operands *o, const image *i, int64_t groups, pl_activation act, const double *rstd, bool given)
{
    int64_t of_sample = i->rows * i->positions * i->channels, width = i->channels / groups;
    const double *gamma = o->in[2], *beta = o->in[3], *mean = o->in[4];
    double *dx = scratch(o, (uint64_t)(i->samples * of_sample)), *dz = o->in[0], *hat = o->in[1];
    double *g = scratch(o, (uint64_t)(i->samples * groups)), *gx = scratch(o, (uint64_t)(i->samples * groups));
    for (int64_t e = 0; e < i->samples * of_sample; e++) {
        int64_t c = e % i->channels, k = e / of_sample * groups + c / width;
        hat[e] = (hat[e] - mean[k]) * rstd[k];
        dz[e] *= reference_act_slope(act, hat[e] * gamma[c] + beta[c]);
        if (o->in[6]) o->in[6][c] += dz[e] * hat[e];
        if (o->in[7]) o->in[7][c] += dz[e];
        g[k] += given ? 0 : dz[e] * gamma[c] / (double)(of_sample / groups);
        gx[k] += given ? 0 : dz[e] * gamma[c] * hat[e] / (double)(of_sample / groups);
    }
    for (int64_t e = 0; e < i->samples * of_sample; e++) {
        int64_t c = e % i->channels, k = e / of_sample * groups + c / width;
        dx[e] = rstd[k] * (dz[e] * gamma[c] - g[k] - hat[e] * gx[k]) + (o->in[8] ? o->in[8][e] : 0);
    }
    put(o, 0, dx);
    if (o->in[6]) put(o, 1, o->in[6]);
    if (o->in[7]) put(o, 2, o->in[7]);
}

void reference_group_norm_bwd(operands *o)
{
    image i = image_of(&operand(o, 1)->shape);
    backward(o, &i, o->node->attr[0].i, (pl_activation)o->node->attr[2].i, o->in[5], false);
}

void reference_batch_norm_bwd(operands *o)
{
    image i = image_of(&operand(o, 1)->shape);
    i.rows *= i.samples, i.samples = 1;
    backward(o, &i, i.channels, (pl_activation)o->node->attr[1].i, o->in[5], false);
}

void reference_batch_norm_eval_bwd(operands *o)
{
    image i = image_of(&operand(o, 1)->shape);
    for (int64_t c = 0; c < i.channels; c++) o->in[5][c] = 1 / sqrt(o->in[5][c] + o->node->attr[0].f);
    i.rows *= i.samples, i.samples = 1;
    backward(o, &i, i.channels, (pl_activation)o->node->attr[1].i, o->in[5], true);
}

/* ---- of what a pool left: the statistics are those of the whole image ---- */

void reference_pooled_batch_norm(operands *o)
{
    const pl_shape *moments = &operand(o, 1)->shape;
    image i = image_of(&operand(o, 0)->shape), whole = i;
    const int64_t numbers = i.rows * i.positions * i.channels;
    double *mean = scratch(o, (uint64_t)i.channels), *rstd = scratch(o, (uint64_t)i.channels);
    double *y = scratch(o, (uint64_t)(i.samples * numbers));
    whole.rows = moments->dim[1], whole.positions = o->node->attr[2].i;
    for (int64_t c = 0; c < i.channels; c++)
        statistics(&whole, o->in[1], i.samples * whole.rows, c, 1, o->node->attr[0].f, &mean[c], &rstd[c]);
    for (int64_t e = 0; e < i.samples * numbers; e++) {
        const int64_t c = e % i.channels;
        const double *film = o->in[4] ? o->in[4] + e / numbers * 2 * i.channels + c : NULL;
        y[e] = reference_act((pl_activation)o->node->attr[1].i,
                             (o->in[0][e] - mean[c]) * rstd[c] * o->in[2][c] + o->in[3][c]);
        if (film) y[e] = film[0] * y[e] + film[i.channels];
    }
    put(o, 0, y);
    put(o, 1, mean);
    put(o, 2, rstd);
}

/* dx as if mean and rstd were given; what they add for every number v of the whole image, −r·⟨g⟩ − r·x̂(v)·⟨g·x̂⟩,
 * comes as three rows of numbers. */
void reference_pooled_batch_norm_bwd(operands *o)
{
    const pl_activation act = (pl_activation)o->node->attr[1].i;
    image i = image_of(&operand(o, 1)->shape);
    const int64_t numbers = i.rows * i.positions * i.channels, channels = i.channels;
    const double n = (double)i.samples * (double)o->node->attr[2].i, *mean = o->in[4], *rstd = o->in[5];
    double *dx = scratch(o, (uint64_t)(i.samples * numbers)), *spread = scratch(o, (uint64_t)(3 * channels));
    double *dfilm = scratch(o, (uint64_t)(i.samples * 2 * channels));
    for (int64_t e = 0; e < i.samples * numbers; e++) {
        const int64_t c = e % channels, film = e / numbers * 2 * channels + c;
        const double hat = (o->in[1][e] - mean[c]) * rstd[c], z = hat * o->in[2][c] + o->in[3][c];
        dfilm[film] += o->in[0][e] * reference_act(act, z);
        dfilm[film + channels] += o->in[0][e];
        const double dz = o->in[0][e] * (o->in[8] ? o->in[8][film] : 1) * reference_act_slope(act, z);
        if (o->in[6]) o->in[6][c] += dz * hat;
        if (o->in[7]) o->in[7][c] += dz;
        dx[e] = dz * o->in[2][c] * rstd[c];
        spread[c] -= dx[e] / n;
        spread[channels + c] -= dx[e] * hat * rstd[c] / n;
        spread[2 * channels + c] = mean[c];
    }
    put(o, 0, dx);
    if (o->in[6]) put(o, 1, o->in[6]);
    if (o->in[7]) put(o, 2, o->in[7]);
    put(o, 3, spread);
    put(o, 4, dfilm);
}
