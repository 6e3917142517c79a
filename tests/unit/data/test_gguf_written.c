/* Tokenizers written as GGUF files have them, and those of GGUF files as tokenizer.json: ids of hostile texts stay.
 * (The ids of the sources are held against other programs in test_gguf_tokenizers.c, test_pretrained_tokenizers.c.) */
#include "unit/data/scratch.h"

#include "data/text/encoder.h"
#include "support/gguf_json.h"
#include "support/program.h"

static pl_error err;

static json_t *load(const char *name)
{
    char path[PL_FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/tokenizers/%s.json", PL_TESTS_DATA, name);
    json_t *file = json_load_file(path, JSON_ALLOW_NUL, NULL);
    if (!file) fail_msg("%s cannot be read", path);
    return file;
}

static pl_tokenizer *parse(const char *json)
{
    pl_tokenizer *t;
    if (pl_tokenizer_parse("file.json", json, strlen(json), &t, &err) != PL_OK) fail_msg("%s", err.text);
    return t;
}

static pl_tokenizer *create(json_t *keys)
{
    pl_tokenizer *t = NULL;
    gguf_json g = gguf_json_of(keys);
    if (pl_tokenizer_create_gguf(&g.keys, &t, &err) != PL_OK) fail_msg("%s", err.text);
    gguf_json_free(&g);
    return t;
}

static void put_id(json_t *keys, const char *key, uint32_t id)
{
    if (id != PL_TOKEN_NONE) json_object_set_new(keys, key, json_integer(id));
}

/* The keys of a GGUF file, as a conversion writes them. */
static json_t *keys_of(const pl_tokenizer *t, const pl_gguf_tokenizer_words *w, uint32_t vocab)
{
    json_t *keys = json_pack("{s:s, s:s, s:b, s:b, s:b}", "model", w->model, "pre", w->pre, "add_bos_token", w->add_bos,
                             "add_eos_token", w->add_eos, "add_space_prefix", w->add_space_prefix);
    json_t *tokens = json_array(), *types = json_array(), *merges = json_array(), *scores = json_array();
    float *score = malloc(vocab * sizeof *score);
    pl_str text = {0};
    pl_tokenizer_gguf_scores(t, score, vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        json_array_append_new(types, json_integer(pl_tokenizer_gguf_token(t, i, &text)));
        json_array_append_new(tokens, json_stringn_nocheck(pl_str_text(&text), text.bytes));
        json_array_append_new(scores, json_real((double)score[i]));
    }
    for (uint32_t i = 0; i < pl_tokenizer_gguf_merges(t); i++) {
        pl_tokenizer_gguf_merge(t, i, &text);
        json_array_append_new(merges, json_stringn_nocheck(pl_str_text(&text), text.bytes));
    }
    json_object_set_new(keys, "tokens", tokens);
    json_object_set_new(keys, "token_type", types);
    json_object_set_new(keys, w->has_scores ? "scores" : "merges", json_incref(w->has_scores ? scores : merges));
    json_decref(scores);
    json_decref(merges);
    put_id(keys, "bos_token_id", w->bos);
    put_id(keys, "eos_token_id", w->eos);
    put_id(keys, "unknown_token_id", pl_tokenizer_special_id(t, PL_SPECIAL_UNKNOWN));
    pl_str_deinit(&text);
    free(score);
    return keys;
}

static bool same_ids(const pl_tokenizer *a, const pl_tokenizer *b, const json_t *text)
{
    uint32_t *ids[2];
    size_t count[2];
    const pl_tokenizer *const both[] = {a, b};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pl_encode_with(both[i], (pl_encode_options){.adds_special = true}, json_string_value(text),
                                        json_string_length(text), &ids[i], &count[i], &err),
                         PL_OK);
    const bool same = count[0] == count[1] && (count[0] == 0 || memcmp(ids[0], ids[1], count[0] * sizeof **ids) == 0);
    pl_free(ids[0]);
    pl_free(ids[1]);
    return same;
}

/* Added tokens take no blanks with them, and none is a text that the model has, too: both forms can say the rest. */
static void make_plain(json_t *file)
{
    json_t *added = json_object_get(json_object_get(file, "tokenizer"), "added_tokens"), *item;
    json_t *tokens = json_object_get(json_object_get(file, "gguf"), "tokens");
    size_t i;
    json_array_foreach(added, i, item)
    {
        json_object_set_new(item, "lstrip", json_false());
        json_object_set_new(item, "rstrip", json_false());
    }
    json_array_foreach(tokens, i, item) if (strcmp(json_string_value(item), "\n\n") == 0)
        json_array_set_new(tokens, i, json_string("<paragraph>"));
}

/* How many texts of the cases have other ids. */
static size_t differences(const pl_tokenizer *a, const pl_tokenizer *b, const json_t *file)
{
    const json_t *item;
    size_t i, count = 0;
    json_array_foreach(json_object_get(file, "cases"), i, item) count += !same_ids(a, b, json_array_get(item, 0));
    assert_true(i > 40);
    return count;
}

