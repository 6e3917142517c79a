/* The gradient of a convolution's weights: dW[out, (u, v, c)] += Σ dy[pixel, out]·x[the pixel's window, (u, v, c)], a
 * product with k = pixels on the tiles of the matrix product. (Winograd's: convolution_winograd_dw.c.)
 *
 *   block    a few rows of one image of dy: the stretch of k that is worked on at a time
 *   columns  the taps of a kernel row with their channels: of x, kernel·in neighbours in memory for each pixel
 *   unit     a panel of these columns × some panels of output channels, for all rows of the kernel
 *
 * Per block the team packs dy by columns, meets, and shares out the units; each packs its panel of x and runs the tiles
 * that stand on it, which go on where dW stands. What a window has outside of the image is packed as zero; a row of the
 * kernel above or below the image is left out. So an element of dW is one chain over all pixels in their order,
 * whatever the team, the block or the number of images in a call. dy is packed into two places in turn, so that one
 * meeting a block is enough.
 *
 * Workspace: two blocks of dy | per thread: a panel of x, a tile, the pixels at the sides. */
#include <string.h>

#include "backend/calls.h"
#include "backend/convolution_few.h"
#include "backend/convolution_winograd.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/convolution.h"

enum { UNITS_PER_THREAD = 4, PACKED_PANELS = 4 /* of dy, at a time */ };

static const double parallel_macs = 1 << 19;

typedef struct job {
    const pl_convolution_dw_call *call;
    const pl_gemm_kernels *kernels;
    int threads;
    int64_t row_words;          /* of k: a row of pixels */
    int64_t block_rows, blocks; /* of dy; of an image */
    int64_t out_panels, columns, column_panels;
    int64_t group, groups; /* panels of output channels of a unit */
    int64_t panel_words;   /* of dy: a panel of output channels, a block */
    uint64_t block_bytes, threads_offset, tile_offset, sides_offset, thread_bytes, bytes;
    char *workspace;
} job;

typedef struct block {
    int64_t image, begin, end; /* rows of dy */
    uint32_t *dy;              /* packed */
} block;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t split(int64_t m, int64_t count, int64_t i) { return m / count * i + min_of(i, m % count); }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

/* ---- how it is cut ---- */

static void cut_units(job *j)
{
    int64_t wanted = j->threads == 1 ? 1 : UNITS_PER_THREAD * (int64_t)j->threads;
    j->group = j->out_panels;
    while (j->group > 1 && j->column_panels * divide_up(j->out_panels, j->group) < wanted)
        j->group = divide_up(j->group, 2);
    j->groups = divide_up(j->out_panels, j->group);
}

static void lay_out(job *j)
{
    const pl_gemm_kernels *t = j->kernels;
    j->panel_words = j->block_rows * j->row_words * t->mr;
    j->block_bytes = words_bytes(j->out_panels * j->panel_words);
    j->threads_offset = 2 * j->block_bytes;
    int64_t rows = j->block_rows + (j->call->shape.stride == 1 ? j->call->shape.kernel - 1 : 0);
    j->tile_offset = words_bytes(rows * j->row_words * t->nr);
    j->sides_offset = j->tile_offset + words_bytes(t->mr * t->nr);
    j->thread_bytes = j->sides_offset + words_bytes(j->call->shape.out_width * t->nr);
    j->bytes = j->threads_offset + (uint64_t)j->threads * j->thread_bytes;
}

static job job_of(const pl_convolution_dw_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    job j = {.call = c, .kernels = pl_gemm_kernels_of(team.isa, c->type, c->type)};
    double macs = pl_convolution_macs(s) * (double)s->batch;
    j.threads = team.threads > 1 && macs >= parallel_macs ? team.threads : 1;
    j.row_words = divide_up(s->out_width, j.kernels->step);
    j.block_rows = min_of(s->out_height, max_of(1, j.kernels->k_block_packed * j.kernels->step / s->out_width));
    j.blocks = divide_up(s->out_height, j.block_rows);
    j.out_panels = divide_up(s->out, j.kernels->mr);
    j.columns = s->kernel * s->in;
    j.column_panels = divide_up(j.columns, j.kernels->nr);
    cut_units(&j);
    lay_out(&j);
    return j;
}

/* ---- dy ---- */

static int64_t first_out(const job *j, int64_t panel) { return split(j->call->shape.out, j->out_panels, panel); }

/* Panels [begin, end) of one row of pixels; panels come in one or two sizes, and those of one size are neighbours. */
static void pack_dy(const job *j, const block *b, int64_t row, int64_t begin, int64_t end)
{
    const pl_convolution_shape *s = &j->call->shape;
    int64_t pixel = (b->image * s->out_height + row) * s->out_width;
    for (int64_t next; begin < end; begin = next) {
        int64_t first = first_out(j, begin), rows = first_out(j, begin + 1) - first;
        for (next = begin + 1; next < end && first_out(j, next + 1) - first_out(j, next) == rows;) next++;
        j->kernels->pack[1][j->call->type].a_columns(
            pl_real_at(j->call->type, j->call->dy, pixel * s->out + first), s->out, rows, next - begin, s->out_width,
            b->dy + begin * j->panel_words + (row - b->begin) * j->row_words * rows, j->panel_words);
    }
}

