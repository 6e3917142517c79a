/* tokenizer.json: one written by Hugging Face's tokenizers 0.23 (hf_golden.json, with the ids that library gives),
 * writing and reading back, what is refused and how, and every refusal of memory. */
#include "unit/data/scratch.h"

#include "data/text/bpe_train.h"
#include "data/text/encoder.h"
#include "support/program.h"

static char *golden;
static size_t golden_bytes;
static pl_error err;

static int load_golden(void **state)
{
    char path[PL_FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/hf_golden.json", PL_TESTS_DATA);
    return scratch_make(state) || pl_file_read_all(path, 1 << 20, &golden, &golden_bytes, &err) != PL_OK;
}

static int free_golden(void **state)
{
    pl_free(golden);
    return scratch_remove(state);
}

typedef struct example {
    const char *text;
    int32_t ids[48]; /* ended by −1 */
} example;

static const example plain[] = {
    {"", {-1}},
    {"the cat sat", {323, 280, 304, -1}},
    {"banana's  bandana\n", {267, 279, 286, 221, 315, 199, -1}},
    {"  x   \n\n y", {221, 221, 88, 324, 298, 221, 89, -1}},
    {"<|endoftext|>the<|endoftext|>", {0, 323, 0, -1}},
    {"hi<user>  you <user", {72, 73, 325, 221, 221, 89, 79, 85, 221, 28, 85, 83, 69, 82, -1}},
    {"日本語 über 🙂🙂🙂", {270, 282, 297, 322, 321, 283, -1}},
    {"don't can't I'LL we'll they're 12345 a1b2", {290, 266, 307, 266, 221, 41, 7,   44, 44,  221, 87, 69, 7,  76,
                                                   76,  262, 89,  7,   82,  69, 316, 21, 221, 65,  17, 66, 18, -1}},
    {"\xc2\xa0\xe3\x80\x80x\xe2\x80\xa8\xe2\x80\xa9 .",
     {127, 255, 160, 223, 223, 88, 159, 223, 102, 159, 223, 103, 221, 14, -1}},
    {"a\xcc\x80"
     "e\xcc\x81 ½ Ⅷ ٣",
     {65, 137, 223, 69, 137, 224, 221, 127, 122, 221, 159, 228, 101, 221, 150, 97, -1}},
    {"....!!! ??\r\n\r\n\tend   ",
     {14, 14, 14, 14, 1, 1, 1, 221, 31, 31, 202, 199, 202, 199, 198, 69, 78, 68, 324, -1}},
};

/* add_prefix_space true */
static const example prefixed[] = {
    {"", {-1}},
    {"the cat sat", {262, 280, 304, -1}},
    {"  x   \n\n y", {221, 221, 88, 324, 298, 221, 89, -1}},
    {"<|endoftext|>the<|endoftext|>", {0, 262, 0, -1}},
    {"hi<user>  you <user", {272, 73, 325, 221, 221, 89, 79, 85, 221, 28, 85, 83, 69, 82, -1}},
    {"\xc2\xa0\xe3\x80\x80x\xe2\x80\xa8\xe2\x80\xa9 .",
     {221, 127, 255, 160, 223, 223, 88, 159, 223, 102, 159, 223, 103, 221, 14, -1}},
};

static void check_example(const pl_tokenizer *t, const example *e)
{
    uint32_t *ids;
    size_t count, wanted = 0;
    while (e->ids[wanted] >= 0) wanted++;
    assert_int_equal(pl_encode(t, e->text, strlen(e->text), &ids, &count, &err), PL_OK);
    assert_int_equal(count, wanted);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], e->ids[i]);
    pl_free(ids);
}

static pl_tokenizer *parse(const char *json, size_t bytes)
{
    pl_tokenizer *t;
    if (pl_tokenizer_parse("golden", json, bytes, &t, &err) != PL_OK) fail_msg("%s", err.text);
    return t;
}

static void test_golden_ids(void **state)
{
    (void)state;
    pl_tokenizer *t = parse(golden, golden_bytes);
    assert_int_equal(pl_tokenizer_vocab_size(t), 326);
    assert_int_equal(pl_tokenizer_added_id(t, PL_END_OF_TEXT), 0);
    assert_int_equal(pl_tokenizer_added_id(t, "<user>"), 325);
    assert_int_equal(pl_tokenizer_added_id(t, "the"), PL_TOKEN_NONE);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) check_example(t, &plain[i]);
    pl_tokenizer_destroy(t);
}

