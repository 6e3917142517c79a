/* Features of pages on the disk: what was written is read, also by who opens the file again; what is of another key or
 * was damaged anywhere is not; against a plain array that a random sequence of calls keeps up. */
#include "unit/store/scratch_folder.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/philox.h"
#include "data/pages/page_features.h"
#include "support/program.h"
#include "support/seed.h"

enum { ITEMS = 37, NUMBERS = 301, BYTES = NUMBERS * 4, STEPS = 3000 };

static float expected[ITEMS][NUMBERS];
static bool there[ITEMS];
static uint64_t seed;

static void must(pl_status status, const pl_error *err)
{
    if (status != PL_OK) fail_msg("%s", err->text);
}

static void begin(pl_page_features *f, uint64_t most, uint64_t key)
{
    pl_error err = {0};
    must(pl_page_features_init(f, in_folder("features"), ITEMS, BYTES, most, &err), &err);
    must(pl_page_features_open(f, key, &err), &err);
}

static uint32_t places_open(uint64_t most)
{
    pl_page_features f;
    begin(&f, most, 1);
    const uint32_t places = (uint32_t)f.places;
    struct stat st;
    assert_int_equal(stat(in_folder("features"), &st), 0);
    assert_int_equal((uint64_t)st.st_size, pl_page_features_file_bytes(&f));
    assert_true((uint64_t)st.st_size <= most);
    pl_page_features_deinit(&f);
    return places;
}

/* As many as fit, and one more byte where one more fits. */
static void test_as_many_as_fit(void **state)
{
    pl_error err = {0};
    pl_page_features f;
    uint32_t before = 1;
    (void)state;
    assert_int_equal(pl_page_features_init(&f, "f", ITEMS, BYTES, 4096 + BYTES - 1, &err), PL_E_CONFIG);
    pl_page_features_deinit(&f);
    for (uint64_t most = 4096 + BYTES; most < 4096 + BYTES * (ITEMS + 2); most += 97) {
        const uint32_t places = places_open(most);
        const uint64_t fit = (most - 4096) / BYTES;
        assert_int_equal(places, fit < ITEMS ? fit : ITEMS); /* their table lies in the first page */
        assert_true(places >= before);
        before = places;
    }
    assert_int_equal(before, ITEMS);
}

