/* Small problems drawn by hand with exact answers; the validator; refusals; memory refused at every request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "plimsoll/place.h"
#include "base/alloc.h"
#include "support/program.h"

#define NONE     PL_PLACE_NONE
#define COUNT(a) (sizeof(a) / sizeof *(a))

static uint64_t offsets[64];

static pl_status solve(const pl_place_buffer *buffers, size_t count, uint64_t capacity, pl_place_solution *s,
                       pl_error *err)
{
    pl_place_problem problem = {buffers, count, capacity};
    pl_place_options options = pl_place_options_default();
    *s = (pl_place_solution){.offsets = offsets};
    *err = (pl_error){0};
    pl_status status = pl_place(&problem, &options, s, err);
    if (status == PL_OK || status == PL_E_BUDGET)
        assert_int_equal(pl_place_validate(&problem, offsets, NULL, err), PL_OK);
    return status;
}

static void test_nothing(void **state)
{
    (void)state;
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(NULL, 0, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 0);
    assert_true(s.optimal);
    const pl_place_buffer empty[] = {{"a", 0, 9, 0, 1, NONE}, {"b", 0, 9, 0, 1, 64}};
    assert_int_equal(solve(empty, 2, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 0);
    assert_int_equal(offsets[1], 64);
}

/* a and c never meet, so c takes a's place under b. Half-open lives: one ends where the next begins. */
static void test_reuse(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 0, 2, 10, 1, NONE}, {"b", 1, 3, 5, 1, NONE}, {"c", 2, 4, 10, 1, NONE}};
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(b, 3, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 15);
    assert_int_equal(s.lower_bound, 15);
    assert_int_equal(offsets[0], 0);
    assert_int_equal(offsets[1], 10);
    assert_int_equal(offsets[2], 0);
    assert_true(s.optimal);
}

static void test_alignment(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 0, 4, 10, 64, NONE}, {"b", 0, 4, 10, 64, NONE}, {"c", 0, 4, 50, 1, NONE}};
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(b, 3, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 74); /* a at 0, c fills the rest of its block, b at 64 */
    assert_int_equal(s.lower_bound, 74);
    const pl_place_buffer same[] = {{"a", 0, 4, 65, 64, NONE}, {"b", 0, 4, 65, 64, NONE}};
    assert_int_equal(solve(same, 2, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 193);
    assert_int_equal(s.lower_bound, 193); /* the plain sum would be 130 */
}

static void test_fixed(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"io", 0, 4, 8, 1, 16}, {"a", 0, 4, 16, 1, NONE}, {"b", 1, 2, 4, 1, NONE}};
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(b, 3, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 28);
    assert_int_equal(offsets[0], 16);
    assert_int_equal(offsets[1], 0);
    assert_int_equal(offsets[2], 24);
    const pl_place_buffer high[] = {{"io", 0, 4, 8, 1, 1000}, {"a", 0, 4, 16, 1, NONE}};
    assert_int_equal(solve(high, 2, NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 1008);
    assert_int_equal(s.lower_bound, 1008);
    assert_true(s.optimal);
}

/* A capacity below the lower bound is an answer: how many bytes are missing, and when. */
static void test_infeasible(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 0, 4, 100, 1, NONE}, {"b", 2, 6, 50, 1, NONE}};
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(b, 2, 149, &s, &err), PL_E_BUDGET);
    assert_int_equal(s.verdict, PL_PLACE_IMPOSSIBLE);
    assert_int_equal(s.peak, 150);
    assert_int_equal(s.bound_time, 2);
    assert_non_null(strstr(err.text, "149 bytes"));
    assert_non_null(strstr(err.text, "time 2"));
    assert_non_null(strstr(err.text, "1 bytes more; proven"));
    assert_int_equal(solve(b, 2, 150, &s, &err), PL_OK);
    assert_int_equal(s.verdict, PL_PLACE_FITS);
}

