/* Products of int8 and of signs beside our own of f32, of the same shapes and in turns: each ratio is the median over
 * pairs that ran one after the other, so that a neighbour on the machine slows both; rates are of the best run. int8
 * and signs begin from prepared activations and, "whole", from those of f32, which the call itself quantises or reduces
 * to signs.
 *
 *   bench_int8 [--threads N] [--isa LEVEL] [--plain] [--onednn] [--brief]
 *
 * --plain leaves out what a processor may have beside the level (VNNI, VPOPCNTDQ). The peak is that of vpdpbusd on
 * registers alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/words.h"
#include "base/alloc.h"
#include "bench.h"
#include "fma_peak.h"
#include "onednn_int8.h"

typedef struct options {
    pl_team team;
    int extras, onednn;
} options;

typedef struct shape {
    int64_t m, n, k;
} shape;

typedef struct operands { /* of all calls */
    float *x, *w, *y, *scale, *beta;
    uint8_t *q;
    int8_t *qw;
    uint32_t *signs, *sign_w;
    void *packed, *packed_signs, *workspace;
} operands;

typedef struct calls {
    pl_gemm_call f32;
    pl_int8_call int8, int8_whole;
    pl_binary_call binary, binary_whole;
} calls;

typedef enum kind { F32, INT8, INT8_WHOLE, BINARY, BINARY_WHOLE, ONEDNN, KINDS } kind;

typedef struct bench {
    const options *o;
    shape s;
    operands at;
    calls calls;
    bench_onednn_int8 *peer;
} bench;

static void *get(uint64_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (p) return memset(p, 0, (bytes + 127) / 64 * 64);
    fprintf(stderr, "bench_int8: not enough memory\n");
    exit(1);
}

static const pl_words_kernels *int8_of(const options *o) { return pl_int8_kernels(o->team.isa, o->extras); }
static const pl_words_kernels *binary_of(const options *o) { return pl_binary_kernels(o->team.isa, o->extras); }

static uint64_t largest_workspace(const bench *b)
{
    const calls *c = &b->calls;
    const uint64_t bytes[] = {
        pl_gemm_workspace_bytes(&c->f32, b->o->team),
        pl_int8_workspace_bytes_with(int8_of(b->o), &c->int8_whole, b->o->team),
        pl_binary_workspace_bytes_with(binary_of(b->o), &c->binary_whole, b->o->team),
    };
    uint64_t largest = 0;
    for (int i = 0; i < 3; i++) largest = bytes[i] > largest ? bytes[i] : largest;
    return largest;
}

static void fill(bench *b)
{
    const shape s = b->s;
    const pl_team team = b->o->team;
    operands *at = &b->at;
    for (int64_t i = 0; i < s.m * s.k; i++) at->x[i] = (float)(i % 251 - 125) * 0.01f;
    for (int64_t i = 0; i < s.n * s.k; i++) at->w[i] = (float)(i % 239 - 119) * 0.01f;
    for (int64_t j = 0; j < s.n; j++) at->scale[j] = pl_int8_quantize_channel(s.k, at->w + j * s.k, at->qw + j * s.k);
    pl_int8_pack(s.n, s.k, at->qw, s.k, at->scale, at->packed);
    pl_quantize_exec(&(pl_quantize_call){s.m, s.k, s.k, s.k, at->x, 0.01f, 125, at->q}, team);
    float *alpha = get((uint64_t)s.n * 4);
    pl_signs_exec(&(pl_signs_call){s.n, s.k, s.k, at->w, at->sign_w, alpha}, team);
    pl_signs_exec(&(pl_signs_call){s.m, s.k, s.k, at->x, at->signs, at->beta}, team);
    pl_binary_pack(s.n, s.k, at->sign_w, alpha, at->packed_signs);
    free(alpha);
}

static calls calls_of(const bench *b)
{
    const shape s = b->s;
    const operands *at = &b->at;
    calls c = {.f32 = pl_gemm_linear(PL_REAL_F32, s.m, s.n, s.k, at->x, at->w, at->y)};
    c.f32.dots = s.m == 1;
    c.int8 = (pl_int8_call){.m = s.m,
                            .n = s.n,
                            .k = s.k,
                            .x = at->q,
                            .ld_x = s.k,
                            .x_scale = 0.01f,
                            .x_zero = 125,
                            .packed = at->packed,
                            .c = at->y,
                            .ldc = s.n};
    c.int8_whole = c.int8, c.int8_whole.x = NULL, c.int8_whole.x_real = at->x;
    c.binary = (pl_binary_call){.m = s.m,
                                .n = s.n,
                                .k = s.k,
                                .x = at->signs,
                                .ld_x = pl_binary_words(s.k),
                                .beta = at->beta,
                                .packed = at->packed_signs,
                                .c = at->y,
                                .ldc = s.n};
    c.binary_whole = c.binary, c.binary_whole.x = NULL, c.binary_whole.x_real = at->x, c.binary_whole.ld_x = s.k;
    return c;
}

static bench bench_create(const options *o, shape s)
{
    const uint64_t x = (uint64_t)(s.m * s.k), w = (uint64_t)(s.n * s.k);
    bench b = {.o = o, .s = s};
    b.at = (operands){.x = get(4 * x),
                      .w = get(4 * w),
                      .y = get(4 * (uint64_t)(s.m * s.n)),
                      .scale = get(4 * (uint64_t)s.n),
                      .beta = get(4 * (uint64_t)s.m),
                      .q = get(x),
                      .qw = get(w),
                      .signs = get((uint64_t)(4 * s.m * pl_binary_words(s.k))),
                      .sign_w = get((uint64_t)(4 * s.n * pl_binary_words(s.k))),
                      .packed = get(pl_int8_packed_bytes(s.n, s.k)),
                      .packed_signs = get(pl_binary_packed_bytes(s.n, s.k))};
    fill(&b);
    b.calls = calls_of(&b);
    b.at.workspace = get(largest_workspace(&b));
    if (o->onednn) b.peer = bench_onednn_int8_create(s.m, s.n, s.k, b.at.q, b.at.qw, b.at.y, o->team);
    return b;
}

