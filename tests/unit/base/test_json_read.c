/* Reading JSON while memory is refused: whichever request it is, the answer is "no memory", never another error, a tree
 * with a letter less or a read behind a buffer, and nothing is kept. Oracle: the tree that was read undisturbed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

static json_t *must_read(const char *document)
{
    json_t *root;
    json_error_t why;
    if (pl_json_read(document, strlen(document), JSON_REJECT_DUPLICATES, &root, &why) != PL_OK)
        fail_msg("%s: %s", document, why.text);
    return root;
}

/* Whoever asks for a number gets the nearest one, or none; who asks for other keys is not disturbed. */
static void numbers_of_any_size(void **state)
{
    (void)state;
    static const struct {
        const char *number;
        double value; /* NAN: it is none */
    } cases[] = {{"1e999", NAN},
                 {"-1E+400", NAN},
                 {"1.5e308", 1.5e308},
                 {"1e-999", 0},
                 {"9223372036854775807", 9223372036854775807.0},
                 {"9223372036854775808", 9223372036854775808.0},
                 {"-9223372036854775809", -9223372036854775809.0},
                 {"18446744073709551616", 18446744073709551616.0},
                 {"123456789012345678901234567890", 123456789012345678901234567890.0},
                 {"-340282366920938463463374607431768211456", -0x1p128}};
    char document[700], digits[400];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(document, sizeof document,
                 "{\"a\": 1e999, \"text\": \"1e999 \\\" 99999999999999999999\", \"n\":[%s,2]}", cases[i].number);
        json_t *root = must_read(document), *n = json_array_get(json_object_get(root, "n"), 0);
        assert_string_equal(json_string_value(json_object_get(root, "text")), "1e999 \" 99999999999999999999");
        assert_int_equal(json_integer_value(json_array_get(json_object_get(root, "n"), 1)), 2);
        assert_false(json_is_number(json_object_get(root, "a")));
        assert_int_equal(json_is_number(n), !isnan(cases[i].value));
        if (json_is_number(n))
            assert_true(fabs(json_number_value(n) / cases[i].value - 1) < 1e-15 || cases[i].value == 0);
        json_decref(root);
    }
    memset(digits, '7', sizeof digits);
    snprintf(document, sizeof document, "[%.309s, %.310s]", digits, digits);
    json_t *root = must_read(document); /* 7.8e308 and more: no double */
    assert_false(json_is_number(json_array_get(root, 0)) || json_is_number(json_array_get(root, 1)));
    json_decref(root);
    json_error_t why;
    static const char *const wrong[] = {"[1e999", "[1e999,]", "[01e999]", "[1e999e]", "{\"a\":1e999,\"a\":1}", "[-]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(pl_json_read(wrong[i], strlen(wrong[i]), JSON_REJECT_DUPLICATES, &root, &why), PL_E_DATA);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_refusal_is_told), cmocka_unit_test(the_hosts_functions_stay),
                                       cmocka_unit_test(a_tree_is_counted), cmocka_unit_test(numbers_of_any_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
