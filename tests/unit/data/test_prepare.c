/* From text to tokenizer and tokens: made once, used again, made again when the text or the wish changes; any bytes. */
#include "unit/data/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "data/text/prepare.h"
#include "support/program.h"

static pl_error err;

static pl_text_options options(pl_tokenizer_kind kind, uint32_t vocab)
{
    static char text[128], tokenizer[128], tokens[128];
    strcpy(text, scratch_path("text")), strcpy(tokenizer, scratch_path("tokenizer.json")),
        strcpy(tokens, scratch_path("tokens"));
    return (pl_text_options){.text = {.names = text, .form = PL_TEXTS_AUTO, .scratch = tokens},
                             .tokenizer_path = tokenizer,
                             .tokens_path = tokens,
                             .kind = kind,
                             .vocab = vocab};
}

static const char *write_text(unsigned repeats, const char *end)
{
    char *text = pl_alloc(repeats * 48 + 100, 1);
    size_t n = 0;
    for (unsigned i = 0; i < repeats; i++) n += (size_t)sprintf(text + n, "the cat number %u sat.\n", i);
    n += (size_t)sprintf(text + n, "\xff\xfe %s", end);
    const char *path = scratch_file("text", text, n);
    pl_free(text);
    return path;
}

static pl_text_result prepare(const pl_text_options *o)
{
    pl_text_result r;
    pl_tokenizer *t;
    if (pl_text_prepare(o, &t, &r, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(r.info.vocab, pl_tokenizer_vocab_size(t));
    assert_int_equal(r.info.tokenizer_hash, pl_tokenizer_hash(t));
    pl_tokenizer_destroy(t);
    return r;
}

/* The tokens decode to the text. */
static void check_decodes(const pl_text_options *o)
{
    pl_tokens tokens;
    pl_tokens_reader r;
    pl_tokenizer *t;
    char *text;
    size_t n, at = 0, bytes;
    assert_int_equal(pl_tokens_open(&tokens, o->tokens_path, &err), PL_OK);
    assert_int_equal(pl_tokenizer_load(o->tokenizer_path, &t, &err), PL_OK);
    assert_int_equal(pl_file_read_all(o->text.names, 1 << 24, &text, &n, &err), PL_OK);
    void *memory = pl_alloc(pl_tokens_reader_bytes(&tokens.info), 1);
    pl_tokens_reader_init(&r, &tokens, memory);
    for (uint64_t i = 0; i < tokens.info.count; i++) {
        int32_t id;
        assert_int_equal(pl_tokens_read(&r, i, i + 1, &id, &err), PL_OK);
        const uint8_t *part = pl_tokenizer_token(t, (uint32_t)id, &bytes);
        assert_memory_equal(text + at, part, bytes);
        at += bytes;
    }
    assert_int_equal(at, n);
    uint64_t counted;
    assert_int_equal(pl_text_count_bytes(&r, t, 0, tokens.info.count, &counted, &err), PL_OK);
    assert_int_equal(counted, n);
    pl_free(memory), pl_free(text), pl_tokenizer_destroy(t), pl_tokens_close(&tokens);
}

static void test_made_once(void **state)
{
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BPE, 300);
    write_text(3000, "end");
    pl_text_result r = prepare(&o);
    assert_false(r.tokens_reused || r.tokenizer_reused);
    assert_string_equal(r.reason, "");
    check_decodes(&o);
    r = prepare(&o);
    assert_true(r.tokens_reused && r.tokenizer_reused);
    utimensat(AT_FDCWD, o.text.names, (struct timespec[2]){{1000, 0}, {2000, 5}}, 0); /* touched, but the same */
    assert_true(prepare(&o).tokens_reused);
    o.vocab = 310;
    r = prepare(&o);
    assert_false(r.tokens_reused);
    assert_non_null(strstr(r.reason, "vocabulary size"));
    write_text(3000, "END");
    r = prepare(&o);
    assert_false(r.tokens_reused);
    assert_non_null(strstr(r.reason, "the text is no longer"));
    check_decodes(&o);
}

static void test_damage_heals(void **state)
{
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BPE, 300);
    write_text(100, "end");
    prepare(&o);
    assert_int_equal(truncate(o.tokens_path, 500), 0);
    pl_text_result r = prepare(&o);
    assert_false(r.tokens_reused);
    assert_non_null(strstr(r.reason, "truncated"));
    scratch_file("tokenizer.json", "{", 1);
    r = prepare(&o);
    assert_false(r.tokens_reused);
    assert_non_null(strstr(r.reason, "not valid JSON"));
    assert_true(prepare(&o).tokens_reused);
}

