/* The table of axes: its rows agree with each other, and every field that it names tells two choices apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "fit/choice.h"
#include "support/program.h"

/* What the three comparisons say of two choices that differ in one key, from `a` to `b`. Written down apart from the
 * table, for each key. */
static const struct {
    pl_choice_key key;
    int64_t a, b;
    bool form, kernels;
} changes[] = {{PL_CHOICE_MICRO_BATCH, 4, 8, true, false},
               {PL_CHOICE_PRECISION, PL_DTYPE_F32, PL_DTYPE_BF16, false, false},
               {PL_CHOICE_MOMENTS, PL_DTYPE_F32, PL_DTYPE_U8, true, false},
               {PL_CHOICE_SHARED_SUMS, false, true, false, true},
               {PL_CHOICE_FROZEN, PL_DTYPE_F32, PL_DTYPE_BF16, false, false},
               {PL_CHOICE_LAYER_MAJOR, 0, 1, false, false},
               {PL_CHOICE_LAYER_MAJOR, 1, 2, false, true},
               {PL_CHOICE_LAYER_MAJOR_KEEP, 0, 1, false, true},
               {PL_CHOICE_CHUNKS, 0, 16, false, false},
               {PL_CHOICE_CHUNKS, 16, 32, true, false},
               {PL_CHOICE_CONVOLUTIONS, 0, 1, false, false},
               {PL_CHOICE_CONVOLUTIONS, 1, 2, false, false},
               {PL_CHOICE_RECOMPUTE, PL_RECOMPUTE_NOTHING, PL_RECOMPUTE_CHEAP, true, false},
               {PL_CHOICE_UPDATE, false, true, true, true},
               {PL_CHOICE_THREADS, 1, 2, true, true},
               {PL_CHOICE_HUGE_PAGES, false, true, true, true}};
enum { CHANGES = sizeof changes / sizeof *changes };

static void test_choices_are_compared_by_every_key(void **state)
{
    (void)state;
    bool seen[PL_CHOICE_KEYS] = {false};
    for (size_t i = 0; i < CHANGES; i++) {
        const pl_choice_row *row = &pl_choice_rows[changes[i].key];
        pl_choice a = {.micro_batch = 2}, b = a;
        row->put(&a, changes[i].a);
        row->put(&b, changes[i].a);
        assert_true(pl_choice_equal(&a, &b) && pl_choice_same_form(&a, &b) && pl_choice_same_kernels(&a, &b));
        row->put(&b, changes[i].b);
        assert_int_equal(row->get(&b), changes[i].b);
        assert_false(pl_choice_equal(&a, &b));
        if (pl_choice_same_form(&a, &b) != changes[i].form) fail_msg("%s: the form", row->path);
        if (pl_choice_same_kernels(&a, &b) != changes[i].kernels) fail_msg("%s: the kernels", row->path);
        seen[changes[i].key] = true;
    }
    for (int key = 0; key < PL_CHOICE_KEYS; key++)
        if (!seen[key]) fail_msg("%s is not among the changes", pl_choice_rows[key].path);
}

/* Two frontiers may propose the same: what is compared is what they say, not where it lies. */
static void test_decisions_are_compared_by_what_they_say(void **state)
{
    (void)state;
    pl_again first[] = {{1, 9}, {2, 8}}, second[] = {{1, 9}, {2, 8}}, third[] = {{1, 9}, {3, 8}};
    pl_recompute_decision a = {.again = first, .count = 2}, b = {.again = second, .count = 2},
                          c = {.again = third, .count = 2}, fewer = {.again = first, .count = 1};
    pl_choice x = {.decision = &a}, y = {.decision = &b};
    assert_true(pl_choice_equal(&x, &y));
    y.decision = &c;
    assert_false(pl_choice_equal(&x, &y));
    y.decision = &fewer;
    assert_false(pl_choice_equal(&x, &y));
    y.decision = NULL;
    assert_false(pl_choice_equal(&x, &y));
    assert_true(pl_choice_same_form(&x, &y) && pl_choice_same_kernels(&x, &y));
}

/* Each turn is one key's, and a value that has a word is said with it. */
static void test_rows_are_whole(void **state)
{
    (void)state;
    for (int key = 0; key < PL_CHOICE_KEYS; key++) {
        const pl_choice_row *row = &pl_choice_rows[key];
        assert_non_null(row->path);
        assert_true(row->under <= PL_CHOICE_NO_KEY && (int)row->under != key);
        assert_string_equal(row->word[0].text, "auto");
        for (int other = 0; other < key; other++) assert_string_not_equal(row->path, pl_choice_rows[other].path);
        for (size_t i = 1; i < row->words; i++) {
            pl_choice c = {0};
            row->put(&c, row->word[i].value);
            assert_string_equal(pl_choice_say(&c, key), row->word[i].text);
        }
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_choices_are_compared_by_every_key),
                                       cmocka_unit_test(test_decisions_are_compared_by_what_they_say),
                                       cmocka_unit_test(test_rows_are_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
