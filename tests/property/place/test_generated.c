/* Generated problems whose optimum is known by construction: transformer steps (at the lower bound, in well under 0.1
 * s), tilings (greedy orders end far above), and a large program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "support/program.h"

static place_case one;

static pl_place_solution solve(uint64_t work_limit, const char *what)
{
    pl_place_problem problem = case_problem(&one);
    pl_place_solution s = {.offsets = one.offsets};
    pl_place_options options = pl_place_options_default();
    pl_error err = {0};
    uint64_t peak;
    options.work_limit = work_limit;
    assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
    if (pl_place_validate(&problem, s.offsets, &peak, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(peak, s.peak);
    printf("  %-28s %5zu buffers  %.4f of the bound  %.3f s  %s\n", what, one.count,
           (double)s.peak / (double)s.lower_bound, s.seconds, s.heuristic);
    return s;
}

static void test_transformer_steps(void **state)
{
    (void)state;
    static const unsigned layers[] = {1, 2, 6, 12, 24};
    for (size_t k = 0; k < sizeof layers / sizeof *layers; k++) {
        for (int naive = 0; naive < 2; naive++) {
            char what[64];
            snprintf(what, sizeof what, "transformer, %u layers%s", layers[k], naive ? ", naive" : "");
            case_transformer(&one, layers[k], 4 << 20, naive);
            pl_place_solution s = solve(100000000, what); /* a tenth of a second, in steps */
            assert_int_equal(s.peak, s.lower_bound);
            assert_true(s.optimal);
        }
    }
}

/* With some tiles left out there is air beside the full moment; the optimum stays. Greedy orders end up to a quarter
 * above it. */
static void test_tilings(void **state)
{
    (void)state;
    static const unsigned pieces[] = {40, 150, 250, 350, 450}, drops[] = {15, 30};
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        for (size_t d = 0; d < 2; d++) {
            char what[64];
            snprintf(what, sizeof what, "tiling, %u less %u %%", pieces[k], drops[d]);
            case_tiling(&one, 7 * k + d, pieces[k], 1 << 20, drops[d]);
            pl_place_solution s = solve(5000000000, what);
            assert_int_equal(s.lower_bound, 1 << 20);
            assert_int_equal(s.peak, 1 << 20);
            assert_true(s.optimal);
        }
    }
}

/* Where temporaries are in the way of all other orders, the fullest moment first ends at the bound. */
static void test_fullest_moment(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed;
        unsigned layers;
    } cases[] = {{177, 40}, {226, 40}, {249, 40}, {268, 40}, {9, 60}, {48, 60}, {87, 60}, {199, 60}, {271, 60}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        case_training(&one, cases[k].seed, cases[k].layers);
        pl_place_problem problem = case_problem(&one);
        pl_place_solution s = {.offsets = one.offsets};
        pl_place_options options = pl_place_options_default();
        pl_error err = {0};
        options.exact = options.squeaky_wheel = false;
        for (int with = 0; with < 2; with++) {
            options.by_moment = with;
            assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
            assert_int_equal(pl_place_validate(&problem, s.offsets, NULL, &err), PL_OK);
            if (s.optimal != with) fail_msg("seed %d, with it %d: %s", (int)cases[k].seed, with, s.heuristic);
        }
    }
}

static void test_large(void **state)
{
    (void)state;
    case_large(&one, 3, 20000);
    pl_place_solution s = solve(UINT64_C(2000000000), "large");
    assert_true((double)s.peak <= 1.034 * (double)s.lower_bound);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_transformer_steps), cmocka_unit_test(test_tilings),
                                       cmocka_unit_test(test_fullest_moment), cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
