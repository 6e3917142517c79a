#include <string.h>

#include "backend/convolution_epilogue.h"
#include "backend/convolution_few.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum { AHEAD_PIXELS = 48, FLOAT_BYTES = sizeof(float) }; /* of dy, asked for before they are multiplied */

static const double parallel_macs = 1 << 19;

typedef struct job {
    const pl_convolution_dx_call *call;
    const pl_gemm_kernels *tiles;
    const pl_kernels *kernels;
    pl_gemm_epilogue epilogue; /* of the first pixel, without the bias */
    int threads;
    int64_t window, ld; /* numbers of a window, and filled up to whole vectors */
    uint64_t threads_offset, row_offset, dy_offset, thread_bytes, bytes;
    float *weights;
    char *workspace;
} job;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

static job job_of(const pl_convolution_dx_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    job j = {.call = c, .tiles = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    j.kernels = pl_kernels_get(team.isa);
    j.epilogue = pl_convolution_dx_epilogue(c);
    j.epilogue.bias = NULL;
    j.threads = team.threads > 1 && pl_convolution_macs(s) * (double)s->batch >= parallel_macs ? team.threads : 1;
    j.window = s->kernel * s->kernel * s->in;
    j.ld = divide_up(j.window, j.tiles->vector) * j.tiles->vector;
    j.threads_offset = words_bytes(s->out * j.ld);
    j.row_offset = words_bytes(s->kernel * s->out_width * j.ld);
    j.dy_offset = j.row_offset + words_bytes(s->width * s->in);
    j.thread_bytes = j.dy_offset + words_bytes(c->type == PL_REAL_F32 ? 0 : s->out_width * s->out);
    j.bytes = j.threads_offset + (uint64_t)j.threads * j.thread_bytes;
    return j;
}

/* ---- z ---- */

/* Few, so one thread writes them: behind a window's numbers zeros. */
static void pack_weights(const job *j)
{
    memset(j->weights, 0, (size_t)(j->call->shape.out * j->ld) * sizeof(float));
    for (int64_t o = 0; o < j->call->shape.out; o++)
        j->kernels->cast(j->window, j->call->type, pl_real_at(j->call->type, j->call->weight, o * j->window),
                         PL_REAL_F32, j->weights + o * j->ld);
}

static float *row_of_z(const job *j, char *own, int64_t row)
{
    const pl_convolution_shape *s = &j->call->shape;
    return (float *)(void *)own + row % s->kernel * s->out_width * j->ld;
}

static void make_row(const job *j, int64_t image, int64_t row, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    const pl_gemm_kernels *t = j->tiles;
    const void *at = pl_real_at(j->call->type, j->call->dy, (image * s->out_height + row) * s->out_width * s->out);
    float *z = row_of_z(j, own, row), *widened = (float *)(void *)(own + j->dy_offset);
    if (j->call->type != PL_REAL_F32) j->kernels->cast(s->out_width * s->out, j->call->type, at, PL_REAL_F32, widened);
    const float *dy = j->call->type == PL_REAL_F32 ? at : widened;
    for (int64_t q = 0, rows; q < s->out_width; q += rows) {
        rows = min_of(t->mr, s->out_width - q);
        pl_gemm_ahead_tile(dy + (q + AHEAD_PIXELS) * s->out, s->out * FLOAT_BYTES, rows, s->out * FLOAT_BYTES);
        for (int64_t i = 0; i < j->ld; i += t->nr)
            t->by_rows[rows - 1][j->ld - i > t->vector](s->out, dy + q * s->out, s->out, j->weights + i, j->ld,
                                                        z + q * j->ld + i, j->ld, 0, NULL);
    }
}

/* ---- dx ---- */

/* Adds what row u of the kernel has for pixel x, of the pixels of dy in z. */
static void add_taps(const job *j, const float *z, int64_t u, int64_t x, float *sum)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t last = (x + s->pad) / s->stride;
    for (int64_t v = (x + s->pad) % s->stride, q = last; v < s->kernel && q >= 0; v += s->stride, q--) {
        if (q >= s->out_width) continue;
        const float *from = z + q * j->ld + (u * s->kernel + v) * s->in;
        for (int64_t c = 0; c < s->in; c++) sum[c] += from[c];
    }
}

/* The same of pixels [begin, end), whose windows lie inside, of one channel at stride 1. */
static void add_inside(const job *j, const float *z, int64_t u, int64_t begin, int64_t end, float *sum)
{
    const pl_convolution_shape *s = &j->call->shape;
    for (int64_t x = begin; x < end; x++) {
        const float *from = z + (x + s->pad) * j->ld + u * s->kernel;
        float all = sum[x];
        for (int64_t v = 0; v < s->kernel; v++) all += from[v - v * j->ld];
        sum[x] = all;
    }
}

static void add_row(const job *j, const float *z, int64_t u, float *sum)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int is_simple = s->in == 1 && s->stride == 1;
    const int64_t begin = is_simple ? max_of(0, s->kernel - 1 - s->pad) : s->width;
    const int64_t end = is_simple ? min_of(s->width, s->out_width - s->pad) : s->width;
    for (int64_t x = 0; x < min_of(begin, s->width); x++) add_taps(j, z, u, x, sum + x * s->in);
    add_inside(j, z, u, begin, end, sum);
    for (int64_t x = max_of(begin, end); x < s->width; x++) add_taps(j, z, u, x, sum + x * s->in);
}

static void start_row(const job *j, float *sum)
{
    const pl_convolution_shape *s = &j->call->shape;
    for (int64_t i = 0; i < s->width * s->in; i++) sum[i] = j->call->bias ? j->call->bias[i % s->in] : 0;
}

static void finish_row(const job *j, int64_t row, const float *sum)
{
    const int64_t elems = j->call->shape.width * j->call->shape.in;
    const pl_gemm_epilogue e = pl_convolution_epilogue_at(&j->epilogue, row * elems, elems);
    j->tiles->finish(&e, sum, elems, 0, 0, 1, elems);
}

/* Row y of an image of x; rows of z below `made` are there, as many as the ring holds. */
static int64_t do_row(const job *j, int64_t image, int64_t y, int64_t made, char *own)
{
    const pl_convolution_shape *s = &j->call->shape;
    float *sum = (float *)(void *)(own + j->row_offset);
    start_row(j, sum);
    const int64_t last = (y + s->pad) / s->stride, first = max_of(0, divide_up(y + s->pad - s->kernel + 1, s->stride));
    for (made = max_of(made, first); made <= min_of(last, s->out_height - 1); made++) make_row(j, image, made, own);
    for (int64_t u = (y + s->pad) % s->stride, row = last; u < s->kernel && row >= 0; u += s->stride, row--)
        if (row < s->out_height) add_row(j, row_of_z(j, own, row), u, sum);
    finish_row(j, image * s->height + y, sum);
    return made;
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const pl_convolution_shape *s = &j->call->shape;
    const pl_range rows = pl_range_of_part(s->batch * s->height, 1, part, parts);
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    if (part == 0) pack_weights(j);
    pl_barrier();
    for (int64_t r = rows.begin, made = 0; r < rows.end; r++) {
        if (r % s->height == 0) made = 0;
        made = do_row(j, r / s->height, r % s->height, made, own);
    }
}

uint64_t pl_convolution_few_dx_workspace_bytes(const pl_convolution_dx_call *c, pl_team team)
{
    return job_of(c, team).bytes;
}

void pl_convolution_few_dx_exec(const pl_convolution_dx_call *c, void *workspace, pl_team team)
{
    job j = job_of(c, team);
    j.workspace = workspace;
    j.weights = workspace;
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
