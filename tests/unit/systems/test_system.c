/* The rows of systems: every system can be trained or at least run, its jobs fit what the table of commands says of
 * them, and which jobs a command has follows from the config and the data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "config/schema.h"
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

static void set(pl_config *c, const char *key, const char *value)
{
    pl_error err = {0};
    if (pl_config_set(c, key, value, "test", &err) != PL_OK) fail_msg("%s", err.text);
}

/* The row that these words of a config mean. */
static const pl_dataset *dataset_of(const char *arch, const char *samples, pl_command command)
{
    pl_config *c = pl_config_create();
    assert_non_null(c);
    set(c, "model.arch", arch);
    if (samples) set(c, "samples_from", samples);
    const pl_dataset *d = pl_dataset_of(c, command);
    assert_true(command != pl_system_first_command(c) || d == pl_dataset_of_run(c));
    pl_config_destroy(c);
    return d;
}

static void a_config_and_its_command_mean_one_dataset(void **state)
{
    (void)state;
    const pl_dataset *pages = dataset_of("hybrid", NULL, PL_COMMAND_TRAIN),
                     *texts = dataset_of("hybrid", NULL, PL_COMMAND_ENCODE),
                     *flights = dataset_of("clouds", "flights", PL_COMMAND_TRAIN),
                     *arrays = dataset_of("clouds", "arrays", PL_COMMAND_TRAIN);
    assert_true(pages != texts && pages->open != texts->open && flights != arrays);
    assert_true(!pages->prepare && !pages->check_folder && texts->prepare && texts->check_folder);
    const pl_command others[] = {PL_COMMAND_EVALUATE, PL_COMMAND_GRADIENTS, PL_COMMAND_QUANTIZE, PL_COMMAND_INFER};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_ptr_equal(dataset_of("hybrid", NULL, others[i]), pages);
        assert_ptr_equal(dataset_of("clouds", "flights", others[i]), flights);
        assert_ptr_equal(dataset_of("clouds", "arrays", others[i]), arrays);
    }
}

/* Of the datasets, those files that stand in folders which exist: by how they begin, or by their names. */
static void files_of_data_are_known(void **state)
{
    (void)state;
    static const char *const heads[] = {"PLMTOKEN\1", "PLMTEXTS\1", "PLMFRAME\2", "plimsoll staged"};
    static const char *const others[] = {"", "PLMTOKE", "PLMtoken\1", "PLBLOCKS", "plimsoll stage"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        assert_true(pl_system_data.is_prepared(heads[i], strlen(heads[i])));
        assert_false(pl_system_data.is_prepared(heads[i], 7));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(pl_system_data.is_prepared(others[i], strlen(others[i])));
    assert_true(pl_system_data.is_record("tokenizer.json"));
    assert_false(pl_system_data.is_record("tokens.bin") || pl_system_data.is_record("config.yaml"));
    assert_true(pl_run_file_is_record("tokenizer.json", &pl_system_data) &&
                pl_run_file_is_record("config.yaml", &pl_system_data));
    assert_false(pl_run_file_is_record("tokens.bin", &pl_system_data));
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

/* ---- several trainings ---- */

/* Each has a name of its own, says only what the schema has, and begins with one of the others. */
static void check_stages(const pl_config *c, size_t count)
{
    pl_stage_row row, other;
    uint32_t rows = 0, made = 0;
    const pl_task *t = pl_task_of(c);
    for (; t->stage(c, rows, &row); rows++) {
        bool begins = !row.begins_with[0];
        assert_true(row.name[0] && row.what && row.sets > 0 && row.sets <= PL_STAGE_SETS_MAX);
        for (uint32_t i = 0; i < row.sets; i++)
            if (!pl_config_find(row.set[i].key)) fail_msg("%s sets %s, which is no key", row.name, row.set[i].key);
        for (uint32_t k = 0; t->stage(c, k, &other); k++) {
            assert_true(k == rows || strcmp(row.name, other.name) != 0);
            begins |= strcmp(row.begins_with, other.name) == 0;
        }
        if (!begins) fail_msg("%s begins with %s, which is no stage", row.name, row.begins_with);
        if (row.begins_with[0]) assert_non_null(pl_config_find(row.begin_key));
        assert_int_equal(pl_system_stages_before(c, row.name), row.alone ? 0 : made);
        made += !row.alone;
    }
    assert_int_equal(made, count);
    for (rows = 0; pl_system_find_stage(c, rows, &row);) rows++;
    assert_int_equal(rows, count);
}

static void stages_are_lists_of_overrides(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_stage_row row;
    pl_config *c = pl_config_create();
    assert_non_null(c);
    assert_false(pl_system_find_stage(c, 0, &row)); /* a text is one training */
    set(c, "model.arch", "chain");
    check_stages(c, 5); /* stage-0 to stage-3, and answer */
    set(c, "chain.stages", "0");
    check_stages(c, 0);
    set(c, "model.arch", "hybrid");
    set(c, "n2n_pretrain.enabled", "false");
    set(c, "finetune.enabled", "false");
    check_stages(c, 0);
    set(c, "n2n_pretrain.enabled", "true");
    check_stages(c, 2);
    set(c, "finetune.enabled", "true");
    check_stages(c, 3);
    /* One that is named is all that is made, and the config becomes its own. */
    set(c, "task_training.stage", "policy");
    assert_true(pl_system_find_stage(c, 0, &row) && row.alone && !pl_system_find_stage(c, 1, &row));
    assert_true(pl_system_find_stage(c, 0, &row));
    assert_int_equal(pl_system_take_stage(c, &row, &err), PL_OK);
    assert_true(c->page_policy.only && c->task_training.stage[0] == 0 && c->dataset.denoiser_path[0]);
    assert_true(c->train.steps == c->page_policy.steps && !c->n2n_pretrain.enabled && !c->finetune.enabled);
    set(c, "task_training.stage", "dream");
    assert_int_equal(pl_system_check_stage(c, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "there is no stage dream; they are denoiser, policy, n2n, task and finetune"));
    pl_config_destroy(c);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_whole), cmocka_unit_test(a_config_and_its_command_mean_one_dataset),
        cmocka_unit_test(files_of_data_are_known), cmocka_unit_test(jobs_follow_from_config_and_data),
        cmocka_unit_test(stages_are_lists_of_overrides)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
