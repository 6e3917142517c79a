/* The retention matrix: after thousands of random moves, some taken back, its rows and sums are those of a computation
 * from scratch, and the sequence read from it costs and holds what it says. So they are after a move that the clock cut
 * short and that was taken back. A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "base/alloc.h"
#include "plan/recompute/moves.h"
#include "support/program.h"
#include "support/seed.h"

enum { PROBLEMS = 60, MOVES = 400 };

static recompute_case one;
static uint64_t first_seed;
static unsigned cut_moves;

static void expect(bool right, uint64_t seed, unsigned move, const char *what)
{
    if (right) return;
    printf("seed %llu, move %u: %s\n", (unsigned long long)seed, move, what);
    fail();
}

static void compare_to_scratch(matrix *m, uint64_t seed, unsigned move)
{
    size_t row = m->words * sizeof *m->entry;
    uint64_t *entry = pl_alloc(m->count + 1, row), *touched = pl_alloc(m->count, row);
    matrix_stage *stage = pl_alloc(m->count, sizeof *stage);
    double cost = m->cost;
    int64_t over = m->over;
    assert_true(entry && touched && stage);
    memcpy(entry, m->entry, (m->count + 1) * row);
    memcpy(touched, m->touched, m->count * row);
    memcpy(stage, m->stage, m->count * sizeof *stage);
    matrix_refresh(m);
    expect(cost == m->cost && over == m->over, seed, move, "sums differ");
    expect(memcmp(entry, m->entry, (m->count + 1) * row) == 0, seed, move, "what is resident differs");
    expect(memcmp(touched, m->touched, m->count * row) == 0, seed, move, "what is touched differs");
    expect(memcmp(stage, m->stage, m->count * sizeof *stage) == 0, seed, move, "a stage differs");
    pl_free(entry);
    pl_free(touched);
    pl_free(stage);
}

/* The matrix may free later than a sequence does, so its peak is no lower. */
static void compare_to_sequence(const recompute_graph *g, matrix *m, uint64_t seed, unsigned move)
{
    recompute_sequence s = {0};
    int64_t peak = 0;
    assert_int_equal(matrix_sequence(m, &s, NULL), PL_OK);
    assert_int_equal(recompute_sequence_measure(g, &s, NULL), PL_OK);
    for (uint32_t t = 0; t < m->count; t++)
        if (m->stage[t].base + m->stage[t].rise > peak) peak = m->stage[t].base + m->stage[t].rise;
    expect(s.cost == m->cost && s.peak <= peak, seed, move, "the sequence differs");
    recompute_sequence_deinit(&s);
}

static double late(void *context)
{
    (void)context;
    return 1;
}

/* The time runs out somewhere on the way, or not before the end. */
static void apply_in_time(matrix *m, const matrix_change *change, uint64_t steps)
{
    recompute_run run = {.clock.now = late, .next_look = steps};
    m->run = &run;
    assert_int_equal(matrix_apply(m, change, NULL), PL_OK);
    m->run = NULL;
    if (!m->cut) return;
    matrix_undo(m, change);
    m->cut = false;
    cut_moves++;
}

static void walk(uint64_t seed)
{
    recompute_graph g;
    matrix m;
    recompute_random random = recompute_random_begin(seed, 0);
    pl_recompute_options options = pl_recompute_options_default();
    recompute_sequence start = {0};
    case_small(&one, seed, (case_kind)(seed % CASE_KINDS));
    pl_recompute_problem problem = case_problem(&one, one.fixed + 20);
    assert_int_equal(recompute_graph_init(&g, &problem, NULL), PL_OK);
    assert_int_equal(matrix_init(&m, &g, NULL), PL_OK);
    for (uint32_t v = 0; v < g.count; v++) assert_int_equal(recompute_sequence_append(&start, v), 0);
    assert_int_equal(matrix_load(&m, &start, NULL), PL_OK);
    compare_to_scratch(&m, seed, 0);
    for (unsigned move = 1; move <= MOVES; move++) {
        matrix_change change;
        if (!moves_pick(&m, &options, &random, &change)) continue;
        bool hurried = recompute_random_one_in(&random, 3);
        if (hurried)
            apply_in_time(&m, &change, recompute_random_below(&random, 1000));
        else
            assert_int_equal(matrix_apply(&m, &change, NULL), PL_OK);
        if (!hurried && recompute_random_one_in(&random, 3)) matrix_undo(&m, &change);
        compare_to_scratch(&m, seed, move);
        compare_to_sequence(&g, &m, seed, move);
    }
    recompute_sequence_deinit(&start);
    matrix_deinit(&m);
    recompute_graph_deinit(&g);
}

static void test_changes(void **state)
{
    (void)state;
    for (uint64_t k = 0; k < PROBLEMS; k++) walk(first_seed + k);
    assert_true(cut_moves > PROBLEMS);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes)};
    first_seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
