/* Rotary frequencies against numbers that another program (numpy, in f64) computed, and against properties that follow
 * from their definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/causal_lm.h"
#include "support/program.h"

static void assert_near(double got, double expected)
{
    if (fabs(got - expected) > 1e-8 * fabs(expected)) fail_msg("%.12g, expected %.12g", got, expected);
}

static void test_default_and_linear(void **state)
{
    const pl_rope_scaling plain = {.theta = 1e4}, linear = {.kind = PL_ROPE_LINEAR, .theta = 1e4, .factor = 8};
    (void)state;
    assert_near(pl_rope_frequency(&plain, 32, 0), 1);
    assert_near(pl_rope_frequency(&plain, 32, 16), 1e-2);
    assert_near(pl_rope_frequency(&linear, 32, 16), 1e-2 / 8);
    assert_near(pl_rope_magnitude(&plain), 1);
    assert_near(pl_rope_magnitude(&linear), 1);
}

static void test_llama3(void **state)
{
    const pl_rope_scaling s = {.kind = PL_ROPE_LLAMA3,
                               .theta = 5e5,
                               .factor = 32,
                               .low_factor = 1,
                               .high_factor = 4,
                               .original_context = 8192};
    static const struct {
        int64_t pair;
        double f;
    } golden[] = {{1, 0.663601238},    {14, 3.21144599e-3}, {15, 1.29054793e-3},
                  {16, 4.29556797e-4}, {17, 9.7082878e-5},  {31, 9.41830673e-8}};
    (void)state;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++)
        assert_near(pl_rope_frequency(&s, 32, golden[i].pair), golden[i].f);
}

static void test_yarn(void **state)
{
    pl_rope_scaling s = {
        .kind = PL_ROPE_YARN, .theta = 1e6, .factor = 4, .original_context = 32768, .beta_fast = 32, .beta_slow = 1};
    (void)state;
    assert_near(pl_rope_magnitude(&s), 1.1386294361);
    assert_near(pl_rope_frequency(&s, 64, 22), 8.65964323e-3);
    assert_near(pl_rope_frequency(&s, 64, 30), 1.06436098e-3);
    assert_near(pl_rope_frequency(&s, 64, 40), 4.44569853e-5);
    assert_near(pl_rope_frequency(&s, 64, 63), 3.1023444e-7);
    s.mscale = 1, s.mscale_all = 1;
    assert_near(pl_rope_magnitude(&s), 1);
    s.attention_factor = 0.5;
    assert_near(pl_rope_magnitude(&s), 0.5);
}

/* The ramp begins and ends at whole pairs, unless fractions are kept: then some pair between differs. */
static void test_yarn_fractions(void **state)
{
    pl_rope_scaling s = {
        .kind = PL_ROPE_YARN, .theta = 1e6, .factor = 4, .original_context = 32768, .beta_fast = 32, .beta_slow = 1};
    const double whole = pl_rope_frequency(&s, 64, 30), plain = pow(1e6, -30.0 / 64);
    (void)state;
    s.keeps_fractions = true;
    const double a = 64 * log(32768 / (64 * M_PI)) / log(1e6), b = 64 * log(32768 / (2 * M_PI)) / log(1e6);
    const double g = (30 - a) / (b - a);
    assert_near(pl_rope_frequency(&s, 64, 30), g * plain / 4 + (1 - g) * plain);
    assert_true(whole != pl_rope_frequency(&s, 64, 30));
}

static void test_divisors(void **state)
{
    const pl_rope_scaling s = {.theta = 1e4, .divisors = 2, .divisor = {1, 4}};
    (void)state;
    assert_near(pl_rope_frequency(&s, 2, 0), 1);
    assert_near(pl_rope_frequency(&s, 2, 1), 1e-2 / 4);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_default_and_linear), cmocka_unit_test(test_llama3),
                                       cmocka_unit_test(test_yarn), cmocka_unit_test(test_yarn_fractions),
                                       cmocka_unit_test(test_divisors)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