/* The golden file with one text in it replaced; to be freed. */
static char *altered(const char *from, const char *to, size_t *bytes)
{
    char *at = strstr(golden, from);
    if (!at) fail_msg("%s is not in the golden file", from);
    char *copy = pl_alloc(golden_bytes + strlen(to) + 1, 1);
    *bytes = (size_t)sprintf(copy, "%.*s%s%s", (int)(at - golden), golden, to, at + strlen(from));
    return copy;
}

static void test_prefix_space(void **state)
{
    (void)state;
    size_t bytes;
    char *json = altered("\"add_prefix_space\":false", "\"add_prefix_space\":true", &bytes);
    pl_tokenizer *t = parse(json, bytes);
    for (size_t i = 0; i < sizeof prefixed / sizeof *prefixed; i++) check_example(t, &prefixed[i]);
    pl_tokenizer_destroy(t);
    pl_free(json);
}

static void test_print_parse_print(void **state)
{
    (void)state;
    pl_tokenizer *t = parse(golden, golden_bytes), *back;
    pl_str first = {0}, second = {0};
    pl_tokenizer_print(t, &first);
    back = parse(first.data, first.bytes);
    pl_tokenizer_print(back, &second);
    assert_string_equal(first.data, second.data);
    assert_int_equal(pl_tokenizer_hash(t), pl_tokenizer_hash(back));
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) check_example(back, &plain[i]);
    pl_str_deinit(&first), pl_str_deinit(&second);
    pl_tokenizer_destroy(t), pl_tokenizer_destroy(back);
}

static void test_save_and_load(void **state)
{
    (void)state;
    pl_tokenizer *t = parse(golden, golden_bytes), *back;
    assert_int_equal(pl_tokenizer_save(t, scratch_path("t.json"), &err), PL_OK);
    assert_int_equal(pl_tokenizer_load(scratch_path("t.json"), &back, &err), PL_OK);
    assert_int_equal(pl_tokenizer_hash(t), pl_tokenizer_hash(back));
    pl_tokenizer_destroy(back);
    assert_true(pl_tokenizer_load_bytes(scratch_path("t.json")) < 60000000);
    assert_int_equal(pl_tokenizer_load_bytes(scratch_path("none.json")), 0);
    assert_int_equal(pl_tokenizer_load(scratch_path("none.json"), &back, &err), PL_E_DATA);
    assert_says(&err, "none.json");
    pl_tokenizer_destroy(t);
}

static void check_refused(const char *json, size_t bytes, const char *says)
{
    pl_tokenizer *t;
    assert_int_equal(pl_tokenizer_parse("file.json", json, bytes, &t, &err), PL_E_DATA);
    assert_null(t);
    assert_says(&err, "file.json");
    assert_says(&err, says);
}

static void test_refused_alterations(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFKC\"}", "normalizer NFKC"},
        {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"", "\"pre_tokenizer\":{\"type\":\"Metaspace\"",
         "pre_tokenizer Metaspace"},
        {"\"use_regex\":true", "\"use_regex\":false", "use_regex"},
        {"\"use_regex\":true", "\"use_regex\":1", "use_regex"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}", "TemplateProcessing"},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":5}", "truncation"},
        {"\"lstrip\":false", "\"lstrip\":2", "lstrip"},
        {"\"single_word\":false", "\"single_word\":true", "single_word"},
        {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "Unigram"},
        {"\"dropout\":null", "\"dropout\":0.1", "dropout"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", "byte_fallback"},
        {"\"unk_token\":null", "\"unk_token\":\"<nope>\"", "unk_token"},
        {"\"unk_token\":null", "\"unk_token\":7", "unk_token"},
        {"\"!\":1,", "\"!\":-1,", "below 1048576"},
        {"\"!\":1,", "\"!\":1.5,", "below 1048576"},
        {"\"!\":1,", "\"!\":99999999,", "below 1048576"},
        {"\"!\":1,", "\"!\":2,", "belongs both"},
        {"\"!\":1,", "\"日\":1,", "U+65E5"},
        {"\"!\":1,", "\"\":1,", "empty"},
        {"\"!\":1,", "\"#\":1,", "twice"},
        {"\"content\":\"<user>\"", "\"content\":\"\"", "content"},
        {"\"content\":\"<user>\"", "\"content\":5", "content"},
        {"\"id\":325", "\"id\":-1", "below 1048576"},
        {"\"content\":\"<user>\"", "\"content\":\"<|endoftext|>\"", "two added tokens have the id 0"},
        {"[\"t\",\"h\"]", "[\"h\"]", "merge"},
        {"[\"t\",\"h\"]", "\"he\"", "merge"},
        {"[\"t\",\"h\"]", "\"h e x\"", "merge"},
        {"[\"t\",\"h\"]", "[\"q\",\"z\"]", "makes a token"},
        {"[\"t\",\"h\"]", "[\"qz\",\"z\"]", "\"qz\" is not in"},
        {"\"merges\":", "\"murges\":", "merges"},
        {"\"added_tokens\":[", "\"added_tokens\":5,\"x\":[", "added_tokens"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes;
        char *json = altered(cases[i][0], cases[i][1], &bytes);
        check_refused(json, bytes, cases[i][2]);
        pl_free(json);
    }
}

