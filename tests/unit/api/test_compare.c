/* A comparison from inside: what is heard of processes, line by line, and what is none; how a config means each form;
 * and that whatever request for memory fails, all is given back. The numbers themselves are held against the single
 * commands in tests/cli/compare_tests.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/compare.h"
#include "base/alloc.h"
#include "config/config.h"
#include "plimsoll/plimsoll.h"
#include "support/folder.h"
#include "support/program.h"

static const char operators[] =
    "model: {arch: cnn_operator}\n"
    "parameter_space:\n"
    "  operator: {grid_size: {type: choice, choices: [8]}}\n"
    "  architecture: {base_channels: {type: choice, choices: [4]}, num_layers: {type: choice, choices: [2]}}\n"
    "memory: {budget: 1GB}\n"
    "run: {threads: 1, out: nowhere}\n";
static char folder[] = "/tmp/plimsoll-test-compare-XXXXXX";
static const pl_compare_options options = {.title = "small", .folder = ".", .turns = 3, .batch = 16};
static pl_error err;

static int begin(void **state)
{
    (void)state;
    return enter_folder(folder);
}

static int end(void **state)
{
    (void)state;
    return leave_folder(folder);
}

static pl_config *config(void)
{
    pl_config *c = pl_config_create();
    assert_non_null(c);
    if (pl_config_load_text(c, "c.yaml", operators, sizeof operators - 1, &err)) fail_msg("%s", err.text);
    return c;
}

static pl_compare *create(void)
{
    pl_compare *p = NULL;
    pl_config *c = config();
    if (pl_compare_create(c, &options, &p, &err) != PL_OK) fail_msg("%s", err.text);
    pl_config_destroy(c); /* it has its own */
    return p;
}

static void config_says(const pl_compare *p, int v, pl_compare_step step, const char *words, bool says)
{
    char *text = NULL;
    size_t bytes;
    if (pl_compare_config(p, v, step, &text, &bytes, &err) != PL_OK) fail_msg("%s", err.text);
    if ((strstr(text, words) != NULL) != says) fail_msg("\"%s\" in\n%s", words, text);
    pl_text_free(text);
}

static void forms(void **state)
{
    (void)state;
    pl_compare *p = create();
    assert_true(pl_compare_runs(p, PL_VARIANT_F32) && pl_compare_runs(p, PL_VARIANT_BF16));
    assert_false(pl_compare_runs(p, PL_VARIANT_INT8) || pl_compare_runs(p, PL_VARIANT_BINARY));
    assert_true(pl_compare_is_base(p, PL_VARIANT_F32) && !pl_compare_is_base(p, PL_VARIANT_BF16));
    assert_false(pl_compare_judges(p, PL_VARIANT_F32));
    config_says(p, PL_VARIANT_F32, PL_COMPARE_RUN, "precision: f32", true);
    config_says(p, PL_VARIANT_BF16, PL_COMPARE_RUN, "precision: bf16", true);
    config_says(p, PL_VARIANT_BF16, PL_COMPARE_BASE, "precision: f32", true);
    config_says(p, PL_VARIANT_BF16, PL_COMPARE_RUN, "budget: none", false); /* it is of runs alone */
    config_says(p, PL_VARIANT_BF16, PL_COMPARE_MAKE, "budget: none", true);
    pl_compare_destroy(p);
}

static pl_status hear(pl_compare *p, int v, bool at_once, const char *line)
{
    return pl_compare_take_inferred(p, v, at_once, line, strlen(line), &err);
}

static void says(const pl_compare *p, const char *words)
{
    char *text = NULL;
    size_t bytes;
    if (pl_compare_text(p, PL_COMPARE_REPORT, 80, &text, &bytes, &err) != PL_OK) fail_msg("%s", err.text);
    if (!strstr(text, words)) fail_msg("\"%s\" is not in\n%s", words, text);
    pl_text_free(text);
}

