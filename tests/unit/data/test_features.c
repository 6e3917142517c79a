/* Features of operators against closed forms: of linear ones, of powers, of one that gives always the same; the changes
 * against what they are to be, independent normal numbers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "data/fields/features.h"
#include "support/program.h"
#include "support/seed.h"

enum { ELEMS = 3 * 32 * 32 };

static uint64_t seed;
static float x[ELEMS], base[ELEMS], input[ELEMS], inputs[PL_FEATURE_INPUTS][ELEMS];
static const double scales[] = {0.5, 0.75, 1.25, 1.5};

static void fill_field(void)
{
    pl_philox p = pl_philox_init(seed, 1);
    pl_philox_normal_f32(&p, 0, 0, 0, ELEMS, x);
}

typedef double rule(int64_t i, double x);

/* The features of an operator that works number by number. */
static void measure(rule *of, pl_real type, float feature[PL_OPERATOR_FEATURES])
{
    static float answer[ELEMS];
    pl_features f;
    fill_field();
    memset(feature, 0xFF, PL_OPERATOR_FEATURES * sizeof *feature);
    pl_features_begin(&f, seed, 7, ELEMS, x, base);
    for (int k = 0; k < PL_FEATURE_INPUTS; k++) {
        pl_features_input(&f, k, input);
        for (int64_t i = 0; i < ELEMS; i++) pl_real_put(type, answer, i, (float)of(i, input[i]));
        memcpy(inputs[k], input, sizeof input);
        memset(input, 0xFF, sizeof input);
        pl_features_take(&f, k, type, answer);
    }
    pl_features_finish(&f, feature);
}

static void expect(const char *name, double have, double want, double within)
{
    if (!(fabs(have - want) <= within)) fail_msg("%s: %.9g, expected %.9g", name, have, want);
}

static void expect_curve(const float *feature, double power, double r2, double within)
{
    for (int k = 0; k < PL_FEATURE_SCALES; k++)
        expect("gain", feature[PL_FEATURE_GAIN_50 + k], pow(scales[k], power), within);
    expect("linearity", feature[PL_FEATURE_LINEARITY], r2, within);
    expect("saturation", feature[PL_FEATURE_SATURATION], 1.5 - pow(1.5, power), within);
    expect("compression", feature[PL_FEATURE_COMPRESSION], pow(1 / 3.0, power), within);
}

static double thrice(int64_t i, double v) { return (void)i, -3 * v; }
static double by_place(int64_t i, double v) { return (double)(i % 5 - 2) * v; }
static double squared(int64_t i, double v) { return (void)i, v * fabs(v); }
static double same(int64_t i, double v) { return (void)v, (double)(i % 7) + 1; }
static double nothing(int64_t i, double v) { return (void)i, 0 * v; }

static void linear_operators(void **state)
{
    float feature[PL_OPERATOR_FEATURES];
    (void)state;
    measure(thrice, PL_REAL_F32, feature);
    expect_curve(feature, 1, 1, 1e-6);
    for (int k = 0; k < PL_FEATURE_CHANGES; k++) expect("lipschitz", feature[k], 3, k ? 1e-4 : 2e-3);
    measure(by_place, PL_REAL_F32, feature);
    expect_curve(feature, 1, 1, 1e-6);
    for (int k = 0; k < PL_FEATURE_CHANGES; k++) {
        double out = 0, in = 0;
        for (int64_t i = 0; i < ELEMS; i++) {
            const double d = (double)inputs[1 + k][i] - x[i];
            in += d * d, out += by_place(i, d) * by_place(i, d);
        }
        expect("lipschitz", feature[k], sqrt(out / in), k ? 1e-4 : 2e-3);
    }
}

/* The line through (s, s²) has the slope 2 and leaves 0.03515625 of 2.53515625. */
static void other_operators(void **state)
{
    float feature[PL_OPERATOR_FEATURES];
    (void)state;
    measure(squared, PL_REAL_F32, feature);
    expect_curve(feature, 2, 1 - 0.03515625 / 2.53515625, 1e-6);
    measure(same, PL_REAL_F32, feature);
    expect_curve(feature, 0, 1, 1e-6);
    for (int k = 0; k < PL_FEATURE_CHANGES; k++) assert_true(feature[k] == 0);
    measure(nothing, PL_REAL_F32, feature);
    for (int k = 0; k < PL_OPERATOR_FEATURES; k++)
        expect("nothing", feature[k], k == PL_FEATURE_LINEARITY ? 1 : k == PL_FEATURE_SATURATION ? 1.5 : 0, 0);
}

static void answers_of_16_bits(void **state)
{
    float feature[PL_OPERATOR_FEATURES];
    (void)state;
    measure(thrice, PL_REAL_F16, feature);
    expect_curve(feature, 1, 1, 1e-3);
    expect("lipschitz", feature[PL_FEATURE_LIPSCHITZ_2], 3, 0.1);
    measure(thrice, PL_REAL_BF16, feature);
    expect_curve(feature, 1, 1, 1e-2);
}

/* Mean, variance and products of n normal numbers lie within six deviations. */
static void changes_are_normal_and_independent(void **state)
{
    static float other[ELEMS];
    static const double deviation[] = {1e-4, 1e-3, 1e-2};
    float feature[PL_OPERATOR_FEATURES];
    pl_features f;
    (void)state;
    measure(thrice, PL_REAL_F32, feature);
    assert_memory_equal(inputs[0], x, sizeof x);
    pl_features_begin(&f, seed, 8, ELEMS, x, base);
    pl_features_input(&f, 3, other);
    for (int k = 0; k < PL_FEATURE_CHANGES; k++) {
        double sum = 0, squares = 0, next = 0, operators = 0, neighbours = 0;
        for (int64_t i = 0; i < ELEMS; i++) {
            const double d = ((double)inputs[1 + k][i] - x[i]) / deviation[k];
            const int after = (k + 1) % PL_FEATURE_CHANGES;
            sum += d, squares += d * d;
            next += d * ((double)inputs[1 + after][i] - x[i]) / deviation[after];
            operators += d * ((double)other[i] - x[i]) / deviation[2];
            if (i) neighbours += d * ((double)inputs[1 + k][i - 1] - x[i - 1]) / deviation[k];
        }
        const double bound = 6 / sqrt(ELEMS);
        expect("mean", sum / ELEMS, 0, bound);
        expect("variance", squares / ELEMS, 1, bound * sqrt(2) + 1e-3);
        expect("of two sizes", next / ELEMS, 0, bound);
        expect("of two operators", operators / ELEMS, 0, bound);
        expect("of neighbours", neighbours / ELEMS, 0, bound);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_operators),
        cmocka_unit_test(other_operators),
        cmocka_unit_test(answers_of_16_bits),
        cmocka_unit_test(changes_are_normal_and_independent),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
