/* Rates for who measures nothing: those of the table, found by another process; a guess where there are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "calibrate/table.h"
#include "support/folder.h"
#include "support/program.h"

static char folder[] = "/tmp/plimsoll-rates-XXXXXX";

static int begin(void **state) { return (void)state, enter_folder(folder); }
static int end(void **state) { return (void)state, leave_folder(folder); }

static pl_calibration *opened(pl_team team)
{
    pl_error err = {0};
    pl_calibration *c;
    const pl_calibration_options o = {.team = team};
    if (pl_calibration_open("times.json", &o, &c, &err)) fail_msg("%s", err.text);
    return c;
}

/* How busy the machine was when memory was read. */
static void set_busy(pl_team team, double busy)
{
    pl_error err = {0};
    pl_calibration *c = opened(team);
    size_t found = 0;
    for (size_t i = 0; i < c->count; i++)
        if (strstr(c->entry[i].key, "rate memory ")) c->entry[i].busy = busy, found++;
    assert_int_equal(found, 1);
    c->changed = true;
    assert_int_equal(pl_calibration_save(c, &err), PL_OK);
    pl_calibration_close(c);
}

static void test_recall(void **state)
{
    const pl_team team = {1, pl_isa_fastest()}, other = {2, pl_isa_fastest()};
    pl_error err = {0};
    (void)state;
    pl_calibration *c = opened(team);
    assert_false(pl_calibration_recall_rates(c));
    if (pl_calibration_find_rates(c, NULL, &err) || pl_calibration_save(c, &err)) fail_msg("%s", err.text);
    const pl_rates measured = pl_calibration_rates(c);
    pl_calibration_close(c);
    set_busy(team, 1);
    c = opened(team);
    assert_true(pl_calibration_recall_rates(c));
    const pl_rates recalled = pl_calibration_rates(c);
    assert_true(recalled.bytes == measured.bytes);
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++)
        assert_true(recalled.operations[what] == measured.operations[what]);
    pl_calibration_close(c);
    set_busy(team, 2);
    c = opened(team);
    assert_false(pl_calibration_recall_rates(c));
    assert_true(pl_calibration_rates(c).bytes == 0 && pl_calibration_rates(c).operations[PL_ARITHMETIC_F32] > 0);
    pl_calibration_close(c);
    c = opened(other);
    assert_false(pl_calibration_recall_rates(c));
    pl_calibration_close(c);
}

static void test_guess(void **state)
{
    (void)state;
    for (int isa = 0; isa < PL_ISA_COUNT; isa++) {
        const pl_rates one = pl_rates_guess((pl_team){1, (pl_isa)isa}, 2e9);
        const pl_rates two = pl_rates_guess((pl_team){2, (pl_isa)isa}, 4e9);
        assert_true(two.operations[PL_ARITHMETIC_F32] == 4 * one.operations[PL_ARITHMETIC_F32]);
        assert_true(one.operations[PL_ARITHMETIC_F32] > 0 && one.bytes > 0 && two.bytes == 2 * one.bytes);
        assert_true(pl_rates_guess((pl_team){1, (pl_isa)isa}, 0).operations[PL_ARITHMETIC_F32] > 0);
        if (isa > PL_ISA_REF)
            assert_true(one.operations[PL_ARITHMETIC_F32] >=
                        pl_rates_guess((pl_team){1, (pl_isa)(isa - 1)}, 2e9).operations[PL_ARITHMETIC_F32]);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recall), cmocka_unit_test(test_guess)};
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, begin, end);
}
