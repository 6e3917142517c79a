/* What names of files say of the texts in them, as docs/text.md and docs/capsules.md have it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/program.h"
#include "texts/form.h"

static void a_name_says_the_form(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        pl_texts_form form;
        const char *is; /* NULL: it is read */
    } rows[] = {{"a.jsonl", PL_TEXTS_JSONL, NULL},
                {"b/a.b.NDJSON", PL_TEXTS_JSONL, NULL},
                {"a.csv", PL_TEXTS_CSV, NULL},
                {"A.CSV.GZ", PL_TEXTS_CSV, NULL},
                {"a.jsonl.gz", PL_TEXTS_JSONL, NULL},
                {"a.json", PL_TEXTS_SQUAD, "is one JSON document"},
                {"a.TSV", PL_TEXTS_WHOLE, "has tabs between its columns, where CSV with commas is read"},
                {"a.parquet", PL_TEXTS_WHOLE, "is Parquet, which is not read"},
                {"a.csv.zst", PL_TEXTS_WHOLE, "is compressed"},
                {"a.jsonl.xz", PL_TEXTS_WHOLE, "is compressed"},
                {"a.bz2", PL_TEXTS_WHOLE, "is compressed"},
                {"a.zip", PL_TEXTS_WHOLE, "is compressed"}};
    static const char *const unsaid[] = {"", "a", "a.txt", "a.gz", ".gz", "csv", "a.csv/b", "a.csv.txt", "a.gz.gz"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const pl_text_ending *e = pl_text_ending_of(rows[i].path);
        if (!e) fail_msg("%s says nothing", rows[i].path);
        assert_int_equal(e->form, rows[i].form);
        assert_true(!e->is == !rows[i].is && !e->is == !e->remedy);
        if (e->is) assert_string_equal(e->is, rows[i].is);
    }
    for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++)
        if (pl_text_ending_of(unsaid[i])) fail_msg("%s says something", unsaid[i]);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_name_says_the_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
