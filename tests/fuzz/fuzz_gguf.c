/* A GGUF file: its keys and tensors, and the model that they make. What is accepted lies in the file, and the values of
 * some keys, and every tensor that is not too large, can be read. */
#include <stdlib.h>

#include "fuzz/fuzz.h"
#include "pretrained/pretrained.h"

enum { NUMBERS_MAX = 1 << 16 };

/* ---- keys ---- */

static void check_value(const pl_gguf *g, const pl_gguf_value *v)
{
    const size_t room = pl_gguf_cursor_bytes(v);
    unsigned char *buffer = malloc(room);
    pl_error err = {0};
    FUZZ_CHECK(buffer, "no memory");
    pl_gguf_cursor c = pl_gguf_begin(g, v, buffer, room);
    while (c.left) {
        const uint64_t left = c.left;
        const char *text;
        size_t bytes;
        double x;
        const pl_status status = v->type == PL_GGUF_STRING ? pl_gguf_next_string(&c, &text, &bytes, &err)
                                                           : pl_gguf_next_number(&c, &x, &err);
        FUZZ_CHECK(status == PL_OK && c.left == left - 1, "%s", err.text);
    }
    free(buffer);
}

static void check_gguf(const pl_model_file *file)
{
    static const char *const keys[] = {"general.architecture", "tokenizer.ggml.tokens", "tokenizer.ggml.scores"};
    pl_error err = {0};
    pl_gguf *g;
    const pl_status status = pl_gguf_open(file, &g, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    for (size_t i = 0; i < pl_gguf_tensor_count(g); i++) {
        const pl_gguf_tensor *t = pl_gguf_tensor_at(g, i);
        FUZZ_CHECK(t->offset <= file->bytes && t->bytes <= file->bytes - t->offset, "\"%s\" ends behind the file",
                   t->name);
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pl_gguf_find(g, keys[i])) check_value(g, pl_gguf_find(g, keys[i]));
    pl_gguf_destroy(g);
}

/* ---- the model ---- */

static void check_model(const char *path)
{
    static float numbers[NUMBERS_MAX];
    static unsigned char staging[PL_TENSOR_STAGING_MIN];
    pl_error err = {0};
    pl_pretrained *p;
    const pl_status status = pl_pretrained_open(path, &p, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    for (size_t i = 0; i < pl_pretrained_tensor_count(p); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        if (t->rows > NUMBERS_MAX / t->columns) continue;
        const pl_status read = pl_pretrained_read(p, t, PL_ENCODING_F32, numbers, staging, sizeof staging, &err);
        FUZZ_CHECK(read == PL_OK || read == PL_E_DATA, "%s", err.text);
    }
    pl_pretrained_close(p);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_pretrained *p;
    const pl_status status = pl_pretrained_open(fuzz_file(1, data, size), &p, err);
    pl_pretrained_close(p);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    pl_model_file file;
    const char *path = fuzz_file(0, data, size);
    FUZZ_CHECK(pl_model_file_open(&file, path, NULL) == PL_OK, "the file cannot be opened");
    check_gguf(&file);
    check_model(path);
    pl_model_file_close(&file);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
