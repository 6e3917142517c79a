/* The GPT-2 pattern, on texts cut by an outside library or by hand; UTF-8 and the alphabet. */
#include "unit/data/scratch.h"

#include "data/text/alphabet.h"
#include "data/text/pretoken.h"
#include "data/text/unicode.h"
#include "support/program.h"

/* Pieces separated by '|'. */
static const pl_pretoken gpt2 = {PL_SCANNER_GPT2, PL_PRECUT_NONE};

static void check_pieces(const char *pieces)
{
    char text[256];
    size_t n = 0, at = 0;
    for (const char *p = pieces; *p; p++)
        if (*p != '|') text[n++] = *p;
    for (const char *p = pieces; at < n; p += strcspn(p, "|") + 1) {
        size_t wanted = strcspn(p, "|");
        size_t got = pl_pretoken_length(gpt2, (const uint8_t *)text + at, n - at, 1, 200);
        if (got != wanted) fail_msg("in \"%s\": %zu bytes at byte %zu, %zu were expected", pieces, got, at, wanted);
        at += got;
    }
}

static void test_pattern(void **state)
{
    (void)state;
    static const char *const texts[] = {
        /* cut by Hugging Face's tokenizers 0.23 */
        "the| cat| sat|.",
        "don|'t| can|'t|.",
        "'s|'t|'re|'ve|'m|'ll|'d",
        "'|S| '|T",
        "I|'|LL",
        "we|'ll|'|x",
        " '|s",
        "x|''|s",
        "a|1|b|22|c",
        " 12| ab|,| ;;|\n",
        "  | x",
        "  \n",
        "a|  |\n|b",
        "a|   ",
        "\n\n|\n|x",
        "x| |\t|y",
        "x|\t| y",
        "\r\n\r|\n|.",
        "...|abc",
        "_|a|_",
        "über| Öl|…| “|x|”",
        "日本語|。| 日本|1",
        "½Ⅷ٣|x",
        "e|\xcc\x81|x",
        "a|\xc2\xa0|b",
        "\xe3\x80\x80|\xc2\xa0|x",
        "🙂🙂| 🙂|x",
        "'",
        " ",
        "\x1c|a",
        "\v|\f|x",
        " \n",
        "\t|\xe2\x80\xa8|x",
        /* bytes that are not UTF-8 are "other" */
        "\xff\xfe|a|\x80|1",
        "a|\xe2\x82",
        "\xed\xa0\x80|a",
        "\xc0\xaf| \xf5|x",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_pieces(texts[i]);
}

/* Whatever a window tells before the text has ended is what the whole text tells. */
static void test_windows_agree(void **state)
{
    (void)state;
    const char *text = "don't  we'll \xe6\x97\xa5\xe6\x9c\xac x'r 'v 12 \xf0\x9f\x99\x82\t\n \xe2\x82 end  ";
    size_t n = strlen(text);
    for (size_t at = 0; at < n; at++) {
        const uint8_t *p = (const uint8_t *)text + at;
        size_t whole = pl_pretoken_length(gpt2, p, n - at, 1, 64);
        for (size_t window = 1; window <= n - at; window++) {
            size_t got = pl_pretoken_length(gpt2, p, window, 0, 64);
            if (got && got != whole) fail_msg("at %zu, window %zu: %zu instead of %zu", at, window, got, whole);
            if (!got && window > whole + PL_PRETOKEN_LOOKAHEAD)
                fail_msg("at %zu: undecided with %zu bytes", at, window);
        }
    }
}

static void test_cap_cuts_between_characters(void **state)
{
    (void)state;
    const uint8_t *letters = (const uint8_t *)"aaaaaaaaaaaaaaaaaaaa", *kana = (const uint8_t *)"あああああああ";
    assert_int_equal(pl_pretoken_length(gpt2, letters, 20, 1, 16), 16);
    assert_int_equal(pl_pretoken_length(gpt2, letters, 20, 0, 16), 16);
    assert_int_equal(pl_pretoken_length(gpt2, letters, 19, 1, 20), 19);
    assert_int_equal(pl_pretoken_length(gpt2, kana, 21, 1, 10), 9);
    assert_int_equal(pl_pretoken_length(gpt2, (const uint8_t *)"         x", 10, 1, 8), 8);
    assert_int_equal(pl_pretoken_length(gpt2, (const uint8_t *)"        x", 9, 1, 8),
                     7); /* exactly at the cap: the rule holds */
}

static void test_unicode(void **state)
{
    (void)state;
    uint8_t utf8[4];
    for (uint32_t c = 0; c < 0x110000; c++) {
        uint32_t back;
        if (c >= 0xd800 && c < 0xe000) continue;
        size_t n = pl_utf8_write(c, utf8);
        if (pl_utf8_read(utf8, n, &back) != n || back != c) fail_msg("U+%04X does not come back", c);
        if (n > 1 && pl_utf8_read(utf8, n - 1, &back) != 0) fail_msg("U+%04X is not recognised as unfinished", c);
    }
    assert_int_equal(pl_unicode_class(0x1c8a), PL_CHAR_LETTER); /* new in Unicode 16 */
    assert_int_equal(pl_unicode_class(0x10ffff), PL_CHAR_OTHER);
    assert_int_equal(pl_unicode_class(0x85), PL_CHAR_SPACE);
    assert_int_equal(pl_unicode_class(0xbd), PL_CHAR_NUMBER);
    assert_int_equal(pl_unicode_class(0x301), PL_CHAR_OTHER);
}

static void test_alphabet(void **state)
{
    (void)state;
    uint8_t order[256], seen[256] = {0};
    pl_alphabet_order(order);
    for (unsigned b = 0; b < 256; b++) {
        assert_int_equal(pl_alphabet_byte(pl_alphabet_char((uint8_t)b)), b);
        seen[order[b]]++;
    }
    for (unsigned b = 0; b < 256; b++) assert_int_equal(seen[b], 1);
    assert_int_equal(pl_alphabet_char(' '), 0x120);
    assert_int_equal(pl_alphabet_char('\n'), 0x10a);
    assert_int_equal(pl_alphabet_char(0xad), 0x143);
    assert_int_equal(pl_alphabet_byte(' '), -1);
    assert_int_equal(pl_alphabet_byte(0x144), -1);
    assert_int_equal(order[0], '!');
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),
        cmocka_unit_test(test_windows_agree),
        cmocka_unit_test(test_cap_cuts_between_characters),
        cmocka_unit_test(test_unicode),
        cmocka_unit_test(test_alphabet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
