/* The tokenizer that comes with a pretrained model. */
#include "systems/pretrained.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/tokenizer_gguf.h"

enum { BUFFER_BYTES = 64 << 10, CONFIG_BYTES_MAX = 16 << 20 };

/* ---- a folder's ---- */

static pl_status load_folder(const pl_pretrained *p, pl_tokenizer **t, pl_error *err)
{
    char *text;
    size_t bytes;
    const char *path = pl_pretrained_path(p, PL_PRETRAINED_TOKENIZER),
               *config = pl_pretrained_path(p, PL_PRETRAINED_TOKENIZER_CONFIG);
    if (!path) return pl_fail(err, PL_E_DATA, "%s: has no tokenizer.json", pl_pretrained_file_path(p, 0));
    PL_TRY(pl_tokenizer_load(path, t, err));
    if (!config) return PL_OK;
    PL_TRY(pl_file_read_all(config, CONFIG_BYTES_MAX, &text, &bytes, err));
    const pl_status status = pl_tokenizer_read_config(*t, config, text, bytes, err);
    pl_free(text);
    return status;
}

/* ---- a GGUF file's ---- */

typedef struct strings {
    pl_gguf_cursor cursor;
    uint32_t next;
    void *buffer;
    size_t room;
} strings;

typedef struct reading {
    const pl_gguf *file;
    const pl_gguf_value *tokens, *merges;
    strings token, merge;
    char *model, *pre;
    int32_t *types;
    float *scores;
} reading;

static pl_status next_string(const pl_gguf *file, const pl_gguf_value *value, strings *s, uint32_t i, const char **text,
                             size_t *bytes, pl_error *err)
{
    if (i == 0) s->cursor = pl_gguf_begin(file, value, s->buffer, s->room), s->next = 0;
    do PL_TRY(pl_gguf_next_string(&s->cursor, text, bytes, err));
    while (s->next++ < i);
    return PL_OK;
}

static pl_status token_at(void *context, uint32_t i, const char **text, size_t *bytes, pl_error *err)
{
    reading *r = context;
    return next_string(r->file, r->tokens, &r->token, i, text, bytes, err);
}

static pl_status merge_at(void *context, uint32_t i, const char **text, size_t *bytes, pl_error *err)
{
    reading *r = context;
    return next_string(r->file, r->merges, &r->merge, i, text, bytes, err);
}

static pl_status open_strings(const pl_gguf_value *value, strings *s, pl_error *err)
{
    if (!value) return PL_OK;
    const size_t least = pl_gguf_cursor_bytes(value);
    s->room = least > BUFFER_BYTES ? least : BUFFER_BYTES;
    s->buffer = pl_alloc(1, s->room);
    return s->buffer ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to read the tokenizer");
}

static pl_status read_text(const pl_gguf *file, const char *key, char **text, pl_error *err)
{
    const pl_gguf_value *v = pl_gguf_find(file, key);
    if (!v) return PL_OK;
    *text = pl_alloc(1, v->longest_bytes + 1);
    return *text ? pl_gguf_string(file, v, *text, err) : pl_fail(err, PL_E_NOMEM, "no memory to read %s", key);
}

/* An array with a number for each token, as i32 (whole) or f32 (real). */
static pl_status read_numbers(const reading *r, const char *key, int32_t **whole, float **real, pl_error *err)
{
    char buffer[4096];
    double number;
    const pl_gguf_value *v = pl_gguf_find(r->file, key);
    if (!v) return PL_OK;
    if (v->count != r->tokens->count)
        return pl_fail(err, PL_E_DATA, "%s has %llu elements, and the vocabulary %llu tokens", key,
                       (unsigned long long)v->count, (unsigned long long)r->tokens->count);
    void *to = pl_alloc(v->count + 1, sizeof(float));
    if (!to) return pl_fail(err, PL_E_NOMEM, "no memory to read %s", key);
    *(whole ? (void **)whole : (void **)real) = to;
    pl_gguf_cursor c = pl_gguf_begin(r->file, v, buffer, sizeof buffer);
    for (uint64_t i = 0; i < v->count; i++) {
        PL_TRY(pl_gguf_next_number(&c, &number, err));
        if (whole)
            (*whole)[i] = (int32_t)number;
        else
            (*real)[i] = (float)number;
    }
    return PL_OK;
}

