/* Binary products by AVX512-VPOPCNTDQ, which counts the bits of each word of a vector: three instructions for sixteen
 * words. Nothing of this is called on processors without it (pl_isa_extras). */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#if defined(PL_LEVEL_avx512)
#define TILE_TARGET        __attribute__((target("avx512vpopcntdq")))
#define CHAINS(rows)       1
#define BLOCK              INT64_MAX
#define PLANE_BYTES(words) 0
#define TERMS              1
#define MR                 12
#define PANELS             2

TILE_TARGET PL_V_INLINE pl_vi part_of_w(int t, pl_vi w) { return (void)t, w; }

TILE_TARGET PL_V_INLINE pl_vi word_of_x(int t, const char *x)
{
    int32_t word;
    (void)t;
    memcpy(&word, x, sizeof word);
    return pl_v_set_i32(word);
}

TILE_TARGET PL_V_INLINE pl_vi add_dot(pl_vi word, pl_vi part, pl_vi sum)
{
    return sum + (pl_vi)_mm512_popcnt_epi32((__m512i)(word ^ part));
}

TILE_TARGET PL_V_INLINE pl_vi sum_of(pl_vi sum) { return sum; }

#include "kernels/cpu/words_tiles.h"

extern const pl_words_kernels pl_binary_kernels_avx512_vpopcntdq;
const pl_words_kernels pl_binary_kernels_avx512_vpopcntdq = {
    .name = "avx512 vpopcntdq", .mr = MR, .panels = PANELS, .x_bytes = 4, .prepare = pl_words_copy, .tiles = tiles};
#endif
