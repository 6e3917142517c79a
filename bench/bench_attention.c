/* GFLOP/s of attention, forward and backward, at the language model's shapes, beside the rate of dependent-free FMAs in
 * registers measured in the same run. Causal work is counted: forward 2·2·(T²/2)·dh a head, backward 2.5 times that.
 * Then one query a sequence at the end of its cache, as models have them: bytes of the cache a second.
 *
 *   bench_attention [threads] [isa] [--brief]             --brief (bench.h): sequences a quarter as long */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "base/philox.h"
#include "bench.h"
#include "fma_peak.h"
#include "kernels/kernels.h"

typedef struct job {
    void (*run)(void *context);
    void *context;
} job;

/* The best of 25 measurements of about 5 ms each: what the code does when the machine is left alone. */
static double seconds_per_run(job j)
{
    double start = bench_seconds(), best = 0;
    j.run(j.context);
    j.run(j.context);
    int repeats = (int)(bench_sample_seconds(0.005) / ((bench_seconds() - start) / 2)) + 1;
    for (int i = 0; i < bench_samples(25); i++) {
        start = bench_seconds();
        for (int r = 0; r < repeats; r++) j.run(j.context);
        double seconds = (bench_seconds() - start) / repeats;
        if (i == 0 || seconds < best) best = seconds;
    }
    return best;
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

static void *alloc_or_exit(size_t count, size_t size)
{
    void *p = pl_alloc(count, size);
    if (p) return p;
    fprintf(stderr, "bench_attention: not enough memory\n");
    exit(1);
}

static float *random_matrix(int64_t count, uint64_t stream)
{
    float *p = alloc_or_exit((size_t)count, sizeof *p);
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
    void *memory = alloc_or_exit((bytes > more ? bytes : more) + 64, 1);
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

static void measure_cache(int64_t heads, int64_t key_heads, int64_t room, int64_t width, pl_real type, pl_team team)
{
    enum { SEQUENCES = 16 };
    const int64_t keys = key_heads * width, half = SEQUENCES * room * keys, count = 2 * half, position = room - 1;
    float *kv = random_matrix(count, 1), *q = random_matrix(SEQUENCES * heads * width, 2);
    float *o = random_matrix(SEQUENCES * heads * width, 3);
    for (int64_t i = 0; i < count && type != PL_REAL_F32; i++) pl_real_put(type, kv, i, kv[i]);
    const void *v = pl_real_at(type, kv, half);
    const pl_attention_strides cache = {room * keys, keys}, plain = {heads * width, heads * width};
    bench b = {.team = team};
    b.forward = (pl_attention_call){SEQUENCES,
                                    1,
                                    room,
                                    heads,
                                    width,
                                    1,
                                    1.0f / (float)width,
                                    q,
                                    kv,
                                    v,
                                    plain,
                                    cache,
                                    cache,
                                    plain,
                                    o,
                                    NULL,
                                    &position,
                                    .key_type = type,
                                    .key_heads = key_heads};
    void *memory = alloc_or_exit(pl_attention_workspace_bytes(&b.forward, team) + 64, 1);
    b.workspace = aligned(memory);
    const double seconds = seconds_per_run((job){run_forward, &b});
    printf("cache B=%d H=%ld K=%ld T=%ld dh=%-4ld of %d bytes %7.1f us %5.1f GB/s\n", SEQUENCES, (long)heads,
           (long)key_heads, (long)room, (long)width, (int)pl_real_bytes(type), seconds * 1e6,
           (double)(count * pl_real_bytes(type)) / seconds * 1e-9);
    float *all[] = {kv, q, o};
    for (int i = 0; i < 3; i++) pl_free(all[i]);
    pl_free(memory);
}

int main(int argc, char **argv)
{
    bench_begin(&argc, argv, "bench_attention [threads] [isa] [--brief]");
    pl_team team = {argc > 1 ? atoi(argv[1]) : omp_get_max_threads(), pl_isa_of_machine()};
    if (argc > 3 || team.threads < 1 || (argc > 2 && pl_isa_parse(argv[2], &team.isa)) ||
        team.isa > pl_isa_of_machine())
        return bench_refuse();
    double rate = bench_fma_peak(team) * 1e-9;
    printf("%s, %d threads: register FMAs %.1f GFLOP/s\n", pl_isa_name(team.isa), team.threads, rate);
    static const int64_t shapes[][4] = {{1, 8, 128, 32}, {2, 8, 128, 32}, {4, 8, 128, 32}, {2, 8, 256, 32},
                                        {1, 8, 512, 64}, {2, 8, 512, 64}, {4, 8, 512, 64}, {1, 8, 1024, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        measure(shapes[i][0], shapes[i][1], bench_is_brief() ? shapes[i][2] / 4 : shapes[i][2], shapes[i][3], team,
                rate);
    static const int64_t models[][4] = {{32, 32, 512, 64}, {9, 3, 2048, 64}, {14, 2, 2048, 64}, {32, 8, 1024, 128}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int type = PL_REAL_F32; type <= PL_REAL_F16; type++)
            measure_cache(models[i][0], models[i][1], bench_is_brief() ? models[i][2] / 4 : models[i][2], models[i][3],
                          (pl_real)type, team);
    return 0;
}
