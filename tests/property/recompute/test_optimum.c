/* Small random problems over a sweep of budgets, against an exact solver of the test's own: a schedule is found exactly
 * where there is one, passes the judge, and costs what it must. Also how near the methods come that do not search all
 * (they are what is left for large graphs). A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "oracle.h"
#include "support/program.h"
#include "support/seed.h"

enum { PROBLEMS = 48, BUDGETS = 4, RATIOS_MAX = PROBLEMS * BUDGETS };

static recompute_case one;
static uint64_t first_seed;

typedef struct ratios {
    double list[RATIOS_MAX];
    size_t count;
    unsigned missed; /* there is a schedule, none was found */
} ratios;

static int compare_ratios(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void print_ratios(const char *what, ratios *r)
{
    qsort(r->list, r->count, sizeof *r->list, compare_ratios);
    printf("  %-28s %3zu cases, cost / optimum: median %.4f, worst %.4f, not found %u\n", what, r->count,
           r->count ? r->list[r->count / 2] : 0, r->count ? r->list[r->count - 1] : 0, r->missed);
}

static void fail_case(uint64_t seed, uint64_t budget, const char *what)
{
    printf("seed %llu (%s), budget %llu: %s\n", (unsigned long long)seed, case_kind_names[seed % CASE_KINDS],
           (unsigned long long)budget, what);
    fail();
}

static pl_recompute_solution solve(const pl_recompute_problem *problem, const pl_recompute_options *options,
                                   uint64_t seed, bool *found)
{
    pl_recompute_solution s;
    pl_error err = {0}, wrong = {0};
    double cost;
    uint64_t peak;
    pl_status status = pl_recompute(problem, options, &s, &err);
    if (status != PL_OK && status != PL_E_BUDGET) fail_case(seed, problem->budget, err.text);
    if (pl_recompute_validate(problem, s.steps, s.step_count, &cost, &peak, &wrong) != PL_OK)
        fail_case(seed, problem->budget, wrong.text);
    *found = status == PL_OK;
    if (cost != s.cost || peak != s.peak || (*found && peak > problem->budget) ||
        *found != (s.verdict == PL_RECOMPUTE_FITS))
        fail_case(seed, problem->budget, "cost, peak or verdict is not that of the steps");
    if (s.cost_lower_bound < s.base_cost || (*found && s.cost < s.cost_lower_bound))
        fail_case(seed, problem->budget, "the lower bound is wrong");
    return s;
}

static void note(ratios *r, bool found, double cost, int optimum)
{
    if (found)
        r->list[r->count++] = optimum ? cost / optimum : 1;
    else
        r->missed++;
}

static void judge_budget(const pl_recompute_problem *problem, oracle *o, uint64_t seed, ratios *all, ratios *heuristic)
{
    pl_recompute_options options = pl_recompute_options_default();
    int optimum = oracle_solve(o, problem);
    bool found;
    if (optimum == ORACLE_TOO_LARGE) return;
    pl_recompute_solution s = solve(problem, &options, seed, &found);
    if (optimum == ORACLE_IMPOSSIBLE) {
        if (found) fail_case(seed, problem->budget, "there is no schedule, but one was found");
    } else {
        note(all, found, s.cost, optimum);
        if (found && s.cost < optimum) fail_case(seed, problem->budget, "below the optimum: the oracle is wrong");
        if (s.optimal && s.cost != optimum) fail_case(seed, problem->budget, "called optimal, and is not");
        if (s.floor_bytes > problem->budget) fail_case(seed, problem->budget, "the floor is above a budget that works");
        if (s.cost_lower_bound > optimum) fail_case(seed, problem->budget, "the lower bound is above the optimum");
    }
    pl_recompute_solution_deinit(&s);
    if (optimum == ORACLE_IMPOSSIBLE) return;
    options.exact = false;
    options.work_limit = 5000000;
    s = solve(problem, &options, seed, &found);
    note(heuristic, found, s.cost, optimum);
    pl_recompute_solution_deinit(&s);
}

static void judge_case(uint64_t seed, oracle *o, ratios *all, ratios *heuristic)
{
    pl_recompute_options quick = pl_recompute_options_default();
    pl_recompute_solution s;
    case_small(&one, seed, (case_kind)(seed % CASE_KINDS));
    pl_recompute_problem problem = case_problem(&one, PL_RECOMPUTE_NONE);
    assert_int_equal(pl_recompute(&problem, &quick, &s, NULL), PL_OK);
    uint64_t floor = s.floor_bytes, above = s.store_all_peak - floor;
    pl_recompute_solution_deinit(&s);
    for (uint64_t k = 0; k < BUDGETS; k++) {
        problem.budget = floor + above * k * k / (BUDGETS * BUDGETS);
        judge_budget(&problem, o, seed, all, heuristic);
    }
}

static void test_optimum(void **state)
{
    (void)state;
    static ratios all, heuristic;
    oracle *o = malloc(sizeof *o);
    assert_non_null(o);
    for (uint64_t k = 0; k < PROBLEMS; k++) judge_case(first_seed + k, o, &all, &heuristic);
    free(o);
    print_ratios("all methods", &all);
    print_ratios("without the exact search", &heuristic);
    assert_true(all.count > PROBLEMS);
    assert_int_equal(all.missed, 0);
    assert_true(all.list[all.count / 2] <= 1.005);
    assert_true(all.list[all.count - 1] <= 1.03);
    assert_true(heuristic.list[heuristic.count / 2] <= 1.01);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_optimum)};
    first_seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
