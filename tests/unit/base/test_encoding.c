/* Blocks of numbers, held to what ggml's own reference made of the same numbers (golden bytes and values), to what each
 * encoding says of its step, and to a second reading of the bytes, bit by bit, in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/encoding.h"
#include "base/narrow.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;

static uint64_t next(void)
{
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return seed;
}

static double uniform(void) { return (double)(next() >> 11) * 0x1p-53; }

static void test_names_and_sizes(void **state)
{
    (void)state;
    pl_encoding e;
    for (int i = 0; i < PL_ENCODING_END; i++) {
        if (i == PL_ENCODING_COUNT) continue;
        assert_true(pl_encoding_parse(pl_encoding_name((pl_encoding)i), &e));
        assert_int_equal(e, i);
        assert_int_equal(pl_encoding_is_whole(e), i > PL_ENCODING_COUNT);
    }
    assert_true(pl_encoding_parse("Q4_K", &e));
    assert_int_equal(e, PL_ENCODING_Q4_K);
    assert_false(pl_encoding_parse("q2_k", &e));
    assert_false(pl_encoding_parse("", &e));
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_Q4_0, 64), 36);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_Q6_K, 512), 420);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_F32, 7), 28);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_Q8_0, 33), -1);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_Q5_K, 128), -1);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_Q8_0, -32), -1);
    assert_int_equal(pl_encoding_row_bytes(PL_ENCODING_F32, INT64_MAX), -1);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_Q4_0, 3, 64), 3 * 36);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_Q4_K, 3, 64), -1);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_INT8, 5, 6), 16 * (4 + 4 + 8));    /* whole panels of whole fours */
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_SIGNS, 17, 33), 32 * (4 + 2 * 4)); /* of whole words */
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_SIGNED8, 64, 64), 16 * 260);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_ROOT8, 3, 100), 2 * 260); /* rows are no matter */
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_INT8, INT64_MAX, 1), -1);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_ROOT8, INT64_MAX / 2, 3), -1);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_F32, INT64_MAX / 2, 1), -1);
    assert_int_equal(pl_encoding_bytes(PL_ENCODING_F32, -1, 1), -1);
    assert_true(pl_encoding_is_written(PL_ENCODING_Q5_1));
    assert_false(pl_encoding_is_written(PL_ENCODING_Q5_K));
}

/* The bytes that ggml's quantize_row_*_ref writes for (j − 11.5)/7, j = 0 … 31. */
static void test_golden_bytes(void **state)
{
    (void)state;
    static const struct {
        pl_encoding encoding;
        const char *bytes;
    } golden[] = {
        {PL_ENCODING_Q8_0, "9e25b5bcc2c9cfd6dce3e9f0f6fd030a10171d242a31373e444b51585e656b72787f"},
        {PL_ENCODING_Q4_0, "92b56d6c5c5b5b4b4a3a3929292818170707"},
        {PL_ENCODING_Q4_1, "b93492be80809191a2a2b3b3c4c4d5d5e6e6f7f7"},
        {PL_ENCODING_Q5_0, "92b1ff1f0000c9b9b8a79685757463524130202f1e0d"},
        {PL_ENCODING_Q5_1, "923092be0000ffff00112233445566778899aabbccddeeff"},
    };
    float x[32];
    for (int j = 0; j < 32; j++) x[j] = ((float)j - 11.5f) / 7;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        uint8_t block[64];
        char text[2 * sizeof block + 1];
        pl_encoding_narrow(golden[i].encoding, x, 32, block);
        const int64_t bytes = pl_encoding_block_bytes(golden[i].encoding);
        for (int64_t b = 0; b < bytes; b++) snprintf(text + 2 * b, 3, "%02x", block[b]);
        assert_string_equal(text, golden[i].bytes);
    }
}

/* What ggml reads in blocks of bytes (37i + 11) mod 256 with d = 0.0125 and dmin = 0.0375, as f16. */
static void test_golden_values(void **state)
{
    (void)state;
    static const int at[] = {0, 1, 31, 32, 100, 129, 255};
    static const struct {
        pl_encoding encoding;
        int d;    /* the byte where it is */
        int dmin; /* likewise; −1: none */
        double values[7];
    } golden[] = {
        {PL_ENCODING_Q4_K,
         0,
         2,
         {2.3486480712890625, -1.912811279296875, 0.41162109375, -0.65020751953125, 0.12445068359375, -0.4500732421875,
          -0.4879150390625}},
        {PL_ENCODING_Q5_K,
         0,
         2,
         {8.547134399414062, -1.912811279296875, 0.41162109375, 0.64947509765625, 1.8740234375, -0.4500732421875,
          0.26190185546875}},
        {PL_ENCODING_Q6_K,
         208,
         -1,
         {-17.883132934570312, 21.19482421875, -1.19970703125, 2.8867950439453125, 31.529800415039062, 5.19873046875,
          -0.74981689453125}},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const uint16_t d = pl_f16_of_f32(0.0125f), dmin = pl_f16_of_f32(0.0375f);
        uint8_t block[256];
        float x[256];
        for (int b = 0; b < 256; b++) block[b] = (uint8_t)(37 * b + 11);
        memcpy(block + golden[i].d, &d, 2);
        if (golden[i].dmin >= 0) memcpy(block + golden[i].dmin, &dmin, 2);
        pl_encoding_widen(golden[i].encoding, block, 256, x);
        for (int v = 0; v < 7; v++) assert_true((double)x[at[v]] == golden[i].values[v]);
    }
}

