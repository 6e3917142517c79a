/* Matrix products of bf16 by AVX512-BF16: vdpbf16ps multiplies sixteen pairs by sixteen pairs and adds both products of
 * each to its sum, twice the rate of f32. A word is a pair of neighbours in k, the earlier one in its low half; so A is
 * read in place where k is contiguous, and turning B is turning words. Subnormal operands and sums count as zero.
 * Nothing of this is called on processors without the instruction (pl_isa_of_machine). */
#include "kernels/cpu/gemm_level.h"

#if defined(PL_LEVEL_avx512)
#include "kernels/cpu/gemm_transpose.h"

#define TILE_TARGET __attribute__((target("avx512bf16")))
typedef int32_t word __attribute__((aligned(2), may_alias));
typedef __m512i words;

PL_V_INLINE words load_words(const word *p) { return _mm512_loadu_si512(p); }
PL_V_INLINE words set_word(int32_t x) { return _mm512_set1_epi32(x); }
TILE_TARGET PL_V_INLINE pl_vf multiply_add(words a, words b, pl_vf sums)
{
    return (pl_vf)_mm512_dpbf16_ps((__m512)sums, (__m512bh)a, (__m512bh)b);
}

#include "kernels/cpu/gemm_tiles.h"

/* ---- operands ---- */

enum { AHEAD = 12 }; /* rows of a strided operand that are asked for before they are copied */

static __mmask16 words_mask(int64_t count) { return (__mmask16)((1u << count) - 1); }
/* The first `count` ≤ 32 numbers of 16 bits, then zeros. */
PL_V_INLINE words load_halves(const uint16_t *p, int64_t count)
{
    return count >= 32 ? _mm512_loadu_si512(p)
                       : _mm512_maskz_loadu_epi16((__mmask32)((UINT64_C(1) << (count < 0 ? 0 : count)) - 1), p);
}

static void a_rows(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t p = 0; p < k; p += 32) {
            int64_t left = k - p, count = (left + 1) / 2;
            _mm512_mask_storeu_epi32((word *)dst + r * stride + p / 2,
                                     count < 16 ? words_mask(count) : (__mmask16)0xffff,
                                     load_halves((const uint16_t *)src + r * ld + p, left));
        }
}

