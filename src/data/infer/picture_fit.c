#include "data/infer/picture_fit.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* ---- one axis ---- */

/* Sides of 1 × 100,000 pixels would grow beyond all numbers: what is cropped away is not made, only counted. Of an odd
 * number more is cropped at one end, which is an end of what is seen. */
static pl_picture_axis axis_of(uint32_t from, uint32_t shorter, uint32_t size, bool flipped)
{
    const int64_t grown = from == shorter ? size : (int64_t)size * from / shorter, rest = grown - size;
    const int64_t before = (int64_t)nearbyint((double)rest / 2);
    return (pl_picture_axis){.scale = (double)from / (double)grown,
                             .first = flipped ? rest - before : before,
                             .from = from,
                             .flipped = flipped};
}

static double support(const pl_picture_axis *a) { return a->scale > 1 ? a->scale : 1; }

static double center(const pl_picture_axis *a, uint32_t to) { return ((double)(a->first + to) + 0.5) * a->scale; }

/* Of the picture's pixel in that of the result; not yet divided by the sum of all. */
static double weight(const pl_picture_axis *a, uint32_t to, uint32_t from)
{
    const double distance = fabs((double)from + 0.5 - center(a, to)) / support(a);
    return distance < 1 ? 1 - distance : 0;
}

static uint32_t clamped(double at, uint32_t most)
{
    if (at <= 0) return 0;
    return at >= (double)most ? most : (uint32_t)at;
}

/* Pixels of the picture that are in one of the result: [begin, end). */
static void range_of(const pl_picture_axis *a, uint32_t to, uint32_t *begin, uint32_t *end)
{
    *begin = clamped(floor(center(a, to) - support(a)), a->from);
    *end = clamped(ceil(center(a, to) + support(a)), a->from);
}

/* ---- a picture ---- */

/* Where the first column of the file and its first row are seen, by the value of Orientation: 2, 3, 7, 8 have the
 * column at the right or at the bottom, 3, 4, 6, 7 the row; from 5 on rows are seen as columns. */
static bool has(uint32_t orientation, uint32_t of) { return orientation < 32 && of >> orientation & 1; }
enum { FLIPPED_X = 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8, FLIPPED_Y = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 };

pl_status pl_picture_fit_begin(pl_picture_fit *f, uint32_t width, uint32_t height, uint32_t orientation, uint32_t size,
                               uint32_t channels, pl_error *err)
{
    const uint32_t shorter = width < height ? width : height;
    *f = (pl_picture_fit){.size = size, .channels = channels, .transposed = orientation >= 5 && orientation <= 8};
    if (width == 0 || height == 0) return pl_fail(err, PL_E_DATA, "it has no pixels");
    f->x = axis_of(width, shorter, size, has(orientation, FLIPPED_X));
    f->y = axis_of(height, shorter, size, has(orientation, FLIPPED_Y));
    f->row = pl_alloc((size_t)size * 3, sizeof *f->row);
    f->sum = pl_alloc((size_t)size * size * 3, sizeof *f->sum);
    f->weights = pl_alloc(size, sizeof *f->weights);
    if (f->row && f->sum && f->weights) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to make a picture %u pixels wide", size);
}

static void across(const pl_picture_fit *f, const uint8_t *rgb, uint32_t to)
{
    uint32_t begin, end;
    double sum[3] = {0}, all = 0;
    range_of(&f->x, to, &begin, &end);
    for (uint32_t i = begin; i < end; i++) {
        const double w = weight(&f->x, to, i);
        for (int c = 0; c < 3; c++) sum[c] += w * rgb[3 * (size_t)i + (size_t)c];
        all += w;
    }
    for (int c = 0; c < 3; c++) f->row[3 * (size_t)to + (size_t)c] = (float)(sum[c] / all);
}

static void add_row(pl_picture_fit *f, uint32_t to, float w)
{
    float *sum = f->sum + (size_t)to * f->size * 3;
    for (size_t i = 0; i < (size_t)f->size * 3; i++) sum[i] += w * f->row[i];
    f->weights[to] += w;
}

void pl_picture_fit_row(pl_picture_fit *f, const uint8_t *rgb)
{
    bool made = false;
    for (uint32_t to = 0; to < f->size; to++) {
        const double w = weight(&f->y, to, f->next);
        if (w <= 0) continue;
        for (uint32_t k = 0; k < f->size && !made; k++) across(f, rgb, k);
        made = true;
        add_row(f, to, (float)w);
    }
    f->next++;
}

static uint8_t rounded(float value)
{
    const float near = nearbyintf(value);
    if (near <= 0) return 0;
    return near >= 255 ? 255 : (uint8_t)near;
}

static uint8_t grey(const float *rgb, float by)
{
    return rounded((0.299f * rgb[0] + 0.587f * rgb[1] + 0.114f * rgb[2]) * by);
}

/* Where the sum lies of what is seen as pixel i. */
static size_t find_sum(const pl_picture_fit *f, size_t i)
{
    const size_t down = i / f->size, right = i % f->size, last = f->size - 1;
    const size_t y = f->transposed ? right : down, x = f->transposed ? down : right;
    return (f->y.flipped ? last - y : y) * f->size + (f->x.flipped ? last - x : x);
}

void pl_picture_fit_take(const pl_picture_fit *f, uint8_t *to)
{
    const size_t plane = (size_t)f->size * f->size;
    for (size_t i = 0; i < plane; i++) {
        const size_t from = find_sum(f, i);
        const float by = 1 / f->weights[from / f->size];
        const float *rgb = f->sum + 3 * from;
        if (f->channels == 1) to[i] = grey(rgb, by);
        for (uint32_t c = 0; c < f->channels && f->channels == 3; c++) to[c * plane + i] = rounded(rgb[c] * by);
    }
}

void pl_picture_fit_end(pl_picture_fit *f)
{
    pl_free(f->row);
    pl_free(f->sum);
    pl_free(f->weights);
    *f = (pl_picture_fit){0};
}