static void what_is_heard(void **state)
{
    (void)state;
    pl_compare *p = create();
    static const char *const none[] = {
        "",
        "{",
        "[]",
        "{\"schema\":\"plimsoll.eval/1\"}",
        "{\"schema\":\"plimsoll.infer/1\"}",
        "{\"schema\":\"plimsoll.infer/1\",\"items\":0,\"median_seconds\":1,\"measured_bytes\":5}",
        "{\"schema\":\"plimsoll.infer/1\",\"items\":4,\"median_seconds\":null,\"measured_bytes\":5}"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (hear(p, PL_VARIANT_F32, false, none[i]) != PL_E_DATA) fail_msg("%s", none[i]);
    says(p, "No form could be run");
    const char *one =
        "{\"schema\":\"plimsoll.infer/1\",\"items\":8,\"seconds\":9,\"run_seconds\":0.4,\"median_seconds\":0.05,"
        "\"planned_bytes\":12000000,\"measured_bytes\":12000000}";
    assert_int_equal(hear(p, PL_VARIANT_F32, false, one), PL_OK);
    assert_int_equal(hear(p, PL_VARIANT_F32, true, one), PL_OK); /* 0.4 s for 8, which are less than a batch */
    pl_compare_take_file(p, PL_VARIANT_F32, 5000000);
    pl_compare_refuse(p, PL_VARIANT_BF16, "it is too late");
    says(p, "f32           50 ms        50 ms  5.00 MB      12.0 MB      12.0 MB\n");
    says(p, "        sample at 1  sample at 8     file  memory at 1  memory at 8\n");
    says(p, "bf16    it is too late.\n");
    for (int i = 1; i < PL_COMPARE_TURNS_MAX; i++) assert_int_equal(hear(p, PL_VARIANT_F32, false, one), PL_OK);
    assert_int_equal(hear(p, PL_VARIANT_F32, false, one), PL_E_DATA); /* more turns than there can be */
    const char *loss = "{\"schema\":\"plimsoll.eval/1\",\"step\":3,\"loss\":2.5,\"bits\":null,\"states\":9}";
    assert_int_equal(pl_compare_take_judged(p, PL_VARIANT_F32, loss, strlen(loss), &err), PL_OK);
    says(p, "loss  2.5 ");
    says(p, "bits    - "); /* null: it was not finite */
    pl_compare_destroy(p);
}

static void what_is_refused(void **state)
{
    (void)state;
    pl_compare *p = NULL;
    pl_config *c = config();
    pl_compare_options many = options;
    many.turns = PL_COMPARE_TURNS_MAX + 1;
    assert_int_equal(pl_compare_create(c, &many, &p, &err), PL_E_USAGE);
    assert_null(p);
    assert_int_equal(pl_compare_check_options(c, &err), PL_OK);
    assert_int_equal(pl_config_set(c, "infer.to", "x", "--set infer.to", &err), PL_OK);
    assert_int_equal(pl_compare_check_options(c, &err), PL_E_USAGE);
    if (!strstr(err.text, "--set infer.to: a comparison sets infer.to by itself")) fail_msg("%s", err.text);
    pl_config_destroy(c);
}

/* All that it asks for memory for. */
static pl_status all_of_it(const pl_config *c)
{
    static const pl_compare_form form[] = {PL_COMPARE_REPORT, PL_COMPARE_JSON, PL_COMPARE_HTML};
    pl_compare *p = NULL;
    char *text = NULL;
    size_t bytes;
    pl_status status = pl_compare_create(c, &options, &p, &err);
    if (status == PL_OK) status = pl_compare_config(p, PL_VARIANT_BF16, PL_COMPARE_RUN, &text, &bytes, &err);
    pl_text_free(text);
    text = NULL;
    if (status == PL_OK) status = pl_compare_make_inputs(p, 2, &text, &err);
    pl_text_free(text);
    for (size_t i = 0; i < sizeof form / sizeof *form && status == PL_OK; i++) {
        text = NULL;
        status = pl_compare_text(p, form[i], 80, &text, &bytes, &err);
        pl_text_free(text);
    }
    pl_compare_destroy(p);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    pl_config *c = config();
    const uint64_t before = pl_alloc_live_blocks(), asked = pl_alloc_request_count();
    if (all_of_it(c) != PL_OK) fail_msg("%s", err.text);
    const uint64_t all = pl_alloc_request_count() - asked;
    for (uint64_t n = 1; n <= all; n += 1 + all / 400) {
        pl_alloc_fail_at(n, 0);
        const pl_status status = all_of_it(c);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK && status != PL_E_NOMEM) fail_msg("request %d: %s", (int)n, err.text);
        if (pl_alloc_live_blocks() != before) fail_msg("request %d, status %d: blocks are left", (int)n, (int)status);
    }
    pl_config_destroy(c);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(what_is_heard),
                                       cmocka_unit_test(what_is_refused), cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, begin, end);
}
