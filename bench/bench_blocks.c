/* bench_blocks [--threads N] [--isa LEVEL] [--brief]: products with encoded weights. Many rows: how
 * fast beside the f32 product of the same shape, both in turns, the median of the ratios. Few rows: bytes of weights a
 * second, from memory and where they stay in the second-level cache, and the former as a share of what could be: the
 * lesser of the latter and of what the same team reads from memory when it only adds up, measured in the same turns.
 * Lines with int8: x is in blocks, too, of 8 bits, and whole numbers are multiplied; rounding x is not counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "bench.h"

enum { TURNS = 7 };

typedef struct options {
    pl_team team;
} options;

typedef struct product {
    pl_gemm_call call;
    void *w, *workspace;
    float *x, *y;
    double bytes; /* of the weight */
    pl_team team;
} product;

static void *get(uint64_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (p) return memset(p, 0, (bytes + 127) / 64 * 64);
    fprintf(stderr, "bench_blocks: not enough memory\n");
    exit(1);
}

/* Bytes that are numbers of ordinary size wherever an encoding may have some: subnormal ones would be slow. */
static product create(pl_encoding e, int rounded, int64_t m, int64_t n, int64_t k, pl_team team)
{
    product p = {.team = team, .x = get((uint64_t)(m * k) * 4), .y = get((uint64_t)(m * n) * 4)};
    const int64_t bytes = n * pl_encoding_row_bytes(e, k);
    uint8_t *w = p.w = get((uint64_t)bytes);
    for (int64_t i = 0; i < m * k; i++) p.x[i] = (float)(i % 251 - 125) * 0.01f;
    for (int64_t i = 0; i < bytes; i++) w[i] = (uint8_t)(0x2c + i * 7 % 13);
    p.bytes = (double)bytes;
    p.call = pl_gemm_linear(PL_REAL_F32, m, n, k, p.x, p.w, p.y);
    pl_gemm_encode(&p.call, e);
    p.call.dots = m <= 8;
    if (rounded) {
        float *x = p.x;
        p.x = get((uint64_t)(m * k) * 4), p.call.a = p.x, p.call.a_encoding = PL_ENCODING_Q8_0;
        pl_encoding_narrow(PL_ENCODING_Q8_0, x, m * k, p.x);
        free(x);
    }
    p.workspace = get(pl_gemm_workspace_bytes(&p.call, team));
    return p;
}

static void destroy(product *p) { free(p->x), free(p->y), free(p->w), free(p->workspace); }

static double seconds_of(const product *p)
{
    double begin = bench_seconds(), end;
    int runs = 0;
    do pl_gemm_exec(&p->call, p->workspace, p->team), runs++, end = bench_seconds();
    while (end - begin < bench_sample_seconds(0.01));
    return (end - begin) / runs;
}

static double median(double *x, int count)
{
    qsort(x, (size_t)count, sizeof *x, bench_ascending);
    return x[count / 2];
}

/* ---- bytes from memory ---- */

typedef struct stream {
    const uint64_t *at;
    int64_t words;
    uint64_t *sum; /* of each part, a line apart */
} stream;

/* Four streams at a time, as a product of few rows reads. */
static void add_up(const void *work, int part, int parts)
{
    enum { STREAMS = 4, LINE = 8 };
    const stream *s = work;
    const pl_range r = pl_range_of_part(s->words, STREAMS * LINE, part, parts);
    const int64_t each = (r.end - r.begin) / STREAMS / LINE * LINE;
    uint64_t sum[LINE] = {0};
    for (int64_t i = 0; i < each; i += LINE)
        for (int n = 0; n < STREAMS; n++)
            for (int l = 0; l < LINE; l++) sum[l] += s->at[r.begin + n * each + i + l];
    for (int l = 1; l < LINE; l++) sum[0] += sum[l];
    s->sum[8 * part] = sum[0];
}

static double bandwidth(const product *p)
{
    static uint64_t sums[8 * 1024];
    const stream s = {p->w, (int64_t)p->bytes / 8, sums};
    const double begin = bench_seconds();
    pl_parallel(p->team, INT64_MAX, add_up, &s);
    return p->bytes / (bench_seconds() - begin);
}

