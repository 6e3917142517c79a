/* Numbered texts in each form: known files, and random texts written by writers of the test's own, come back to the
 * byte; what is no such file is refused with its place. */
#include "unit/data/texts_files.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include "texts/scan.h"
#include "texts/texts_folder.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;

/* All texts, parted by "|", or the sentence that says why not; `bytes` of the file at scratch "source". */
static const char *read_all(pl_texts_setup s, const char *source, size_t bytes)
{
    static char all[4096];
    pl_texts_result r;
    pl_texts t;
    size_t at = 0, n;
    bool whole;
    if (source) s.path = write_source(source, bytes);
    unlink(index_path);
    if (prepare(&s, &r) != PL_OK || pl_texts_open(&t, &s, index_path, &err) != PL_OK) return err.text;
    for (uint64_t i = 0; i < t.count; i++) {
        if (i) all[at++] = '|';
        assert_int_equal(pl_texts_read(&t, i, all + at, sizeof all - at - 2, &n, &whole, &err), PL_OK);
        assert_true(whole);
        at += n;
    }
    all[at] = 0;
    pl_texts_close(&t);
    return all;
}

#define IS(setup, source, expected) assert_string_equal(read_all(setup, source, sizeof source - 1), expected)
#define REFUSES(setup, source, part)                                                                                   \
    do {                                                                                                               \
        err = (pl_error){0};                                                                                           \
        (void)read_all(setup, source, sizeof source - 1);                                                              \
        assert_int_equal(err.status, PL_E_DATA);                                                                       \
        assert_says(&err, part);                                                                                       \
    } while (0)

/* ---- known files ---- */

static void test_lines(void **state)
{
    (void)state;
    const pl_texts_setup s = {.form = PL_TEXTS_LINES};
    IS(s, "a", "a");
    IS(s, "a\n", "a");
    IS(s, "a\nb", "a|b");
    IS(s, "\n", "");
    IS(s, "a\n\nb\n\n", "a||b|");
    IS(s, "a\r\nb\r\n", "a|b");
    IS(s, "\r\n\r\r\na\rb\r", "|\r|a\rb\r");
    IS(s, "\xef\xbb\xbfx\n\xef\xbb\xbfy", "x|\xef\xbb\xbfy");
    IS(s, "\xff\xfe\xc3\n\xed\xa0\x80", "\xff\xfe\xc3|\xed\xa0\x80");
    REFUSES(s, "", "is empty");
    REFUSES(s, "\xef\xbb\xbf", "has no texts");
}

static void test_jsonl(void **state)
{
    (void)state;
    const pl_texts_setup s = {.form = PL_TEXTS_JSONL}, body = {.form = PL_TEXTS_JSONL, .key = "bo\"dy"};
    IS(s, "{\"text\":\"a\"}\n{\"text\": \"b\"}\n", "a|b");
    IS(s, "\xef\xbb\xbf{\"text\":\"\"}\r\n \t\r\n\n{\"text\":\"b\"}", "|b");
    IS(s, "{\"id\": 7, \"text\": \"\\u0041\\n\\t\\\"\\\\\\/\\b\\f\\r\", \"x\": [{\"text\": \"no\"}]}",
       "A\n\t\"\\/\b\f\r");
    IS(s, "{\"text\": \"\\u00e4\\u20AC\\uD83D\\uDE00\"}", "ä€😀");
    IS(s, "{\"text\": \"\\ud800x\\udc00\\ud800\\ud83d\\ude00\\ud800\"}", "\xffx\xff\xff😀\xff");
    IS(s, "{\"text\": \"\xff\\u00e4\xc3\"}", "\xffä\xc3");
    IS(s, "{\"te\\u0078t\": \"e\", \"other\": \"text\"}", "e");
    IS(s, "{\"text\": 1, \"text\": \"last\"}\n{\"text\": \"a\", \"text\": \"b\"}", "last|b");
    IS(s, "{\"a\": {\"text\": \"in\"}, \"b\": \"text\", \"text\": \"out\", \"c\": \"}\\\\\"}", "out");
    IS(s, "{\"n\": 18446744073709551616, \"text\": \"big\"}", "big");
    IS(body, "{\"bo\\\"dy\": \"q\"}", "q");
    assert_int_equal(strlen(read_all(s, "{\"text\": \"a\\u0000b\"}", 20)), 1);
    REFUSES(s, "{\"text\": \"a\"}\n{\"text\": 7}\n", "source:2: what stands at the key \"text\" is no string");
    REFUSES(s, "\n\n{\"txt\": \"a\"}\n", "source:3: its object has no key \"text\"");
    REFUSES(s, "{\"text\": \"a\"}\n{\"text\": \"b\n", "source:2:");
    REFUSES(s, "{\"text\": \"a\"} x\n", "is not valid JSON");
    REFUSES(s, "{\"text\": null}\n", "is no string");
    REFUSES(s, "[\"text\", \"a\"]\n", "source:1: is no object");
    REFUSES(s, "\"text\"\n", "is no object");
    REFUSES(s, "{\"text\": \"\\x\"}\n", "is not valid JSON");
    REFUSES(s, "\n \n", "has no texts");
}

