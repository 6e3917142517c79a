/* The transforms of a sample in two stages, rows and columns, with its half-transformed image in the workspace, where
 * the cosines lie too; and the matrix of each mode. Rows, columns and modes do not know each other. */
#include <math.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

typedef struct spectrum_work {
    const pl_spectrum_call *call;
    const pl_kernels *kernels;
    pl_spectrum s;
    float *half;
} spectrum_work;

static int64_t half_elems(const pl_spectrum_call *c) { return c->height * c->modes * 2 * c->channels; }
static int64_t x_table_elems(const pl_spectrum_call *c) { return (c->width / 2 + 1) * c->modes; }
static int64_t y_table_elems(const pl_spectrum_call *c) { return c->height * (c->modes + 1); }

uint64_t pl_spectrum_workspace_bytes(const pl_spectrum_call *c, pl_team team)
{
    (void)team;
    int64_t whole = c->width > c->height ? c->width : c->height;
    uint64_t floats = (uint64_t)(half_elems(c) + 2 * x_table_elems(c) + 2 * y_table_elems(c) + 2 * whole);
    return (floats * sizeof(float) + 63) / 64 * 64;
}

/* cos and sin of 2π·i·j/n for i < rows, j < columns; `circle` has room for 2n. */
static void fill_table(int64_t n, int64_t rows, int64_t columns, float *circle, float *cosine, float *sine)
{
    for (int64_t i = 0; i < n; i++) {
        double angle = 6.283185307179586476925 * (double)i / (double)n;
        circle[i] = (float)cos(angle), circle[n + i] = (float)sin(angle);
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0, at = 0; j < columns; j++, at = (at + i) % n)
            cosine[i * columns + j] = circle[at], sine[i * columns + j] = circle[n + at];
}

static spectrum_work lay_out(const pl_spectrum_call *c, void *workspace, pl_team team)
{
    float *half = workspace, *cos_x = half + half_elems(c), *sin_x = cos_x + x_table_elems(c);
    float *cos_y = sin_x + x_table_elems(c), *sin_y = cos_y + y_table_elems(c), *circle = sin_y + y_table_elems(c);
    fill_table(c->width, c->width / 2 + 1, c->modes, circle, cos_x, sin_x);
    fill_table(c->height, c->height, c->modes + 1, circle, cos_y, sin_y);
    float scale = c->inverse_factors ? (float)(1 / ((double)c->height * (double)c->width)) : 1;
    return (spectrum_work){
        c,
        pl_kernels_get(team.isa),
        {c->height, c->width, c->channels, c->modes, scale, c->inverse_factors, cos_x, sin_x, cos_y, sin_y},
        half};
}

static void *image_at(const pl_spectrum_call *c, const void *image, int64_t sample)
{
    return image ? pl_real_at(c->type, image, sample * c->height * c->width * c->channels) : NULL;
}

static float *spectrum_at(const pl_spectrum_call *c, int64_t sample)
{
    return c->spectrum + sample * 4 * c->modes * c->modes * c->channels;
}

static void there_part(const void *work, int part, int parts)
{
    const spectrum_work *w = work;
    const pl_spectrum_call *c = w->call;
    pl_range rows = pl_range_of_part(c->height, 1, part, parts), columns = pl_range_of_part(c->modes, 1, part, parts);
    for (int64_t s = 0; s < c->samples; s++) {
        if (s) pl_barrier(); /* the last sample's columns have been read */
        w->kernels->spectrum_rows(&w->s, rows.begin, rows.end, c->type, image_at(c, c->image, s), w->half);
        pl_barrier();
        w->kernels->spectrum_columns(&w->s, columns.begin, columns.end, w->half, spectrum_at(c, s));
    }
}

static void back_part(const void *work, int part, int parts)
{
    const spectrum_work *w = work;
    const pl_spectrum_call *c = w->call;
    pl_range rows = pl_range_of_part(c->height, 1, part, parts), columns = pl_range_of_part(c->modes, 1, part, parts);
    for (int64_t s = 0; s < c->samples; s++) {
        if (s) pl_barrier();
        w->kernels->spectrum_columns_back(&w->s, columns.begin, columns.end, spectrum_at(c, s), w->half);
        pl_barrier();
        w->kernels->spectrum_rows_back(&w->s, rows.begin, rows.end, w->half, c->type, image_at(c, c->add, s),
                                       image_at(c, c->image, s));
    }
}

void pl_spectrum_exec(const pl_spectrum_call *c, void *workspace, pl_team team)
{
    spectrum_work w = lay_out(c, workspace, team);
    pl_parallel(team, c->samples * c->height * c->width * c->channels, there_part, &w);
}

void pl_spectrum_back_exec(const pl_spectrum_call *c, void *workspace, pl_team team)
{
    spectrum_work w = lay_out(c, workspace, team);
    pl_parallel(team, c->samples * c->height * c->width * c->channels, back_part, &w);
}

/* ---- a matrix a mode ---- */

typedef struct product_work {
    const pl_spectral_linear *product;
    void (*kernel)(const pl_spectral_linear *, int64_t, int64_t);
} product_work;

static void product_part(const void *work, int part, int parts)
{
    const product_work *w = work;
    pl_range modes = pl_range_of_part(w->product->modes, 1, part, parts);
    w->kernel(w->product, modes.begin, modes.end);
}

void pl_spectral_linear_exec(const pl_spectral_linear *p, pl_spectral_pass pass, pl_team team)
{
    const pl_kernels *k = pl_kernels_get(team.isa);
    product_work w = {p, pass == PL_SPECTRAL_FORWARD ? k->spectral_linear
                         : pass == PL_SPECTRAL_DX    ? k->spectral_linear_dx
                                                     : k->spectral_linear_dw};
    pl_parallel(team, p->modes * p->in * p->out, product_part, &w);
}
