/* Unsigned whole numbers of 8 and 16 bits in memory as lanes of 32 bits. Of __builtin_convertvector gcc makes one move
 * a lane for bytes and two halves for words, so the instructions that do it at once are named here. */
#ifndef PL_KERNELS_CPU_VEC_WHOLE_H
#define PL_KERNELS_CPU_VEC_WHOLE_H

#include "kernels/cpu/vec.h"

PL_V_INLINE pl_vi pl_v_load_u8(const uint8_t *p)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(PL_LEVEL_avx2)
    return (pl_vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
    return (pl_vi){p[0], p[1], p[2], p[3]};
#endif
}

PL_V_INLINE pl_vi pl_v_load_u16(const uint16_t *p)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif defined(PL_LEVEL_avx2)
    return (pl_vi)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    return (pl_vi){p[0], p[1], p[2], p[3]};
#endif
}

/* Of numbers that fit. */
PL_V_INLINE void pl_v_store_u8(uint8_t *p, pl_vi n)
{
#if defined(PL_LEVEL_avx512)
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8((__m512i)n));
#elif defined(PL_LEVEL_avx2)
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)n), _mm256_extracti128_si256((__m256i)n, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packus_epi16(packed, packed));
#else
    for (int i = 0; i < PL_VW; i++) p[i] = (uint8_t)n[i];
#endif
}

PL_V_INLINE void pl_v_store_u16(uint16_t *p, pl_vi n)
{
#if defined(PL_LEVEL_avx512)
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtepi32_epi16((__m512i)n));
#elif defined(PL_LEVEL_avx2)
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128((__m256i)n), _mm256_extracti128_si256((__m256i)n, 1));
    _mm_storeu_si128((__m128i *)(void *)p, packed);
#else
    for (int i = 0; i < PL_VW; i++) p[i] = (uint16_t)n[i];
#endif
}

#endif
