/* The shares of a team cover everything once, and sharing out asks for no memory once the team stands. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "support/guarded.h"
#include "support/program.h"

/* of OpenMP, which the backend links */
void omp_set_dynamic(int);
void omp_set_max_active_levels(int);

static void test_ranges_cover(void **state)
{
    (void)state;
    for (int64_t count = 0; count < 70; count++)
        for (int64_t grain = 1; grain < 20; grain += 3)
            for (int parts = 1; parts < 70; parts += 4) {
                int64_t next = 0;
                for (int part = 0; part < parts; part++) {
                    pl_range r = pl_range_of_part(count, grain, part, parts);
                    assert_true(r.begin == next && r.end >= r.begin);
                    assert_true(r.end % grain == 0 || r.end == count);
                    next = r.end;
                }
                assert_true(next == count);
            }
}

static void mark(const void *work, int part, int parts)
{
    int *seen = *(int *const *)work;
    seen[part]++;
    seen[64 + part] = parts;
    pl_barrier();
}

static void test_all_parts_run(void **state)
{
    (void)state;
    static const int threads[] = {1, 2, 8, 64};
    for (int t = 0; t < 4; t++)
        for (int large = 0; large < 2; large++) {
            int seen[128] = {0}, *work = seen, expected = large ? threads[t] : 1;
            pl_parallel((pl_team){threads[t], PL_ISA_REF}, large ? PL_SERIAL_BELOW_ELEMS : 1, mark, &work);
            assert_true(seen[64] >= 1 && seen[64] <= expected);
            for (int part = 0; part < 64; part++) assert_true(seen[part] == (part < seen[64]));
        }
}

/* Small calls stay outside of any region: a team of one would make libgomp drop the large one and build it again.
 * Runs first: threads of a larger team before it would give their memory back at some moment of their own. */
static void test_no_memory_is_asked_for(void **state)
{
    (void)state;
    enum { SMALL = 100, LARGE = 100000 };
    omp_set_dynamic(0); /* as in a runner: else the machine's load, or the environment, decides how large a team is */
    omp_set_max_active_levels(1);
    pl_team team = {4, pl_isa_of_machine()};
    float *x = guarded_normal(LARGE, 1);
    double sum = 0;
    void *workspace = guarded_bytes(4096, 0);
    pl_sum_squares_call large = {LARGE, x, &sum}, small = {SMALL, x, &sum};
    pl_sum_squares_exec(&large, workspace, team);
    struct mallinfo2 before = mallinfo2();
    for (int i = 0; i < 50; i++) pl_sum_squares_exec(i % 2 ? &large : &small, workspace, team);
    struct mallinfo2 after = mallinfo2();
    assert_true(after.uordblks == before.uordblks && after.hblkhd == before.hblkhd && after.arena == before.arena);
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory_is_asked_for),
                                       cmocka_unit_test(test_ranges_cover), cmocka_unit_test(test_all_parts_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
