/* Copies of operands in the order in which the micro-kernels read them; numbers of 16 bits become f32 on the way. Where
 * k is contiguous in B, vectors of k become vectors of columns by transposing PL_VW × PL_VW squares in registers.
 * `type` is a constant in each instance. */
#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/gemm_transpose.h"
#include "kernels/cpu/vec_real.h"

enum { AHEAD = 12 }; /* rows of a strided A that are asked for before they are copied */

PL_V_INLINE void pack_a_rows(pl_real type, const void *src, int64_t ld, int64_t rows, int64_t k, float *dst,
                             int64_t stride)
{
    for (int64_t r = 0; r < rows; r++, dst += stride) {
        int64_t p = 0;
        for (; p + PL_VW <= k; p += PL_VW) pl_v_store(dst + p, pl_v_get(type, src, r * ld + p, PL_VW));
        if (p < k) pl_v_store_part(dst + p, pl_v_get(type, src, r * ld + p, k - p), k - p);
    }
}

/* A few numbers, their count known where this is expanded: two or three moves of f32, no masks. */
PL_V_INLINE void copy_few(pl_real type, float *dst, const void *src, int64_t at, int64_t count)
{
    if (type == PL_REAL_F32)
        __builtin_memcpy(dst, (const float *)src + at, (size_t)count * sizeof(float));
    else
        pl_v_store_part(dst, pl_v_get(type, src, at, count), count);
}

/* Panels of `rows` rows, side by side in every row of the source, which is read once, in its own order. */
PL_V_INLINE void pack_panels(pl_real type, const void *src, int64_t ld, int64_t rows, int64_t panels, int64_t k,
                             float *dst, int64_t panel_words)
{
    const int64_t line = 64 / pl_real_bytes(type);
    for (int64_t p = 0; p < k; p++, dst += rows) {
        for (int64_t i = 0; i < panels * rows; i += line)
            __builtin_prefetch(pl_real_at(type, src, (p + AHEAD) * ld + i));
        for (int64_t i = 0; i < panels; i++) copy_few(type, dst + i * panel_words, src, p * ld + i * rows, rows);
    }
}

PL_V_INLINE void pack_a_columns(pl_real type, const void *src, int64_t ld, int64_t rows, int64_t panels, int64_t k,
                                float *dst, int64_t panel_words)
{
    if (rows == PL_GEMM_MR)
        pack_panels(type, src, ld, PL_GEMM_MR, panels, k, dst, panel_words);
    else if (rows == PL_GEMM_MR - 1)
        pack_panels(type, src, ld, PL_GEMM_MR - 1, panels, k, dst, panel_words);
    else
        pack_panels(type, src, ld, rows, panels, k, dst, panel_words);
}

PL_V_INLINE void pack_b_edge(pl_real type, const void *src, int64_t at, int64_t ld, int64_t k, int64_t columns,
                             float *dst)
{
    int64_t first = columns < PL_VW ? columns : PL_VW, second = columns - first;
    for (int64_t p = 0; p < k; p++, at += ld, dst += PL_GEMM_NR) {
        pl_v_store(dst, pl_v_get(type, src, at, first));
        pl_v_store(dst + PL_VW, second ? pl_v_get(type, src, at + PL_VW, second) : pl_v_zero());
    }
}

/* Row by row, so that the source is read in its own order. */
PL_V_INLINE void pack_b(pl_real type, const void *src, int64_t ld, int64_t k, int64_t columns, float *dst,
                        int64_t panel_words)
{
    int64_t whole = columns / PL_GEMM_NR;
    for (int64_t p = 0; p < k; p++) {
        int64_t from = p * ld;
        float *to = dst + p * PL_GEMM_NR;
        for (int64_t j = 0; j < whole; j++, from += PL_GEMM_NR, to += panel_words) {
            pl_v_store(to, pl_v_get(type, src, from, PL_VW));
            pl_v_store(to + PL_VW, pl_v_get(type, src, from + PL_VW, PL_VW));
        }
    }
    if (columns % PL_GEMM_NR)
        pack_b_edge(type, src, whole * PL_GEMM_NR, ld, k, columns % PL_GEMM_NR, dst + whole * panel_words);
}

PL_V_INLINE void transpose_full(pl_real type, const void *src, int64_t at, int64_t ld, float *dst, int64_t stride)
{
    pl_vf v[PL_VW];
#if PL_VW == 16
    if (type == PL_REAL_F32) {
        pl_gemm_load_transposed((const char *)((const float *)src + at), ld * (int64_t)sizeof(float), v);
#pragma GCC unroll 16
        for (int p = 0; p < PL_VW; p++) pl_v_store(dst + p * stride, v[p]);
        return;
    }
#endif
#pragma GCC unroll 16
    for (int j = 0; j < PL_VW; j++) v[j] = pl_v_get(type, src, at + j * ld, PL_VW);
    pl_gemm_transpose(v);
#pragma GCC unroll 16
    for (int p = 0; p < PL_VW; p++) pl_v_store(dst + p * stride, v[p]);
}

#if PL_VW == 16
/* As transpose_full twice over, for 32 of k: bf16 is turned as pairs, words of 32 bits, and only then widened, which
 * takes half the shuffles. */