static void test_csv(void **state)
{
    (void)state;
    const pl_texts_setup s = {.form = PL_TEXTS_CSV}, second = {.form = PL_TEXTS_CSV, .column = "2"},
                         bare = {.form = PL_TEXTS_CSV, .column = "2", .headless = true},
                         quoted = {.form = PL_TEXTS_CSV, .column = "a \"b\", c"};
    IS(s, "id,text\n1,a\n2,b\n", "a|b");
    IS(s, "text\na\n\n\"\"\n b \n", "a|| b ");
    IS(s, "\xef\xbb\xbftext,id\r\n\"a\r\nb\",1\r\n\r\n\"c,\"\"d\"\"\",2", "a\r\nb|c,\"d\"");
    IS(s, "x,text,y\n1,5\" disk,2\n,,\n\"\",\"\"\"\",\"\"\r", "5\" disk||\"");
    IS(s, "\"text\"\n\"x\"\r\ny\r\nz\r", "x|y|z");
    IS(second, "id,name\n1,a\n2,\"b\"\n", "a|b");
    IS(second, "2,name\n1,a\n2,\"b\"\n", "1|2");
    IS(bare, "1,a\n2,\"b\"\"\"\n", "a|b\"");
    IS(quoted, "x,\"a \"\"b\"\", c\"\n1,2\n", "2");
    IS(s, "text,text\na,b\n", "a");
    REFUSES(s, "id,name\n1,a\n", "source:1: has no column \"text\" among its 2");
    REFUSES(bare, "a\nb\n", "source:1: has no column \"2\" among its 1");
    REFUSES(s, "text,b\n1,2\n\"x\ny\",2,3\n", "source:3: has 3 fields, the first record 2");
    REFUSES(s, "text,b\n1\n", "source:2: has 1 fields, the first record 2");
    REFUSES(s, "text\n\"a\"b\n", "source:2: field 1 goes on behind its closing quote");
    REFUSES(s, "text\n\"a\"\rb\n", "goes on behind");
    REFUSES(s, "text\nx\n\"a\nb\n", "source:3: field 1 of the record that begins here has no closing quote");
    REFUSES(s, "text\n\n\n", "has no texts");
}

/* ---- folders ---- */