static void test_refused_texts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "not valid JSON"},
        {"{", "file.json:1:"},
        {"[]", "\"model\""},
        {"{}", "\"model\""},
        {"{\"model\":[]}", "\"model\""},
        {"{\"model\":{\"type\":\"BPE\"}}", "vocab"},
        {"{\"model\":{\"vocab\":{},\"merges\":[]}}", "ByteLevel"},
        {"{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"model\":{\"vocab\":{},\"merges\":[]}}", "empty"},
        {"{\"model\":{\"type\":\"PlimsollChars\"}}", "code_points"},
        {"{\"model\":{\"type\":\"PlimsollChars\",\"code_points\":[5,5]}}", "code_points[1]"},
        {"{\"model\":{\"type\":\"PlimsollChars\",\"code_points\":[55296]}}", "code_points[0]"},
        {"\xff", "not valid JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(cases[i][0], strlen(cases[i][0]), cases[i][1]);
}

/* A small file that would make a large tree, and one nested beyond reason. */
static void test_bounded_tree(void **state)
{
    (void)state;
    const size_t n = 3 << 20;
    char *json = pl_alloc(n + 4, 1);
    memcpy(json, "{\"x\":[", 6);
    for (size_t i = 6; i < n; i++) json[i] = "[],"[i % 3];
    memcpy(json + n, "[]]}", 4);
    check_refused(json, n + 4, "values");
    memset(json, '[', 100000);
    check_refused(json, 100000, "not valid JSON");
    pl_free(json);
}

static void test_every_truncation(void **state)
{
    (void)state;
    for (size_t n = 0; n < golden_bytes; n += n < 1000 ? 1 : 37) {
        pl_tokenizer *t;
        assert_int_equal(pl_tokenizer_parse("file.json", golden, n, &t, &err), PL_E_DATA);
        assert_null(t);
    }
}

