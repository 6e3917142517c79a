/* Encodes texts and decodes their ids, for comparing with other programs: tests/tokens/compare.py, and by hand.
 *
 *   tokens TOKENIZER TEXTS OUT [gguf] [special] [plain] [continues] [stream]
 *
 * TOKENIZER is a tokenizer.json or, with gguf, what support/gguf_json.h says.
 * TEXTS holds texts, each after its length (u32). OUT gets for each of them the number of ids (u32), the ids (u32), and
 * twice the text of these, with and without special tokens, after its length; 0xffffffff where it was refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/encoder.h"
#include "support/gguf_json.h"

static void check(int good, const char *what)
{
    if (good) return;
    fprintf(stderr, "tokens: %s\n", what);
    exit(1);
}

static void put(FILE *out, const void *data, size_t bytes)
{
    check(fwrite(data, 1, bytes, out) == bytes, "cannot write");
}

static void put_count(FILE *out, size_t count)
{
    const uint32_t n = (uint32_t)count;
    put(out, &n, sizeof n);
}

static void put_decoded(FILE *out, const pl_tokenizer *t, const uint32_t *ids, size_t count, int skips_special)
{
    pl_decoder d = {.is_text = 1, .skips_special = skips_special};
    pl_str text = {0};
    uint8_t *part = pl_alloc(pl_decoder_room(t), 1);
    for (size_t i = 0; i < count; i++) pl_str_append_bytes(&text, part, pl_decoder_push(&d, t, ids[i], part));
    pl_str_append_bytes(&text, part, pl_decoder_finish(&d, part));
    put_count(out, text.bytes);
    put(out, pl_str_text(&text), text.bytes);
    pl_str_deinit(&text);
    pl_free(part);
}

typedef struct id_list {
    uint32_t *ids;
    size_t count, capacity;
} id_list;

static pl_status collect(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    id_list *list = context;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        check(!pl_grow(&list->ids, &list->capacity, list->count, sizeof *ids), "no memory");
        list->ids[list->count++] = ids[i];
    }
    return PL_OK;
}

/* As people's training text comes: in portions, through an encoder that does not know how long it is. */
static pl_status stream(const pl_tokenizer *t, pl_encode_options o, const char *text, size_t bytes, uint32_t **ids,
                        size_t *count, pl_error *err)
{
    static pl_encoder *encoder;
    static id_list list;
    list = (id_list){0};
    if (!encoder) check(pl_encoder_create(t, collect, &list, &encoder, err) == PL_OK, err->text);
    pl_encoder_set_options(encoder, o);
    pl_status status = PL_OK;
    for (size_t at = 0, n; at < bytes && status == PL_OK; at += n) {
        n = bytes - at < 777 ? bytes - at : 777;
        status = pl_encoder_feed(encoder, text + at, n, err);
    }
    pl_error ignored = {0};
    const pl_status end = pl_encoder_finish(encoder, status == PL_OK ? err : &ignored);
    *ids = list.ids, *count = list.count;
    return status == PL_OK ? end : status;
}

static void load(const char *path, int is_gguf, pl_tokenizer **t, pl_error *err)
{
    json_t *keys = is_gguf ? json_load_file(path, JSON_ALLOW_NUL, NULL) : NULL;
    if (!is_gguf) {
        check(pl_tokenizer_load(path, t, err) == PL_OK, err->text);
        return;
    }
    gguf_json g = gguf_json_of(keys);
    check(pl_tokenizer_create_gguf(&g.keys, t, err) == PL_OK, err->text);
    gguf_json_free(&g);
    json_decref(keys);
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_tokenizer *t;
    pl_encode_options o = {0};
    int streams = 0, refused = 0, is_gguf = 0;
    check(argc >= 4, "TOKENIZER TEXTS OUT [special] [plain] [continues] [stream]");
    for (int i = 4; i < argc; i++) {
        o.adds_special |= strcmp(argv[i], "special") == 0;
        o.ignores_added |= strcmp(argv[i], "plain") == 0;
        o.continues |= strcmp(argv[i], "continues") == 0;
        is_gguf |= strcmp(argv[i], "gguf") == 0;
        streams |= strcmp(argv[i], "stream") == 0;
    }
    load(argv[1], is_gguf, &t, &err);
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    check(in && out, "cannot open");
    for (uint32_t bytes; fread(&bytes, sizeof bytes, 1, in) == 1;) {
        char *text = pl_alloc(bytes, 1);
        uint32_t *ids = NULL;
        size_t count = 0;
        check(text && fread(text, 1, bytes, in) == bytes, "TEXTS is cut off");
        const pl_status status = streams ? stream(t, o, text, bytes, &ids, &count, &err)
                                         : pl_encode_with(t, o, text, bytes, &ids, &count, &err);
        if (status != PL_OK && !refused++) fprintf(stderr, "tokens: %s\n", err.text);
        put_count(out, status == PL_OK ? count : UINT32_MAX);
        if (status == PL_OK) {
            put(out, ids, count * sizeof *ids);
            put_decoded(out, t, ids, count, 0);
            put_decoded(out, t, ids, count, 1);
        }
        pl_free(ids);
        pl_free(text);
    }
    check(fclose(out) == 0, "cannot write");
    fclose(in);
    pl_tokenizer_destroy(t);
    return 0;
}