static void pack_block(const job *j, const block *b, int part, int parts)
{
    int64_t pieces = divide_up(j->out_panels, PACKED_PANELS);
    for (int64_t i = part; i < (b->end - b->begin) * pieces; i += parts) {
        int64_t begin = i % pieces * PACKED_PANELS;
        pack_dy(j, b, b->begin + i / pieces, begin, min_of(begin + PACKED_PANELS, j->out_panels));
    }
}

/* ---- x ---- */

typedef struct panel { /* of columns of kernel row `row` */
    int64_t row, begin, count;
    uint32_t *x;         /* packed rows, row `first` of the image in front */
    int64_t first, skip; /* words to where the tiles begin */
    void *sides;
} panel;

/* Pixels [begin, end), whose windows may hang over the sides: first with zeros around what lies in the image. */
static void pack_sides(const job *j, const panel *p, int64_t row_at, int64_t begin, int64_t end, uint32_t *to)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t size = pl_real_bytes(j->call->type), nr = j->kernels->nr;
    if (begin >= end) return;
    memset(p->sides, 0, (size_t)((end - begin) * nr * size));
    for (int64_t q = begin; q < end; q++) {
        int64_t window = (q * s->stride - s->pad) * s->in + p->begin; /* its first element of the row of x */
        int64_t from = max_of(window, 0), behind = min_of(window + p->count, s->width * s->in);
        if (from < behind)
            memcpy((char *)p->sides + ((q - begin) * nr + from - window) * size,
                   pl_real_at(j->call->type, j->call->x, row_at + from), (size_t)((behind - from) * size));
    }
    j->kernels->pack[1][j->call->type].b(p->sides, nr, end - begin, p->count, to + begin / j->kernels->step * nr, 0);
}

/* What a row of pixels of dy sees of row `y` of the image. Words hold whole pairs on either side of a cut. */
static void pack_x(const job *j, const panel *p, int64_t image, int64_t y, uint32_t *to)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t step = j->kernels->step, first_tap = p->begin / s->in, last_tap = (p->begin + p->count - 1) / s->in;
    int64_t row_at = (image * s->height + y) * s->width * s->in, room = s->width - 1 + s->pad - last_tap;
    int64_t begin = max_of(0, divide_up(max_of(0, s->pad - first_tap), s->stride));
    int64_t end = room < 0 ? 0 : min_of(s->out_width, room / s->stride + 1);
    begin = divide_up(begin, step) * step;
    if (end < s->out_width) end = end / step * step;
    if (begin >= end) begin = end = 0;
    pack_sides(j, p, row_at, 0, begin, to);
    if (begin < end)
        j->kernels->pack[1][j->call->type].b(
            pl_real_at(j->call->type, j->call->x, row_at + (begin * s->stride - s->pad) * s->in + p->begin),
            s->stride * s->in, end - begin, p->count, to + begin / step * j->kernels->nr, 0);
    pack_sides(j, p, row_at, end, s->out_width, to);
}

/* ---- tiles ---- */

/* At the right edge of the columns: in the thread's own memory, where rows are whole vectors long. */
static void add_ragged(const job *j, int64_t words, const uint32_t *dy, int64_t rows, const panel *p, float *dw,
                       int64_t ld, float *tile)
{
    const pl_gemm_kernels *t = j->kernels;
    pl_gemm_epilogue store = {.c = dw, .ldc = ld};
    for (int64_t i = 0; i < rows * t->nr; i++) tile[i] = i % t->nr < p->count ? dw[i / t->nr * ld + i % t->nr] : 0;
    t->by_columns[rows - 1][p->count > t->vector](words, dy, 0, p->x + p->skip, t->nr, tile, t->nr, 1, NULL);
    t->finish(&store, tile, t->nr, 0, 0, rows, p->count);
}

static void add_tile(const job *j, const block *b, int64_t begin, int64_t end, int64_t out_panel, const panel *p,
                     float *tile)
{
    const pl_gemm_kernels *t = j->kernels;
    int64_t first = first_out(j, out_panel), rows = first_out(j, out_panel + 1) - first;
    int64_t ld = j->call->shape.kernel * j->columns, words = (end - begin) * j->row_words;
    const uint32_t *dy = b->dy + out_panel * j->panel_words + (begin - b->begin) * j->row_words * rows;
    float *dw = j->call->dw + first * ld + p->row * j->columns + p->begin;
    if (p->count % t->vector)
        add_ragged(j, words, dy, rows, p, dw, ld, tile);
    else
        t->by_columns[rows - 1][p->count > t->vector](words, dy, 0, p->x + p->skip, t->nr, dw, ld, 1, NULL);
}

