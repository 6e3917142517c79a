/* bench_kernels [threads [isa]] [--brief]: the calls that move data rather than compute, those of the language model
 * and those of images (norms, pools, changes of size), as GB/s and as a share of what a plain copy of arrays of the
 * same size reaches in the same run. Two sizes: the language model's micro-batch (it stays in the caches) and arrays
 * far larger than any cache. Bytes are those that the call must read and write once; what a store costs beyond that
 * (reading the line it will overwrite) is the machine's, in the copy too. With --brief (bench.h) the large arrays are
 * an eighth as large. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <omp.h>

#include "backend/calls.h"
#include "backend/channel_norm.h"
#include "backend/parallel.h"
#include "backend/pool.h"
#include "base/alloc.h"
#include "base/size.h"
#include "bench.h"
#include "kernels/kernels.h"

enum { ARRAYS = 6, MOMENTS = 4, SAMPLES = 9, VOCAB = 788, WIDTH = 256, TOKENS = 128 };
enum { CHANNELS = 64, GROUPS = 8 }; /* of the same arrays as an image */

typedef struct setting {
    pl_team team;
    int64_t elems, rows;  /* rows of WIDTH */
    int64_t room;         /* elements of an array: the first is the embedding's table, too, of VOCAB rows */
    float *array[ARRAYS]; /* the last two for moments of 16 and 8 bits: their bytes begin as zeros */
    void *workspace;
    int32_t *token;
    int64_t height, width; /* of the image */
    float *statistics;     /* of the image: see statistics_floats */
    void *image_workspace;
    uint8_t *argmax;
} setting;

/* ---- one function per line of the table; each returns the bytes it had to move ---- */

static void copy_part(const void *work, int part, int parts)
{
    const setting *s = work;
    pl_range r = pl_range_of_part(s->elems, 1024, part, parts);
    memcpy(s->array[1] + r.begin, s->array[0] + r.begin, (size_t)(r.end - r.begin) * sizeof(float));
}

static double run_copy(const setting *s)
{
    pl_parallel(s->team, s->elems, copy_part, s);
    return 2.0 * 4 * (double)s->elems;
}

static double run_norm(const setting *s)
{
    const float *gamma = s->workspace, *beta = gamma + WIDTH;
    float *mean = (float *)s->workspace + 2 * WIDTH, *rstd = mean + s->rows;
    pl_norm_call call = {s->rows, WIDTH, 0, 1e-5f, s->array[0], gamma, beta, s->array[1], mean, rstd};
    pl_norm_exec(&call, s->team);
    return 2.0 * 4 * (double)s->elems;
}

static double run_norm_bwd_with(const setting *s, const float *add)
{
    float *gamma = s->workspace, *mean = gamma + 4 * WIDTH, *rstd = mean + s->rows;
    pl_norm_bwd_call call = {s->rows, TOKENS, WIDTH, 0,           s->array[0],   s->array[1],      gamma,
                             mean,    rstd,   add,   s->array[2], gamma + WIDTH, gamma + 2 * WIDTH};
    pl_norm_bwd_exec(&call, rstd + s->rows, s->team);
    return (add ? 4.0 : 3.0) * 4 * (double)s->elems;
}

static double run_norm_bwd(const setting *s) { return run_norm_bwd_with(s, NULL); }
static double run_norm_bwd_add(const setting *s) { return run_norm_bwd_with(s, s->array[3]); }

static double run_embedding(const setting *s)
{
    pl_embedding_call call = {
        s->rows / TOKENS, TOKENS, VOCAB, WIDTH, 1, s->token, s->array[0], s->array[0] + VOCAB * WIDTH, NULL,
        s->array[1]};
    if (s->elems < (VOCAB + TOKENS) * WIDTH) call.position_table = NULL;
    pl_embedding_exec(&call, s->team);
    return 2.0 * 4 * (double)s->elems;
}

static double run_embedding_bwd(const setting *s)
{
    pl_embedding_bwd_call call = {s->rows / TOKENS,
                                  TOKENS,
                                  VOCAB,
                                  WIDTH,
                                  1,
                                  s->token,
                                  s->array[1],
                                  s->workspace,
                                  (float *)s->workspace + VOCAB * WIDTH};
    pl_embedding_bwd_exec(&call, s->team);
    return 3.0 * 4 * (double)s->elems; /* dy once, dE there and back; dP lies in the cache */
}

