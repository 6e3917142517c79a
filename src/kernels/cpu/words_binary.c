/* Binary products where no instruction counts the bits of a vector's words. Bits are counted in bytes, by a table of
 * sixteen nibbles (vpshufb; Muła, Kurz & Lemire, "Faster Population Counts Using AVX2 Instructions", 2018) or, at
 * baseline, by halves; the bytes of up to 31 words are added before their four are added to a column's sum. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#define TILE_TARGET
#define CHAINS(rows)       1
#define BLOCK              31 /* 8·31 fits into a byte */
#define PLANE_BYTES(words) 0
#define TERMS              1
#if PL_VW == 16
#define MR     12
#define PANELS 2
#elif PL_VW == 8
#define MR     3
#define PANELS 1
#else
#define MR     2
#define PANELS 1
#endif

typedef uint8_t bytes __attribute__((vector_size(PL_V_BYTES)));

PL_V_INLINE pl_vi part_of_w(int t, pl_vi w) { return (void)t, w; }

PL_V_INLINE pl_vi word_of_x(int t, const char *x)
{
    int32_t word;
    (void)t;
    memcpy(&word, x, sizeof word);
    return pl_v_set_i32(word);
}

#if PL_VW >= 8
#define NIBBLES 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4
PL_V_INLINE bytes count_nibbles(bytes index)
{
#if PL_VW == 16
    const __m512i table = (__m512i)(bytes){NIBBLES, NIBBLES, NIBBLES, NIBBLES};
    return (bytes)_mm512_shuffle_epi8(table, (__m512i)index);
#else
    const __m256i table = (__m256i)(bytes){NIBBLES, NIBBLES};
    return (bytes)_mm256_shuffle_epi8(table, (__m256i)index);
#endif
}

PL_V_INLINE bytes count_bytes(pl_vu v)
{
    return count_nibbles((bytes)(v & 0x0f0f0f0f)) + count_nibbles((bytes)(v >> 4 & 0x0f0f0f0f));
}
#else
PL_V_INLINE bytes count_bytes(pl_vu v)
{
    v -= v >> 1 & 0x55555555;
    v = (v & 0x33333333) + (v >> 2 & 0x33333333);
    return (bytes)((v + (v >> 4)) & 0x0f0f0f0f);
}
#endif

PL_V_INLINE pl_vi add_dot(pl_vi word, pl_vi part, pl_vi sum)
{
    return (pl_vi)((bytes)sum + count_bytes((pl_vu)(word ^ part)));
}

/* The four bytes of each word. */
PL_V_INLINE pl_vi sum_of(pl_vi sum)
{
    pl_vu v = (pl_vu)sum;
    v = (v & 0x00ff00ff) + (v >> 8 & 0x00ff00ff);
    return (pl_vi)((v & 0xffff) + (v >> 16));
}

#include "kernels/cpu/words_tiles.h"

#define KERNELS_JOIN_AGAIN(suffix) pl_binary_kernels_##suffix
#define KERNELS_JOIN(suffix)       KERNELS_JOIN_AGAIN(suffix)
#define NAME_AGAIN(suffix)         #suffix
#define NAME(suffix)               NAME_AGAIN(suffix)
extern const pl_words_kernels KERNELS_JOIN(PL_SUFFIX);
const pl_words_kernels KERNELS_JOIN(PL_SUFFIX) = {
    .name = NAME(PL_SUFFIX), .mr = MR, .panels = PANELS, .x_bytes = 4, .prepare = pl_words_copy, .tiles = tiles};
