/* The rate of all stages together: known cases, and what no rate may be above. Oracle: figures by hand, and that work
 * takes as much time of cores as it takes. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/advise.h"
#include "base/philox.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 20000 };
static uint64_t seed;

static void known_cases(void **state)
{
    (void)state;
    static const struct {
        double fill, fill_cores, work, work_cores, write, write_cores, cores;
        uint32_t fillers;
        double seconds; /* of a sample */
    } known[] = {
        {-1, 0, 1, 2, -1, 0, 2, 1, 1},        /* computing alone */
        {-1, 0, 1, 2, 4, 1, 2, 1, 1.25},      /* a copy takes a quarter as long */
        {-1, 0, 1, 2, 4, 0.5, 2, 1, 1.125},   /* half of which the disk is waited for, next to the work */
        {-1, 0, 1, 2, 0.5, 0.1, 2, 1, 2},     /* a disk that is slower than the work */
        {4, 1, 1, 2, -1, 0, 4, 1, 1},         /* filling in a core that is free */
        {4, 1, 1, 2, -1, 0, 2, 1, 1.25},      /* at the team's expense */
        {4, 0.5, 1, 2, -1, 0, 2, 1, 1.125},   /* which waits for a disk half of the time */
        {0.5, 1, 1, 2, -1, 0, 4, 1, 2},       /* filling is the slowest */
        {2 / 1.8, 2, 1, 3, -1, 0, 4, 2, 1.4}, /* of two fillers one has a core */
        {1, 8, 1, 1, -1, 0, 4, 8, 2.25},      /* eight on the three that are left */
        {4, 1, 1, 0.5, -1, 0, 0.5, 1, 1.5},   /* half a core for all */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const pl_advice_stage stage[PL_ADVICE_STAGES] = {
            {.threads = known[i].fillers, .per_second = known[i].fill, .cores = known[i].fill_cores},
            {.threads = 4, .per_second = known[i].work, .cores = known[i].work_cores},
            {.threads = 1, .per_second = known[i].write, .cores = known[i].write_cores}};
        const double rate = pl_advice_rate(stage, known[i].cores);
        if (fabs(rate * known[i].seconds - 1) > 1e-9)
            fail_msg("case %zu: %g s a sample, not %g", i, 1 / rate, known[i].seconds);
    }
    const pl_advice_stage unknown[PL_ADVICE_STAGES] = {{.threads = 1, .per_second = 1}, {.per_second = -1}};
    assert_true(pl_advice_rate(unknown, 2) < 0);
}

static void no_more_than_the_cores_have_time_for(void **state)
{
    (void)state;
    const pl_philox random = pl_philox_init(seed, pl_stream_id("advice"));
    for (uint64_t i = 0; i < CASES; i++) {
        double u[8], busy = 0;
        uint32_t bits[8];
        pl_philox_block(&random, 0, i, 0, bits);
        pl_philox_block(&random, 0, i, 1, bits + 4);
        for (int k = 0; k < 8; k++) u[k] = pl_uniform_f32(bits[k]);
        const double cores = 0.25 + 8 * u[0];
        pl_advice_stage stage[PL_ADVICE_STAGES] = {
            {.threads = 1 + (uint32_t)(8 * u[1]), .per_second = 0.1 + 4 * u[2]},
            {.threads = 1 + (uint32_t)(8 * u[3]), .per_second = 0.1 + 4 * u[4]},
            {.threads = 1, .per_second = 0.1 + 4 * u[5], .cores = u[6] * fmin(1, cores)}};
        stage[PL_ADVICE_FILL].cores = u[7] * fmin(stage[PL_ADVICE_FILL].threads, cores);
        stage[PL_ADVICE_WORK].cores = fmin(stage[PL_ADVICE_WORK].threads, cores);
        const double rate = pl_advice_rate(stage, cores);
        for (int k = 0; k < PL_ADVICE_STAGES; k++) {
            assert_true(rate <= stage[k].per_second * (1 + 1e-12));
            busy += stage[k].cores / stage[k].per_second;
        }
        if (rate * busy > cores * (1 + 1e-9))
            fail_msg("seed %" PRIu64 ", case %" PRIu64 ": %g cores are busy of %g", seed, i, rate * busy, cores);
        assert_true(pl_advice_rate(stage, cores + u[6]) >= rate * (1 - 1e-12));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_cases),
                                       cmocka_unit_test(no_more_than_the_cores_have_time_for)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
