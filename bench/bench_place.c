/* bench_place [--brief] [FILE.csv…]: processor seconds and peak / lower bound of the placer, one line a problem. Its
 * own classes: tilings with a known optimum (of the kind of scratchpads of accelerators, on which greedy orders end far
 * above the bound; the column `greedy` says how far), and 20,000 buffers. Files are measured besides. With --brief
 * (bench.h) the search is cut short, and of the 20,000 there are 5,000. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../tests/property/place/cases.h"
#include "bench.h"

static place_case own;

static double run(const pl_place_problem *problem, bool greedy_only, uint64_t *offsets, pl_place_solution *s)
{
    pl_place_options options = pl_place_options_default();
    pl_error err = {0};
    options.work_limit = greedy_only ? 1 << 20 : bench_is_brief() ? 5000000 : UINT64_C(6000000000);
    if (greedy_only) options.exact = options.squeaky_wheel = options.skyline = false;
    *s = (pl_place_solution){.offsets = offsets};
    clock_t begin = clock();
    pl_status status = pl_place(problem, &options, s, &err);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (status == PL_OK) status = pl_place_validate(problem, offsets, NULL, &err);
    if (status != PL_OK) printf("%s\n", err.text);
    return status == PL_OK ? seconds : -1;
}

/* Where nothing is alive, 0 of 0 bytes is all that is needed. */
static double ratio(uint64_t peak, uint64_t bound) { return bound ? (double)peak / (double)bound : 1; }

static int measure(const char *name, const pl_place_problem *problem, uint64_t *offsets)
{
    pl_place_solution greedy, best;
    if (run(problem, true, offsets, &greedy) < 0) return 1;
    double seconds = run(problem, false, offsets, &best);
    if (seconds < 0) return 1;
    printf("%-34s %7zu  %7.4f  %7.4f  %-7s %9.3f  %s\n", name, problem->buffer_count,
           ratio(greedy.peak, best.lower_bound), ratio(best.peak, best.lower_bound), best.optimal ? "proven" : "open",
           seconds, best.heuristic);
    fflush(stdout);
    return 0;
}

static int measure_file(const char *path)
{
    static uint64_t offsets[1 << 20];
    pl_place_table *table;
    pl_error err = {0};
    if (pl_place_table_read(path, &table, &err) != PL_OK) return printf("%s\n", err.text), 1;
    pl_place_problem problem = pl_place_table_problem(table);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    int failed = problem.buffer_count > sizeof offsets / sizeof *offsets;
    if (failed)
        printf("%s: %zu buffers, more than are measured\n", path, problem.buffer_count);
    else
        failed = measure(name, &problem, offsets);
    pl_place_table_destroy(table);
    return failed;
}

static int measure_own(void)
{
    static const unsigned pieces[] = {150, 200, 250, 300, 350, 400, 450}, drops[] = {15, 30};
    char name[64];
    int failed = 0;
    for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
        for (size_t d = 0; d < 2; d++) {
            snprintf(name, sizeof name, "tiling of %u less %u %%", pieces[k], drops[d]);
            case_tiling(&own, 7 * k + d, pieces[k], 1 << 20, drops[d]);
            pl_place_problem problem = case_problem(&own);
            failed |= measure(name, &problem, own.offsets);
        }
    }
    case_large(&own, 3, bench_is_brief() ? 5000 : 20000);
    pl_place_problem problem = case_problem(&own);
    return failed | measure("large program", &problem, own.offsets);
}

int main(int argc, char **argv)
{
    int failed = 0;
    bench_begin(&argc, argv, "bench_place [--brief] [FILE.csv…]");
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-') return bench_refuse();
    printf("%-34s %7s  %7s  %7s  %-7s %9s\n", "problem", "buffers", "greedy", "peak", "optimum", "seconds");
    for (int i = 1; i < argc; i++) failed |= measure_file(argv[i]);
    return failed | measure_own();
}
