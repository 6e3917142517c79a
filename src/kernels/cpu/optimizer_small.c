/* AdamW and Adam-atan2 with moments of 16 and of 8 bits. The step is computed in f32 from what is read, as with f32
 * moments; only what is written back is rounded, up or down at random, so that its mean is the exact moment: v moves by
 * (1 − beta2) of itself a step, less than half the distance of two bf16 numbers, and to nearest it would stand still.
 *
 * Invariant: no moment exists in f32 beyond one block, on the stack. */
#include "base/block8.h"
#include "kernels/cpu/adamw_step.h"
#include "kernels/cpu/philox.h"
#include "kernels/cpu/vec_whole.h"
#include "kernels/kernels.h"

/* ---- random bits: 16 for each element ---- */

enum { DRAWN = 2 * PL_V_PHILOX_ELEMS };
_Static_assert(PL_BLOCK8_ELEMS % DRAWN == 0, "a block is drawn for in whole turns");

typedef struct draw {
    _Alignas(64) uint16_t bits[DRAWN]; /* of elements from `element` on, a multiple of DRAWN */
} draw;

PL_V_INLINE void make_draw(draw *d, const pl_adamw_random *random, int64_t element)
{
    pl_vu words[PL_V_PHILOX_ROWS];
    uint64_t block = (uint64_t)element / 8;
    pl_v_philox(&random->philox, random->step, block >> 32, (uint32_t)block, words);
    PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++) memcpy(d->bits + 2 * PL_VW * r, &words[r], sizeof words[r]);
}

/* ---- bf16 ---- */

PL_V_INLINE pl_vf widen(const uint16_t *p, int64_t count)
{
    uint16_t part[PL_VW] = {0};
    if (count < PL_VW) p = memcpy(part, p, (size_t)count * sizeof *p);
    return pl_v_from_bits(pl_v_load_u16(p) << 16);
}

/* pl_bf16_of_f32_stochastic of base/narrow.h: infinity and NaN stay. */
PL_V_INLINE void narrow(uint16_t *p, pl_vf x, pl_vi random, int64_t count)
{
    uint16_t part[PL_VW];
    pl_vi bits = pl_v_bits(x), special = (bits & 0x7f800000) == 0x7f800000, nan = (bits & 0x7fffffff) > 0x7f800000;
    pl_vi rounded = (pl_vi)((pl_vu)((bits + (random & ~special)) | (nan & 0x00400000)) >> 16);
    pl_v_store_u16(count < PL_VW ? part : p, rounded);
    if (count < PL_VW) memcpy(p, part, (size_t)count * sizeof *p);
}

PL_V_INLINE pl_vf load(const float *p, int64_t count)
{
    return count < PL_VW ? pl_v_load_part(p, count) : pl_v_load(p);
}

PL_V_INLINE void store(float *p, pl_vf x, int64_t count)
{
    if (count < PL_VW)
        pl_v_store_part(p, x, count);
    else
        pl_v_store(p, x);
}

PL_V_INLINE void step_bf16(const pl_adamw_rates *k, bool angle, pl_vi random, float *w, uint16_t *m, uint16_t *v,
                           const float *g, int64_t count)
{
    moments s = update(k, angle, (moments){load(w, count), widen(m, count), widen(v, count)}, load(g, count));
    store(w, s.w, count);
    narrow(m, s.m, random, count);
    narrow(v, s.v, random, count);
}

PL_V_INLINE void adam_bf16(bool angle, int64_t begin, int64_t end, const pl_adamw_rates *rates,
                           const pl_adamw_random *random, float *w, uint16_t *m, uint16_t *v, const float *g)
{
    const pl_adamw_rates k = *rates;
    draw d;
    for (int64_t at = begin; at < end; at += DRAWN) {
        make_draw(&d, random, at);
        int64_t stop = end - at < DRAWN ? end - at : DRAWN, i = 0;
        for (; i + PL_VW <= stop; i += PL_VW)
            step_bf16(&k, angle, pl_v_load_u16(d.bits + (int)i), w + at + i, m + at + i, v + at + i, g + at + i, PL_VW);
        if (i < stop)
            step_bf16(&k, angle, pl_v_load_u16(d.bits + (int)i), w + at + i, m + at + i, v + at + i, g + at + i,
                      stop - i);
    }
}

