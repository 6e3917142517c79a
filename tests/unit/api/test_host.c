/* A host program's run, from a config file that does not name its folder: the plan's text must, because the run knows
 * the config only from there. Oracle: where the files lie, and the loss of the first step, close to ln 256 for
 * bytes; ticks tell the same loss, and before it. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "plimsoll/plimsoll.h"
#include "support/folder.h"
#include "support/program.h"

static const char yaml[] = "model:\n  arch: mlp\n  width: 16\n  layers: 1\n  sequence: 16\n  window: 4\n"
                           "data:\n  text: text.txt\n  tokenizer: bytes\n"
                           "train:\n  batch_size: 4\n  steps: 3\n  log_every: 1\nrun:\n  threads: 1\n";

static double first_loss, told_loss; /* of the first step, as reported and as told at once */
static int ticks_before;             /* before any step was over */

static void hear(void *context, const pl_event *e)
{
    (void)context;
    if (e->kind == PL_EVENT_STEP && e->step == 1) first_loss = e->loss;
    if (e->kind != PL_EVENT_TICK) return;
    assert_true(e->part <= e->parts && e->parts > 0 && e->steps == 3);
    if (e->step == 0) {
        ticks_before++;
        assert_true(isnan(e->loss));
    } else if (e->step == 1 && told_loss == 0) {
        assert_true(first_loss == 0);
        told_loss = e->loss;
    }
}

static pl_io_kind failing;
static char warning[256];
static uint64_t saved;

static void fail_once_committed(void *context, const pl_event *e)
{
    (void)context;
    if (e->kind == PL_EVENT_COMMITTED) pl_io_fail_at(failing, 1, ENOSPC, 0);
    if (e->kind == PL_EVENT_WARNING) snprintf(warning, sizeof warning, "%.*s", (int)e->text_bytes, e->text);
    if (e->kind == PL_EVENT_SAVED) saved = e->step;
}

/* The first file opened then is TensorBoard's, the first write a line of metrics. */
static pl_status train_on_a_full_disk(pl_io_kind kind, pl_error *error)
{
    pl_plan *plan = NULL;
    pl_run *run = NULL;
    pl_run_options options = {.host = true, .listener = fail_once_committed};
    pl_config *config = pl_config_create();
    failing = kind;
    warning[0] = 0;
    saved = 0;
    assert_non_null(config);
    assert_int_equal(pl_config_load_file(config, "small.yaml", error), PL_OK);
    assert_int_equal(pl_config_set(config, "run.out", kind == PL_IO_OPEN ? "a" : "b", "test", error), PL_OK);
    assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, error), PL_OK);
    assert_int_equal(pl_plan_make(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, error), PL_OK);
    pl_config_destroy(config);
    if (pl_run_open(plan, &options, &run, error) != PL_OK) fail_msg("%s", error->text);
    pl_status status = pl_run_train(run, error);
    pl_io_fail_at(kind, 0, 0, 0);
    pl_run_close(run);
    pl_plan_destroy(plan);
    return status;
}

static void a_full_disk_loses_no_step(void **state)
{
    (void)state;
    char folder[] = "/tmp/plimsoll-host-XXXXXX";
    pl_error error = {0};
    assert_int_equal(enter_folder(folder), 0);
    write_file("small.yaml", yaml, 1);
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    assert_int_equal(train_on_a_full_disk(PL_IO_OPEN, &error), PL_OK);
    assert_true(saved == 3 && strstr(warning, "tfevents") && strstr(warning, "goes on without events for TensorBoard"));
    assert_int_equal(train_on_a_full_disk(PL_IO_WRITE, &error), PL_E_STORAGE);
    assert_true(saved == 1 && warning[0] == 0);
    assert_non_null(strstr(error.text, "metrics.jsonl: writing at byte 0 failed: No space left"));
    assert_non_null(strstr(error.text, "step 1 is saved, its line of metrics is lost"));
    assert_int_equal(leave_folder(folder), 0);
}

