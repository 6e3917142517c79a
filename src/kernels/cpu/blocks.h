/* Numbers of blocks (base/encoding.h) as vectors of f32, bit for bit what pl_encoding_widen makes of them: who includes
 * this is compiled without contraction (kernels.cmake), so that code · scale + least is rounded twice.
 *
 * All encodings have groups of 32 numbers: a short block is one, a long block eight. `e` is a constant wherever these
 * are inlined. Codes are put together as bytes, 16 at a time, and become f32 only then. With 16 lanes,
 * the 16 numbers that a code of 4 bits may stand for are made once a group, and a shuffle looks codes up. */
#ifndef PL_KERNELS_CPU_BLOCKS_H
#define PL_KERNELS_CPU_BLOCKS_H

#include "base/bytes.h"
#include "base/encoding.h"
#include "base/narrow.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_whole.h"

enum { PL_GROUP = 32, PL_GROUP_VECTORS = PL_GROUP / PL_VW, PL_SCALES = 16 };

typedef uint8_t pl_vb __attribute__((vector_size(16)));
typedef uint16_t pl_vb_pairs __attribute__((vector_size(16)));

/* Runs `call`, which names ENCODING, with the constant of `e`, one of blocks. */
#define PL_BLOCKS_EACH(e, call)                                                                                        \
    switch (e) {                                                                                                       \
        PL_BLOCKS_CASE(PL_ENCODING_Q4_0, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q4_1, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q5_0, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q5_1, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q8_0, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q4_K, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q5_K, call)                                                                         \
        PL_BLOCKS_CASE(PL_ENCODING_Q6_K, call)                                                                         \
    default:                                                                                                           \
        break;                                                                                                         \
    }
#define PL_BLOCKS_CASE(constant, call)                                                                                 \
    case constant: {                                                                                                   \
        const pl_encoding ENCODING = constant;                                                                         \
        call;                                                                                                          \
        break;                                                                                                         \
    }

/* Of one block: number = code · by + least. A short block has one of each, a long one eight, Q6_K sixteen of `bys`. */
typedef struct pl_block_scales {
    pl_vf by, least;
    float bys[PL_SCALES], leasts[PL_SCALES / 2];
} pl_block_scales;

PL_V_INLINE int64_t pl_groups_of(pl_encoding e) { return e >= PL_ENCODING_Q4_K ? 8 : 1; }

/* As pl_encoding_block_bytes, a constant. */
PL_V_INLINE int64_t pl_block_bytes_of(pl_encoding e)
{
    static const int64_t bytes[] = {4, 2, 2, 18, 20, 22, 24, 34, 144, 176, 210};
    return bytes[e];
}

PL_V_INLINE int pl_has_least(pl_encoding e)
{
    return e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q5_1 || e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K;
}

/* What code stands for 0. */
PL_V_INLINE int pl_zero_of(pl_encoding e)
{
    return e == PL_ENCODING_Q4_0 ? 8 : e == PL_ENCODING_Q5_0 ? 16 : e == PL_ENCODING_Q6_K ? 32 : 0;
}

/* ---- scales ---- */

/* In every lane. */
PL_V_INLINE pl_vf pl_v_half_at(const uint8_t *at)
{
    uint16_t h;
    memcpy(&h, at, sizeof h);
#if defined(PL_LEVEL_avx512)
    return (pl_vf)_mm512_cvtph_ps(_mm256_set1_epi16((short)h));
#elif defined(PL_LEVEL_avx2)
    return (pl_vf)_mm256_cvtph_ps(_mm_set1_epi16((short)h));
#else
    return pl_v_set(pl_f32_of_f16(h));
#endif
}

/* by · each of `count` signed bytes. */
PL_V_INLINE void pl_multiply_bytes(pl_vf by, const uint8_t *bytes, int count, float *to)
{
#if defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2)
    const __m256 factor = _mm256_set1_ps(by[0]);
    PL_V_UNROLL for (int i = 0; i < count; i += 8)
    {
        const __m256i whole = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(bytes + i)));
        _mm256_storeu_ps(to + i, _mm256_mul_ps(factor, _mm256_cvtepi32_ps(whole)));
    }
