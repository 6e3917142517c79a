/* Products of int8 by VNNI: vpdpbusd multiplies the four u8 of each word by four s8 and adds all of it to 32 bits,
 * without saturation. x is read where it is. Nothing of this is called on processors without the instruction
 * (pl_isa_extras). */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#if defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2)
#if defined(PL_LEVEL_avx512)
#define TILE_TARGET __attribute__((target("avx512vnni")))
#define MR          12
#define PANELS      2
#define WIDE_ROWS   9
#else
#define TILE_TARGET __attribute__((target("avxvnni")))
#define MR          6
#define PANELS      1
#endif
#define PLANE_BYTES(words) 0
#define BLOCK              INT64_MAX
#define TERMS              1
/* Five cycles of latency on two units ask for ten sums. */
#define CHAINS(rows) ((rows) <= 2 ? 4 : (rows) <= 4 ? 2 : 1)

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
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)word, (__m512i)part);
#else
    return (pl_vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)word, (__m256i)part);
#endif
}

TILE_TARGET PL_V_INLINE pl_vi sum_of(pl_vi sum) { return sum; }

#include "kernels/cpu/words_tiles.h"

#if defined(PL_LEVEL_avx512)
#define TABLE pl_int8_kernels_avx512_vnni
#define NAME  "avx512 vnni"
#else
#define TABLE pl_int8_kernels_avx2_vnni
#define NAME  "avx2 vnni"
#endif
extern const pl_words_kernels TABLE;
const pl_words_kernels TABLE = {.name = NAME,
                                .mr = MR,
                                .panels = PANELS,
#if defined(WIDE_ROWS)
                                .wide_rows = WIDE_ROWS,
#endif
                                .x_bytes = 4,
                                .prepare = pl_words_copy,
                                .tiles = tiles};
#endif
