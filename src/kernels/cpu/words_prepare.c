/* Rows of f32 as what words are made of: numbers of 8 bits, or signs. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

/* Lanes of 0 to 255. */
PL_V_INLINE void store_u8(uint8_t *q, pl_vi v)
{
#if defined(PL_LEVEL_avx512)
    _mm_storeu_si128((__m128i *)(void *)q, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(PL_LEVEL_avx2)
    const __m256i pairs = _mm256_packs_epi32((__m256i)v, (__m256i)v), each = _mm256_packus_epi16(pairs, pairs);
    const int32_t both[2] = {_mm256_extract_epi32(each, 0), _mm256_extract_epi32(each, 4)};
    memcpy(q, both, sizeof both);
#elif defined(__SSE2__)
    const __m128i pairs = _mm_packs_epi32((__m128i)v, (__m128i)v), each = _mm_packus_epi16(pairs, pairs);
    const int32_t four = _mm_cvtsi128_si32(each);
    memcpy(q, &four, sizeof four);
#else
    for (int i = 0; i < PL_VW; i++) q[i] = (uint8_t)v[i];
#endif
}

/* Bounds are whole numbers, so rounding after them is rounding before them; a NaN comes out as the lower one. */
PL_V_INLINE pl_vi quantize(pl_vf x, float scale, int32_t zero)
{
    const pl_vf magic = pl_v_set(12582912.0f); /* 1.5·2²³: adding it rounds to an integer */
    pl_vf bounded = pl_v_max(x / scale, pl_v_set((float)-zero));
    bounded = pl_v_min(bounded, pl_v_set((float)(255 - zero)));
    return pl_v_bits(bounded + magic) - pl_v_bits(magic) + zero;
}

void PL_KERNEL(quantize_u8)(int64_t count, const float *x, float scale, int32_t zero, uint8_t *q)
{
    int64_t i = 0;
    for (; i + PL_VW <= count; i += PL_VW) store_u8(q + i, quantize(pl_v_load(x + i), scale, zero));
    if (i == count) return;
    uint8_t last[PL_VW];
    store_u8(last, quantize(pl_v_load_part(x + i, count - i), scale, zero));
    memcpy(q + i, last, (size_t)(count - i));
}

/* Bit per lane: x < 0. */
PL_V_INLINE uint32_t negative(pl_vf x)
{
#if defined(PL_LEVEL_avx512)
    return _mm512_cmp_ps_mask((__m512)x, _mm512_setzero_ps(), _CMP_LT_OQ);
#elif defined(PL_LEVEL_avx2)
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps((__m256)x, _mm256_setzero_ps(), _CMP_LT_OQ));
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_ps(_mm_cmplt_ps((__m128)x, _mm_setzero_ps()));
#else
    uint32_t bits = 0;
    for (int i = 0; i < PL_VW; i++) bits |= (uint32_t)(x[i] < 0) << i;
    return bits;
#endif
}

enum { SUMS = 16, VECTORS = SUMS / PL_VW };

float PL_KERNEL(signs)(int64_t count, const float *x, uint32_t *words)
{
    pl_vf sums[VECTORS] = {0};
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        uint32_t bits = 0;
        PL_V_UNROLL for (int v = 0; v < 2 * VECTORS; v++)
        {
            const pl_vf at = pl_v_load(x + i + v * PL_VW);
            sums[v % VECTORS] += pl_v_abs(at);
            bits |= negative(at) << v * PL_VW;
        }
        words[i / 32] = bits;
    }
    float all[SUMS];
    memcpy(all, sums, sizeof all);
    for (uint32_t bit = 0; i < count; i++, bit++) {
        if (bit == 0) words[i / 32] = 0;
        all[i % SUMS] += __builtin_fabsf(x[i]);
        words[i / 32] |= (uint32_t)(x[i] < 0) << bit;
    }
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int s = 0; s < half; s++) all[s] += all[s + half];
    return all[0] / (float)count;
}
