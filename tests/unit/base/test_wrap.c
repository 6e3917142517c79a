/* Words in lines: against texts wrapped by hand, and at every width against the three rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "support/program.h"

static const char words[] = "größer als ein Wort\nund\n  a word-that-is-longer-than-any-line b";

static void test_wrapped_by_hand(void **state)
{
    (void)state;
    pl_str s = {0};
    pl_str_append(&s, "ab: ");
    pl_str_wrap(&s, "größer als ein Wort", strlen("größer als ein Wort"), 4, 14);
    assert_string_equal(pl_str_text(&s), "ab: größer als\n    ein Wort");
    pl_str_clear(&s);
    pl_str_append(&s, "left alone however long");
    size_t from = s.bytes;
    pl_str_append(&s, words);
    pl_str_fold(&s, from, 10);
    assert_string_equal(pl_str_text(&s) + from, "größer als\nein Wort\nund\n  a\nword-that-is-longer-than-any-line\nb");
    pl_str_deinit(&s);
}

static size_t columns_of(const char *line, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += ((unsigned char)line[i] & 0xc0) != 0x80;
    return count;
}

/* Only spaces became ends of lines; a line that is too long is one word; and none could have taken the next word too.
 * */
static void test_at_every_width(void **state)
{
    (void)state;
    for (size_t width = 1; width < 50; width++) {
        pl_str s = {0};
        pl_str_append(&s, words);
        pl_str_fold(&s, 0, width);
        const char *text = pl_str_text(&s);
        assert_int_equal(strlen(text), strlen(words));
        for (size_t i = 0; words[i]; i++) assert_true(text[i] == words[i] || (words[i] == ' ' && text[i] == '\n'));
        for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
            end = line + strcspn(line, "\n");
            const char *first = line + strspn(line, " ");
            size_t columns = columns_of(line, (size_t)(end - line));
            if (columns > width) assert_null(memchr(first, ' ', (size_t)(end - first)));
            if (!*end || words[end - text] == '\n') continue; /* it ends where the text has an end */
            size_t next = strcspn(end + 1, " \n");
            assert_true(columns + 1 + columns_of(end + 1, next) > width);
        }
        pl_str_deinit(&s);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wrapped_by_hand), cmocka_unit_test(test_at_every_width)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
