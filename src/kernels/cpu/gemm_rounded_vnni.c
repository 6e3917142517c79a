/* Products of rows of 8 bits by VNNI: vpdpbusd multiplies the four u8 of each word by four s8 and adds all of it to 32
 * bits. Nothing of this is called on processors without the instruction (pl_isa_extras). */
#include "kernels/cpu/vec.h"

#if defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2)
#if defined(PL_LEVEL_avx512)
#define ROUNDED_TARGET __attribute__((target("avx512vnni")))
#define TABLE          pl_rounded_kernels_avx512_vnni
#define NAME           "avx512 vnni"
#else
#define ROUNDED_TARGET __attribute__((target("avxvnni")))
#define TABLE          pl_rounded_kernels_avx2_vnni
#define NAME           "avx2 vnni"
#endif

ROUNDED_TARGET PL_V_INLINE pl_vi add_dots(pl_vi x, pl_vi w, int is_byte, pl_vi sum)
{
    (void)is_byte;
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
#else
    return (pl_vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
#endif
}

#include "kernels/cpu/gemm_rounded.h"
#endif