static void test_folder(void **state)
{
    (void)state;
    char path[256];
    pl_texts_result r;
    pl_texts_setup s = {.form = PL_TEXTS_FOLDER, .path = make_folder()};
    assert_int_equal(prepare(&s, &r), PL_E_DATA);
    assert_says(&err, "no file lies in it");
    write_below("a/deep/x", "5", 1), write_below("a/b", "4", 1), write_below("a-b", "2", 1);
    write_below("a.d/z", "3", 1), write_below("B", "1", 1), write_below("a0", "", 0);
    write_below("\xffz\n", "7", 1);
    snprintf(path, sizeof path, "%s/b-link", s.path);
    assert_int_equal(symlink("B", path), 0);
    snprintf(path, sizeof path, "%s/c-link", s.path);
    assert_int_equal(symlink("a", path), 0);
    snprintf(path, sizeof path, "%s/d-link", s.path);
    assert_int_equal(symlink("nowhere", path), 0);
    snprintf(path, sizeof path, "%s/pipe", s.path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_string_equal(read_all(s, NULL, 0), "1|2|3|4|5||1|7");
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_true(r.reused);
    assert_int_equal(r.info.source.bytes, 7);
    assert_no_temporary();
}

static void test_changed_folder(void **state)
{
    (void)state;
    char text[8];
    size_t n;
    bool whole;
    pl_texts_result r;
    pl_texts t;
    const pl_texts_setup s = {.form = PL_TEXTS_FOLDER, .path = make_folder()};
    write_below("a/1", "one", 3), write_below("a/2", "two", 3);
    open_texts(&t, &s);
    const uint64_t identity = pl_texts_identity(&t);
    write_below("a/2", "second", 6);
    assert_int_equal(pl_texts_read(&t, 0, text, 8, &n, &whole, &err), PL_OK);
    assert_int_equal(pl_texts_read(&t, 1, text, 8, &n, &whole, &err), PL_E_DATA);
    assert_says(&err, "a/2: was changed since its index was made");
    pl_texts_close(&t);
    assert_int_equal(prepare(&s, &r), PL_OK);
    assert_false(r.reused);
    assert_string_equal(r.reason, "the texts are no longer those that the index was made of");
    write_below("a/2", "two", 3);
    open_texts(&t, &s);
    assert_int_equal(pl_texts_identity(&t), identity); /* the same contents */
    write_below("a/3", "", 0);
    pl_texts_close(&t);
    open_texts(&t, &s);
    assert_int_equal(t.count, 3);
    assert_int_not_equal(pl_texts_identity(&t), identity);
    pl_texts_close(&t);
}

static void test_too_deep(void **state)
{
    (void)state;
    char command[700];
    pl_texts_result r;
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_cur < 64) skip(); /* each folder on the way down is open */
    const pl_texts_setup s = {.form = PL_TEXTS_FOLDER, .path = make_folder()};
    snprintf(command, sizeof command, "cd '%s' && for i in $(seq 33); do mkdir d && cd d; done && touch x", s.path);
    assert_int_equal(system(command), 0);
    assert_int_equal(prepare(&s, &r), PL_E_DATA);
    assert_says(&err, "lies more than 32 folders deep");
    const pl_texts_setup none = {.form = PL_TEXTS_FOLDER, .path = scratch_path("none")};
    assert_int_equal(prepare(&none, &r), PL_E_DATA);
}

/* ---- random texts, by writers of the test's own ---- */

typedef struct sample {
    uint8_t *text; /* of all, behind each other */
    size_t begin[400], count, bytes;
    pl_str file; /* as it is written in some form */
} sample;

static void add(sample *all, const char *text, size_t bytes)
{
    memcpy(all->text + all->bytes, text, bytes);
    all->bytes += bytes;
}

/* One piece of a text, and how it stands in JSON. */
static void add_piece(sample *all, scratch_random *random, pl_texts_form form)
{
    static const struct {
        const char *text, *raw, *escaped;
    } piece[] = {
        {"\"", "\\\"", "\\u0022"},      {"\\", "\\\\", "\\u005C"}, {"/", "/", "\\/"},
        {"\n", "\\n", "\\u000a"},       {"\r", "\\r", "\\u000D"},  {"\t", "\\t", "\\u0009"},
        {",", ",", "\\u002c"},          {"ä", "ä", "\\u00E4"},     {"€", "€", "\\u20ac"},
        {"😀", "😀", "\\ud83D\\uDE00"},   {"{", "{", "\\u007b"},     {"\b", "\\b", "\\u0008"},
        {"\xff", "\xff", "\xff"},       {"\xc3", "\xc3", "\xc3"},  {"\xff", "\\udc80", "\\uDC81"},
        {"word", "word", "w\\u006frd"}, {" ", " ", "\\u0020"},     {"\xef\xbb\xbf", "\xef\xbb\xbf", "\\ufeff"}};
    const uint32_t which = scratch_next(random, sizeof piece / sizeof *piece);
    const char *text = piece[which].text;
    /* In lines no ends of lines, and no mark at the beginning. */
    if (form == PL_TEXTS_LINES && (strpbrk(text, "\r\n") || (all->bytes == 0 && text[0] == '\xef'))) text = " ";
    add(all, text, strlen(text));
    if (form == PL_TEXTS_JSONL || form == PL_TEXTS_SQUAD)
        pl_str_append(&all->file, scratch_next(random, 2) ? piece[which].raw : piece[which].escaped);
    if (form == PL_TEXTS_LINES) pl_str_append(&all->file, text);
}

