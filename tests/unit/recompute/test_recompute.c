/* The planner on problems whose answer is known: proven optima of public graphs, closed forms of chains, the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plimsoll/recompute.h"
#include "base/alloc.h"
#include "support/program.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { BUDGETS = 6 };

/* Uneven chains and random graphs forward and backward, with proven optima (planning/recompute/expected.csv). */
static const struct {
    const char *name, *text;
    struct {
        uint64_t budget;
        double cost;
    } optima[BUDGETS];
} known[] = {
    {"rdag0",
     "dag 17 rdag0\nnode 0 0 3 2 0\nnode 1 3 7 0 1 0\nnode 2 9 2 0 2 0 1\nnode 3 5 1 0 1 2\n"
     "node 4 4 3 0 2 2 3\nnode 5 6 7 0 2 2 4\nnode 6 9 5 2 2 3 5\nnode 7 2 3 0 2 5 6\n"
     "node 8 3 3 0 1 7\nnode 9 1 3 0 2 7 8\nnode 10 4 3 0 3 5 6 9\nnode 11 11 5 0 3 3 5 10\n"
     "node 12 7 7 0 4 2 4 10 11\nnode 13 9 3 0 4 2 3 4 12\nnode 14 1 1 0 3 2 11 13\n"
     "node 15 12 2 0 5 0 1 12 13 14\nnode 16 9 7 0 2 0 15\nkeep 0\n",
     {{24, 108}, {25, 108}, {27, 102}, {30, 98}, {33, 98}, {37, 95}}},
    {"rdag1",
     "dag 19 rdag1\nnode 0 0 4 0 0\nnode 1 9 4 0 1 0\nnode 2 8 4 0 1 1\nnode 3 2 5 0 1 2\n"
     "node 4 9 6 0 1 3\nnode 5 6 4 2 1 4\nnode 6 7 8 0 2 0 5\nnode 7 6 5 2 2 5 6\n"
     "node 8 4 7 0 1 7\nnode 9 1 8 0 2 6 8\nnode 10 6 8 0 2 6 8\nnode 11 6 7 0 2 7 10\n"
     "node 12 1 5 0 3 5 6 11\nnode 13 3 8 0 5 0 5 6 10 12\nnode 14 7 4 0 3 4 12 13\n"
     "node 15 2 6 0 3 3 4 14\nnode 16 7 5 0 2 2 15\nnode 17 12 4 0 2 1 16\nnode 18 11 4 0 2 0 17\n"
     "keep 0\n",
     {{37, 137}, {39, 137}, {41, 126}, {46, 118}, {51, 109}, {56, 107}}},
    {"rdag2",
     "dag 21 rdag2\nnode 0 0 3 0 0\nnode 1 7 5 2 1 0\nnode 2 1 3 2 1 1\nnode 3 3 2 0 1 2\n"
     "node 4 8 4 0 1 3\nnode 5 7 8 0 1 4\nnode 6 6 7 0 2 0 5\nnode 7 7 7 0 1 6\nnode 8 3 6 0 1 7\n"
     "node 9 5 7 0 2 3 8\nnode 10 8 5 0 1 9\nnode 11 8 5 0 1 9\nnode 12 9 7 0 3 3 8 11\n"
     "node 13 11 6 0 3 7 8 12\nnode 14 9 7 0 2 6 13\nnode 15 7 7 0 3 0 5 14\n"
     "node 16 4 8 0 3 4 5 15\nnode 17 9 4 0 2 3 16\nnode 18 9 2 0 3 2 12 17\n"
     "node 19 6 3 0 2 1 18\nnode 20 7 5 0 2 0 19\nkeep 0\n",
     {{30, 229}, {33, 208}, {37, 165}, {44, 148}, {51, 141}, {58, 134}}},
    {"hchain0",
     "dag 18 hchain0\nnode 0 0 3 0 0\nnode 1 3 4 0 1 0\nnode 2 1 1 0 1 1\nnode 3 9 1 0 1 2\n"
     "node 4 6 5 0 1 3\nnode 5 1 5 0 1 4\nnode 6 4 1 0 1 5\nnode 7 2 4 0 1 6\nnode 8 7 1 0 1 7\n"
     "node 9 4 1 0 1 8\nnode 10 9 4 0 2 7 9\nnode 11 1 1 0 2 6 10\nnode 12 4 1 0 2 5 11\n"
     "node 13 7 1 0 2 4 12\nnode 14 4 1 0 2 3 13\nnode 15 9 2 0 2 2 14\nnode 16 5 4 0 2 1 15\n"
     "node 17 3 1 0 2 0 16\nkeep 0\n",
     {{14, 108}, {15, 96}, {17, 89}, {21, 83}, {25, 80}, {29, 79}}},
    {"hchain1",
     "dag 20 hchain1\nnode 0 0 5 0 0\nnode 1 5 5 0 1 0\nnode 2 3 1 0 1 1\nnode 3 4 3 0 1 2\n"
     "node 4 2 5 0 1 3\nnode 5 2 5 0 1 4\nnode 6 1 5 0 1 5\nnode 7 4 4 0 1 6\nnode 8 9 4 0 1 7\n"
     "node 9 6 4 0 1 8\nnode 10 8 3 0 1 9\nnode 11 5 2 0 2 8 10\nnode 12 3 2 0 2 7 11\n"
     "node 13 2 3 0 2 6 12\nnode 14 9 4 0 2 5 13\nnode 15 6 4 0 2 4 14\nnode 16 5 1 0 2 3 15\n"
     "node 17 2 4 0 2 2 16\nnode 18 3 3 0 2 1 17\nnode 19 3 4 0 2 0 18\nkeep 0\n",
     {{18, 140}, {21, 105}, {24, 94}, {31, 89}, {37, 85}, {44, 82}}},
};

