/* Matrix products of bf16 by AVX512-BF16: vdpbf16ps multiplies sixteen pairs by sixteen pairs and adds both products
 * of each to its sum, that of the high halves first, at twice the rate of f32. A word is a pair of neighbours in k.
 * Where k is contiguous in A, it is read in place, the earlier neighbour in the low half, and B is packed to match.
 * Where A must be packed (gradients of weights, k = tokens) the earlier one comes into the high half: then the chain of
 * sums is that of single products in ascending k. Subnormal operands and sums count as zero.
 * AMX (gemm_amx.c) takes the same words, those of A by rows, sixteen at a time; where the caller has A by columns,
 * their pairs are turned into rows. Nothing of this is called on processors without the instruction
 * (pl_isa_of_machine). */
#include "kernels/cpu/gemm_level.h"

#if defined(PL_LEVEL_avx512)
#include "kernels/cpu/gemm_amx.h"
#include "kernels/cpu/gemm_transpose.h"

#include "kernels/cpu/pairs.h"

#define WIDE_TILES 0
#include "kernels/cpu/gemm_tiles.h"

/* ---- operands ---- */

enum { AHEAD = 12 }; /* rows of a strided operand that are asked for before they are copied */

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

/* Pairs of two rows, `ascending` with the first in the high half; `next` NULL: there is no second, `none` takes its
 * place. */
PL_V_INLINE words pairs_part(int ascending, const uint16_t *row, const uint16_t *next, int16_t none, int64_t count)
{
    __mmask16 mask = words_mask(count);
    __m256i first = _mm256_maskz_loadu_epi16(mask, row);
    __m256i second = next ? _mm256_maskz_loadu_epi16(mask, next) : _mm256_set1_epi16(none);
    return ascending ? pairs_of(second, first) : pairs_of(first, second);
}

/* The product of what takes the place of a second row in A and in B is -0: added to any sum, it changes no bit, that of
 * a sum of -0 included. (A that is read by rows: those sums are not cut between samples, zeros of either sign do.) */
enum { NONE_IN_A = INT16_MIN, NONE_IN_B = 0 };

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
                                     pairs_part(1, src + i * rows, next ? next + i * rows : NULL, NONE_IN_A, rows));
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
PL_V_INLINE void b_strip(int ascending, const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst)
{
    for (int64_t p = 0; p < k; p += 2, src += 2 * ld, dst += PL_GEMM_NR)
        _mm512_storeu_si512(dst, pairs_part(ascending, src, p + 1 < k ? src + ld : NULL, NONE_IN_B, columns));
}

PL_V_INLINE void b_panel(int ascending, const uint16_t *src, int64_t ld, int64_t k, word *dst)
{
    int64_t p = 0;
    for (; p + 1 < k; p += 2, src += 2 * ld, dst += PL_GEMM_NR)
#pragma GCC unroll 2
        for (int v = 0; v < PL_GEMM_NR; v += PL_VW) {
            __m256i first = _mm256_loadu_si256((const void *)(src + v));
            __m256i second = _mm256_loadu_si256((const void *)(src + ld + v));
            _mm512_storeu_si512(dst + v, ascending ? pairs_of(second, first) : pairs_of(first, second));
        }
    if (p == k) return;
    b_strip(ascending, src, ld, 1, PL_VW, dst);
    b_strip(ascending, src + PL_VW, ld, 1, PL_VW, dst + PL_VW);
}

PL_V_INLINE void b_panels(int ascending, const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst,
                          int64_t panel_words)
{
    for (int64_t j = 0; j < columns; j += PL_GEMM_NR, src += PL_GEMM_NR, dst += panel_words) {
        int64_t left = columns - j, second = left - PL_VW;
        if (left >= PL_GEMM_NR) {
            b_panel(ascending, src, ld, k, dst);
            continue;
        }
        b_strip(ascending, src, ld, k, second > 0 ? PL_VW : left, dst);
        b_strip(ascending, second > 0 ? src + PL_VW : src, ld, k, second > 0 ? second : 0, dst + PL_VW);
    }
}

