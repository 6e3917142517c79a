#include <string.h>

#include "backend/convolution_epilogue.h"
#include "backend/convolution_few.h"
#include "backend/parallel.h"
#include "base/size.h"

static const double parallel_macs = 1 << 19;

typedef struct job {
    const pl_convolution_call *call;
    const pl_gemm_kernels *tiles;
    const pl_kernels *kernels;
    pl_gemm_epilogue epilogue; /* of the first pixel */
    int threads;
    int64_t window, ld; /* numbers of a window; output channels, filled up to whole vectors */
    uint64_t threads_offset, tile_offset, x_offset, pair_offset, thread_bytes, bytes;
    float *weights;
    char *workspace;
    const pl_convolution_pool_call *pool; /* NULL: y is kept */
    const float *sign;
} job;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

static uint64_t pair_bytes(const pl_convolution_call *c)
{
    return pl_align_up((uint64_t)(2 * c->shape.out_width * c->shape.out * pl_real_bytes(c->type)), 64);
}

static job job_of(const pl_convolution_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    job j = {.call = c, .tiles = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    j.kernels = pl_kernels_get(team.isa);
    j.epilogue = pl_convolution_epilogue(c);
    j.threads = team.threads > 1 && pl_convolution_macs(s) * (double)s->batch >= parallel_macs ? team.threads : 1;
    j.window = s->kernel * s->kernel * s->in;
    j.ld = divide_up(s->out, j.tiles->vector) * j.tiles->vector;
    j.threads_offset = words_bytes(j.window * j.ld);
    j.tile_offset = words_bytes(s->out_width * j.window);
    j.x_offset = j.tile_offset + words_bytes((int64_t)j.tiles->mr * j.tiles->nr);
    j.pair_offset = j.x_offset + words_bytes(c->type == PL_REAL_F32 ? 0 : s->width * s->in);
    j.thread_bytes = j.pair_offset + (c->y ? 0 : pair_bytes(c));
    j.bytes = j.threads_offset + (uint64_t)j.threads * j.thread_bytes;
    return j;
}

/* Few, so one thread writes them: behind a row's channels zeros. */
static void pack_weights(const job *j)
{
    memset(j->weights, 0, (size_t)(j->window * j->ld) * sizeof(float));
    for (int64_t o = 0; o < j->call->shape.out; o++)
        for (int64_t i = 0; i < j->window; i++)
            j->weights[i * j->ld + o] = pl_real_get(j->call->type, j->call->weight, o * j->window + i);
}

const float *pl_convolution_few_row(const pl_kernels *kernels, const pl_convolution_shape *s, pl_real type,
                                    const void *x, int64_t image, int64_t y, float *widened)
{
    const int64_t elems = s->width * s->in;
    if (y < 0 || y >= s->height) return NULL;
    const void *row = pl_real_at(type, x, (image * s->height + y) * elems);
    if (type == PL_REAL_F32) return row;
    kernels->cast(elems, type, row, PL_REAL_F32, widened);
    return widened;
}

static void pack_windows(const job *j, int64_t image, int64_t row, float *windows, float *widened)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t row_numbers = s->kernel * s->in;
    for (int64_t u = 0; u < s->kernel; u++) {
        const float *x = pl_convolution_few_row(j->kernels, s, j->call->type, j->call->x, image,
                                                row * s->stride - s->pad + u, widened);
        for (int64_t i = 0; i < row_numbers; i++)
            pl_convolution_pack_place(s, x, i / s->in, i % s->in, windows + u * row_numbers + i, j->window);
    }
}

/* Row r of all images one under the other, whose pixels are to be at y. */
static void do_row(const job *j, int64_t r, void *y, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    const pl_gemm_kernels *t = j->tiles;
    pl_gemm_epilogue e = pl_convolution_epilogue_at(&j->epilogue, j->pool ? 0 : r * s->out_width * s->out, s->out);
    e.c = y;
    float *windows = (float *)(void *)own, *tile = (float *)(void *)(own + j->tile_offset);
    pack_windows(j, r / s->out_height, r % s->out_height, windows, (float *)(void *)(own + j->x_offset));
    for (int64_t q = 0, rows; q < s->out_width; q += rows) {
        rows = min_of(t->mr, s->out_width - q);
        for (int64_t o = 0; o < s->out; o += t->nr) {
            t->by_rows[rows - 1][j->ld - o > t->vector](j->window, windows + q * j->window, j->window, j->weights + o,
                                                        j->ld, tile, t->nr, 0, NULL);
            t->finish(&e, tile, t->nr, q, o, rows, min_of(t->nr, s->out - o));
        }
    }
    if (!j->call->moments) return;
    float *moments = j->call->moments + r * 2 * s->out;
    j->kernels->row_moments(s->out_width, s->out, s->out, j->call->type, e.c, moments, moments + s->out);
}

/* Rows 2·pair and the next of an image, of which that may not be there: then nothing is pooled. */
static void do_pair(const job *j, int64_t image, int64_t pair, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t row = image * s->out_height + 2 * pair, columns = s->out_width / 2;
    const int64_t to = (image * (s->out_height / 2) + pair) * columns * s->out;
    void *upper = own + j->pair_offset, *lower = pl_real_at(j->call->type, upper, s->out_width * s->out);
    do_row(j, row, upper, own);
    if (2 * pair + 1 >= s->out_height) return;
    do_row(j, row + 1, lower, own);
    j->kernels->signed_max_pool_row(columns, s->out, j->call->type, j->sign + image * s->out, upper, lower,
                                    pl_real_at(j->call->type, j->pool->pooled, to),
                                    j->pool->argmax ? j->pool->argmax + to : NULL);
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t pairs = divide_up(s->out_height, 2), row_elems = s->out_width * s->out;
    const pl_range own_units = pl_range_of_part(s->batch * (j->pool ? pairs : s->out_height), 1, part, parts);
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    if (part == 0) pack_weights(j);
    pl_barrier();
    for (int64_t i = own_units.begin; i < own_units.end; i++)
        if (j->pool)
            do_pair(j, i / pairs, i % pairs, own);
        else
            do_row(j, i, pl_real_at(j->call->type, j->call->y, i * row_elems), own);
}

uint64_t pl_convolution_few_workspace_bytes(const pl_convolution_call *c, pl_team team)
{
    return job_of(c, team).bytes;
}

void pl_convolution_few_exec(const pl_convolution_call *c, void *workspace, pl_team team)
{
    job j = job_of(c, team);
    j.workspace = workspace;
    j.weights = workspace;
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}

uint64_t pl_convolution_few_pool_workspace_bytes(const pl_convolution_pool_call *c, pl_team team)
{
    return job_of(&c->convolution, team).bytes;
}

void pl_convolution_few_pool_exec(const pl_convolution_pool_call *c, const float *sign, void *workspace, pl_team team)
{
    job j = job_of(&c->convolution, team);
    j.workspace = workspace;
    j.weights = workspace;
    j.pool = c, j.sign = sign;
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