/* Numbers that an encoding holds exactly come back exactly: whole numbers of its codes, times a power of two. */
static void test_exact_numbers(void **state)
{
    (void)state;
    static const struct {
        pl_encoding encoding;
        int least, most;
    } codes[] = {{PL_ENCODING_Q8_0, -127, 127},
                 {PL_ENCODING_Q4_0, -8, 7},
                 {PL_ENCODING_Q4_1, 0, 15},
                 {PL_ENCODING_Q5_0, -16, 15},
                 {PL_ENCODING_Q5_1, 0, 31}};
    for (int round = 0; round < 2000; round++)
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
            const int span = codes[i].most - codes[i].least + 1, exponent = (int)(next() % 16) - 8;
            float x[32], back[32];
            uint8_t block[34];
            for (int j = 0; j < 32; j++) x[j] = (float)ldexp(codes[i].least + (int)(next() % (uint64_t)span), exponent);
            x[next() % 16] = (float)ldexp(codes[i].least, exponent);     /* the ends are among them, which … */
            x[16 + next() % 16] = (float)ldexp(codes[i].most, exponent); /* … fixes the step */
            pl_encoding_narrow(codes[i].encoding, x, 32, block);
            pl_encoding_widen(codes[i].encoding, block, 32, back);
            for (int j = 0; j < 32; j++) assert_true(back[j] == x[j]);
        }
}

/* A number comes back no farther away than half a step, of a whole step at the far end of codes around 0 (which have
 * one code less on that side), with the rounding of steps to f16 added. */
static void test_nearness(void **state)
{
    (void)state;
    static const struct {
        pl_encoding encoding;
        double step, clipped; /* of the block's largest magnitude, or of its span */
        bool of_span;
    } bounds[] = {{PL_ENCODING_Q8_0, 1 / 127.0, 0.5, false},
                  {PL_ENCODING_Q4_0, 1 / 8.0, 1, false},
                  {PL_ENCODING_Q4_1, 1 / 15.0, 0.5, true},
                  {PL_ENCODING_Q5_0, 1 / 16.0, 1, false},
                  {PL_ENCODING_Q5_1, 1 / 31.0, 0.5, true}};
    for (int round = 0; round < 2000; round++)
        for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
            const double scale = pow(10, 4 * uniform() - 1);
            double largest = 0, low = INFINITY, high = -INFINITY;
            float x[32], back[32];
            uint8_t block[34];
            for (int j = 0; j < 32; j++) {
                x[j] = (float)(scale * (2 * uniform() - 1));
                largest = fmax(largest, fabs((double)x[j])), low = fmin(low, x[j]), high = fmax(high, x[j]);
            }
            const double range = bounds[i].of_span ? high - low : largest;
            pl_encoding_narrow(bounds[i].encoding, x, 32, block);
            pl_encoding_widen(bounds[i].encoding, block, 32, back);
            for (int j = 0; j < 32; j++)
                assert_true(fabs((double)back[j] - x[j]) <=
                            range * bounds[i].step * bounds[i].clipped + (range + largest) * 0x1p-10);
        }
}

/* ---- a second reading of a block: codes bit by bit, the value in double precision, rounded as f32 rounds ---- */

static unsigned bits(const uint8_t *block, int64_t first, int count)
{
    unsigned value = 0;
    for (int i = 0; i < count; i++) value |= (unsigned)(block[(first + i) / 8] >> (first + i) % 8 & 1) << i;
    return value;
}

static float half(const uint8_t *at) { return pl_f32_of_f16((uint16_t)(at[0] | at[1] << 8)); }
static float rounded(double x) { return (float)x; } /* of two f32 the product is exact in f64, the sum of no more … */

/* … than this needs: a sum in f64 of two f32 may be rounded twice, so it is added in long double. */
static float sum(float a, float b) { return (float)((long double)a + (long double)b); }

static float read_short(pl_encoding e, const uint8_t *b, int j)
{
    const int place = j % 16 * 8 + j / 16 * 4;
    switch (e) {
    case PL_ENCODING_Q4_0:
        return rounded(((double)bits(b + 2, place, 4) - 8) * half(b));
    case PL_ENCODING_Q4_1:
        return sum(rounded((double)bits(b + 4, place, 4) * half(b)), half(b + 2));
    case PL_ENCODING_Q5_0:
        return rounded((bits(b + 6, place, 4) + 16.0 * bits(b + 2, j, 1) - 16) * half(b));
    case PL_ENCODING_Q5_1:
        return sum(rounded((bits(b + 8, place, 4) + 16.0 * bits(b + 4, j, 1)) * half(b)), half(b + 2));
    default:
        return rounded((double)(int8_t)b[2 + j] * half(b));
    }
}

