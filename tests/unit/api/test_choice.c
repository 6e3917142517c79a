/* A config and a choice in the words of each other: against the schema, and against what is written down here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "api/choice.h"
#include "config/schema.h"
#include "plimsoll/plan.h"
#include "support/program.h"

/* One that has all choices: only a hybrid model stores what is frozen. */
static pl_config *config_with_all(void)
{
    pl_error err = {0};
    pl_config *c = pl_config_create();
    assert_non_null(c);
    assert_int_equal(pl_config_set(c, "model.arch", "hybrid", "test", &err), PL_OK);
    return c;
}

static const pl_config_key *key_of(const pl_config *c, const pl_choice_row *row)
{
    const pl_config_key *key = pl_config_find_for(c, row->path);
    if (!key) fail_msg("%s is no key", row->path);
    return key;
}

static bool has_word(const pl_choice_row *row, const char *text)
{
    for (size_t i = 0; i < row->words; i++)
        if (strcmp(row->word[i].text, text) == 0) return true;
    return false;
}

static bool has_name(const pl_config_key *key, const char *text)
{
    for (size_t i = 0; i < key->name_count; i++)
        if (strcmp(key->names[i], text) == 0) return true;
    return false;
}

/* The words of a row are those of the schema; a number has but "auto". */
static void test_rows_name_keys_of_the_schema(void **state)
{
    (void)state;
    pl_config *c = config_with_all();
    for (int k = 0; k < PL_CHOICE_KEYS; k++) {
        const pl_choice_row *row = &pl_choice_rows[k];
        const pl_config_key *key = key_of(c, row);
        if (key->type == PL_CONFIG_INT) {
            assert_true(key->flags & PL_CONFIG_FLAG_AUTO);
            assert_int_equal(row->words, 1);
            continue;
        }
        assert_int_equal(key->type, PL_CONFIG_ENUM);
        assert_int_equal(row->words, key->name_count);
        for (size_t i = 0; i < key->name_count; i++)
            if (!has_word(row, key->names[i])) fail_msg("%s: %s has no value", row->path, key->names[i]);
        for (size_t i = 0; i < row->words; i++)
            if (!has_name(key, row->word[i].text)) fail_msg("%s: %s is no value", row->path, row->word[i].text);
    }
    pl_config_destroy(c);
}

static pl_config *config_of(const char *const pairs[][2])
{
    pl_error err = {0};
    pl_config *c = pl_config_create();
    assert_non_null(c);
    for (size_t i = 0; pairs[i][0]; i++)
        if (pl_config_set(c, pairs[i][0], pairs[i][1], "test", &err) != PL_OK) fail_msg("%s", err.text);
    return c;
}

static const char *const nothing[][2] = {{NULL, NULL}};
static const char *const all[][2] = {{"train.micro_batch", "3"},         {"train.mixed_precision", "fp16"},
                                     {"train.optimizer_state", "8bit"},  {"train.layer_major", "2"},
                                     {"train.shared_sums", "on"},        {"train.layer_major_keep", "0"},
                                     {"train.feed_forward_rows", "64"},  {"train.gradient_checkpointing", "full"},
                                     {"train.update_in_backward", "on"}, {"run.threads", "5"},
                                     {"memory.huge_pages", "off"},       {NULL, NULL}};

static pl_choice read_choice(const char *const pairs[][2], uint32_t uses, uint32_t *open)
{
    pl_choice choice;
    pl_config *c = config_of(pairs);
    pl_choice_read(c, uses, &choice, open);
    pl_config_destroy(c);
    return choice;
}

static void test_what_is_said_is_read(void **state)
{
    (void)state;
    uint32_t open;
    pl_choice read = read_choice(all, PL_USES_UPDATE | PL_USES_DATA, &open);
    pl_choice said = {.micro_batch = 3,
                      .precision = PL_DTYPE_F16,
                      .moments = PL_DTYPE_U8,
                      .shared_sums = true,
                      .layer_major = 2,
                      .layer_major_keep = 0,
                      .feed_forward_rows = 64,
                      .recompute = PL_RECOMPUTE_FULL,
                      .update_early = true,
                      .threads = 5};
    assert_true(pl_choice_equal(&read, &said));
    assert_int_equal(open, 0);
}