static void check_json_to_gguf(const char *name, bool is_exact)
{
    json_t *file = load(name);
    if (is_exact) make_plain(file);
    char *json = json_dumps(json_object_get(file, "tokenizer"), JSON_COMPACT);
    pl_tokenizer *t = parse(json);
    pl_gguf_tokenizer_words w;
    if (pl_tokenizer_name_gguf(t, name, &w, &err) != PL_OK) fail_msg("%s", err.text);
    json_t *keys = keys_of(t, &w, pl_tokenizer_vocab_size(t) + 3);
    pl_tokenizer *again = create(keys);
    assert_int_equal(pl_tokenizer_vocab_size(again), pl_tokenizer_vocab_size(t) + 3);
    const size_t other = differences(t, again, file);
    if (is_exact && (other || w.note[0])) fail_msg("%s: %zu texts have other ids; \"%s\"", name, other, w.note);
    if (!is_exact && !w.note[0]) fail_msg("%s: %zu texts have other ids, and no note says so", name, other);
    pl_tokenizer_destroy(again);
    pl_tokenizer_destroy(t);
    json_decref(keys);
    json_decref(file);
    free(json);
}

static void test_json_to_gguf(void **state)
{
    (void)state;
    check_json_to_gguf("smollm", true);
    check_json_to_gguf("llama3", true);
    check_json_to_gguf("qwen2", true);
    check_json_to_gguf("llama2", false);
    check_json_to_gguf("mistral", false);
    check_json_to_gguf("gemma", false);
}

static void test_no_name(void **state)
{
    static const char *const names[] = {"digits", "gpt2"};
    pl_gguf_tokenizer_words w;
    (void)state;
    for (int i = 0; i < 2; i++) {
        json_t *file = load(names[i]);
        char *json = json_dumps(json_object_get(file, "tokenizer"), JSON_COMPACT);
        pl_tokenizer *t = parse(json);
        assert_int_equal(pl_tokenizer_name_gguf(t, names[i], &w, &err), PL_E_UNSUPPORTED);
        pl_tokenizer_destroy(t);
        json_decref(file);
        free(json);
    }
}

/* Merges that were made of scores become scores again without loss. */
static void check_back(const pl_tokenizer *again, const pl_tokenizer *t, const json_t *file, const char *name)
{
    pl_gguf_tokenizer_words w;
    if (pl_tokenizer_name_gguf(again, name, &w, &err) != PL_OK) fail_msg("%s", err.text);
    json_t *keys = keys_of(again, &w, pl_tokenizer_vocab_size(again));
    pl_tokenizer *back = create(keys);
    const size_t other = differences(t, back, file);
    if (other) fail_msg("%s: %zu texts have other ids once more a GGUF file", name, other);
    pl_tokenizer_destroy(back);
    json_decref(keys);
}

static void check_gguf_to_json(const char *name, bool is_exact)
{
    json_t *file = load(name);
    make_plain(file);
    pl_tokenizer *t = create(json_object_get(file, "gguf"));
    pl_str text = {0};
    assert_int_equal(pl_tokenizer_merge_by_scores(t, &err), PL_OK);
    if (pl_tokenizer_check_json(t, name, &err) != PL_OK) fail_msg("%s", err.text);
    pl_tokenizer_print(t, &text);
    pl_tokenizer *again = parse(pl_str_text(&text));
    const size_t other = differences(t, again, file);
    if (is_exact && other) fail_msg("%s: %zu texts have other ids", name, other);
    if (other > 1) fail_msg("%s: %zu texts have other ids", name, other);
    check_back(again, t, file, name);
    pl_str_deinit(&text);
    pl_tokenizer_destroy(again);
    pl_tokenizer_destroy(t);
    json_decref(file);
}

static void test_gguf_to_json(void **state)
{
    (void)state;
    check_gguf_to_json("gguf_smollm", true);
    check_gguf_to_json("gguf_llama_bpe", true);
    check_gguf_to_json("gguf_qwen2", true);
    check_gguf_to_json("gguf_llama", false);
    check_gguf_to_json("gguf_gemma", false);
}

/* Written again, it is the same file. */
static void test_gguf_to_gguf(void **state)
{
    static const char *const names[] = {"gguf_smollm",  "gguf_llama_bpe", "gguf_qwen2",
                                        "gguf_default", "gguf_llama",     "gguf_gemma"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *file = load(names[i]);
        pl_tokenizer *t = create(json_object_get(file, "gguf"));
        pl_gguf_tokenizer_words w;
        if (pl_tokenizer_name_gguf(t, names[i], &w, &err) != PL_OK) fail_msg("%s", err.text);
        json_t *keys = keys_of(t, &w, pl_tokenizer_vocab_size(t));
        pl_tokenizer *again = create(keys);
        assert_int_equal(differences(t, again, file), 0);
        pl_tokenizer_destroy(again);
        pl_tokenizer_destroy(t);
        json_decref(keys);
        json_decref(file);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_to_gguf),
        cmocka_unit_test(test_no_name),
        cmocka_unit_test(test_gguf_to_json),
        cmocka_unit_test(test_gguf_to_gguf),
    };
    (void)argc, (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
