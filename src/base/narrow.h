/* Numbers of 16 bits: bf16 (8 bits of exponent, 7 of fraction) and f16 (IEEE 754 binary16: 5 and 10). Scalar and exact;
 * vector code is held to these. To nearest, ties to even; NaN stays NaN (made quiet), too large becomes infinite,
 * subnormal numbers are kept. pl_real says which of them, or f32, an array holds; arithmetic is in f32 always. */
#ifndef PL_BASE_NARROW_H
#define PL_BASE_NARROW_H

#include <stdint.h>
#include <string.h>

static inline uint32_t pl_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float pl_f32_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float pl_f32_of_bf16(uint16_t h) { return pl_f32_of_bits((uint32_t)h << 16); }

static inline uint16_t pl_bf16_of_f32(float x)
{
    uint32_t u = pl_f32_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

/* Up or down at random, so that the mean over `random` (16 bits, uniform) is x. NaN and infinity stay. */
static inline uint16_t pl_bf16_of_f32_stochastic(float x, uint32_t random)
{
    uint32_t u = pl_f32_bits(x);
    if ((u & 0x7f800000u) == 0x7f800000u) return pl_bf16_of_f32(x);
    return (uint16_t)((u + (random & 0xffffu)) >> 16);
}

static inline float pl_f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
    if (exponent == 31) return pl_f32_of_bits(sign | 0x7f800000u | fraction << 13);
    if (exponent == 0) { /* fraction · 2^−24, exact in f32 */
        float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    return pl_f32_of_bits(sign | (exponent + 112u) << 23 | fraction << 13);
}

static inline uint16_t pl_f16_of_f32(float x)
{
    uint32_t u = pl_f32_bits(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* from 65520 on to infinity */
    if (a < 0x38800000u) { /* below 2^−14: 0.5 + x has units of 2^−24, and the adder rounds */
        float shifted = pl_f32_of_bits(a) + 0.5f;
        return (uint16_t)(sign | (pl_f32_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13));
}

/* ---- arrays of any of the three ---- */

typedef enum pl_real { PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16 } pl_real;

static inline int64_t pl_real_bytes(pl_real type) { return type == PL_REAL_F32 ? 4 : 2; }

/* Where element i lies. The caller knows whether it may write there. */
static inline void *pl_real_at(pl_real type, const void *x, int64_t i) { return (char *)x + i * pl_real_bytes(type); }

static inline float pl_real_get(pl_real type, const void *x, int64_t i)
{
    if (type == PL_REAL_F32) return ((const float *)x)[i];
    return type == PL_REAL_BF16 ? pl_f32_of_bf16(((const uint16_t *)x)[i]) : pl_f32_of_f16(((const uint16_t *)x)[i]);
}

static inline void pl_real_put(pl_real type, void *x, int64_t i, float value)
{
    if (type == PL_REAL_F32)
        ((float *)x)[i] = value;
    else
        ((uint16_t *)x)[i] = type == PL_REAL_BF16 ? pl_bf16_of_f32(value) : pl_f16_of_f32(value);
}

#endif
