/* bf16 and f16 held to their definition: the nearest number, found from the two neighbours in double precision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/narrow.h"
#include "support/program.h"

static float of_bits(uint16_t h, bool bf16) { return bf16 ? pl_f32_of_bf16(h) : pl_f32_of_f16(h); }

/* Each 16-bit number survives the way to f32 and back; NaN stays NaN. */
static void test_there_and_back(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float b = pl_f32_of_bf16((uint16_t)h), f = pl_f32_of_f16((uint16_t)h);
        if (isnan(b))
            assert_true(isnan(pl_f32_of_bf16(pl_bf16_of_f32(b))));
        else
            assert_int_equal(pl_bf16_of_f32(b), h);
        if (isnan(f))
            assert_true(isnan(pl_f32_of_f16(pl_f16_of_f32(f))));
        else
            assert_int_equal(pl_f16_of_f32(f), h);
    }
}

/* Between two neighbours: below the middle down, above it up, in the middle to the even one. */
static void check_between(uint16_t low, bool bf16)
{
    uint16_t high = (uint16_t)(low + 1), even = low & 1 ? high : low;
    uint16_t (*narrow)(float) = bf16 ? pl_bf16_of_f32 : pl_f16_of_f32;
    double a = of_bits(low, bf16), b = of_bits(high, bf16);
    if (!isfinite(a)) return;
    if (!isfinite(b)) b = bf16 ? 0x1p128 : 65536.0; /* where the next number would be */
    float middle = (float)((a + b) / 2);
    if (!isfinite(middle)) return;
    assert_int_equal(narrow(middle), even);
    assert_int_equal(narrow(nextafterf(middle, -INFINITY)), low);
    assert_int_equal(narrow(nextafterf(middle, INFINITY)), high);
    assert_int_equal(narrow(-middle), even | 0x8000);
}

static void test_rounding(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7f80; h++) check_between((uint16_t)h, true);
    for (uint32_t h = 0; h < 0x7c00; h++) check_between((uint16_t)h, false);
}

/* Over all 65536 random numbers the mean is the number itself, exactly. */
static void test_stochastic_mean(void **state)
{
    (void)state;
    static const float cases[] = {1.0f, 1.00390625f, 1.001f, -3.14159265f, 1e-30f, 6.5e30f, 0.0f};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double sum = 0;
        for (uint32_t r = 0; r < 65536; r++) sum += pl_f32_of_bf16(pl_bf16_of_f32_stochastic(cases[i], r));
        assert_true(sum / 65536 == (double)cases[i]);
    }
    assert_int_equal(pl_bf16_of_f32_stochastic(INFINITY, 0xffff), 0x7f80);
    assert_true(isnan(pl_f32_of_bf16(pl_bf16_of_f32_stochastic(NAN, 1))));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_stochastic_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
