/* Opening: what the files say about a model, names of the hub, shards, what is refused and by which sentence, refused
 * memory, and files that are cut or have a wrong byte anywhere. */
#include "unit/store/scratch_folder.h"

#include "base/alloc.h"
#include "base/json_read.h"
#include "pretrained/pretrained.h"
#include "support/program.h"
#include "support/tiny_model.h"

static _Alignas(64) float numbers[TINY_VOCAB * TINY_INNER];
static unsigned char staging[PL_TENSOR_STAGING_MIN];

/* The path, for as long as the program runs. */
static const char *keep(const char *path)
{
    static char kept[32][1024];
    static size_t count;
    assert_true(count < 32);
    snprintf(kept[count], sizeof kept[count], "%s", path);
    return kept[count++];
}

static const char *new_folder(const char *name)
{
    const char *folder = keep(in_folder("%s", name));
    assert_int_equal(mkdir(folder, 0777), 0);
    tiny_write_folder(folder);
    return folder;
}

static void expect_refused(const char *path, pl_status status, const char *sentence)
{
    pl_error err = {0};
    pl_pretrained *p;
    if (pl_pretrained_open(path, &p, &err) != status)
        fail_msg("%s instead of \"%s\": %s", pl_status_name(err.status), sentence, err.text);
    assert_null(p);
    if (!strstr(err.text, sentence)) fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static pl_pretrained *opened(const char *path)
{
    pl_error err = {0};
    pl_pretrained *p;
    if (pl_pretrained_open(path, &p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

/* ---- what is read ---- */

static void test_hf_folder(void **state)
{
    pl_pretrained *p = opened(new_folder("read"));
    const pl_causal_lm *m = pl_pretrained_model(p);
    const pl_pretrained_defaults *d = pl_pretrained_generation(p);
    (void)state;
    assert_string_equal(m->family, "llama");
    assert_int_equal(m->width, TINY_WIDTH);
    assert_int_equal(m->head_width, TINY_HEAD_WIDTH);
    assert_int_equal(m->context, 128);
    assert_true(m->rope[0].theta == 5e5 && m->attention_scale == 0.25 && m->embedding_scale == 1);
    assert_true(m->block[1].has_rope && m->block[1].window == 0 && !m->is_tied && m->form.is_gated);
    assert_int_equal(d->bos, 1);
    assert_int_equal(d->eos, 2);
    assert_int_equal(d->pad, PL_PRETRAINED_NO_TOKEN);
    assert_int_equal(d->stops, 3); /* of both files */
    assert_int_equal(d->stop[2], 9);
    assert_true(d->has_temperature && d->temperature == 0.5 && d->has_top_k && d->top_k == 20 && !d->has_top_p);
    assert_null(pl_pretrained_path(p, PL_PRETRAINED_TOKENIZER));
    assert_string_equal(pl_pretrained_path(p, PL_PRETRAINED_CONFIG), in_folder("read/config.json"));
    assert_string_equal(pl_pretrained_file_path(p, 0), in_folder("read/model.safetensors"));
    assert_null(pl_pretrained_gguf(p));
    pl_pretrained_close(p);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static const char *write_gguf(const char *name, const unsigned char *data, size_t bytes)
{
    const char *path = keep(in_folder("%s", name));
    write_bytes(path, data, bytes);
    return path;
}

static void test_gguf(void **state)
{
    size_t bytes;
    unsigned char *data = tiny_make_gguf(8, &bytes);
    pl_pretrained *p = opened(write_gguf("m.gguf", data, bytes));
    const pl_gguf *g = pl_pretrained_gguf(p);
    pl_error err = {0};
    char text[16];
    unsigned char buffer[64];
    double x;
    (void)state;
    assert_int_equal(pl_pretrained_model(p)->vocab, TINY_VOCAB);
    assert_true(pl_pretrained_model(p)->norm_eps == (double)1e-5f);
    assert_int_equal(pl_pretrained_generation(p)->stop[0], 2);
    const pl_gguf_value *arch = pl_gguf_find(g, "general.architecture"),
                        *tokens = pl_gguf_find(g, "tokenizer.ggml.tokens");
    const pl_gguf_value *scores = pl_gguf_find(g, "tokenizer.ggml.scores");
    assert_null(pl_gguf_find(g, "no.such.key"));
    assert_int_equal(pl_gguf_string(g, arch, text, &err), PL_OK);
    assert_string_equal(text, "llama");
    assert_int_equal(pl_gguf_number(g, arch, &x, &err), PL_E_DATA);
    assert_int_equal(pl_gguf_string(g, tokens, text, &err), PL_E_DATA);
    assert_int_equal(tokens->count, 3);
    assert_int_equal(tokens->longest_bytes, 5);
    static const char *const expected[] = {"<unk>", "", "b c"};
    for (size_t room = pl_gguf_cursor_bytes(tokens); room <= sizeof buffer; room += 7) {
        pl_gguf_cursor c = pl_gguf_begin(g, tokens, buffer, room);
        for (int i = 0; c.left; i++) {
            const char *token;
            size_t n;
            assert_int_equal(pl_gguf_next_string(&c, &token, &n, &err), PL_OK);
            assert_int_equal(n, strlen(expected[i]));
            assert_memory_equal(token, expected[i], n);
        }
    }
    pl_gguf_cursor c = pl_gguf_begin(g, scores, buffer, pl_gguf_cursor_bytes(scores));
    assert_int_equal(pl_gguf_next_number(&c, &x, &err), PL_OK);
    assert_true(x == 1);
    assert_int_equal(pl_gguf_next_number(&c, &x, &err), PL_OK);
    assert_true(x == -2 && c.left == 0);
    pl_pretrained_close(p);
    free(data);
}

/* ---- names of the hub ---- */

static void test_find(void **state)
{
    char path[PL_FILE_PATH_MAX];
    pl_error err = {0};
    const char *hub = keep(in_folder("hub")), *there = hub;
    (void)state;
    assert_int_equal(pl_folder_create(in_folder("hub/models--org--a.b/snapshots/0123abcd"), &err), PL_OK);
    assert_int_equal(pl_folder_create(in_folder("hub/models--org--a.b/refs"), &err), PL_OK);
    tiny_write_text(in_folder("hub/models--org--a.b/refs"), "main", "0123abcd");
    assert_int_equal(pl_pretrained_find("org/a.b", hub, path, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "snapshots/0123abcd has no config.json"));
    tiny_write_text(in_folder("hub/models--org--a.b/snapshots/0123abcd"), "config.json", "{}");
    assert_int_equal(pl_pretrained_find("org/a.b", hub, path, &err), PL_OK);
    assert_string_equal(path, in_folder("hub/models--org--a.b/snapshots/0123abcd"));
    assert_int_equal(pl_pretrained_find(there, NULL, path, &err), PL_OK);
    assert_string_equal(path, there);
    assert_int_equal(pl_pretrained_find("org/other", hub, path, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "https://huggingface.co/org/other/tree/main"));
    assert_non_null(strstr(err.text, hub));
    assert_int_equal(pl_pretrained_find("org/a.b", NULL, path, &err), PL_E_CONFIG);
    assert_int_equal(pl_pretrained_find("a/b/c", hub, path, &err), PL_E_CONFIG);
    assert_null(strstr(err.text, "huggingface.co"));
    assert_int_equal(pl_pretrained_find("../a.b", hub, path, &err), PL_E_CONFIG);
    assert_null(strstr(err.text, "huggingface.co"));
    assert_int_equal(pl_pretrained_find("runs/gpt.yaml", hub, path, &err), PL_E_CONFIG);
    assert_null(strstr(err.text, "huggingface.co"));
    tiny_write_text(in_folder("hub/models--org--a.b/refs"), "main", "../../../etc");
    assert_int_equal(pl_pretrained_find("org/a.b", hub, path, &err), PL_E_CONFIG);
}

/* Files of a download are links to where their contents are kept. */
static void test_links(void **state)
{
    static const char *const names[] = {"config.json", "generation_config.json", "model.safetensors"};
    const char *folder = new_folder("blobs");
    pl_error err = {0};
    (void)state;
    assert_int_equal(pl_folder_create(in_folder("links"), &err), PL_OK);
    for (size_t i = 0; i < 3; i++) {
        char target[64];
        snprintf(target, sizeof target, "../blobs/%s", names[i]);
        assert_int_equal(symlink(target, in_folder("links/%s", names[i])), 0);
    }
    pl_pretrained *p = opened(keep(in_folder("links")));
    assert_int_equal(pl_pretrained_read(p, pl_pretrained_tensor_find(p, "model.norm.weight"), PL_ENCODING_F32, numbers,
                                        staging, sizeof staging, &err),
                     PL_OK);
    pl_pretrained_close(p);
    assert_non_null(folder);
}

/* ---- what is refused ---- */

/* The tiny config with one text in place of another. */
static void config_with(const char *folder, const char *from, const char *to)
{
    char text[2048];
    const char *at = strstr(tiny_config, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - tiny_config), tiny_config, to, at + strlen(from));
    tiny_write_text(folder, "config.json", text);
}

static void test_configs(void **state)
{
    static const struct {
        const char *from, *to;
        pl_status status;
        const char *sentence;
    } cases[] = {
        {"\"llama\"", "\"mamba\"", PL_E_UNSUPPORTED, "model_type \"mamba\" is not supported; those that are: llama"},
        {"{", "{\"quantization_config\": {}, \"hidden_act\": \"relu2\", \"rope_scaling\": {\"type\": \"dynamic\"}, ",
         PL_E_UNSUPPORTED, "quantization_config is not supported; hidden_act \"relu2\" is not supported; rope_type"},
        {"{", "{\"num_local_experts\": 8, \"partial_rotary_factor\": 0.5, ", PL_E_UNSUPPORTED,
         "num_local_experts is not supported; partial_rotary_factor 0.5"},
        {"{", "{\"auto_map\": {\"AutoModelForCausalLM\": \"x.MyModel\"}, ", PL_E_UNSUPPORTED, "code of its own"},
        {"{", "{\"head_dim\": 15, ", PL_E_UNSUPPORTED, "a head is 15 wide"},
        {"\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3", PL_E_UNSUPPORTED, "cannot share 3 key heads"},
        {"\"intermediate_size\": 64", "\"intermediate_size\": [64, 32]", PL_E_UNSUPPORTED,
         "intermediate_size differs between layers"},
        {"\"hidden_size\": 32", "\"hidden_size\": -1", PL_E_UNSUPPORTED, "hidden_size is not a whole number of 1"},
        {"\"hidden_size\": 32", "\"hidden_size\": 1e99", PL_E_UNSUPPORTED, "hidden_size is not a whole number of 1"},
        {"\"rope_theta\": 5e5", "\"rope_theta\": 0", PL_E_UNSUPPORTED, "rope_theta is 0"},
        {"{", "{\"hidden_size\": 32, ", PL_E_DATA, "duplicate object key"},
        {"\"vocab_size\": 40", "\"vocab_size\": 41", PL_E_DATA,
         "model.embed_tokens.weight has 40 × 32 numbers; 41 × 32 were expected; tensor lm_head.weight has"},
        {"{", "{\"attention_bias\": true, ", PL_E_DATA, "model.layers.0.self_attn.q_proj.bias is missing"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", PL_E_DATA,
         "tensor model.layers.1.input_layernorm.weight is unknown"},
        {"\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", PL_E_DATA,
         "tensor model.layers.2.input_layernorm.weight is missing"},
        {"}", "", PL_E_DATA, "config.json:5:0: is not valid JSON"},
    };
    const char *folder = new_folder("configs");
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        config_with(folder, cases[i].from, cases[i].to);
        expect_refused(folder, cases[i].status, cases[i].sentence);
    }
    config_with(folder, "\"intermediate_size\": 64", "\"intermediate_size\": [64, 64]"); /* constant: fine */
    pl_pretrained_close(opened(folder));
    config_with(folder, "{", "{\"auto_map\": {\"AutoModelForCausalLM\": \"modeling_llama.LlamaForCausalLM\"}, ");
    pl_pretrained_close(opened(folder));
    config_with(folder, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"); /* lm_head is ignored */
    pl_pretrained *p = opened(folder);
    assert_null(pl_pretrained_tensor_find(p, "lm_head.weight"));
    pl_pretrained_close(p);
}

static void test_missing_files(void **state)
{
    const char *folder = new_folder("missing");
    (void)state;
    expect_refused(in_folder("nothing"), PL_E_DATA, "cannot be opened");
    assert_int_equal(rename(in_folder("missing/model.safetensors"), in_folder("missing/pytorch_model.bin")), 0);
    expect_refused(folder, PL_E_UNSUPPORTED, "AutoModelForCausalLM.from_pretrained");
    assert_int_equal(remove(in_folder("missing/pytorch_model.bin")), 0);
    expect_refused(folder, PL_E_DATA, "neither model.safetensors nor");
    tiny_write_text(folder, "tokenizer.model", "x");
    expect_refused(folder, PL_E_UNSUPPORTED, "AutoTokenizer.from_pretrained");
    assert_int_equal(remove(in_folder("missing/config.json")), 0);
    expect_refused(folder, PL_E_DATA, "has no config.json");
}

/* ---- shards ---- */

static void index_with(const char *folder, const char *file, const char *more)
{
    char text[4096];
    size_t at = (size_t)snprintf(text, sizeof text, "{\"weight_map\": {%s", more);
    for (size_t i = 0; i < TINY_TENSORS; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s\"%s\": \"%s\"", i || *more ? ", " : "",
                               tiny_tensor_at(i).name, file);
    snprintf(text + at, sizeof text - at, "}}");
    tiny_write_text(folder, "model.safetensors.index.json", text);
}

static void test_index(void **state)
{
    const char *folder = new_folder("index");
    (void)state;
    assert_int_equal(rename(in_folder("index/model.safetensors"), in_folder("index/a.safetensors")), 0);
    index_with(folder, "a.safetensors", "");
    pl_pretrained_close(opened(folder));
    index_with(folder, "../index/a.safetensors", "");
    expect_refused(folder, PL_E_DATA, "is not a name in this folder");
    index_with(folder, "/etc/passwd", "");
    expect_refused(folder, PL_E_DATA, "is not a name in this folder");
    index_with(folder, "b.safetensors", "");
    expect_refused(folder, PL_E_DATA, "cannot be opened");
    index_with(folder, "a.safetensors", "\"more.weight\": \"a.safetensors\"");
    expect_refused(folder, PL_E_DATA, "tensor \"more.weight\" is not in a.safetensors");
    index_with(folder, "a.safetensors", "\"lm_head.weight\": \"a.safetensors\"");
    expect_refused(folder, PL_E_DATA, "duplicate object key");
    tiny_write_text(folder, "model.safetensors.index.json",
                    "{\"weight_map\": {\"lm_head.weight\": \"a.safetensors\"}}");
    expect_refused(folder, PL_E_DATA, "does not name tensor");
    tiny_write_text(folder, "model.safetensors.index.json", "{\"weight_map\": []}");
    expect_refused(folder, PL_E_DATA, "has no object weight_map");
    new_folder("twice");
    assert_int_equal(rename(in_folder("twice/model.safetensors"), in_folder("index/b.safetensors")), 0);
    index_with(folder, "a.safetensors", "\"more.weight\": \"b.safetensors\"");
    expect_refused(folder, PL_E_DATA, "is in two of its files");
}

/* ---- damage ---- */

/* A refusal is a sentence; what is accepted can be read. */
static void try_file(const char *path)
{
    pl_error err = {0};
    pl_pretrained *p;
    const pl_status status = pl_pretrained_open(path, &p, &err);
    assert_true(status == PL_OK || status == PL_E_DATA || status == PL_E_UNSUPPORTED);
    assert_true((status == PL_OK) == (*err.text == 0));
    for (size_t i = 0; p && i < pl_pretrained_tensor_count(p); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        if ((uint64_t)(t->rows * t->columns) > sizeof numbers / sizeof *numbers) continue;
        (void)pl_pretrained_read(p, t, PL_ENCODING_F32, numbers, staging, sizeof staging, &err);
    }
    pl_pretrained_close(p);
    assert_int_equal(pl_alloc_live_blocks(), 0);
}

static void damage(const char *data_path, const char *model)
{
    static unsigned char data[1 << 17], changed[1 << 17];
    const size_t bytes = (size_t)read_bytes(data_path, data, sizeof data);
    for (size_t n = 0; n < bytes; n += n < 4096 ? 7 : 997) {
        write_bytes(data_path, data, n);
        expect_refused(model, PL_E_DATA, "");
    }
    for (size_t i = 0; i < bytes && i < 4096; i += 3) {
        memcpy(changed, data, bytes);
        changed[i] ^= (unsigned char)(1u << i % 8);
        write_bytes(data_path, changed, bytes);
        try_file(model);
        changed[i] = 0xff;
        write_bytes(data_path, changed, bytes);
        try_file(model);
    }
    write_bytes(data_path, data, bytes);
}

static void test_damaged_gguf(void **state)
{
    size_t bytes;
    unsigned char *data = tiny_make_gguf(8, &bytes);
    const char *path = write_gguf("damaged.gguf", data, bytes);
    (void)state;
    damage(path, path);
    free(data);
}

static void test_damaged_safetensors(void **state)
{
    const char *folder = new_folder("damaged");
    (void)state;
    damage(keep(in_folder("damaged/model.safetensors")), folder);
}

static void test_damaged_config(void **state)
{
    const char *folder = new_folder("damaged_config");
    char text[2048];
    (void)state;
    const size_t bytes = strlen(tiny_config);
    for (size_t i = 0; i < bytes; i++) {
        memcpy(text, tiny_config, bytes + 1);
        text[i] = (char)(text[i] ^ 1 << i % 7);
        write_bytes(in_folder("damaged_config/config.json"), text, bytes);
        try_file(folder);
        write_bytes(in_folder("damaged_config/config.json"), tiny_config, i);
        if (i + 1 < bytes) expect_refused(folder, PL_E_DATA, ""); /* all but the end of the last line */
    }
}

/* ---- refused memory ---- */

static void sweep(const char *path)
{
    pl_error err = {0};
    pl_pretrained *p = NULL;
    for (uint64_t n = 1; !p; n++) {
        pl_alloc_fail_at(n, 0);
        const pl_status status = pl_pretrained_open(path, &p, &err);
        pl_alloc_fail_at(0, 0);
        assert_true(status == PL_OK || status == PL_E_NOMEM);
        if (!p) assert_int_equal(pl_alloc_live_blocks(), 0);
    }
    pl_pretrained_close(p);
}

static void test_refused_memory(void **state)
{
    size_t bytes;
    unsigned char *data = tiny_make_gguf(0, &bytes);
    (void)state;
    sweep(new_folder("sweep"));
    sweep(write_gguf("sweep.gguf", data, bytes));
    free(data);
}

/* What opening takes of the heap, a plan learns by a rehearsal: it is the same each time, and is all given back. */
static uint64_t rehearsed_bytes(const char *path)
{
    pl_alloc_meter meter = {0};
    pl_json_count(true);
    pl_alloc_set_meter(&meter);
    pl_pretrained *p = opened(path);
    const uint64_t peak = meter.peak_bytes;
    pl_pretrained_close(p);
    assert_int_equal(meter.held_bytes, 0);
    pl_alloc_set_meter(NULL);
    pl_json_count(false);
    return peak;
}

static void test_heap(void **state)
{
    size_t bytes;
    unsigned char *data = tiny_make_gguf(0, &bytes);
    const char *paths[] = {new_folder("heap"), write_gguf("heap.gguf", data, bytes)};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const uint64_t peak = rehearsed_bytes(paths[i]);
        assert_int_equal(rehearsed_bytes(paths[i]), peak);
        assert_in_range(peak, 8 << 10, 256 << 10);
    }
    free(data);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hf_folder),
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_damaged_gguf),
        cmocka_unit_test(test_damaged_safetensors),
        cmocka_unit_test(test_damaged_config),
        cmocka_unit_test(test_refused_memory),
        cmocka_unit_test(test_heap),
    };
    (void)argc, (void)argv;
    use_memory_for_folder();
    return cmocka_run_group_tests(tests, make_test_folder, remove_test_folder);
}