static pl_recompute_dag *read_dag(const char *text)
{
    pl_recompute_dag *dag;
    pl_error err = {0};
    if (pl_recompute_dag_parse(text, strlen(text), "t.dag", &dag, &err) != PL_OK) fail_msg("%s", err.text);
    return dag;
}

/* Solved and judged; the caller gives the solution back. */
static pl_recompute_solution solve(const pl_recompute_problem *problem, pl_status expected, pl_error *err)
{
    pl_recompute_options options = pl_recompute_options_default();
    pl_recompute_solution s;
    double cost;
    uint64_t peak;
    pl_status status = pl_recompute(problem, &options, &s, err);
    if (status != expected) fail_msg("status %s: %s", pl_status_name(status), err->text);
    pl_error wrong = {0};
    if (pl_recompute_validate(problem, s.steps, s.step_count, &cost, &peak, &wrong) != PL_OK)
        fail_msg("%s", wrong.text);
    assert_true(cost == s.cost);
    assert_int_equal(peak, s.peak);
    return s;
}

static void test_known_optima(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT(known); k++) {
        pl_recompute_dag *dag = read_dag(known[k].text);
        assert_string_equal(pl_recompute_dag_name(dag), known[k].name);
        pl_recompute_problem problem = pl_recompute_dag_problem(dag);
        for (size_t b = 0; b < BUDGETS; b++) {
            pl_error err = {0};
            problem.budget = known[k].optima[b].budget;
            pl_recompute_solution s = solve(&problem, PL_OK, &err);
            if (s.cost != known[k].optima[b].cost)
                fail_msg("%s at %llu: cost %g, not %g", known[k].name, (unsigned long long)problem.budget, s.cost,
                         known[k].optima[b].cost);
            assert_true(s.optimal);
            assert_true(s.cost_lower_bound == s.cost);
            pl_recompute_solution_deinit(&s);
        }
        pl_recompute_dag_destroy(dag);
    }
}

static void test_edges(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_recompute_problem nothing = {.fixed = 7, .budget = 7};
    pl_recompute_solution s = solve(&nothing, PL_OK, &err);
    assert_int_equal(s.step_count, 0);
    assert_int_equal(s.peak, 7);
    assert_true(s.optimal);
    pl_recompute_solution_deinit(&s);
    nothing.budget = 6;
    s = solve(&nothing, PL_E_BUDGET, &err);
    assert_int_equal(s.verdict, PL_RECOMPUTE_IMPOSSIBLE);
    pl_recompute_solution_deinit(&s);

    pl_recompute_node free_node = {.cost = 0, .size = 0};
    pl_recompute_problem one = {.nodes = &free_node, .node_count = 1, .budget = 0};
    s = solve(&one, PL_OK, &err);
    assert_int_equal(s.peak, 0);
    pl_recompute_solution_deinit(&s);
}

/* A kept node far above still lies there when the last one runs: 2 + 5 + 5, though it is no input. */
static void test_floor_counts_what_is_kept(void **state)
{
    (void)state;
    pl_recompute_dag *dag =
        read_dag("dag 4 kept\nnode 0 1 2 0 0\nnode 1 1 5 0 1 0 # wide\nnode 2 1 5 0 1 1 # last one\n"
                 "node 3 1 1 0 1 2\nkeep 0\n");
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    pl_error err = {0};
    problem.budget = 11;
    pl_recompute_solution s = solve(&problem, PL_E_BUDGET, &err);
    assert_int_equal(s.verdict, PL_RECOMPUTE_IMPOSSIBLE);
    assert_int_equal(s.floor_bytes, 12);
    assert_string_equal(err.text, "no schedule fits 11 bytes (11 B): node 2 (last one) needs 12 bytes (12 B) with what "
                                  "it reads and what is kept, 1 bytes more; proven");
    pl_recompute_solution_deinit(&s);
    problem.budget = 12;
    s = solve(&problem, PL_OK, &err);
    pl_recompute_solution_deinit(&s);
    pl_recompute_dag_destroy(dag);
}

