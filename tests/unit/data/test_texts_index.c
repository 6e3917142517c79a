/* The index of numbered texts: used again while its source is the same, and made again otherwise; damage and failures;
 * memory that does not grow; readers in several threads. */
#include "unit/data/texts_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/io.h"
#include "base/json_read.h"
#include "support/program.h"

/* ---- the index is used again, or not ---- */

static void test_reused(void **state)
{
    (void)state;
    pl_texts_result r;
    pl_texts t;
    pl_texts_setup s = {.form = PL_TEXTS_LINES, .path = write_source("a\nbb\n", 5)};
    unlink(index_path);
    open_texts(&t, &s);
    const uint64_t identity = pl_texts_identity(&t);
    assert_int_equal(t.info.longest, 2);
    pl_texts_close(&t);
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_true(r.reused && r.info.count == 2 && !r.reason[0]);
    const struct timespec times[2] = {{1700000000, 5}, {1700000000, 5}};
    assert_int_equal(utimensat(AT_FDCWD, s.path, times, 0), 0);
    assert_int_equal(pl_texts_open(&t, &s, index_path, &err), PL_OK); /* it holds the same */
    assert_true(t.info.source.mtime_ns == 1700000000000000005 && pl_texts_check(&t, &err) == PL_OK);
    pl_texts_close(&t);
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_true(r.reused);
    assert_int_equal(prepare(&s, &r), PL_OK); /* that is noted */
    assert_true(r.reused && r.info.source.mtime_ns == 1700000000000000005);
    write_source("a\nbc\n", 5);
    assert_int_equal(utimensat(AT_FDCWD, s.path, times, 0), 0);
    assert_int_equal(pl_texts_open(&t, &s, index_path, &err), PL_E_DATA);
    assert_says(&err, "source: was changed since its index was made");
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_false(r.reused);
    write_source("a\nbb\n", 5);
    open_texts(&t, &s);
    assert_int_equal(pl_texts_identity(&t), identity);
    pl_texts_close(&t);
    s.form = PL_TEXTS_CSV, s.column = "a";
    assert_int_equal(pl_texts_open(&t, &s, index_path, &err), PL_E_DATA);
    assert_says(&err, "of another form");
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_string_equal(r.reason, "the index was made for another form, key or column of texts");
    assert_int_equal(r.info.count, 1);
    s.column = "1";
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_false(r.reused);
}

/* In place, with its size and its time as they were: the system has another time, which nobody can set. */
static void edit_in_place(const char *path, char byte)
{
    struct stat before, after;
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &before), 0);
    do { /* that time goes on in ticks */
        const struct timespec times[2] = {before.st_atim, before.st_mtim};
        assert_int_equal(pwrite(fd, &byte, 1, 0), 1);
        assert_int_equal(futimens(fd, times), 0);
        assert_int_equal(fstat(fd, &after), 0);
    } while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
    close(fd);
}

static void test_edited_in_place(void **state)
{
    (void)state;
    pl_texts_result r;
    pl_texts t;
    char folder[200], file[240];
    pl_texts_setup s = {.form = PL_TEXTS_LINES, .path = write_source("a\nbb\n", 5)};
    snprintf(folder, sizeof folder, "%s", scratch_path("edited"));
    snprintf(file, sizeof file, "%s/a.txt", folder);
    assert_int_equal(mkdir(folder, 0755), 0);
    FILE *f = fopen(file, "w");
    assert_true(f && fputs("text", f) >= 0 && fclose(f) == 0);
    for (int i = 0; i < 2; i++) {
        unlink(index_path);
        open_texts(&t, &s);
        const uint64_t identity = pl_texts_identity(&t);
        pl_texts_close(&t);
        edit_in_place(i ? file : s.path, 'x');
        assert_int_equal(prepare(&s, &r), PL_OK);
        assert_string_equal(r.reason, "the texts are no longer those that the index was made of");
        open_texts(&t, &s);
        assert_true(pl_texts_identity(&t) != identity);
        pl_texts_close(&t);
        edit_in_place(i ? file : s.path, i ? 't' : 'a');
        open_texts(&t, &s); /* as it was: the same texts */
        assert_int_equal(pl_texts_identity(&t), identity);
        pl_texts_close(&t);
        s = (pl_texts_setup){.form = PL_TEXTS_FOLDER, .path = folder};
    }
}