static void expect_refusal(pl_place_buffer b, const char *word)
{
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(&b, 1, NONE, &s, &err), PL_E_DATA);
    if (!strstr(err.text, word)) fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_refusals(void **state)
{
    (void)state;
    pl_place_solution s;
    pl_error err;
    expect_refusal((pl_place_buffer){"a", 3, 3, 1, 1, NONE}, "lower must be below upper");
    expect_refusal((pl_place_buffer){"a", 4, 3, 1, 1, NONE}, "lower must be below upper");
    expect_refusal((pl_place_buffer){"a", 0, 3, 1, 0, NONE}, "not a power of two");
    expect_refusal((pl_place_buffer){"a", 0, 3, 1, 48, NONE}, "not a power of two");
    expect_refusal((pl_place_buffer){"a", 0, 3, 1, 64, 32}, "not a multiple");
    expect_refusal((pl_place_buffer){"a", 0, 3, UINT64_MAX, 1, NONE}, "2^63");
    expect_refusal((pl_place_buffer){"a", 0, 3, UINT64_MAX - 3, 64, NONE}, "2^63");
    expect_refusal((pl_place_buffer){"a", 0, 3, 9, 1, UINT64_MAX - 4}, "2^63");
    const pl_place_buffer sum[] = {{"a", 0, 3, INT64_MAX, 1, NONE}, {"b", 0, 3, INT64_MAX, 1, NONE}};
    assert_int_equal(solve(sum, 2, NONE, &s, &err), PL_E_DATA);
    const pl_place_buffer both[] = {{"a", 0, 3, 8, 1, 0}, {"b", 2, 5, 8, 1, 4}};
    assert_int_equal(solve(both, 2, NONE, &s, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "both fixed"));
}

static void test_validator(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 0, 4, 10, 1, NONE}, {"b", 3, 6, 10, 8, NONE}, {"c", 4, 6, 10, 1, 20}};
    pl_place_problem problem = {b, 3, NONE};
    pl_error err;
    uint64_t peak;
    const struct {
        uint64_t offsets[3];
        const char *reason;
    } bad[] = {{{0, 8, 20}, "share bytes"},
               {{0, 12, 20}, "not aligned"},
               {{0, 16, 20}, "share bytes"},
               {{0, 32, 10}, "is fixed at 20"},
               {{UINT64_MAX, 32, 20}, "beyond 64 bits"}};
    for (size_t k = 0; k < COUNT(bad); k++) {
        assert_int_equal(pl_place_validate(&problem, bad[k].offsets, &peak, &err), PL_E_INTERNAL);
        if (!strstr(err.text, bad[k].reason)) fail_msg("'%s' does not say '%s'", err.text, bad[k].reason);
    }
    const pl_place_buffer backward = {"d", 4, 3, 10, 1, NONE};
    assert_int_equal(pl_place_validate(&(pl_place_problem){&backward, 1, NONE}, &(uint64_t){0}, &peak, &err),
                     PL_E_INTERNAL);
    assert_non_null(strstr(err.text, "alive in [4, 3)"));
    const uint64_t good[] = {20, 32, 20};
    assert_int_equal(pl_place_validate(&problem, good, &peak, &err), PL_OK);
    assert_int_equal(peak, 42);
}

/* Fixed offsets in it, so that no greedy pass ends the matter: the exact search and the squeaky wheel allocate too. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    pl_place_buffer b[24];
    for (size_t i = 0; i < COUNT(b); i++) {
        b[i] = pl_place_buffer_make(i * 7 % 11, i * 7 % 11 + 2 + i % 5, 10 + i * i % 17);
        if (i % 6 == 0) b[i].fixed_offset = 1000 + 100 * i;
    }
    pl_place_problem problem = {b, COUNT(b), NONE};
    pl_place_options options = pl_place_options_default();
    options.work_limit = 2000000;
    for (int forever = 0; forever < 2; forever++) {
        pl_status status = PL_E_NOMEM;
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_place_solution s = {.offsets = offsets};
            pl_error err = {0};
            uint64_t live = pl_alloc_live_blocks();
            pl_alloc_fail_at(n, forever);
            status = pl_place(&problem, &options, &s, &err);
            pl_alloc_fail_at(0, 0);
            assert_int_equal(pl_alloc_live_blocks(), live);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM), assert_true(err.text[0] != 0);
            assert_true(n < 1000);
        }
    }
}

/* What is proven is a true bound, also where the capacity is no possible peak: peaks are even here, the best is 182. */
static void test_proof_between_peaks(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 3, 7, 60, 1, NONE}, {"b", 6, 7, 10, 1, 2},    {"c", 2, 6, 40, 1, NONE},
                                 {"d", 6, 8, 50, 1, NONE}, {"e", 3, 7, 50, 1, NONE}, {"f", 0, 4, 30, 1, 2}};
    pl_place_solution s;
    pl_error err;
    assert_int_equal(solve(b, COUNT(b), NONE, &s, &err), PL_OK);
    assert_int_equal(s.peak, 182);
    assert_int_equal(solve(b, COUNT(b), 181, &s, &err), PL_E_BUDGET);
    assert_int_equal(s.verdict, PL_PLACE_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "at least 182 bytes"));
}

