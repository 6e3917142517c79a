/* Tokenizers of GGUF files: ids of hostile texts (tokenizers/gguf_NAME.json), given by an implementation in Python of
 * what llama.cpp does, which was compared with llama.cpp itself; memory; refusals; keys left out. */
#include "unit/data/scratch.h"

#include "data/text/encoder.h"
#include "support/gguf_json.h"
#include "support/program.h"

static const char *const names[] = {"llama", "gemma", "default", "qwen2", "llama_bpe", "smollm"};
enum { NAMES = sizeof names / sizeof *names };

static pl_error err;
static json_t *files[NAMES];

static int load(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        char path[PL_FILE_PATH_MAX];
        snprintf(path, sizeof path, "%s/tokenizers/gguf_%s.json", PL_TESTS_DATA, names[i]);
        files[i] = json_load_file(path, JSON_ALLOW_NUL, NULL);
        if (!files[i]) return -1;
    }
    return 0;
}

static int unload(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) json_decref(files[i]);
    return 0;
}

static pl_status create(json_t *keys, pl_tokenizer **t)
{
    gguf_json g = gguf_json_of(keys);
    pl_status status = pl_tokenizer_create_gguf(&g.keys, t, &err);
    gguf_json_free(&g);
    return status;
}

static pl_tokenizer *tokenizer_of(int i)
{
    pl_tokenizer *t;
    if (create(json_object_get(files[i], "gguf"), &t) != PL_OK) fail_msg("%s: %s", names[i], err.text);
    return t;
}

static void check_ids(const pl_tokenizer *t, int i, const json_t *item, bool special)
{
    const char *text = json_string_value(json_array_get(item, 0));
    const json_t *wanted = json_array_get(item, special ? 2 : 1);
    uint32_t *ids;
    size_t count;
    assert_int_equal(pl_encode_with(t, (pl_encode_options){.adds_special = special}, text,
                                    json_string_length(json_array_get(item, 0)), &ids, &count, &err),
                     PL_OK);
    for (size_t k = 0; k < count; k++)
        if (ids[k] != json_integer_value(json_array_get(wanted, k)))
            fail_msg("%s: id %zu of \"%s\" is %u", names[i], k, text, ids[k]);
    if (count != json_array_size(wanted)) fail_msg("%s: %zu ids of \"%s\"", names[i], count, text);
    pl_free(ids);
}

static void test_as_llama_cpp(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        pl_tokenizer *t = tokenizer_of(i);
        const json_t *item;
        size_t k;
        json_array_foreach(json_object_get(files[i], "cases"), k, item)
        {
            check_ids(t, i, item, false);
            check_ids(t, i, item, true);
        }
        assert_true(k > 40);
        pl_tokenizer_destroy(t);
    }
}

/* What a text of known characters was comes back, but for the blank that was put before it. */
static void test_texts_come_back(void **state)
{
    (void)state;
    static const char text[] = "the other  thing,\nis it? \xc3\xbc 12345 <0x41> \xe6\x97\xa5";
    for (int i = 0; i < NAMES; i++) {
        pl_tokenizer *t = tokenizer_of(i);
        pl_decoder d = {.is_text = 1, .skips_special = 1};
        pl_str out = {0};
        uint8_t *part = pl_alloc(pl_decoder_room(t), 1);
        uint32_t *ids;
        size_t count;
        assert_int_equal(pl_encode(t, text, sizeof text - 1, &ids, &count, &err), PL_OK);
        for (size_t k = 0; k < count; k++) pl_str_append_bytes(&out, part, pl_decoder_push(&d, t, ids[k], part));
        pl_str_append_bytes(&out, part, pl_decoder_finish(&d, part));
        assert_string_equal(pl_str_text(&out), text);
        pl_str_deinit(&out);
        pl_free(part);
        pl_free(ids);
        pl_tokenizer_destroy(t);
    }
}

static void test_heap_is_known_before(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        gguf_json g = gguf_json_of(json_object_get(files[i], "gguf"));
        pl_alloc_meter meter = {0};
        pl_tokenizer *t;
        uint64_t bound;
        assert_int_equal(pl_tokenizer_gguf_bytes(&g.keys, &bound, &err), PL_OK);
        pl_alloc_meter *before = pl_alloc_set_meter(&meter);
        assert_int_equal(pl_tokenizer_create_gguf(&g.keys, &t, &err), PL_OK);
        pl_alloc_set_meter(before);
        assert_true(meter.peak_bytes <= bound && bound < 8 * meter.peak_bytes);
        pl_tokenizer_destroy(t);
        gguf_json_free(&g);
    }
}

static void test_memory_refused(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        const uint64_t live = pl_alloc_live_blocks();
        pl_status status = PL_E_NOMEM;
        for (uint64_t n = 1; status != PL_OK; n++) {
            pl_tokenizer *t;
            pl_alloc_fail_at(n, n % 2);
            status = create(json_object_get(files[i], "gguf"), &t);
            pl_alloc_fail_at(0, 0);
            if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
            pl_tokenizer_destroy(t);
            assert_true(pl_alloc_live_blocks() == live);
        }
    }
}