static void test_first_texts(void **state)
{
    (void)state;
    char c[4];
    size_t n;
    bool whole;
    pl_texts t;
    pl_texts_setup s = {.form = PL_TEXTS_LINES, .path = write_source("a\nb\nc\n", 6), .count = 2};
    open_texts(&t, &s);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.info.count, 3);
    assert_int_equal(pl_texts_read(&t, 2, c, 1, &n, &whole, &err), PL_E_INTERNAL);
    pl_texts_close(&t);
    s.count = 9;
    open_texts(&t, &s);
    assert_int_equal(t.count, 3);
    pl_texts_close(&t);
}

static int refusals;

static pl_status refuse_writing(void *context, pl_error *e)
{
    (void)context;
    refusals++;
    return pl_fail(e, PL_E_STORAGE, "not here");
}

static bool stop(void *context, const char *phase, uint64_t done, uint64_t total)
{
    (void)context;
    return !(phase[0] && done <= total);
}

static void test_asked_and_stopped(void **state)
{
    (void)state;
    pl_texts_result r;
    for (int folder = 0; folder < 2; folder++) {
        pl_texts_setup s = {.form = PL_TEXTS_LINES, .path = write_source("a\n", 2)};
        if (folder) s = (pl_texts_setup){.form = PL_TEXTS_FOLDER, .path = make_folder()};
        if (folder) write_below("x", "y", 1);
        pl_texts_options o = options_of(&s);
        unlink(index_path);
        o.before_writing = refuse_writing;
        assert_int_equal(pl_texts_prepare(&o, &r, &err), PL_E_STORAGE);
        assert_int_equal(refusals, folder + 1);
        o.before_writing = NULL, o.progress = stop;
        assert_int_equal(pl_texts_prepare(&o, &r, &err), PL_E_STOPPED);
        assert_no_temporary();
        assert_no_temporary();
        o.progress = NULL;
        assert_int_equal(pl_texts_prepare(&o, &r, &err), PL_OK);
        o.before_writing = refuse_writing; /* nobody is asked where nothing is written */
        assert_int_equal(pl_texts_prepare(&o, &r, &err), PL_OK);
        assert_int_equal(refusals, folder + 1);
    }
}

static void test_setups(void **state)
{
    (void)state;
    char longest[300];
    memset(longest, 'x', sizeof longest), longest[sizeof longest - 1] = 0;
    const char *path = write_source("{\"text\":\"a\"}\n", 13);
    const pl_texts_setup wrong[] = {{.form = PL_TEXTS_GRAMMAR},
                                    {.form = PL_TEXTS_LINES},
                                    {.form = PL_TEXTS_FOLDER, .path = ""},
                                    {.form = PL_TEXTS_JSONL, .path = path, .key = ""},
                                    {.form = PL_TEXTS_JSONL, .path = path, .key = longest},
                                    {.form = PL_TEXTS_CSV, .path = path, .column = longest},
                                    {.form = PL_TEXTS_CSV, .path = path, .headless = true},
                                    {.form = PL_TEXTS_CSV, .path = path, .column = "b", .headless = true}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_texts_result r;
        assert_int_equal(prepare(&wrong[i], &r), PL_E_CONFIG);
    }
}

/* ---- damage ---- */

static void assert_remade(const pl_texts_setup *s, uint64_t identity)
{
    pl_texts_result r;
    pl_texts t;
    assert_int_equal(prepare(s, &r), PL_OK);
    assert_true(!r.reused && r.reason[0]);
    open_texts(&t, s);
    assert_int_equal(pl_texts_identity(&t), identity);
    pl_texts_close(&t);
}

static void assert_refused(const pl_texts_setup *s)
{
    pl_texts t;
    assert_int_equal(pl_texts_open(&t, s, index_path, &err), PL_E_DATA);
    assert_says(&err, index_path);
    assert_int_equal(t.fd, -1);
    assert_int_equal(t.index_fd, -1);
}