/* Two values that both outlive a wide node: no node alone shows it, the search does. */
static void test_proven_by_search(void **state)
{
    (void)state;
    pl_recompute_dag *dag =
        read_dag("dag 7 pair\nnode 0 1 4 0 0\nnode 1 1 4 0 1 0\nnode 2 1 4 0 2 0 1\nnode 3 1 4 0 2 1 2\n"
                 "node 4 1 4 0 2 2 3\nnode 5 1 4 0 2 0 4\nnode 6 1 1 0 3 3 4 5\n");
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    pl_recompute_options options = pl_recompute_options_default();
    pl_recompute_solution least;
    pl_error err = {0};
    uint64_t budget;
    assert_int_equal(pl_recompute_least(&problem, &options, &budget, &least, &err), PL_OK);
    assert_int_equal(least.floor_bytes, budget); /* proven */
    pl_recompute_solution_deinit(&least);
    problem.budget = budget - 1;
    pl_recompute_solution s = solve(&problem, PL_E_BUDGET, &err);
    assert_int_equal(s.verdict, PL_RECOMPUTE_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "proven"));
    pl_recompute_solution_deinit(&s);
    pl_recompute_dag_destroy(dag);
}

static void test_bad_problems(void **state)
{
    (void)state;
    static const uint32_t self[] = {0};
    static const struct {
        pl_recompute_node node;
        uint64_t fixed;
        const char *expected;
    } cases[] = {
        {{.cost = -1}, 0, "costs -1; expected a finite number"},
        {{.cost = 1e308 * 10}, 0, "costs inf; expected a finite number"},
        {{.deps = self, .dep_count = 1}, 0, "node 0 depends on node 0"},
        {{.size = UINT64_MAX}, 1, "exceed 2^62 bytes"},
        {{.work = UINT64_MAX}, 1, "exceed 2^62 bytes"},
    };
    for (size_t k = 0; k < COUNT(cases); k++) {
        pl_recompute_problem problem = {
            .nodes = &cases[k].node, .node_count = 1, .fixed = cases[k].fixed, .budget = 100};
        pl_recompute_options options = pl_recompute_options_default();
        pl_recompute_solution s;
        pl_error err = {0};
        assert_int_equal(pl_recompute(&problem, &options, &s, &err), PL_E_DATA);
        if (!strstr(err.text, cases[k].expected)) fail_msg("'%s' lacks '%s'", err.text, cases[k].expected);
        pl_recompute_solution_deinit(&s);
    }
}

/* A dependency that is named twice counts once. */
static void test_twice_named(void **state)
{
    (void)state;
    pl_recompute_dag *dag = read_dag("dag 2 twice\nnode 0 1 4 0 0\nnode 1 1 4 0 1 0\n");
    pl_recompute_dag_destroy(dag);
    static const uint32_t twice[] = {0, 0};
    pl_recompute_node nodes[] = {{.cost = 1, .size = 4}, {.cost = 1, .size = 4, .deps = twice, .dep_count = 2}};
    pl_recompute_problem problem = {.nodes = nodes, .node_count = 2, .budget = 8};
    pl_error err = {0};
    pl_recompute_solution s = solve(&problem, PL_OK, &err);
    assert_true(s.cost == 2);
    pl_recompute_solution_deinit(&s);
}

/* Every request for memory refused in turn: a sentence, nothing lost. */
static void test_memory_refused(void **state)
{
    (void)state;
    pl_recompute_dag *dag = read_dag(known[0].text);
    pl_recompute_problem problem = pl_recompute_dag_problem(dag);
    pl_recompute_options options = pl_recompute_options_default();
    problem.budget = known[0].optima[0].budget;
    options.work_limit = 300000;
    options.exact_states = 300; /* so that the other methods are asked, too */
    uint64_t blocks = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status == PL_E_NOMEM; n += n < 300 ? 1 : 97) {
        pl_recompute_solution s;
        pl_error err = {0};
        pl_alloc_fail_at(n, 0);
        status = pl_recompute(&problem, &options, &s, &err);
        pl_alloc_fail_at(0, 0);
        assert_true(status == PL_OK || status == PL_E_NOMEM);
        assert_true(status == PL_OK || err.text[0]);
        pl_recompute_solution_deinit(&s);
        assert_int_equal(pl_alloc_live_blocks(), blocks);
    }
    pl_recompute_dag_destroy(dag);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_optima),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_floor_counts_what_is_kept),
        cmocka_unit_test(test_proven_by_search),
        cmocka_unit_test(test_bad_problems),
        cmocka_unit_test(test_twice_named),
        cmocka_unit_test(test_memory_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
