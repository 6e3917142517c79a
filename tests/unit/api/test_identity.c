/* A plan of a pretrained model that is kept is never used with other weights, and always with the same ones, wherever
 * and whenever they were copied. Oracle: what was changed in the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "plimsoll/plimsoll.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/seed.h"
#include "support/tiny_model.h"

#define WEIGHTS "model/model.safetensors"

static const char tokenizer[] =
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"post_processor\":null,"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
    "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
    "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"fuse_unk\":false,"
    "\"byte_fallback\":false,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";

static char folder[] = "/tmp/plimsoll-identity-XXXXXX";

static int begin(void **state)
{
    (void)state;
    if (enter_folder(folder) || mkdir("model", 0777)) return -1;
    tiny_write_folder("model");
    tiny_write_text("model", "tokenizer.json", tokenizer);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return leave_folder(folder);
}

static pl_plan *plan_of(const char *model)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_config *c = pl_config_create();
    assert_non_null(c);
    if (pl_config_load_file(c, model, &err) || pl_config_set(c, "generate.prompt", "ab", "test", &err) ||
        pl_config_set(c, "run.out", "out", "test", &err) ||
        pl_plan_make(c, PL_COMMAND_GENERATE, NULL, NULL, NULL, &plan, &err))
        fail_msg("%s", err.text);
    pl_config_destroy(c);
    return plan;
}

static pl_status open_run(const pl_plan *plan, pl_error *err)
{
    pl_run *run = NULL;
    const pl_status status = pl_run_open(plan, &(pl_run_options){.host = true}, &run, err);
    pl_run_close(run);
    return status;
}

static void expect_same(const pl_plan *plan)
{
    pl_error err = {0};
    if (open_run(plan, &err) != PL_OK) fail_msg("%s", err.text);
}

static void expect_other(const pl_plan *plan)
{
    pl_error err = {0};
    assert_int_equal(open_run(plan, &err), PL_E_DATA);
    if (!strstr(err.text, "has changed since planning") || !strstr(err.text, "pretrained_model"))
        fail_msg("%s", err.text);
}

/* The file, with one byte that differs. */
static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_true(byte != EOF && fputc(byte ^ 1, f) != EOF);
    assert_int_equal(fclose(f), 0);
}

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % below;
}

/* A byte of the page in the middle of a tensor. */
static long draw_byte(void)
{
    enum { PAGE = 4096 };
    char header[TINY_HEADER_MAX];
    size_t at = 8 + tiny_print_header(header), bytes = 0;
    for (size_t i = 0, chosen = draw(TINY_TENSORS); i <= chosen; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        at += bytes;
        bytes = (size_t)(t.rows * t.columns) * 4;
    }
    const size_t some = bytes < PAGE ? bytes : PAGE;
    return (long)(at + (bytes - some) / 2 + draw(some));
}

static void test_weights(void **state)
{
    enum { TIMES = 40 };
    pl_plan *plan = plan_of("model");
    (void)state;
    expect_same(plan);
    for (int i = 0; i < TIMES; i++) {
        const long at = draw_byte();
        flip(WEIGHTS, at);
        expect_other(plan);
        flip(WEIGHTS, at);
    }
    expect_same(plan);
    pl_plan_destroy(plan);
}

static void test_replaced(void **state)
{
    pl_plan *plan = plan_of("model");
    (void)state;
    assert_int_equal(rename("model", "other"), 0);
    assert_int_equal(mkdir("model", 0777), 0);
    tiny_write_folder("model");
    tiny_write_text("model", "tokenizer.json", tokenizer);
    expect_same(plan); /* other files of the same contents */
    tiny_write_text("model", "config.json", "");
    char *config = strdup(tiny_config), *at = strstr(config, "rope_theta");
    assert_non_null(at);
    at = strpbrk(at, "0123456789");
    *at = *at == '9' ? '8' : (char)(*at + 1);
    tiny_write_text("model", "config.json", config);
    expect_other(plan);
    tiny_write_text("model", "config.json", tiny_config);
    expect_same(plan);
    free(config);
    pl_plan_destroy(plan);
}

/* What is kept in a lock file counts. */
static void test_kept(void **state)
{
    pl_error err = {0};
    pl_plan *plan = plan_of("model"), *kept = NULL;
    (void)state;
    assert_int_equal(pl_plan_save(plan, "plan.lock", &err), PL_OK);
    pl_plan_destroy(plan);
    if (pl_plan_load("plan.lock", &kept, &err) != PL_OK) fail_msg("%s", err.text);
    expect_same(kept);
    const long at = draw_byte();
    flip(WEIGHTS, at);
    expect_other(kept);
    flip(WEIGHTS, at);
    pl_plan_destroy(kept);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_replaced),
                                       cmocka_unit_test(test_kept)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, begin, end);
}