/* Each byte changed (of a folder's every fifth), and too short: refused, and made again. */
static void test_damaged_index(void **state)
{
    (void)state;
    static const char csv[] = "text\na\n\"b\"\"\"\n";
    for (int folder = 0; folder < 2; folder++) {
        pl_texts t;
        char *index;
        size_t bytes;
        pl_texts_setup s = {.form = PL_TEXTS_CSV, .path = write_source(csv, sizeof csv - 1)};
        if (folder) s = (pl_texts_setup){.form = PL_TEXTS_FOLDER, .path = make_folder()};
        if (folder) write_below("x", "y", 1), write_below("a/xyz", "z", 1);
        unlink(index_path);
        open_texts(&t, &s);
        const uint64_t identity = pl_texts_identity(&t);
        assert_int_equal(pl_file_read_all(index_path, 4096, &index, &bytes, &err), PL_OK);
        assert_int_equal(bytes, pl_texts_index_bytes(&t.info));
        pl_texts_close(&t);
        for (size_t at = 0; at < bytes; at += folder ? 5 : 1) {
            scratch_damage(index_path, (long)at);
            assert_refused(&s);
            if (at % 32 == 0) assert_remade(&s, identity);
            if (at % 5 == 0) {
                (void)scratch_file("texts.index", index, at);
                assert_refused(&s);
            }
            if (at % 65 == 0) assert_remade(&s, identity);
            (void)scratch_file("texts.index", index, bytes);
        }
        pl_free(index);
    }
}

static void test_cut_while_reading(void **state)
{
    (void)state;
    char text[8];
    size_t n;
    bool whole;
    pl_texts t;
    static const char two[] = "{\"text\":\"abc\"}\n{\"text\":\"d\\u0065f\"}\n";
    const pl_texts_setup s = {.form = PL_TEXTS_JSONL, .path = write_source(two, sizeof two - 1)};
    open_texts(&t, &s);
    assert_int_equal(truncate(s.path, 11), 0);
    assert_int_equal(pl_texts_read(&t, 0, text, 8, &n, &whole, &err), PL_E_DATA);
    assert_says(&err, "source: ends at byte 11, but 1 more were expected");
    assert_int_equal(pl_texts_read(&t, 1, text, 8, &n, &whole, &err), PL_E_DATA);
    pl_io_fail_at(PL_IO_READ, 2, EIO, 0);
    assert_int_equal(pl_texts_read(&t, 0, text, 8, &n, &whole, &err), PL_E_STORAGE);
    pl_io_fail_at(PL_IO_READ, 0, 0, 0);
    pl_texts_close(&t);
}

/* The whole preparation and reading, with each call on files failing once: a sentence, and nothing is left open or
 * behind. */
static void test_failing_calls(void **state)
{
    (void)state;
    for (int folder = 0; folder < 2; folder++) {
        pl_texts_setup s = {.form = PL_TEXTS_LINES, .path = write_source("a\n", 2)};
        if (folder) s = (pl_texts_setup){.form = PL_TEXTS_FOLDER, .path = make_folder()};
        if (folder) write_below("x", "y", 1);
        for (int kind = 0; kind < PL_IO_KINDS; kind++) {
            pl_status status = PL_E_STORAGE;
            for (uint64_t n = 1; status != PL_OK; n++) {
                pl_texts_result r;
                unlink(index_path);
                pl_io_fail_at((pl_io_kind)kind, n, EIO, 0);
                status = prepare(&s, &r);
                pl_io_fail_at((pl_io_kind)kind, 0, 0, 0);
                if (status != PL_OK) assert_int_equal(status, PL_E_STORAGE);
                assert_no_temporary();
            }
        }
    }
}

