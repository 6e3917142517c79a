/* The token file: what was written is read, by any ranges; every kind of damage is found and named. */
#include "support/program.h"
#include "unit/data/token_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/vfs.h>

static pl_error err;
static pl_tokens tokens;

static void check_all(const char *path, uint64_t count, uint32_t vocab)
{
    pl_tokens_reader r;
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_OK);
    assert_int_equal(tokens.info.count, count);
    assert_int_equal(tokens.info.vocab, vocab);
    assert_int_equal(tokens.info.id_bytes, vocab > 65536 ? 4 : 2);
    assert_int_equal(tokens.info.source.mtime_ns, -15);
    assert_true(tokens.info.source.ctime_ns == -17 && tokens.info.source.inode == 16);
    assert_int_equal(tokens.info.recipe, 12);
    assert_int_equal(pl_tokens_verify(&tokens, &err), PL_OK);
    void *memory = pl_alloc(pl_tokens_reader_bytes(&tokens.info), 1);
    pl_tokens_reader_init(&r, &tokens, memory);
    int32_t *out = pl_alloc(count, sizeof *out);
    scratch_random random = {pl_philox_init(3, 3), 0};
    for (int i = 0; i < 200; i++) {
        uint64_t a = scratch_next(&random, (uint32_t)count + 1),
                 b = a + scratch_next(&random, (uint32_t)(count - a) + 1);
        assert_int_equal(pl_tokens_read(&r, a, b, out, &err), PL_OK);
        for (uint64_t j = a; j < b; j++) assert_int_equal(out[j - a], known_token(j, vocab));
    }
    assert_int_equal(pl_tokens_read(&r, 0, count + 1, out, &err), PL_E_INTERNAL);
    pl_free(out), pl_free(memory);
    pl_tokens_close(&tokens);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const uint64_t counts[] = {
        1, 2, 3, PL_TOKENS_BLOCK - 1, PL_TOKENS_BLOCK, PL_TOKENS_BLOCK + 1, 3 * PL_TOKENS_BLOCK + 5};
    static const uint32_t vocabs[] = {788, 65536, 65537, 1000000};
    for (size_t i = 0; i < 7; i++)
        for (size_t j = 0; j < 4; j++) {
            const char *path = scratch_path("tokens");
            write_known_tokens(path, counts[i], vocabs[j]);
            check_all(path, counts[i], vocabs[j]);
        }
}

static void test_every_truncation(void **state)
{
    (void)state;
    const char *path = scratch_path("short");
    write_known_tokens(path, 40, 788);
    for (long n = 128 + 80 + 8 - 1; n >= 0; n--) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_E_DATA);
        assert_says(&err, path);
        assert_int_equal(tokens.fd, -1);
    }
}

static void test_longer_file(void **state)
{
    (void)state;
    const char *path = scratch_path("long");
    write_known_tokens(path, 40, 788);
    assert_int_equal(truncate(path, 217), 0);
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_E_DATA);
    assert_says(&err, "has 217 bytes, but 40 tokens need 216");
}

/* A changed byte anywhere is found: in header and table at once, among the ids when its block is read. */
static void test_damage_is_found_where_it_is(void **state)
{
    (void)state;
    const char *path = scratch_path("damaged");
    uint64_t count = 2 * PL_TOKENS_BLOCK + 100, ids = 2 * count;
    for (long at = 0; at < 128; at++) {
        write_known_tokens(path, 40, 788);
        scratch_damage(path, at);
        assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_E_DATA);
    }
    write_known_tokens(path, count, 788);
    scratch_damage(path, 128 + (long)ids + 9);
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_E_DATA);
    assert_says(&err, "table of checksums");
    write_known_tokens(path, count, 788);
    scratch_damage(path, 128 + 2 * PL_TOKENS_BLOCK + 77);
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_OK);
    int32_t out[300];
    pl_tokens_reader r;
    void *memory = pl_alloc(pl_tokens_reader_bytes(&tokens.info), 1);
    pl_tokens_reader_init(&r, &tokens, memory);
    assert_int_equal(pl_tokens_read(&r, 0, 300, out, &err), PL_OK);
    assert_int_equal(pl_tokens_read(&r, count - 50, count, out, &err), PL_OK);
    assert_int_equal(pl_tokens_read(&r, PL_TOKENS_BLOCK - 1, PL_TOKENS_BLOCK + 2, out, &err), PL_E_DATA);
    assert_says(&err, "bytes 32896 to 65664 are damaged");
    assert_int_equal(pl_tokens_verify(&tokens, &err), PL_E_DATA);
    assert_says(&err, "block 1");
    pl_free(memory);
    pl_tokens_close(&tokens);
}

/* Damage after the first look: an id that no table has is still refused. */
static void test_id_out_of_range(void **state)
{
    (void)state;
    const char *path = scratch_path("range");
    int32_t out[4];
    pl_tokens_reader r;
    write_known_tokens(path, 40, 100);
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_OK);
    void *memory = pl_alloc(pl_tokens_reader_bytes(&tokens.info), 1);
    pl_tokens_reader_init(&r, &tokens, memory);
    assert_int_equal(pl_tokens_read(&r, 8, 12, out, &err), PL_OK);
    scratch_damage(path, 128 + 2 * 9 + 1);
    assert_int_equal(pl_tokens_read(&r, 8, 12, out, &err), PL_E_DATA);
    assert_says(&err, "token 9 is");
    pl_free(memory);
    pl_tokens_close(&tokens);
}

