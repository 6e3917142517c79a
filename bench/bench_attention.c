/* GFLOP/s of attention, forward and backward, at the language model's shapes, beside the rate of dependent-free FMAs in
 * registers measured in the same run. Causal work is counted: forward 2·2·(T²/2)·dh a head, backward 2.5 times that.
 *
 *   bench_attention [threads] [isa] */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "base/philox.h"
#include "kernels/kernels.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct job {
    void (*run)(void *context);
    void *context;
} job;

/* The best of 25 measurements of about 5 ms each: what the code does when the machine is left alone. */
static double seconds_per_run(job j)
{
    double start = now(), each[25];
    j.run(j.context);
    j.run(j.context);
    int repeats = (int)(0.005 / ((now() - start) / 2)) + 1;
    for (int i = 0; i < 25; i++) {
        start = now();
        for (int r = 0; r < repeats; r++) j.run(j.context);
        each[i] = (now() - start) / repeats;
    }
    qsort(each, 25, sizeof *each, by_value);
    return each[0];
}

#define PEAK_LOOP(suffix, width, attributes)                                                                           \
    typedef float lanes_##suffix __attribute__((vector_size(4 * (width))));                                            \
    attributes static float fma_loop_##suffix(int64_t steps)                                                           \
    {                                                                                                                  \
        lanes_##suffix acc[12], x = {1}, y = {1};                                                                      \
        for (int i = 0; i < 12; i++) acc[i] = (float)i + x;                                                            \
        for (int64_t s = 0; s < steps; s++) {                                                                          \
            _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) acc[i] = acc[i] * x + y;                             \
            __asm__ volatile("" : "+x"(x), "+x"(y));                                                                   \
        }                                                                                                              \
        float sum = 0;                                                                                                 \
        for (int i = 0; i < 12; i++) sum += acc[i][0];                                                                 \
        return sum;                                                                                                    \
    }
#if defined(__x86_64__)
PEAK_LOOP(avx512, 16, __attribute__((target("avx512f,fma"), optimize("O3,fp-contract=fast"))))
PEAK_LOOP(avx2, 8, __attribute__((target("avx2,fma"), optimize("O3,fp-contract=fast"))))
#endif
PEAK_LOOP(baseline, 4, __attribute__((optimize("O3"))))

typedef struct peak {
    pl_team team;
    int64_t steps;
    float sink;
} peak;

static void run_peak(void *context)
{
    peak *p = context;
    float sum = 0;
#pragma omp parallel num_threads(p->team.threads) reduction(+ : sum)
    switch (p->team.isa) {
#if defined(__x86_64__)
    case PL_ISA_AVX512:
    case PL_ISA_AVX512_BF16:
        sum += fma_loop_avx512(p->steps);
        break;
    case PL_ISA_AVX2:
        sum += fma_loop_avx2(p->steps);
        break;
#endif
    default:
        sum += fma_loop_baseline(p->steps);
        break;
    }
    p->sink += sum;
}

static double peak_gflops(pl_team team)
{
    peak p = {.team = team, .steps = 100000};
    int lanes = team.isa >= PL_ISA_AVX512 ? 16 : team.isa == PL_ISA_AVX2 ? 8 : 4;
    return 2.0 * 12 * lanes * (double)p.steps * team.threads / seconds_per_run((job){run_peak, &p}) * 1e-9;
}

typedef struct bench {
    pl_attention_call forward;
    pl_attention_bwd_call backward;
    void *workspace;
    pl_team team;
} bench;

static void run_forward(void *context)
{
    bench *b = context;
    pl_attention_exec(&b->forward, b->workspace, b->team);
}

static void run_backward(void *context)
{
    bench *b = context;
    pl_attention_bwd_exec(&b->backward, b->workspace, b->team);
}

static float *random_matrix(int64_t count, uint64_t stream)
{
    float *p = pl_alloc((size_t)count, sizeof *p);
    if (!p) exit(1);
    pl_philox philox = pl_philox_init(1, stream);
    pl_philox_normal_f32(&philox, 0, 0, 0, (uint64_t)count, p);
    return p;
}

static void *aligned(void *p) { return (void *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }

/* q, k, v lie in one fused matrix, as in the model. */
static void measure(int64_t batch, int64_t heads, int64_t t, int64_t width, pl_team team, double peak_rate)
{
    int64_t d = heads * width, rows = batch * t;
    float *qkv = random_matrix(rows * 3 * d, 1), *dqkv = random_matrix(rows * 3 * d, 2);
    float *o = random_matrix(rows * d, 3), *d_o = random_matrix(rows * d, 4), *lse = random_matrix(rows * heads, 5);
    float scale = 1.0f / (float)width;
    pl_attention_strides fused = {t * 3 * d, 3 * d}, plain = {t * d, d};
    bench b = {.team = team};
    b.forward = (pl_attention_call){batch,       t,     t,     heads, width, 1, scale, qkv, qkv + d,
                                    qkv + 2 * d, fused, fused, fused, plain, o, lse,   NULL};
    b.backward = (pl_attention_bwd_call){batch,   t,           t,    heads,    width,        1,     scale, qkv,
                                         qkv + d, qkv + 2 * d, o,    lse,      d_o,          fused, fused, fused,
                                         plain,   plain,       dqkv, dqkv + d, dqkv + 2 * d, fused, fused, fused};
    uint64_t bytes = pl_attention_workspace_bytes(&b.forward, team);
    uint64_t more = pl_attention_bwd_workspace_bytes(&b.backward, team);
    void *memory = pl_alloc((bytes > more ? bytes : more) + 64, 1);
    if (!memory) exit(1);
    b.workspace = aligned(memory);
    double flops = 2.0 * (double)(batch * heads * width) * (double)t * (double)t;
    double f = seconds_per_run((job){run_forward, &b}), g = seconds_per_run((job){run_backward, &b});
    double rate = flops / f * 1e-9, back = 2.5 * flops / g * 1e-9;
    printf("B=%ld H=%ld T=%-5ld dh=%-4ld ", (long)batch, (long)heads, (long)t, (long)width);
    printf("forward %7.1f us %6.1f GFLOP/s %3.0f %%   ", f * 1e6, rate, 100 * rate / peak_rate);
    printf("backward %7.1f us %6.1f GFLOP/s %3.0f %%\n", g * 1e6, back, 100 * back / peak_rate);
    float *all[] = {qkv, dqkv, o, d_o, lse};
    for (int i = 0; i < 5; i++) pl_free(all[i]);
    pl_free(memory);
}

int main(int argc, char **argv)
{
    pl_team team = {argc > 1 ? atoi(argv[1]) : omp_get_max_threads(), pl_isa_of_machine()};
    if (team.threads < 1 || (argc > 2 && pl_isa_parse(argv[2], &team.isa))) {
        fprintf(stderr, "usage: bench_attention [threads] [isa]\n");
        return 2;
    }
    double rate = peak_gflops(team);
    printf("%s, %d threads: register FMAs %.1f GFLOP/s\n", pl_isa_name(team.isa), team.threads, rate);
    static const int64_t shapes[][4] = {{1, 8, 128, 32}, {2, 8, 128, 32}, {4, 8, 128, 32}, {2, 8, 256, 32},
                                        {1, 8, 512, 64}, {2, 8, 512, 64}, {4, 8, 512, 64}, {1, 8, 1024, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        measure(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], team, rate);
    return 0;
}
