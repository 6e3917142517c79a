/* Pairs of bf16 as words of 32 bits, which AVX512-BF16 multiplies sixteen at a time: vdpbf16ps adds both products of
 * each pair to its sum, that of the high halves first, at twice the rate of f32. Subnormal operands and sums count as
 * zero.
 * The `word` of gemm_tiles.h and attention_tile.h. */
#ifndef PL_KERNELS_CPU_PAIRS_H
#define PL_KERNELS_CPU_PAIRS_H

#include "kernels/cpu/vec.h"

#define TILE_TARGET __attribute__((target("avx512bf16")))
typedef int32_t word __attribute__((aligned(2), may_alias));
typedef __m512i words;

PL_V_INLINE words load_words(const word *p) { return _mm512_loadu_si512(p); }
PL_V_INLINE words set_word(int32_t x) { return _mm512_set1_epi32(x); }
TILE_TARGET PL_V_INLINE pl_vf multiply_add(words a, words b, pl_vf sums)
{
    return (pl_vf)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

PL_V_INLINE __mmask16 words_mask(int64_t count) { return (__mmask16)((1u << count) - 1); }

/* The first `count` ≤ 32 numbers of 16 bits, then zeros. */
PL_V_INLINE words load_halves(const uint16_t *p, int64_t count)
{
    return count >= 32 ? _mm512_loadu_si512(p)
                       : _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << (count < 0 ? 0 : count)) - 1), p);
}

/* Pairs of up to 16 columns, the two halves from two rows. */
PL_V_INLINE words pairs_of(__m256i low, __m256i high)
{
    return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

#endif
