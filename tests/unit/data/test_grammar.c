/* Texts of the grammar: a pure function of seed and number, valid UTF-8 within the lengths, and hardly ever twice. */
#include "unit/data/scratch.h"

#include "base/json.h"
#include "data/pages/grammar.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;

enum { TEXTS = 30000 };

/* Characters; fails on what is no UTF-8. */
static size_t count_characters(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t at = 0; at < bytes; n++) {
        const size_t length = pl_json_utf8_length((const unsigned char *)text + at, bytes - at);
        assert_in_range(length, 1, 4);
        at += length;
    }
    return n;
}

static void test_lengths(void **state)
{
    (void)state;
    char text[PL_GRAMMAR_TEXT_BYTES];
    size_t shortest = SIZE_MAX, longest = 0;
    for (uint64_t id = 0; id < TEXTS; id++) {
        const size_t n = count_characters(text, pl_grammar_text(seed, id, text));
        if (n < shortest) shortest = n;
        if (n > longest) longest = n;
        assert_in_range(n, PL_GRAMMAR_CHARACTERS_MIN, PL_GRAMMAR_CHARACTERS_MAX);
    }
    assert_in_range(shortest, 20, 30);
    assert_in_range(longest, 380, 400);
}

static void test_pure(void **state)
{
    (void)state;
    char one[PL_GRAMMAR_TEXT_BYTES], two[PL_GRAMMAR_TEXT_BYTES];
    int same_number = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t id = UINT64_MAX / 1000 * i;
        const size_t n = pl_grammar_text(seed, id, one);
        (void)pl_grammar_text(seed + 1, id, two);
        same_number += memcmp(one, two, 20) == 0;
        (void)pl_grammar_text(seed, id + 1, two);
        assert_int_equal(pl_grammar_text(seed, id, two), n);
        assert_memory_equal(one, two, n);
    }
    assert_in_range(same_number, 0, 20);
}

/* These three are what they were: a change would make other data of the same seed. */
static void test_known(void **state)
{
    (void)state;
    static const struct {
        uint64_t id;
        const char *text;
    } known[] = {
        {9, "On 29 October at 12:15, the machine moves Marta. Do not meet the lamp before the harbour is green!"},
        {23, "E[alpha] = 0.07, Var[M] = 0.4132\nlim_{key -> 3183} Q = 8e-5"},
        {26, "return y + it;\nUPDATE road SET anchor = 9.64e1 WHERE kitchen_id = 7957;\nvillage = [theory_ribbon(row) "
             "for it in range(5)]\nenum Pool45 { DEPTH_STATE = 2, CACHE_STATE = 0xb5 };\nnarrow_road = [3e-6 for col "
             "in range(786)]\nscript_path <- lm(planet ~ village + grain, data = ocean_26)\n{\"storm\": 711156, "
             "\"table\": [0.8688, 1e-9], \"circle\": \"stable\"}"}};
    char text[PL_GRAMMAR_TEXT_BYTES];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_int_equal(pl_grammar_text(1, known[i].id, text), strlen(known[i].text));
        assert_memory_equal(text, known[i].text, strlen(known[i].text));
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* FNV-1a. */
static uint64_t hash_of(const char *text, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash;
}

static void test_variety(void **state)
{
    (void)state;
    static uint64_t hash[TEXTS];
    int same = 0, beyond_ascii = 0, tabs = 0, paragraphs = 0, hebrew_or_arabic = 0;
    char text[PL_GRAMMAR_TEXT_BYTES + 1];
    for (uint64_t id = 0; id < TEXTS; id++) {
        const size_t n = pl_grammar_text(seed, id, text);
        text[n] = 0;
        hash[id] = hash_of(text, n);
        int high = 0, right_to_left = 0;
        for (size_t i = 0; i < n; i++) {
            high |= text[i] & 0x80;
            right_to_left |= (unsigned char)text[i] >= 0xd6 && (unsigned char)text[i] <= 0xdb;
        }
        beyond_ascii += high != 0, hebrew_or_arabic += right_to_left;
        tabs += strchr(text, '\t') != NULL, paragraphs += strstr(text, "\n\n") != NULL;
    }
    qsort(hash, TEXTS, sizeof *hash, by_value);
    for (int i = 1; i < TEXTS; i++) same += hash[i] == hash[i - 1];
    assert_in_range(same, 0, TEXTS / 1000);
    assert_in_range(beyond_ascii, TEXTS / 40, TEXTS / 12); /* one in sixteen, of which most */
    assert_in_range(hebrew_or_arabic, TEXTS / 150, TEXTS / 20);
    assert_in_range(tabs, TEXTS / 200, TEXTS / 5);
    assert_in_range(paragraphs, TEXTS / 400, TEXTS / 20);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_pure),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_variety),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
