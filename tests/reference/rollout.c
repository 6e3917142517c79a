/* What makes a trajectory: noise, the next state, metrics (base/rollout.h, kernels/rollout.h). Correlated noise by its
 * weights in space, each summed up from the frequencies. */
#include <math.h>
#include <string.h>

#include "base/philox.h"
#include "base/rollout.h"
#include "reference/state.h"

static const double turn = 6.283185307179586476925;

typedef struct noise {
    pl_philox philox;
    const double *row;
    uint64_t sample;
    double step, scale;
    int64_t height, width, channels;
} noise;

static double scale_at(const double *row, double step)
{
    int kind = pl_rollout_choice((float)row[PL_ROLLOUT_NOISE_SCHEDULE], PL_NOISE_SCHEDULE_COUNT);
    double scale = row[PL_ROLLOUT_NOISE_SCALE];
    if (kind == PL_NOISE_SCHEDULE_ANNEALING) return scale * (1 - step / row[PL_ROLLOUT_NOISE_STEPS]);
    if (kind == PL_NOISE_SCHEDULE_PERIODIC) return scale * (1 + 0.5 * sin(turn * step / row[PL_ROLLOUT_NOISE_PERIOD]));
    return scale;
}

static int kind_of(const noise *n)
{
    return pl_rollout_choice((float)n->row[PL_ROLLOUT_NOISE_KIND], PL_NOISE_KIND_COUNT);
}

static uint32_t word_of(const noise *n, int64_t element)
{
    uint32_t bits[4];
    pl_philox_block(&n->philox, (uint32_t)n->step, n->sample, (uint32_t)(element / 4), bits);
    return bits[element % 4];
}

static double white(const noise *n, int64_t pixel, int64_t channel)
{
    int64_t element = pixel * ((n->channels + 3) / 4 * 4) + channel, even = element / 2 * 2;
    if (kind_of(n) == PL_NOISE_LAPLACE) {
        uint32_t word = word_of(n, element);
        return log(((float)(word / 2) + 0.5f) / 0x1p31) * (word % 2 ? 1 : -1);
    }
    double radius = sqrt(-2 * log(((float)word_of(n, even) + 0.5f) / 0x1p32));
    double angle = turn * word_of(n, even + 1) / 0x1p32;
    return radius * (element == even ? cos(angle) : sin(angle));
}

/* Of a ring of n: what a point `distance` away weighs. */
static double weight(int64_t n, double width, int64_t distance)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
        double f = (double)(k <= n / 2 ? k : k - n) / (double)n;
        sum += exp(-f * f * width * width / 2) * cos(turn * (double)k * (double)distance / (double)n) / (double)n;
    }
    return sum;
}

/* Lines of n points `apart` apart in a plane; their first points are those of `first`. */
static void filter(double *plane, double *line, int64_t n, int64_t apart, double width, int64_t lines, int64_t step)
{
    double *weights = line + n;
    for (int64_t d = 0; d < n; d++) weights[d] = weight(n, width, d);
    for (int64_t l = 0; l < lines; l++) {
        double *at = plane + l * step;
        for (int64_t i = 0; i < n; i++) line[i] = at[i * apart];
        for (int64_t i = 0; i < n; i++) {
            at[i * apart] = 0;
            for (int64_t j = 0; j < n; j++) at[i * apart] += weights[(i - j + n) % n] * line[j];
        }
    }
}

static double deviation(const double *x, int64_t n)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    return n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* The noise of one channel, into plane. */
static void noise_plane(const noise *n, bool correlated, int64_t channel, double *plane, double *line)
{
    int64_t pixels = n->height * n->width;
    double width = n->row[PL_ROLLOUT_NOISE_CORRELATION] * (double)n->height;
    for (int64_t p = 0; p < pixels; p++) plane[p] = white(n, p, channel);
    if (!correlated || !(width > 0)) return;
    filter(plane, line, n->width, 1, width, n->height, n->width);
    filter(plane, line, n->height, n->width, width, n->width, 1);
    double now = deviation(plane, pixels), wanted = kind_of(n) == PL_NOISE_LAPLACE ? sqrt(2) : 1;
    for (int64_t p = 0; p < pixels; p++) plane[p] = now > 0 ? plane[p] * wanted / now : 0;
}

static void noise_channel(const noise *n, bool correlated, int64_t channel, double *x, double *plane, double *line)
{
    bool drops = kind_of(n) == PL_NOISE_DROPOUT2D, multiplies = kind_of(n) == PL_NOISE_MULTIPLICATIVE;
    bool dropped = drops && pl_uniform_f32(word_of(n, channel)) < (float)n->scale;
    if (!drops) noise_plane(n, correlated, channel, plane, line);
    for (int64_t p = 0; p < n->height * n->width; p++) {
        double *at = &x[p * n->channels + channel];
        if (drops)
            *at = dropped ? 0 : *at / (1 - n->scale);
        else
            *at += n->scale * plane[p] * (multiplies ? *at : 1);
    }
}

