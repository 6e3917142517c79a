#include "data/fields/initial.h"

#include <math.h>
#include <string.h>

#include "base/circular.h"
#include "base/philox.h"

#define GRF(name, variance)                                                                                            \
    {                                                                                                                  \
        name, PL_INITIAL_RANDOM, 0.05, variance, 1, { 0.05 }                                                           \
    }
#define BAND(name, weight, long_, mid, short_)                                                                         \
    {                                                                                                                  \
        name, PL_INITIAL_RANDOM, weight, 1, 3, { long_, mid, short_ }                                                  \
    }

const pl_initial_choice pl_initial_documented[PL_INITIAL_DOCUMENTED] = {
    GRF("gaussian_random_field_v0", 0.25),
    GRF("gaussian_random_field_v1", 0.5),
    GRF("gaussian_random_field_v2", 1),
    GRF("gaussian_random_field_v3", 2),
    GRF("gaussian_random_field_v4", 4),
    BAND("multiscale_grf_low", 0.0833, 0.30, 0.35, 0.40),
    BAND("multiscale_grf_mid", 0.0833, 0.08, 0.10, 0.12),
    BAND("multiscale_grf_high", 0.0834, 0.02, 0.03, 0.04),
    {"structured", PL_INITIAL_STRIPES, 0.25, .count = 3, .low = 1, .high = 6},
    {"localized", PL_INITIAL_BLOBS, 0.25, .count = 5, .low = 5, .high = 15},
};

static const double full_turn = 6.283185307179586476925;
enum { DOCUMENTED_HEIGHT = 128 };

/* ---- what is refused ---- */

static pl_status check_random(const pl_initial_choice *c, pl_error *err)
{
    if (!(c->variance > 0 && c->variance < INFINITY))
        return pl_fail(err, PL_E_CONFIG, "initial field %s: its variance is %g; a number above 0 is wanted", c->name,
                       c->variance);
    if (c->lengths < 1 || c->lengths > PL_INITIAL_LENGTHS)
        return pl_fail(err, PL_E_CONFIG, "initial field %s has %u length scales; give 1 to %d", c->name, c->lengths,
                       PL_INITIAL_LENGTHS);
    for (uint32_t i = 0; i < c->lengths; i++)
        if (!(c->length[i] > 0 && c->length[i] <= 1))
            return pl_fail(err, PL_E_CONFIG,
                           "initial field %s: a length scale is %g; it is a part of the field's height, above 0 and at "
                           "most 1",
                           c->name, c->length[i]);
    return PL_OK;
}

static pl_status check_choice(const pl_initial_choice *c, pl_error *err)
{
    if (!(c->weight >= 0 && c->weight <= 1))
        return pl_fail(err, PL_E_CONFIG, "initial field %s: its weight is %g; a number from 0 to 1 is wanted", c->name,
                       c->weight);
    if (c->kind == PL_INITIAL_RANDOM) return check_random(c, err);
    if (c->count < 1)
        return pl_fail(err, PL_E_CONFIG, "initial field %s has nothing in it; ask for 1 pattern or more", c->name);
    if (!(c->low > 0 && c->low <= c->high && c->high < INFINITY))
        return pl_fail(
            err, PL_E_CONFIG,
            "initial field %s: %s from %g to %g; the lower bound must be above 0 and not above the upper one", c->name,
            c->kind == PL_INITIAL_BLOBS ? "widths" : "frequencies", c->low, c->high);
    return PL_OK;
}

pl_status pl_initial_check(const pl_initial *f, pl_error *err)
{
    double sum = 0;
    if (f->height < 2 || f->width < 2 || f->channels < 1)
        return pl_fail(
            err, PL_E_CONFIG,
            "an initial field of %lld by %lld pixels with %lld channels has no pattern; it needs 2 by 2 pixels "
            "and a channel",
            (long long)f->height, (long long)f->width, (long long)f->channels);
    for (uint32_t i = 0; i < f->choices; i++) {
        PL_TRY(check_choice(&f->choice[i], err));
        sum += f->choice[i].weight;
    }
    if (fabs(sum - 1) > 1e-6)
        return pl_fail(err, PL_E_CONFIG,
                       "the weights of the %u kinds of initial fields sum to %.9g; they must sum to 1", f->choices,
                       sum);
    return PL_OK;
}