#else
    for (int i = 0; i < count; i++) to[i] = by[0] * (float)(int8_t)bytes[i];
#endif
}

/* Scales and minima of eight groups, 6 bits each, as bytes: those of the first four lie in the lower bits of 4 + 4
 * bytes, those of the last four in 4 bytes' nibbles and the first bytes' upper bits. */
PL_V_INLINE void pl_scales_of_k(const uint8_t *b, pl_block_scales *to)
{
    const uint64_t first = pl_get_u32(b, 4), second = pl_get_u32(b, 8), third = pl_get_u32(b, 12);
    const uint64_t upper = (third & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u);
    const uint64_t upper_least = (third >> 4 & 0x0f0f0f0fu) | (second >> 2 & 0x30303030u);
    const uint64_t scale = (first & 0x3f3f3f3fu) | upper << 32, least = (second & 0x3f3f3f3fu) | upper_least << 32;
    pl_multiply_bytes(pl_v_half_at(b), (const uint8_t *)&scale, 8, to->bys);
    pl_multiply_bytes(-pl_v_half_at(b + 2), (const uint8_t *)&least, 8, to->leasts);
}

PL_V_INLINE void pl_scales_of(pl_encoding e, const uint8_t *b, pl_block_scales *to)
{
    if (e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K) {
        pl_scales_of_k(b, to);
    } else if (e == PL_ENCODING_Q6_K) {
        pl_multiply_bytes(pl_v_half_at(b + 208), b + 192, PL_SCALES, to->bys);
    } else {
        to->by = pl_v_half_at(b);
        to->least = pl_has_least(e) ? pl_v_half_at(b + 2) : pl_v_zero();
    }
}

/* ---- codes: a byte for each number, of half a group at a time ---- */

PL_V_INLINE pl_vb pl_bytes_at(const uint8_t *at)
{
    pl_vb v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* Bytes shifted down, of which `mask` is of interest. */
PL_V_INLINE pl_vb pl_bits_of(pl_vb v, int shift, uint8_t mask) { return (pl_vb)((pl_vb_pairs)v >> shift) & mask; }

/* 16 where bit i of 16 bits is set. */
PL_V_INLINE pl_vb pl_sixteen_where(uint32_t bits)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vb)_mm_maskz_set1_epi8((__mmask16)bits, 16);
#elif defined(PL_LEVEL_avx2)
    const __m128i byte = _mm_set_epi64x(0x0101010101010101, 0), bit = _mm_set1_epi64x((long long)0x8040201008040201u);
    const __m128i spread = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)bits), byte);
    return (pl_vb)_mm_cmpeq_epi8(_mm_and_si128(spread, bit), bit) & 16;
#else
    pl_vb v;
    for (int i = 0; i < 16; i++) v[i] = (uint8_t)((bits >> i & 1) << 4);
    return v;
#endif
}

PL_V_INLINE pl_vb pl_codes_of(pl_encoding e, const uint8_t *b, int64_t g, int half)
{
    const int low_or_high = (int)(g % 2 * 4), at = 16 * half;
    const int64_t pair = g / 2 * PL_GROUP + at; /* of groups, which share their bytes */
    switch (e) {
    case PL_ENCODING_Q4_0:
        return pl_bits_of(pl_bytes_at(b + 2), 4 * half, 15);
    case PL_ENCODING_Q4_1:
        return pl_bits_of(pl_bytes_at(b + 4), 4 * half, 15);
    case PL_ENCODING_Q5_0:
        return pl_bits_of(pl_bytes_at(b + 6), 4 * half, 15) | pl_sixteen_where(pl_get_u32(b, 2) >> at);
    case PL_ENCODING_Q5_1:
        return pl_bits_of(pl_bytes_at(b + 8), 4 * half, 15) | pl_sixteen_where(pl_get_u32(b, 4) >> at);
    case PL_ENCODING_Q4_K:
        return pl_bits_of(pl_bytes_at(b + 16 + pair), low_or_high, 15);
    case PL_ENCODING_Q5_K:
        return pl_bits_of(pl_bytes_at(b + 48 + pair), low_or_high, 15) | pl_bits_of(pl_bytes_at(b + 16 + at), (int)g, 1)
                                                                             << 4;
    case PL_ENCODING_Q6_K:
        return pl_bits_of(pl_bytes_at(b + g / 4 * 64 + g % 2 * 32 + at), (int)(g / 2 % 2 * 4), 15) |
               pl_bits_of(pl_bytes_at(b + 128 + g / 4 * 32 + at), (int)(g % 4 * 2), 3) << 4;
    default: /* Q8_0 */
        return pl_bytes_at(b + 2 + at);
    }
}

