/* Tokenizers with the pipelines of people's models: ids and texts that Hugging Face's tokenizers 0.23 gives for hostile
 * texts (tokenizers/NAME.json, written by tests/tokens/make_cases.py), whole and in portions; writing and reading back;
 * memory; refusals; what chats need. */
#include "unit/data/scratch.h"

#include <jansson.h>

#include "base/json_read.h"
#include "data/text/encoder.h"
#include "support/program.h"

static const char *const names[] = {"gpt2",    "smollm",    "digits", "llama3",  "qwen2",        "llama2",
                                    "mistral", "metaspace", "gemma",  "unknown", "unknown_apart"};
enum { NAMES = sizeof names / sizeof *names };

static pl_error err;
static json_t *files[NAMES];

static int load(void **state)
{
    for (int i = 0; i < NAMES; i++) {
        char path[PL_FILE_PATH_MAX];
        snprintf(path, sizeof path, "%s/tokenizers/%s.json", PL_TESTS_DATA, names[i]);
        files[i] = json_load_file(path, JSON_ALLOW_NUL, NULL);
        if (!files[i]) return -1;
    }
    return scratch_make(state);
}

static int unload(void **state)
{
    for (int i = 0; i < NAMES; i++) json_decref(files[i]);
    return scratch_remove(state);
}

static char *tokenizer_text(int i) { return json_dumps(json_object_get(files[i], "tokenizer"), JSON_COMPACT); }

static pl_tokenizer *parse(const char *json)
{
    pl_tokenizer *t;
    if (pl_tokenizer_parse("file.json", json, strlen(json), &t, &err) != PL_OK) fail_msg("%s", err.text);
    return t;
}

static pl_tokenizer *tokenizer_of(int i)
{
    char *json = tokenizer_text(i);
    pl_tokenizer *t = parse(json);
    free(json);
    return t;
}

static int index_of(const char *name)
{
    int i = 0;
    while (strcmp(names[i], name) != 0) i++;
    return i;
}

/* ---- against the oracle ---- */

typedef struct expected {
    const char *what;
    const json_t *text, *ids;
    size_t at;
} expected;

static pl_status compare(void *context, const uint32_t *ids, size_t count, pl_error *e)
{
    expected *x = context;
    (void)e;
    for (size_t i = 0; i < count; i++, x->at++)
        if (x->at >= json_array_size(x->ids) || ids[i] != json_integer_value(json_array_get(x->ids, x->at)))
            fail_msg("%s: id %zu of \"%s\" is %u", x->what, x->at, json_string_value(x->text), ids[i]);
    return PL_OK;
}

static void check_ids(pl_encoder *e, expected *x, const json_t *ids, pl_encode_options o, size_t portion)
{
    const char *text = json_string_value(x->text);
    const size_t bytes = json_string_length(x->text);
    x->ids = ids, x->at = 0;
    pl_encoder_set_options(e, o);
    for (size_t at = 0; at < bytes; at += portion)
        assert_int_equal(pl_encoder_feed(e, text + at, bytes - at < portion ? bytes - at : portion, &err), PL_OK);
    assert_int_equal(pl_encoder_finish(e, &err), PL_OK);
    if (x->at != json_array_size(ids)) fail_msg("%s: %zu ids of \"%s\"", x->what, x->at, text);
}

static void check_text(const pl_tokenizer *t, const expected *x, const json_t *ids, const json_t *text, int skips)
{
    pl_decoder d = {.is_text = 1, .skips_special = skips};
    pl_str out = {0};
    uint8_t *part = pl_alloc(pl_decoder_room(t), 1);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const uint32_t id = (uint32_t)json_integer_value(json_array_get(ids, i));
        pl_str_append_bytes(&out, part, pl_decoder_push(&d, t, id, part));
    }
    pl_str_append_bytes(&out, part, pl_decoder_finish(&d, part));
    if (out.bytes != json_string_length(text) || memcmp(pl_str_text(&out), json_string_value(text), out.bytes) != 0)
        fail_msg("%s: \"%s\" was decoded, not \"%s\"", x->what, pl_str_text(&out), json_string_value(text));
    pl_str_deinit(&out);
    pl_free(part);
}

/* A case is [text, ids, ids with special tokens, decoded, decoded without special tokens]. */
static void check_cases(const pl_tokenizer *t, int i)
{
    const json_t *cases = json_object_get(files[i], "cases"), *item;
    expected x = {.what = names[i]};
    pl_encoder *e;
    size_t k;
    assert_int_equal(pl_encoder_create(t, compare, &x, &e, &err), PL_OK);
    json_array_foreach(cases, k, item)
    {
        const json_t *ids = json_array_get(item, 1);
        x.text = json_array_get(item, 0);
        for (size_t portion = 1; portion < 2000; portion *= 9) check_ids(e, &x, ids, (pl_encode_options){0}, portion);
        check_ids(e, &x, json_array_get(item, 2), (pl_encode_options){.adds_special = true}, 5);
        check_text(t, &x, ids, json_array_get(item, 3), 0);
        check_text(t, &x, ids, json_array_get(item, 4), 1);
    }
    assert_true(k > 40);
    pl_encoder_destroy(e);
}