/* ---- draws ---- */

typedef struct draw {
    const pl_initial *f;
    const pl_initial_choice *choice;
    pl_philox philox;
    uint64_t sample;
} draw;

static draw draw_of(const pl_initial *f, uint32_t operator_number, uint32_t realisation)
{
    return (draw){.f = f,
                  .philox = pl_philox_init(f->seed, pl_stream_id("initial_field")),
                  .sample = (uint64_t)operator_number << 32 | realisation};
}

/* Four numbers in [0, 1). */
static void uniforms(const draw *d, uint32_t step, uint32_t block, double u[4])
{
    uint32_t bits[4];
    pl_philox_block(&d->philox, step, d->sample, block, bits);
    for (int i = 0; i < 4; i++) u[i] = bits[i] * 0x1p-32;
}

static double between(double u, double low, double high) { return low + u * (high - low); }

static uint32_t pick(const draw *d)
{
    double u[4], sum = 0;
    uint32_t last = 0;
    uniforms(d, 0, 0, u);
    for (uint32_t i = 0; i < d->f->choices; i++) {
        if (d->f->choice[i].weight > 0) last = i;
        sum += d->f->choice[i].weight;
        if (u[0] < sum) return i;
    }
    return last; /* the sum was a little below 1 */
}

uint32_t pl_initial_pick(const pl_initial *f, uint32_t operator_number, uint32_t realisation)
{
    draw d = draw_of(f, operator_number, realisation);
    return pick(&d);
}

/* ---- random fields ---- */

typedef struct planes {
    double *sum, *one, *other; /* [pixels] each */
    double *weight, *scratch;  /* of base/circular.h */
    float *normal;             /* [pixels]: where other lies */
} planes;

static int64_t pixels_of(const pl_initial *f) { return f->height * f->width; }
static int64_t longer_side(const pl_initial *f) { return f->height > f->width ? f->height : f->width; }

static planes planes_in(const pl_initial *f, void *scratch)
{
    planes p = {.sum = scratch};
    p.one = p.sum + pixels_of(f);
    p.other = p.one + pixels_of(f);
    p.normal = (float *)p.other;
    p.weight = p.other + pixels_of(f);
    p.scratch = p.weight + longer_side(f) / 2 + 1;
    return p;
}

uint64_t pl_initial_scratch_bytes(const pl_initial *f)
{
    int64_t n = longer_side(f);
    return (uint64_t)(3 * pixels_of(f) + n / 2 + 1 + pl_circular_scratch_elems(n)) * sizeof(double);
}

static void add_rows(int64_t count, double weight, const double *a, const double *b, double *out)
{
    for (int64_t i = 0; i < count; i++) out[i] += weight * (a[i] + b[i]);
}

/* other = one filtered along its columns, rows of `columns` numbers; then one = other with rows and columns swapped. */
static void filter_columns(planes *p, int64_t rows, int64_t columns, double width)
{
    int64_t radius = pl_circular_gaussian(rows, width, p->scratch, p->weight);
    for (int64_t y = 0; y < rows; y++) {
        double *out = p->other + y * columns;
        for (int64_t x = 0; x < columns; x++) out[x] = p->weight[0] * p->one[y * columns + x];
        for (int64_t j = 1; j <= radius; j++)
            add_rows(columns, p->weight[j], p->one + (y >= j ? y - j : y - j + rows) * columns,
                     p->one + (y + j < rows ? y + j : y + j - rows) * columns, out);
    }
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = 0; x < columns; x++) p->one[x * rows + y] = p->other[y * columns + x];
}