/* One vector of columns, all of k: squares of words. */
PL_V_INLINE void turn_strip(int ascending, const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst)
{
    for (int64_t p = 0; p < k; p += 2 * PL_VW) {
        pl_vf v[PL_VW];
        int64_t left = k - p, count = left < 2 * PL_VW ? (left + 1) / 2 : PL_VW;
        if (!ascending && left >= 2 * PL_VW && columns == PL_VW) {
            pl_gemm_load_transposed((const char *)(src + p), ld * 2, v);
#pragma GCC unroll 16
            for (int i = 0; i < PL_VW; i++) _mm512_storeu_si512(dst + (p / 2 + i) * PL_GEMM_NR, (__m512i)v[i]);
            continue;
        }
#pragma GCC unroll 16
        for (int j = 0; j < PL_VW; j++) {
            words row = j < columns ? load_halves(src + j * ld + p, left) : _mm512_setzero_si512();
            v[j] = (pl_vf)(ascending ? _mm512_rol_epi32(row, 16) : row);
        }
        pl_gemm_transpose(v);
        if (count == PL_VW) {
#pragma GCC unroll 16
            for (int i = 0; i < PL_VW; i++) _mm512_storeu_si512(dst + (p / 2 + i) * PL_GEMM_NR, (__m512i)v[i]);
        } else {
            for (int i = 0; i < count; i++) _mm512_storeu_si512(dst + (p / 2 + i) * PL_GEMM_NR, (__m512i)v[i]);
        }
    }
}

PL_V_INLINE void turn(int ascending, const uint16_t *src, int64_t ld, int64_t k, int64_t columns, word *dst,
                      int64_t panel_words)
{
    for (int64_t j = 0; j < (columns + PL_GEMM_NR - 1) / PL_GEMM_NR * PL_GEMM_NR; j += PL_VW) {
        int64_t left = columns - j;
        word *to = dst + j / PL_GEMM_NR * panel_words + j % PL_GEMM_NR;
        if (left >= PL_VW)
            turn_strip(ascending, src + j * ld, ld, k, PL_VW, to);
        else
            turn_strip(ascending, left > 0 ? src + j * ld : src, ld, k, left, to);
    }
}

static void b_as_stored(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    b_panels(0, src, ld, k, columns, dst, panel_words);
}
static void b_ascending(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    b_panels(1, src, ld, k, columns, dst, panel_words);
}
static void turned_as_stored(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    turn(0, src, ld, k, columns, dst, panel_words);
}
static void turned_ascending(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    turn(1, src, ld, k, columns, dst, panel_words);
}

PL_V_INLINE void pair_of_strips(int ascending, const void *first, const void *second, int64_t ld, int64_t k,
                                int64_t columns, word *dst)
{
    turn_strip(ascending, first, ld, k, columns, dst);
    turn_strip(ascending, second, ld, k, columns, dst + PL_VW);
}

static void pair_as_stored(const void *first, const void *second, int64_t ld, int64_t k, int64_t columns, void *dst)
{
    pair_of_strips(0, first, second, ld, k, columns, dst);
}
static void pair_ascending(const void *first, const void *second, int64_t ld, int64_t k, int64_t columns, void *dst)
{
    pair_of_strips(1, first, second, ld, k, columns, dst);
}

static const pl_gemm_packers by_rows_of_a[PL_GEMM_REALS] = {
    [PL_REAL_BF16] = {.a_rows = a_rows, .b = b_as_stored, .b_transposed = turned_as_stored, .b_pair = pair_as_stored}};
static const pl_gemm_packers by_columns_of_a[PL_GEMM_REALS] = {
    [PL_REAL_BF16] = {
        .a_columns = a_columns, .b = b_ascending, .b_transposed = turned_ascending, .b_pair = pair_ascending}};

extern const pl_gemm_kernels pl_gemm_kernels_avx512_bf16;
const pl_gemm_kernels pl_gemm_kernels_avx512_bf16 = {
    .mr = PL_GEMM_MR,
    .nr = PL_GEMM_NR,
    .vector = PL_VW,
    .step = 2,
    .multiple = 1,
    .k_block = 768,
    .k_block_packed = 384,
    .by_rows = by_rows,
    .by_rows_ahead = by_rows_ahead,
    .by_columns = by_columns,
    .pack = {by_rows_of_a, by_columns_of_a},
    .finish = pl_gemm_finish,
    .thin = pl_gemm_thin,
    .column_sum = pl_gemm_column_sum,
};

/* ---- the same for AMX: zeros fill k up to whole tiles ---- */

static int64_t whole_tiles(int64_t k)
{
    return (k + 2 * PL_GEMM_AMX_WORDS - 1) / (2 * PL_GEMM_AMX_WORDS) * PL_GEMM_AMX_WORDS;
}