static void test_what_is_not_said_is_open_and_as_established(void **state)
{
    (void)state;
    uint32_t open;
    pl_choice read = read_choice(nothing, PL_USES_UPDATE, &open);
    pl_choice established = {.layer_major_keep = 1, .recompute = PL_RECOMPUTE_CHEAP, .huge_pages = true};
    assert_true(pl_choice_equal(&read, &established));
    /* all but those of other systems */
    const uint32_t others = 1u << PL_CHOICE_CONVOLUTIONS | 1u << PL_CHOICE_FROZEN;
    assert_int_equal(open, ((1u << PL_CHOICE_KEYS) - 1) & ~others);
}

/* Without an update there is no order of its step; precision and what is kept are read all the same. */
static void test_a_command_reads_what_it_uses(void **state)
{
    (void)state;
    uint32_t open;
    pl_choice read = read_choice(all, PL_USES_DATA | PL_USES_GRADIENT, &open);
    assert_true(read.layer_major == 0 && read.feed_forward_rows == 0 && !read.update_early);
    assert_true(read.micro_batch == 3 && read.precision == PL_DTYPE_F16 && read.recompute == PL_RECOMPUTE_FULL);
}

static void check_decided(const char *const pairs[][2], const char *precision, const char *moments)
{
    pl_error err = {0};
    char text[PL_CHOICE_TEXT_BYTES];
    const pl_choice choice = {.precision = PL_DTYPE_BF16, .moments = PL_DTYPE_U8, .micro_batch = 7};
    pl_config *c = config_of(pairs);
    assert_int_equal(pl_decide(c, &choice, &err), PL_OK);
    pl_choice_text(c, PL_CHOICE_PRECISION, text);
    assert_string_equal(text, precision);
    pl_choice_text(c, PL_CHOICE_MOMENTS, text);
    assert_string_equal(text, moments);
    pl_choice_text(c, PL_CHOICE_MICRO_BATCH, text);
    assert_string_not_equal(text, "7");
    if (pairs == nothing) assert_false(pl_config_is_set(c, "train.optimizer_state"));
    pl_config_destroy(c);
}

/* What changes numbers, where it was left open, and nothing else; and nobody said it on the command line. */
static void test_only_what_was_left_is_decided(void **state)
{
    (void)state;
    static const char *const off[][2] = {{"train.mixed_precision", "off"}, {NULL, NULL}};
    check_decided(nothing, "bf16", "8bit");
    check_decided(off, "off", "8bit");
    check_decided(all, "fp16", "8bit");
}

static void test_longest_words(void **state)
{
    (void)state;
    pl_error err = {0};
    char text[PL_CHOICE_TEXT_BYTES];
    pl_config *c = config_with_all();
    assert_int_equal(pl_decide_longest(c, &err), PL_OK);
    for (int k = 0; k < PL_CHOICE_KEYS; k++) {
        const pl_choice_row *row = &pl_choice_rows[k];
        pl_choice_text(c, k, text);
        assert_int_equal(strcmp(text, "auto") == 0, !row->numbers);
        for (size_t i = 1; i < row->words && row->numbers; i++) assert_true(strlen(row->word[i].text) <= strlen(text));
    }
    pl_config_destroy(c);
}

static void test_keys_are_copied(void **state)
{
    (void)state;
    pl_config *from = config_of(all), *to = config_of(nothing);
    assert_false(pl_config_equal(from, to));
    pl_choice_copy(from, to);
    assert_true(pl_config_equal(from, to));
    pl_config_destroy(from);
    pl_config_destroy(to);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_name_keys_of_the_schema),
                                       cmocka_unit_test(test_what_is_said_is_read),
                                       cmocka_unit_test(test_what_is_not_said_is_open_and_as_established),
                                       cmocka_unit_test(test_a_command_reads_what_it_uses),
                                       cmocka_unit_test(test_only_what_was_left_is_decided),
                                       cmocka_unit_test(test_longest_words),
                                       cmocka_unit_test(test_keys_are_copied)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
