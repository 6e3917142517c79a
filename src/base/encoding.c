/* Every block here is widened and narrowed with the very operations of ggml's reference, in its order. This file is
 * compiled without fused multiply-adds (CMakeLists.txt), whatever the processor. */
#include "base/encoding.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/binary.h"
#include "base/block8.h"
#include "base/bytes.h"
#include "base/narrow.h"
#include "base/quantize.h"

enum { SHORT = 32, LONG = 256 }; /* numbers of a block */

/* ---- to f32 ---- */

static float half_at(const uint8_t *at)
{
    uint16_t h;
    memcpy(&h, at, sizeof h);
    return pl_f32_of_f16(h);
}

static void put_half(uint8_t *at, float x)
{
    const uint16_t h = pl_f16_of_f32(x);
    memcpy(at, &h, sizeof h);
}

/* Element j of 32 whose halves are the low and the high four bits of 16 bytes. */
static int nibble(const uint8_t *q, int j) { return j < 16 ? q[j] & 15 : q[j - 16] >> 4; }
static int fifth_bit(uint32_t high, int j) { return (int)(high >> j & 1) << 4; }

static void widen_q4_0(const uint8_t *b, float *to)
{
    const float d = half_at(b);
    for (int j = 0; j < SHORT; j++) to[j] = (float)(nibble(b + 2, j) - 8) * d;
}

static void widen_q4_1(const uint8_t *b, float *to)
{
    const float d = half_at(b), m = half_at(b + 2);
    for (int j = 0; j < SHORT; j++) to[j] = (float)nibble(b + 4, j) * d + m;
}

static void widen_q5_0(const uint8_t *b, float *to)
{
    const float d = half_at(b);
    const uint32_t high = pl_get_u32(b, 2);
    for (int j = 0; j < SHORT; j++) to[j] = (float)((nibble(b + 6, j) | fifth_bit(high, j)) - 16) * d;
}

static void widen_q5_1(const uint8_t *b, float *to)
{
    const float d = half_at(b), m = half_at(b + 2);
    const uint32_t high = pl_get_u32(b, 4);
    for (int j = 0; j < SHORT; j++) to[j] = (float)(nibble(b + 8, j) | fifth_bit(high, j)) * d + m;
}

static void widen_q8_0(const uint8_t *b, float *to)
{
    const float d = half_at(b);
    for (int j = 0; j < SHORT; j++) to[j] = (float)(int8_t)b[2 + j] * d;
}

/* Sub-block g's scale and minimum, of 6 bits each: those of the last four are put together from two bytes. */
static void scale_of_k(const uint8_t *s, int g, int *scale, int *minimum)
{
    *scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | s[g - 4] >> 6 << 4;
    *minimum = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | s[g] >> 6 << 4;
}

/* `high`: a fifth bit of each number, bit g of byte l for element l of sub-block g; NULL for Q4_K. */
static void widen_scaled(const uint8_t *b, const uint8_t *high, const uint8_t *q, float *to)
{
    const float d = half_at(b), dmin = half_at(b + 2);
    for (int g = 0; g < LONG / SHORT; g++) {
        int scale, minimum;
        scale_of_k(b + 4, g, &scale, &minimum);
        const float by = d * (float)scale, less = dmin * (float)minimum;
        for (int l = 0; l < SHORT; l++) {
            int n = q[g / 2 * SHORT + l] >> (g % 2 ? 4 : 0) & 15;
            if (high) n |= (high[l] >> g & 1) << 4;
            to[g * SHORT + l] = by * (float)n - less;
        }
    }
}

static void widen_q4_k(const uint8_t *b, float *to) { widen_scaled(b, NULL, b + 16, to); }
static void widen_q5_k(const uint8_t *b, float *to) { widen_scaled(b, b + 16, b + 48, to); }

static void widen_q6_k(const uint8_t *b, float *to)
{
    const uint8_t *high = b + 128, *scales = b + 192;
    const float d = half_at(b + 208);
    for (int i = 0; i < LONG; i++) {
        const int p = i / 128, k = i / 32 % 4, l = i % 32, low = b[64 * p + 32 * (k & 1) + l] >> (k < 2 ? 0 : 4) & 15;
        const int n = low | (high[32 * p + l] >> 2 * k & 3) << 4;
        to[i] = d * (float)(int8_t)scales[i / 16] * (float)(n - 32);
    }
}

