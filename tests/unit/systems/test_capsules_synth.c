/* Texts that were written in each form are read as the grammar makes them; what is refused, and memory and calls that
 * are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/io.h"
#include "data/pages/grammar.h"
#include "data/pages/texts.h"
#include "plimsoll/synth.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static pl_error err;
static char folder[] = "/tmp/plimsoll-texts-XXXXXX", path[64], index_path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/texts", folder);
    snprintf(index_path, sizeof index_path, "%s/index", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(path), (void)unlink(index_path);
    return rmdir(folder); /* nothing else is left in it */
}

static void check_texts(pl_texts *t, bool in_lines)
{
    for (uint64_t i = 0; i < t->count; i++) {
        char text[PL_GRAMMAR_TEXT_BYTES], expected[PL_GRAMMAR_TEXT_BYTES];
        const size_t bytes = pl_grammar_text(seed, i, expected);
        size_t n;
        bool whole;
        for (size_t k = 0; k < bytes && in_lines; k++)
            if (expected[k] == '\n') expected[k] = ' ';
        assert_int_equal(pl_texts_read(t, i, text, sizeof text, &n, &whole, &err), PL_OK);
        assert_true(whole && n == bytes);
        assert_memory_equal(text, expected, n);
    }
}

static void test_read_again(void **state)
{
    (void)state;
    const pl_texts_form form[] = {
        [PL_SYNTH_LINES] = PL_TEXTS_LINES, [PL_SYNTH_JSONL] = PL_TEXTS_JSONL, [PL_SYNTH_CSV] = PL_TEXTS_CSV};
    for (int i = 0; i < 3; i++) {
        const pl_synth_texts_options o = {.count = 3000, .form = (pl_synth_form)i, .seed = seed};
        const pl_texts_options prepare = {.setup = {.form = form[i], .path = path}, .index_path = index_path};
        pl_texts_result r;
        pl_texts t;
        assert_int_equal(pl_synth_texts(path, &o, &err), PL_OK);
        assert_int_equal(pl_texts_prepare(&prepare, &r, &err), PL_OK);
        assert_int_equal(r.info.count, 3000);
        assert_int_equal(pl_texts_open(&t, &prepare.setup, index_path, &err), PL_OK);
        check_texts(&t, i == PL_SYNTH_LINES);
        pl_texts_close(&t);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const uint64_t live = pl_alloc_live_blocks();
    pl_synth_texts_options o = pl_synth_texts_default();
    assert_int_equal(o.count, 10000);
    o.count = 0;
    assert_int_equal(pl_synth_texts(path, &o, &err), PL_E_USAGE);
    o.count = 2;
    assert_int_equal(pl_synth_texts("/proc/nothing/here", &o, &err), PL_E_STORAGE);
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_alloc_fail_at(n, n % 2);
        status = pl_synth_texts(path, &o, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
    for (int kind = PL_IO_WRITE; kind <= PL_IO_RENAME; kind++) {
        pl_io_fail_at((pl_io_kind)kind, 1, ENOSPC, 1);
        assert_int_equal(pl_synth_texts(path, &o, &err), PL_E_STORAGE);
        pl_io_fail_at((pl_io_kind)kind, 0, 0, 0);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read_again), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