static void test_as_hugging_face(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        pl_tokenizer *t = tokenizer_of(i);
        check_cases(t, i);
        pl_tokenizer_destroy(t);
    }
}

/* Beginnings of characters that others follow at once, a token each: the texts are those of Hugging Face's library. */
static void test_broken_characters(void **state)
{
    static const char *const cases[][2] = {{"\xd5\xe8i\xf8\xd1", "\ufffd\ufffdi\ufffd\ufffd"},
                                           {"+\xe0\xcb\xf9\x15", "+\ufffd\ufffd\ufffd\x15"},
                                           {"1\xd6\xa8\x96\xd6", "1\u05a8\ufffd\ufffd"}};
    pl_tokenizer *t = tokenizer_of(index_of("gpt2"));
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        expected x = {.what = "bytes"};
        json_t *ids = json_array(), *text = json_string(cases[k][1]);
        for (const char *c = cases[k][0]; *c; c++) {
            size_t bytes = 0;
            uint32_t id = 0;
            const uint8_t *token = pl_tokenizer_token(t, id, &bytes);
            while (bytes != 1 || (char)token[0] != *c) token = pl_tokenizer_token(t, ++id, &bytes);
            json_array_append_new(ids, json_integer(id));
        }
        check_text(t, &x, ids, text, 1);
        json_decref(ids);
        json_decref(text);
    }
    pl_tokenizer_destroy(t);
}

static void test_print_parse_print(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        pl_tokenizer *t = tokenizer_of(i);
        pl_str first = {0}, second = {0};
        pl_tokenizer_print(t, &first);
        pl_tokenizer *back = parse(pl_str_text(&first));
        pl_tokenizer_print(back, &second);
        assert_string_equal(first.data, second.data);
        assert_true(pl_tokenizer_hash(t) == pl_tokenizer_hash(back));
        check_cases(back, i);
        pl_str_deinit(&first), pl_str_deinit(&second);
        pl_tokenizer_destroy(t), pl_tokenizer_destroy(back);
    }
}

/* ---- memory ---- */

static void test_heap_is_known_before(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        char *json = tokenizer_text(i);
        const char *path = scratch_file("t.json", json, strlen(json));
        pl_alloc_meter meter = {0};
        pl_tokenizer *t;
        pl_alloc_meter *before = pl_alloc_set_meter(&meter);
        pl_json_count(true);
        assert_int_equal(pl_tokenizer_load(path, &t, &err), PL_OK);
        pl_json_count(false);
        pl_alloc_set_meter(before);
        const uint64_t bound = pl_tokenizer_load_bytes(path);
        if (meter.peak_bytes > bound || bound > 4000000)
            fail_msg("%s: %llu bytes were held of %llu", names[i], (unsigned long long)meter.peak_bytes,
                     (unsigned long long)bound);
        pl_tokenizer_destroy(t);
        free(json);
    }
}

static void test_encoder_is_as_large_as_told(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        pl_tokenizer *t = tokenizer_of(i);
        for (size_t bytes = 0; bytes < 100000; bytes += 33333) {
            const uint64_t live = pl_alloc_live_bytes(), told = pl_encoder_bytes(t, bytes);
            json_t *none = json_array(), *text = json_string("");
            expected x = {.what = names[i], .text = text};
            pl_encoder *e;
            assert_int_equal(pl_encoder_create_for(t, bytes, compare, &x, &e, &err), PL_OK);
            const uint64_t taken = pl_alloc_live_bytes() - live;
            assert_true(taken <= told + 256 && taken + 256 >= told);
            const uint64_t requests = pl_alloc_request_count();
            check_ids(e, &x, none, (pl_encode_options){0}, 1);
            assert_true(pl_alloc_request_count() == requests);
            pl_encoder_destroy(e);
            json_decref(none), json_decref(text);
        }
        pl_tokenizer_destroy(t);
    }
}

static void test_memory_refused(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i += 3) {
        char *json = tokenizer_text(i);
        const uint64_t live = pl_alloc_live_blocks();
        pl_status status = PL_E_NOMEM;
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_tokenizer *t;
            pl_alloc_fail_at(n, n % 2);
            status = pl_tokenizer_parse("file.json", json, strlen(json), &t, &err);
            pl_alloc_fail_at(0, 0);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
            pl_tokenizer_destroy(t);
            assert_true(pl_alloc_live_blocks() == live);
        }
        free(json);
    }
}