void PL_KERNEL(adamw_bf16)(int64_t begin, int64_t end, const pl_adamw_rates *rates, const pl_adamw_random *random,
                           float *w, uint16_t *m, uint16_t *v, const float *g)
{
    if (rates->angle)
        adam_bf16(true, begin, end, rates, random, w, m, v, g);
    else
        adam_bf16(false, begin, end, rates, random, w, m, v, g);
}

/* ---- 8 bits: base/block8.h; of v the root is kept, whose range is half as many powers of ten ----
 * With p = 2ᵏ the power of two in the magnitude n, V(n)·8^bits = (7n − 6p)·p². Both ways work on X = V·8^bits. */

#define UNIT(bits_of_magnitude) ((float)(1u << 3 * (bits_of_magnitude))) /* 8^bits */

PL_V_INLINE pl_vf value_of(pl_vi n)
{
    pl_vf whole = __builtin_convertvector(n, pl_vf), p = pl_v_from_bits(pl_v_bits(whole) & 0x7f800000);
    return pl_v_fma(p, pl_v_set(-6), whole * 7) * (p * p);
}

/* The magnitude of x ≥ 0, rounded by 16 random bits; to the largest one where that is exceeded, by NaN, too.
 * k = ⌊log₈ x⌋ is a third of the exponent: 171/512 is close enough to 1/3 below 512. */
PL_V_INLINE pl_vi magnitude_of(pl_vf x, int bits_of_magnitude, pl_vi random)
{
    pl_vi k = (((pl_v_bits(x) >> 23) + 2) * 171) >> 9; /* with 43 added to it: 3·43 = 127 + 2 */
    pl_vf p = pl_v_from_bits((k + (127 - 43)) << 23), per_square = pl_v_from_bits((2 * 43 + 127 - 2 * k) << 23);
    pl_vf place = pl_v_fma(x * (65536.0f / 7), per_square, p * (6 * 65536.0f / 7)); /* 65536·(x/p² + 6p)/7 */
    place = pl_v_select_gt(pl_v_set(1), x, x * 65536, place);
    place = pl_v_min(place, pl_v_set((float)(((1 << bits_of_magnitude) - 1) << 16)));
    return (__builtin_convertvector(place, pl_vi) + random) >> 16;
}

typedef struct block {
    _Alignas(64) float m[PL_BLOCK8_ELEMS], root[PL_BLOCK8_ELEMS]; /* after the step */
    float unit_m, unit_root;                                      /* before it: of X */
    pl_vi largest_m, largest_root; /* after it, bits of absolute values: NaN is the largest of all */
} block;

static inline float unit_of(const unsigned char *codes, int bits_of_magnitude)
{
    float scale;
    memcpy(&scale, codes + PL_BLOCK8_ELEMS, sizeof scale);
    return scale / UNIT(bits_of_magnitude);
}

/* Elements [i, i + PL_VW) of a block, of which `count` are there: the step, and the new moments into the block. */
PL_V_INLINE void step_8bit(const pl_adamw_rates *k, bool angle, block *b, int i, float *w, const unsigned char *m,
                           const unsigned char *v, const float *g, int64_t count)
{
    pl_vi code = pl_v_load_u8(m + i);
    pl_vf old_m = value_of(code & 0x7f) * b->unit_m, old_root = value_of(pl_v_load_u8(v + i)) * b->unit_root;
    old_m = pl_v_from_bits(pl_v_bits(old_m) | (code & 0x80) << 24);
    moments s = update(k, angle, (moments){load(w + i, count), old_m, old_root * old_root}, load(g + i, count));
    pl_vf root = pl_v_sqrt(s.v);
    store(w + i, s.w, count);
    pl_v_store(b->m + i, s.m);
    pl_v_store(b->root + i, root);
    b->largest_m = pl_v_max_i32(b->largest_m, pl_v_bits(pl_v_abs(s.m)));
    b->largest_root = pl_v_max_i32(b->largest_root, pl_v_bits(root));
}

