/* TensorBoard event files against the bytes that the tensorboard 2.21 package wrote (RecordWriter, event_pb2). */
#include "unit/store/scratch_folder.h"

#include <errno.h>

#include "base/alloc.h"
#include "store/tensorboard.h"
#include "support/program.h"

static pl_tensorboard t;
static pl_error err;

static const char version[] = "\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09\0\0\0\0\0\0\xf8\x3f\x1a\x0d"
                              "brain.Event:2"
                              "\x2a\x28\x64\x6c";
static const char restart[] = "\x10\0\0\0\0\0\0\0\x95\xfb\xfe\x18\x09\0\0\0\0\0\0\xf8\x3f\x10\xad\x02\x3a\x02\x08\x01"
                              "\xd1\x79\x49\xd4";
static const char scalars[] =
    "\x26\0\0\0\0\0\0\0\x73\x4f\xe3\0\x09\0\0\0\0\0\0\x02\x40\x10\xac\x02\x2a\x18\x0a\x0b\x0a\x04"
    "loss\x15\0\0\x60\x40\x0a\x09\x0a\x02"
    "lr\x15\x6f\x12\x83\x3a\x29\x7a\xd6\x53";
static const pl_metric values[] = {{"loss", 3.5}, {"lr", 0.001}};

static void assert_file(const char *path, const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    char got[256], expected[256];
    memcpy(expected, a, a_bytes);
    memcpy(expected + a_bytes, b, b_bytes);
    assert_int_equal(read_bytes(path, got, sizeof got), a_bytes + b_bytes);
    assert_memory_equal(got, expected, a_bytes + b_bytes);
}

static void test_golden(void **state)
{
    char first[PL_FILE_PATH_MAX];
    (void)state;
    pl_alloc_seal(1);
    pl_tensorboard_open(&t, test_folder, 1.5, 0);
    assert_string_equal(t.path, ""); /* no event, no file */
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 300, values, 2, &err), PL_OK);
    pl_alloc_seal(0);
    strcpy(first, t.path);
    pl_tensorboard_close(&t);
    pl_tensorboard_close(&t);
    assert_says(first, "/events.out.tfevents.0000000001.");
    assert_file(first, version, sizeof version - 1, scalars, sizeof scalars - 1);
    /* A second start in the same second gets a file of its own, and says what is void. */
    pl_tensorboard_open(&t, test_folder, 1.5, 301);
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 300, values, 2, &err), PL_OK);
    assert_string_not_equal(t.path, first);
    char start[256];
    memcpy(start, version, sizeof version - 1);
    memcpy(start + sizeof version - 1, restart, sizeof restart - 1);
    assert_file(t.path, start, sizeof version + sizeof restart - 2, scalars, sizeof scalars - 1);
    pl_tensorboard_close(&t);
}

static void test_failures(void **state)
{
    static char key[PL_TENSORBOARD_RECORD_BYTES];
    pl_metric long_one = {key, 1};
    (void)state;
    memset(key, 'k', sizeof key - 1);
    pl_tensorboard_open(&t, in_folder("absent"), 1.5, 0);
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 1, values, 2, &err), PL_E_STORAGE);
    pl_tensorboard_open(&t, test_folder, 5.5, 9);
    pl_io_fail_at(PL_IO_WRITE, 2, ENOSPC, 0);
    assert_int_equal(pl_tensorboard_write(&t, 6.5, 9, values, 2, &err), PL_E_STORAGE);
    assert_false(exists(t.path));
    assert_int_equal(pl_tensorboard_write(&t, 6.5, 9, values, 2, &err), PL_OK); /* there is room again */
    pl_tensorboard_close(&t);
    pl_tensorboard_open(&t, test_folder, 1.5, 0);
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 1, &long_one, 1, &err), PL_E_USAGE);
    pl_io_fail_at(PL_IO_WRITE, 1, ENOSPC, 0);
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 1, values, 2, &err), PL_E_STORAGE);
    assert_int_equal(pl_tensorboard_write(&t, 2.25, 300, values, 2, &err), PL_OK);
    pl_tensorboard_close(&t);
    assert_file(t.path, version, sizeof version - 1, scalars, sizeof scalars - 1);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests_name("tensorboard", tests, make_test_folder, remove_test_folder);
}
