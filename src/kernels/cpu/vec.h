/* A small vector layer over the vector extensions of GCC and clang: one kernel source, built at 4 (baseline), 8 (avx2)
 * and 16 (avx512) floats a register. The level comes from PL_LEVEL_* (kernels.cmake). Arithmetic is written with the
 * plain operators; what the extensions lack (select, max, partial loads) is here, with intrinsics where the compiler
 * would not find the one instruction and in portable form elsewhere.
 *
 * Invariants: a horizontal reduction always runs in one order (pairwise halves), so results depend on the level but
 * never on threads or alignment; nothing reads or writes past the `count` of a partial access.
 * pl_v_fma rounds once at avx2 and avx512, twice at baseline. */
#ifndef PL_KERNELS_CPU_VEC_H
#define PL_KERNELS_CPU_VEC_H

#include <stdint.h>
#include <string.h>

#if defined(PL_LEVEL_avx512)
#define PL_VW 16
#elif defined(PL_LEVEL_avx2)
#define PL_VW 8
#else
#define PL_VW 4
#endif
#if defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#define PL_V_BYTES  (PL_VW * 4)
#define PL_V_INLINE static inline __attribute__((always_inline))
/* What goes lane by lane is dozens of instructions, and stands in the tails of every loop: a call, so that the program
 * is not half made of them. */
#define PL_V_CALL static __attribute__((noinline, unused))

/* Before a loop over registers (a constant trip count): unroll it whole, so an array of pl_vf stays in registers. */
#if defined(__clang__)
#define PL_V_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PL_V_UNROLL _Pragma("GCC unroll 64")
#endif

typedef float pl_vf __attribute__((vector_size(PL_V_BYTES)));
typedef int32_t pl_vi __attribute__((vector_size(PL_V_BYTES))); /* also what a comparison gives: 0 or −1 a lane */
typedef uint32_t pl_vu __attribute__((vector_size(PL_V_BYTES)));
typedef float pl_vf_unaligned __attribute__((vector_size(PL_V_BYTES), aligned(4), may_alias));
typedef int32_t pl_vi_unaligned __attribute__((vector_size(PL_V_BYTES), aligned(4), may_alias));

PL_V_INLINE pl_vf pl_v_load(const float *p) { return *(const pl_vf_unaligned *)p; }
PL_V_INLINE void pl_v_store(float *p, pl_vf v) { *(pl_vf_unaligned *)p = v; }
PL_V_INLINE pl_vf pl_v_zero(void) { return (pl_vf){0}; }
PL_V_INLINE pl_vf pl_v_set(float x) { return x - (pl_vf){0}; } /* x − 0, not x + 0: that one turns −0 into 0 */
PL_V_INLINE pl_vf pl_v_from_bits(pl_vi bits) { return (pl_vf)bits; }
PL_V_INLINE pl_vi pl_v_bits(pl_vf v) { return (pl_vi)v; }
PL_V_INLINE pl_vi pl_v_set_i32(int32_t x) { return x - (pl_vi){0}; }

#if defined(PL_LEVEL_avx512)

PL_V_INLINE __mmask16 pl_v_mask(int64_t count) { return (__mmask16)((1u << count) - 1); }
/* Lanes at or past count (0 ≤ count ≤ PL_VW) are zero, their memory is not touched. */
PL_V_INLINE pl_vf pl_v_load_part(const float *p, int64_t count)
{
    return (pl_vf)_mm512_maskz_loadu_ps(pl_v_mask(count), p);
}
PL_V_INLINE void pl_v_store_part(float *p, pl_vf v, int64_t count)
{
    _mm512_mask_storeu_ps(p, pl_v_mask(count), (__m512)v);
}
PL_V_INLINE pl_vf pl_v_fma(pl_vf a, pl_vf b, pl_vf c)
{
    return (pl_vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
/* A NaN in b comes through, a NaN in a does not: pl_v_max(limit, x). */
PL_V_INLINE pl_vf pl_v_max(pl_vf a, pl_vf b) { return (pl_vf)_mm512_max_ps((__m512)a, (__m512)b); }
PL_V_INLINE pl_vf pl_v_min(pl_vf a, pl_vf b) { return (pl_vf)_mm512_min_ps((__m512)a, (__m512)b); }
/* a > b ? x : y, lane by lane; a NaN compares false. */
PL_V_INLINE pl_vf pl_v_select_gt(pl_vf a, pl_vf b, pl_vf x, pl_vf y)
{
    return (pl_vf)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ), (__m512)y, (__m512)x);
}
PL_V_INLINE pl_vf pl_v_sqrt(pl_vf x) { return (pl_vf)_mm512_sqrt_ps((__m512)x); }

#elif defined(PL_LEVEL_avx2)