static void bench_destroy(bench *b)
{
    void *all[] = {b->at.x,  b->at.w,     b->at.y,      b->at.scale,  b->at.beta,         b->at.q,
                   b->at.qw, b->at.signs, b->at.sign_w, b->at.packed, b->at.packed_signs, b->at.workspace};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    bench_onednn_int8_destroy(b->peer);
}

static void exec(const bench *b, kind k)
{
    const pl_team team = b->o->team;
    const calls *c = &b->calls;
    if (k == F32) pl_gemm_exec(&c->f32, b->at.workspace, team);
    if (k == INT8) pl_int8_exec_with(int8_of(b->o), &c->int8, b->at.workspace, team);
    if (k == INT8_WHOLE) pl_int8_exec_with(int8_of(b->o), &c->int8_whole, b->at.workspace, team);
    if (k == BINARY) pl_binary_exec_with(binary_of(b->o), &c->binary, b->at.workspace, team);
    if (k == BINARY_WHOLE) pl_binary_exec_with(binary_of(b->o), &c->binary_whole, b->at.workspace, team);
    if (k == ONEDNN) bench_onednn_int8_exec(b->peer);
}

static double seconds_of(const bench *b, kind k, double sample)
{
    exec(b, k);
    double start = bench_seconds(), seconds;
    int repeats = 0;
    do exec(b, k), repeats++;
    while ((seconds = bench_seconds() - start) < sample);
    return seconds / repeats;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, bench_ascending);
    return values[count / 2];
}

static double least(const double *values, int count)
{
    double value = values[0];
    for (int i = 1; i < count; i++) value = values[i] < value ? values[i] : value;
    return value;
}

static void print_shape(const options *o, shape s, double peak)
{
    enum { TURNS = 41 };
    double seconds[KINDS][TURNS], ratio[KINDS][TURNS], best[KINDS], times[KINDS];
    const int turns = bench_samples(TURNS);
    bench b = bench_create(o, s);
    for (int t = 0; t < turns; t++)
        for (int k = 0; k < KINDS; k++) {
            if (k == ONEDNN && !b.peer) continue;
            seconds[k][t] = seconds_of(&b, (kind)k, bench_sample_seconds(1e-3));
            ratio[k][t] = seconds[F32][t] / seconds[k][t];
        }
    for (int k = 0; k < KINDS; k++)
        if (k != ONEDNN || b.peer) times[k] = median(ratio[k], turns), best[k] = least(seconds[k], turns);
    const double ops = 2.0 * (double)(s.m * s.n) * (double)s.k;
    printf("m %5ld n %4ld k %4ld  f32 %9.1f us  int8 × %5.2f (whole × %5.2f) %6.0f GOP/s", (long)s.m, (long)s.n,
           (long)s.k, best[F32] * 1e6, times[INT8], times[INT8_WHOLE], ops / best[INT8] * 1e-9);
    if (peak > 0) printf(" %5.1f %% of peak", 100 * ops / best[INT8] / peak);
    if (b.peer) printf("  oneDNN's int8 × %5.2f", times[ONEDNN]);
    printf("  binary × %6.2f (whole × %6.2f)\n", times[BINARY], times[BINARY_WHOLE]);
    bench_destroy(&b);
}

static int parse(int argc, char **argv, options *o)
{
    int plain = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            o->team.threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc) {
            if (pl_isa_parse(argv[++i], &o->team.isa)) return -1;
        } else if (strcmp(argv[i], "--plain") == 0)
            plain = 1;
        else if (strcmp(argv[i], "--onednn") == 0)
            o->onednn = 1;
        else
            return -1;
    }
    if (o->team.threads < 1 || o->team.isa > pl_isa_of_machine()) return -1;
    o->extras = plain ? 0 : pl_isa_extras(o->team.isa);
    return 0;
}

int main(int argc, char **argv)
{
    static const shape usual[] = {{196, 768, 768},      {196, 3072, 768},      {196, 768, 3072},
                                  {16 * 196, 768, 768}, {16 * 196, 3072, 768}, {16 * 196, 768, 3072},
                                  {1, 768, 768},        {1, 3072, 768},        {1, 768, 3072}};
    static const shape small[] = {{20, 96, 96}, {1, 96, 96}};
    options o = {.team = {.threads = 1, .isa = pl_isa_of_machine()}};
    bench_begin(&argc, argv, "bench_int8 [--threads N] [--isa LEVEL] [--plain] [--onednn] [--brief]");
    if (parse(argc, argv, &o)) return bench_refuse();
    if (o.onednn && !bench_onednn_int8_available()) fprintf(stderr, "bench_int8: built without oneDNN\n"), o.onednn = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    const double peak = o.extras & PL_ISA_VNNI ? bench_vnni_peak(o.team) : 0, fma = bench_fma_peak(o.team);
    printf("%s, tables %s and %s, %d threads, multiply-add peak %.1f GFLOP/s, vpdpbusd %.1f GOP/s\n",
           pl_isa_name(o.team.isa), int8_of(&o)->name, binary_of(&o)->name, o.team.threads, fma * 1e-9, peak * 1e-9);
    const shape *shapes = bench_is_brief() ? small : usual;
    const size_t count = bench_is_brief() ? sizeof small / sizeof *small : sizeof usual / sizeof *usual;
    for (size_t i = 0; i < count; i++) print_shape(&o, shapes[i], peak);
    return 0;
}
