/* The table writer, against rows written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "report/table.h"
#include "support/program.h"

static void print(pl_str *out, bool color)
{
    pl_table t = pl_table_begin(out, "lrrl");
    t.color = color;
    while (pl_table_pass(&t)) {
        pl_table_cell(&t, "%s", "größe");
        pl_table_bytes(&t, 1234567);
        pl_table_end_row(&t);
        pl_table_cell(&t, "%s", "漢字");
        pl_table_bytes(&t, 4999);
        pl_table_cell(&t, "%s", "wide");
        pl_table_end_row(&t);
        pl_table_rule(&t, 1, 3);
        t.strong = true;
        pl_table_cell(&t, "%s", "");
        pl_table_difference(&t, -5000);
        pl_table_end_row(&t);
    }
}

static void test_columns_line_up(void **state)
{
    (void)state;
    pl_str s = {0};
    print(&s, false);
    assert_string_equal(pl_str_text(&s), "größe  1,234,567  1.23\n"
                                         "漢字       4,999  0.00  wide\n"
                                         "       ---------------\n"
                                         "          -5,000\n");
    pl_str_deinit(&s);
}

static void test_colors_take_no_room(void **state)
{
    (void)state;
    pl_str s = {0};
    print(&s, true);
    assert_non_null(strstr(pl_str_text(&s), "          \033[1m-5,000\033[0m\n"));
    pl_str_deinit(&s);
}

static void test_extremes(void **state)
{
    (void)state;
    pl_str s = {0};
    for (pl_table t = pl_table_begin(&s, "rrr"); pl_table_pass(&t);) {
        pl_table_bytes(&t, UINT64_MAX);
        pl_table_difference(&t, INT64_MIN);
        pl_table_cell(&t, "%s", "beyond the last column");
        pl_table_end_row(&t);
    }
    assert_string_equal(pl_str_text(&s),
                        "18,446,744,073,709,551,615  18,446,744,073,709.55  -9,223,372,036,854,775,808\n");
    pl_str_deinit(&s);
}

static void test_control_characters_do_not_reach_the_terminal(void **state)
{
    (void)state;
    char text[16], small[4];
    pl_text_clean(text, sizeof text,
                  "a\033[2J\xff\xc2\x9b"
                  "b");
    assert_string_equal(text, "a?[2J??b");
    pl_text_clean(small, sizeof small, "abé");
    assert_string_equal(small, "ab"); /* é would be cut in two */
    assert_int_equal(pl_text_columns("e\xcc\x81\xff漢", 7), 4);
}

/* Words of the last column go on below themselves, or where that is a strip, in lines of their own. */
static void test_long_words_stay_in_the_line(void **state)
{
    (void)state;
    pl_str s = {0};
    for (size_t line = 40; line >= 24; line -= 16)
        for (pl_table t = pl_table_begin(&s, "lrl"); t.line = line, pl_table_pass(&t);) {
            pl_table_cell(&t, "%s", "weights");
            pl_table_count(&t, 1234567);
            pl_table_cell(&t, "%s", "always held, in more than one block");
            pl_table_end_row(&t);
            pl_table_cell(&t, "%s", "io");
            pl_table_count(&t, 1);
            pl_table_cell(&t, "%s", "a few");
            pl_table_end_row(&t);
        }
    assert_string_equal(pl_str_text(&s), "weights  1,234,567  always held, in more\n"
                                         "                    than one block\n"
                                         "io               1  a few\n"
                                         "weights  1,234,567\n"
                                         "      always held, in\n"
                                         "      more than one\n"
                                         "      block\n"
                                         "io               1\n"
                                         "      a few\n");
    pl_str_deinit(&s);
}

static void test_no_heap_in_fixed_memory(void **state)
{
    (void)state;
    char memory[512], tiny[20];
    uint64_t before = pl_alloc_request_count();
    pl_str s = pl_str_fixed(memory, sizeof memory), little = pl_str_fixed(tiny, sizeof tiny);
    print(&s, false);
    assert_false(s.failed);
    print(&little, false);
    assert_true(little.failed);
    assert_int_equal(pl_alloc_request_count(), before);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns_line_up),
        cmocka_unit_test(test_colors_take_no_room),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(test_long_words_stay_in_the_line),
        cmocka_unit_test(test_no_heap_in_fixed_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
