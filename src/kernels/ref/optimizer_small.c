/* Scalar reference of kernels/cpu/optimizer_small.c, in double, from base/narrow.h, base/block8.h and base/philox.h. */
#include <string.h>

#include "base/block8.h"
#include "base/narrow.h"
#include "kernels/kernels.h"
#include "kernels/ref/adamw_direction.h"

typedef struct moments {
    double m, v;
} moments;

static moments step(const pl_adamw_rates *k, moments s, float *w, float g)
{
    double gradient = (double)g * k->grad_scale;
    s.m = k->beta1 * s.m + k->rest1 * gradient;
    s.v = k->beta2 * s.v + k->rest2 * gradient * gradient;
    *w = (float)(*w - (k->decay * (double)*w + k->rate * pl_adamw_direction(k, s.m, sqrt(s.v))));
    return s;
}

static uint32_t random_bits(const pl_adamw_random *r, int64_t element)
{
    uint64_t block = (uint64_t)element / 8;
    uint32_t word[4];
    pl_philox_block(&r->philox, r->step, block >> 32, (uint32_t)block, word);
    return word[element / 2 % 4] >> element % 2 * 16 & 0xffff;
}

void PL_KERNEL(adamw_bf16)(int64_t begin, int64_t end, const pl_adamw_rates *k, const pl_adamw_random *random, float *w,
                           uint16_t *m, uint16_t *v, const float *g)
{
    for (int64_t i = begin; i < end; i++) {
        uint32_t bits = random_bits(random, i);
        moments s = step(k, (moments){pl_f32_of_bf16(m[i]), pl_f32_of_bf16(v[i])}, &w[i], g[i]);
        m[i] = pl_bf16_of_f32_stochastic((float)s.m, bits);
        v[i] = pl_bf16_of_f32_stochastic((float)s.v, bits);
    }
}

/* ---- 8 bits ---- */

static float scale_of(const unsigned char *codes)
{
    float scale;
    memcpy(&scale, codes + PL_BLOCK8_ELEMS, sizeof scale);
    return scale;
}

/* NaN is the largest number of all. */
static double set_scale(unsigned char *codes, const double *x, int count, int bits)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        if (!(fabs(x[i]) <= most) && !isnan(most)) most = fabs(x[i]);
    float scale = most < (double)PL_BLOCK8_SCALE_MIN ? 0 : (float)(most / pl_block8_top(bits));
    memcpy(codes + PL_BLOCK8_ELEMS, &scale, sizeof scale);
    return scale == 0 ? 0 : pl_block8_top(bits) / most;
}

static void step_block(int count, const pl_adamw_rates *k, const pl_adamw_random *random, int64_t element, float *w,
                       unsigned char *m, unsigned char *v, const float *g)
{
    double new_m[PL_BLOCK8_ELEMS], root[PL_BLOCK8_ELEMS];
    for (int i = 0; i < count; i++) {
        double old_m = pl_block8_value(m[i] & 0x7f, PL_BLOCK8_SIGNED_BITS) * (double)scale_of(m);
        double old_root = pl_block8_value(v[i], PL_BLOCK8_UNSIGNED_BITS) * (double)scale_of(v);
        moments s = step(k, (moments){m[i] & 0x80 ? -old_m : old_m, old_root * old_root}, &w[i], g[i]);
        new_m[i] = s.m, root[i] = sqrt(s.v);
    }
    double to_m = set_scale(m, new_m, count, PL_BLOCK8_SIGNED_BITS);
    double to_root = set_scale(v, root, count, PL_BLOCK8_UNSIGNED_BITS);
    for (int i = 0; i < count; i++) {
        uint32_t bits = random_bits(random, element + i);
        double place = pl_block8_place(fabs(new_m[i]) * to_m, PL_BLOCK8_SIGNED_BITS);
        unsigned code = pl_block8_round(place, PL_BLOCK8_SIGNED_BITS, bits);
        m[i] = (unsigned char)(code | (signbit(new_m[i]) ? 0x80u : 0));
        place = pl_block8_place(root[i] * to_root, PL_BLOCK8_UNSIGNED_BITS);
        code = pl_block8_round(place, PL_BLOCK8_UNSIGNED_BITS, bits);
        v[i] = (unsigned char)(code == 0 && root[i] * to_root > 0 ? 1 : code);
    }
}

void PL_KERNEL(adamw_8bit)(int64_t begin, int64_t end, const pl_adamw_rates *k, const pl_adamw_random *random, float *w,
                           unsigned char *m, unsigned char *v, const float *g)
{
    for (int64_t at = begin; at < end; at += PL_BLOCK8_ELEMS) {
        int count = end - at < PL_BLOCK8_ELEMS ? (int)(end - at) : PL_BLOCK8_ELEMS;
        int64_t offset = at / PL_BLOCK8_ELEMS * PL_BLOCK8_BYTES;
        step_block(count, k, random, at, w + at, m + offset, v + offset, g + at);
    }
}
