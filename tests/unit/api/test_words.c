/* How a plan calls its items and samples: as the system of its config does, made or loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "api/compile.h"
#include "base/alloc.h"
#include "support/program.h"
#include "unit/api/small_run.h"

/* Saves the plan of small.yaml as small.lock; config NULL: with its own. */
static void save_plan(const char *config_text)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_config *config = pl_config_create();
    assert_non_null(config);
    pl_status status = pl_config_load_file(config, "small.yaml", &err);
    if (status == PL_OK) status = pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &err);
    if (status == PL_OK) status = pl_plan_make_unmeasured(config, &plan, &err);
    if (status != PL_OK) fail_msg("%s", err.text);
    assert_memory_equal(pl_plan_words(plan), pl_config_words(config), sizeof(pl_words));
    pl_plan copy = *plan;
    if (config_text) copy.config = (char *)config_text;
    assert_int_equal(pl_plan_save(&copy, "small.lock", &err), PL_OK);
    pl_plan_destroy(plan);
    pl_config_destroy(config);
}

static void check_loaded(const char *item, const char *sample, const char *rate)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    if (pl_plan_load("small.lock", &plan, &err) != PL_OK) fail_msg("%s", err.text);
    assert_string_equal(pl_plan_words(plan)->item, item);
    assert_string_equal(pl_plan_words(plan)->sample, sample);
    assert_string_equal(pl_plan_words(plan)->rate, rate);
    pl_plan_destroy(plan);
}

static void a_loaded_plan_has_the_words_of_its_config(void **state)
{
    (void)state;
    save_plan(NULL);
    check_loaded("token", "sequence", "tok/s");
}

/* It may be a graph's alone, or of a later version: it is read all the same. */
static void a_plan_without_a_config_has_plain_words(void **state)
{
    (void)state;
    static const char *const configs[] = {"model:\n  arch: of_tomorrow\n", "no yaml: ["};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        save_plan(configs[i]);
        check_loaded("item", "sample", "items/s");
    }
}

/* Refused memory is said: words that come and go with it would not be those of the plan. */
static void refused_memory_is_no_plain_word(void **state)
{
    (void)state;
    pl_status status = PL_E_NOMEM;
    save_plan(NULL);
    uint64_t before = pl_alloc_live_blocks(), n = 1;
    for (; status != PL_OK; n++) {
        pl_error err = {0};
        pl_plan *plan = NULL;
        assert_true(n < 100000);
        pl_alloc_fail_at(n, false);
        status = pl_plan_load("small.lock", &plan, &err);
        pl_alloc_fail_at(0, false);
        assert_true(status == PL_OK || status == PL_E_NOMEM);
        if (status == PL_OK) assert_string_equal(pl_plan_words(plan)->item, "token");
        pl_plan_destroy(plan);
        assert_int_equal(pl_alloc_live_blocks(), before);
    }
}

/* They are not those of its system, and it outlives whoever made it. */
static void a_plan_for_files_keeps_its_words(void **state)
{
    static const char text[] =
        "model: {arch: cnn_operator}\n"
        "parameter_space:\n"
        "  operator: {grid_size: {type: choice, choices: [8]}}\n"
        "  architecture: {base_channels: {type: choice, choices: [4]}, num_layers: {type: choice, choices: [2]}}\n"
        "run: {threads: 1, out: nowhere}\n";
    const pl_compile_options options = {.command = PL_COMMAND_INFER, .unmeasured = true};
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_config *config = pl_config_create();
    (void)state;
    assert_non_null(config);
    if (pl_config_load_text(config, "c.yaml", text, sizeof text - 1, &err)) fail_msg("%s", err.text);
    if (pl_compile(config, &options, NULL, &plan, &err)) fail_msg("%s", err.text);
    pl_config_destroy(config);
    assert_string_equal(pl_plan_words(plan)->at_once_key, "infer.batch");
    pl_plan_destroy(plan);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_loaded_plan_has_the_words_of_its_config),
                                       cmocka_unit_test(a_plan_without_a_config_has_plain_words),
                                       cmocka_unit_test(refused_memory_is_no_plain_word),
                                       cmocka_unit_test(a_plan_for_files_keeps_its_words)};
    return cmocka_run_group_tests(tests, small_run_begin, small_run_end);
}
