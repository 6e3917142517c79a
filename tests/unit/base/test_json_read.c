/* Reading JSON while memory is refused: whichever request it is, the answer is "no memory", never another error, a tree
 * with a letter less or a read behind a buffer, and nothing is kept. Oracle: the tree that was read undisturbed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json_read.h"
#include "support/program.h"

static long left, asked, held;

static void *refusing_malloc(size_t bytes)
{
    asked++;
    if (--left == 0) return NULL;
    held++;
    return malloc(bytes);
}

static void counting_free(void *block)
{
    held--;
    free(block);
}

/* Tokens longer than jansson's first buffer of 16 bytes, numbers among them. */
static const char text[] =
    "{\"a name that is longer than sixteen bytes\": 1234567890123456789, \"b\": [1.25e-100, true],"
    "\"twenty-four digits\": 0.123456789012345678901234,"
    "\"c\": \"text with \\u00e9 and a long tail that grows the buffer twice or three times\"}";

static pl_status read_refusing(long n, json_t **root)
{
    json_error_t why;
    left = n;
    asked = 0;
    return pl_json_read(text, strlen(text), JSON_REJECT_DUPLICATES, root, &why);
}

static void a_refusal_is_told(void **state)
{
    (void)state;
    json_t *whole, *root;
    json_set_alloc_funcs(refusing_malloc, counting_free);
    assert_int_equal(read_refusing(0, &whole), PL_OK);
    long requests = asked, tree = held;
    assert_true(requests > 20);
    for (long n = 1; n <= requests; n++) {
        pl_status status = read_refusing(n, &root);
        if (status != PL_E_NOMEM) fail_msg("request %ld: %s", n, pl_status_name(status));
        assert_null(root);
        assert_int_equal(held, tree);
    }
    assert_int_equal(read_refusing(0, &root), PL_OK);
    assert_true(json_equal(root, whole));
    json_decref(root);
    json_decref(whole);
    assert_int_equal(held, 0);
    json_set_alloc_funcs(malloc, free);
}

static void the_hosts_functions_stay(void **state)
{
    (void)state;
    json_t *root;
    json_error_t why;
    json_malloc_t asks;
    json_free_t frees;
    json_set_alloc_funcs(refusing_malloc, counting_free);
    assert_int_equal(read_refusing(0, &root), PL_OK);
    json_decref(root);
    assert_int_equal(pl_json_read("{", 1, 0, &root, &why), PL_E_DATA);
    assert_null(root);
    assert_true(why.text[0]);
    json_get_alloc_funcs(&asks, &frees);
    assert_true(asks == refusing_malloc && frees == counting_free);
    json_set_alloc_funcs(malloc, free);
}

/* What is held of jansson's blocks, each with malloc's word. */
static uint64_t chunk_sum;

static uint64_t chunk_of(size_t bytes) { return bytes + 8 < 32 ? 32 : (bytes + 8 + 15) / 16 * 16; }

static void *summing_malloc(size_t bytes)
{
    size_t *block = malloc(bytes + 16);
    assert_non_null(block);
    chunk_sum += chunk_of(*block = bytes);
    return block + 2;
}

static void summing_free(void *block)
{
    if (!block) return;
    chunk_sum -= chunk_of(((size_t *)block)[-2]);
    free((size_t *)block - 2);
}

static void a_tree_is_counted(void **state)
{
    (void)state;
    json_t *root;
    json_error_t why;
    pl_alloc_meter m = {0};
    json_set_alloc_funcs(summing_malloc, summing_free);
    assert_int_equal(pl_json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &root, &why), PL_OK);
    const uint64_t expected = chunk_sum;
    json_decref(root);
    assert_int_equal(chunk_sum, 0);
    json_set_alloc_funcs(malloc, free);
    (void)pl_alloc_set_meter(&m);
    pl_json_count(true);
    assert_int_equal(pl_json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &root, &why), PL_OK);
    assert_int_equal(m.held_bytes, expected);
    assert_true(m.peak_bytes > m.held_bytes);
    json_decref(root);
    assert_int_equal(m.held_bytes, 0);
    pl_json_count(false);
    (void)pl_alloc_set_meter(NULL);
    json_malloc_t now;
    json_get_alloc_funcs(&now, NULL);
    assert_true(now == malloc);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_refusal_is_told), cmocka_unit_test(the_hosts_functions_stay),
                                       cmocka_unit_test(a_tree_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