static void add_csv_field(pl_str *file, const uint8_t *text, size_t bytes, bool quotes)
{
    for (size_t i = 0; i < bytes; i++) quotes |= memchr("\",\r\n", text[i], 4) != NULL;
    if (quotes) pl_str_append(file, "\"");
    for (size_t i = 0; i < bytes; i++)
        pl_str_append_bytes(file, text[i] == '"' ? "\"\"" : (const char *)text + i, text[i] == '"' ? 2 : 1);
    if (quotes) pl_str_append(file, "\"");
}

static void make_sample(sample *all, scratch_random *random, pl_texts_form form)
{
    const char *end = scratch_next(random, 2) ? "\r\n" : "\n";
    *all = (sample){.text = pl_alloc(1 << 20, 1), .count = 1 + scratch_next(random, 60)};
    if (form == PL_TEXTS_CSV) pl_str_printf(&all->file, "id,\"te\"\"xt\",z%s", end);
    if (form == PL_TEXTS_SQUAD)
        pl_str_printf(&all->file, "{\"version\": 1.1e+1, \"data\": [{\"title\": null, \"paragraphs\": [%s", end);
    for (size_t i = 0; i < all->count; i++) {
        all->begin[i] = all->bytes;
        if (form == PL_TEXTS_SQUAD) pl_str_printf(&all->file, "%s{\"context\": \"", i ? "," : "");
        if (form == PL_TEXTS_JSONL)
            pl_str_printf(&all->file, "{\"a\": [1, {\"te\\\"xt\": \"\\\\\"}], \"te\\\"xt\" : \"");
        for (uint32_t n = scratch_next(random, 30) * scratch_next(random, 30); n; n--) add_piece(all, random, form);
        if (form == PL_TEXTS_JSONL) pl_str_append(&all->file, scratch_next(random, 2) ? "\"}" : "\", \"b\": \"\\\"\"}");
        if (form == PL_TEXTS_SQUAD)
            pl_str_append(&all->file,
                          scratch_next(random, 2) ? "\"}" : "\", \"qas\": [{\"question\":\"\\\\\"}, [[]]]}");
        if (form == PL_TEXTS_CSV) {
            pl_str_append(&all->file, scratch_next(random, 2) ? "1," : "\"1,\n\",");
            add_csv_field(&all->file, all->text + all->begin[i], all->bytes - all->begin[i], scratch_next(random, 2));
            pl_str_append(&all->file, ",");
        }
        pl_str_append(&all->file, end);
    }
    if (form == PL_TEXTS_SQUAD) pl_str_append(&all->file, "]}, {}]}");
    all->begin[all->count] = all->bytes;
}

/* ---- as they pass ---- */

typedef struct passing {
    const sample *all;
    size_t text, bytes;
} passing;

static pl_status pass_piece(void *context, const void *data, size_t bytes, pl_error *e)
{
    passing *p = context;
    (void)e;
    assert_true(p->bytes + bytes <= p->all->begin[p->text + 1]);
    assert_memory_equal(data, p->all->text + p->bytes, bytes);
    p->bytes += bytes;
    return PL_OK;
}

static pl_status pass_end(void *context, const pl_text_place *place, pl_error *e)
{
    passing *p = context;
    (void)place, (void)e;
    p->text++;
    assert_int_equal(p->bytes, p->all->begin[p->text]);
    return PL_OK;
}