static void test_memory_refused(void **state)
{
    (void)state;
    uint64_t live = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    for (uint64_t n = 1; status != PL_OK; n++) {
        pl_tokenizer *t;
        uint32_t *ids = NULL;
        size_t count;
        pl_alloc_fail_at(n, n % 2);
        status = pl_tokenizer_parse("golden", golden, golden_bytes, &t, &err);
        if (status == PL_OK) status = pl_encode(t, "the cat", 7, &ids, &count, &err);
        pl_alloc_fail_at(0, 0);
        if (status != PL_OK) assert_int_equal(status, PL_E_NOMEM);
        pl_free(ids);
        pl_tokenizer_destroy(t);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
}

static void test_legacy_merges_and_ignore_merges(void **state)
{
    (void)state;
    const char *json =
        "{\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"bc\":5},\"merges\":[\"b c\",\"a b\"]%s}}";
    char text[512];
    for (int ignore = 0; ignore < 2; ignore++) {
        int n = snprintf(text, sizeof text, json, ignore ? ",\"ignore_merges\":true" : "");
        pl_tokenizer *t = parse(text, (size_t)n);
        check_example(t, ignore ? &(example){"abc", {4, -1}} : &(example){"abc", {0, 5, -1}});
        check_example(t, &(example){"abcbc", {0, 5, 5, -1}});
        check_example(t, &(example){"a-b?c", {0, 1, 2, -1}}); /* bytes that the vocabulary lacks are left out */
        check_example(t, &(example){"acab", {0, 2, 3, -1}});
        pl_tokenizer_destroy(t);
    }
}

static void test_unknown_token(void **state)
{
    (void)state;
    const char *json = "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"model\":{\"unk_"
                       "token\":\"u\",\"fuse_unk\":%s,"
                       "\"vocab\":{\"a\":0,\"u\":1,\"b\":2},\"merges\":[]}}";
    char text[512];
    pl_tokenizer *t = parse(text, (size_t)snprintf(text, sizeof text, json, "false"));
    check_example(t, &(example){"axyzb", {0, 1, 1, 1, 2, -1}});
    pl_tokenizer_destroy(t);
    t = parse(text, (size_t)snprintf(text, sizeof text, json, "true"));
    check_example(t, &(example){"axyzb", {0, 1, 2, -1}});
    pl_tokenizer_destroy(t);
}

static const char two_kinds_of_added[] =
    "{\"added_tokens\":[{\"id\":5,\"content\":\"ab\",\"normalized\":true},"
    "{\"id\":6,\"content\":\"bcd\",\"normalized\":false,\"special\":true},"
    "{\"id\":7,\"content\":\"abc\",\"normalized\":true},{\"id\":8,\"content\":\"qqabcq\",\"normalized\":true}],"
    "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
    "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"d\":3,\"q\":4},\"merges\":[]}}";

/* The file's ids of added tokens mean nothing to that library: the vocabulary's count, then those behind it. Ids:
 * tokenizers 0.23. */
static void test_ids_of_added_tokens(void **state)
{
    (void)state;
    static const struct {
        int u_in_vocab;
        const char *added; /* each: id, content */
        int32_t ids[8];    /* of "<u>a<v><w>" */
    } all[] = {
        {3, "{\"id\":3,\"content\":\"<u>\"},{\"id\":4,\"content\":\"<v>\"}", {3, 0, 4, -1}},
        {3, "{\"id\":1,\"content\":\"<u>\"},{\"id\":4,\"content\":\"<v>\"}", {3, 0, 4, -1}},
        {3, "{\"id\":7,\"content\":\"<u>\"},{\"id\":9,\"content\":\"<v>\"}", {3, 0, 4, -1}},
        {3, "{\"id\":3,\"content\":\"<u>\"},{\"id\":1,\"content\":\"<v>\"}", {3, 0, 4, -1}},
        {3, "{\"id\":9,\"content\":\"<v>\"},{\"id\":5,\"content\":\"<w>\"}", {0, 4, 5, -1}},
        {3, "{\"id\":5,\"content\":\"<v>\"},{\"id\":5,\"content\":\"<w>\"}", {0, 4, 5, -1}},
        {30, "{\"id\":9,\"content\":\"<u>\"},{\"id\":9,\"content\":\"<v>\"}", {30, 0, 4, -1}},
    };
    const char *json = "{\"added_tokens\":[%s],\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                       "\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"<u>\":%d},\"merges\":[]}}";
    char text[512];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        example e = {"<u>a<v><w>", {0}};
        memcpy(e.ids, all[i].ids, sizeof all[i].ids);
        pl_tokenizer *t = parse(text, (size_t)snprintf(text, sizeof text, json, all[i].added, all[i].u_in_vocab));
        check_example(t, &e);
        pl_tokenizer_destroy(t);
    }
    int n = snprintf(text, sizeof text, json, "{\"id\":9,\"content\":\"<v>\"}", 4); /* both would be 4 there */
    check_refused(text, (size_t)n, "belongs both");
}

typedef struct expected {
    const int32_t *ids;
} expected;

static pl_status compare(void *context, const uint32_t *ids, size_t count, pl_error *e)
{
    expected *x = context;
    (void)e;
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], *x->ids++);
    return PL_OK;
}