static void flip_byte(uint64_t at)
{
    uint8_t byte;
    int fd = open(in_folder("features"), O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static void check_item(pl_page_features *f, uint32_t item)
{
    float found[NUMBERS];
    const bool is_there = pl_page_features_read(f, item, found);
    assert_int_equal(is_there, there[item]);
    assert_int_equal(is_there, pl_page_features_has(f, item));
    if (is_there) assert_memory_equal(found, expected[item], BYTES);
}

static void write_item(pl_page_features *f, pl_philox *random, uint32_t item, uint64_t step)
{
    for (int i = 0; i < NUMBERS; i++) {
        uint32_t bits[4];
        pl_philox_block(random, step, item, (uint32_t)i, bits);
        expected[item][i] = (float)bits[0];
    }
    pl_page_features_write(f, item, expected[item]);
    there[item] = item < f->places;
}

static void test_random_calls(void **state)
{
    pl_philox random = pl_philox_init(seed, 7);
    const uint64_t most = 4096 + BYTES * 30;
    pl_page_features f;
    char text[400];
    (void)state;
    memset(there, 0, sizeof there);
    (void)unlink(in_folder("features"));
    begin(&f, most, 1);
    uint64_t key = 1;
    for (uint64_t step = 0; step < STEPS; step++) {
        uint32_t bits[4];
        pl_philox_block(&random, step, 99, 0, bits);
        const uint32_t item = bits[0] % ITEMS, what = bits[1] % 100;
        if (what < 50) {
            check_item(&f, item);
        } else if (what < 90) {
            write_item(&f, &random, item, step);
        } else if (what < 96 && there[item]) {
            flip_byte(4096 + item * BYTES + bits[2] % BYTES);
            there[item] = false;
            float ignored[NUMBERS];
            assert_false(pl_page_features_read(&f, item, ignored));
            assert_true(pl_page_features_tell(&f, text, sizeof text));
            if (!strstr(text, "the features of 1 page are no longer as they were written")) fail_msg("%s", text);
        } else if (what >= 96) {
            const bool another = what == 99, damaged = what == 98;
            pl_page_features_deinit(&f);
            if (damaged) flip_byte(8 + bits[2] % 32);
            key += another;
            if (another || damaged) memset(there, 0, sizeof there);
            begin(&f, most, key);
            assert_int_equal(pl_page_features_tell(&f, text, sizeof text), another || damaged);
        }
    }
    for (uint32_t i = 0; i < ITEMS; i++) check_item(&f, i);
    assert_false(pl_page_features_tell(&f, text, sizeof text));
    pl_page_features_deinit(&f);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void test_what_is_refused(void **state)
{
    pl_page_features one, two;
    pl_error err = {0};
    (void)state;
    begin(&one, 1 << 20, 1);
    must(pl_page_features_init(&two, in_folder("features"), ITEMS, BYTES, 1 << 20, &err), &err);
    assert_int_equal(pl_page_features_open(&two, 1, &err), PL_E_STORAGE);
    assert_non_null(strstr(err.text, "another process works with these features"));
    pl_page_features_deinit(&one);
    pl_page_features_deinit(&two);
    assert_int_equal(truncate(in_folder("features"), 0), 0);
    int fd = open(in_folder("features"), O_WRONLY);
    assert_int_equal(pwrite(fd, "a letter to somebody", 20, 0), 20);
    close(fd);
    must(pl_page_features_init(&one, in_folder("features"), ITEMS, BYTES, 1 << 20, &err), &err);
    assert_int_equal(pl_page_features_open(&one, 1, &err), PL_E_USAGE);
    assert_non_null(strstr(err.text, "is no file of features; move it away"));
    pl_page_features_deinit(&one);
}

static void move_header(bool in, uint8_t header[64])
{
    int fd = open(in_folder("features"), O_RDWR);
    assert_int_equal(in ? pwrite(fd, header, 64, 0) : pread(fd, header, 64, 0), 64);
    close(fd);
}

/* A power cut may leave a new header over an old table: what was kept under another key counts under no other. */
static void test_a_header_of_another_key(void **state)
{
    uint8_t header[64];
    float ignored[NUMBERS];
    pl_philox random = pl_philox_init(1, 1);
    pl_page_features f;
    (void)state;
    (void)unlink(in_folder("features"));
    begin(&f, 1 << 20, 2);
    pl_page_features_deinit(&f);
    move_header(false, header);
    (void)unlink(in_folder("features"));
    begin(&f, 1 << 20, 1);
    write_item(&f, &random, 3, 1);
    pl_page_features_deinit(&f);
    move_header(true, header);
    begin(&f, 1 << 20, 2);
    assert_true(pl_page_features_has(&f, 3));
    assert_false(pl_page_features_read(&f, 3, ignored));
    pl_page_features_deinit(&f);
    (void)unlink(in_folder("features"));
}

/* A disk that fails is no reason to stop: features are made as if there were no file, and that is said once. */
static void test_a_disk_that_fails(void **state)
{
    char text[400];
    float ignored[NUMBERS];
    pl_philox random = pl_philox_init(1, 1);
    pl_page_features f;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        (void)unlink(in_folder("features"));
        begin(&f, 1 << 20, 1);
        write_item(&f, &random, 3, 1);
        pl_io_fail_at(kind ? PL_IO_READ : PL_IO_WRITE, 1, EIO, 1);
        if (kind)
            assert_false(pl_page_features_read(&f, 3, ignored));
        else
            pl_page_features_write(&f, 4, expected[3]);
        pl_io_fail_at(kind ? PL_IO_READ : PL_IO_WRITE, 0, 0, 0);
        assert_false(pl_page_features_has(&f, 3));
        assert_true(pl_page_features_tell(&f, text, sizeof text));
        assert_non_null(strstr(text, "can no longer be read or written: Input/output error"));
        assert_false(pl_page_features_tell(&f, text, sizeof text));
        pl_page_features_deinit(&f);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_fit),    cmocka_unit_test(test_random_calls),
        cmocka_unit_test(test_what_is_refused),   cmocka_unit_test(test_a_header_of_another_key),
        cmocka_unit_test(test_a_disk_that_fails),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