static float read_long(pl_encoding e, const uint8_t *b, int j)
{
    const int g = j / 32, l = j % 32;
    if (e == PL_ENCODING_Q6_K) {
        const int p = j / 128, k = g % 4;
        const unsigned low = bits(b, (64 * p + 32 * (k % 2) + l) * 8 + k / 2 * 4, 4);
        const double code = low + 16.0 * bits(b + 128, (32 * p + l) * 8 + 2 * k, 2) - 32;
        return rounded(rounded((double)half(b + 208) * (int8_t)b[192 + j / 16]) * code);
    }
    const uint8_t *s = b + 4, *q = b + (e == PL_ENCODING_Q4_K ? 16 : 48);
    unsigned scale = bits(s + g % 4, 0, 6), least = bits(s + 4 + g % 4, 0, 6);
    if (g >= 4) {
        scale = bits(s + 4 + g, 0, 4) + 16 * bits(s + g - 4, 6, 2);
        least = bits(s + 4 + g, 4, 4) + 16 * bits(s + g, 6, 2);
    }
    double code = bits(q, (32 * (g / 2) + l) * 8 + g % 2 * 4, 4);
    if (e == PL_ENCODING_Q5_K) code += 16.0 * bits(b + 16, l * 8 + g, 1);
    return sum(rounded(rounded((double)half(b) * scale) * code), -rounded((double)half(b + 2) * least));
}

/* Random bytes: every scale of f16 comes up, also subnormal, infinite and no number. */
static void test_random_blocks(void **state)
{
    (void)state;
    for (int e = PL_ENCODING_Q4_0; e < PL_ENCODING_COUNT; e++)
        for (int round = 0; round < 1000; round++) {
            const int64_t count = pl_encoding_block((pl_encoding)e);
            uint8_t block[210];
            float x[PL_ENCODING_BLOCK_MAX];
            for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)(next() >> 20);
            if (round % 8 == 0) block[1] &= 0x83, block[3] &= 0x83, block[209] &= 0x83; /* subnormal scales */
            pl_encoding_widen((pl_encoding)e, block, count, x);
            for (int j = 0; j < count; j++) {
                const float wanted =
                    count == 32 ? read_short((pl_encoding)e, block, j) : read_long((pl_encoding)e, block, j);
                if (isnan(wanted))
                    assert_true(isnan(x[j]));
                else
                    assert_int_equal(pl_f32_bits(x[j]), pl_f32_bits(wanted));
            }
        }
}

/* No number makes narrowing read or write elsewhere, or convert what no integer can hold. */
static void test_hostile_numbers(void **state)
{
    (void)state;
    static const float hostile[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-40f, 3.4e38f, -3.4e38f, 65520, 1};
    for (int e = 0; e < PL_ENCODING_COUNT; e++) {
        if (!pl_encoding_is_written((pl_encoding)e)) continue;
        for (int round = 0; round < 500; round++) {
            float x[32], back[32];
            uint8_t blocks[129];
            const int64_t bytes = pl_encoding_row_bytes((pl_encoding)e, 32);
            for (int j = 0; j < 32; j++) x[j] = hostile[next() % (sizeof hostile / sizeof *hostile)];
            blocks[bytes] = 0xa5;
            pl_encoding_narrow((pl_encoding)e, x, 32, blocks);
            pl_encoding_widen((pl_encoding)e, blocks, 32, back);
            assert_int_equal(blocks[bytes], 0xa5);
        }
    }
}

/* Blocks or numbers from standard input, what becomes of them to standard output: for a comparison with other programs,
 * `unit_base test_encoding widen q4_0`. */
static int filter(const char *verb, const char *name)
{
    pl_encoding e;
    if (!pl_encoding_parse(name, &e)) return 1;
    const size_t numbers = (size_t)pl_encoding_block(e), bytes = (size_t)pl_encoding_block_bytes(e);
    uint8_t block[1024];
    float x[PL_ENCODING_BLOCK_MAX];
    if (strcmp(verb, "widen") == 0)
        while (fread(block, bytes, 1, stdin) == 1) {
            pl_encoding_widen(e, block, (int64_t)numbers, x);
            fwrite(x, sizeof *x, numbers, stdout);
        }
    else
        while (fread(x, sizeof *x * numbers, 1, stdin) == 1) {
            pl_encoding_narrow(e, x, (int64_t)numbers, block);
            fwrite(block, bytes, 1, stdout);
        }
    return 0;
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc == 3) return filter(argv[1], argv[2]);
    seed = test_seed_said(argc, argv) * 0x9e3779b97f4a7c15u + 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_sizes), cmocka_unit_test(test_golden_bytes),
        cmocka_unit_test(test_golden_values),   cmocka_unit_test(test_exact_numbers),
        cmocka_unit_test(test_nearness),        cmocka_unit_test(test_random_blocks),
        cmocka_unit_test(test_hostile_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