static void widen_f32(const uint8_t *b, float *to) { memcpy(to, b, sizeof *to); }
static void widen_f16(const uint8_t *b, float *to) { *to = half_at(b); }

static void widen_bf16(const uint8_t *b, float *to)
{
    uint16_t h;
    memcpy(&h, b, sizeof h);
    *to = pl_f32_of_bf16(h);
}

/* ---- from f32 ---- */

/* Cut off to one of 0 … most; what is no number becomes 0. */
static int code_of(float x, int most) { return x >= (float)most ? most : x > 0 ? (int)x : 0; }

static float inverse(float d) { return d != 0 ? 1 / d : 0; }

static void put_nibbles(uint8_t *q, const int *codes)
{
    for (int j = 0; j < 16; j++) q[j] = (uint8_t)((codes[j] & 15) | (codes[j + 16] & 15) << 4);
}

static void put_fifth_bits(uint8_t *at, const int *codes)
{
    uint32_t high = 0;
    for (int j = 0; j < SHORT; j++) high |= (uint32_t)(codes[j] >> 4) << j;
    pl_put_u32(at, 0, high);
}

/* Codes around `zero`, which stands for 0: the number farthest from it becomes code 0. Returns the scale. */
static float codes_around(const float *from, int zero, int *codes)
{
    float farthest = 0;
    for (int j = 0; j < SHORT; j++)
        if (fabsf(from[j]) > fabsf(farthest)) farthest = from[j];
    const float d = farthest / (float)-zero, by = inverse(d);
    for (int j = 0; j < SHORT; j++) codes[j] = code_of(from[j] * by + ((float)zero + 0.5f), 2 * zero - 1);
    return d;
}

/* Codes from the least number, 0, to the largest, `most`. Returns the scale. */
static float codes_between(const float *from, int most, int *codes, float *least)
{
    float largest = -FLT_MAX;
    *least = FLT_MAX;
    for (int j = 0; j < SHORT; j++) {
        if (from[j] < *least) *least = from[j];
        if (from[j] > largest) largest = from[j];
    }
    const float d = (largest - *least) / (float)most, by = inverse(d);
    for (int j = 0; j < SHORT; j++) codes[j] = code_of((from[j] - *least) * by + 0.5f, most);
    return d;
}

static void narrow_q4_0(const float *from, uint8_t *b)
{
    int codes[SHORT];
    put_half(b, codes_around(from, 8, codes));
    put_nibbles(b + 2, codes);
}

static void narrow_q5_0(const float *from, uint8_t *b)
{
    int codes[SHORT];
    put_half(b, codes_around(from, 16, codes));
    put_fifth_bits(b + 2, codes);
    put_nibbles(b + 6, codes);
}

static void narrow_q4_1(const float *from, uint8_t *b)
{
    int codes[SHORT];
    float least;
    put_half(b, codes_between(from, 15, codes, &least));
    put_half(b + 2, least);
    put_nibbles(b + 4, codes);
}

static void narrow_q5_1(const float *from, uint8_t *b)
{
    int codes[SHORT];
    float least;
    put_half(b, codes_between(from, 31, codes, &least));
    put_half(b + 2, least);
    put_fifth_bits(b + 4, codes);
    put_nibbles(b + 8, codes);
}

static void narrow_q8_0(const float *from, uint8_t *b)
{
    float largest = 0;
    for (int j = 0; j < SHORT; j++) largest = fabsf(from[j]) > largest ? fabsf(from[j]) : largest;
    const float d = largest / 127, by = inverse(d);
    put_half(b, d);
    for (int j = 0; j < SHORT; j++) {
        const float x = roundf(from[j] * by);
        b[2 + j] = (uint8_t)(x >= 127 ? 127 : x > -127 ? (int)x : x <= -127 ? -127 : 0);
    }
}

static void narrow_f32(const float *from, uint8_t *b) { memcpy(b, from, sizeof *from); }
static void narrow_f16(const float *from, uint8_t *b) { put_half(b, *from); }

static void narrow_bf16(const float *from, uint8_t *b)
{
    const uint16_t h = pl_bf16_of_f32(*from);
    memcpy(b, &h, sizeof h);
}

/* ---- all of them ---- */

