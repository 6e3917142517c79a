/* Small random problems through all combinations of switches, against the validator and an exhaustive solver; the order
 * of the rows must not matter. A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "support/program.h"

enum { PROBLEMS = 150, MOST = 7, ORACLE_PROBLEMS_OF_8 = 4, ALL_EXACT = 1023 };

static place_case one, other;

/* --- the oracle: every permutation, each buffer at its lowest free offset, the fixed ones first. It contains the
 * permutation that sorts an optimal placement by offset, in which nobody ends higher than there. --- */

static bool free_at(const place_case *c, const bool *done, size_t i, uint64_t at)
{
    const pl_place_buffer *b = &c->buffers[i];
    for (size_t j = 0; j < c->count; j++) {
        const pl_place_buffer *o = &c->buffers[j];
        if (j == i || !done[j] || !o->size || o->lower >= b->upper || b->lower >= o->upper) continue;
        if (at < c->offsets[j] + o->size && c->offsets[j] < at + b->size) return false;
    }
    return true;
}

static void exhaust(place_case *c, bool *done, uint64_t peak, uint64_t *best)
{
    bool any = false;
    if (peak >= *best) return;
    for (size_t i = 0; i < c->count; i++) {
        if (done[i]) continue;
        any = true;
        uint64_t at = 0;
        while (!free_at(c, done, i, at)) at += c->buffers[i].alignment;
        c->offsets[i] = at;
        done[i] = true;
        uint64_t top = at + c->buffers[i].size;
        exhaust(c, done, top > peak ? top : peak, best);
        done[i] = false;
    }
    if (!any) *best = peak;
}

static uint64_t optimum(place_case *c)
{
    bool done[16] = {false};
    uint64_t best = UINT64_MAX, peak = 0;
    for (size_t i = 0; i < c->count; i++) {
        const pl_place_buffer *b = &c->buffers[i];
        done[i] = b->fixed_offset != PL_PLACE_NONE || !b->size;
        c->offsets[i] = b->fixed_offset != PL_PLACE_NONE ? b->fixed_offset : 0;
        if (done[i] && b->size && c->offsets[i] + b->size > peak) peak = c->offsets[i] + b->size;
    }
    exhaust(c, done, peak, &best);
    return best;
}

/* --- */

static void fail_case(uint64_t seed, unsigned switches, const char *what)
{
    printf("seed %llu, switches %#x: %s\n", (unsigned long long)seed, switches, what);
    fail();
}

static pl_place_solution solve(place_case *c, const pl_place_options *options, uint64_t seed, unsigned switches)
{
    pl_place_problem problem = case_problem(c);
    pl_place_solution s = {.offsets = c->offsets};
    pl_error err = {0};
    uint64_t peak;
    if (pl_place(&problem, options, &s, &err) != PL_OK) fail_case(seed, switches, err.text);
    if (pl_place_validate(&problem, s.offsets, &peak, &err) != PL_OK) fail_case(seed, switches, err.text);
    if (peak != s.peak) fail_case(seed, switches, "the peak told is not the peak");
    if (s.lower_bound > s.peak) fail_case(seed, switches, "the lower bound is above the peak");
    return s;
}

static pl_place_options exact_options(unsigned m)
{
    return (pl_place_options){.exact = true,
                              .time_decomposition = m & 1,
                              .floor_rise = m & 2,
                              .section_bound = m & 4,
                              .dominance = m & 8,
                              .twins = m & 16,
                              .memo = m & 32,
                              .dynamic_decomposition = m & 64,
                              .fewest_answers = m & 128,
                              .failure_weights = m & 256,
                              .restarts = m & 512,
                              .work_limit = PL_PLACE_NONE};
}

static pl_place_options greedy_options(unsigned m)
{
    return (pl_place_options){.by_size = m & 1,
                              .by_area = m & 2,
                              .by_duration = m & 4,
                              .by_birth = m & 8,
                              .by_conflicts = m & 16,
                              .first_fit = m & 32,
                              .best_fit = m & 64,
                              .skyline = m & 128,
                              .squeaky_wheel = m & 256,
                              .by_class = m & 9,
                              .by_moment = m & 5,
                              .time_decomposition = m & 1,
                              .work_limit = 20000};
}

static void check_case(place_case *c, uint64_t seed)
{
    uint64_t best = optimum(c);
    for (unsigned m = 0; m <= ALL_EXACT; m++) {
        pl_place_options options = exact_options(m);
        pl_place_solution s = solve(c, &options, seed, m);
        if (s.peak != best) fail_case(seed, m, s.peak > best ? "exact, but above the optimum" : "below the optimum");
        if (!s.optimal) fail_case(seed, m, "searched to the end, but not called optimal");
        if (s.lower_bound > best) fail_case(seed, m, "the lower bound is above the optimum");
    }
    for (unsigned m = 0; m < 512; m++) {
        pl_place_options options = greedy_options(m);
        pl_place_solution s = solve(c, &options, seed, m);
        if (s.peak < best) fail_case(seed, m, "below the optimum");
        if (s.optimal && s.peak != best) fail_case(seed, m, "called optimal, but is not");
    }
}

