/* What blocks take from the heap is known by the requests alone; glibc's own figures, of a heap that was never used,
 * are the oracle. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "support/program.h"

enum { BLOCKS = 500 };

/* The same requests, and what they left, after the heap went through something else. */
static uint64_t take_and_give_back(void **block)
{
    uint64_t before = pl_alloc_live_bytes();
    for (size_t i = 0; i < BLOCKS; i++) assert_non_null(block[i] = pl_alloc(1, i * 37 % 3000));
    for (size_t i = 0; i < BLOCKS; i += 3) pl_free(block[i]), block[i] = NULL;
    for (size_t i = 1; i < BLOCKS; i += 3) assert_non_null(block[i] = pl_realloc(block[i], 1, i * 91 % 5000));
    uint64_t held = pl_alloc_live_bytes() - before;
    for (size_t i = 0; i < BLOCKS; i++) pl_free(block[i]);
    assert_int_equal(pl_alloc_live_bytes(), before);
    return held;
}

static void test_same_requests_same_bytes(void **state)
{
    static void *block[BLOCKS], *other[BLOCKS];
    (void)state;
    uint64_t fresh = take_and_give_back(block);
    for (size_t i = 0; i < BLOCKS; i++) assert_non_null(other[i] = pl_alloc(1, i * 53 % 700 + 1));
    for (size_t i = 0; i < BLOCKS; i += 2) pl_free(other[i]), other[i] = NULL;
    assert_int_equal(take_and_give_back(block), fresh);
    for (size_t i = 0; i < BLOCKS; i++) pl_free(other[i]);
}

/* A chunk's size is in the word before the block that malloc gave (malloc.c of glibc); other allocators count in
 * their own way. */
static void test_bytes_are_those_of_chunks(void **state)
{
    (void)state;
    if (mallinfo2().arena == 0) skip();
    for (size_t bytes = 0; bytes < 2000; bytes += 7) {
        uint64_t before = pl_alloc_live_bytes();
        char *block = pl_alloc(1, bytes);
        assert_non_null(block);
        uint64_t counted = pl_alloc_live_bytes() - before;
        uint64_t chunk = malloc_usable_size(block - PL_ALLOC_HEADER_BYTES) + sizeof(size_t);
        assert_in_range(chunk, counted, counted + 16); /* a remainder too small to be a chunk stays with its block */
        assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
        pl_free(block);
    }
}

/* A block of 1000 bytes is a chunk of 1024: 16 before it for its size, 8 of malloc's. */
static void test_a_meter_counts_what_is_asked_for(void **state)
{
    (void)state;
    pl_alloc_meter m = {0};
    char *before = pl_alloc(1, 1000);
    assert_null(pl_alloc_set_meter(&m));
    char *a = pl_alloc(1, 1000), *b = pl_alloc(1, 1000);
    assert_int_equal(m.held_bytes, 2048);
    pl_free(a);
    pl_free(before); /* was not counted */
    assert_int_equal(m.held_bytes, 1024);
    assert_int_equal(m.peak_bytes, 2048);
    b = pl_realloc(b, 1, 3000); /* there twice for a moment */
    assert_int_equal(m.held_bytes, 3024);
    assert_int_equal(m.peak_bytes, 4048);
    assert_ptr_equal(pl_alloc_set_meter(NULL), &m);
    pl_free(pl_alloc(1, 1000));
    pl_free(b); /* under none */
    assert_int_equal(m.held_bytes, 3024);
}

static void test_what_a_library_asks_for_is_counted(void **state)
{
    (void)state;
    pl_alloc_meter m = {.held_bytes = 0};
    char *before = pl_alloc(1, 1000);
    (void)pl_alloc_set_meter(&m);
    pl_free(before); /* counted by none */
    assert_int_equal(m.held_bytes, 0);
    assert_true(pl_alloc_count_taken(1));
    assert_int_equal(m.held_bytes, 32);
    pl_alloc_count_given(1, false);
    assert_int_equal(m.held_bytes, 32);
    pl_alloc_count_given(1, true);
    assert_int_equal(m.held_bytes, 0);
    (void)pl_alloc_set_meter(NULL);
    assert_false(pl_alloc_count_taken(1));
    pl_alloc_count_given(1, true);
    assert_int_equal(m.held_bytes, 0);
    assert_int_equal(m.peak_bytes, 32);
}

static void test_sizes_at_the_edge_are_refused(void **state)
{
    (void)state;
    uint64_t before = pl_alloc_live_bytes();
    assert_null(pl_alloc(1, SIZE_MAX));
    assert_null(pl_alloc(1, SIZE_MAX - PL_ALLOC_HEADER_BYTES + 1));
    char *block = pl_alloc(1, 8);
    assert_null(pl_realloc(block, 1, SIZE_MAX - 3));
    pl_free(block);
    assert_int_equal(pl_alloc_live_bytes(), before);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_requests_same_bytes),
        cmocka_unit_test(test_bytes_are_those_of_chunks),
        cmocka_unit_test(test_a_meter_counts_what_is_asked_for),
        cmocka_unit_test(test_what_a_library_asks_for_is_counted),
        cmocka_unit_test(test_sizes_at_the_edge_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
