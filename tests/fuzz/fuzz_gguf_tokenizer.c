/* The tokenizer of a GGUF file, its keys as JSON (support/gguf_json.h). What is accepted is used on a text. */
#include "base/json_read.h"
#include "fuzz/fuzz_ids.h"
#include "support/gguf_json.h"

/* Written again it is read again, and so is what a tokenizer.json has of it. */
static void check_written(pl_tokenizer *t)
{
    pl_gguf_tokenizer_words words;
    pl_str text = {0};
    pl_error err = {0};
    if (pl_tokenizer_name_gguf(t, "file.gguf", &words, &err) == PL_OK)
        for (uint32_t i = 0; i < pl_tokenizer_vocab_size(t); i++) {
            const int32_t type = pl_tokenizer_gguf_token(t, i, &text);
            FUZZ_CHECK(type >= 1 && type <= 6 && text.bytes > 0, "token %u is of type %d", i, (int)type);
        }
    for (uint32_t i = 0; i < pl_tokenizer_gguf_merges(t); i++) pl_tokenizer_gguf_merge(t, i, &text);
    if (pl_tokenizer_merge_by_scores(t, &err) == PL_OK && pl_tokenizer_check_json(t, "file.gguf", &err) == PL_OK) {
        pl_str_clear(&text);
        pl_tokenizer_print(t, &text);
    }
    pl_str_deinit(&text);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    json_error_t why;
    json_t *keys;
    pl_tokenizer *t = NULL;
    pl_status status = pl_json_read((const char *)data, size, JSON_ALLOW_NUL, &keys, &why);
    if (status != PL_OK)
        return pl_fail(err, status, "file.gguf: %s",
                       status == PL_E_NOMEM ? "no memory for the keys" : "its keys are no JSON");
    gguf_json g = gguf_json_of(keys);
    status = pl_tokenizer_create_gguf(&g.keys, &t, err);
    if (t) {
        fuzz_check_use(t, (const uint8_t *)fuzz_text, sizeof fuzz_text - 1);
        fuzz_check_use(t, data, size < 256 ? size : 256);
        check_written(t);
    }
    FUZZ_CHECK((status == PL_OK) == (t != NULL), "a tokenizer that was refused");
    pl_tokenizer_destroy(t);
    gguf_json_free(&g);
    json_decref(keys);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    uint64_t before = pl_alloc_live_blocks();
    pl_status status = read_once(data, size, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "file.gguf", FUZZ_NAME);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