/* The keys of a file with one of them replaced, or left out where it is NULL. */
static void check_refused(int i, const char *key, json_t *value, const char *says)
{
    json_t *keys = json_deep_copy(json_object_get(files[i], "gguf"));
    pl_tokenizer *t;
    if (value)
        json_object_set_new(keys, key, value);
    else
        json_object_del(keys, key);
    assert_int_equal(create(keys, &t), PL_E_DATA);
    assert_null(t);
    assert_says(&err, "file.gguf");
    assert_says(&err, says);
    json_decref(keys);
}

static void test_refused(void **state)
{
    (void)state;
    enum { LLAMA, GEMMA, DEFAULT };
    char long_text[4000];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0;
    check_refused(LLAMA, "model", json_string("t5"), "\"t5\"");
    check_refused(LLAMA, "model", NULL, "tokenizer.ggml.model");
    check_refused(LLAMA, "scores", NULL, "tokenizer.ggml.scores");
    check_refused(LLAMA, "tokens", json_array(), "0 tokens");
    check_refused(LLAMA, "tokens", json_pack("[sss]", "<unk>", "<s>", "a"), "U+2581");
    check_refused(LLAMA, "tokens", json_pack("[ss]", "<unk>", "<s>"), "not below the number of tokens, 2");
    check_refused(LLAMA, "tokens", json_pack("[ssss]", "<unk>", "<s>", "a", long_text), "token 3 has 3999 bytes");
    check_refused(LLAMA, "eos_token_id", json_integer(1 << 20), "1048576");
    check_refused(LLAMA, "bos_token_id", json_integer(-7), "-7");
    check_refused(DEFAULT, "pre", json_string("tekken"), "\"tekken\"");
    check_refused(DEFAULT, "merges", NULL, "tokenizer.ggml.merges");
    check_refused(DEFAULT, "merges", json_pack("[s]", "ab"), "merge 0");
    check_refused(DEFAULT, "merges", json_pack("[ss]", "a b", ""), "merge 1");
}

static void check_template(json_t *keys, const uint32_t *before, uint32_t before_count, uint32_t after_count)
{
    pl_tokenizer *t;
    uint32_t count;
    assert_int_equal(create(keys, &t), PL_OK);
    const uint32_t *ids = pl_tokenizer_template(t, 0, &count);
    assert_int_equal(count, before_count);
    for (uint32_t i = 0; i < count; i++) assert_int_equal(ids[i], before[i]);
    pl_tokenizer_template(t, 1, &count);
    assert_int_equal(count, after_count);
    pl_tokenizer_destroy(t);
    json_decref(keys);
}

/* llama has a bos, an eos and an unknown token even where nothing says so; gpt2 has what is said. */
static void test_defaults(void **state)
{
    (void)state;
    enum { LLAMA, GEMMA, DEFAULT, QWEN2, LLAMA_BPE };
    json_t *keys = json_deep_copy(json_object_get(files[LLAMA], "gguf"));
    json_object_del(keys, "bos_token_id"), json_object_del(keys, "eos_token_id");
    json_object_del(keys, "unknown_token_id");
    pl_tokenizer *t;
    assert_int_equal(create(keys, &t), PL_OK);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_BOS), 1);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_EOS), 2);
    assert_int_equal(pl_tokenizer_special_id(t, PL_SPECIAL_PADDING), PL_TOKEN_NONE);
    assert_int_equal(pl_tokenizer_unknown_id(t), 0);
    pl_tokenizer_destroy(t);
    check_template(keys, (const uint32_t[]){1}, 1, 0);
    keys = json_deep_copy(json_object_get(files[LLAMA], "gguf"));
    json_object_set_new(keys, "eot_token_id", json_integer(5));
    uint32_t stop[4];
    assert_int_equal(create(keys, &t), PL_OK);
    assert_int_equal(pl_tokenizer_stop_ids(t, stop, 4), 3); /* </s> is eos */
    assert_int_equal(stop[0], 2), assert_int_equal(stop[1], 5);
    assert_int_equal(stop[2], pl_tokenizer_added_id(t, "<|im_end|>"));
    pl_tokenizer_destroy(t);
    json_decref(keys);
    check_template(json_deep_copy(json_object_get(files[LLAMA_BPE], "gguf")), (const uint32_t[]){0}, 1, 0);
    check_template(json_deep_copy(json_object_get(files[DEFAULT], "gguf")), NULL, 0, 0);
    check_template(json_deep_copy(json_object_get(files[QWEN2], "gguf")), NULL, 0, 1);
}

/* tokenizer.json has no words for the rules of these files. */
static void test_not_written(void **state)
{
    (void)state;
    pl_tokenizer *t = tokenizer_of(0);
    assert_int_equal(pl_tokenizer_save(t, "/nowhere/t.json", &err), PL_E_USAGE);
    assert_says(&err, "GGUF");
    pl_tokenizer_destroy(t);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_llama_cpp),
        cmocka_unit_test(test_texts_come_back),
        cmocka_unit_test(test_heap_is_known_before),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_not_written),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
