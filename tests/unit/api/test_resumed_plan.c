/* A run that goes on needs the bytes of the run that began, so that whatever budget the one fitted the other fits: the
 * plans are the same text but for the words "resume: true" and what was decided for good. Oracle: the plan that is made
 * with run.resume off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/file.h"
#include "support/program.h"
#include "unit/api/small_run.h"

typedef struct key {
    const char *path, *value;
} key;

static pl_plan *plan_of(const char *resume, const key *keys, size_t count)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_config *config = pl_config_create();
    assert_non_null(config);
    pl_status status = pl_config_load_file(config, "small.yaml", &err);
    for (size_t i = 0; i < count && status == PL_OK; i++)
        status = pl_config_set(config, keys[i].path, keys[i].value, "test", &err);
    if (status == PL_OK) status = pl_config_set(config, "run.resume", resume, "test", &err);
    if (status == PL_OK) status = pl_prepare(config, PL_COMMAND_TRAIN, NULL, NULL, &err);
    if (status == PL_OK) status = pl_plan_make_unmeasured(config, &plan, &err);
    if (status != PL_OK) fail_msg("%s", err.text);
    pl_config_destroy(config);
    return plan;
}

/* From its first line to its last, without the config. */
static void print_numbers(const pl_plan *plan, pl_str *text)
{
    pl_plan copy = *plan;
    copy.config = NULL;
    pl_plan_print(&copy, text);
    assert_false(text->failed);
}

static void expect_same(const pl_plan *begun, const pl_plan *resumed)
{
    pl_str a = {0}, b = {0};
    print_numbers(begun, &a);
    print_numbers(resumed, &b);
    if (begun->process.heap_bytes != resumed->process.heap_bytes)
        fail_msg("heap %llu, resumed %llu", (unsigned long long)begun->process.heap_bytes,
                 (unsigned long long)resumed->process.heap_bytes);
    assert_string_equal(pl_str_text(&a), pl_str_text(&b));
    assert_non_null(strstr(resumed->config, "resume: true"));
    pl_str_deinit(&a);
    pl_str_deinit(&b);
}

static void plans_of_any_depth_are_the_same(void **state)
{
    (void)state;
    for (int layers = 1; layers <= 14; layers++) {
        char depth[8];
        snprintf(depth, sizeof depth, "%d", layers);
        const key keys[] = {{"model.layers", depth}};
        pl_plan *begun = plan_of("false", keys, 1), *resumed = plan_of("true", keys, 1);
        expect_same(begun, resumed);
        pl_plan_destroy(begun);
        pl_plan_destroy(resumed);
    }
}

/* With fit.allow the first plan decides, and the run's config.yaml tells the second one what. */
static void what_was_decided_needs_no_more(void **state)
{
    (void)state;
    const key keys[] = {{"model.layers", "3"}, {"fit.allow", "optimizer_bf16,bf16"}};
    pl_error err = {0};
    pl_plan *begun = plan_of("false", keys, 2);
    assert_null(strstr(begun->config, "optimizer_state: auto"));
    assert_int_equal(pl_folder_create("run", &err), PL_OK);
    assert_int_equal(pl_file_write_all("run/config.yaml", begun->config, strlen(begun->config), &err), PL_OK);
    pl_plan *resumed = plan_of("true", keys, 2);
    expect_same(begun, resumed);
    pl_plan_destroy(begun);
    pl_plan_destroy(resumed);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(plans_of_any_depth_are_the_same),
                                       cmocka_unit_test(what_was_decided_needs_no_more)};
    return cmocka_run_group_tests(tests, small_run_begin, small_run_end);
}
