/* Numbers of blocks (base/encoding.h) as vectors of f32, bit for bit what pl_encoding_widen makes of them: who includes
 * this is compiled without contraction (kernels.cmake), so that code · scale + least is rounded twice.
 *
 * All encodings have groups of 32 numbers: a short block is one, a long block eight. `e` is a constant wherever these
 * are inlined. With 16 lanes, the 16 numbers that a code of 4 bits may stand for are made once a group, and a shuffle
 * looks codes up. */
#ifndef PL_KERNELS_CPU_BLOCKS_H
#define PL_KERNELS_CPU_BLOCKS_H

#include "base/bytes.h"
#include "base/encoding.h"
#include "base/narrow.h"
#include "kernels/cpu/vec.h"
#include "kernels/cpu/vec_whole.h"

enum { PL_GROUP = 32, PL_GROUP_VECTORS = PL_GROUP / PL_VW, PL_SCALES = 16, PL_NIBBLES = 16 };

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

/* Of one block: number = code · by + least; by is one a group, or two of Q6_K. */
typedef struct pl_block_scales {
    float by[PL_SCALES], least[PL_SCALES / 2];
} pl_block_scales;

PL_V_INLINE int64_t pl_groups_of(pl_encoding e) { return e >= PL_ENCODING_Q4_K ? 8 : 1; }

/* As pl_encoding_block_bytes, a constant. */
PL_V_INLINE int64_t pl_block_bytes_of(pl_encoding e)
{
    static const int64_t bytes[] = {4, 2, 2, 18, 20, 22, 24, 34, 144, 176, 210};
    return bytes[e];
}

PL_V_INLINE float pl_half_at(const uint8_t *at)
{
    uint16_t h;
    memcpy(&h, at, sizeof h);
#if defined(PL_LEVEL_avx512) || defined(PL_LEVEL_avx2)
    return _cvtsh_ss(h);
#else
    return pl_f32_of_f16(h);
#endif
}

/* Scales and minima of eight groups, 6 bits each, as bytes: those of the first four lie in the lower bits of 4 + 4
 * bytes, those of the last four in 4 bytes' nibbles and the first bytes' upper bits. */
PL_V_INLINE void pl_scales_of_k(const uint8_t *b, pl_block_scales *to)
{
    const uint32_t first = pl_get_u32(b, 4), second = pl_get_u32(b, 8), third = pl_get_u32(b, 12);
    const uint32_t scale[2] = {first & 0x3f3f3f3fu, (third & 0x0f0f0f0fu) | (first >> 2 & 0x30303030u)};
    const uint32_t least[2] = {second & 0x3f3f3f3fu, (third >> 4 & 0x0f0f0f0fu) | (second >> 2 & 0x30303030u)};
    const float d = pl_half_at(b), dmin = pl_half_at(b + 2);
    for (int g = 0; g < 8; g++) {
        to->by[g] = d * (float)(scale[g / 4] >> 8 * (g % 4) & 63);
        to->least[g] = -(dmin * (float)(least[g / 4] >> 8 * (g % 4) & 63));
    }
}

PL_V_INLINE void pl_scales_of(pl_encoding e, const uint8_t *b, pl_block_scales *to)
{
    if (e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K) {
        pl_scales_of_k(b, to);
    } else if (e == PL_ENCODING_Q6_K) {
        const float d = pl_half_at(b + 208);
        for (int i = 0; i < PL_SCALES; i++) to->by[i] = d * (float)(int8_t)b[192 + i];
    } else {
        to->by[0] = pl_half_at(b);
        if (e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q5_1) to->least[0] = pl_half_at(b + 2);
    }
}

PL_V_INLINE pl_vi pl_v_load_i8(const uint8_t *p)
{
#if defined(PL_LEVEL_avx512)
    return (pl_vi)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#elif defined(PL_LEVEL_avx2)
    return (pl_vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
#else
    return (pl_v_load_u8(p) ^ 128) - 128;
#endif
}

/* What code 0, 1, … stands for (those of Q5: from `from` on). */
PL_V_INLINE pl_vf pl_v_value(pl_encoding e, pl_vf code, float by, float least)
{
    const int has_least =
        e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q5_1 || e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K;
    return has_least ? code * by + least : code * by;
}

/* Where vector v of group g of a block has its four lower bits, and by how many bits to shift them down. */
PL_V_INLINE const uint8_t *pl_nibbles_at(pl_encoding e, const uint8_t *b, int64_t g, int v, int *shift)
{
    const int at = v * PL_VW;
    switch (e) {
    case PL_ENCODING_Q4_K:
    case PL_ENCODING_Q5_K:
        *shift = (int)(g % 2 * 4);
        return b + (e == PL_ENCODING_Q4_K ? 16 : 48) + g / 2 * PL_GROUP + at;
    case PL_ENCODING_Q6_K:
        *shift = (int)(g / 2 % 2 * 4);
        return b + g / 4 * 64 + g % 2 * 32 + at;
    default:
        *shift = at / PL_NIBBLES * 4;
        return b +
               (e == PL_ENCODING_Q4_0   ? 2
                : e == PL_ENCODING_Q4_1 ? 4
                : e == PL_ENCODING_Q5_0 ? 6
                                        : 8) +
               at % PL_NIBBLES;
    }
}

/* The bits above those, already shifted up; of encodings that have some. */
PL_V_INLINE pl_vi pl_v_upper_bits(pl_encoding e, const uint8_t *b, int64_t g, int v)
{
    const int at = v * PL_VW;
    if (e == PL_ENCODING_Q6_K) return (pl_v_load_u8(b + 128 + g / 4 * 32 + at) >> (int)(g % 4 * 2) & 3) << 4;
    if (e == PL_ENCODING_Q5_K) return (pl_v_load_u8(b + 16 + at) >> (int)g & 1) << 4;
    const pl_vi high = pl_v_set_i32((int32_t)pl_get_u32(b, e == PL_ENCODING_Q5_0 ? 2 : 4));
    pl_vi lane;
    PL_V_UNROLL for (int i = 0; i < PL_VW; i++) lane[i] = i;
    return (high >> (lane + at) & 1) << 4;
}

/* Numbers [v·PL_VW, …) of group g. */
PL_V_INLINE pl_vf pl_v_of_block(pl_encoding e, const uint8_t *b, const pl_block_scales *scales, int64_t g, int v)
{
    const float by = scales->by[e == PL_ENCODING_Q6_K ? 2 * g + v * PL_VW / 16 : g], least = scales->least[g];
    if (e == PL_ENCODING_Q8_0)
        return pl_v_value(e, __builtin_convertvector(pl_v_load_i8(b + 2 + v * PL_VW), pl_vf), by, least);
    int shift;
    const uint8_t *nibbles = pl_nibbles_at(e, b, g, v, &shift);
    pl_vi code = pl_v_load_u8(nibbles) >> shift;
    const int zero = e == PL_ENCODING_Q4_0 ? 8 : e == PL_ENCODING_Q5_0 ? 16 : e == PL_ENCODING_Q6_K ? 32 : 0;
#if PL_VW == 16
    if (e == PL_ENCODING_Q4_0 || e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q4_K)
        return (pl_vf)_mm512_permutexvar_ps((__m512i)code,
                                            (__m512)pl_v_value(e, pl_v_lane_index() - (float)zero, by, least));
#endif
    code &= 15;
    if (e != PL_ENCODING_Q4_0 && e != PL_ENCODING_Q4_1 && e != PL_ENCODING_Q4_K) code |= pl_v_upper_bits(e, b, g, v);
    return pl_v_value(e, __builtin_convertvector(code - zero, pl_vf), by, least);
}

#endif
