/* Products of int8 without VNNI. A word's four numbers are widened to 16 bits in two halves, (0, 2) and (1, 3), which
 * for w are two shifts; vpmaddwd multiplies both pairs of a half and adds them in 32 bits. x is widened once, while it
 * is prepared: first one half of all its words, then the other. Exact whatever the numbers are. */
#include "kernels/cpu/vec.h"
#include "kernels/kernels.h"

#define TILE_TARGET
#define CHAINS(rows) 1
#define BLOCK        INT64_MAX
#if PL_VW == 16
#define MR     12
#define PANELS 2
#elif PL_VW == 8
#define MR     6
#define PANELS 1
#else
#define MR     2
#define PANELS 1
#endif

PL_V_INLINE pl_vi broadcast(const char *x)
{
    int32_t word;
    memcpy(&word, x, sizeof word);
    return pl_v_set_i32(word);
}

#if defined(__SSE2__)
#define X_BYTES            8
#define TERMS              2
#define PLANE_BYTES(words) (4 * (words))

#if PL_VW == 16
PL_V_INLINE pl_vi multiply_pairs(pl_vi a, pl_vi b) { return (pl_vi)_mm512_madd_epi16((__m512i)a, (__m512i)b); }
#elif PL_VW == 8
PL_V_INLINE pl_vi multiply_pairs(pl_vi a, pl_vi b) { return (pl_vi)_mm256_madd_epi16((__m256i)a, (__m256i)b); }
#else
PL_V_INLINE pl_vi multiply_pairs(pl_vi a, pl_vi b) { return (pl_vi)_mm_madd_epi16((__m128i)a, (__m128i)b); }
#endif

typedef int16_t halves __attribute__((vector_size(PL_V_BYTES)));

PL_V_INLINE pl_vi part_of_w(int t, pl_vi w) { return (pl_vi)(t == 0 ? ((halves)w << 8) >> 8 : (halves)w >> 8); }
PL_V_INLINE pl_vi word_of_x(int t, const char *x) { return (void)t, broadcast(x); }
PL_V_INLINE pl_vi add_dot(pl_vi word, pl_vi part, pl_vi sum) { return sum + multiply_pairs(word, part); }

PL_V_INLINE void put_halves(pl_vi words, int64_t bytes, char *even, char *odd)
{
    const pl_vi low = words & 0x00ff00ff, high = (pl_vi)((pl_vu)words >> 8) & 0x00ff00ff;
    memcpy(even, &low, (size_t)bytes);
    memcpy(odd, &high, (size_t)bytes);
}

/* The words' halves (0, 2), then all of (1, 3). */
static void prepare(int64_t bytes, const void *x, char *to)
{
    const int64_t plane = (bytes + 3) / 4 * 4;
    const char *from = x;
    int64_t at = 0;
    for (; at + PL_V_BYTES <= bytes; at += PL_V_BYTES) {
        pl_vi words;
        memcpy(&words, from + at, sizeof words); /* a row may begin anywhere */
        put_halves(words, sizeof words, to + at, to + plane + at);
    }
    if (at == bytes) return;
    pl_vi last = {0};
    memcpy(&last, from + at, (size_t)(bytes - at));
    put_halves(last, plane - at, to + at, to + plane + at);
}
#else /* number by number */
#define X_BYTES            4
#define TERMS              4
#define PLANE_BYTES(words) 0
#define prepare            pl_words_copy

PL_V_INLINE pl_vi part_of_w(int t, pl_vi w) { return (pl_vi)((pl_vu)w << (24 - 8 * t)) >> 24; }
PL_V_INLINE pl_vi word_of_x(int t, const char *x) { return pl_v_set_i32(((const unsigned char *)x)[t]); }
PL_V_INLINE pl_vi add_dot(pl_vi word, pl_vi part, pl_vi sum) { return sum + word * part; }
#endif

PL_V_INLINE pl_vi sum_of(pl_vi sum) { return sum; }

#include "kernels/cpu/words_tiles.h"

#define KERNELS_JOIN_AGAIN(suffix) pl_int8_kernels_##suffix
#define KERNELS_JOIN(suffix)       KERNELS_JOIN_AGAIN(suffix)
#define NAME_AGAIN(suffix)         #suffix
#define NAME(suffix)               NAME_AGAIN(suffix)
extern const pl_words_kernels KERNELS_JOIN(PL_SUFFIX);
const pl_words_kernels KERNELS_JOIN(PL_SUFFIX) = {
    .name = NAME(PL_SUFFIX), .mr = MR, .panels = PANELS, .x_bytes = X_BYTES, .prepare = prepare, .tiles = tiles};
