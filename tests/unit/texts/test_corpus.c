/* The one reader: names in order, what is known of several files, memory that is announced, and refused. Their forms
 * are read by tests/cli/corpus_tests.py and tests/unit/data/test_texts.c. */
#include "unit/data/scratch.h"

#include <sys/stat.h>

#include "base/json_read.h"
#include "base/str.h"
#include "support/program.h"
#include "texts/corpus.h"

static pl_error err;

static pl_corpus_wish wish_of(const char *names, pl_texts_form form)
{
    static char scratch[128];
    strcpy(scratch, scratch_path("scratch"));
    return (pl_corpus_wish){.names = names, .form = form, .scratch = scratch};
}

static pl_status add_piece(void *context, const void *data, size_t bytes, pl_error *e)
{
    (void)e;
    pl_str_append_bytes(context, data, bytes);
    return PL_OK;
}

static pl_status add_end(void *context, pl_error *e)
{
    (void)e;
    pl_str_append(context, "|");
    return PL_OK;
}

/* The texts, each with a | behind it. */
static pl_status read_into(const pl_corpus_wish *w, pl_str *all, pl_corpus *c)
{
    const pl_corpus_taker taker = {.piece = add_piece, .end = add_end, .context = all};
    PL_TRY(pl_corpus_open(c, w, &err));
    return pl_corpus_read(c, "reading", &taker, &err);
}

static uint64_t assert_texts(const char *names, pl_texts_form form, const char *expected)
{
    pl_corpus c;
    pl_str all = {0};
    const pl_corpus_wish w = wish_of(names, form);
    if (read_into(&w, &all, &c) != PL_OK) fail_msg("%s", err.text);
    assert_string_equal(pl_str_text(&all), expected);
    pl_str_deinit(&all);
    const uint64_t content = c.origin.content;
    assert_int_equal(pl_corpus_open(&c, &w, &err), PL_OK);
    assert_int_equal(pl_corpus_hash(&c, &err), PL_OK);
    assert_int_equal(c.origin.content, content);
    return content;
}

static const char *in_folder(const char *name)
{
    static char path[4][128];
    static int turn;
    return snprintf(path[turn++ % 4], 128, "%s/%s", scratch_folder, name) > 0 ? path[(turn - 1) % 4] : NULL;
}

static void make_files(void)
{
    assert_true(mkdir(in_folder("d"), 0777) == 0 && mkdir(in_folder("d/b"), 0777) == 0);
    scratch_file("d/b/1", "one", 3), scratch_file("d/a", "two", 3), scratch_file("d/c[1]", "three", 5);
    scratch_file("d/none", "", 0);
    static const char rows[] = "{\"text\": \"x\"}\n{\"text\": \"\"}\n{\"text\": \"y\\n\"}\n";
    scratch_file("t.jsonl", rows, strlen(rows));
}

static void test_names(void **state)
{
    (void)state;
    char names[600];
    make_files();
    (void)assert_texts(in_folder("d"), PL_TEXTS_AUTO, "two|one|three|");
    (void)assert_texts(in_folder("d/a"), PL_TEXTS_AUTO, "two"); /* plain: it does not end */
    (void)assert_texts(in_folder("d/c[1]"), PL_TEXTS_AUTO, "three");
    (void)assert_texts(in_folder("d/[ab]"), PL_TEXTS_AUTO, "two|one|");
    (void)assert_texts(in_folder("t.jsonl"), PL_TEXTS_AUTO, "x||y\n|");
    snprintf(names, sizeof names, "%s/d/b\n\n%s/d/a\n", scratch_folder, scratch_folder);
    (void)assert_texts(names, PL_TEXTS_AUTO, "one|two|");
    (void)scratch_file("list", names, strlen(names));
    snprintf(names, sizeof names, "@%s/list\n%s/t.jsonl", scratch_folder, scratch_folder);
    (void)assert_texts(names, PL_TEXTS_AUTO, "one|two|x||y\n|");
    (void)assert_texts(names, PL_TEXTS_AUTO_LINES, "one|two|x||y\n|");
}

