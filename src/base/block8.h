/* Numbers of 8 bits in blocks: 256 codes that share one scale (Dettmers, Lewis, Shleifer, Zettlemoyer: "8-bit
 * Optimizers via Block-wise Quantization", ICLR'22). Scalar and exact; vector code is held to these.
 *
 *   a block, 260 bytes:   256 codes | scale, f32          number = sign · V(magnitude) · scale
 *   signed codes:         bit 7 the sign, 7 bits of magnitude;   unsigned codes: 8 bits of magnitude
 *
 * V is a dynamic tree map as in that paper: the place of the magnitude's leading bit is the exponent, the bits behind
 * it are a linear fraction, so most codes lie among the large numbers of a block and few reach far down. With B bits,
 * n = 2ᵏ·t, 1 ≤ t < 2:      V(n) = 8^(k−B) · (1 + 7·(t − 1)),   V(0) = 0
 * The paper's base is 10. With 8 the powers are exponents of f32, and V, read as a function of real n, is continuous
 * and straight between two neighbouring codes: rounding n up or down at random rounds V(n) without bias.
 * V of the largest magnitude is 1 − 7/2^(B+2); the scale makes it the block's largest number. The smallest one above
 * zero is 8^−B. Zero is the byte 0, and a block of zero bytes holds zeros. */
#ifndef PL_BASE_BLOCK8_H
#define PL_BASE_BLOCK8_H

#include <math.h>
#include <stdint.h>

enum {
    PL_BLOCK8_ELEMS = 256, /* the scales cost 1.6 %, and one large number coarsens 255 others */
    PL_BLOCK8_BYTES = 260,
    PL_BLOCK8_SIGNED_BITS = 7,
    PL_BLOCK8_UNSIGNED_BITS = 8,
};

#define PL_BLOCK8_SCALE_MIN 0x1p-120f /* a block whose largest number is smaller counts as zero: 1/scale stays finite */

static inline uint64_t pl_block8_blocks(uint64_t elems)
{
    return elems / PL_BLOCK8_ELEMS + (elems % PL_BLOCK8_ELEMS != 0);
}

/* V of the largest magnitude. */
static inline double pl_block8_top(int bits) { return 1 - 7.0 / (double)(4u << bits); }

static inline double pl_block8_value(unsigned magnitude, int bits)
{
    int k;
    if (magnitude == 0) return 0;
    double t = 2 * frexp(magnitude, &k); /* magnitude = 2^(k−1)·t */
    return ldexp(1 + 7 * (t - 1), 3 * (k - 1 - bits));
}

/* Where x ≥ 0 lies among the magnitudes: the real n with V(n) = x. */
static inline double pl_block8_place(double x, int bits)
{
    int e;
    if (x < ldexp(1, -3 * bits)) return ldexp(x, 3 * bits);
    (void)frexp(x, &e); /* 2^(e−1) ≤ x < 2^e */
    int q = (e - 1 + 300) / 3 - 100;
    return ldexp((ldexp(x, -3 * q) + 6) / 7, q + bits);
}

/* Up with probability of the fraction: the mean over `random` (16 bits, uniform) is the place. */
static inline unsigned pl_block8_round(double place, int bits, uint32_t random)
{
    double n = floor(place + (double)(random & 0xffffu) * 0x1p-16), most = (double)((1u << bits) - 1);
    return n >= most ? (unsigned)most : n > 0 ? (unsigned)n : 0; /* not-a-number: 0; its block's scale says it */
}

#endif