/* Pairs of up to 16 columns: low halves from one row, high halves from the next. */
PL_V_INLINE words pairs_of(__m256i low, __m256i high)
{
    return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* `next` NULL: k is odd, the last pair is filled up with zeros. */
PL_V_INLINE words pairs_part(const uint16_t *row, const uint16_t *next, int64_t count)
{
    __mmask16 mask = words_mask(count);
    return pairs_of(_mm256_maskz_loadu_epi16(mask, row), _mm256_maskz_loadu_epi16(next ? mask : 0, next ? next : row));
}

PL_V_INLINE void a_panels(const uint16_t *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, word *dst,
                          int64_t panel_words)
{
    const __mmask16 mask = words_mask(rows);
    for (int64_t p = 0; p < k; p += 2, src += 2 * ld, dst += rows) {
        const uint16_t *next = p + 1 < k ? src + ld : NULL;
        for (int64_t line = 0; line < panels * rows; line += 32) {
            __builtin_prefetch(src + AHEAD * ld + line);
            __builtin_prefetch(src + (AHEAD + 1) * ld + line);
        }
        for (int64_t i = 0; i < panels; i++)
            _mm512_mask_storeu_epi32(dst + i * panel_words, mask,
                                     pairs_part(src + i * rows, next ? next + i * rows : NULL, rows));
    }
}

static void a_columns(const void *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, void *dst,
                      int64_t panel_words)
{
    if (rows == PL_GEMM_MR)
        a_panels(src, ld, PL_GEMM_MR, panels, k, dst, panel_words);
    else if (rows == PL_GEMM_MR - 1)
        a_panels(src, ld, PL_GEMM_MR - 1, panels, k, dst, panel_words);
    else
        a_panels(src, ld, rows, panels, k, dst, panel_words);
}

/* One vector of `columns` ≤ 16, all of k. */
PL_V_INLINE void b_strip(const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst)
{
    for (int64_t p = 0; p < k; p += 2, src += 2 * ld, dst += PL_GEMM_NR)
        _mm512_storeu_si512(dst, pairs_part(src, p + 1 < k ? src + ld : NULL, columns));
}

static void b_panel(const uint16_t *src, int64_t ld, int64_t k, word *dst)
{
    int64_t p = 0;
    for (; p + 1 < k; p += 2, src += 2 * ld, dst += PL_GEMM_NR)
#pragma GCC unroll 2
        for (int v = 0; v < PL_GEMM_NR; v += PL_VW) {
            __m256i low = _mm256_loadu_si256((const void *)(src + v));
            _mm512_storeu_si512(dst + v, pairs_of(low, _mm256_loadu_si256((const void *)(src + ld + v))));
        }
    if (p < k) b_strip(src, ld, 1, PL_VW, dst), b_strip(src + PL_VW, ld, 1, PL_VW, dst + PL_VW);
}

static void b(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    for (int64_t j = 0; j < columns; j += PL_GEMM_NR) {
        const uint16_t *from = (const uint16_t *)src + j;
        word *to = (word *)dst + j / PL_GEMM_NR * panel_words;
        int64_t left = columns - j, second = left - PL_VW;
        if (left >= PL_GEMM_NR) {
            b_panel(from, ld, k, to);
            continue;
        }
        b_strip(from, ld, k, second > 0 ? PL_VW : left, to);
        b_strip(second > 0 ? from + PL_VW : from, ld, k, second > 0 ? second : 0, to + PL_VW);
    }
}

/* One vector of columns, all of k: squares of words. */
PL_V_INLINE void turn_strip(const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst)
{
    for (int64_t p = 0; p < k; p += 2 * PL_VW) {
        pl_vf v[PL_VW];
        int64_t left = k - p, count = left < 2 * PL_VW ? (left + 1) / 2 : PL_VW;
#pragma GCC unroll 16
        for (int j = 0; j < PL_VW; j++) v[j] = j < columns ? (pl_vf)load_halves(src + j * ld + p, left) : pl_v_zero();
        pl_gemm_transpose(v);
        if (count == PL_VW) {
#pragma GCC unroll 16
            for (int i = 0; i < PL_VW; i++) _mm512_storeu_si512(dst + (p / 2 + i) * PL_GEMM_NR, (__m512i)v[i]);
        } else {
            for (int i = 0; i < count; i++) _mm512_storeu_si512(dst + (p / 2 + i) * PL_GEMM_NR, (__m512i)v[i]);
        }
    }
}

static void b_transposed(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    for (int64_t j = 0; j < columns; j += PL_VW) {
        const uint16_t *from = (const uint16_t *)src + j * ld;
        word *to = (word *)dst + j / PL_GEMM_NR * panel_words + j % PL_GEMM_NR;
        int64_t left = columns - j;
        if (left >= PL_VW)
            turn_strip(from, ld, k, PL_VW, to);
        else
            turn_strip(from, ld, k, left, to);
    }
    if ((columns + PL_VW - 1) / PL_VW % 2) /* the second half of the last panel */
        turn_strip(src, ld, k, 0, (word *)dst + columns / PL_GEMM_NR * panel_words + PL_VW);
}

static const pl_gemm_packers pack[PL_GEMM_REALS] = {[PL_REAL_BF16] = {a_rows, a_columns, b, b_transposed}};

extern const pl_gemm_kernels pl_gemm_kernels_avx512_bf16;
const pl_gemm_kernels pl_gemm_kernels_avx512_bf16 = {
    .mr = PL_GEMM_MR,
    .nr = PL_GEMM_NR,
    .vector = PL_VW,
    .step = 2,
    .k_block = 768,
    .by_rows = ALL(by_rows),
    .by_columns = ALL(by_columns),
    .pack = pack,
    .finish = pl_gemm_finish,
    .thin_rows = 0,
    .column_sum = pl_gemm_column_sum,
};
#endif