static void a_host_needs_no_folder_in_its_config(void **state)
{
    (void)state;
    char folder[] = "/tmp/plimsoll-host-XXXXXX";
    pl_error error = {0};
    pl_plan *plan = NULL;
    pl_run *run = NULL;
    pl_run_options options = {.host = true, .listener = hear};
    pl_config *config = pl_config_create();
    assert_non_null(config);
    assert_int_equal(enter_folder(folder), 0);
    write_file("small.yaml", yaml, 1);
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    assert_int_equal(pl_config_load_file(config, "small.yaml", &error), PL_OK);
    assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &error), PL_OK);
    assert_int_equal(pl_plan_make(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, &error), PL_OK);
    pl_config_destroy(config);
    if (pl_run_open(plan, &options, &run, &error) != PL_OK) fail_msg("%s", error.text);
    assert_int_equal(pl_run_train(run, &error), PL_OK);
    pl_run_close(run);
    pl_plan_destroy(plan);
    assert_int_equal(access("runs/small/checkpoints/latest", R_OK), 0);
    assert_true(fabs(first_loss - log(256)) < 0.1);
    assert_true(ticks_before > 0 && told_loss == first_loss);
    assert_int_equal(leave_folder(folder), 0);
}

static pl_plan *plan_in_folder(pl_error *error)
{
    pl_plan *plan = NULL;
    pl_config *config = pl_config_create();
    write_file("small.yaml", yaml, 1);
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    assert_int_equal(pl_config_load_file(config, "small.yaml", error), PL_OK);
    assert_int_equal(pl_config_set(config, "run.out", "out", "test", error), PL_OK);
    assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, error), PL_OK);
    assert_int_equal(pl_plan_make(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, error), PL_OK);
    pl_config_destroy(config);
    return plan;
}

/* Opens, trains and closes; what the first call that fails returns. */
static pl_status train_by(const pl_plan *plan, pl_resume resume, int stop, pl_error *error)
{
    pl_run *run = NULL;
    pl_run_options options = {.host = true, .resume = resume, .stop = &stop};
    pl_status status = pl_run_open(plan, &options, &run, error);
    if (status == PL_OK) status = pl_run_train(run, error);
    pl_run_close(run);
    return status;
}

/* Which of the two is asked of the run, not of the plan. */
static void one_plan_begins_and_goes_on(void **state)
{
    (void)state;
    char folder[] = "/tmp/plimsoll-host-XXXXXX";
    pl_error error = {0};
    assert_int_equal(enter_folder(folder), 0);
    pl_plan *plan = plan_in_folder(&error);
    assert_int_equal(train_by(plan, PL_RESUME_YES, 0, &error), PL_E_DATA);
    assert_non_null(strstr(error.text, "out: holds no checkpoint to go on from"));
    assert_int_not_equal(access("out/config.yaml", F_OK), 0);
    assert_int_equal(train_by(plan, PL_RESUME_AUTO, 1, &error), PL_E_STOPPED);
    assert_int_equal(train_by(plan, PL_RESUME_AS_PLANNED, 0, &error), PL_E_STORAGE);
    assert_int_equal(train_by(plan, PL_RESUME_NO, 0, &error), PL_E_STORAGE);
    assert_non_null(strstr(error.text, "holds a run that is at step 0"));
    if (train_by(plan, PL_RESUME_YES, 0, &error) != PL_OK) fail_msg("%s", error.text);
    assert_int_equal(access("out/checkpoints/step-00000003", F_OK), 0);
    if (train_by(plan, PL_RESUME_AUTO, 0, &error) != PL_OK) fail_msg("%s", error.text);
    pl_plan_destroy(plan);
    assert_int_equal(leave_folder(folder), 0);
}

/* The config that stays says where all is from the root on, and what was chosen; one that no run wrote is let alone. */
static void a_run_keeps_its_config(void **state)
{
    (void)state;
    char folder[] = "/tmp/plimsoll-host-XXXXXX", line[128];
    char *text = NULL;
    pl_error error = {0};
    assert_int_equal(enter_folder(folder), 0);
    pl_plan *plan = plan_in_folder(&error);
    write_file("out/config.yaml", "mine: 1\n", 1);
    assert_int_equal(train_by(plan, PL_RESUME_NO, 0, &error), PL_E_STORAGE);
    assert_non_null(strstr(error.text, "out/config.yaml: exists but belongs to no run"));
    assert_int_equal(pl_file_read_all("out/config.yaml", 1000, &text, NULL, &error), PL_OK);
    assert_string_equal(text, "mine: 1\n");
    pl_free(text);
    assert_int_equal(unlink("out/config.yaml"), 0);
    assert_int_equal(train_by(plan, PL_RESUME_YES, 0, &error), PL_E_DATA);
    assert_int_equal(train_by(plan, PL_RESUME_NO, 0, &error), PL_OK);
    assert_int_equal(pl_file_read_all("out/config.yaml", 100000, &text, NULL, &error), PL_OK);
    assert_int_equal(rename("out/checkpoints", "out/before"), 0); /* to begin anew with the same config is fine */
    assert_int_equal(train_by(plan, PL_RESUME_NO, 0, &error), PL_OK);
    snprintf(line, sizeof line, "text: %s/text.txt\n", folder);
    assert_non_null(strstr(text, line));
    assert_non_null(strstr(text, "micro_batch: 4\n"));
    assert_non_null(strstr(text, "resume: false\n"));
    pl_free(text);
    pl_plan_destroy(plan);
    assert_int_equal(leave_folder(folder), 0);
}

