/* The limit on time binds, with a clock that goes on by a second each time that it is looked at: between two looks only
 * so much work is done, so after so many looks the answer is there, and right. What no clock measures: how fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "plan/recompute/graph.h"
#include "support/program.h"
#include "support/seed.h"

enum { WORK_PER_LOOK = 1100000, WORK_PER_NODE = 2000, LATE_LOOKS = 30, ROUNDS = 2 };

static recompute_case one;
static uint64_t first_seed;

static double count_looks(void *looks) { return (double)++*(unsigned *)looks; }

typedef enum graph_kind { DEEP_LAYERS, WIDE_LAYERS, ZERO_BYTES, CHAIN, BLOCKS, RANDOM, SMALL, KINDS } graph_kind;
static const char *const names[KINDS] = {"deep layers", "wide layers", "nodes without bytes", "chain", "blocks",
                                         "random",      "small"};

static void make(graph_kind kind, uint64_t seed)
{
    case_begin(&one, seed);
    switch (kind) {
    case DEEP_LAYERS:
        case_layers(&one, 500, 10, 5, 0);
        break;
    case WIDE_LAYERS:
        case_layers(&one, 20, 600, 3, 0);
        break;
    case ZERO_BYTES:
        case_layers(&one, 50, 10, 3, 2);
        break;
    case CHAIN:
        case_chain(&one, 5000, true);
        break;
    case BLOCKS:
        case_blocks(&one, 200, 64);
        break;
    case RANDOM:
        case_random_graph(&one, 1500);
        break;
    default:
        case_random_graph(&one, 22);
    }
}

static uint64_t find_store_all(void)
{
    pl_recompute_options options = pl_recompute_options_default();
    pl_recompute_problem problem = case_problem(&one, PL_RECOMPUTE_NONE);
    pl_recompute_solution s;
    pl_error err = {0};
    if (pl_recompute(&problem, &options, &s, &err) != PL_OK) fail_msg("%s", err.text);
    uint64_t peak = s.store_all_peak;
    pl_recompute_solution_deinit(&s);
    return peak;
}

/* Whatever the clock allows: a schedule is there whenever it stopped. */
static void stop_at(const pl_recompute_options *given, graph_kind kind, uint64_t seed, unsigned looks, uint64_t budget)
{
    unsigned seen = 0;
    recompute_clock clock = {.now = count_looks, .context = &seen, .deadline = looks};
    pl_recompute_options options = *given;
    pl_recompute_problem problem = case_problem(&one, budget);
    pl_recompute_solution s;
    pl_error err = {0}, wrong = {0};
    uint64_t peak, least = 0;
    bool min = budget == PL_RECOMPUTE_NONE;
    pl_status status = min ? recompute_solve_least(&problem, &options, &clock, &least, &s, &err)
                           : recompute_solve(&problem, &options, &clock, &s, &err);
    uint64_t allowed = (uint64_t)(seen + 1) * WORK_PER_LOOK + WORK_PER_NODE * one.count;
    if (status != PL_OK && (min || status != PL_E_BUDGET)) fail_msg("seed %" PRIu64 ": %s", seed, err.text);
    if (pl_recompute_validate(&problem, s.steps, s.step_count, NULL, &peak, &wrong) != PL_OK)
        fail_msg("%s, seed %" PRIu64 ", %u looks: %s", names[kind], seed, looks, wrong.text);
    assert_int_equal(peak, s.peak);
    if (status == PL_OK) assert_true(peak <= (min ? least : budget) && s.verdict == PL_RECOMPUTE_FITS);
    if (status == PL_E_BUDGET && s.verdict == PL_RECOMPUTE_NOT_FOUND) assert_non_null(strstr(err.text, "more time"));
    if (s.work > allowed || seen > looks + LATE_LOOKS)
        fail_msg("%s, seed %" PRIu64 ", %u looks%s: looked %u times, %" PRIu64 " of work, %" PRIu64 " allowed",
                 names[kind], seed, looks, min ? ", least" : "", seen, s.work, allowed);
    pl_recompute_solution_deinit(&s);
}

