/* The map of 8-bit numbers against its definition: powers of 8 times a straight fraction; rounding without bias. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/block8.h"
#include "support/program.h"

static const int bits_of[] = {PL_BLOCK8_SIGNED_BITS, PL_BLOCK8_UNSIGNED_BITS};

/* The sections of the map written down: 2ᵏ codes share the numbers from 8^(k−bits) to eight times that. */
static void test_values(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++) {
        unsigned n = 1;
        double base = 1;
        assert_true(pl_block8_value(0, bits_of[b]) == 0);
        for (int i = 0; i < bits_of[b]; i++) base /= 8;
        for (int k = 0; k < bits_of[b]; k++, base *= 8)
            for (unsigned j = 0; j < 1u << k; j++, n++)
                assert_true(pl_block8_value(n, bits_of[b]) == base + 7 * base * j / (1u << k));
        assert_int_equal(n, 1 << bits_of[b]);
        assert_true(pl_block8_value(n - 1, bits_of[b]) == pl_block8_top(bits_of[b]));
        for (unsigned i = 1; i < n; i++)
            assert_true(pl_block8_value(i, bits_of[b]) > pl_block8_value(i - 1, bits_of[b]));
    }
}

static void test_place_is_the_inverse(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++)
        for (unsigned n = 0; n + 1 < 1u << bits_of[b]; n++) {
            double low = pl_block8_value(n, bits_of[b]), high = pl_block8_value(n + 1, bits_of[b]);
            for (int part = 0; part <= 8; part++) {
                double place = pl_block8_place(low + (high - low) * part / 8, bits_of[b]);
                assert_true(fabs(place - (n + part / 8.0)) < 1e-9);
            }
        }
}

/* Every 16 random bits once: the mean is the number itself, to the part that 16 bits can tell; no code but the two
 * neighbours is taken, and a code's own number stays. */
static void test_rounding(void **state)
{
    (void)state;
    for (int b = 0; b < 2; b++)
        for (double x = 3e-9; x < pl_block8_top(bits_of[b]); x *= 1.37) {
            double place = pl_block8_place(x, bits_of[b]), sum = 0;
            unsigned below = (unsigned)place;
            double low = pl_block8_value(below, bits_of[b]), high = pl_block8_value(below + 1, bits_of[b]);
            for (uint32_t random = 0; random < 1 << 16; random++) {
                unsigned n = pl_block8_round(place, bits_of[b], random | 0xabcd0000u);
                assert_true(n == below || n == below + 1);
                sum += pl_block8_value(n, bits_of[b]);
            }
            assert_true(low <= x && x <= high && fabs(sum / 65536 - x) <= (high - low) / 65536);
        }
    for (uint32_t random = 0; random < 1 << 16; random += 5)
        for (unsigned n = 0; n < 256; n++) {
            double place = pl_block8_place(pl_block8_value(n, PL_BLOCK8_UNSIGNED_BITS), PL_BLOCK8_UNSIGNED_BITS);
            assert_true(pl_block8_round(place, PL_BLOCK8_UNSIGNED_BITS, random) == n);
        }
}

static void test_edges(void **state)
{
    (void)state;
    assert_int_equal(pl_block8_round(255.99, 8, 0xffff), 255);
    assert_int_equal(pl_block8_round(1e30, 7, 0), 127);
    assert_int_equal(pl_block8_round((double)NAN, 8, 0xffff), 0);
    assert_int_equal(pl_block8_round(-1, 8, 0xffff), 0);
    assert_int_equal(pl_block8_blocks(0), 0);
    assert_int_equal(pl_block8_blocks(1), 1);
    assert_int_equal(pl_block8_blocks(256), 1);
    assert_int_equal(pl_block8_blocks(257), 2);
    assert_true(pl_block8_blocks(UINT64_MAX) == UINT64_C(1) << 56);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_place_is_the_inverse),
                                       cmocka_unit_test(test_rounding), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
