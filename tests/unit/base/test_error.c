/* Sentences of errors are whole, printable and end, also where they are cut; without an error to fill nothing
 * happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/program.h"

static void test_append(void **state)
{
    (void)state;
    pl_error err = {0};
    assert_int_equal(pl_fail(&err, PL_E_BUDGET, "too small"), PL_E_BUDGET);
    pl_error_append(&err, "; %s by %d", "short", 7);
    assert_string_equal(err.text, "too small; short by 7");
    pl_error_append(&err, " and\n%.4s", err.text); /* its own text as an argument */
    assert_string_equal(err.text, "too small; short by 7 and?too ");
    assert_int_equal(err.status, PL_E_BUDGET);
}

static void test_append_is_cut(void **state)
{
    (void)state;
    struct {
        pl_error err;
        char behind;
    } s = {.behind = 'x'};
    for (size_t used = PL_ERROR_TEXT_BYTES - 4; used < PL_ERROR_TEXT_BYTES; used++) {
        memset(s.err.text, 'a', used);
        s.err.text[used] = 0;
        pl_error_append(&s.err, "bcdé");
        assert_int_equal(strlen(s.err.text), PL_ERROR_TEXT_BYTES - 1);
        assert_memory_equal(s.err.text + used, "bcd?", PL_ERROR_TEXT_BYTES - 1 - used);
        assert_int_equal(s.behind, 'x');
    }
}

static void test_no_error(void **state)
{
    (void)state;
    pl_error_append(NULL, "%s", "nobody asked");
    pl_error_clear(NULL);
    assert_int_equal(pl_fail(NULL, PL_E_DATA, "%s", "nobody asked"), PL_E_DATA);
    assert_int_equal(pl_fail_prefix(NULL, PL_E_USAGE, "%s", "nobody asked"), PL_E_USAGE);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_append), cmocka_unit_test(test_append_is_cut),
                                       cmocka_unit_test(test_no_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
