/* How far two forms of the same numbers are apart, in closed form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/difference.h"
#include "support/program.h"

static pl_difference of(uint64_t rows, uint64_t width, const float *narrow, const float *wide)
{
    pl_difference d = {0};
    for (uint64_t r = 0; r < rows; r++)
        pl_difference_add_row(&d, width, PL_REAL_F32, narrow + r * width, wide + r * width);
    return d;
}

static void expect(pl_difference d, double share, double mean, double least)
{
    assert_float_equal(pl_difference_share(&d), share, 1e-15);
    assert_float_equal(pl_difference_mean_cosine(&d), mean, 1e-15);
    assert_float_equal(pl_difference_least_cosine(&d), least, 1e-15);
}

/* (3, 4) and (4, 3) have 24/25, a row and twice that 1, a row and what is across 0. */
static void cosines(void **state)
{
    (void)state;
    expect(of(3, 2, (float[]){3, 4, 2, 4, 1, 0}, (float[]){4, 3, 1, 2, 0, 1}), sqrt((2 + 5 + 2) / 31.0),
           (24 / 25.0 + 1 + 0) / 3, 0);
    expect(of(2, 2, (float[]){1, 1, 3, 4}, (float[]){-1, -1, 3, 4}), sqrt(8 / 27.0), 0, -1);
}

/* Both are the same, wherever they stand; one alone has no direction in common with anything. */
static void rows_of_zeros(void **state)
{
    (void)state;
    const float zeros[4] = {0}, more[] = {3, 4, 0, 0}, beside[] = {0, -0.0F, 3, 4};
    expect(of(2, 2, zeros, zeros), 0, 1, 1);
    expect(of(2, 2, more, more), 0, 1, 1);
    expect(of(2, 2, zeros, more), 1, 0.5, 0);
    expect(of(2, 2, more, zeros), 5, 0.5, 0); /* of nothing there is no share */
    expect(of(2, 2, more, beside), sqrt(50 / 25.0), 0, 0);
}

/* Of one number a cosine would say nothing but the sign. */
static void without_direction(void **state)
{
    (void)state;
    const pl_difference one = of(3, 1, (float[]){1, 2, 0}, (float[]){-1, 2, 0}), none = {0};
    assert_true(one.rows == 0 && none.rows == 0);
    expect(one, sqrt(4 / 5.0), 1, 1);
    expect(none, 0, 1, 1);
}

static void in_16_bits(void **state)
{
    (void)state;
    uint16_t narrow[2];
    const float wide[] = {4, 3};
    for (int real = PL_REAL_BF16; real <= PL_REAL_F16; real++) {
        pl_difference d = {0};
        pl_real_put((pl_real)real, narrow, 0, 3), pl_real_put((pl_real)real, narrow, 1, 4);
        pl_difference_add_row(&d, 2, (pl_real)real, narrow, wide);
        expect(d, sqrt(2 / 25.0), 24 / 25.0, 24 / 25.0);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(cosines), cmocka_unit_test(rows_of_zeros),
                                       cmocka_unit_test(without_direction), cmocka_unit_test(in_16_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
