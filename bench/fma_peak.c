#include "fma_peak.h"

#include <stdint.h>

#include "bench.h"

#if defined(__x86_64__)
#define PEAK_CONSTRAINT "v"
#else
#define PEAK_CONSTRAINT "w"
#endif

/* Twelve independent chains cover four cycles of latency on two or three units. */
#define PEAK_LOOP(name, bytes, step, attribute)                                                                        \
    typedef float name##_vector __attribute__((vector_size(bytes)));                                                   \
    attribute static void name(int64_t rounds)                                                                         \
    {                                                                                                                  \
        name##_vector a[12], x = (name##_vector){0} + 0.999f, y = (name##_vector){0} + 1e-3f;                          \
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = x;                                                \
        for (int64_t r = 0; r < rounds; r++) {                                                                         \
            step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)          \
        }                                                                                                              \
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) __asm__ volatile("" : : PEAK_CONSTRAINT(a[i]));          \
        (void)y;                                                                                                       \
    }

#if defined(__x86_64__)
#define FUSED(i)     __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(a[i]) : "v"(x), "v"(y));
#define SEPARATE(i)  __asm__ volatile("mulps %1, %0\n\taddps %2, %0" : "+x"(a[i]) : "x"(x), "x"(y));
#define PAIRED(i)    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(a[i]) : "v"(x), "v"(y));
#define FOURS(i)     __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(a[i]) : "v"(x), "v"(y));
#define FOURS_VEX(i) __asm__ volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(a[i]) : "x"(x), "x"(y));
PEAK_LOOP(peak_fours, 64, FOURS, __attribute__((target("avx512f"), noinline)))
PEAK_LOOP(peak_fours_vex, 32, FOURS_VEX, __attribute__((target("avx2"), noinline)))
PEAK_LOOP(peak_pairs, 64, PAIRED, __attribute__((target("avx512f"), noinline)))
PEAK_LOOP(peak_avx512, 64, FUSED, __attribute__((target("avx512f"), noinline)))
PEAK_LOOP(peak_avx2, 32, FUSED, __attribute__((target("avx2,fma"), noinline)))
PEAK_LOOP(peak_baseline, 16, SEPARATE, __attribute__((noinline)))
#else
#define PLAIN(i)                                                                                                       \
    a[i] = a[i] * x + y;                                                                                               \
    __asm__ volatile("" : "+w"(a[i]));
PEAK_LOOP(peak_baseline, 16, PLAIN, __attribute__((noinline)))
#endif

/* About two milliseconds: on a machine that others use, too, some of the runs have all their threads' cores alone. */
static double run(int threads, void (*loop)(int64_t), int floats)
{
    const int64_t rounds = 1000000;
    double start = bench_seconds();
#pragma omp parallel num_threads(threads)
    loop(rounds);
    return (double)threads * (double)rounds * 12 * 2 * floats / (bench_seconds() - start);
}

double bench_fma_rate(pl_team team)
{
    switch (team.isa) {
#if defined(__x86_64__)
    case PL_ISA_AVX512:
    case PL_ISA_AVX512_BF16:
    case PL_ISA_AMX:
        return run(team.threads, peak_avx512, 16);
    case PL_ISA_AVX2:
        return run(team.threads, peak_avx2, 8);
#endif
    default:
        return run(team.threads, peak_baseline, 4);
    }
}

double bench_fma_peak(pl_team team)
{
    double best = 0;
    for (int i = 0; i < (bench_is_brief() ? 5 : 100); i++) {
        double rate = bench_fma_rate(team);
        if (rate > best) best = rate;
    }
    return best;
}

double bench_pairs_peak(pl_team team)
{
    double best = 0;
#if defined(__x86_64__)
    for (int i = 0; i < (bench_is_brief() ? 5 : 100) && team.isa == PL_ISA_AVX512_BF16; i++) {
        double rate = 2 * run(team.threads, peak_pairs, 16);
        if (rate > best) best = rate;
    }
#else
    (void)team;
#endif
    return best;
}

double bench_vnni_peak(pl_team team)
{
    double best = 0;
#if defined(__x86_64__)
    for (int i = 0; i < (bench_is_brief() ? 5 : 100) && pl_isa_extras(team.isa) & PL_ISA_VNNI; i++) {
        const int wide = team.isa >= PL_ISA_AVX512;
        double rate = 4 * run(team.threads, wide ? peak_fours : peak_fours_vex, wide ? 16 : 8);
        if (rate > best) best = rate;
    }
#else
    (void)team;
#endif
    return best;
}