static void softmax_part(const void *work, int part, int parts)
{
    const setting *s = work;
    const float scale = 1e-3f;
    int64_t rows = s->elems / VOCAB;
    pl_range r = pl_range_of_part(rows, 1, part, parts);
    const pl_kernels *kernels = pl_kernels_get(s->team.isa);
    kernels->softmax_ce_rows(r.begin, r.end, VOCAB, VOCAB, s->array[0], s->token, &scale, PL_REAL_F32, s->workspace);
}

static double run_softmax(const setting *s)
{
    pl_parallel(s->team, s->elems, softmax_part, s);
    return 2.0 * 4 * (double)(s->elems / VOCAB * VOCAB);
}

static double run_adamw(const setting *s)
{
    float lr = 1e-3f;
    int64_t step = 10;
    pl_adamw_call call = {s->elems, s->array[0], s->array[1], s->array[2], s->array[3], 0.9f,
                          0.95f,    1e-8f,       0.1f,        &lr,         &step,       NULL};
    pl_adamw_exec(&call, s->team);
    return 7.0 * 4 * (double)s->elems;
}

/* Moments of 16 bits lie in the first half of their arrays, those of 8 bits in the second. */
static double run_adamw_small(const setting *s, pl_adamw_state state, int64_t first, double moment_bytes)
{
    float lr = 1e-3f, *m = s->array[MOMENTS] + first, *v = s->array[MOMENTS + 1] + first;
    int64_t step = 10;
    pl_adamw_call call = {s->elems, s->array[0], m,     v,    s->array[3], 0.9f, 0.95f, 1e-8f,
                          0.1f,     &lr,         &step, NULL, state,       1,    2};
    pl_adamw_exec(&call, s->team);
    return (3.0 * 4 + 4 * moment_bytes) * (double)s->elems;
}

static double run_adamw_bf16(const setting *s) { return run_adamw_small(s, PL_ADAMW_BF16, 0, 2); }
static double run_adamw_8bit(const setting *s) { return run_adamw_small(s, PL_ADAMW_8BIT, s->elems / 2, 260.0 / 256); }

static double run_sum_squares(const setting *s)
{
    double sum = 0;
    pl_sum_squares_call call = {s->elems, s->array[0], &sum};
    pl_sum_squares_exec(&call, s->workspace, s->team);
    return 4.0 * (double)s->elems;
}

/* ---- images: array 0, or the first quarter of it where the other image is twice as high and wide ---- */

/* Moments of its rows; mean and rstd of its groups; gamma and beta, and their gradients. */
static int64_t statistics_floats(const setting *s) { return (2 * s->height + 4) * CHANNELS + 2 * GROUPS; }
static float *group_statistics(const setting *s) { return s->statistics + 2 * s->height * CHANNELS; }
static float *affine(const setting *s) { return group_statistics(s) + 2 * GROUPS; }

static double run_image_moments(const setting *s)
{
    pl_channel_moments_call call = {s->height, s->width, CHANNELS, s->array[0], s->statistics, PL_REAL_F32};
    pl_channel_moments_exec(&call, s->team);
    return 4.0 * (double)s->elems;
}

static pl_channel_norm_call image_norm(const setting *s)
{
    return (pl_channel_norm_call){.samples = 1,
                                  .rows = s->height,
                                  .positions = s->width,
                                  .channels = CHANNELS,
                                  .groups = GROUPS,
                                  .eps = 1e-5f,
                                  .act = PL_ACT_GELU,
                                  .x = s->array[0],
                                  .moments = s->statistics,
                                  .gamma = affine(s),
                                  .beta = affine(s) + CHANNELS,
                                  .y = s->array[1],
                                  .mean = group_statistics(s),
                                  .rstd = group_statistics(s) + GROUPS};
}

static double run_image_norm(const setting *s)
{
    pl_channel_norm_call call = image_norm(s);
    pl_channel_norm_exec(&call, s->image_workspace, s->team);
    return 2.0 * 4 * (double)s->elems;
}

static pl_channel_norm_bwd_call image_norm_bwd(const setting *s)
{
    pl_channel_norm_call forward = image_norm(s);
    return (pl_channel_norm_bwd_call){.samples = 1,
                                      .rows = s->height,
                                      .positions = s->width,
                                      .channels = CHANNELS,
                                      .groups = GROUPS,
                                      .act = PL_ACT_GELU,
                                      .dy = s->array[1],
                                      .x = s->array[0],
                                      .gamma = forward.gamma,
                                      .beta = forward.beta,
                                      .mean = forward.mean,
                                      .rstd = forward.rstd,
                                      .dx = s->array[2],
                                      .dgamma = affine(s) + 2 * CHANNELS,
                                      .dbeta = affine(s) + 3 * CHANNELS};
}

