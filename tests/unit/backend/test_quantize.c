/* What a calibration sees of random numbers, by any team and in any pieces, against counting one by one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/quantize.h"
#include "support/guarded.h"
#include "support/program.h"

static const int teams[] = {1, 2, 5};
enum { TEAMS = 3 };

static void observe(const float *x, int64_t count, pl_extremes *e, int64_t *bin, int threads)
{
    const pl_team team = {threads, pl_isa_of_machine()};
    const pl_observe_call call = {count, x, e, bin};
    pl_observe_exec(&call, guarded_bytes(pl_observe_workspace_bytes(&call, team), 0), team);
}

static float at(const float *x, int64_t i, bool odd)
{
    return !odd ? x[i] : i % 97 == 0 ? NAN : i % 89 ? x[i] : -INFINITY;
}

static void check(int64_t count, bool odd)
{
    static int64_t expected[PL_SPREAD_BINS], bin[PL_SPREAD_BINS];
    const float *drawn = guarded_normal(count, (uint64_t)count);
    float *x = guarded_f32(count);
    pl_extremes e = {0};
    for (int64_t i = 0; i < count; i++) {
        x[i] = at(drawn, i, odd);
        if (!isfinite(x[i])) e.not_finite++;
        if (isfinite(x[i]) && x[i] < e.least) e.least = x[i];
        if (isfinite(x[i]) && x[i] > e.largest) e.largest = x[i];
    }
    const float limit = e.largest > -e.least ? e.largest : -e.least;
    memset(expected, 0, sizeof expected);
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) continue;
        const int place = (int)(x[i] * (PL_SPREAD_HALF / limit) + PL_SPREAD_HALF);
        expected[place < PL_SPREAD_BINS ? place : PL_SPREAD_BINS - 1]++;
    }
    for (int t = 0; t < TEAMS; t++) {
        pl_extremes seen = {0};
        const int64_t cut = count / 3;
        observe(x, cut, &seen, NULL, teams[t]);
        observe(x + cut, count - cut, &seen, NULL, teams[t]);
        assert_memory_equal(&seen, &e, sizeof e);
        memset(bin, 0, sizeof bin);
        observe(x + cut, count - cut, &seen, bin, teams[t]);
        observe(x, cut, &seen, bin, teams[t]);
        assert_memory_equal(bin, expected, sizeof bin);
        assert_memory_equal(&seen, &e, sizeof e);
    }
    guarded_check_all();
    guarded_free_all();
}

static void seen(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++)
        for (int64_t count = 3; count < 200000; count = count * 7 + 1) check(count, odd);
}

/* 0 alone, and what is next to it. */
static void nothing_to_see(void **state)
{
    (void)state;
    static int64_t bin[PL_SPREAD_BINS];
    const float none[] = {0, 0, -0.0f}, small[] = {1e-42f, -1e-42f, 0};
    pl_extremes e = {0};
    observe(none, 3, &e, NULL, 1);
    assert_true(e.least == 0 && e.largest == 0 && e.not_finite == 0);
    observe(none, 3, &e, bin, 1);
    assert_int_equal(bin[PL_SPREAD_HALF], 3);
    observe(small, 3, &e, NULL, 1);
    observe(small, 3, &e, bin, 1);
    assert_int_equal(bin[PL_SPREAD_HALF], 6);
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(seen), cmocka_unit_test(nothing_to_see)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
