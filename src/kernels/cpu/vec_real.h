/* Arrays of f32, bf16 or f16 as vectors of f32: what is read is widened (exact), what is written is rounded as
 * base/narrow.h does, bit for bit. `type` is a constant wherever these are inlined (PL_REAL_EACH makes it one), so the
 * f32 code of a kernel is what it would be without them.
 *
 * bf16 is the upper half of an f32. f16 goes through the processor's conversions (F16C) from avx2 on, at baseline lane
 * by lane. AVX512-BF16's conversion is not used: it flushes subnormal numbers. */
#ifndef PL_KERNELS_CPU_VEC_REAL_H
#define PL_KERNELS_CPU_VEC_REAL_H

#include "base/narrow.h"
#include "kernels/cpu/vec.h"

/* Runs `call`, which names REAL as the type, with the constant of `type`. */
#define PL_REAL_EACH(type, call)                                                                                       \
    do {                                                                                                               \
        if ((type) == PL_REAL_BF16) {                                                                                  \
            const pl_real REAL = PL_REAL_BF16;                                                                         \
            call;                                                                                                      \
        } else if ((type) == PL_REAL_F16) {                                                                            \
            const pl_real REAL = PL_REAL_F16;                                                                          \
            call;                                                                                                      \
        } else {                                                                                                       \
            const pl_real REAL = PL_REAL_F32;                                                                          \
            call;                                                                                                      \
        }                                                                                                              \
    } while (0)

typedef uint16_t pl_vh __attribute__((vector_size(PL_VW * 2)));
typedef uint16_t pl_vh_unaligned __attribute__((vector_size(PL_VW * 2), aligned(2), may_alias));

/* What the compilers make of a conversion of u16 to u32 is several times slower than the one instruction. */
PL_V_INLINE pl_vf pl_v_widen_bf16(pl_vh h)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vf)((pl_vu)_mm512_cvtepu16_epi32((__m256i)h) << 16);
#elif defined(PL_LEVEL_avx2)
    return (pl_vf)((pl_vu)_mm256_cvtepu16_epi32((__m128i)h) << 16);
#elif defined(__SSE2__)
    int64_t four;
    memcpy(&four, &h, sizeof four);
    return (pl_vf)_mm_unpacklo_epi16(_mm_setzero_si128(), _mm_cvtsi64_si128(four));
#else
    return (pl_vf)(__builtin_convertvector(h, pl_vu) << 16);
#endif
}

#if !defined(PL_LEVEL_avx512) && !defined(PL_LEVEL_avx2)
PL_V_CALL pl_vf pl_v_widen_f16(pl_vh h)
{
    pl_vf x = {0};
    for (int i = 0; i < PL_VW; i++) x[i] = pl_f32_of_f16(h[i]);
    return x;
}

PL_V_CALL pl_vh pl_v_narrow_f16(pl_vf x)
{
    pl_vh h = {0};
    for (int i = 0; i < PL_VW; i++) h[i] = pl_f16_of_f32(x[i]);
    return h;
}
#endif

PL_V_INLINE pl_vf pl_v_widen(pl_real type, pl_vh h)
{
    if (type == PL_REAL_BF16) return pl_v_widen_bf16(h);
#if defined(PL_LEVEL_avx512)
    return (pl_vf)_mm512_cvtph_ps((__m256i)h);
#elif defined(PL_LEVEL_avx2)
    return (pl_vf)_mm256_cvtph_ps((__m128i)h);
#else
    return pl_v_widen_f16(h);
#endif
}

/* Of lanes below 2^16; for the same reason not left to the compilers. */
PL_V_INLINE pl_vh pl_v_lower_halves(pl_vu u)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vh)_mm512_cvtepi32_epi16((__m512i)u);
#elif defined(PL_LEVEL_avx2)
    __m256i pairs = _mm256_packus_epi32((__m256i)u, (__m256i)u);
    return (pl_vh)_mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08));
