/* What is found out about a graph before any search, against its definition: the floor of what is kept, and the order
 * that keeps little alive. A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "cases.h"
#include "plan/recompute/graph.h"
#include "support/program.h"
#include "support/seed.h"

enum { PROBLEMS = 150, NODES_MAX = 400 };

static recompute_case one;
static uint64_t first_seed;

static void make(uint64_t seed)
{
    case_begin(&one, seed);
    if (seed % 3 == 0)
        case_layers(&one, 4 + (uint32_t)case_random(&one, 12), 2 + (uint32_t)case_random(&one, 20), 3, 4);
    else if (seed % 3 == 1)
        case_random_graph(&one, 4 + (uint32_t)case_random(&one, 150));
    else
        case_blocks(&one, 1 + (uint32_t)case_random(&one, 12), 1 + case_random(&one, 3));
    uint64_t share = 1 + case_random(&one, 9); /* at one in one more than 64 are kept: batches */
    for (size_t v = 0; v < one.count; v++) one.nodes[v].keep = case_random(&one, share) == 0;
    if (seed % 5 == 0)
        for (size_t v = 0; v < one.count; v++) one.nodes[v].keep = false;
    one.fixed = case_random(&one, 10);
}

static void mark_ancestors(uint32_t v, bool *behind)
{
    for (size_t k = 0; k < one.nodes[v].dep_count; k++) {
        uint32_t d = one.nodes[v].deps[k];
        if (behind[d]) continue;
        behind[d] = true;
        mark_ancestors(d, behind);
    }
}

/* While v runs, its inputs are there, and all kept nodes that ran before because it needs them. */
static uint64_t needs(uint32_t v)
{
    bool behind[NODES_MAX] = {false};
    uint64_t bytes = one.fixed + one.nodes[v].size + one.nodes[v].work;
    mark_ancestors(v, behind);
    for (uint32_t d = 0; d < v; d++) behind[d] &= one.nodes[d].keep;
    for (size_t k = 0; k < one.nodes[v].dep_count; k++) behind[one.nodes[v].deps[k]] = true;
    for (uint32_t d = 0; d < v; d++) bytes += behind[d] ? one.nodes[d].size : 0;
    return bytes;
}

static void check_floor(const recompute_graph *g, uint64_t seed)
{
    uint64_t floor = one.fixed;
    for (uint32_t v = 0; v < one.count; v++) floor += one.nodes[v].keep ? one.nodes[v].size : 0;
    for (uint32_t v = 0; v < one.count; v++)
        if (needs(v) > floor) floor = needs(v);
    if ((uint64_t)g->floor != floor)
        fail_msg("seed %" PRIu64 ": floor %" PRId64 ", not %" PRIu64, seed, g->floor, floor);
}

/* By how much running v now lets the bytes grow: what it leaves, less the inputs that nobody else waits for. */
static int64_t growth(uint32_t v, const bool *ran)
{
    bool read = one.nodes[v].keep;
    for (uint32_t u = v + 1; u < one.count; u++)
        for (size_t k = 0; k < one.nodes[u].dep_count; k++) read |= one.nodes[u].deps[k] == v;
    int64_t bytes = read ? (int64_t)one.nodes[v].size : 0;
    for (size_t k = 0; k < one.nodes[v].dep_count; k++) {
        uint32_t d = one.nodes[v].deps[k];
        bool wanted = one.nodes[d].keep;
        for (uint32_t u = 0; u < one.count; u++)
            for (size_t i = 0; i < one.nodes[u].dep_count; i++)
                wanted |= u != v && !ran[u] && one.nodes[u].deps[i] == d;
        if (!wanted) bytes -= (int64_t)one.nodes[d].size;
    }
    return bytes;
}

static bool is_ready(uint32_t v, const bool *ran)
{
    for (size_t k = 0; k < one.nodes[v].dep_count; k++)
        if (!ran[one.nodes[v].deps[k]]) return false;
    return !ran[v];
}

static void check_order(const recompute_graph *g, uint64_t seed)
{
    uint32_t order[NODES_MAX];
    bool ran[NODES_MAX] = {false};
    pl_error err = {0};
    assert_int_equal(recompute_order_low_peak(g, order, &err), PL_OK);
    for (size_t t = 0; t < one.count; t++) {
        uint32_t best = RECOMPUTE_NO_NODE;
        for (uint32_t v = 0; v < one.count; v++)
            if (is_ready(v, ran) && (best == RECOMPUTE_NO_NODE || growth(v, ran) < growth(best, ran))) best = v;
        if (order[t] != best)
            fail_msg("seed %" PRIu64 ": %" PRIu32 " runs at place %zu, not %" PRIu32, seed, order[t], t, best);
        ran[best] = true;
    }
}

static void test_graph(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + PROBLEMS; seed++) {
        recompute_graph g;
        pl_error err = {0};
        make(seed);
        if (one.count > NODES_MAX) continue;
        pl_recompute_problem problem = case_problem(&one, 0);
        assert_int_equal(recompute_graph_init(&g, &problem, &err), PL_OK);
        check_floor(&g, seed);
        if (one.count <= 100) check_order(&g, seed);
        recompute_graph_deinit(&g);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph)};
    first_seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