PL_V_INLINE __m256i pl_v_mask(int64_t count)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones + 8 - count));
}
PL_V_INLINE pl_vf pl_v_load_part(const float *p, int64_t count)
{
    return (pl_vf)_mm256_maskload_ps(p, pl_v_mask(count));
}
PL_V_INLINE void pl_v_store_part(float *p, pl_vf v, int64_t count)
{
    _mm256_maskstore_ps(p, pl_v_mask(count), (__m256)v);
}
PL_V_INLINE pl_vf pl_v_fma(pl_vf a, pl_vf b, pl_vf c)
{
    return (pl_vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
PL_V_INLINE pl_vf pl_v_max(pl_vf a, pl_vf b) { return (pl_vf)_mm256_max_ps((__m256)a, (__m256)b); }
PL_V_INLINE pl_vf pl_v_min(pl_vf a, pl_vf b) { return (pl_vf)_mm256_min_ps((__m256)a, (__m256)b); }
PL_V_INLINE pl_vf pl_v_select_gt(pl_vf a, pl_vf b, pl_vf x, pl_vf y)
{
    return (pl_vf)_mm256_blendv_ps((__m256)y, (__m256)x, _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ));
}
PL_V_INLINE pl_vf pl_v_sqrt(pl_vf x) { return (pl_vf)_mm256_sqrt_ps((__m256)x); }

#else

PL_V_CALL pl_vf pl_v_load_part(const float *p, int64_t count)
{
    pl_vf v = {0};
    for (int64_t i = 0; i < count; i++) v[i] = p[i];
    return v;
}
PL_V_CALL void pl_v_store_part(float *p, pl_vf v, int64_t count)
{
    for (int64_t i = 0; i < count; i++) p[i] = v[i];
}
PL_V_INLINE pl_vf pl_v_fma(pl_vf a, pl_vf b, pl_vf c) { return a * b + c; }
PL_V_INLINE pl_vf pl_v_select_gt(pl_vf a, pl_vf b, pl_vf x, pl_vf y)
{
    pl_vi mask = a > b;
    return (pl_vf)((mask & (pl_vi)x) | (~mask & (pl_vi)y));
}
#if defined(__SSE2__)
PL_V_INLINE pl_vf pl_v_max(pl_vf a, pl_vf b) { return (pl_vf)_mm_max_ps((__m128)a, (__m128)b); }
PL_V_INLINE pl_vf pl_v_min(pl_vf a, pl_vf b) { return (pl_vf)_mm_min_ps((__m128)a, (__m128)b); }
PL_V_INLINE pl_vf pl_v_sqrt(pl_vf x) { return (pl_vf)_mm_sqrt_ps((__m128)x); }
#else
PL_V_INLINE pl_vf pl_v_max(pl_vf a, pl_vf b) { return pl_v_select_gt(a, b, a, b); }
PL_V_INLINE pl_vf pl_v_min(pl_vf a, pl_vf b) { return pl_v_select_gt(b, a, a, b); }
PL_V_INLINE pl_vf pl_v_sqrt(pl_vf x)
{
    for (int i = 0; i < PL_VW; i++) x[i] = __builtin_sqrtf(x[i]);
    return x;
}
#endif
#endif

/* The larger of two signed integers, lane by lane. */
PL_V_INLINE pl_vi pl_v_max_i32(pl_vi a, pl_vi b)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif defined(PL_LEVEL_avx2)
    return (pl_vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    pl_vi more = a > b;
    return (a & more) | (b & ~more);
#endif
}

/* 0, 1, 2, … as floats. */
PL_V_INLINE pl_vf pl_v_lane_index(void)
{
    pl_vf v = {0, 1, 2, 3};
    PL_V_UNROLL for (int i = 4; i < PL_VW; i++) v[i] = (float)i;
    return v;
}

/* mask lanes −1: a, lanes 0: b. For masks made by integer comparisons; pl_v_select_gt is quicker for floats. */
PL_V_INLINE pl_vf pl_v_select(pl_vi mask, pl_vf a, pl_vf b) { return (pl_vf)((mask & (pl_vi)a) | (~mask & (pl_vi)b)); }
PL_V_INLINE pl_vf pl_v_abs(pl_vf x) { return (pl_vf)((pl_vi)x & 0x7fffffff); }
PL_V_INLINE pl_vf pl_v_copysign(pl_vf magnitude, pl_vf sign)
{
    return (pl_vf)(((pl_vi)magnitude & 0x7fffffff) | ((pl_vi)sign & (int32_t)0x80000000));
}

/* The 64-bit products of each lane with m: low halves returned, high halves in *high. */
PL_V_INLINE pl_vu pl_v_multiply_wide(pl_vu a, uint32_t m, pl_vu *high)
{
#if defined(__SSE2__)
    typedef uint64_t pairs __attribute__((vector_size(PL_V_BYTES)));
#if PL_VW == 16
    pairs even = (pairs)_mm512_mul_epu32((__m512i)a, _mm512_set1_epi32((int32_t)m));
    pairs odd = (pairs)_mm512_mul_epu32((__m512i)((pairs)a >> 32), _mm512_set1_epi32((int32_t)m));
#elif PL_VW == 8
    pairs even = (pairs)_mm256_mul_epu32((__m256i)a, _mm256_set1_epi32((int32_t)m));
    pairs odd = (pairs)_mm256_mul_epu32((__m256i)((pairs)a >> 32), _mm256_set1_epi32((int32_t)m));
#else
    pairs even = (pairs)_mm_mul_epu32((__m128i)a, _mm_set1_epi32((int32_t)m));
    pairs odd = (pairs)_mm_mul_epu32((__m128i)((pairs)a >> 32), _mm_set1_epi32((int32_t)m));
#endif
    *high = (pl_vu)((even >> 32) | (odd & 0xffffffff00000000u));
    return (pl_vu)((even & 0xffffffffu) | (odd << 32));
#else
    for (int i = 0; i < PL_VW; i++) {
        uint64_t product = (uint64_t)a[i] * m;
        a[i] = (uint32_t)product, (*high)[i] = (uint32_t)(product >> 32);
    }
    return a;
#endif
}

/* Lane sums and maxima by halves: ((l0+l8)+(l4+l12)) + … : always this order. */
PL_V_INLINE float pl_v_sum(pl_vf v)
{
#if PL_VW >= 16
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
#elif PL_VW == 8
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
#endif
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* The largest lane; NaN lanes may or may not show. */
PL_V_INLINE float pl_v_hmax(pl_vf v)
{
#if PL_VW >= 16
    v = pl_v_max(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    v = pl_v_max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
#elif PL_VW == 8
    v = pl_v_max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
#endif
    float a = v[0] > v[2] ? v[0] : v[2], b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}

/* Transposes PL_VW rows of PL_VW floats in registers. Stage s swaps the off-diagonal s×s blocks of each 2s×2s block. */
#if PL_VW == 16
#define PL_V_STAGE_1     0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define PL_V_STAGE_2     0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define PL_V_STAGE_4     0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define PL_V_STAGE_8     0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define PL_V_STAGE_1_ODD 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define PL_V_STAGE_2_ODD 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define PL_V_STAGE_4_ODD 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define PL_V_STAGE_8_ODD 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#elif PL_VW == 8
#define PL_V_STAGE_1     0, 8, 2, 10, 4, 12, 6, 14
#define PL_V_STAGE_2     0, 1, 8, 9, 4, 5, 12, 13
#define PL_V_STAGE_4     0, 1, 2, 3, 8, 9, 10, 11
#define PL_V_STAGE_1_ODD 1, 9, 3, 11, 5, 13, 7, 15
#define PL_V_STAGE_2_ODD 2, 3, 10, 11, 6, 7, 14, 15
#define PL_V_STAGE_4_ODD 4, 5, 6, 7, 12, 13, 14, 15
#else
#define PL_V_STAGE_1     0, 4, 2, 6
#define PL_V_STAGE_2     0, 1, 4, 5
#define PL_V_STAGE_1_ODD 1, 5, 3, 7
#define PL_V_STAGE_2_ODD 2, 3, 6, 7
#endif
#define PL_V_TRANSPOSE_STAGE(rows, s, even, odd)                                                                       \
    PL_V_UNROLL for (int r = 0; r < PL_VW; r++) if (!(r & (s)))                                                        \
    {                                                                                                                  \
        pl_vf upper = (rows)[r], lower = (rows)[r | (s)];                                                              \
        (rows)[r] = __builtin_shufflevector(upper, lower, even);                                                       \
        (rows)[r | (s)] = __builtin_shufflevector(upper, lower, odd);                                                  \
    }

PL_V_INLINE void pl_v_transpose(pl_vf rows[PL_VW])
{
    PL_V_TRANSPOSE_STAGE(rows, 1, PL_V_STAGE_1, PL_V_STAGE_1_ODD)
    PL_V_TRANSPOSE_STAGE(rows, 2, PL_V_STAGE_2, PL_V_STAGE_2_ODD)
#if PL_VW >= 8
    PL_V_TRANSPOSE_STAGE(rows, 4, PL_V_STAGE_4, PL_V_STAGE_4_ODD)
#endif
#if PL_VW >= 16
    PL_V_TRANSPOSE_STAGE(rows, 8, PL_V_STAGE_8, PL_V_STAGE_8_ODD)
#endif
}

#endif