/* Mean 0, and this variance. */
static void normalise(double *x, int64_t n, double variance)
{
    double mean = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= (double)n;
    for (int64_t i = 0; i < n; i++) x[i] -= mean, squares += x[i] * x[i];
    double factor = squares > 0 ? sqrt(variance * (double)n / squares) : 0;
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

static void add_random(const draw *d, planes *p, uint32_t scale, int64_t channel)
{
    int64_t n = pixels_of(d->f), height = d->f->height, width = d->f->width;
    double filter = sqrt(0.5) * full_turn * d->choice->length[scale] * (double)height;
    uint64_t first = (uint64_t)(channel * n);
    pl_philox_normal_f32(&d->philox, 1 + scale, d->sample, first, first + (uint64_t)n, p->normal);
    for (int64_t i = 0; i < n; i++) p->one[i] = p->normal[i];
    filter_columns(p, height, width, filter);
    filter_columns(p, width, height, filter);
    normalise(p->one, n, 1);
    for (int64_t i = 0; i < n; i++) p->sum[i] += p->one[i];
}

static void fill_random(const draw *d, planes p, float *field)
{
    int64_t n = pixels_of(d->f), channels = d->f->channels;
    for (int64_t c = 0; c < channels; c++) {
        memset(p.sum, 0, (size_t)n * sizeof *p.sum);
        for (uint32_t i = 0; i < d->choice->lengths; i++) add_random(d, &p, i, c);
        normalise(p.sum, n, d->choice->variance);
        for (int64_t i = 0; i < n; i++) field[i * channels + c] = (float)p.sum[i];
    }
}

/* ---- stripes and blobs ---- */

static void add_stripe(const draw *d, uint32_t number, float *field)
{
    const pl_initial *f = d->f;
    double u[4];
    uniforms(d, 1, number, u);
    double frequency = full_turn * between(u[0], d->choice->low, d->choice->high) / (double)f->height;
    double along_x = frequency * cos(full_turn * u[1]), along_y = frequency * sin(full_turn * u[1]);
    int64_t channel = (int64_t)(u[2] * (double)f->channels);
    for (int64_t y = 0; y < f->height; y++)
        for (int64_t x = 0; x < f->width; x++)
            field[(y * f->width + x) * f->channels + channel] += (float)sin(along_x * (double)x + along_y * (double)y);
}

static void add_blob(const draw *d, uint32_t number, float *field)
{
    const pl_initial *f = d->f;
    double u[4];
    uniforms(d, 1, number, u);
    double cx = u[0] * (double)f->width, cy = u[1] * (double)f->height;
    double width = between(u[2], d->choice->low, d->choice->high) * (double)f->height / DOCUMENTED_HEIGHT;
    for (int64_t c = 0; c < f->channels; c++) {
        float amplitude;
        uint64_t at = (uint64_t)number * (uint64_t)f->channels + (uint64_t)c;
        pl_philox_normal_f32(&d->philox, 2, d->sample, at, at + 1, &amplitude);
        for (int64_t y = 0; y < f->height; y++)
            for (int64_t x = 0; x < f->width; x++) {
                double dx = (double)x - cx, dy = (double)y - cy;
                field[(y * f->width + x) * f->channels + c] +=
                    (float)(2 * amplitude * exp(-(dx * dx + dy * dy) / (2 * width * width)));
            }
    }
}

void pl_initial_fill(const pl_initial *f, uint32_t operator_number, uint32_t realisation, void *scratch, float *field)
{
    draw d = draw_of(f, operator_number, realisation);
    d.choice = &f->choice[pick(&d)];
    if (d.choice->kind == PL_INITIAL_RANDOM) {
        fill_random(&d, planes_in(f, scratch), field);
        return;
    }
    memset(field, 0, (size_t)(pixels_of(f) * f->channels) * sizeof *field);
    for (uint32_t i = 0; i < d.choice->count; i++)
        if (d.choice->kind == PL_INITIAL_STRIPES)
            add_stripe(&d, i, field);
        else
            add_blob(&d, i, field);
}
