/* AdamW with moments of 16 and of 8 bits. The step is computed in f32 from what is read, as with f32 moments; only what
 * is written back is rounded, up or down at random, so that its mean is the exact moment: v moves by (1 − beta2) of
 * itself a step, less than half the distance of two bf16 numbers, and to nearest it would stand still.
 *
 * Invariant: no moment exists in f32 beyond one block, on the stack. */
#include "base/block8.h"
#include "kernels/cpu/adamw_step.h"
#include "kernels/cpu/philox.h"
#include "kernels/kernels.h"

typedef uint16_t halves __attribute__((vector_size(2 * PL_VW)));
typedef uint8_t bytes __attribute__((vector_size(PL_VW)));

PL_V_INLINE void generate(const pl_adamw_random *random, int64_t element, pl_vu words[PL_V_PHILOX_ROWS])
{
    uint64_t block = (uint64_t)element / 4;
    pl_v_philox(&random->philox, random->step, block >> 32, (uint32_t)block, words);
}

/* ---- bf16 ---- */

PL_V_INLINE pl_vf widen(const uint16_t *p, int64_t count)
{
    halves h = {0};
    memcpy(&h, p, count < PL_VW ? (size_t)count * sizeof *p : sizeof h);
    return (pl_vf)(__builtin_convertvector(h, pl_vu) << 16);
}

/* pl_bf16_of_f32_stochastic of base/narrow.h: infinity and NaN stay. */
PL_V_INLINE void narrow(uint16_t *p, pl_vf x, pl_vu random, int64_t count)
{
    pl_vi bits = pl_v_bits(x), special = (bits & 0x7f800000) == 0x7f800000, nan = (bits & 0x7fffffff) > 0x7f800000;
    pl_vu rounded = (pl_vu)((bits + ((pl_vi)random & ~special)) | (nan & 0x00400000)) >> 16;
    halves h = __builtin_convertvector(rounded, halves);
    memcpy(p, &h, count < PL_VW ? (size_t)count * sizeof *p : sizeof h);
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

PL_V_INLINE void step_bf16(const pl_adamw_rates *k, pl_vu word, float *w, uint16_t *m, uint16_t *v, const float *g,
                           int64_t count)
{
    moments s = update(k, (moments){load(w, count), widen(m, count), widen(v, count)}, load(g, count));
    store(w, s.w, count);
    narrow(m, s.m, word & 0xffff, count);
    narrow(v, s.v, word >> 16, count);
}

void PL_KERNEL(adamw_bf16)(int64_t begin, int64_t end, const pl_adamw_rates *rates, const pl_adamw_random *random,
                           float *w, uint16_t *m, uint16_t *v, const float *g)
{
    const pl_adamw_rates k = *rates;
    for (int64_t at = begin; at < end; at += PL_V_PHILOX_ELEMS) {
        pl_vu words[PL_V_PHILOX_ROWS];
        generate(random, at, words);
        if (at + PL_V_PHILOX_ELEMS <= end) {
            PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++)
            {
                int64_t i = at + r * PL_VW;
                step_bf16(&k, words[r], w + i, m + i, v + i, g + i, PL_VW);
            }
            continue;
        }
        for (int r = 0; r < PL_V_PHILOX_ROWS && at + r * PL_VW < end; r++) {
            int64_t i = at + r * PL_VW;
            step_bf16(&k, words[r], w + i, m + i, v + i, g + i, end - i < PL_VW ? end - i : PL_VW);
        }
    }
}

/* ---- 8 bits: base/block8.h; of v the root is kept, whose range is half as many powers of ten ---- */

/* pl_block8_value of whole numbers 0 ≤ n < 2^bits_of_magnitude. */
PL_V_INLINE pl_vf value_of(pl_vi n, int bits_of_magnitude)
{
    pl_vi f = pl_v_bits(__builtin_convertvector(n, pl_vf)), k = f >> 23; /* with 127 added to it */
    pl_vf t = pl_v_from_bits((f & 0x007fffff) | 0x3f800000);
    pl_vi power = (3 * k - (2 * 127 + 3 * bits_of_magnitude)) << 23; /* 8^(k − bits), with 127 in its exponent */
    return pl_v_fma(t, pl_v_set(7), pl_v_set(-6)) * pl_v_from_bits(power & (n > 0));
}

/* pl_block8_place of x ≥ 0. ⌊log₈ x⌋ is a third of the exponent: 171/512 is close enough to 1/3 below 512. */
PL_V_INLINE pl_vf place_of(pl_vf x, int bits_of_magnitude)
{
    pl_vi q = (((pl_v_bits(x) >> 23) + 2) * 171) >> 9; /* with 43 added to it: 3·43 = 127 + 2 */
    pl_vf y = x * pl_v_from_bits((256 - 3 * q) << 23);
    pl_vf power = pl_v_from_bits((q + (127 - 43 + bits_of_magnitude)) << 23);
    pl_vf place = pl_v_fma(y, pl_v_set(1.0f / 7), pl_v_set(6.0f / 7)) * power;
    float least = pl_v_from_bits(pl_v_set_i32((127 - 3 * bits_of_magnitude) << 23))[0];
    return pl_v_select_gt(pl_v_set(least), x, x * (1 / least), place);
}

/* pl_block8_round; `random` has 16 bits a lane. What is not a number becomes 0: its block's scale says it. */
PL_V_INLINE pl_vi round_place(pl_vf place, int bits_of_magnitude, pl_vu random)
{
    pl_vf up = __builtin_convertvector((pl_vi)random, pl_vf) * 0x1p-16f;
    pl_vf n = pl_v_min(pl_v_set((float)((1 << bits_of_magnitude) - 1)), pl_v_max(pl_v_zero(), place + up));
    return __builtin_convertvector(pl_v_select(n == n, n, pl_v_zero()), pl_vi);
}

