/* The judge against a plain quadratic one: random offsets in little room, good placements with one buffer moved onto
 * another, and 100,000 buffers alive at once, judged in time. A failure prints the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "cases.h"
#include "support/program.h"

enum { PROBLEMS = 20000, PLANTED = 200, ROWS = 100000 };

static place_case one;

static bool share(const place_case *c, size_t i, size_t j)
{
    const pl_place_buffer *a = &c->buffers[i], *b = &c->buffers[j];
    return i != j && a->size && b->size && a->lower < b->upper && b->lower < a->upper &&
           c->offsets[i] < c->offsets[j] + b->size && c->offsets[j] < c->offsets[i] + a->size;
}

static bool any_share(const place_case *c)
{
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = 0; j < i; j++)
            if (share(c, i, j)) return true;
    return false;
}

/* Told of a placement without other faults: right, and the pair that it names is one that shares. */
static void check(const place_case *c, uint64_t seed)
{
    pl_place_problem problem = case_problem(c);
    pl_error err = {0};
    uint64_t peak = 1, expected = 0;
    size_t i, j;
    bool bad = any_share(c);
    pl_status status = pl_place_validate(&problem, c->offsets, &peak, &err);
    if (status != (bad ? PL_E_INTERNAL : PL_OK))
        fail_msg("seed %llu: %s, said %s", (unsigned long long)seed, bad ? "shares bytes" : "is right", err.text);
    for (size_t k = 0; k < c->count; k++)
        if (c->buffers[k].size && c->offsets[k] + c->buffers[k].size > expected)
            expected = c->offsets[k] + c->buffers[k].size;
    if (!bad && peak != expected) fail_msg("seed %llu: another peak", (unsigned long long)seed);
    if (!bad) return;
    if (sscanf(err.text, "placement: buffers %zu b%*u and %zu b%*u are alive", &i, &j) != 2 || i >= j ||
        j >= c->count || !share(c, i, j))
        fail_msg("seed %llu: \"%s\" names the wrong ones", (unsigned long long)seed, err.text);
}

static void test_random_offsets(void **state)
{
    (void)state;
    unsigned bad = 0;
    for (uint64_t seed = 1; seed <= PROBLEMS; seed++) {
        case_small(&one, seed, 12);
        for (size_t i = 0; i < one.count; i++) {
            uint64_t room = case_random(&one, 3) ? 200 : 20;
            one.buffers[i].alignment = 1, one.buffers[i].fixed_offset = PL_PLACE_NONE;
            one.offsets[i] = case_random(&one, room);
        }
        bad += any_share(&one);
        check(&one, seed);
    }
    assert_true(bad > PROBLEMS / 10 && bad < PROBLEMS * 9 / 10);
}

static void test_planted_overlaps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= PLANTED; seed++) {
        case_begin(&one, seed);
        case_large(&one, seed, 300);
        pl_place_problem problem = case_problem(&one);
        pl_place_options options = pl_place_options_default();
        options.exact = options.squeaky_wheel = false;
        pl_place_solution s = {.offsets = one.offsets};
        pl_error err = {0};
        assert_int_equal(pl_place(&problem, &options, &s, &err), PL_OK);
        check(&one, seed);
        size_t i = case_random(&one, one.count), j = case_random(&one, one.count);
        while (i == j || one.buffers[i].lower >= one.buffers[j].upper || one.buffers[j].lower >= one.buffers[i].upper)
            i = (i + 1) % one.count, j = i == j ? (j + 1) % one.count : j;
        one.offsets[i] = one.offsets[j] + case_random(&one, one.buffers[j].size); /* its first byte is j's */
        assert_true(any_share(&one));
        check(&one, seed);
    }
}

static void test_many_rows(void **state)
{
    (void)state;
    pl_place_buffer *b = pl_alloc(ROWS, sizeof *b);
    uint64_t *offsets = pl_alloc(ROWS, sizeof *offsets), peak;
    assert_true(b && offsets);
    for (size_t i = 0; i < ROWS; i++) {
        size_t place = i * 31 % ROWS; /* in no order of time or offset */
        b[place] = pl_place_buffer_make(i, ROWS + i * 17 % ROWS, 64);
        offsets[place] = i * 7 % ROWS * 64;
    }
    pl_place_problem problem = {b, ROWS, PL_PLACE_NONE};
    pl_error err = {0};
    clock_t began = clock();
    assert_int_equal(pl_place_validate(&problem, offsets, &peak, &err), PL_OK);
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("%d rows alive at once, judged in %.3f s\n", ROWS, seconds);
    assert_int_equal(peak, (uint64_t)ROWS * 64);
    assert_true(seconds < 1);
    offsets[ROWS / 3] += 1;
    assert_int_equal(pl_place_validate(&problem, offsets, &peak, &err), PL_E_INTERNAL);
    pl_free(offsets);
    pl_free(b);
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    case_small(&one, 3, 12);
    pl_place_problem problem = case_problem(&one);
    for (size_t i = 0; i < one.count; i++) {
        one.buffers[i].alignment = 1, one.buffers[i].fixed_offset = PL_PLACE_NONE;
        one.offsets[i] = i * 1000;
    }
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_error err = {0};
        uint64_t live = pl_alloc_live_blocks();
        pl_alloc_fail_at(n, 0);
        status = pl_place_validate(&problem, one.offsets, NULL, &err);
        pl_alloc_fail_at(0, 0);
        assert_int_equal(pl_alloc_live_blocks(), live);
        if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM), assert_true(err.text[0] != 0);
        assert_true(n < 100);
        assert_true(status != PL_OK || n > 2);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_offsets), cmocka_unit_test(test_planted_overlaps),
                                       cmocka_unit_test(test_many_rows),
                                       cmocka_unit_test(test_every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
