/* Patches of images, positions added to every sample, a row in front of every sample. Rows of patches and elements are
 * shared out freely: the one thing that is summed up are the first rows, as in column_sum.c. */
#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "backend/parallel.h"
#include "backend/tokens.h"
#include "base/colours.h"
#include "kernels/gemm.h"
#include "kernels/kernels.h"

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
} work;

/* A row of patches, in whose cache lines it was just written. */
static void standardize(const pl_patches_call *c, int64_t columns, float *y)
{
    const int64_t pixels = c->patch * c->patch;
    for (int64_t i = 0; i < columns * c->channels; i++, y += pixels) {
        const float mean = pl_colour_mean[i % c->channels], deviation = pl_colour_deviation[i % c->channels];
        for (int64_t k = 0; k < pixels; k++) y[k] = (y[k] - mean) / deviation;
    }
}

/* A row of patches of planes: their numbers are there already. */
static void planes_row(const pl_patches_call *c, int64_t row, float *y)
{
    const int64_t down = c->height / c->patch, plane = c->height * c->width;
    const float *first = c->planes + row / down * c->channels * plane + row % down * c->patch * c->width;
    for (int64_t i = 0; i < c->width / c->patch; i++)
        for (int64_t channel = 0; channel < c->channels; channel++)
            for (int64_t r = 0; r < c->patch; r++, y += c->patch)
                memcpy(y, first + channel * plane + r * c->width + i * c->patch, (size_t)c->patch * sizeof *y);
}

static void patches_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_patches_call *c = w->call;
    int64_t columns = c->width / c->patch, line = c->width * c->depth;
    int64_t row_elems = columns * c->channels * c->patch * c->patch;
    pl_range rows = pl_range_of_part(c->samples * (c->height / c->patch), 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        if (c->planes)
            planes_row(c, r, c->y + r * row_elems);
        else
            w->kernels->patch_row(columns, c->patch, c->channels, c->depth, line, c->x + r * c->patch * line,
                                  c->y + r * row_elems);
        if (c->standardize) standardize(c, columns, c->y + r * row_elems);
    }
}

void pl_patches_exec(const pl_patches_call *c, pl_team team)
{
    assert(c->height % c->patch == 0 && c->width % c->patch == 0 && (c->depth == 1 || c->depth == c->channels));
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, patches_part, &w);
}

enum { GRAIN = 64, LINE_FLOATS = 16 };

/* In double, where the product is exact, so that every level rounds alike. */
static uint8_t pixel_of(float x) { return (uint8_t)lrint(255 * (double)(x > 1 ? 1 : x > 0 ? x : 0)); }

static void pixels_part(const void *context, int part, int parts)
{
    const pl_pixels_call *c = context;
    pl_range own = pl_range_of_part(c->elems, GRAIN, part, parts);
    for (int64_t i = own.begin; i < own.end; i++) c->y[i] = pixel_of(pl_real_get(c->type, c->x, i));
}

void pl_pixels_exec(const pl_pixels_call *c, pl_team team) { pl_parallel(team, c->elems, pixels_part, c); }

static void positions_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_add_positions_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * c->elems_per_sample, GRAIN, part, parts);
    for (int64_t i = own.begin, count; i < own.end; i += count) {
        int64_t place = i % c->elems_per_sample, left = c->elems_per_sample - place;
        count = left < own.end - i ? left : own.end - i;
        w->kernels->add_positions(count, c->type, pl_real_at(c->type, c->x, i), c->p + place,
                                  pl_real_at(c->type, c->y, i));
    }
}

void pl_add_positions_exec(const pl_add_positions_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->elems_per_sample, positions_part, &w);
}

/* ---- a row in front ---- */

static void copy_rows(pl_real type, int64_t rows, int64_t width, const void *from, int64_t first, void *to, int64_t at)
{
    memcpy(pl_real_at(type, to, at * width), pl_real_at(type, from, first * width),
           (size_t)(rows * width * pl_real_bytes(type)));
}

static void prepend_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_prepend_row_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * (1 + c->rows), 1, part, parts);
    for (int64_t r = own.begin, count; r < own.end; r += count) {
        int64_t b = r / (1 + c->rows), place = r % (1 + c->rows), left = 1 + c->rows - place;
        void *to = pl_real_at(c->type, c->y, r * c->width);
        count = place == 0 ? 1 : left < own.end - r ? left : own.end - r;
        if (place > 0)
            copy_rows(c->type, count, c->width, c->x, r - b - 1, c->y, r);
        else if (c->row)
            w->kernels->cast(c->width, PL_REAL_F32, c->row, c->type, to);
        else
            memset(to, 0, (size_t)(c->width * pl_real_bytes(c->type)));
    }
}

void pl_prepend_row_exec(const pl_prepend_row_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * (1 + c->rows) * c->width, prepend_part, &w);
}

typedef struct drop_work {
    const pl_drop_row_call *call;
    const pl_gemm_kernels *kernels;
} drop_work;

static void drop_part(const void *context, int part, int parts)
{
    const drop_work *w = context;
    const pl_drop_row_call *c = w->call;
    pl_range own = pl_range_of_part(c->y ? c->samples * c->rows : 0, 1, part, parts);
    for (int64_t r = own.begin, count; r < own.end; r += count) {
        int64_t b = r / c->rows, left = (b + 1) * c->rows - r;
        count = left < own.end - r ? left : own.end - r;
        copy_rows(c->type, count, c->width, c->x, r + b + 1, c->y, r);
    }
    own = pl_range_of_part(c->sum ? c->width : 0, LINE_FLOATS, part, parts);
    if (own.begin < own.end)
        w->kernels->column_sum(c->type, pl_real_at(c->type, c->x, own.begin), (1 + c->rows) * c->width, c->samples,
                               own.end - own.begin, c->sum + own.begin, 1);
}

void pl_drop_row_exec(const pl_drop_row_call *c, pl_team team)
{
    drop_work w = {c, pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    pl_parallel(team, c->samples * (c->y ? c->rows : 1) * c->width, drop_part, &w);
}
