/* Copies of operands in the order in which the micro-kernels read them. Where k is contiguous in B, vectors of k become
 * vectors of columns by transposing PL_VW × PL_VW squares in registers. */
#include "kernels/cpu/gemm_level.h"

enum { AHEAD = 12 }; /* rows of a strided A that are asked for before they are copied */

/* A few floats, a number known where this is expanded: two or three moves, no masks. */
PL_V_INLINE void copy_floats(float *dst, const float *src, int64_t count)
{
    __builtin_memcpy(dst, src, (size_t)count * sizeof(float));
}

/* Panels of `rows` rows, side by side in every row of the source, which is read once, in its own order. */
PL_V_INLINE void pack_columns(const float *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, float *dst,
                              int64_t panel_elems)
{
    for (int64_t p = 0; p < k; p++, src += ld, dst += rows) {
        for (int64_t line = 0; line < panels * rows; line += 16) __builtin_prefetch(src + AHEAD * ld + line);
        for (int64_t i = 0; i < panels; i++) copy_floats(dst + i * panel_elems, src + i * rows, rows);
    }
}

void pl_gemm_pack_a_columns(const float *src, int64_t ld, int64_t rows, int64_t panels, int64_t k, float *dst,
                            int64_t panel_elems)
{
    if (rows == PL_GEMM_MR)
        pack_columns(src, ld, PL_GEMM_MR, panels, k, dst, panel_elems);
    else if (rows == PL_GEMM_MR - 1)
        pack_columns(src, ld, PL_GEMM_MR - 1, panels, k, dst, panel_elems);
    else
        pack_columns(src, ld, rows, panels, k, dst, panel_elems);
}

static void pack_b_edge(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst)
{
    int64_t first = columns < PL_VW ? columns : PL_VW, second = columns - first;
    for (int64_t p = 0; p < k; p++, src += ld, dst += PL_GEMM_NR) {
        pl_v_store(dst, pl_v_load_part(src, first));
        pl_v_store(dst + PL_VW, second ? pl_v_load_part(src + PL_VW, second) : pl_v_zero());
    }
}

/* Row by row, so that the source is read in its own order. */
void pl_gemm_pack_b(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst, int64_t panel_elems)
{
    int64_t whole = columns / PL_GEMM_NR;
    for (int64_t p = 0; p < k; p++) {
        const float *from = src + p * ld;
        float *to = dst + p * PL_GEMM_NR;
        for (int64_t j = 0; j < whole; j++, from += PL_GEMM_NR, to += panel_elems) {
            pl_v_store(to, pl_v_load(from));
            pl_v_store(to + PL_VW, pl_v_load(from + PL_VW));
        }
    }
    if (columns % PL_GEMM_NR)
        pack_b_edge(src + whole * PL_GEMM_NR, ld, k, columns % PL_GEMM_NR, dst + whole * panel_elems);
}

/* v[i][j] ↔ v[j][i] */
#if PL_VW == 16
PL_V_INLINE void transpose(pl_vf v[PL_VW])
{
    __m512 t[16], u[16];
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps((__m512)v[i], (__m512)v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps((__m512)v[i], (__m512)v[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        u[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        __m512 a = _mm512_shuffle_f32x4(u[i], u[i + 4], 0x88), b = _mm512_shuffle_f32x4(u[i], u[i + 4], 0xdd);
        __m512 c = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0x88), d = _mm512_shuffle_f32x4(u[i + 8], u[i + 12], 0xdd);
        v[i] = (pl_vf)_mm512_shuffle_f32x4(a, c, 0x88);
        v[i + 4] = (pl_vf)_mm512_shuffle_f32x4(b, d, 0x88);
        v[i + 8] = (pl_vf)_mm512_shuffle_f32x4(a, c, 0xdd);
        v[i + 12] = (pl_vf)_mm512_shuffle_f32x4(b, d, 0xdd);
    }
}
#elif PL_VW == 8
PL_V_INLINE void transpose(pl_vf v[PL_VW])
{
    __m256 t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps((__m256)v[i], (__m256)v[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps((__m256)v[i], (__m256)v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = (pl_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        v[i + 4] = (pl_vf)_mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}
#else
PL_V_INLINE void transpose(pl_vf v[PL_VW])
{
    pl_vf a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    pl_vf c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

static void transpose_full(const float *src, int64_t ld, float *dst)
{
    pl_vf v[PL_VW];
#pragma GCC unroll 16
    for (int j = 0; j < PL_VW; j++) v[j] = pl_v_load(src + j * ld);
    transpose(v);
#pragma GCC unroll 16
    for (int p = 0; p < PL_VW; p++) pl_v_store(dst + p * PL_GEMM_NR, v[p]);
}

static void transpose_edge(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst)
{
    pl_vf v[PL_VW];
    for (int j = 0; j < PL_VW; j++) v[j] = j < columns ? pl_v_load_part(src + j * ld, k) : pl_v_zero();
    transpose(v);
    for (int p = 0; p < k; p++) pl_v_store(dst + p * PL_GEMM_NR, v[p]);
}

/* One vector of columns, all of k. */
static void pack_strip(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst)
{
    for (int64_t p = 0; p < k; p += PL_VW) {
        int64_t steps = k - p < PL_VW ? k - p : PL_VW;
        if (steps == PL_VW && columns == PL_VW)
            transpose_full(src + p, ld, dst + p * PL_GEMM_NR);
        else
            transpose_edge(src + p, ld, steps, columns, dst + p * PL_GEMM_NR);
    }
}

void pl_gemm_pack_b_transposed(const float *src, int64_t ld, int64_t k, int64_t columns, float *dst,
                               int64_t panel_elems)
{
    for (int64_t j = 0; j < columns; j += PL_GEMM_NR, dst += panel_elems)
        for (int64_t v = 0; v < PL_GEMM_NR; v += PL_VW) {
            int64_t left = columns - j - v, here = left < 0 ? 0 : left < PL_VW ? left : PL_VW;
            pack_strip(src + (here ? (j + v) * ld : 0), ld, k, here, dst + v);
        }
}