void reference_noise(operands *o)
{
    const int64_t *dim = operand(o, 0)->shape.dim;
    int64_t elems = dim[1] * dim[2] * dim[3], longer = dim[1] > dim[2] ? dim[1] : dim[2];
    double *plane = scratch(o, (uint64_t)(dim[1] * dim[2])), *line = scratch(o, (uint64_t)(2 * longer));
    for (int64_t s = 0; s < dim[0]; s++) {
        double row[PL_ROLLOUT_COLUMNS];
        const double *id = o->in[2] + s * PL_ROLLOUT_IDS;
        memcpy(row, o->in[1] + s * PL_ROLLOUT_COLUMNS, sizeof row);
        if (o->node->attr[3].i) { /* dropout is noise of that kind, by a rate that no schedule changes */
            row[PL_ROLLOUT_NOISE_KIND] = PL_NOISE_DROPOUT2D;
            row[PL_ROLLOUT_NOISE_SCALE] = row[PL_ROLLOUT_DROPOUT_RATE];
            row[PL_ROLLOUT_NOISE_SCHEDULE] = PL_NOISE_SCHEDULE_CONSTANT;
        }
        noise n = {.philox = pl_philox_init((uint64_t)o->node->attr[0].i, (uint64_t)o->node->attr[1].i),
                   .row = row,
                   .sample = (uint64_t)id[PL_ROLLOUT_OPERATOR] << 32 | (uint64_t)id[PL_ROLLOUT_REALISATION],
                   .step = o->in[3][0],
                   .scale = scale_at(row, o->in[3][0]),
                   .height = dim[1],
                   .width = dim[2],
                   .channels = dim[3]};
        for (int64_t c = 0; c < dim[3]; c++)
            noise_channel(&n, o->node->attr[2].i != 0, c, o->in[0] + s * elems, plane, line);
    }
    put(o, 0, o->in[0]);
}

/* ---- the next state ---- */

static void extremes(const double *x, int64_t n, double *low, double *high)
{
    *low = *high = x[0];
    for (int64_t i = 1; i < n; i++) *low = fmin(*low, x[i]), *high = fmax(*high, x[i]);
}

static void post_process(const double *row, double *x, int64_t n)
{
    int kind = pl_rollout_choice((float)row[PL_ROLLOUT_POST_PROCESS], PL_POST_COUNT);
    double low, high, mean = 0, strength = deviation(x, n) + 1e-8;
    extremes(x, n, &low, &high);
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        if (kind == PL_POST_MINMAX) x[i] = high > low ? (x[i] - low) / (high - low) : 0;
        if (kind == PL_POST_ZSCORE) x[i] = (x[i] - mean) / strength;
        x[i] = fmin(fmax(x[i], row[PL_ROLLOUT_CLAMP_LOW]), row[PL_ROLLOUT_CLAMP_HIGH]);
    }
}

static double next(const double *row, double x, double y)
{
    switch (pl_rollout_choice((float)row[PL_ROLLOUT_POLICY], PL_POLICY_COUNT)) {
    case PL_POLICY_RESIDUAL:
        return x + row[PL_ROLLOUT_DT] * y;
    case PL_POLICY_CONVEX:
        return row[PL_ROLLOUT_ALPHA] * x + (1 - row[PL_ROLLOUT_ALPHA]) * y;
    default:
        return y;
    }
}

void reference_evolve(operands *o)
{
    const pl_shape *shape = &operand(o, 0)->shape;
    int64_t samples = shape->dim[0], n = (int64_t)pl_shape_elems(shape) / samples;
    double *x = scratch(o, (uint64_t)(samples * n));
    for (int64_t s = 0; s < samples; s++) {
        const double *row = o->in[2] + s * PL_ROLLOUT_COLUMNS;
        for (int64_t i = s * n; i < (s + 1) * n; i++) x[i] = next(row, o->in[0][i], o->in[1][i]);
        post_process(row, x + s * n, n);
    }
    if (o->in[3]) put(o, 1, o->in[0]);
    put(o, 0, x);
}

/* ---- metrics ---- */

/* A bin is [low + b·width, low + (b + 1)·width), the last one closed. */
static double entropy(const double *x, int64_t n)
{
    double low, high, sum = 0;
    extremes(x, n, &low, &high);
    for (int b = 0; b < PL_FIELD_BINS && high > low; b++) {
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++) {
            int bin = (int)floor((x[i] - low) * (PL_FIELD_BINS / (high - low)));
            count += b == (bin < PL_FIELD_BINS ? bin : PL_FIELD_BINS - 1);
        }
        if (count) sum -= (double)count / (double)n * log((double)count / (double)n);
    }
    return sum;
}

static double pearson(const double *x, const double *p, int64_t n)
{
    double mx = 0, mp = 0, xx = 0, xp = 0, pp = 0;
    for (int64_t i = 0; i < n; i++) mx += x[i] / (double)n, mp += p[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xp += (x[i] - mx) * (p[i] - mp);
        pp += (p[i] - mp) * (p[i] - mp);
    }
    return xx > 0 && pp > 0 ? xp / sqrt(xx * pp) : 0;
}

void reference_field_metrics(operands *o)
{
    const pl_shape *shape = &operand(o, 0)->shape;
    int64_t samples = shape->dim[0], n = (int64_t)pl_shape_elems(shape) / samples;
    double *metrics = scratch(o, (uint64_t)(samples * PL_FIELD_METRICS));
    for (int64_t s = 0; s < samples; s++) {
        const double *x = o->in[0] + s * n;
        double *m = metrics + s * PL_FIELD_METRICS;
        for (int64_t i = 0; i < n; i++) {
            m[PL_FIELD_ENERGY] += x[i] * x[i];
            m[PL_FIELD_MEAN_MAGNITUDE] += fabs(x[i]) / (double)n;
        }
        m[PL_FIELD_ENTROPY] = entropy(x, n);
        m[PL_FIELD_AUTOCORRELATION] = o->in[1] ? pearson(x, o->in[1] + s * n, n) : 0;
        m[PL_FIELD_VARIANCE] = deviation(x, n) * deviation(x, n);
    }
    put(o, 0, metrics);
}