/* In portions of any size, also of one byte. */
static void check_passing(const pl_texts_setup *s, const sample *all, scratch_random *random)
{
    passing p = {.all = all};
    pl_scanner *scanner;
    const uint32_t most = scratch_next(random, 2) ? 3 : 5000;
    assert_int_equal(pl_scanner_create(s, pass_end, &p, &scanner, &err), PL_OK);
    assert_int_equal(pl_scanner_want_pieces(scanner, pass_piece, &err), PL_OK);
    for (size_t at = 0, n; at < all->file.bytes; at += n) {
        n = (at ? 1 : 3) + scratch_next(random, most);
        if (n > all->file.bytes - at) n = all->file.bytes - at;
        if (pl_scanner_feed(scanner, all->file.data + at, n, &err) != PL_OK) fail_msg("%s", err.text);
    }
    if (pl_scanner_finish(scanner, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(p.text, all->count);
    pl_scanner_destroy(scanner);
}

static void check_sample(pl_texts *t, const sample *all, scratch_random *random)
{
    static uint8_t buffer[8192];
    assert_int_equal(t->count, all->count);
    for (size_t i = 0; i < all->count; i++) {
        const size_t length = all->begin[i + 1] - all->begin[i],
                     room = scratch_next(random, 2) ? sizeof buffer : scratch_next(random, 300);
        size_t n;
        bool whole;
        assert_int_equal(pl_texts_read(t, i, buffer, room, &n, &whole, &err), PL_OK);
        assert_int_equal(n, length < room ? length : room);
        assert_int_equal(whole, length <= room);
        assert_memory_equal(buffer, all->text + all->begin[i], n);
    }
}

static void test_random_texts(void **state)
{
    (void)state;
    scratch_random random = {pl_philox_init(seed, 1), 0};
    for (int i = 0; i < 60; i++) {
        sample all;
        pl_texts t;
        static const pl_texts_form forms[] = {PL_TEXTS_LINES, PL_TEXTS_JSONL, PL_TEXTS_CSV, PL_TEXTS_SQUAD};
        pl_texts_setup s = {.form = forms[i % 4], .key = "te\"xt", .column = "te\"xt"};
        if (s.form == PL_TEXTS_SQUAD) s.key = "contexts";
        make_sample(&all, &random, s.form);
        s.path = write_source(all.file.data, all.file.bytes);
        open_texts(&t, &s);
        check_sample(&t, &all, &random);
        check_passing(&s, &all, &random);
        pl_texts_close(&t);
        pl_str_deinit(&all.file);
        pl_free(all.text);
    }
}

/* Names that fill the sorter's memory several times come back in order, each with what is its own, and once more. */
enum { NAMES = 150000 };

typedef struct order {
    uint64_t count, sum;
    char last[256];
} order;

static pl_status check_order(void *context, const pl_listed *l, pl_error *e)
{
    order *o = context;
    (void)e;
    if (o->count) assert_true(strcmp(o->last, l->path) < 0);
    assert_int_equal(l->bytes, strlen(l->path));
    assert_int_equal(strtol(strrchr(l->path, '-') + 1, NULL, 10), l->content);
    assert_int_equal(l->mtime_ns, -(int64_t)l->content);
    strcpy(o->last, l->path);
    o->count++, o->sum += l->content;
    return PL_OK;
}

static void test_sorter(void **state)
{
    (void)state;
    const uint64_t names = scratch_instrumented() ? NAMES / 10 : NAMES;
    scratch_random random = {pl_philox_init(seed, 2), 0};
    pl_sorter *sorter;
    assert_int_equal(pl_sorter_create(source_path, &sorter, &err), PL_OK);
    for (uint64_t i = 0; i < names; i++) {
        char path[256];
        size_t n = scratch_next(&random, 200);
        for (size_t k = 0; k < n; k++) path[k] = (char)(1 + (i * 2654435761u >> k % 24) % 255);
        n += (size_t)sprintf(path + n, "-%d", (int)i);
        const pl_listed l = {path, n, -(int64_t)i, i};
        assert_int_equal(pl_sorter_add(sorter, &l, &err), PL_OK);
    }
    for (int again = 0; again < 2; again++) {
        order o = {0};
        assert_int_equal(pl_sorter_each(sorter, check_order, &o, &err), PL_OK);
        assert_int_equal(o.count, names);
        assert_int_equal(o.sum, names * (names - 1) / 2);
    }
    pl_sorter_destroy(sorter);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_jsonl),          cmocka_unit_test(test_csv),
        cmocka_unit_test(test_folder),       cmocka_unit_test(test_changed_folder), cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_random_texts), cmocka_unit_test(test_sorter),
    };
    return cmocka_run_group_tests(tests, texts_make, scratch_remove);
}
