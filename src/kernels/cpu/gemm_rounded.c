/* Products of rows of 8 bits without VNNI. Codes of 6 bits or fewer: vpmaddubsw multiplies and adds pairs, which 16
 * bits hold, since 2·63·127 < 2¹⁵. Codes of 8 bits are widened to 16 in two halves, (0, 2) and (1, 3). */
#include "kernels/cpu/vec.h"

#define ROUNDED_TARGET

#if defined(__SSE2__)
typedef int16_t word_pairs __attribute__((vector_size(PL_V_BYTES)));
typedef uint16_t positive_pairs __attribute__((vector_size(PL_V_BYTES)));

PL_V_INLINE pl_vi multiply_pairs(word_pairs a, word_pairs b)
{
#if PL_VW == 16
    return (pl_vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif PL_VW == 8
    return (pl_vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
    return (pl_vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}

PL_V_INLINE pl_vi add_dots(pl_vi x, pl_vi w, int is_byte, pl_vi sum)
{
#if PL_VW > 4
    const word_pairs ones = (word_pairs)pl_v_set_i32(0x00010001);
#if PL_VW == 16
    if (!is_byte) return sum + multiply_pairs((word_pairs)_mm512_maddubs_epi16((__m512i)w, (__m512i)x), ones);
#else
    if (!is_byte) return sum + multiply_pairs((word_pairs)_mm256_maddubs_epi16((__m256i)w, (__m256i)x), ones);
#endif
#endif
    (void)is_byte;
    return sum + multiply_pairs((word_pairs)x << 8 >> 8, (word_pairs)w & 255) +
           multiply_pairs((word_pairs)x >> 8, (word_pairs)((positive_pairs)w >> 8));
}
#else
PL_V_INLINE pl_vi add_dots(pl_vi x, pl_vi w, int is_byte, pl_vi sum)
{
    (void)is_byte;
    for (int t = 0; t < 4; t++) sum += ((pl_vi)((pl_vu)x << (24 - 8 * t)) >> 24) * (pl_vi)((pl_vu)w >> 8 * t & 255);
    return sum;
}
#endif

#define JOIN_AGAIN(suffix) pl_rounded_kernels_##suffix
#define JOIN(suffix)       JOIN_AGAIN(suffix)
#define NAME_AGAIN(suffix) #suffix
#define NAME_OF(suffix)    NAME_AGAIN(suffix)
#define TABLE              JOIN(PL_SUFFIX)
#define NAME               NAME_OF(PL_SUFFIX)
#include "kernels/cpu/gemm_rounded.h"