static void a_rows_whole(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride)
{
    a_rows(src, ld, rows, k, dst, stride);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t p = (k + 1) / 2; p < whole_tiles(k); p++) ((word *)dst)[r * stride + p] = 0;
}

/* The square of 32 rows and columns at src, of which `count` and those in the mask are there: a column's pairs of rows,
 * 16 words, to a line each. Pairs of four columns stand behind one another in each lane, first the lower four. */
PL_V_INLINE void turn_square(const uint16_t *src, int64_t ld, int64_t count, __mmask32 mask, word *dst, int64_t stride)
{
    words pairs[2][PL_VW];
#pragma GCC unroll 16
    for (int p = 0; p < PL_VW; p++, src += 2 * ld) {
        words first = _mm512_maskz_loadu_epi16(2 * p < count ? mask : 0, src);
        words second = _mm512_maskz_loadu_epi16(2 * p + 1 < count ? mask : 0, src + ld);
        pairs[0][p] = _mm512_unpacklo_epi16(first, second);
        pairs[1][p] = _mm512_unpackhi_epi16(first, second);
    }
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        pl_vf v[PL_VW];
        pl_gemm_load_transposed((const char *)pairs[half], sizeof(words), v);
#pragma GCC unroll 16
        for (int i = 0; i < PL_VW; i++) {
            const int column = i / 4 * 8 + i % 4 + 4 * half;
            if (mask >> column & 1) _mm512_storeu_si512(dst + column * stride, (__m512i)v[i]);
        }
    }
}

enum { SQUARE = 2 * PL_VW };

/* A by columns into rows. */
static void a_turned(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride)
{
    for (int64_t p = 0; p < k; p += SQUARE)
        for (int64_t r = 0; r < rows; r += SQUARE) {
            const uint16_t *from = (const uint16_t *)src + p * ld + r;
            word *to = (word *)dst + r * stride + p / 2;
            if (k - p >= SQUARE && rows - r >= SQUARE)
                turn_square(from, ld, SQUARE, ~(__mmask32)0, to, stride);
            else
                turn_square(from, ld, k - p, (__mmask32)((UINT64_C(1) << (rows - r < SQUARE ? rows - r : SQUARE)) - 1),
                            to, stride);
        }
}

/* Behind the words of k in each panel. */
static void fill_panels(int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    for (int64_t j = 0; j < columns; j += PL_GEMM_NR, dst = (word *)dst + panel_words)
        for (int64_t p = (k + 1) / 2 * PL_GEMM_NR; p < whole_tiles(k) * PL_GEMM_NR; p += PL_VW)
            _mm512_storeu_si512((word *)dst + p, _mm512_setzero_si512());
}

static void b_whole(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    b_panels(0, src, ld, k, columns, dst, panel_words);
    fill_panels(k, columns, dst, panel_words);
}

static void turned_whole(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)
{
    turn(0, src, ld, k, columns, dst, panel_words);
    fill_panels(k, columns, dst, panel_words);
}

static void pair_whole(const void *first, const void *second, int64_t ld, int64_t k, int64_t columns, void *dst)
{
    pair_of_strips(0, first, second, ld, k, columns, dst);
    fill_panels(k, PL_GEMM_NR, dst, 0);
}

static const pl_gemm_packers in_tiles[PL_GEMM_REALS] = {[PL_REAL_BF16] = {.a_rows = a_rows_whole,
                                                                          .a_turned = a_turned,
                                                                          .b = b_whole,
                                                                          .b_transposed = turned_whole,
                                                                          .b_pair = pair_whole}};

extern const pl_gemm_kernels pl_gemm_kernels_amx;
const pl_gemm_kernels pl_gemm_kernels_amx = {
    .mr = 32,
    .nr = PL_GEMM_NR,
    .vector = PL_VW,
    .step = 2,
    .multiple = PL_GEMM_AMX_WORDS,
    .k_block = 256,
    .k_block_packed = 256,
    .by_rows = pl_gemm_amx_tiles,
    .enter = pl_gemm_amx_enter,
    .leave = pl_gemm_amx_leave,
    .pack = {in_tiles, NULL},
    .finish = pl_gemm_finish,
    .thin = pl_gemm_thin,
    .column_sum = pl_gemm_column_sum,
};
#endif