PL_V_INLINE pl_vi load_codes(const unsigned char *p)
{
    bytes b;
    memcpy(&b, p, sizeof b);
    return __builtin_convertvector(b, pl_vi);
}

PL_V_INLINE void store_codes(unsigned char *p, pl_vi codes)
{
    bytes b = __builtin_convertvector(codes, bytes);
    memcpy(p, &b, sizeof b);
}

typedef struct block {
    _Alignas(64) float m[PL_BLOCK8_ELEMS], root[PL_BLOCK8_ELEMS];
    pl_vi largest_m, largest_root; /* bits of absolute values: NaN is the largest of all */
} block;

PL_V_INLINE pl_vi larger(pl_vi a, pl_vi b)
{
    pl_vi more = a > b;
    return (a & more) | (b & ~more);
}

static inline float scale_of(const unsigned char *codes)
{
    float scale;
    memcpy(&scale, codes + PL_BLOCK8_ELEMS, sizeof scale);
    return scale;
}

/* Elements [i, i + PL_VW) of a block, of which `count` are there: the step, and the new moments into the block. */
PL_V_INLINE void step_8bit(const pl_adamw_rates *k, block *b, int i, float *w, const unsigned char *m,
                           const unsigned char *v, const float *g, int64_t count)
{
    pl_vi code = load_codes(m + i);
    pl_vf old_m = value_of(code & 0x7f, PL_BLOCK8_SIGNED_BITS) * scale_of(m);
    pl_vf old_root = value_of(load_codes(v + i), PL_BLOCK8_UNSIGNED_BITS) * scale_of(v);
    old_m = pl_v_from_bits(pl_v_bits(old_m) | (code & 0x80) << 24);
    moments s = update(k, (moments){load(w + i, count), old_m, old_root * old_root}, load(g + i, count));
    pl_vf root = pl_v_sqrt(s.v);
    store(w + i, s.w, count);
    pl_v_store(b->m + i, s.m);
    pl_v_store(b->root + i, root);
    b->largest_m = larger(b->largest_m, pl_v_bits(pl_v_abs(s.m)));
    b->largest_root = larger(b->largest_root, pl_v_bits(root));
}

/* The scale behind the codes; returns what numbers are multiplied with to come among V's. */
static inline float set_scale(unsigned char *codes, pl_vi largest, int bits_of_magnitude)
{
    int32_t most = 0;
    for (int l = 0; l < PL_VW; l++) most = largest[l] > most ? largest[l] : most;
    float number = pl_v_from_bits(pl_v_set_i32(most))[0], top = 1 - 7.0f / (float)(4 << bits_of_magnitude);
    float scale = number < PL_BLOCK8_SCALE_MIN ? 0 : number / top;
    memcpy(codes + PL_BLOCK8_ELEMS, &scale, sizeof scale);
    return number < PL_BLOCK8_SCALE_MIN ? 0 : top / number;
}

static void write_block(const block *b, const pl_adamw_random *random, int64_t element, unsigned char *m,
                        unsigned char *v)
{
    float to_m = set_scale(m, b->largest_m, PL_BLOCK8_SIGNED_BITS);
    float to_root = set_scale(v, b->largest_root, PL_BLOCK8_UNSIGNED_BITS);
    for (int at = 0; at < PL_BLOCK8_ELEMS; at += PL_V_PHILOX_ELEMS) {
        pl_vu words[PL_V_PHILOX_ROWS];
        generate(random, element + at, words);
        PL_V_UNROLL for (int r = 0; r < PL_V_PHILOX_ROWS; r++)
        {
            int i = at + r * PL_VW;
            pl_vf x = pl_v_load(b->m + i), root = pl_v_load(b->root + i) * to_root;
            pl_vf place = place_of(pl_v_abs(x) * to_m, PL_BLOCK8_SIGNED_BITS);
            pl_vi magnitude = round_place(place, PL_BLOCK8_SIGNED_BITS, words[r] & 0xffff);
            store_codes(m + i, magnitude | (pl_vi)((pl_vu)pl_v_bits(x) >> 24 & 0x80));
            place = place_of(root, PL_BLOCK8_UNSIGNED_BITS);
            pl_vi code = round_place(place, PL_BLOCK8_UNSIGNED_BITS, words[r] >> 16);
            store_codes(v + i, code - ((code == 0) & (root > 0))); /* what a step divides by stays above 0 */
        }
    }
}

void PL_KERNEL(adamw_8bit)(int64_t begin, int64_t end, const pl_adamw_rates *rates, const pl_adamw_random *random,
                           float *w, unsigned char *m, unsigned char *v, const float *g)
{
    const pl_adamw_rates k = *rates;
    for (int64_t at = begin; at < end; at += PL_BLOCK8_ELEMS) {
        block b = {.largest_m = {0}, .largest_root = {0}};
        unsigned char *codes_m = m + at / PL_BLOCK8_ELEMS * PL_BLOCK8_BYTES;
        unsigned char *codes_v = v + at / PL_BLOCK8_ELEMS * PL_BLOCK8_BYTES;
        for (int i = 0; i < PL_BLOCK8_ELEMS; i += PL_VW) {
            int64_t rest = end - at - i;
            if (rest >= PL_VW)
                step_8bit(&k, &b, i, w + at, codes_m, codes_v, g + at, PL_VW);
            else
                step_8bit(&k, &b, i, w + at, codes_m, codes_v, g + at, rest > 0 ? rest : 0);
        }
        write_block(&b, random, at, codes_m, codes_v);
    }
}
