/* Preparing a text when things go wrong: whatever call fails, a fresh folder is as it was before, a run's folder holds
 * the run's own tokenizer, and the next try succeeds. Oracle: the listing and the bytes of the folder before. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"
#include "plimsoll/plimsoll.h"
#include "support/folder.h"
#include "support/program.h"

static char folder[] = "/tmp/plimsoll-prepare-XXXXXX";
static pl_error err;

static void set(pl_config *c, const char *key, const char *value)
{
    if (pl_config_set(c, key, value, "test", &err) != PL_OK) fail_msg("%s", err.text);
}

static pl_config *config_of(const char *text, const char *tokenizer, const char *out)
{
    pl_config *c = pl_config_create();
    assert_non_null(c);
    set(c, "data.text", text);
    set(c, "data.tokenizer", tokenizer);
    set(c, "run.out", out);
    set(c, "model.sequence", "16");
    set(c, "train.batch_size", "4");
    return c;
}

static pl_status prepare(pl_config *c) { return pl_prepare(c, PL_COMMAND_TRAIN, NULL, NULL, &err); }

static void must_prepare(const char *text, const char *tokenizer, const char *out)
{
    pl_config *c = config_of(text, tokenizer, out);
    if (prepare(c) != PL_OK) fail_msg("%s", err.text);
    pl_config_destroy(c);
}

static int make_folder(void **state)
{
    (void)state;
    if (enter_folder(folder)) return -1;
    write_file("text.txt", "the sea is wide and the ship is deep; ", 60);
    write_file("short.txt", "the sea", 1);
    must_prepare("text.txt", "chars", "source"); /* a tokenizer.json to give */
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return leave_folder(folder);
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

/* Every open, read, write, sync and rename of it fails once, for the three ways a tokenizer comes. */
static void a_failing_disk_leaves_nothing(void **state)
{
    (void)state;
    static const char *const tokenizers[] = {"chars", "source/tokenizer.json"}, *const caches[] = {"auto", "new/cache"};
    int failures = 0;
    for (int way = 0; way < 4; way++)
        for (pl_io_kind kind = PL_IO_OPEN; kind < PL_IO_KINDS; kind++) {
            pl_status status = PL_E_STORAGE;
            for (uint64_t n = 1; status != PL_OK; n++) {
                pl_config *c = config_of("text.txt", tokenizers[way % 2], "new/out");
                set(c, "data.cache", caches[way / 2]);
                pl_io_fail_at(kind, n, ENOSPC, 0);
                status = prepare(c);
                pl_io_fail_at(kind, 0, 0, 0);
                pl_config_destroy(c);
                failures += status != PL_OK;
                if (status != PL_OK && exists("new")) fail_msg("%d %d %d: left (%s)", way, kind, (int)n, err.text);
            }
            assert_true(exists("new/out/tokenizer.json"));
            assert_int_equal(system("rm -r new"), 0);
        }
    assert_true(failures > 40);
}

static void refused_memory_leaves_nothing(void **state)
{
    (void)state;
    pl_config *c = config_of("text.txt", "source/tokenizer.json", "new/out");
    uint64_t live = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_alloc_fail_at(n, n % 2);
        status = prepare(c);
        pl_alloc_fail_at(0, 0);
        assert_int_equal(pl_alloc_live_blocks(), live);
        if (status == PL_OK) break;
        assert_int_equal(status, PL_E_NOMEM);
        assert_false(exists("new"));
    }
    pl_config_destroy(c);
    assert_int_equal(system("rm -r new"), 0);
}

static void a_text_too_short_leaves_nothing(void **state)
{
    (void)state;
    pl_config *c = config_of("short.txt", "chars", "new/deep/out");
    assert_int_equal(prepare(c), PL_E_DATA);
    assert_false(exists("new"));
    assert_int_equal(mkdir("new", 0755), 0);
    assert_int_equal(prepare(c), PL_E_DATA);
    assert_true(exists("new") && !exists("new/deep"));
    pl_config_destroy(c);
    assert_int_equal(rmdir("new"), 0);
}

/* As train keeps it. */
static void the_kept_config_is_absolute(void **state)
{
    (void)state;
    char *text, expected[256];
    pl_config *c = config_of("./text.txt", "source/tokenizer.json", "new/out");
    set(c, "data.cache", "cache");
    assert_int_equal(pl_config_text(c, PL_CONFIG_KEPT, &text, NULL, &err), PL_OK);
    static const char *const lines[] = {"  text: %s/text.txt\n", "  tokenizer: %s/new/out/tokenizer.json\n",
                                        "  cache: %s/cache\n", "  out: %s/new/out\n", "  trace: none\n%.0s"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(expected, sizeof expected, lines[i], folder);
        if (!strstr(text, expected)) fail_msg("no %s in %s", expected, text);
    }
    pl_config *again = pl_config_create();
    write_file("kept.yaml", text, 1);
    assert_int_equal(pl_config_load_file(again, "kept.yaml", &err), PL_OK);
    pl_config_destroy(again);
    pl_config_destroy(c);
    pl_text_free(text);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_disk_leaves_nothing),
        cmocka_unit_test(refused_memory_leaves_nothing),
        cmocka_unit_test(a_text_too_short_leaves_nothing),
        cmocka_unit_test(the_kept_config_is_absolute),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