/* The scale behind the codes; returns what numbers are multiplied with to become X. */
static inline float set_scale(unsigned char *codes, pl_vi largest, int bits_of_magnitude)
{
    int32_t most = 0;
    for (int l = 0; l < PL_VW; l++) most = largest[l] > most ? largest[l] : most;
    float number = pl_v_from_bits(pl_v_set_i32(most))[0], top = 1 - 7.0f / (float)(4 << bits_of_magnitude);
    float scale = number < PL_BLOCK8_SCALE_MIN ? 0 : number / top;
    memcpy(codes + PL_BLOCK8_ELEMS, &scale, sizeof scale);
    return number < PL_BLOCK8_SCALE_MIN ? 0 : top * UNIT(bits_of_magnitude) / number;
}

static inline void write_block(const block *b, const pl_adamw_random *random, int64_t element, unsigned char *m,
                               unsigned char *v)
{
    draw d;
    float to_m = set_scale(m, b->largest_m, PL_BLOCK8_SIGNED_BITS);
    float to_root = set_scale(v, b->largest_root, PL_BLOCK8_UNSIGNED_BITS);
    for (int i = 0; i < PL_BLOCK8_ELEMS; i += PL_VW) {
        if (i % DRAWN == 0) make_draw(&d, random, element + i);
        pl_vi bits = pl_v_load_u16(d.bits + i % DRAWN);
        pl_vf x = pl_v_load(b->m + i), root = pl_v_load(b->root + i) * to_root;
        pl_vi code = magnitude_of(pl_v_abs(x) * to_m, PL_BLOCK8_SIGNED_BITS, bits);
        pl_v_store_u8(m + i, code | (pl_vi)((pl_vu)pl_v_bits(x) >> 24 & 0x80));
        code = magnitude_of(root, PL_BLOCK8_UNSIGNED_BITS, bits);
        pl_v_store_u8(v + i, pl_v_max_i32(code, (root > 0) & 1)); /* what a step divides by stays above 0 */
    }
}

PL_V_INLINE void adam_8bit(bool angle, int64_t begin, int64_t end, const pl_adamw_rates *rates,
                           const pl_adamw_random *random, float *w, unsigned char *m, unsigned char *v, const float *g)
{
    const pl_adamw_rates k = *rates;
    block b;
    for (int64_t at = begin; at < end; at += PL_BLOCK8_ELEMS) {
        unsigned char *codes_m = m + at / PL_BLOCK8_ELEMS * PL_BLOCK8_BYTES;
        unsigned char *codes_v = v + at / PL_BLOCK8_ELEMS * PL_BLOCK8_BYTES;
        b.unit_m = unit_of(codes_m, PL_BLOCK8_SIGNED_BITS), b.unit_root = unit_of(codes_v, PL_BLOCK8_UNSIGNED_BITS);
        b.largest_m = b.largest_root = pl_v_set_i32(0);
        int64_t stop = end - at < PL_BLOCK8_ELEMS ? end - at : PL_BLOCK8_ELEMS;
        int i = 0;
        for (; i + PL_VW <= stop; i += PL_VW) step_8bit(&k, angle, &b, i, w + at, codes_m, codes_v, g + at, PL_VW);
        for (; i < PL_BLOCK8_ELEMS; i += PL_VW)
            step_8bit(&k, angle, &b, i, w + at, codes_m, codes_v, g + at, i < stop ? stop - i : 0);
        write_block(&b, random, at, codes_m, codes_v);
    }
}

void PL_KERNEL(adamw_8bit)(int64_t begin, int64_t end, const pl_adamw_rates *rates, const pl_adamw_random *random,
                           float *w, unsigned char *m, unsigned char *v, const float *g)
{
    if (rates->angle)
        adam_8bit(true, begin, end, rates, random, w, m, v, g);
    else
        adam_8bit(false, begin, end, rates, random, w, m, v, g);
}
