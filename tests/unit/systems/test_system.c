/* The rows of systems: every system can be trained or at least run, its jobs fit what the table of commands says of
 * them, and which jobs a command has follows from the config and the data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/program.h"
#include "systems/system.h"

static const pl_system *const systems[] = {
#define PL_SYSTEM_ROW(id, name) &pl_system_##name,
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
};

static bool runs(const pl_job *job, const char *program)
{
    for (size_t k = 0; k < PL_JOB_PROGRAMS_MAX && job->program[k]; k++)
        if (strcmp(job->program[k], program) == 0) return true;
    return false;
}

static void rows_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        const pl_system *y = systems[i];
        size_t jobs = 0;
        assert_true(y->words.item && y->words.items && y->words.sample && y->words.samples && y->words.rate);
        assert_true(y->words.data && y->dataset[0]);
        for (int d = 0; y->dataset[d]; d++) assert_true(y->dataset[d]->open && (d == 0 || y->dataset[d]->is_meant));
        for (int c = 0; c < PL_COMMAND_COUNT; c++) {
            const pl_job *job = y->task->job[c];
            if (!job) continue;
            jobs++;
            assert_true(job->program[0] && job->run && job->state_bytes > 0);
            assert_true(!job->staging == !job->staging_bytes);
            if (pl_command_does((pl_command)c, PL_USES_GRADIENT)) assert_true(runs(job, "init") && runs(job, "train"));
        }
        assert_true(jobs > 0);
    }
}

/* The jobs of a training: it alone, with an evaluation where there is a part for it, with samples where they are asked
 * for. */
static void jobs_follow_from_config_and_data(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_job_list list;
    pl_config *c = pl_config_create();
    assert_non_null(c);
    for (int k = 0; k < 4; k++) {
        pl_source source = {.steps_per_epoch = {10, k & 1 ? 2 : 0}};
        pl_data data = {.source = &source};
        c->train.sample_every = k & 2;
        assert_int_equal(pl_system_find_jobs(c, PL_COMMAND_TRAIN, &data, &list, &err), PL_OK);
        assert_int_equal(list.count, 1 + (k & 1) + (k >> 1));
        assert_true(list.job[0] == &pl_job_train);
        if (k & 1) assert_true(list.job[1] == &pl_job_evaluate);
        if (k & 2) assert_true(list.job[list.count - 1] == &pl_job_generate);
        assert_int_equal(pl_system_find_jobs(c, PL_COMMAND_GRADIENTS, &data, &list, &err), PL_OK);
        assert_int_equal(list.count, 1);
    }
    pl_config_destroy(c);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_whole),
                                       cmocka_unit_test(jobs_follow_from_config_and_data)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