static const struct {
    const char *name;
    int numbers, bytes; /* of a block */
    void (*widen)(const uint8_t *, float *);
    void (*narrow)(const float *, uint8_t *);
} encodings[PL_ENCODING_END] = {
    [PL_ENCODING_F32] = {"f32", 1, 4, widen_f32, narrow_f32},
    [PL_ENCODING_BF16] = {"bf16", 1, 2, widen_bf16, narrow_bf16},
    [PL_ENCODING_F16] = {"f16", 1, 2, widen_f16, narrow_f16},
    [PL_ENCODING_Q4_0] = {"q4_0", SHORT, 18, widen_q4_0, narrow_q4_0},
    [PL_ENCODING_Q4_1] = {"q4_1", SHORT, 20, widen_q4_1, narrow_q4_1},
    [PL_ENCODING_Q5_0] = {"q5_0", SHORT, 22, widen_q5_0, narrow_q5_0},
    [PL_ENCODING_Q5_1] = {"q5_1", SHORT, 24, widen_q5_1, narrow_q5_1},
    [PL_ENCODING_Q8_0] = {"q8_0", SHORT, 34, widen_q8_0, narrow_q8_0},
    [PL_ENCODING_Q4_K] = {"q4_k", LONG, 144, widen_q4_k, NULL},
    [PL_ENCODING_Q5_K] = {"q5_k", LONG, 176, widen_q5_k, NULL},
    [PL_ENCODING_Q6_K] = {"q6_k", LONG, 210, widen_q6_k, NULL},
    [PL_ENCODING_COUNT] = {""},
    [PL_ENCODING_INT8] = {"int8"},
    [PL_ENCODING_SIGNS] = {"signs"},
    [PL_ENCODING_SIGNED8] = {"signed8"},
    [PL_ENCODING_ROOT8] = {"root8"},
};

const char *pl_encoding_name(pl_encoding e) { return encodings[e].name; }
int64_t pl_encoding_block(pl_encoding e) { return encodings[e].numbers; }
int64_t pl_encoding_block_bytes(pl_encoding e) { return encodings[e].bytes; }
bool pl_encoding_is_written(pl_encoding e) { return encodings[e].narrow != NULL; }

bool pl_encoding_parse(const char *name, pl_encoding *e)
{
    for (int i = 0; i < PL_ENCODING_END; i++)
        if (i != PL_ENCODING_COUNT && strcasecmp(name, encodings[i].name) == 0) return *e = (pl_encoding)i, true;
    return false;
}

bool pl_encoding_is_whole(pl_encoding e) { return e > PL_ENCODING_COUNT; }

/* Of fewer than 2^56 numbers: no sum here overflows. */
static int64_t whole_bytes(pl_encoding e, int64_t rows, int64_t columns)
{
    if (e == PL_ENCODING_INT8) return (int64_t)pl_int8_packed_bytes(rows, columns);
    if (e == PL_ENCODING_SIGNS) return (int64_t)pl_binary_packed_bytes(rows, columns);
    return (int64_t)pl_block8_blocks((uint64_t)rows * (uint64_t)columns) * PL_BLOCK8_BYTES;
}

int64_t pl_encoding_bytes(pl_encoding e, int64_t rows, int64_t columns)
{
    int64_t numbers, bytes;
    if (rows < 0 || columns < 0 || __builtin_mul_overflow(rows, columns, &numbers)) return -1;
    if (pl_encoding_is_whole(e)) return (rows | columns | numbers) >> 56 ? -1 : whole_bytes(e, rows, columns);
    const int64_t row = pl_encoding_row_bytes(e, columns);
    return row < 0 || __builtin_mul_overflow(rows, row, &bytes) ? -1 : bytes;
}

int64_t pl_encoding_row_bytes(pl_encoding e, int64_t numbers)
{
    int64_t bytes;
    if (numbers < 0 || numbers % encodings[e].numbers != 0) return -1;
    return __builtin_mul_overflow(numbers / encodings[e].numbers, encodings[e].bytes, &bytes) ? -1 : bytes;
}

void pl_encoding_widen(pl_encoding e, const void *blocks, int64_t numbers, float *to)
{
    const uint8_t *b = blocks;
    for (int64_t i = 0; i < numbers; i += encodings[e].numbers, b += encodings[e].bytes) encodings[e].widen(b, to + i);
}

void pl_encoding_narrow(pl_encoding e, const float *from, int64_t numbers, void *blocks)
{
    uint8_t *b = blocks;
    for (int64_t i = 0; i < numbers; i += encodings[e].numbers, b += encodings[e].bytes)
        encodings[e].narrow(from + i, b);
}