/* ---- long pieces ---- */

/* Without a pattern a piece may be the whole text: with merges of "aa" and "aaaa" only, ids are known. */
static void test_long_piece_is_whole(void **state)
{
    (void)state;
    static const char json[] =
        "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"},"
        "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
        "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"Fuse\"}]},"
        "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaa\":2,\"\xe2\x96\x81\":3},\"merges\":[[\"a\","
        "\"a\"],"
        "[\"aa\",\"a\"]]}}";
    enum { LENGTH = 300001 };
    pl_tokenizer *t = parse(json);
    char *text = pl_alloc(LENGTH, 1);
    uint32_t *ids;
    size_t count;
    memset(text, 'a', LENGTH);
    assert_int_equal(pl_encode(t, text, LENGTH, &ids, &count, &err), PL_OK);
    assert_int_equal(count, LENGTH / 2); /* pairs from the left, the last of which takes the one that is left over */
    for (size_t i = 0; i + 1 < count; i++) assert_int_equal(ids[i], 1);
    assert_int_equal(ids[count - 1], 2);
    pl_free(ids);
    pl_free(text);
    pl_tokenizer_destroy(t);
}

/* ---- refusals ---- */

static void check_refused(const char *name, const char *from, const char *to, const char *says)
{
    char *json = tokenizer_text(index_of(name)), *at = strstr(json, from);
    pl_tokenizer *t;
    if (!at) fail_msg("%s is not in %s", from, name);
    char *copy = pl_alloc(strlen(json) + strlen(to) + 1, 1);
    sprintf(copy, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    assert_int_equal(pl_tokenizer_parse("file.json", copy, strlen(copy), &t, &err), PL_E_DATA);
    assert_null(t);
    assert_says(&err, "file.json");
    assert_says(&err, says);
    pl_free(copy);
    free(json);
}

static void test_refused(void **state)
{
    (void)state;
    static const char *const cases[][4] = {
        {"qwen2", "\"NFC\"", "\"NFKC\"", "NFKC"},
        {"qwen2", "\\\\p{N}|", "\\\\p{N}{1,2}|", "{1,2}"},
        {"qwen2", "\"Isolated\"", "\"Removed\"", "Removed"},
        {"qwen2", "\"invert\":false", "\"invert\":true", "invert"},
        {"qwen2", "\"use_regex\":false", "\"use_regex\":true", "together"},
        {"smollm", "\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space"},
        {"smollm", "\"type\":\"Digits\"", "\"type\":\"Punctuation\"", "Punctuation"},
        {"llama3", "\"Sequence\":{\"id\":\"A\"", "\"Sequence\":{\"id\":\"B\"", "$A"},
        {"llama3", "\"type\":\"TemplateProcessing\"", "\"type\":\"BertProcessing\"", "BertProcessing"},
        {"llama2", "\"prepend\":\"\xe2\x96\x81\"", "\"prepend\":\"x\"", "Prepend of \"x\""},
        {"llama2", "\"content\":\"\xe2\x96\x81\"", "\"content\":\"_\"", "by \"_\""},
        {"llama2", "\"start\":1", "\"start\":2", "Strip"},
        {"llama2", "\"type\":\"Fuse\"", "\"type\":\"CTC\"", "CTC"},
        {"gemma", "\"String\":\" \"},\"behavior\"", "\"String\":\"x\"},\"behavior\"", "at \"x\""},
        {"mistral", "\"prepend_scheme\":\"first\"", "\"prepend_scheme\":\"last\"", "last"},
        {"mistral", "\"replacement\":\"\xe2\x96\x81\"", "\"replacement\":\"_\"", "\"_\""},
        {"gemma", "\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"", "continuing"},
        {"gemma", "\"unk_token\":\"<unk>\"", "\"unk_token\":\"<none>\"", "unk_token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i][0], cases[i][1], cases[i][2], cases[i][3]);
}

/* The place of the byte is told. */
static void test_refused_bytes(void **state)
{
    (void)state;
    static const char *const bad[] = {"abc\xff", "abc\xe2\x96", "abc\xed\xa0\x80x", "abc\xc0\x80"};
    pl_tokenizer *t = tokenizer_of(index_of("qwen2"));
    uint32_t *ids;
    size_t count;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pl_encode(t, bad[i], strlen(bad[i]), &ids, &count, &err), PL_E_DATA);
        assert_says(&err, "byte 3 of the text");
        assert_null(ids);
    }
    pl_tokenizer_destroy(t);
}

/* ---- chats ---- */

static void check_options(const char *name, pl_encode_options o, const char *text, const char *const *tokens)
{
    pl_tokenizer *t = tokenizer_of(index_of(name));
    uint32_t *ids;
    size_t count, n = 0;
    assert_int_equal(pl_encode_with(t, o, text, strlen(text), &ids, &count, &err), PL_OK);
    for (; tokens[n]; n++) {
        size_t bytes = 0;
        const char *token = n < count ? (const char *)pl_tokenizer_token(t, ids[n], &bytes) : "";
        if (bytes != strlen(tokens[n]) || memcmp(token, tokens[n], bytes) != 0)
            fail_msg("%s, \"%s\": token %zu is \"%.*s\", not \"%s\"", name, text, n, (int)bytes, token, tokens[n]);
    }
    assert_int_equal(count, n);
    pl_free(ids);
    pl_tokenizer_destroy(t);
}

static void test_options(void **state)
{
    (void)state;
    const pl_encode_options plain = {.ignores_added = true}, goes_on = {.continues = true};
    /* the text of a user is never a special token, nor any other added one */
    check_options("llama3", plain, "<s>", (const char *const[]){"<", "s", ">", NULL});
    check_options("llama2", plain, "<s>", (const char *const[]){" <", "s", ">", NULL});
    check_options("llama2", (pl_encode_options){0}, "<s>", (const char *const[]){"<s>", NULL});
    /* a blank stands before the beginning, unless the text goes on; and after each token in the text */
    check_options("llama2", goes_on, "<", (const char *const[]){"<", NULL});
    check_options("llama2", goes_on, "<<s><", (const char *const[]){"<", "<s>", " <", NULL});
    check_options("mistral", goes_on, "<", (const char *const[]){"<", NULL});
    check_options("mistral", (pl_encode_options){0}, "<<s><", (const char *const[]){" <", "<s>", "<", NULL});
    check_options("metaspace", goes_on, "<<s><", (const char *const[]){"<", "<s>", " <", NULL});
    check_options("gpt2", goes_on, "<", (const char *const[]){"<", NULL});
    check_options("llama3", (pl_encode_options){.adds_special = true, .continues = true}, "<",
                  (const char *const[]){"<s>", "<", "<|im_end|>", NULL});
}

/* ---- tokenizer_config.json ---- */

static pl_status read_config(pl_tokenizer *t, const char *json)
{
    return pl_tokenizer_read_config(t, "config.json", json, strlen(json), &err);
}

static void test_config(void **state)
{
    (void)state;
    pl_tokenizer *t = tokenizer_of(index_of("llama2")), *other = tokenizer_of(index_of("llama2"));
    uint32_t count, stop;
    const uint64_t hash = pl_tokenizer_hash(t);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_EOS), PL_TOKEN_NONE);
    assert_int_equal(read_config(t,
                                 "{\"x\": [{\"bos_token\": \"a\"}], \"bos_token\": {\"a\": 1, \"content\": \"<s>\"}, "
                                 "\"eos_token\": \"<|im_end|>\", \"unk_token\": \"\\u2581the\", \"pad_token\": null, "
                                 "\"add_bos_token\": true}"),
                     PL_OK);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_BOS), 1);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_EOS), pl_tokenizer_added_id(t, "<|im_end|>"));
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_UNKNOWN), 265);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_PADDING), PL_TOKEN_NONE);
    assert_int_equal(pl_tokenizer_stop_ids(t, &stop, 1), 1);
    assert_int_equal(stop, pl_tokenizer_added_id(t, "<|im_end|>"));
    assert_true(pl_tokenizer_hash(t) == hash);
    pl_tokenizer_template(t, 0, &count);
    assert_int_equal(count, 1);
    assert_int_equal(read_config(other, "{\"add_bos_token\": false, \"bos_token\": \"<s>\", \"add_eos_token\": false}"),
                     PL_OK);
    pl_tokenizer_template(other, 0, &count);
    assert_int_equal(count, 0);
    pl_tokenizer_template(other, 1, &count); /* the file does not say which token is eos */
    assert_int_equal(count, 1);
    assert_true(pl_tokenizer_hash(other) != hash);
    assert_int_equal(read_config(other, "[]"), PL_E_DATA);
    assert_int_equal(read_config(other, "{\"bos_token\": {\"content\": "), PL_E_DATA);
    assert_says(&err, "config.json:1:");
    pl_tokenizer_destroy(t), pl_tokenizer_destroy(other);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_hugging_face),
        cmocka_unit_test(test_broken_characters),
        cmocka_unit_test(test_print_parse_print),
        cmocka_unit_test(test_heap_is_known_before),
        cmocka_unit_test(test_encoder_is_as_large_as_told),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_long_piece_is_whole),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_bytes),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_config),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