static void test_given_tokenizer(void **state)
{
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BPE, 280);
    write_text(100, "end");
    prepare(&o);
    o.given = 1;
    assert_true(prepare(&o).tokens_reused); /* whoever made it: the ids are this tokenizer's */
    assert_int_equal(unlink(o.tokens_path), 0);
    assert_false(prepare(&o).tokens_reused);
    assert_true(prepare(&o).tokens_reused);
    assert_int_equal(unlink(o.tokenizer_path), 0);
    pl_tokenizer *t;
    pl_text_result r;
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_DATA);
    assert_null(t);
}

static int writes;

static pl_status before_writing(void *refuse, pl_error *e)
{
    writes++;
    return *(int *)refuse ? pl_fail(e, PL_E_STORAGE, "not now") : PL_OK;
}

/* Asked before the first byte is written, not asked when nothing is; refused, nothing is there. */
static void test_asked_before_writing(void **state)
{
    (void)state;
    int refuse = 1;
    pl_tokenizer *t;
    pl_text_result r;
    pl_text_options o = options(PL_TOKENIZER_BPE, 280);
    o.before_writing = before_writing;
    o.writing = &refuse;
    unlink(o.tokens_path), unlink(o.tokenizer_path);
    write_text(100, "asked");
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_STORAGE);
    assert_int_not_equal(access(o.tokens_path, F_OK), 0);
    assert_int_not_equal(access(o.tokenizer_path, F_OK), 0);
    refuse = writes = 0;
    assert_false(prepare(&o).tokens_reused);
    assert_true(prepare(&o).tokens_reused);
    assert_int_equal(writes, 1);
    write_text(100, "");
    unlink(o.text.names);
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_DATA);
    assert_int_equal(writes, 1); /* a text that cannot be read touches nothing */
}

/* Of the same length and time: nothing but what it holds, and what cannot be set, differs. */
static void test_replaced(void **state)
{
    char other[200];
    struct stat st;
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BYTES, 0);
    write_text(100, "one");
    const uint64_t one = prepare(&o).info.source.content;
    assert_int_equal(stat(o.text.names, &st), 0);
    snprintf(other, sizeof other, "%s.other", o.text.names);
    for (int in_place = 0; in_place < 2; in_place++) {
        const char *end = in_place ? "six" : "two";
        const int fd = open(o.text.names, O_RDONLY);
        char text[8192];
        const ssize_t n = read(fd, text, sizeof text);
        close(fd);
        memcpy(text + n - 3, end, 3);
        FILE *f = fopen(in_place ? o.text.names : other, in_place ? "r+" : "w");
        assert_true(f && fwrite(text, 1, (size_t)n, f) == (size_t)n && fclose(f) == 0);
        assert_int_equal(
            utimensat(AT_FDCWD, in_place ? o.text.names : other, (struct timespec[2]){st.st_atim, st.st_mtim}, 0), 0);
        if (!in_place) assert_int_equal(rename(other, o.text.names), 0);
        const pl_text_result r = prepare(&o);
        assert_true(!r.tokens_reused && r.info.source.content != one);
        assert_string_equal(r.reason, "the text is no longer the one that the tokens were made from");
        check_decodes(&o);
    }
}

