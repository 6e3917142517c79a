/* What a run finds on disk and cannot go on with, though every checksum is right: counters in run.json that are no
 * counts, a lock file whose names belong to other values. Each is refused in a sentence, before anything is trained. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "plimsoll/plimsoll.h"
#include "store/record.h"
#include "support/mend_text.h"
#include "support/folder.h"
#include "support/program.h"

static const char yaml[] = "model:\n  arch: mlp\n  width: 16\n  layers: 1\n  sequence: 16\n  window: 4\n"
                           "data:\n  text: text.txt\n  tokenizer: bytes\n"
                           "train:\n  batch_size: 4\n  steps: 3\nrun:\n  threads: 1\n  out: run\n";
static const char record_path[] = "run/checkpoints/step-00000003/run.json";
static char folder[] = "/tmp/plimsoll-damaged-XXXXXX";

static pl_plan *plan_of(const char *resume)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_config *config = pl_config_create();
    assert_non_null(config);
    if (pl_config_load_file(config, "small.yaml", &err) != PL_OK ||
        pl_config_set(config, "run.resume", resume, "test", &err) != PL_OK ||
        pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &err) != PL_OK ||
        pl_plan_make(config, PL_COMMAND_TRAIN, "cache", NULL, NULL, &plan, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_config_destroy(config);
    return plan;
}

/* Opens and, when that goes well, trains to the end. */
static pl_status run(pl_plan *plan, pl_error *err)
{
    pl_run *run = NULL;
    pl_run_options options = {.host = true};
    pl_status status = pl_run_open(plan, &options, &run, err);
    if (status == PL_OK) status = pl_run_train(run, err);
    pl_run_close(run);
    pl_plan_destroy(plan);
    return status;
}

static int begin(void **state)
{
    (void)state;
    pl_error err = {0};
    if (enter_folder(folder)) return -1;
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    write_file("small.yaml", yaml, 1);
    return run(plan_of("false"), &err) == PL_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return leave_folder(folder);
}

/* Writes run.json again with one counter changed, as it would have been written. */
static void set_counter(const char *key, double value)
{
    pl_error err = {0};
    pl_record *r;
    assert_int_equal(pl_record_read(record_path, &r, &err), PL_OK);
    for (size_t i = 0; i < r->counter_count; i++)
        if (strcmp(r->counters[i].key, key) == 0) ((pl_record_counter *)&r->counters[i])->value = value;
    uint64_t bytes = pl_record_bytes(r);
    char *text = pl_alloc(bytes + 1, 1);
    assert_non_null(text);
    assert_int_equal(pl_record_print(r, text, bytes, &err), PL_OK);
    assert_int_equal(pl_file_write_all(record_path, text, bytes, &err), PL_OK);
    pl_free(text);
    pl_record_destroy(r);
}

static void counters_are_counts(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        double wrong, right;
    } cases[] = {{"tokens", -1, 192},     {"tokens", NAN, 192},       {"tokens", 1e300, 192},
                 {"plateau_bad", -5, 0},  {"plateau_bad", 0x1p60, 0}, {"plateau_scale", NAN, 1},
                 {"plateau_scale", 2, 1}, {"plateau_scale", -0.5, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err = {0};
        set_counter(cases[i].key, cases[i].wrong);
        assert_int_equal(run(plan_of("true"), &err), PL_E_DATA);
        if (!strstr(err.text, cases[i].key) || !strstr(err.text, "step-00000003")) fail_msg("%s", err.text);
        set_counter(cases[i].key, cases[i].right);
    }
    pl_error err = {0};
    if (run(plan_of("true"), &err) != PL_OK) fail_msg("%s", err.text);
}

/* The lock file with one word put in the place of another, as it would have been written. */
static pl_status load_changed(const char *old, const char *new, pl_plan **plan, pl_error *err)
{
    pl_plan *sound = plan_of("true");
    pl_str changed = {0};
    char *text;
    size_t bytes;
    assert_int_equal(pl_plan_text(sound, PL_PLAN_LOCK, &text, &bytes, err), PL_OK);
    char *at = strstr(text, old);
    assert_non_null(at);
    pl_str_append_bytes(&changed, text, (size_t)(at - text));
    pl_str_append(&changed, new);
    pl_str_append(&changed, at + strlen(old));
    mend_text(changed.data, changed.bytes);
    assert_int_equal(pl_file_write_all("changed.lock", changed.data, changed.bytes, err), PL_OK);
    pl_str_deinit(&changed);
    pl_text_free(text);
    pl_plan_destroy(sound);
    return pl_plan_load("changed.lock", plan, err);
}

static void names_belong_to_their_values(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_plan *plan;
    assert_int_equal(load_changed("\"input.step\"", "\"input.stop\"", &plan, &err), PL_OK);
    assert_int_equal(run(plan, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "nothing writes the input input.stop"));
    assert_int_equal(load_changed(" \"train\"", " \"trial\"", &plan, &err), PL_OK);
    assert_int_equal(run(plan, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "the plan has no program \"train\""));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counters_are_counts),
                                       cmocka_unit_test(names_belong_to_their_values)};
    return cmocka_run_group_tests(tests, begin, end);
}