/* The same contents in the same order are the same; other ones, another order, another key are not. */
static void test_contents(void **state)
{
    (void)state;
    char names[600];
    const uint64_t first = assert_texts(in_folder("d"), PL_TEXTS_AUTO, "two|one|three|");
    snprintf(names, sizeof names, "%s/d/a\n%s/d/b/1\n%s/d/c[1]", scratch_folder, scratch_folder, scratch_folder);
    assert_int_equal(assert_texts(names, PL_TEXTS_WHOLE, "two|one|three|"), first);
    snprintf(names, sizeof names, "%s/d/b/1\n%s/d/a\n%s/d/c[1]", scratch_folder, scratch_folder, scratch_folder);
    assert_int_not_equal(assert_texts(names, PL_TEXTS_AUTO, "one|two|three|"), first);
    snprintf(names, sizeof names, "%s/d/a\n%s/d/b/1", scratch_folder, scratch_folder);
    assert_int_not_equal(assert_texts(names, PL_TEXTS_AUTO, "two|one|"), first);
    assert_int_not_equal(assert_texts(in_folder("d"), PL_TEXTS_LINES, "two|one|three|"), first);
}

/* What was looked at and what is read are one. */
static pl_status change_then(void *context, const void *data, size_t bytes, pl_error *e)
{
    (void)data, (void)bytes, (void)e;
    (void)scratch_file(context, "changed meanwhile", 17);
    return PL_OK;
}

static void test_changed_while_read(void **state)
{
    (void)state;
    const char *const names[] = {in_folder("d"), in_folder("d/a")};
    for (int i = 0; i < 2; i++) {
        pl_corpus c;
        const pl_corpus_wish w = wish_of(names[i], PL_TEXTS_AUTO);
        const pl_corpus_taker taker = {.piece = change_then, .context = "d/a"};
        (void)scratch_file("d/a", "two", 3);
        assert_int_equal(pl_corpus_open(&c, &w, &err), PL_OK);
        assert_int_equal(pl_corpus_read(&c, "reading", &taker, &err), PL_E_DATA);
        assert_non_null(strstr(err.text, "was changed while it was being read"));
    }
    (void)scratch_file("d/a", "two", 3);
}

static bool stop(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)phase, (void)context;
    assert_true(done <= total);
    return false;
}

static void test_stops(void **state)
{
    (void)state;
    pl_corpus c;
    pl_str all = {0};
    const pl_corpus_wish w = wish_of(in_folder("d"), PL_TEXTS_AUTO);
    const pl_corpus_taker taker = {.piece = add_piece, .context = &all};
    assert_int_equal(pl_corpus_open(&c, &w, &err), PL_OK);
    c.progress = stop;
    assert_int_equal(pl_corpus_read(&c, "reading", &taker, &err), PL_E_STOPPED);
    pl_str_deinit(&all);
}

/* Of our heap and jansson's, for a long text, many, and many files. */
static void test_memory(void **state)
{
    (void)state;
    char *line = pl_alloc(3 << 20, 1);
    pl_str rows = {0};
    memset(line, 'x', (3 << 20) - 1);
    for (int i = 0; i < 3; i++) pl_str_printf(&rows, "{\"text\": \"%.*s\"}\n", i * 1500000, line);
    (void)scratch_file("long.jsonl", rows.data, rows.bytes);
    pl_free(line), pl_str_deinit(&rows);
    const char *const names[] = {in_folder("long.jsonl"), in_folder("d")};
    for (int i = 0; i < 2; i++) {
        pl_alloc_meter meter = {0};
        pl_corpus c;
        uint64_t bytes = 0;
        const pl_corpus_wish w = wish_of(names[i], PL_TEXTS_AUTO);
        (void)pl_alloc_set_meter(&meter);
        pl_json_count(true);
        const pl_corpus_taker taker = {.piece = change_then, .context = "other"};
        pl_status status = pl_corpus_open(&c, &w, &err);
        if (status == PL_OK) status = pl_corpus_read(&c, "reading", &taker, &err);
        pl_json_count(false);
        (void)pl_alloc_set_meter(NULL);
        if (status != PL_OK) fail_msg("%s", err.text);
        bytes = pl_corpus_bytes(&w);
        assert_in_range(meter.peak_bytes, 1, bytes);
        assert_int_equal(meter.held_bytes, 0);
    }
}

static void test_memory_refused(void **state)
{
    (void)state;
    char names[600];
    const uint64_t live = pl_alloc_live_blocks();
    snprintf(names, sizeof names, "%s/d\n%s/t.jsonl", scratch_folder, scratch_folder);
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_corpus c;
        const pl_corpus_wish w = wish_of(names, PL_TEXTS_AUTO);
        const pl_corpus_taker taker = {.piece = change_then, .context = "other"};
        pl_alloc_fail_at(n, n % 2);
        status = pl_corpus_open(&c, &w, &err);
        if (status == PL_OK) status = pl_corpus_read(&c, "reading", &taker, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names), cmocka_unit_test(test_contents), cmocka_unit_test(test_changed_while_read),
        cmocka_unit_test(test_stops), cmocka_unit_test(test_memory),   cmocka_unit_test(test_memory_refused)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