/* Sizes of a few units (pages, blocks) and a gap above the bound, so that what ended too high is placed again:
 * an eighth of the peak is nothing there. */
static void test_squeaky_wheel_over_few_units(void **state)
{
    (void)state;
    const pl_place_buffer b[] = {{"a", 1, 2, 2, 4, NONE}, {"b", 0, 3, 3, 4, NONE}, {"c", 3, 4, 1, 2, NONE},
                                 {"d", 3, 6, 1, 4, NONE}, {"e", 2, 5, 1, 2, NONE}, {"f", 2, 3, 2, 1, NONE}};
    pl_place_problem problem = {b, COUNT(b), NONE};
    pl_place_options options = pl_place_options_default();
    options.exact = false;
    options.work_limit = 100000;
    pl_place_solution s = {.offsets = offsets};
    pl_error err = {0};
    assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
    assert_int_equal(pl_place_validate(&problem, offsets, NULL, &err), PL_OK);
    assert_true(s.peak < 8 && s.peak > s.lower_bound); /* or nothing was placed again */
}

static void test_time_limit(void **state)
{
    (void)state;
    static pl_place_buffer b[COUNT(offsets)];
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = pl_place_buffer_make(i * 37 % 41, i * 37 % 41 + 1 + i * 13 % 19, 1 + i * 31 % 97);
    pl_place_problem problem = {b, COUNT(b), NONE};
    pl_place_options options = pl_place_options_default();
    options.work_limit = NONE;
    options.time_limit_s = 0.05;
    pl_place_solution s = {.offsets = offsets};
    pl_error err;
    assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
    assert_int_equal(pl_place_validate(&problem, offsets, NULL, &err), PL_OK);
    assert_true(s.seconds < 1);
}

/* More buffers than a greedy pass places in a hundredth of a second; aligned ones and fixed ones among them. */
static void test_short_time_limit(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    static pl_place_buffer b[MANY];
    static uint64_t at[MANY];
    for (uint64_t i = 0; i < MANY; i++) {
        b[i] = pl_place_buffer_make(i * 7919 % MANY, i * 7919 % MANY + 1 + i * 131 % 1000, 64 + i * 104729 % 65536);
        if (i % 3 == 0) b[i].alignment = UINT64_C(1) << i % 13;
        if (i % 5000 == 0) b[i].alignment = 1, b[i].fixed_offset = i / 5000 * 70000;
    }
    pl_place_problem problem = {b, MANY, NONE};
    pl_place_options options = pl_place_options_default();
    static const double limits[] = {1e-9, 0.02, 0.1};
    for (size_t k = 0; k < COUNT(limits); k++) {
        options.time_limit_s = limits[k];
        pl_place_solution s = {.offsets = at};
        pl_error err;
        assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
        assert_int_equal(pl_place_validate(&problem, at, NULL, &err), PL_OK);
        assert_true(s.peak < 2 * s.lower_bound); /* the first pass has ended: nothing is stacked up */
        assert_true(s.seconds < 5);              /* on a loaded machine, under a sanitizer */
    }
}

/* With time for all that is done without a time limit, and for more: never a higher peak. */
static void test_time_adds(void **state)
{
    (void)state;
    static pl_place_buffer b[COUNT(offsets)];
    for (size_t i = 0; i < COUNT(b); i++)
        b[i] = pl_place_buffer_make(i * 37 % 41, i * 37 % 41 + 1 + i * 13 % 19, 1 + i * 31 % 97);
    pl_place_problem problem = {b, COUNT(b), NONE};
    pl_place_options options = pl_place_options_default();
    options.work_limit = 300000;
    pl_place_solution s = {.offsets = offsets};
    pl_error err;
    assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
    uint64_t peak = s.peak, work = s.work;
    options.time_limit_s = 0.3;
    assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
    assert_int_equal(pl_place_validate(&problem, offsets, NULL, &err), PL_OK);
    assert_true(s.peak <= peak && (s.optimal || s.work > work));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing),
                                       cmocka_unit_test(test_reuse),
                                       cmocka_unit_test(test_alignment),
                                       cmocka_unit_test(test_fixed),
                                       cmocka_unit_test(test_infeasible),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_validator),
                                       cmocka_unit_test(test_every_allocation_may_fail),
                                       cmocka_unit_test(test_time_limit),
                                       cmocka_unit_test(test_short_time_limit),
                                       cmocka_unit_test(test_time_adds),
                                       cmocka_unit_test(test_squeaky_wheel_over_few_units),
                                       cmocka_unit_test(test_proof_between_peaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