PL_V_INLINE void transpose_pairs(const uint16_t *src, int64_t ld, float *dst, int64_t stride)
{
    const __m512i high = _mm512_set1_epi32((int)0xffff0000);
    pl_vf v[PL_VW];
    pl_gemm_load_transposed((const char *)src, ld * (int64_t)sizeof *src, v);
#pragma GCC unroll 16
    for (int p = 0; p < PL_VW; p++) {
        pl_v_store(dst + 2 * p * stride, (pl_vf)_mm512_slli_epi32((__m512i)v[p], 16));
        pl_v_store(dst + (2 * p + 1) * stride, (pl_vf)_mm512_and_si512((__m512i)v[p], high));
    }
}
#endif

PL_V_INLINE void transpose_edge(pl_real type, const void *src, int64_t at, int64_t ld, int64_t k, int64_t columns,
                                float *dst, int64_t stride)
{
    pl_vf v[PL_VW];
    for (int j = 0; j < PL_VW; j++) v[j] = j < columns ? pl_v_get(type, src, at + j * ld, k) : pl_v_zero();
    pl_gemm_transpose(v);
    for (int p = 0; p < k; p++) pl_v_store(dst + p * stride, v[p]);
}

/* One vector of columns, all of k. */
PL_V_INLINE void pack_strip(pl_real type, const void *src, int64_t at, int64_t ld, int64_t k, int64_t columns,
                            float *dst, int64_t stride)
{
    int64_t p = 0;
#if PL_VW == 16
    if (type == PL_REAL_BF16 && columns == PL_VW)
        for (; p + 2 * PL_VW <= k; p += 2 * PL_VW)
            transpose_pairs((const uint16_t *)src + at + p, ld, dst + p * stride, stride);
#endif
    for (; p < k; p += PL_VW) {
        int64_t steps = k - p < PL_VW ? k - p : PL_VW;
        if (steps == PL_VW && columns == PL_VW)
            transpose_full(type, src, at + p, ld, dst + p * stride, stride);
        else
            transpose_edge(type, src, at + p, ld, steps, columns, dst + p * stride, stride);
    }
}

PL_V_INLINE void pack_b_transposed(pl_real type, const void *src, int64_t ld, int64_t k, int64_t columns, float *dst,
                                   int64_t panel_words)
{
    for (int64_t j = 0; j < columns; j += PL_GEMM_NR, dst += panel_words)
        for (int64_t v = 0; v < PL_GEMM_NR; v += PL_VW) {
            int64_t left = columns - j - v, here = left < 0 ? 0 : left < PL_VW ? left : PL_VW;
            pack_strip(type, src, here ? (j + v) * ld : 0, ld, k, here, dst + v, PL_GEMM_NR);
        }
}

/* Whole vectors of f32: who is narrower is never in wide tiles. */
static void b_rows_f32(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t stride)
{
    for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < columns; j += PL_VW)
            pl_v_store((float *)dst + p * stride + j, pl_v_get(PL_REAL_F32, src, p * ld + j, PL_VW));
}

PL_V_INLINE void pack_b_pair(pl_real type, const void *first, const void *second, int64_t ld, int64_t k,
                             int64_t columns, float *dst)
{
    pack_strip(type, first, 0, ld, k, columns, dst, PL_GEMM_NR);
    pack_strip(type, second, 0, ld, k, columns, dst + PL_VW, PL_GEMM_NR);
}

#define PACKERS(name, type)                                                                                            \
    static void a_rows_##name(const void *src, int64_t ld, int64_t rows, int64_t k, void *dst, int64_t stride)         \
    {                                                                                                                  \
        pack_a_rows(type, src, ld, rows, k, dst, stride);                                                              \
    }                                                                                                                  \
    static void a_columns_##name(const void *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, void *dst,      \
                                 int64_t panel_words)                                                                  \
    {                                                                                                                  \
        pack_a_columns(type, src, ld, rows, panels, k, dst, panel_words);                                              \
    }                                                                                                                  \
    static void b_##name(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t panel_words)      \
    {                                                                                                                  \
        pack_b(type, src, ld, k, columns, dst, panel_words);                                                           \
    }                                                                                                                  \
    static void b_transposed_##name(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst,                \
                                    int64_t panel_words)                                                               \
    {                                                                                                                  \
        pack_b_transposed(type, src, ld, k, columns, dst, panel_words);                                                \
    }                                                                                                                  \
    static void b_strip_##name(const void *src, int64_t ld, int64_t k, int64_t columns, void *dst, int64_t stride)     \
    {                                                                                                                  \
        pack_strip(type, src, 0, ld, k, columns, dst, stride);                                                         \
    }                                                                                                                  \
    static void b_pair_##name(const void *first, const void *second, int64_t ld, int64_t k, int64_t columns,           \
                              void *dst)                                                                               \
    {                                                                                                                  \
        pack_b_pair(type, first, second, ld, k, columns, dst);                                                         \
    }
/* clang-format off: it takes the macros for types */
PACKERS(f32, PL_REAL_F32)
PACKERS(bf16, PL_REAL_BF16)
PACKERS(f16, PL_REAL_F16)

const pl_gemm_packers pl_gemm_pack[PL_GEMM_REALS] = {
    [PL_REAL_F32] = {a_rows_f32, a_columns_f32, b_f32, b_transposed_f32, b_strip_f32, b_rows_f32, b_pair_f32},
    [PL_REAL_BF16] = {a_rows_bf16, a_columns_bf16, b_bf16, b_transposed_bf16, b_strip_bf16, NULL, b_pair_bf16},
    [PL_REAL_F16] = {a_rows_f16, a_columns_f16, b_f16, b_transposed_f16, b_strip_f16, NULL, b_pair_f16},
};
/* clang-format on */
