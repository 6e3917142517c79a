/* Conversions where memory or the disk is refused at any request: a sentence, nothing left, nothing half. (What is
 * written, tests/cli/convert_tests.py judges.) */
#include <errno.h>

#include "unit/store/scratch_folder.h"

#include "base/alloc.h"
#include "base/io.h"
#include "plimsoll/convert.h"
#include "support/program.h"
#include "support/tiny_model.h"

static char folder[1024], file[1024];
static const pl_convert_options plain = {.without_tokenizer = true};
static const pl_convert_options packed = {.encoding = "q4_0", .without_tokenizer = true};
static const pl_convert_options parts = {.shard_bytes = 8000, .without_tokenizer = true};

static int make_models(void **state)
{
    size_t bytes;
    use_memory_for_folder();
    if (make_test_folder(state)) return -1;
    snprintf(folder, sizeof folder, "%s", in_folder("model"));
    snprintf(file, sizeof file, "%s", in_folder("model.gguf"));
    if (mkdir(folder, 0777)) return -1;
    tiny_write_folder(folder);
    unsigned char *data = tiny_make_gguf(2, &bytes);
    FILE *f = fopen(file, "wb");
    const bool is_written = f && fwrite(data, 1, bytes, f) == bytes;
    free(data);
    return is_written && fclose(f) == 0 ? 0 : -1;
}

static void check_nothing_there(const char *out)
{
    char temporary[1100];
    snprintf(temporary, sizeof temporary, "%s.plimsoll.tmp", out);
    assert_int_not_equal(access(out, F_OK), 0);
    assert_int_not_equal(access(temporary, F_OK), 0);
}

/* In turn each request of one kind fails; the first conversion in which none does is whole. */
static void sweep(const char *model, const char *name, const pl_convert_options *o, int kind)
{
    char out[1024];
    pl_converted *done = NULL;
    snprintf(out, sizeof out, "%s", in_folder("%s", name));
    for (uint64_t n = 1; !done; n++) {
        pl_error err = {0};
        if (kind < 0)
            pl_alloc_fail_at(n, 0);
        else
            pl_io_fail_at((pl_io_kind)kind, n, kind == PL_IO_WRITE ? ENOSPC : EIO, 0);
        const pl_status status = pl_convert(model, out, o, &done, &err);
        pl_alloc_fail_at(0, 0);
        if (kind >= 0) pl_io_fail_at((pl_io_kind)kind, 0, 0, 0);
        if (status == PL_OK) break;
        assert_null(done);
        if (status != (kind < 0 ? PL_E_NOMEM : PL_E_STORAGE)) fail_msg("%s: %s", pl_status_name(status), err.text);
        assert_true(strlen(err.text) > 10);
        check_nothing_there(out);
        assert_int_equal(pl_alloc_live_blocks(), 0);
    }
    assert_non_null(done);
    assert_int_equal(done->planned_bytes, done->measured_bytes);
    pl_converted_destroy(done);
    remove_tree(out);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void sweep_all(int kind)
{
    sweep(folder, "new.gguf", &packed, kind);
    sweep(folder, "shards", &parts, kind);
    sweep(file, "back", &plain, kind);
    sweep(file, "copy.gguf", &plain, kind);
}

static void test_refused_memory(void **state)
{
    (void)state;
    sweep_all(-1);
}

static void test_refused_files(void **state)
{
    const pl_io_kind kinds[] = {PL_IO_READ, PL_IO_WRITE, PL_IO_RENAME};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) sweep_all(kinds[i]);
}

/* What the heap of a conversion does is the same each time, so that a plan of it is one. */
static void test_same_plan(void **state)
{
    uint64_t planned[2];
    pl_error err = {0};
    (void)state;
    for (int i = 0; i < 2; i++) {
        pl_converted *done;
        if (pl_convert(folder, in_folder("again%d.gguf", i), &packed, &done, &err) != PL_OK) fail_msg("%s", err.text);
        planned[i] = done->planned_bytes;
        assert_int_equal(done->tensors, TINY_TENSORS);
        pl_converted_destroy(done);
    }
    assert_int_equal(planned[0], planned[1]);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_memory),
        cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_same_plan),
    };
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, make_models, remove_test_folder);
}
