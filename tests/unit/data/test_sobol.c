/* Sobol points against values known in closed form and against what the theory says of every sequence of this kind:
 * one point in each of 2^k equal parts of an axis, one in each box of two dimensions; discrepancy and correlation of a
 * few points by hand, and of many against the definition. Another program's points: tests/fields. */
#include "unit/data/scratch.h"

#include <math.h>

#include "data/fields/quality.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static pl_error err;
static pl_sobol s;

static uint32_t bits_of(uint32_t n, uint32_t dimension)
{
    double u[PL_SOBOL_DIMENSIONS];
    pl_sobol_point(&s, n, u);
    return (uint32_t)(u[dimension] * 0x1p32);
}

static void begin(uint32_t dimensions, int scrambled)
{
    assert_int_equal(pl_sobol_init(&s, dimensions, &err), PL_OK);
    if (scrambled) pl_sobol_scramble(&s, seed);
}

static void test_first_points(void **state)
{
    (void)state;
    static const double one[] = {0, .5, .75, .25, .375, .875, .625, .125}, two[] = {0, .5, .25, .75, .375};
    begin(2, 0);
    for (uint32_t n = 0; n < 8; n++) {
        double u[2];
        pl_sobol_point(&s, n, u);
        assert_true(u[0] == one[n] && (n >= 5 || u[1] == two[n]));
    }
}

/* x_{n+1} = x_n ^ v_c, c the lowest zero bit of n: each c's difference is one number, and highest bits are nested. */
static void test_gray_code(void **state)
{
    (void)state;
    begin(PL_SOBOL_DIMENSIONS, 1);
    for (uint32_t d = 0; d < PL_SOBOL_DIMENSIONS; d++)
        for (uint32_t i = 0; i < 200; i++) {
            const uint32_t n = i < 100 ? i : UINT32_MAX - i, c = (uint32_t)__builtin_ctz(~n);
            if (c == 31) continue;
            const uint32_t first = (UINT32_C(1) << c) - 1; /* the first n whose lowest zero is c */
            assert_int_equal(bits_of(n, d) ^ bits_of(n + 1, d), bits_of(first, d) ^ bits_of(first + 1, d));
        }
}

static void check_axes(uint32_t from, uint32_t points)
{
    static uint8_t seen[PL_SOBOL_DIMENSIONS][1024];
    memset(seen, 0, sizeof seen);
    for (uint32_t n = from; n < from + points; n++) {
        double u[PL_SOBOL_DIMENSIONS];
        pl_sobol_point(&s, n, u);
        for (uint32_t d = 0; d < s.dimensions; d++)
            if (seen[d][(uint32_t)(u[d] * points)]++)
                fail_msg("dimension %u: point %u is the second in its part of %u; seed %" PRIu64, d, n, points, seed);
    }
}

static void test_every_axis_is_even(void **state)
{
    (void)state;
    for (int scrambled = 0; scrambled < 2; scrambled++) {
        begin(PL_SOBOL_DIMENSIONS, scrambled);
        for (uint32_t points = 1; points <= 64; points *= 2) check_axes(5 * points, points);
        check_axes(0, 1024);
        check_axes(7 * 1024, 1024);
    }
}

/* The first two dimensions are a (0, 2)-sequence: 2^10 points, one in each box of 2^-i by 2^(i-10). */
static void test_boxes(void **state)
{
    (void)state;
    for (int scrambled = 0; scrambled < 2; scrambled++) {
        begin(2, scrambled);
        for (uint32_t i = 1; i < 10; i++) {
            uint8_t seen[1024] = {0};
            for (uint32_t n = 0; n < 1024; n++) {
                const uint32_t box = bits_of(n, 0) >> (32 - i) << (10 - i) | bits_of(n, 1) >> (22 + i);
                assert_int_equal(seen[box]++, 0);
            }
        }
    }
}

static void test_scrambling(void **state)
{
    (void)state;
    uint32_t kept[2], same = 0;
    begin(2, 0);
    pl_sobol_scramble(&s, 42);
    for (uint32_t d = 0; d < 2; d++) kept[d] = bits_of(1, d);
    begin(5, 0);
    pl_sobol_scramble(&s, 42);
    assert_true(bits_of(1, 0) == kept[0] && bits_of(1, 1) == kept[1]);
    begin(2, 0);
    pl_sobol_scramble(&s, 43);
    for (uint32_t d = 0; d < 2; d++) same += bits_of(1, d) == kept[d];
    assert_int_equal(same, 0);
    assert_int_not_equal(kept[0], kept[1]);
}

/* ---- quality ---- */