static void test_memory_refused(void **state)
{
    (void)state;
    const uint64_t live = pl_alloc_live_blocks();
    const char *csv = scratch_file("csv", "text\na\n", 7), *jsonl = scratch_file("jsonl", "{\"text\":\"a\"}\n", 13);
    const pl_texts_setup setups[] = {{.form = PL_TEXTS_CSV, .path = csv},
                                     {.form = PL_TEXTS_JSONL, .path = jsonl},
                                     {.form = PL_TEXTS_FOLDER, .path = make_folder()}};
    write_below("x", "y", 1);
    for (int i = 0; i < 3; i++) {
        pl_status status = PL_E_NOMEM;
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_texts_result r;
            unlink(index_path);
            pl_alloc_fail_at(n, n % 2);
            status = prepare(&setups[i], &r);
            pl_alloc_fail_at(0, 0);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
            assert_int_equal(pl_alloc_live_blocks(), live);
        }
    }
}

/* ---- memory ---- */

/* The most that preparing held at once of our heap and jansson's. */
static uint64_t peak_of(const pl_texts_setup *s, pl_status expected)
{
    pl_alloc_meter meter = {0};
    pl_texts_result r;
    unlink(index_path);
    (void)pl_alloc_set_meter(&meter);
    pl_json_count(true);
    const pl_status status = prepare(s, &r);
    pl_json_count(false);
    (void)pl_alloc_set_meter(NULL);
    if (status != expected) fail_msg("%s", err.text);
    assert_in_range(meter.peak_bytes, 1, pl_texts_prepare_bytes(s));
    assert_int_equal(meter.held_bytes, 0);
    return meter.peak_bytes;
}

static const char *write_repeated(const char *first, const char *piece, uint64_t times, const char *last)
{
    const char *path = scratch_path("large");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(first, f);
    for (uint64_t i = 0; i < times; i++) fputs(piece, f);
    fputs(last, f);
    fclose(f);
    return path;
}

/* With many texts, and with a long one, it is what it is with few and short ones. */
static void test_memory_does_not_grow(void **state)
{
    (void)state;
    const int shift = scratch_instrumented() ? 6 : 0; /* smaller there */
    const char *name = scratch_path("large");
    const pl_texts_setup lines = {.form = PL_TEXTS_LINES, .path = name}, csv = {.form = PL_TEXTS_CSV, .path = name},
                         jsonl = {.form = PL_TEXTS_JSONL, .path = name};
    (void)write_repeated("", "ab\n", 3, "");
    const uint64_t few_lines = peak_of(&lines, PL_OK);
    (void)write_repeated("", "a\n", 1000000 >> shift, "");
    assert_int_equal(peak_of(&lines, PL_OK), few_lines);
    (void)write_repeated("", "abcdefghijklmnopqrstuvwxyz", 1000000 >> shift, "");
    assert_int_equal(peak_of(&lines, PL_OK), few_lines);
    (void)write_repeated("text\n", "ab\n", 3, "");
    const uint64_t few_fields = peak_of(&csv, PL_OK);
    (void)write_repeated("text\n\"", "abcdefghi\"\"\nlmn", 1000000 >> shift, "\"");
    assert_int_equal(peak_of(&csv, PL_OK), few_fields);
    (void)write_repeated("", "{\"text\":\"ab\"}\n", 3, "");
    const uint64_t few_objects = peak_of(&jsonl, PL_OK);
    (void)write_repeated("", "{\"text\":\"ab\"}\n", 50000 >> shift, "");
    assert_int_equal(peak_of(&jsonl, PL_OK), few_objects);
}

/* The longest line and the most values that there may be; and one more of each. */
static void test_limits_of_a_line(void **state)
{
    (void)state;
    const pl_texts_setup s = {.form = PL_TEXTS_JSONL, .path = scratch_path("large")};
    const uint64_t rest = PL_TEXTS_LINE_BYTES - strlen("{\"text\":\"\"}");
    (void)write_repeated("{\"text\":\"", "x", rest, "\"}\n");
    (void)peak_of(&s, PL_OK);
    (void)write_repeated("{\"text\":\"", "x", rest + 1, "\"}\n");
    (void)peak_of(&s, PL_E_DATA);
    assert_says(&err, "large:1: is longer than 4 MiB");
    (void)write_repeated("{\"text\":\"", "x", 3 * (uint64_t)PL_TEXTS_LINE_BYTES, "");
    (void)peak_of(&s, PL_E_DATA);
    (void)write_repeated("{\"text\":\"\",\"x\":[[]", ",[]", PL_TEXTS_LINE_VALUES / 2 - 2, "]}\n");
    (void)peak_of(&s, PL_OK);
    (void)write_repeated("{\"text\":\"\",\"x\":[{}", ",{}", PL_TEXTS_LINE_VALUES / 2 - 2, "]}\n");
    (void)peak_of(&s, PL_OK);
    (void)write_repeated("{\"text\":\"\",\"x\":[[]", ",[]", PL_TEXTS_LINE_VALUES / 2 - 1, "]}\n");
    (void)peak_of(&s, PL_E_DATA);
    assert_says(&err, "large:1: has more than 32768 values");
    /* Commas of a text are none. */
    (void)write_repeated("{\"text\":\"", ",[{\\\"", 1 << 16, "\"}\n");
    (void)peak_of(&s, PL_OK);
}

