/* The ring of the last tokens against a plain array that keeps them all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "jobs/history.h"
#include "support/program.h"

enum { TOKENS = 70000, ROOM_MAX = 65536 };

static int32_t all[TOKENS], ring[ROOM_MAX];

/* What a program with a window of `width` tokens sees after each token. */
static void check(uint64_t width, uint64_t places)
{
    pl_history h = {.ring = ring, .room = pl_history_room(width, places)};
    uint64_t back = width > 1 ? width : places > 2 ? places / 2 : 1;
    assert_true(h.room >= back && h.room <= ROOM_MAX);
    for (uint64_t n = 1; n <= TOKENS; n++) {
        pl_history_add(&h, all[n - 1]);
        uint64_t step = n % 997 == 0 || n == TOKENS ? 1 : back; /* the oldest each time, now and then all */
        for (uint64_t i = 0; i < back; i += step)
            assert_int_equal(pl_history_at(&h, n + i - back), n + i >= back ? all[n + i - back] : -1);
    }
}

static void test_windows(void **state)
{
    (void)state;
    for (int32_t i = 0; i < TOKENS; i++) all[i] = i * 7919 % 50257;
    check(2, 0);
    check(8, 64);
    check(8191, 8192);
    check(8193, 8193);
    check(9000, 9000);
    check(65536, 65536);
    check(1, 1);
    check(1, 3);
    check(1, 131072);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
