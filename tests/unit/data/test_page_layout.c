/* Texts as lines: against lines broken by hand, as textwrap breaks them (tests/pages/pages.py asks textwrap itself),
 * and long ones, which must end. */
#include "unit/data/scratch.h"

#include "base/utf8.h"
#include "data/pages/layout.h"
#include "support/program.h"

static pl_page_lines lines;

static void lay_out(const char *text, size_t bytes, uint32_t columns, uint32_t rows)
{
    pl_page_lay_out(text, bytes, columns, rows, &lines);
    assert_true(lines.rows >= 1 && lines.rows <= rows);
    for (uint32_t i = 0; i < lines.rows; i++) assert_true(lines.length[i] <= columns);
}

/* The lines as one text, with '|' between them. */
static const char *broken(const char *text, uint32_t columns)
{
    static char all[4096];
    size_t n = 0;
    lay_out(text, strlen(text), columns, 12);
    for (uint32_t i = 0; i < lines.rows; i++) {
        if (i > 0) all[n++] = '|';
        for (uint32_t j = 0; j < lines.length[i]; j++) n += pl_utf8_write(lines.text[i][j], (uint8_t *)all + n);
    }
    all[n] = 0;
    return all;
}

static void test_by_hand(void **state)
{
    (void)state;
    assert_string_equal(broken("", 5), "");
    assert_string_equal(broken("a", 5), "a");
    assert_string_equal(broken("hello world", 5), "hello|world");
    assert_string_equal(broken("hello world", 6), "hello|world");
    assert_string_equal(broken("hello world", 11), "hello world");
    assert_string_equal(broken("a  b   c", 5), "a  b|c");
    assert_string_equal(broken("well-known facts", 6), "well-k|nown|facts");
    assert_string_equal(broken("a abcdefghij", 4), "a ab|cdef|ghij");
    assert_string_equal(broken("abcd efghijkl", 4), "abcd|efgh|ijkl");
    assert_string_equal(broken("a\n\nb\n", 5), "a||b|");
    assert_string_equal(broken("  a", 5), "  a");
    assert_string_equal(broken("       a", 5), "  a"); /* the first five would be a line of blanks, which is none */
    assert_string_equal(broken(" \t \nx", 5), "|x");
    assert_string_equal(broken("\ta", 20), "        a");
    assert_string_equal(broken("abc\td", 20), "abc     d");
    assert_string_equal(broken("abc\r\td", 20), "abc         d");
    assert_string_equal(broken("a\vb\fc", 20), "a b c");
    assert_string_equal(broken("\u00e9\u00e9\u00e9 \u4f60\u597d", 3), "\u00e9\u00e9\u00e9|\u4f60\u597d");
}

/* U+00A0 separates no words, but a line that ends in a word of nothing else loses it. */
static void test_other_blanks(void **state)
{
    (void)state;
    assert_string_equal(broken("a\u00a0b", 5), "a\u00a0b");
    assert_string_equal(broken("\u00a0\u2003", 5), "");
    assert_string_equal(broken("a \u00a0\u00a0 b", 5), "a \u00a0\u00a0|b");
    assert_string_equal(broken("ab \u00a0\u00a0 cdef", 5), "ab |cdef");
}

static void test_broken_utf8(void **state)
{
    (void)state;
    assert_string_equal(broken("a\xff\xc3(\xe2\x82", 20), "a\ufffd\ufffd(\ufffd\ufffd");
    assert_int_equal(lines.invalid_bytes, 4);
    assert_string_equal(broken("\xed\xa0\x80", 20), "\ufffd\ufffd\ufffd"); /* half of a pair */
    assert_int_equal(lines.invalid_bytes, 3);
    lay_out("a\0b", 3, 20, 12);
    assert_int_equal(lines.length[0], 3);
    assert_int_equal(lines.text[0][1], 0);
    assert_int_equal(lines.invalid_bytes, 0);
    lay_out(NULL, 0, 20, 12);
    assert_int_equal(lines.rows, 1);
    assert_int_equal(lines.length[0], 0);
}

static void test_what_is_left(void **state)
{
    (void)state;
    lay_out("aa bb cc", 8, 2, 2);
    assert_int_equal(lines.rows, 2);
    assert_int_equal(lines.truncated_bytes, 2);
    lay_out("aa bb \n\t\n", 9, 2, 2);
    assert_int_equal(lines.truncated_bytes, 0); /* white space is nothing that is missed */
    lay_out("aaaaaaaaa", 9, 2, 2);
    assert_int_equal(lines.truncated_bytes, 5);
    lay_out("a\nb\nc\n", 6, 2, 2);
    assert_int_equal(lines.truncated_bytes, 2);
    lay_out("a\n\n\xff", 4, 2, 2);
    assert_int_equal(lines.truncated_bytes, 1);
    assert_int_equal(lines.invalid_bytes, 0); /* not read */
}

/* Megabytes in one line, each of which would take an hour if its rest were looked at again and again. */
static void test_long(void **state)
{
    (void)state;
    static const char *const words[] = {"a", " ", "\t", "\u00a0", "\u0301", "\xff", " \u00a0", "\n", "a ", "\r"};
    enum { BYTES = 2 << 20 };
    char *text = malloc(BYTES + 8);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int begins = 0; begins < 2; begins++) {
            const size_t word = strlen(words[i]);
            size_t n = 0;
            if (begins) text[n++] = 'x', text[n++] = ' ';
            while (n + word <= BYTES) memcpy(text + n, words[i], word), n += word;
            text[n++] = 'y';
            lay_out(text, n, 29, 12);
        }
    free(text);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_other_blanks),
                                       cmocka_unit_test(test_broken_utf8), cmocka_unit_test(test_what_is_left),
                                       cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