static void stop_everywhere(const pl_recompute_options *options, graph_kind kind, uint64_t seed)
{
    static const unsigned looks[] = {1, 2, 3, 7, 30, 100};
    make(kind, seed);
    uint64_t all = find_store_all(), share = 2 + case_random(&one, 7);
    for (size_t l = 0; l < sizeof looks / sizeof *looks; l++) {
        stop_at(options, kind, seed, looks[l], all * share / 10);
        stop_at(options, kind, seed, looks[l], PL_RECOMPUTE_NONE);
    }
}

static void test_all_methods(void **state)
{
    (void)state;
    pl_recompute_options options = pl_recompute_options_default();
    options.work_limit = PL_RECOMPUTE_NONE;
    for (uint64_t k = 0; k < ROUNDS * KINDS; k++) stop_everywhere(&options, (graph_kind)(k % KINDS), first_seed + k);
}

/* From storing all, whose rows are long. */
static void test_annealing(void **state)
{
    (void)state;
    pl_recompute_options options = pl_recompute_options_default();
    options.work_limit = PL_RECOMPUTE_NONE;
    options.distance_0 = options.distance_half = options.distance_1 = options.distance_3_2 = false;
    options.climb = options.exact = false;
    stop_everywhere(&options, DEEP_LAYERS, first_seed);
    stop_everywhere(&options, RANDOM, first_seed + 1);
}

/* Values that could all have stayed since they were computed first: a look at each of the long gaps. The clock that
 * stops at its second look stops the first search for the dearest; without it, one is taken out. */
static void test_refill(void **state)
{
    enum { VALUES = 3000 };
    (void)state;
    case_begin(&one, 1);
    for (uint32_t v = 0; v < VALUES; v++) case_add(&one, 1 + v, 1);
    for (uint32_t v = 0; v < VALUES; v++) case_read(&one, case_add(&one, 1, 1), v);
    pl_recompute_problem problem = case_problem(&one, one.count);
    pl_recompute_options options = pl_recompute_options_default();
    recompute_graph g;
    pl_error err = {0};
    options.work_limit = 1;
    assert_int_equal(recompute_graph_init(&g, &problem, &err), PL_OK);
    for (unsigned limited = 0; limited < 2; limited++) {
        unsigned seen = 0;
        recompute_clock clock = {.now = limited ? count_looks : NULL, .context = &seen, .deadline = 1};
        recompute_run run = recompute_run_begin(&options, &clock);
        recompute_sequence s = {0};
        for (uint32_t v = 0; v < VALUES; v++) assert_int_equal(recompute_sequence_append(&s, v), 0);
        for (uint32_t v = 0; v < VALUES; v++) {
            assert_int_equal(recompute_sequence_append(&s, v), 0);
            assert_int_equal(recompute_sequence_append(&s, VALUES + v), 0);
        }
        assert_int_equal(recompute_sequence_polish(&g, &run, &s, &err), PL_OK);
        assert_int_equal(s.count, 3 * VALUES - !limited);
        assert_int_equal(seen, limited ? 2 : 0);
        recompute_sequence_deinit(&s);
    }
    recompute_graph_deinit(&g);
}

/* What a greedy pass takes grows with the nodes, not with their square: some hundred for each step. */
static void test_large(void **state)
{
    enum { LAYERS = 9900, WORK_PER_STEP = 400 };
    (void)state;
    pl_recompute_options options = pl_recompute_options_default();
    options.low_peak_order = options.distance_0 = options.distance_half = options.distance_3_2 = false;
    options.refill = options.climb = options.anneal = false;
    for (unsigned share = 1; share < 10; share += 4) {
        case_begin(&one, first_seed + share);
        case_chain(&one, LAYERS, true);
        pl_recompute_problem problem = case_problem(&one, find_store_all() * share / 10);
        pl_recompute_solution s;
        pl_error err = {0};
        uint64_t peak;
        if (pl_recompute(&problem, &options, &s, &err) != PL_OK) fail_msg("seed %" PRIu64 ": %s", first_seed, err.text);
        assert_int_equal(pl_recompute_validate(&problem, s.steps, s.step_count, NULL, &peak, &err), PL_OK);
        assert_true(peak <= problem.budget);
        if (s.work > WORK_PER_STEP * s.step_count)
            fail_msg("seed %" PRIu64 ": %" PRIu64 " of work for %zu steps", first_seed, s.work, s.step_count);
        pl_recompute_solution_deinit(&s);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_methods), cmocka_unit_test(test_annealing),
                                       cmocka_unit_test(test_refill), cmocka_unit_test(test_large)};
    first_seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
