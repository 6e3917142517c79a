/* Squares of words turned in registers, for operands whose k is contiguous where columns are wanted. */
#ifndef PL_KERNELS_CPU_GEMM_TRANSPOSE_H
#define PL_KERNELS_CPU_GEMM_TRANSPOSE_H

#include "kernels/cpu/vec.h"

/* v[i][j] ↔ v[j][i] */
#if PL_VW == 16
PL_V_INLINE void pl_gemm_transpose(pl_vf v[PL_VW])
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

/* v[i] = word i of each of 16 rows, ld bytes apart, of which the first stands at src. Quarters of rows find their lanes
 * while they are loaded, which takes no shuffle: half as many of those as above, and processors that do one a cycle
 * are bound by them. */
PL_V_INLINE void pl_gemm_load_transposed(const char *src, int64_t ld, pl_vf v[PL_VW])
{
#pragma GCC unroll 4
    for (int q = 0; q < 4; q++, src += 16) {
        __m512 t[4], u[4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) { /* rows r, r + 4, r + 8, r + 12 */
            const char *row = src + r * ld;
            t[r] = _mm512_castps128_ps512(_mm_loadu_ps((const void *)row));
            t[r] = _mm512_insertf32x4(t[r], _mm_loadu_ps((const void *)(row + 4 * ld)), 1);
            t[r] = _mm512_insertf32x4(t[r], _mm_loadu_ps((const void *)(row + 8 * ld)), 2);
            t[r] = _mm512_insertf32x4(t[r], _mm_loadu_ps((const void *)(row + 12 * ld)), 3);
        }
        for (int r = 0; r < 4; r += 2) {
            u[r] = _mm512_unpacklo_ps(t[r], t[r + 1]);
            u[r + 1] = _mm512_unpackhi_ps(t[r], t[r + 1]);
        }
        v[4 * q] = (pl_vf)_mm512_shuffle_ps(u[0], u[2], 0x44);
        v[4 * q + 1] = (pl_vf)_mm512_shuffle_ps(u[0], u[2], 0xee);
        v[4 * q + 2] = (pl_vf)_mm512_shuffle_ps(u[1], u[3], 0x44);
        v[4 * q + 3] = (pl_vf)_mm512_shuffle_ps(u[1], u[3], 0xee);
    }
}
#elif PL_VW == 8
PL_V_INLINE void pl_gemm_transpose(pl_vf v[PL_VW])
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
PL_V_INLINE void pl_gemm_transpose(pl_vf v[PL_VW])
{
    pl_vf a = __builtin_shufflevector(v[0], v[1], 0, 4, 1, 5), b = __builtin_shufflevector(v[0], v[1], 2, 6, 3, 7);
    pl_vf c = __builtin_shufflevector(v[2], v[3], 0, 4, 1, 5), d = __builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    v[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    v[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    v[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

#endif