static void test_wrong_files(void **state)
{
    (void)state;
    assert_int_equal(pl_tokens_open(&tokens, scratch_path("missing"), &err), PL_E_DATA);
    char text[300] = "this is a text and no token file";
    assert_int_equal(pl_tokens_open(&tokens, scratch_file("text", text, sizeof text), &err), PL_E_DATA);
    assert_says(&err, "is not a token file");
    assert_int_equal(pl_tokens_open(&tokens, scratch_folder, &err), PL_E_DATA);
}

static void test_writing_fails(void **state)
{
    (void)state;
    const char *path = scratch_path("full");
    for (int kind = PL_IO_OPEN; kind < PL_IO_KINDS; kind++) {
        if (kind == PL_IO_READ) continue;
        pl_tokens_writer *w = NULL;
        uint32_t ids[3] = {1, 2, 3};
        uint64_t live = pl_alloc_live_blocks();
        pl_io_fail_at((pl_io_kind)kind, 1, ENOSPC, 1);
        pl_status status = pl_tokens_create(path, 10, &w, &err);
        if (status == PL_OK) status = pl_tokens_append(w, ids, 3, &err);
        if (status == PL_OK) status = pl_tokens_commit(w, &(pl_tokens_info){0}, &err);
        pl_io_fail_at((pl_io_kind)kind, 0, 0, 0);
        assert_int_equal(status, PL_E_STORAGE);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
}

static void test_nothing_to_write(void **state)
{
    (void)state;
    pl_tokens_writer *w;
    assert_int_equal(pl_tokens_create(scratch_path("none"), 10, &w, &err), PL_OK);
    assert_int_equal(pl_tokens_append(w, &(uint32_t){10}, 1, &err), PL_E_INTERNAL);
    assert_int_equal(pl_tokens_commit(w, &(pl_tokens_info){0}, &err), PL_E_DATA);
    assert_says(&err, "no tokens");
    assert_int_equal(access(scratch_path("none"), F_OK), -1);
    pl_tokens_abandon(NULL);
}

/* By the kernel's own account (mincore). A file system that is memory keeps all. */
static uint64_t bytes_cached(void)
{
    enum { PAGE = 4096, TMPFS = 0x01021994 };
    const uint64_t bytes = pl_tokens_file_bytes(&tokens.info);
    unsigned char is_there[1024];
    struct statfs disk;
    uint64_t sum = 0;
    assert_true(bytes <= (uint64_t)PAGE * sizeof is_there);
    void *map = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, tokens.fd, 0); /* what may read it, valgrind reads */
    assert_true(map != MAP_FAILED && fstatfs(tokens.fd, &disk) == 0);
    assert_int_equal(mincore(map, bytes, is_there), 0);
    for (uint64_t i = 0; i * PAGE < bytes; i++) sum += is_there[i] & 1 ? PAGE : 0;
    munmap(map, bytes);
    if (disk.f_type == TMPFS) skip();
    return sum;
}

/* Opens the known file; a reader in memory that the caller frees. */
static void *open_known(const char *path, uint64_t count, pl_tokens_reader *r)
{
    write_known_tokens(path, count, 788);
    assert_int_equal(pl_tokens_open(&tokens, path, &err), PL_OK);
    void *memory = pl_alloc(pl_tokens_reader_bytes(&tokens.info), 1);
    pl_tokens_reader_init(r, &tokens, memory);
    return memory;
}

/* What is cached when a small file that was read has been closed. */
static uint64_t bytes_left_by_small_file(void)
{
    enum { COUNT = 10000 };
    pl_tokens_reader r;
    int32_t out[COUNT];
    void *memory = open_known(scratch_path("small"), COUNT, &r);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pl_tokens_read(&r, 0, COUNT, out, &err), PL_OK);
        pl_tokens_trim_cache(&r);
        assert_true(bytes_cached() > 0);
    }
    const int other = dup(tokens.fd);
    pl_tokens_close(&tokens);
    tokens.fd = other;
    const uint64_t left = bytes_cached();
    close(other);
    pl_free(memory);
    return left;
}

/* The kernel keeps a page that it has in hand for a moment, whoever asks it to drop it: once in many times none is. */
static void test_small_file_stays_cached(void **state)
{
    uint64_t left = 1;
    (void)state;
    for (int i = 0; i < 100 && left; i++) left = bytes_left_by_small_file();
    assert_int_equal(left, 0);
}

static void test_page_cache_is_kept_small(void **state)
{
    (void)state;
    enum { COUNT = 1000000, WINDOW = 500 };
    const char *path = scratch_path("cached");
    pl_tokens_reader r;
    int32_t out[WINDOW];
    scratch_random random = {pl_philox_init(4, 4), 0};
    void *memory = open_known(path, COUNT, &r);
    for (int i = 0; i < 2000; i++) {
        const uint64_t begin = scratch_next(&random, COUNT - WINDOW);
        assert_int_equal(pl_tokens_read(&r, begin, begin + WINDOW, out, &err), PL_OK);
        pl_tokens_trim_cache(&r);
        if (i % 50 == 0) assert_true(bytes_cached() <= PL_TOKENS_CACHE_BYTES);
    }
    pl_free(memory);
    pl_tokens_close(&tokens);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_longer_file),
        cmocka_unit_test(test_damage_is_found_where_it_is),
        cmocka_unit_test(test_id_out_of_range),
        cmocka_unit_test(test_wrong_files),
        cmocka_unit_test(test_writing_fails),
        cmocka_unit_test(test_nothing_to_write),
        cmocka_unit_test(test_small_file_stays_cached),
        cmocka_unit_test(test_page_cache_is_kept_small),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