static void test_all_switches(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        case_small(&one, seed, seed <= ORACLE_PROBLEMS_OF_8 ? 8 : 1 + seed % MOST);
        check_case(&one, seed);
    }
}

/* Many more problems of up to 7, with everything on and one switch off at a time. */
static void test_more_problems(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 2500; seed++) {
        case_small(&one, seed, 6);
        uint64_t best = optimum(&one);
        for (unsigned bit = 0; bit <= 10; bit++) {
            unsigned m = ALL_EXACT & ~(1u << bit);
            pl_place_options options = exact_options(m);
            pl_place_solution s = solve(&one, &options, seed, m);
            if (s.peak != best || !s.optimal) fail_case(seed, m, "not the optimum");
        }
    }
}

/* Too many buffers for the oracle: all cuts together must agree with few of them. */
static void test_cuts_agree(void **state)
{
    (void)state;
    for (uint64_t seed = 5000; seed < 5400; seed++) {
        case_small(&one, seed, 13);
        pl_place_options all = exact_options(ALL_EXACT), few = exact_options(2 | 4 | 16);
        uint64_t peak = solve(&one, &few, seed, 0).peak;
        if (solve(&one, &all, seed, ALL_EXACT).peak != peak)
            fail_case(seed, ALL_EXACT, "another optimum than with few cuts");
        case_tiling(&one, seed, 12, 12 << 10, 20);
        for (size_t i = 0; i < one.count; i++)
            one.buffers[i].size += 64 * case_random(&one, 8); /* no longer a tiling */
        peak = solve(&one, &few, seed, 0).peak;
        if (solve(&one, &all, seed, ALL_EXACT).peak != peak)
            fail_case(seed, ALL_EXACT, "another optimum than with few cuts");
    }
}

static void test_capacity(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        case_small(&one, seed, 6);
        uint64_t best = optimum(&one);
        pl_place_problem problem = case_problem(&one);
        pl_place_solution s = {.offsets = one.offsets};
        pl_place_options options = pl_place_options_default();
        pl_error err = {0};
        problem.capacity = best;
        if (pl_place(&problem, &options, &s, &err) != PL_OK || s.verdict != PL_PLACE_FITS) fail_case(seed, 0, err.text);
        if (best == 0) continue;
        problem.capacity = best - 1;
        if (pl_place(&problem, &options, &s, &err) != PL_E_BUDGET)
            fail_case(seed, 0, "a capacity below the optimum was met");
        if (s.verdict != PL_PLACE_IMPOSSIBLE || s.peak != best)
            fail_case(seed, 0, "not proven, or not the best all the same");
    }
}

/* --- the order of the rows --- */

static void shuffle(const place_case *from, place_case *to, uint64_t seed, size_t *origin)
{
    case_begin(to, seed);
    to->count = from->count;
    for (size_t i = 0; i < from->count; i++) origin[i] = i;
    for (size_t i = from->count; i > 1; i--) {
        size_t j = case_random(to, i), kept = origin[i - 1];
        origin[i - 1] = origin[j], origin[j] = kept;
    }
    for (size_t i = 0; i < from->count; i++) to->buffers[i] = from->buffers[origin[i]];
}

static void check_shuffled(uint64_t seed, const pl_place_options *options)
{
    static size_t origin[CASE_MAX];
    pl_place_solution first = solve(&one, options, seed, 0);
    for (uint64_t k = 0; k < 3; k++) {
        shuffle(&one, &other, seed + k, origin);
        pl_place_solution again = solve(&other, options, seed, 0);
        if (again.nodes != first.nodes || again.work != first.work)
            fail_case(seed, 0, "another search for another order");
        for (size_t i = 0; i < one.count; i++)
            if (other.offsets[i] != one.offsets[origin[i]]) fail_case(seed, 0, "another placement for another order");
    }
}

static void test_row_order(void **state)
{
    (void)state;
    pl_place_options options = pl_place_options_default();
    options.work_limit = 30000000;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        case_small(&one, seed, 12);
        check_shuffled(seed, &options);
    }
    for (uint64_t seed = 1; seed <= 6; seed++) {
        case_tiling(&one, seed, 120, 1 << 20, 10);
        check_shuffled(seed, &options);
    }
    case_large(&one, 1, 2000);
    check_shuffled(1, &options);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_switches), cmocka_unit_test(test_more_problems),
                                       cmocka_unit_test(test_cuts_agree), cmocka_unit_test(test_capacity),
                                       cmocka_unit_test(test_row_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