/* Tokens that are not looked for in the normalized text go first, wherever they begin. Ids: tokenizers 0.23. */
static void test_added_tokens_of_two_kinds(void **state)
{
    static const example all[] = {
        {"abcd", {0, 6, -1}},
        {"abc", {7, -1}},
        {"qqabcqd", {8, 3, -1}},
        {"aabab", {0, 5, 5, -1}},
        {"qqabcdq", {4, 4, 0, 6, 4, -1}},
        {"abcbcd", {7, 6, -1}},
        {"qqabcq", {8, -1}},
        {"ababcdabc", {5, 0, 6, 7, -1}},
    };
    pl_tokenizer *t = parse(two_kinds_of_added, sizeof two_kinds_of_added - 1);
    pl_encoder *e;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        expected x = {all[i].ids};
        check_example(t, &all[i]);
        assert_int_equal(pl_encoder_create(t, compare, &x, &e, &err), PL_OK);
        for (const char *c = all[i].text; *c; c++) assert_int_equal(pl_encoder_feed(e, c, 1, &err), PL_OK);
        assert_int_equal(pl_encoder_finish(e, &err), PL_OK);
        assert_int_equal(*x.ids, -1);
        pl_encoder_destroy(e);
    }
    pl_tokenizer_destroy(t);
}

static void test_simple_kinds(void **state)
{
    (void)state;
    pl_tokenizer *bytes, *chars, *back;
    static const uint32_t points[] = {'\n', 'a', 0xe9, 0x1f642};
    pl_str out = {0};
    assert_int_equal(pl_tokenizer_create_bytes(&bytes, &err), PL_OK);
    assert_int_equal(pl_tokenizer_create_chars(points, 4, &chars, &err), PL_OK);
    check_example(bytes, &(example){"a\xff\xc3\xa9", {97, 255, 195, 169, -1}});
    check_example(chars, &(example){"a\xff\xc3\xa9🙂\nb\xf0\x9f", {2, 0, 3, 4, 1, 0, 0, 0, -1}});
    for (int i = 0; i < 2; i++) {
        pl_str_clear(&out);
        pl_tokenizer_print(i ? chars : bytes, &out);
        back = parse(out.data, out.bytes);
        assert_int_equal(pl_tokenizer_hash(back), pl_tokenizer_hash(i ? chars : bytes));
        assert_int_equal(pl_tokenizer_kind_of(back), i ? PL_TOKENIZER_CHARS : PL_TOKENIZER_BYTES);
        pl_tokenizer_destroy(back);
    }
    pl_str_deinit(&out);
    pl_tokenizer_destroy(bytes), pl_tokenizer_destroy(chars);
}

/* Unfinished characters are held back, hopeless bytes are let out. */
static void test_streaming_decode(void **state)
{
    (void)state;
    pl_tokenizer *t;
    pl_decoder d = {0};
    uint8_t out[16];
    assert_int_equal(pl_tokenizer_create_bytes(&t, &err), PL_OK);
    static const struct {
        uint8_t byte, comes;
    } steps[] = {{'a', 1},  {0xf0, 0}, {0x9f, 0}, {0x99, 0}, {0x82, 4}, {0xc3, 0}, {'x', 2}, {0x80, 1},
                 {0xe2, 0}, {0x82, 0}, {0xc3, 2}, {0xa9, 2}, {0xff, 1}, {0xe0, 0}, {0x80, 2}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        assert_int_equal(pl_decoder_push(&d, t, steps[i].byte, out), steps[i].comes);
    assert_int_equal(pl_decoder_push(&d, t, 0xc3, out), 0);
    assert_int_equal(pl_decoder_push(&d, t, 9999, out), 0);
    assert_int_equal(pl_decoder_finish(&d, out), 1);
    assert_int_equal(out[0], 0xc3);
    pl_tokenizer_destroy(t);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_ids),
        cmocka_unit_test(test_prefix_space),
        cmocka_unit_test(test_print_parse_print),
        cmocka_unit_test(test_save_and_load),
        cmocka_unit_test(test_refused_alterations),
        cmocka_unit_test(test_refused_texts),
        cmocka_unit_test(test_bounded_tree),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_memory_refused),
        cmocka_unit_test(test_legacy_merges_and_ignore_merges),
        cmocka_unit_test(test_unknown_token),
        cmocka_unit_test(test_ids_of_added_tokens),
        cmocka_unit_test(test_added_tokens_of_two_kinds),
        cmocka_unit_test(test_simple_kinds),
        cmocka_unit_test(test_streaming_decode),
    };
    return cmocka_run_group_tests(tests, load_golden, free_golden);
}