static pl_quality measure(uint32_t points)
{
    pl_quality q;
    const uint64_t bytes = pl_quality_bytes(s.dimensions, points);
    char *scratch = pl_alloc(bytes + 8, 1);
    assert_non_null(scratch);
    memset(scratch + bytes, 0x5a, 8);
    pl_quality_measure(&s, points, scratch, &q);
    for (int i = 0; i < 8; i++) assert_int_equal(scratch[bytes + (uint64_t)i], 0x5a);
    pl_free(scratch);
    return q;
}

static double least_factor(double a, double b) { return 1 + fabs(a - .5) / 2 + fabs(b - .5) / 2 - fabs(a - b) / 2; }

/* The definition, point by point. */
static double plain_discrepancy(uint32_t n)
{
    double x[PL_SOBOL_DIMENSIONS], y[PL_SOBOL_DIMENSIONS], total = 1;
    for (uint32_t j = 0; j < s.dimensions; j++) total *= 13.0 / 12;
    for (uint32_t i = 0; i < n; i++) {
        double single = 1;
        pl_sobol_point(&s, i, x);
        for (uint32_t j = 0; j < s.dimensions; j++) single *= 1 + fabs(x[j] - .5) / 2 - (x[j] - .5) * (x[j] - .5) / 2;
        total -= 2 * single / n;
        for (uint32_t l = 0; l < n; l++) {
            double pair = 1;
            pl_sobol_point(&s, l, y);
            for (uint32_t j = 0; j < s.dimensions; j++) pair *= least_factor(x[j], y[j]);
            total += pair / n / n;
        }
    }
    return total;
}

static double plain_correlation(uint32_t n, uint32_t a, uint32_t b)
{
    double x[PL_SOBOL_DIMENSIONS], mean[2] = {0, 0}, product[3] = {0, 0, 0};
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < n; i++) {
            pl_sobol_point(&s, i, x);
            if (pass == 0) {
                mean[0] += x[a] / n, mean[1] += x[b] / n;
                continue;
            }
            product[0] += (x[a] - mean[0]) * (x[a] - mean[0]);
            product[1] += (x[b] - mean[1]) * (x[b] - mean[1]);
            product[2] += (x[a] - mean[0]) * (x[b] - mean[1]);
        }
    return fabs(product[2]) / sqrt(product[0] * product[1]);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b)))) fail_msg("%.15g, not %.15g; seed %" PRIu64, a, b, seed);
}

static void test_quality_by_hand(void **state)
{
    (void)state;
    begin(1, 0);
    near(measure(1).discrepancy, 1.0 / 3); /* the point 0: 13/12 - 2 * 9/8 + 3/2 */
    near(measure(1).correlation, 0);
    begin(2, 0);
    near(measure(2).correlation, 1);  /* (0, 0) and (1/2, 1/2) */
    near(measure(4).correlation, .2); /* and (3/4, 1/4) and (1/4, 3/4) */
}

static void test_quality(void **state)
{
    (void)state;
    static const uint32_t points[] = {1, 3, 64, 301};
    for (uint32_t i = 0; i < 4; i++) {
        begin(1 + i * 4, i > 0);
        const pl_quality q = measure(points[i]);
        double largest = 0;
        near(q.discrepancy, plain_discrepancy(points[i]));
        for (uint32_t a = 1; a < s.dimensions && points[i] > 1; a++)
            for (uint32_t b = 0; b < a; b++) largest = fmax(largest, plain_correlation(points[i], a, b));
        near(q.correlation, largest);
    }
}

static void test_limits(void **state)
{
    (void)state;
    begin(12, 0);
    const pl_quality q = measure(1024), strict = {q.discrepancy / 2, 1}, none = {INFINITY, INFINITY};
    assert_true(q.correlation < 2e-3 && q.discrepancy < .01);
    assert_int_equal(pl_quality_check(&q, &none, 1024, &err), PL_OK);
    assert_int_equal(pl_quality_check(&q, &strict, 9999, &err), PL_E_CONFIG);
    assert_says(&err, "the first 4096 of 9999 Sobol points have a centred discrepancy");
    assert_int_equal(pl_quality_check(&q, &(pl_quality){1, q.correlation / 2}, 9999, &err), PL_E_CONFIG);
    assert_says(&err, "sampling.validation.max_pairwise_correlation");
    assert_int_equal(pl_sobol_init(&s, 65, &err), PL_E_CONFIG);
    assert_says(&err, "there are some of 1 to 64");
    assert_int_equal(pl_sobol_init(&s, 0, &err), PL_E_CONFIG);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_points),
        cmocka_unit_test(test_gray_code),
        cmocka_unit_test(test_every_axis_is_even),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_scrambling),
        cmocka_unit_test(test_quality_by_hand),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(test_limits),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
