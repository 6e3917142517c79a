/* The clock of a run when the machine's jumps back, as by libfaketime or a machine put back to an earlier state. The
 * linker puts what is below in the place of clock_gettime (--wrap, in tests/CMakeLists.txt), for this program alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "run/program.h"
#include "support/program.h"

static double moved; /* seconds by which the clock is off */

int __real_clock_gettime(clockid_t, struct timespec *);
int __wrap_clock_gettime(clockid_t, struct timespec *);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = __real_clock_gettime(clock, t);
    t->tv_sec += (time_t)moved;
    return rc;
}

static void test_never_back(void **state)
{
    double before = pl_run_now();
    (void)state;
    for (int i = 0; i < 3; i++) {
        moved -= 3600;
        double now = pl_run_now();
        if (!(now >= before)) fail_msg("%f s before", before - now);
        assert_true(now - before < 1800); /* and an hour back is none forward */
        before = now;
    }
    moved += 7200; /* forward it goes with the clock, as it would after a suspend that counts */
    assert_true(pl_run_now() - before >= 7200);
    double again = pl_run_now();
    assert_true(pl_run_now() >= again);
    moved = 0;
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