static double run_image_norm_bwd(const setting *s)
{
    pl_channel_norm_bwd_call call = image_norm_bwd(s);
    pl_channel_norm_bwd_exec(&call, s->image_workspace, s->team);
    return 3.0 * 4 * (double)s->elems;
}

static double run_max_pool(const setting *s)
{
    pl_max_pool_call call = {1, s->height, s->width, CHANNELS, s->array[0], s->array[1], s->argmax, PL_REAL_F32};
    pl_max_pool_exec(&call, s->team);
    return (4 + (4.0 + 1) / 4) * (double)s->elems;
}

static double run_max_pool_bwd(const setting *s)
{
    pl_max_pool_bwd_call call = {1,         s->height, s->width,    CHANNELS,   s->array[0],
                                 s->argmax, NULL,      s->array[1], PL_REAL_F32};
    pl_max_pool_bwd_exec(&call, s->team);
    return (4 + (4.0 + 1) / 4) * (double)s->elems;
}

static pl_resample_call resample(const setting *s, pl_resample_kind kind, int backward)
{
    int doubles = kind == PL_RESAMPLE_DOUBLE;
    return (pl_resample_call){.kind = kind,
                              .backward = backward,
                              .samples = 1,
                              .channels = CHANNELS,
                              .height = doubles ? s->height / 2 : s->height,
                              .width = doubles ? s->width / 2 : s->width,
                              .out_height = doubles ? s->height : s->height / 2,
                              .out_width = doubles ? s->width : s->width / 2,
                              .kernel = 2,
                              .stride = 2,
                              .from = s->array[0],
                              .to = s->array[1],
                              .type = PL_REAL_F32};
}

static double run_resample(const setting *s, pl_resample_kind kind, int backward)
{
    pl_resample_call call = resample(s, kind, backward);
    pl_resample_exec(&call, s->image_workspace, s->team);
    return (1 + 0.25) * 4 * (double)s->elems;
}

static double run_average_pool(const setting *s) { return run_resample(s, PL_RESAMPLE_AVERAGE, 0); }
static double run_average_pool_bwd(const setting *s) { return run_resample(s, PL_RESAMPLE_AVERAGE, 1); }
static double run_upsample(const setting *s) { return run_resample(s, PL_RESAMPLE_DOUBLE, 0); }
static double run_upsample_bwd(const setting *s) { return run_resample(s, PL_RESAMPLE_DOUBLE, 1); }

static uint64_t image_workspace_bytes(const setting *s)
{
    pl_channel_norm_call norm = image_norm(s);
    pl_channel_norm_bwd_call bwd = image_norm_bwd(s);
    uint64_t most = pl_channel_norm_workspace_bytes(&norm, s->team),
             bytes = pl_channel_norm_bwd_workspace_bytes(&bwd, s->team);
    if (bytes > most) most = bytes;
    for (int kind = PL_RESAMPLE_AVERAGE; kind <= PL_RESAMPLE_DOUBLE; kind++)
        for (int backward = 0; backward < 2; backward++) {
            pl_resample_call call = resample(s, (pl_resample_kind)kind, backward);
            bytes = pl_resample_workspace_bytes(&call, s->team);
            if (bytes > most) most = bytes;
        }
    return most;
}

static const struct {
    const char *name;
    double (*run)(const setting *);
} lines[] = {{"copy", run_copy},
             {"norm", run_norm},
             {"norm backward", run_norm_bwd},
             {"norm backward + add", run_norm_bwd_add},
             {"embedding", run_embedding},
             {"embedding backward", run_embedding_bwd},
             {"softmax, cross-entropy", run_softmax},
             {"adamw", run_adamw},
             {"adamw, bf16 moments", run_adamw_bf16},
             {"adamw, 8-bit moments", run_adamw_8bit},
             {"sum of squares", run_sum_squares},
             {"image: moments", run_image_moments},
             {"image: norm, gelu", run_image_norm},
             {"image: norm backward", run_image_norm_bwd},
             {"image: max pool", run_max_pool},
             {"image: max pool backward", run_max_pool_bwd},
             {"image: mean pool", run_average_pool},
             {"image: mean pool backward", run_average_pool_bwd},
             {"image: upsample", run_upsample},
             {"image: upsample backward", run_upsample_bwd}};
enum { LINES = sizeof lines / sizeof *lines };

/* ---- measuring ---- */

static void fill(const setting *s)
{
    for (int a = 0; a < ARRAYS; a++)
        for (int64_t i = 0; i < s->room; i++)
            s->array[a][i] = a < MOMENTS ? (float)((i * 7919 + a) % 1000) * 0.002f + 0.001f : 0;
    for (int64_t i = 0; i < statistics_floats(s); i++) s->statistics[i] = 0.5f;
}

