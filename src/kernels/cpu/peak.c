/* Multiply-adds on registers alone, with the instruction that the level's products of these numbers use: no kernel is
 * faster. Twelve independent chains cover four cycles of latency on two or three units. The instructions are written
 * out, so that no compiler leaves one away or fuses two. */
#include "kernels/kernels.h"
#include "kernels/peak.h"

#if defined(__x86_64__) && (defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2))
#define FUSED(i) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+" ANY(a[i]) : ANY(x), ANY(y));
#define PAIRED(i)                                                                                                      \
    __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+" ANY(a[i]), "=&" ANY(t) : ANY(x), ANY(y));
#endif

#if defined(PL_LEVEL_avx512)
#include "kernels/cpu/gemm_amx.h"

#define ANY            "v"
#define BF16_PAIRED(i) __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(a[i]) : "v"(x), "v"(y));
#define FOURS(i)       __asm__ volatile("vpdpbusd %2, %1, %0" : "+v"(a[i]) : "v"(x), "v"(y));
#define SIGNS(i)                                                                                                       \
    __asm__ volatile("vpxord %3, %2, %1\n\tvpopcntd %1, %1\n\tvpaddd %1, %0, %0"                                       \
                     : "+v"(a[i]), "=&v"(t)                                                                            \
                     : "v"(x), "v"(y));
PL_PEAK_LOOP(fused, 64, FUSED)
PL_PEAK_LOOP(pairs, 64, PAIRED)
PL_PEAK_LOOP(bf16_pairs, 64, BF16_PAIRED)
PL_PEAK_LOOP(fours, 64, FOURS)
PL_PEAK_LOOP(signs, 64, SIGNS)

/* Four tiles of sums, as a product has them; each instruction multiplies 16 rows × 16 words with 16 columns. */
#define TILES(name, instruction)                                                                                       \
    static void name(int64_t rounds)                                                                                   \
    {                                                                                                                  \
        pl_gemm_amx_enter();                                                                                           \
        pl_gemm_amx_shape(2 * PL_GEMM_AMX_WORDS);                                                                      \
        for (int64_t r = 0; r < rounds; r++)                                                                           \
            __asm__ volatile(instruction " %%tmm6, %%tmm4, %%tmm0\n\t" instruction                                     \
                                         " %%tmm7, %%tmm4, %%tmm1\n\t" instruction                                     \
                                         " %%tmm6, %%tmm5, %%tmm2\n\t" instruction " %%tmm7, %%tmm5, %%tmm3"           \
                             :                                                                                         \
                             :);                                                                                       \
        pl_gemm_amx_leave();                                                                                           \
    }
TILES(bf16_tiles, "tdpbf16ps")
TILES(int8_tiles, "tdpbusd")
enum { TILE_WORDS = 4 * PL_GEMM_AMX_WORDS * PL_GEMM_AMX_WORDS * PL_GEMM_AMX_WORDS }; /* that a round multiplies */

static pl_peak_loop loop_of(pl_isa isa, pl_arithmetic what)
{
    const int extras = pl_isa_extras(isa);
    const pl_peak_loop words = {fused, 12 * 2 * 16};
    switch (what) {
    case PL_ARITHMETIC_BF16:
        if (isa == PL_ISA_AMX) return (pl_peak_loop){bf16_tiles, 2 * 2 * TILE_WORDS};
        return isa == PL_ISA_AVX512_BF16 ? (pl_peak_loop){bf16_pairs, 12 * 2 * 32} : words;
    case PL_ARITHMETIC_INT8:
        if (extras & PL_ISA_AMX_INT8) return (pl_peak_loop){int8_tiles, 2 * 4 * TILE_WORDS};
        return extras & PL_ISA_VNNI ? (pl_peak_loop){fours, 12 * 2 * 64} : (pl_peak_loop){pairs, 12 * 2 * 32};
    case PL_ARITHMETIC_SIGNS:
        return extras & PL_ISA_VPOPCNTDQ ? (pl_peak_loop){signs, 12 * 2 * 512} : (pl_peak_loop){0};
    default:
        return words;
    }
}
#elif defined(PL_LEVEL_avx2)
#define ANY      "x"
#define FOURS(i) __asm__ volatile("%{vex%} vpdpbusd %2, %1, %0" : "+x"(a[i]) : "x"(x), "x"(y));
PL_PEAK_LOOP(fused, 32, FUSED)
PL_PEAK_LOOP(pairs, 32, PAIRED)
PL_PEAK_LOOP(fours, 32, FOURS)

static pl_peak_loop loop_of(pl_isa isa, pl_arithmetic what)
{
    if (what == PL_ARITHMETIC_SIGNS) return (pl_peak_loop){0};
    if (what != PL_ARITHMETIC_INT8) return (pl_peak_loop){fused, 12 * 2 * 8};
    return pl_isa_extras(isa) & PL_ISA_VNNI ? (pl_peak_loop){fours, 12 * 2 * 32} : (pl_peak_loop){pairs, 12 * 2 * 16};
}
#else
PL_PEAK_LOOP(separate, 16, PL_PEAK_SEPARATE)

static pl_peak_loop loop_of(pl_isa isa, pl_arithmetic what)
{
    (void)isa;
    return what > PL_ARITHMETIC_BF16 ? (pl_peak_loop){0} : (pl_peak_loop){separate, 12 * 2 * 4};
}
#endif

double PL_KERNEL(peak)(pl_isa isa, pl_arithmetic what, int64_t rounds)
{
    const pl_peak_loop loop = loop_of(isa, what);
    if (!loop.run) return 0;
    loop.run(rounds);
    return (double)rounds * loop.operations;
}

uint64_t PL_KERNEL(read_words)(int64_t count, const uint64_t *x)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum;
}