/* ---- lines ---- */

static void print_many(pl_encoding e, int rounded, int64_t m, int64_t n, int64_t k, pl_team team)
{
    product packed = create(e, rounded, m, n, k, team), plain = create(PL_ENCODING_F32, 0, m, n, k, team);
    double ratio[TURNS], best = 1e9;
    const int turns = bench_samples(TURNS);
    for (int t = 0; t < turns; t++) {
        const double a = seconds_of(&packed), b = seconds_of(&plain);
        ratio[t] = b / a, best = a < best ? a : best;
    }
    printf("%-5s %-4s rows %4ld  out %5ld in %5ld  %7.1f GFLOP/s  of f32's rate %.3f\n", pl_encoding_name(e),
           rounded ? "int8" : "", (long)m, (long)n, (long)k, 2e-9 * (double)(m * n * k) / best, median(ratio, turns));
    destroy(&packed), destroy(&plain);
}

static void print_few(pl_encoding e, int rounded, int64_t m, pl_team team)
{
    const int64_t k = 2048, row_bytes = pl_encoding_row_bytes(e, k);
    const int64_t large = (bench_is_brief() ? 4 << 20 : 256 << 20) / row_bytes,
                  small = team.threads * (1 << 19) / row_bytes;
    product far = create(e, rounded, m, large, k, team), near = create(e, rounded, m, small, k, team);
    double rate[TURNS], cached[TURNS], read[TURNS], share[TURNS];
    const int turns = bench_samples(TURNS);
    for (int t = 0; t < turns; t++) {
        rate[t] = far.bytes / seconds_of(&far), cached[t] = near.bytes / seconds_of(&near), read[t] = bandwidth(&far);
        share[t] = rate[t] / (cached[t] < read[t] ? cached[t] : read[t]);
    }
    printf("%-5s %-4s rows %4ld  from memory %6.1f GB/s  in cache %6.1f  memory alone %6.1f  share %.3f  %6.2f G "
           "weights/s\n",
           pl_encoding_name(e), rounded ? "int8" : "", (long)m, median(rate, turns) * 1e-9,
           median(cached, turns) * 1e-9, median(read, turns) * 1e-9, median(share, turns),
           median(rate, turns) * 1e-9 / (double)row_bytes * (double)k);
    destroy(&far), destroy(&near);
}

static int parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value && strcmp(argv[i], "--threads") == 0)
            o->team.threads = atoi(value), i++;
        else if (value && strcmp(argv[i], "--isa") == 0 && pl_isa_parse(value, &o->team.isa) == 0)
            i++;
        else
            return -1;
    }
    return o->team.threads >= 1 && o->team.threads <= 1024 && o->team.isa <= pl_isa_of_machine() ? 0 : -1;
}

int main(int argc, char **argv)
{
    options o = {.team = {.threads = 2, .isa = pl_isa_of_machine()}};
    bench_begin(&argc, argv, "bench_blocks [--threads N] [--isa baseline|avx2|avx512] [--brief]");
    if (parse(argc, argv, &o)) return bench_refuse();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%s, %d threads\n", pl_isa_name(o.team.isa), o.team.threads);
    const int64_t rows = bench_is_brief() ? 16 : 512;
    for (int e = PL_ENCODING_BF16; e < PL_ENCODING_COUNT; e++)
        for (int rounded = 0; rounded <= (pl_encoding_block((pl_encoding)e) > 1); rounded++) {
            print_many((pl_encoding)e, rounded, rows, 1536, 768, o.team);
            print_many((pl_encoding)e, rounded, rows, 768, 3072, o.team);
        }
    for (int e = PL_ENCODING_F32; e < PL_ENCODING_COUNT; e++)
        for (int rounded = 0; rounded <= (pl_encoding_block((pl_encoding)e) > 1); rounded++)
            for (int64_t m = 1; m <= 8; m += 7) print_few((pl_encoding)e, rounded, m, o.team);
    return 0;
}
