#include <string.h>

#include "backend/convolution_few.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum {
    IMAGE_BLOCKS = 32,
    PIXELS = 32, /* of dy, which stay in the first-level cache while its panels pass by and the next are asked for */
    FLOAT_BYTES = sizeof(float),
};

static const double parallel_macs = 1 << 19;

typedef struct job {
    const pl_convolution_dw_call *call;
    const pl_gemm_kernels *tiles;
    const pl_kernels *kernels;
    int threads;
    int64_t window, panels;     /* numbers of a window, in so many panels of rows of a tile */
    int64_t block_rows, blocks; /* of an image */
    int64_t ld;                 /* of the sums: output channels, filled up to whole vectors */
    int in_place;               /* is dy read where it is? */
    uint64_t threads_offset, dy_offset, x_offset, thread_bytes, bytes;
    char *workspace;
} job;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t split(int64_t m, int64_t count, int64_t i) { return m / count * i + min_of(i, m % count); }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

static void lay_out(job *j)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t x_elems = j->call->type == PL_REAL_F32 ? 0 : s->kernel * s->width * s->in;
    j->threads_offset = words_bytes(j->blocks * j->window * j->ld);
    j->dy_offset = words_bytes(s->out_width * j->window);
    j->x_offset = j->dy_offset + words_bytes(j->in_place ? 0 : s->out_width * j->ld);
    j->thread_bytes = j->x_offset + words_bytes(x_elems);
    j->bytes = j->threads_offset + (uint64_t)j->threads * j->thread_bytes;
}

static job job_of(const pl_convolution_dw_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    job j = {.call = c, .tiles = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    j.kernels = pl_kernels_get(team.isa);
    j.threads = team.threads > 1 && pl_convolution_macs(s) * (double)s->batch >= parallel_macs ? team.threads : 1;
    j.window = s->kernel * s->kernel * s->in;
    j.panels = divide_up(j.window, j.tiles->mr);
    j.block_rows = divide_up(s->out_height, IMAGE_BLOCKS);
    j.blocks = divide_up(s->out_height, j.block_rows);
    j.ld = divide_up(s->out, j.tiles->vector) * j.tiles->vector;
    j.in_place = c->type == PL_REAL_F32 && j.ld == s->out;
    lay_out(&j);
    return j;
}

/* ---- operands ---- */

/* Panel after panel, in each the pixels' numbers one behind the other. */
static void pack_windows(const job *j, int64_t image, int64_t row, float *windows, float *widened)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t row_numbers = s->kernel * s->in;
    for (int64_t u = 0; u < s->kernel; u++) {
        const float *x = pl_convolution_few_row(j->kernels, s, j->call->type, j->call->x, image,
                                                row * s->stride - s->pad + u, widened + u * s->width * s->in);
        for (int64_t i = 0, panel = 0; i < row_numbers; i++) {
            const int64_t at = u * row_numbers + i;
            while (split(j->window, j->panels, panel + 1) <= at) panel++;
            const int64_t first = split(j->window, j->panels, panel);
            pl_convolution_pack_place(s, x, i / s->in, i % s->in, windows + first * s->out_width + at - first,
                                      split(j->window, j->panels, panel + 1) - first);
        }
    }
}

/* A row of dy in f32, each pixel whole vectors long. */
static const float *row_of_dy(const job *j, int64_t image, int64_t row, float *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t at = (image * s->out_height + row) * s->out_width * s->out;
    if (j->in_place) return pl_real_at(PL_REAL_F32, j->call->dy, at);
    if (j->ld == s->out) {
        j->kernels->cast(s->out_width * s->out, j->call->type, pl_real_at(j->call->type, j->call->dy, at), PL_REAL_F32,
                         own);
        return own;
    }
    for (int64_t q = 0; q < s->out_width; q++)
        j->kernels->cast(s->out, j->call->type, pl_real_at(j->call->type, j->call->dy, at + q * s->out), PL_REAL_F32,
                         own + q * j->ld);
    return own;
}

/* ---- sums ---- */

static void add_pixels(const job *j, const float *windows, const float *dy, int64_t first, int64_t count, float *sum,
                       int add)
{
    const pl_gemm_kernels *t = j->tiles;
    const int64_t out_width = j->call->shape.out_width;
    pl_gemm_ahead_tile(dy + (first + PIXELS) * j->ld, j->ld * FLOAT_BYTES, count, j->ld * FLOAT_BYTES);
    for (int64_t panel = 0; panel < j->panels; panel++) {
        const int64_t begin = split(j->window, j->panels, panel), rows = split(j->window, j->panels, panel + 1) - begin;
        const float *a = windows + begin * out_width + first * rows;
        for (int64_t o = 0; o < j->ld; o += t->nr)
            t->by_columns[rows - 1][j->ld - o > t->vector](count, a, 0, dy + first * j->ld + o, j->ld,
                                                           sum + begin * j->ld + o, j->ld, add, NULL);
    }
}

static void sum_block(const job *j, int64_t image, int64_t block, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    float *windows = (float *)(void *)own, *sum = (float *)(void *)j->workspace + block * j->window * j->ld;
    const int64_t begin = block * j->block_rows, end = min_of(s->out_height, begin + j->block_rows);
    for (int64_t row = begin; row < end; row++) {
        const float *dy = row_of_dy(j, image, row, (float *)(void *)(own + j->dy_offset));
        pack_windows(j, image, row, windows, (float *)(void *)(own + j->x_offset));
        for (int64_t q = 0; q < s->out_width; q += PIXELS)
            add_pixels(j, windows, dy, q, min_of(PIXELS, s->out_width - q), sum, row > begin || q > 0);
    }
}

/* Numbers [begin, end) of the windows, of all output channels. */
static void add_blocks(const job *j, int64_t begin, int64_t end)
{
    const float *sum = (const float *)(const void *)j->workspace;
    for (int64_t i = begin; i < end; i++)
        for (int64_t block = 0; block < j->blocks; block++)
            for (int64_t o = 0; o < j->call->shape.out; o++)
                j->call->dw[o * j->window + i] += sum[(block * j->window + i) * j->ld + o];
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_range blocks = pl_range_of_part(j->blocks, 1, part, parts);
    const pl_range numbers = pl_range_of_part(j->window, 1, part, parts);
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    for (int64_t image = 0; image < j->call->shape.batch; image++) {
        for (int64_t i = blocks.begin; i < blocks.end; i++) sum_block(j, image, i, own);
        pl_barrier();
        add_blocks(j, numbers.begin, numbers.end);
        pl_barrier(); /* these sums have been read */
    }
}

uint64_t pl_convolution_few_dw_workspace_bytes(const pl_convolution_dw_call *c, pl_team team)
{
    return job_of(c, team).bytes;
}

void pl_convolution_few_dw_exec(const pl_convolution_dw_call *c, void *workspace, pl_team team)
{
    job j = job_of(c, team);
    j.workspace = workspace;
    if (!j.in_place) /* what lies between a pixel's channels and the next pixel */
        memset(j.workspace + j.threads_offset, 0, (size_t)(j.bytes - j.threads_offset));
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