#elif defined(__SSE2__)
    __m128i extended = (__m128i)((pl_vi)(u << 16) >> 16);
    int64_t four = _mm_cvtsi128_si64(_mm_packs_epi32(extended, extended));
    pl_vh h;
    memcpy(&h, &four, sizeof h);
    return h;
#else
    return __builtin_convertvector(u, pl_vh);
#endif
}

/* The bits of x rounded to bf16, in the upper halves; what is in the lower ones does not count. */
PL_V_INLINE pl_vu pl_v_round_bf16(pl_vf x)
{
    pl_vu u = (pl_vu)x, rounded = u + 0x7fffu + (u >> 16 & 1u);
#if defined(PL_LEVEL_avx512)
    __mmask16 is_nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
    return (pl_vu)_mm512_mask_or_epi32((__m512i)rounded, is_nan, (__m512i)u, _mm512_set1_epi32(0x400000));
#else
    pl_vu is_nan = (pl_vu)(x != x);
    return (is_nan & (u | 0x400000u)) | (~is_nan & rounded);
#endif
}

PL_V_INLINE pl_vh pl_v_narrow(pl_real type, pl_vf x)
{
    if (type == PL_REAL_BF16) return pl_v_lower_halves(pl_v_round_bf16(x) >> 16);
#if defined(PL_LEVEL_avx512)
    return (pl_vh)_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(PL_LEVEL_avx2)
    return (pl_vh)_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
    return pl_v_narrow_f16(x);
#endif
}

/* x as it would be read where it was stored as this type. */
PL_V_INLINE pl_vf pl_v_as_stored(pl_real type, pl_vf x)
{
    if (type == PL_REAL_F32) return x;
    if (type == PL_REAL_BF16) return (pl_vf)(pl_v_round_bf16(x) & 0xffff0000u);
    return pl_v_widen(type, pl_v_narrow(type, x));
}

/* The first `count` of 16 bits each, zeros behind; nothing past them is touched. */
#if defined(PL_LEVEL_avx512)
PL_V_INLINE pl_vh pl_v_load_part_u16(const uint16_t *p, int64_t count)
{
    return (pl_vh)_mm256_maskz_loadu_epi16(pl_v_mask(count), p);
}

PL_V_INLINE void pl_v_store_part_u16(uint16_t *p, pl_vh h, int64_t count)
{
    _mm256_mask_storeu_epi16(p, pl_v_mask(count), (__m256i)h);
}
#else
PL_V_CALL pl_vh pl_v_load_part_u16(const uint16_t *p, int64_t count)
{
    pl_vh h = {0};
    for (int64_t i = 0; i < count; i++) h[i] = p[i];
    return h;
}

PL_V_CALL void pl_v_store_part_u16(uint16_t *p, pl_vh h, int64_t count)
{
    for (int64_t i = 0; i < count; i++) p[i] = h[i];
}
#endif

/* `count` elements from element i on: PL_VW in the loops, where the choice folds away, less in the tail of a row. Lanes
 * behind are zero. */
PL_V_INLINE pl_vf pl_v_get(pl_real type, const void *x, int64_t i, int64_t count)
{
    if (type == PL_REAL_F32) {
        const float *p = (const float *)x + i;
        return count == PL_VW ? pl_v_load(p) : pl_v_load_part(p, count);
    }
    const uint16_t *p = (const uint16_t *)x + i;
    if (count == PL_VW) return pl_v_widen(type, (pl_vh)(*(const pl_vh_unaligned *)p));
    return pl_v_widen(type, pl_v_load_part_u16(p, count));
}

PL_V_INLINE void pl_v_put(pl_real type, void *x, int64_t i, pl_vf v, int64_t count)
{
    if (type == PL_REAL_F32) {
        float *p = (float *)x + i;
        if (count == PL_VW)
            pl_v_store(p, v);
        else
            pl_v_store_part(p, v, count);
        return;
    }
    uint16_t *p = (uint16_t *)x + i;
    pl_vh h = pl_v_narrow(type, v);
    if (count == PL_VW)
        *(pl_vh_unaligned *)p = h;
    else
        pl_v_store_part_u16(p, h, count);
}

#endif