/* Reading asks for nothing, in any form. */
static void test_reading_asks_for_nothing(void **state)
{
    (void)state;
    const char *source[] = {"text\n", "{\"text\":\"a\\u0041\"}\n", "text\n\"a\"\"b\"\n"};
    for (int i = 0; i <= PL_TEXTS_GRAMMAR; i++) {
        char text[64];
        size_t n;
        bool whole;
        pl_texts t;
        pl_texts_setup s = {.form = (pl_texts_form)i, .count = 1};
        if (i < 3) s.path = write_source(source[i], strlen(source[i]));
        if (i == PL_TEXTS_FOLDER) s.path = make_folder(), write_below("x", "y", 1);
        open_texts(&t, &s);
        const uint64_t before = pl_alloc_request_count();
        assert_int_equal(pl_texts_read(&t, 0, text, sizeof text, &n, &whole, &err), PL_OK);
        assert_int_equal(pl_alloc_request_count(), before);
        pl_texts_close(&t);
    }
}

/* ---- several threads at once ---- */

typedef struct reader {
    pl_texts *texts;
    uint64_t first, sum;
    int failed;
} reader;

static void *read_sum(void *context)
{
    reader *r = context;
    for (uint64_t i = 0; i < r->texts->count; i++) {
        char text[64];
        size_t n;
        bool whole;
        pl_error why = {0};
        const uint64_t number = (i + r->first) % r->texts->count;
        if (pl_texts_read(r->texts, number, text, sizeof text, &n, &whole, &why) != PL_OK || n != 9) r->failed++;
        for (size_t k = 0; k < n; k++) r->sum += (uint64_t)text[k] * (number + 1);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    enum { TEXTS = 60000, THREADS = 3 };
    pl_str file = {0};
    pl_texts t;
    pthread_t thread[THREADS];
    reader r[THREADS];
    uint64_t sum = 0;
    for (uint64_t i = 0; i < TEXTS; i++) {
        char text[16];
        sprintf(text, "t%08d", (int)(i * 31 % 1000003));
        pl_str_printf(&file, "{\"text\": \"\\u0074%s\"}\n", text + 1);
        for (size_t k = 0; k < 9; k++) sum += (uint64_t)text[k] * (i + 1);
    }
    const pl_texts_setup s = {.form = PL_TEXTS_JSONL, .path = write_source(file.data, file.bytes)};
    pl_str_deinit(&file);
    open_texts(&t, &s);
    for (int i = 0; i < THREADS; i++) {
        r[i] = (reader){.texts = &t, .first = (uint64_t)i * 20};
        assert_int_equal(pthread_create(&thread[i], NULL, read_sum, &r[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(r[i].failed, 0);
        assert_int_equal(r[i].sum, sum);
    }
    pl_texts_close(&t);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reused),
        cmocka_unit_test(test_edited_in_place),
        cmocka_unit_test(test_first_texts),
        cmocka_unit_test(test_asked_and_stopped),
        cmocka_unit_test(test_setups),
        cmocka_unit_test(test_damaged_index),
        cmocka_unit_test(test_cut_while_reading),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_memory_does_not_grow),
        cmocka_unit_test(test_limits_of_a_line),
        cmocka_unit_test(test_reading_asks_for_nothing),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, texts_make, scratch_remove);
}