/* A copy elsewhere is the same text. How it is known is noted; where that cannot be written the tokens do as well. */
static void test_moved(void **state)
{
    char copy[200];
    struct stat before, after, text;
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BYTES, 0);
    write_text(100, "one");
    (void)prepare(&o);
    snprintf(copy, sizeof copy, "%s.copy", o.text.names);
    assert_int_equal(stat(o.tokens_path, &before), 0);
    for (int is_fixed = 0; is_fixed < 2; is_fixed++) {
        char *all;
        size_t n;
        pl_tokens tokens;
        assert_int_equal(pl_file_read_all(o.text.names, 1 << 20, &all, &n, &err), PL_OK);
        unlink(copy);
        assert_int_equal(pl_file_write_all(copy, all, n, &err), PL_OK);
        pl_free(all);
        o.text.names = copy;
        if (is_fixed) assert_int_equal(chmod(o.tokens_path, 0444), 0);
        assert_true(prepare(&o).tokens_reused);
        assert_int_equal(stat(o.tokens_path, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(stat(copy, &text), 0);
        assert_int_equal(pl_tokens_open(&tokens, o.tokens_path, &err), PL_OK);
        if (!is_fixed) assert_true(tokens.info.source.inode == text.st_ino && tokens.info.source.bytes == n);
        pl_tokens_close(&tokens);
        o.text.names = options(PL_TOKENIZER_BYTES, 0).text.names;
    }
    assert_int_equal(chmod(o.tokens_path, 0644), 0);
}

/* What another reader of texts made, or one that did not note the inode, as versions before this one. */
static void test_reader(void **state)
{
    uint8_t header[PL_TOKENS_HEADER_BYTES];
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BYTES, 0);
    write_text(100, "one");
    (void)prepare(&o);
    for (int what = 0; what < 2; what++) {
        FILE *f = fopen(o.tokens_path, "r+b");
        assert_true(f && fread(header, sizeof header, 1, f) == 1);
        if (what == 0) header[100]++;
        if (what == 1) memset(header + 56, 0, 8), memset(header + 104, 0, 8);
        const uint64_t sum = XXH64(header, 120, 0);
        memcpy(header + 120, &sum, sizeof sum);
        rewind(f);
        assert_true(fwrite(header, sizeof header, 1, f) == 1 && fclose(f) == 0);
        const pl_text_result r = prepare(&o);
        assert_int_equal(r.tokens_reused, what);
        if (what == 0) assert_non_null(strstr(r.reason, "another version of the reader"));
    }
}

static void test_finds_hash(void **state)
{
    (void)state;
    uint64_t hash, read;
    pl_text_options o = options(PL_TOKENIZER_BYTES, 0);
    write_text(100, "one");
    assert_int_equal(pl_text_find_hash(&o.text, o.tokens_path, &read, &err), PL_OK);
    assert_int_equal(prepare(&o).info.source.content, read);
    assert_int_equal(pl_text_find_hash(&o.text, o.tokens_path, &hash, &err), PL_OK);
    assert_int_equal(hash, read);
    write_text(100, "two");
    assert_int_equal(pl_text_find_hash(&o.text, o.tokens_path, &hash, &err), PL_OK);
    assert_int_not_equal(hash, read);
    assert_int_equal(pl_text_find_hash(&(pl_corpus_wish){.names = "/nonexistent"}, o.tokens_path, &hash, &err),
                     PL_E_DATA);
}

static void test_kinds_and_sizes(void **state)
{
    (void)state;
    for (int kind = 0; kind < PL_TOKENIZER_KINDS; kind++) {
        pl_text_options o = options((pl_tokenizer_kind)kind, 400);
        scratch_file("text", "x", 1); /* the smallest text */
        assert_int_equal(prepare(&o).info.count, 1);
        write_text(20000, "end"); /* several blocks */
        pl_text_result r = prepare(&o);
        assert_true(r.info.count > 1000);
        if (kind == PL_TOKENIZER_BPE || kind == PL_TOKENIZER_BYTES) check_decodes(&o);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BPE, 300);
    pl_tokenizer *t;
    pl_text_result r;
    scratch_file("text", "", 0);
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_DATA);
    assert_says(&err, "is empty");
    unlink(o.text.names);
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_DATA);
    o.text.names = scratch_folder;
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_DATA);
    write_text(1, "");
    o = options(PL_TOKENIZER_BPE, 100);
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_CONFIG);
    o = options(PL_TOKENIZER_BPE, 300);
    o.tokens_path = "/nonexistent/folder/tokens";
    assert_int_equal(pl_text_prepare(&o, &t, &r, &err), PL_E_STORAGE);
}

/* Every refusal of memory is an error with nothing left behind, and the next try succeeds. */
static void test_memory_refused(void **state)
{
    (void)state;
    pl_text_options o = options(PL_TOKENIZER_BPE, 270);
    write_text(3, "");
    uint64_t live = pl_alloc_live_blocks();
    for (int reuse = 0; reuse < 2; reuse++) {
        pl_status status = PL_E_NOMEM;
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_tokenizer *t;
            pl_text_result r;
            if (!reuse) unlink(o.tokens_path);
            pl_alloc_fail_at(n, n % 2);
            status = pl_text_prepare(&o, &t, &r, &err);
            pl_alloc_fail_at(0, 0);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
            pl_tokenizer_destroy(t);
            assert_int_equal(pl_alloc_live_blocks(), live);
        }
        prepare(&o);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_made_once),
        cmocka_unit_test(test_damage_heals),
        cmocka_unit_test(test_given_tokenizer),
        cmocka_unit_test(test_kinds_and_sizes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_reader),
        cmocka_unit_test(test_finds_hash),
        cmocka_unit_test(test_asked_before_writing),
    };
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