/* Signed bytes [at, at + PL_VW) as numbers. */
PL_V_INLINE pl_vf pl_v_of_bytes(pl_vb bytes, int at)
{
#if defined(PL_LEVEL_avx512)
    (void)at;
    return (pl_vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32((__m128i)bytes));
#elif defined(PL_LEVEL_avx2)
    const __m128i eight = at ? _mm_unpackhi_epi64((__m128i)bytes, (__m128i)bytes) : (__m128i)bytes;
    return (pl_vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
#else
    return (pl_vf){(int8_t)bytes[at], (int8_t)bytes[at + 1], (int8_t)bytes[at + 2], (int8_t)bytes[at + 3]};
#endif
}

/* ---- numbers ---- */

PL_V_INLINE pl_vf pl_v_value(pl_encoding e, pl_vf code, pl_vf by, pl_vf least)
{
    return pl_has_least(e) ? code * by + least : code * by;
}

#if PL_VW == 16
/* Of codes of 4 bits. */
PL_V_INLINE void pl_v_look_up(pl_encoding e, const uint8_t *b, int64_t g, pl_vf by, pl_vf least, pl_vf *to)
{
    const __m512 value = (__m512)pl_v_value(e, pl_v_lane_index() - (float)pl_zero_of(e), by, least);
    const uint8_t *q = b + (e == PL_ENCODING_Q4_0 ? 2 : e == PL_ENCODING_Q4_1 ? 4 : 16 + g / 2 * PL_GROUP);
    const int is_k = e == PL_ENCODING_Q4_K;
    to[0] = (pl_vf)_mm512_permutexvar_ps((__m512i)(pl_v_load_u8(q) >> (is_k ? (int)(g % 2 * 4) : 0)), value);
    to[1] = (pl_vf)_mm512_permutexvar_ps((__m512i)(pl_v_load_u8(q + (is_k ? 16 : 0)) >> (is_k ? (int)(g % 2 * 4) : 4)),
                                         value);
}
#endif

/* The numbers of group g. */
PL_V_INLINE void pl_v_group(pl_encoding e, const uint8_t *b, const pl_block_scales *scales, int64_t g, pl_vf *to)
{
    const int is_k = e >= PL_ENCODING_Q4_K;
    const pl_vf least = is_k && pl_has_least(e) ? pl_v_set(scales->leasts[g]) : scales->least;
    pl_vf by = is_k && e != PL_ENCODING_Q6_K ? pl_v_set(scales->bys[g]) : scales->by;
#if PL_VW == 16
    if (e == PL_ENCODING_Q4_0 || e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q4_K) {
        pl_v_look_up(e, b, g, by, least, to);
        return;
    }
#endif
    PL_V_UNROLL for (int v = 0; v < PL_GROUP_VECTORS; v++)
    {
        const int half = v * PL_VW / 16;
        const pl_vb codes = pl_codes_of(e, b, g, half) - (uint8_t)pl_zero_of(e);
        if (e == PL_ENCODING_Q6_K) by = pl_v_set(scales->bys[2 * g + half]);
        to[v] = pl_v_value(e, pl_v_of_bytes(codes, v * PL_VW % 16), by, least);
    }
}

#endif