static double sample_gbytes_per_second(double (*run)(const setting *), const setting *s)
{
    double bytes = 0, start = bench_seconds(), seconds, enough = bench_sample_seconds(0.01);
    do bytes += run(s);
    while ((seconds = bench_seconds() - start) <= enough);
    return bytes / seconds * 1e-9;
}

/* Lines take turns, so that what disturbs the machine disturbs them alike. */
static void measure(const setting *s, const char *title)
{
    double rate[LINES][SAMPLES];
    int samples = bench_samples(SAMPLES);
    fill(s);
    for (int i = -1; i < samples; i++)
        for (int l = 0; l < LINES; l++) rate[l][i < 0 ? 0 : i] = sample_gbytes_per_second(lines[l].run, s);
    printf("\n%s: %lld x %d f32, as an image %lld x %lld x %d, %d threads, %s\n", title, (long long)s->rows, WIDTH,
           (long long)s->height, (long long)s->width, CHANNELS, s->team.threads, pl_isa_name(s->team.isa));
    for (int l = 0; l < LINES; l++) {
        qsort(rate[l], (size_t)samples, sizeof *rate[l], bench_ascending);
        double middle = rate[l][samples / 2], best = rate[l][samples - 1];
        printf("  %-26s median %7.2f GB/s = %4.2f of copy, best %7.2f GB/s = %4.2f of copy\n", lines[l].name, middle,
               middle / rate[0][samples / 2], best, best / rate[0][samples - 1]);
    }
}

enum { LINE_BYTES = 64 };

/* A plan places values on cache lines; so must this. *block is what to free. */
static void *alloc_aligned(size_t bytes, void **block)
{
    *block = pl_alloc(bytes + LINE_BYTES, 1);
    return *block ? (void *)pl_align_up((uintptr_t)*block, LINE_BYTES) : NULL;
}

static int bench_size(pl_team team, int64_t rows, const char *title)
{
    setting s = {.team = team, .rows = rows, .elems = rows * WIDTH, .room = (rows > VOCAB ? rows : VOCAB) * WIDTH};
    s.width = s.height = 1;
    while (s.width * s.height * 2 * CHANNELS <= s.elems) *(s.height < s.width ? &s.height : &s.width) *= 2;
    void *blocks[ARRAYS + 5];
    int failed = 0;
    for (int a = 0; a < ARRAYS; a++)
        failed |= !(s.array[a] = alloc_aligned((size_t)s.room * sizeof(float), &blocks[a]));
    /* statistics of the rows, gamma and its gradients, partial sums, the embedding's table */
    size_t floats = (size_t)rows * 2 + (VOCAB + TOKENS + 256) * WIDTH;
    failed |= !(s.workspace = alloc_aligned(floats * sizeof(float), &blocks[ARRAYS]));
    failed |= !(s.token = alloc_aligned((size_t)rows * sizeof(int32_t), &blocks[ARRAYS + 1]));
    failed |= !(s.statistics = alloc_aligned((size_t)statistics_floats(&s) * sizeof(float), &blocks[ARRAYS + 2]));
    failed |= !(s.argmax = alloc_aligned((size_t)s.elems / 4, &blocks[ARRAYS + 3]));
    failed |= !(s.image_workspace = alloc_aligned((size_t)image_workspace_bytes(&s), &blocks[ARRAYS + 4]));
    if (!failed) {
        for (int64_t r = 0; r < rows; r++) s.token[r] = (int32_t)(r * 7919 % VOCAB);
        measure(&s, title);
    }
    for (int b = 0; b < ARRAYS + 5; b++) pl_free(blocks[b]);
    return failed;
}

int main(int argc, char **argv)
{
    bench_begin(&argc, argv, "bench_kernels [threads [ref|baseline|avx2|avx512|avx512_bf16|amx]] [--brief]");
    pl_team team = {argc > 1 ? atoi(argv[1]) : omp_get_num_procs(), pl_isa_of_machine()};
    if (argc > 3 || team.threads < 1 || (argc > 2 && pl_isa_parse(argv[2], &team.isa)) ||
        team.isa > pl_isa_of_machine())
        return bench_refuse();
    int64_t large = bench_is_brief() ? 8192 : 65536;
    if (bench_size(team, 512, "in cache (micro-batch 4)") || bench_size(team, large, "in memory")) {
        fprintf(stderr, "bench_kernels: not enough memory\n");
        return 1;
    }
    return 0;
}
