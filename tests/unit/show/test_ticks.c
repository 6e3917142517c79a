/* The numbers at ticks of axes: what is read from them is where they stand, and no two look alike. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "show/html.h"
#include "support/program.h"

static void check_axis(double first, double step)
{
    char text[32], before[32] = "";
    for (int k = 0; k < 8; k++) {
        const double value = (first + k) * step;
        pl_html_tick_text(value, step, text);
        if (fabs(strtod(text, NULL) - value) > 0.01 * step || strcmp(text, before) == 0)
            fail_msg("%.17g in steps of %g is \"%s\", after \"%s\"", value, step, text, before);
        memcpy(before, text, sizeof before);
    }
}

static void test_ticks_are_told_apart(void **state)
{
    static const double steps[] = {1, 2, 5};
    (void)state;
    check_axis(49997, 2e-5); /* 0.99994 … 1.00002 … */
    check_axis(-3, 0.5);
    check_axis(0, 2e-9);
    check_axis(1e6, 5e5);
    for (int power = -12; power <= 12; power++)
        for (int s = 0; s < 3; s++)
            for (double first = -4; first < 1e6; first = 7 * fabs(first) + 1)
                check_axis(first, steps[s] * pow(10, power));
}

static void test_ticks_as_written(void **state)
{
    char text[32];
    (void)state;
    assert_string_equal(pl_html_tick_text(1, 2e-5, text), "1.00000");
    assert_string_equal(pl_html_tick_text(1.00002, 2e-5, text), "1.00002");
    assert_string_equal(pl_html_tick_text(-1e-17, 0.5, text), "0");
    assert_string_equal(pl_html_tick_text(1, 0.5, text), "1.0");
    assert_string_equal(pl_html_tick_text(250, 50, text), "250");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ticks_are_told_apart),
                                       cmocka_unit_test(test_ticks_as_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