static pl_status read_id(const pl_gguf *file, const char *key, int64_t *id, pl_error *err)
{
    double number = PL_GGUF_ABSENT;
    const pl_gguf_value *v = pl_gguf_find(file, key);
    if (v) PL_TRY(pl_gguf_number(file, v, &number, err));
    *id = (int64_t)number;
    return PL_OK;
}

static pl_status read_ids(const pl_gguf *file, pl_gguf_tokenizer *t, pl_error *err)
{
    static const struct {
        const char *key;
        pl_special special;
    } ids[] = {{"tokenizer.ggml.bos_token_id", PL_SPECIAL_BOS},
               {"tokenizer.ggml.eos_token_id", PL_SPECIAL_EOS},
               {"tokenizer.ggml.unknown_token_id", PL_SPECIAL_UNKNOWN},
               {"tokenizer.ggml.padding_token_id", PL_SPECIAL_PADDING},
               {"tokenizer.ggml.eot_token_id", PL_SPECIAL_EOT},
               {"tokenizer.ggml.eom_token_id", PL_SPECIAL_EOM}};
    const struct {
        const char *key;
        int *to;
    } flags[] = {{"tokenizer.ggml.add_bos_token", &t->add_bos},
                 {"tokenizer.ggml.add_eos_token", &t->add_eos},
                 {"tokenizer.ggml.add_space_prefix", &t->add_space_prefix}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        PL_TRY(read_id(file, ids[i].key, &t->special_id[ids[i].special], err));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        int64_t flag;
        PL_TRY(read_id(file, flags[i].key, &flag, err));
        *flags[i].to = (int)flag;
    }
    return PL_OK;
}

static pl_status create(reading *r, const char *name, pl_tokenizer **to, pl_error *err)
{
    pl_gguf_tokenizer t = {.name = name, .token = token_at, .merge = merge_at, .context = r};
    r->tokens = pl_gguf_find(r->file, "tokenizer.ggml.tokens");
    r->merges = pl_gguf_find(r->file, "tokenizer.ggml.merges");
    if (!r->tokens) return pl_fail(err, PL_E_DATA, "%s: has no tokenizer (tokenizer.ggml.tokens)", name);
    PL_TRY(read_text(r->file, "tokenizer.ggml.model", &r->model, err));
    PL_TRY(read_text(r->file, "tokenizer.ggml.pre", &r->pre, err));
    PL_TRY(read_numbers(r, "tokenizer.ggml.token_type", &r->types, NULL, err));
    PL_TRY(read_numbers(r, "tokenizer.ggml.scores", NULL, &r->scores, err));
    PL_TRY(open_strings(r->tokens, &r->token, err));
    PL_TRY(open_strings(r->merges, &r->merge, err));
    PL_TRY(read_ids(r->file, &t, err));
    if (r->tokens->count > PL_VOCAB_MAX || (r->merges && r->merges->count > UINT32_MAX))
        return pl_fail(err, PL_E_DATA, "%s: a vocabulary of more than %d tokens is not read", name, PL_VOCAB_MAX);
    t.model = r->model, t.pre = r->pre, t.types = r->types, t.scores = r->scores;
    t.tokens = (uint32_t)r->tokens->count, t.merges = r->merges ? (uint32_t)r->merges->count : 0;
    return pl_tokenizer_create_gguf(&t, to, err);
}

static pl_status load_gguf(const pl_gguf *file, const char *name, pl_tokenizer **t, pl_error *err)
{
    reading r = {.file = file};
    const pl_status status = create(&r, name, t, err);
    pl_free(r.model);
    pl_free(r.pre);
    pl_free(r.types);
    pl_free(r.scores);
    pl_free(r.token.buffer);
    pl_free(r.merge.buffer);
    return status;
}

pl_status pl_pretrained_load_tokenizer(const pl_pretrained *p, pl_tokenizer **t, pl_error *err)
{
    const pl_gguf *file = pl_pretrained_gguf(p);
    return file ? load_gguf(file, pl_pretrained_file_path(p, 0), t, err) : load_folder(p, t, err);
}
