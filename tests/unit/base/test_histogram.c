/* Least, largest and median of a histogram, against the numbers themselves, sorted. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/histogram.h"
#include "support/program.h"

enum { MOST = 2000 };
static const double half = 0.5 / PL_HISTOGRAM_BINS;

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double exact(float *x, size_t count)
{
    qsort(x, count, sizeof *x, by_size);
    return ((double)x[(count - 1) / 2] + (double)x[count / 2]) / 2;
}

static double next(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) / 4294967296.0; }

/* Of every count, spread out and crowded, in one piece and in two. */
static void as_sorted(void **state)
{
    (void)state;
    static float x[MOST];
    static pl_histogram h, cut;
    uint32_t seed = 7;
    for (size_t count = 1; count <= MOST; count = count * 3 / 2 + 1)
        for (int power = 1; power < 5; power++) {
            for (size_t i = 0; i < count; i++) x[i] = (float)pow(next(&seed), power);
            h = cut = (pl_histogram){0};
            pl_histogram_add(&h, x, count);
            pl_histogram_add(&cut, x + count / 3, count - count / 3);
            pl_histogram_add(&cut, x, count / 3);
            assert_memory_equal(&h, &cut, sizeof h);
            assert_float_equal(pl_histogram_median(&h), exact(x, count), half + 1e-12);
            assert_true(h.least == x[0] && h.largest == x[count - 1] && h.count == count);
        }
}

static double median_of(const float *x, size_t count)
{
    static pl_histogram h;
    h = (pl_histogram){0};
    pl_histogram_add(&h, x, count);
    return pl_histogram_median(&h);
}

static void at_the_ends(void **state)
{
    (void)state;
    const float alike[] = {0.3f, 0.3f, 0.3f}, ends[] = {0, 1, 1, 0}, most[] = {1, 1, 0}, outside[] = {-2, 5, 5},
                none[] = {NAN, NAN};
    assert_true(median_of(alike, 3) == (double)0.3f);
    assert_float_equal(median_of(ends, 4), 0.5, 1e-12);
    assert_float_equal(median_of(most, 3), 1, half + 1e-12);
    assert_float_equal(median_of(outside, 3), 1, half + 1e-12);
    assert_true(median_of(alike, 0) == 0);
    (void)median_of(none, 2); /* whatever it is */
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_sorted), cmocka_unit_test(at_the_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