/* Rows of dy of the block for which kernel row `u` lies in the image. */
static void rows_with(const job *j, const block *b, int64_t u, int64_t *begin, int64_t *end)
{
    const pl_convolution_shape *s = &j->call->shape;
    int64_t below = s->height - 1 + s->pad - u; /* output o reads row o·stride − pad + u */
    *begin = max_of(b->begin, divide_up(max_of(0, s->pad - u), s->stride));
    *end = below < 0 ? 0 : min_of(b->end, below / s->stride + 1);
}

/* Rows of x for the rows [begin, end) of dy, one behind the other. With stride 1, what a kernel row sees is what the
 * one above sees, a row further on: then the rows of all of them are packed at once, row `first` of the image being
 * in front. */
static void pack_rows(const job *j, const block *b, panel *p, int64_t begin, int64_t end)
{
    const pl_convolution_shape *s = &j->call->shape;
    int64_t words = j->row_words * j->kernels->nr;
    if (s->stride > 1) {
        for (int64_t o = begin; o < end; o++)
            pack_x(j, p, b->image, o * s->stride - s->pad + p->row, p->x + (o - begin) * words);
        p->first = begin * s->stride - s->pad + p->row;
    } else if (p->row == 0) {
        p->first = max_of(0, b->begin - s->pad);
        for (int64_t y = p->first; y < min_of(s->height, b->end - s->pad + s->kernel - 1); y++)
            pack_x(j, p, b->image, y, p->x + (y - p->first) * words);
    }
}

static void compute_unit(const job *j, const block *b, int64_t index, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    int64_t group = index % j->groups, begin, end;
    panel p = {
        .begin = index / j->groups * j->kernels->nr, .x = (uint32_t *)(void *)own, .sides = own + j->sides_offset};
    p.count = min_of(j->kernels->nr, j->columns - p.begin);
    for (p.row = 0; p.row < s->kernel; p.row++) {
        rows_with(j, b, p.row, &begin, &end);
        pack_rows(j, b, &p, begin, end);
        p.skip = (begin * s->stride - s->pad + p.row - p.first) * j->row_words * j->kernels->nr;
        for (int64_t i = group * j->group; i < min_of(j->out_panels, (group + 1) * j->group) && begin < end; i++)
            add_tile(j, b, begin, end, i, &p, (float *)(void *)(own + j->tile_offset));
    }
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_convolution_shape *s = &j->call->shape;
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    pl_range units = pl_range_of_part(j->column_panels * j->groups, 1, part, parts);
    for (int64_t i = 0; i < s->batch * j->blocks; i++) {
        block b = {.image = i / j->blocks, .begin = i % j->blocks * j->block_rows};
        b.end = min_of(s->out_height, b.begin + j->block_rows);
        b.dy = (uint32_t *)(void *)(j->workspace + (uint64_t)(i % 2) * j->block_bytes);
        pack_block(j, &b, part, parts);
        pl_barrier();
        for (int64_t unit = units.begin; unit < units.end; unit++) compute_unit(j, &b, unit, own);
    }
}

/* ---- calls ---- */

static void ref_work(const void *work_call, int part, int parts)
{
    const pl_convolution_dw_call *c = work_call;
    pl_range out = pl_range_of_part(c->shape.out, 1, part, parts);
    pl_convolution_dw_ref(&c->shape, c->type, c->dy, c->x, c->dw, out.begin, out.end);
}

static pl_gemm_call product_of(const pl_convolution_dw_call *c)
{
    const pl_convolution_shape *s = &c->shape;
    const int64_t pixels = s->height * s->width;
    pl_gemm_call product = pl_gemm_linear_dw(c->type, s->out, s->in, s->batch * pixels, c->dy, c->x, c->dw);
    product.k_sample = pixels;
    return product;
}

uint64_t pl_convolution_dw_workspace_bytes(const pl_convolution_dw_call *c, pl_team team)
{
    pl_gemm_call product = product_of(c);
    if (team.isa == PL_ISA_REF) return 0;
    if (pl_convolution_is_product(&c->shape)) return pl_gemm_workspace_bytes(&product, team);
    if (c->algorithm != PL_CONVOLUTION_DIRECT) return pl_convolution_winograd_dw_workspace_bytes(c, team);
    if (pl_convolution_window_is_small(&c->shape)) return pl_convolution_few_dw_workspace_bytes(c, team);
    return job_of(c, team).bytes;
}

void pl_convolution_dw_exec(const pl_convolution_dw_call *c, void *workspace, pl_team team)
{
    if (team.isa == PL_ISA_REF) {
        pl_parallel(team, INT64_MAX, ref_work, c);
        return;
    }
    if (pl_convolution_is_product(&c->shape)) {
        pl_gemm_call product = product_of(c);
        pl_gemm_exec(&product, workspace, team);
        return;
    }
    if (c->algorithm != PL_CONVOLUTION_DIRECT) {
        pl_convolution_winograd_dw_exec(c, workspace, team);
        return;
    }
    if (pl_convolution_window_is_small(&c->shape)) {
        pl_convolution_few_dw_exec(c, workspace, team);
        return;
    }
    job j = job_of(c, team);
    j.workspace = workspace;
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
