/* The file of what is judged: texts and prompts as ids, read back number by number; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/text/judged.h"
#include "support/folder.h"
#include "support/program.h"

static pl_tokenizer *tokenizer;
static char folder[] = "/tmp/plimsoll-judged-XXXXXX";

static pl_status make(const char *text, size_t bytes, pl_texts_form form, bool has_choices, uint64_t window,
                      uint64_t stride, int *fd, uint64_t *fact, pl_error *err)
{
    FILE *file = fopen("judged.txt", "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    const pl_judged_wish w = {.texts = {.names = "judged.txt", .form = form, .scratch = "names"},
                              .has_choices = has_choices,
                              .tokenizer = tokenizer,
                              .vocab = 256,
                              .window = window,
                              .stride = stride,
                              .folder = "."};
    return pl_judged_make(&w, fd, fact, err);
}

static void expect(int fd, uint64_t fact, uint64_t items, const uint32_t *number, size_t count)
{
    pl_error err = {0};
    pl_judged *j = test_malloc(sizeof *j);
    uint32_t got = 0;
    bool more = true;
    int again;
    assert_int_equal(pl_judged_find(fact, &again, &err), PL_OK);
    assert_int_equal(pl_judged_begin(j, again, &err), PL_OK);
    assert_int_equal(j->head.items, items);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pl_judged_next(j, &got, &more, &err), PL_OK);
        assert_true(more);
        assert_int_equal(got, number[i]);
    }
    assert_int_equal(pl_judged_next(j, &got, &more, &err), PL_OK);
    assert_false(more);
    close(again);
    close(fd);
    assert_int_equal(pl_judged_find(fact, &again, &err), PL_E_DATA);
    test_free(j);
}

static void test_texts(void **state)
{
    (void)state;
    static const uint32_t want[] = {'a', 'b', PL_TOKEN_NONE, 'c', 0xc3, 0xa9, PL_TOKEN_NONE};
    int fd = 0;
    uint64_t fact;
    pl_error err = {0};
    assert_int_equal(make("ab\n\nc\xc3\xa9\n", 7, PL_TEXTS_LINES, false, 8, 4, &fd, &fact, &err), PL_OK);
    expect(fd, fact, 2, want, sizeof want / sizeof *want);
}

/* More than any buffer on the way. */
static void test_long_text(void **state)
{
    (void)state;
    enum { COUNT = 300001 };
    char *text = test_malloc(COUNT);
    uint32_t *want = test_malloc((COUNT + 1) * sizeof *want);
    int fd = 0;
    uint64_t fact;
    pl_error err = {0};
    for (int i = 0; i < COUNT; i++) text[i] = "ab\xe6\x9d\xb1"[i % 5];
    for (int i = 0; i < COUNT; i++) want[i] = (unsigned char)text[i];
    want[COUNT] = PL_TOKEN_NONE;
    assert_int_equal(make(text, COUNT, PL_TEXTS_WHOLE, false, 8, 0, &fd, &fact, &err), PL_OK);
    expect(fd, fact, 1, want, COUNT + 1);
    test_free(want);
    test_free(text);
}

static void test_choices(void **state)
{
    (void)state;
    static const char text[] = "\n{\"prompt\": \"ab\", \"choices\": [\" c\", \"d\\u00e9\"], \"answer\": 1}\n";
    static const uint32_t want[] = {2, 1, 2, 4, 1, 'a', 'b', ' ', 'c', 2, 5, 2, 'a', 'b', 'd', 0xc3, 0xa9};
    int fd = 0;
    uint64_t fact;
    pl_error err = {0};
    assert_int_equal(make(text, sizeof text - 1, PL_TEXTS_LINES, true, 5, 0, &fd, &fact, &err), PL_OK);
    expect(fd, fact, 1, want, sizeof want / sizeof *want);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
        bool has_choices;
    } cases[] = {
        {"abcdefg\xe6\x9d", "judged.txt: byte 7 of the text is not UTF-8", false},
        {"abcdefgh\xff", "judged.txt: byte 8 of the text is not UTF-8", false},
        {"abc", "judged.txt: has 3 tokens, and chunks of 4 need 8 at least", false},
        {"{}\n", "judged.txt:1: \"prompt\" is no text", true},
        {"{\"prompt\": \"a\"}\n", "judged.txt:1: \"choices\" is no list", true},
        {"{\"prompt\": \"a\", \"choices\": [\"b\", 1]}\n", "judged.txt:1: a choice is no text", true},
        {"\n{\"prompt\": \"\", \"choices\": [\"b\"]}\n", "judged.txt:2: nothing comes before", true},
        {"{\"prompt\": \"abcd\", \"choices\": [\"b\"]}\n", "judged.txt:1: prompt and choice have 5 tokens", true},
        {"{\"prompt\": \"a\", \"choices\": [\"b\"], \"answer\": -1}\n", "judged.txt:1: \"answer\" is not", true},
        {"[", "judged.txt:1:1: is not valid JSON", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = 0;
        uint64_t fact;
        pl_error err = {0};
        const pl_texts_form form = cases[i].has_choices ? PL_TEXTS_LINES : PL_TEXTS_WHOLE;
        assert_int_equal(make(cases[i].text, strlen(cases[i].text), form, cases[i].has_choices, 4, 0, &fd, &fact, &err),
                         PL_E_DATA);
        if (strncmp(err.text, cases[i].said, strlen(cases[i].said)) != 0) fail_msg("%s", err.text);
        assert_int_equal(fd, 0);
    }
}

static int begin(void **state)
{
    pl_error err;
    (void)state;
    return enter_folder(folder) || pl_tokenizer_create_bytes(&tokenizer, &err) != PL_OK;
}

static int end(void **state)
{
    (void)state;
    pl_tokenizer_destroy(tokenizer);
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_long_text),
                                       cmocka_unit_test(test_choices), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, begin, end);
}