/* A budget of "none" plans for any machine; who is about to run asks whether this one can hold it. */
static void what_cannot_be_held_is_refused_before_it_is_built(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    skip(); /* its shadow alone is more address space than the limit below */
#endif
    char folder[] = "/tmp/plimsoll-room-XXXXXX";
    pl_error error = {0};
    pl_plan *plan = NULL;
    struct rlimit limit = {.rlim_cur = (rlim_t)6 << 30, .rlim_max = RLIM_INFINITY};
    pl_config *config = pl_config_create();
    assert_int_equal(enter_folder(folder), 0);
    write_file("small.yaml", yaml, 1);
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    assert_int_equal(pl_config_load_file(config, "small.yaml", &error), PL_OK);
    assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &error), PL_OK);
    assert_int_equal(pl_plan_make_here(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, &error), PL_OK);
    pl_plan_destroy(plan);
    assert_int_equal(pl_config_set(config, "model.width", "16384", "here", &error), PL_OK);
    assert_int_equal(pl_config_set(config, "model.layers", "4", "here", &error), PL_OK);
    assert_int_equal(getrlimit(RLIMIT_DATA, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)6 << 30;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    assert_int_equal(pl_plan_make_here(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, &error), PL_E_BUDGET);
    assert_non_null(strstr(error.text, "RLIMIT_DATA"));
    assert_int_equal(pl_plan_make(config, PL_COMMAND_GRADIENTS, "times", NULL, NULL, &plan, &error), PL_OK);
    assert_int_equal(pl_plan_check_machine(plan, &error), PL_E_BUDGET);
    pl_plan_destroy(plan);
    limit.rlim_cur = before;
    assert_int_equal(setrlimit(RLIMIT_DATA, &limit), 0);
    assert_int_equal(pl_config_set(config, "model.layers", "100000", "here", &error), PL_OK);
    assert_int_equal(pl_config_set(config, "memory.budget", "1GB", "here", &error), PL_OK);
    assert_int_equal(pl_plan_make(config, PL_COMMAND_TRAIN, "times", NULL, NULL, &plan, &error), PL_E_BUDGET);
    assert_non_null(strstr(error.text, "more than the budget of 1000000000"));
    pl_config_destroy(config);
    assert_int_equal(leave_folder(folder), 0);
}

/* Whatever fails when the plan is already there: the caller, who looks at the status, gets none to destroy. */
static void what_fails_late_leaves_no_plan(void **state)
{
    (void)state;
    pl_error error = {0};
    char folder[] = "/tmp/plimsoll-late-XXXXXX";
    assert_int_equal(enter_folder(folder), 0);
    write_file("text.txt", "A ship's line shows how deep it may be loaded.\n", 200);
    write_file("small.yaml", yaml, 1);
    pl_config *config = pl_config_create();
    pl_plan *plan = NULL;
    assert_int_equal(pl_config_load_file(config, "small.yaml", &error), PL_OK);
    assert_int_equal(pl_config_set(config, "run.out", "out", "here", &error), PL_OK);
    assert_int_equal(pl_config_set(config, "run.dump", "plan", "here", &error), PL_OK);
    assert_int_equal(pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &error), PL_OK);
    assert_int_equal(mkdir("out/dump-plan.txt", 0777), 0); /* a file cannot go there */
    uint64_t live = pl_alloc_live_blocks();
    assert_int_equal(pl_plan_make(config, PL_COMMAND_GRADIENTS, "times", NULL, NULL, &plan, &error), PL_E_STORAGE);
    assert_null(plan);
    assert_int_equal(pl_alloc_live_blocks(), live);
    pl_config_destroy(config);
    assert_int_equal(leave_folder(folder), 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_cannot_be_held_is_refused_before_it_is_built),
                                       cmocka_unit_test(a_host_needs_no_folder_in_its_config),
                                       cmocka_unit_test(a_full_disk_loses_no_step),
                                       cmocka_unit_test(one_plan_begins_and_goes_on),
                                       cmocka_unit_test(a_run_keeps_its_config),
                                       cmocka_unit_test(what_fails_late_leaves_no_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
