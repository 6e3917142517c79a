/* The tokenizer and the chat template of a model in the other form. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "data/text/tokenizer_gguf.h"
#include "systems/convert.h"

enum { STOPS_MAX = PL_PRETRAINED_STOPS_MAX + 16 };

static const char *name_of(const pl_conversion *c)
{
    const char *path = pl_pretrained_path(c->from, PL_PRETRAINED_TOKENIZER);
    return path ? path : pl_pretrained_file_path(c->from, 0);
}

static pl_status load(const pl_conversion *c, pl_tokenizer **t, pl_error *err)
{
    PL_TRY(pl_pretrained_load_tokenizer(c->from, t, err));
    const int64_t rows = pl_pretrained_model(c->from)->vocab;
    if ((int64_t)pl_tokenizer_vocab_size(*t) <= rows) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: has %u tokens, but the model has only %lld rows for them", name_of(c),
                   pl_tokenizer_vocab_size(*t), (long long)rows);
}

typedef struct stops {
    int64_t id[STOPS_MAX];
    size_t count;
} stops;

static void add_stop(stops *s, int64_t id)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->id[i] == id) return;
    if (s->count < STOPS_MAX) s->id[s->count++] = id;
}

/* What ends a text, by tokenizer and model, each once; `eos` (or PL_TOKEN_NONE) first. */
static stops find_stops(const pl_conversion *c, const pl_tokenizer *t, uint32_t eos)
{
    enum { NAMED_MAX = 16 };
    const pl_pretrained_defaults *d = pl_pretrained_generation(c->from);
    uint32_t named[NAMED_MAX];
    stops found = {.count = 0};
    if (eos != PL_TOKEN_NONE) add_stop(&found, eos);
    const uint32_t all = pl_tokenizer_stop_ids(t, named, NAMED_MAX);
    for (uint32_t i = 0; i < all && i < NAMED_MAX; i++) add_stop(&found, named[i]);
    for (size_t i = 0; i < d->stops; i++) add_stop(&found, d->stop[i]);
    return found;
}

/* ---- keys of a GGUF file ---- */

static void put_lists(pl_gguf_keys *k, const pl_tokenizer *t, uint32_t vocab, bool has_merges)
{
    pl_str text = {0};
    pl_gguf_put_array(k, "tokenizer.ggml.tokens", PL_GGUF_STRING, vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        (void)pl_tokenizer_gguf_token(t, i, &text);
        pl_gguf_put_text(k, pl_str_text(&text), text.bytes);
    }
    pl_gguf_put_array(k, "tokenizer.ggml.token_type", PL_GGUF_I32, vocab);
    for (uint32_t i = 0; i < vocab; i++) {
        const int32_t type = pl_tokenizer_gguf_token(t, i, &text);
        pl_str_append_bytes(&k->text, &type, sizeof type);
    }
    const uint32_t merges = has_merges ? pl_tokenizer_gguf_merges(t) : 0;
    if (has_merges) pl_gguf_put_array(k, "tokenizer.ggml.merges", PL_GGUF_STRING, merges);
    for (uint32_t i = 0; i < merges; i++) {
        pl_tokenizer_gguf_merge(t, i, &text);
        pl_gguf_put_text(k, pl_str_text(&text), text.bytes);
    }
    if (text.failed) k->text.failed = 1;
    pl_str_deinit(&text);
}

static pl_status put_scores(pl_gguf_keys *k, const pl_tokenizer *t, uint32_t vocab, pl_error *err)
{
    float *score = pl_alloc(vocab, sizeof *score);
    if (!score) return pl_fail(err, PL_E_NOMEM, "no memory for the scores of tokens");
    pl_tokenizer_gguf_scores(t, score, vocab);
    pl_gguf_put_array(k, "tokenizer.ggml.scores", PL_GGUF_F32, vocab);
    pl_str_append_bytes(&k->text, score, vocab * sizeof *score);
    pl_free(score);
    return PL_OK;
}

static void put_ids(pl_conversion *c, const pl_tokenizer *t, const pl_gguf_tokenizer_words *w)
{
    static const char *const ends[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    const pl_pretrained_defaults *d = pl_pretrained_generation(c->from);
    const stops found = find_stops(c, t, w->eos);
    const uint32_t pad = pl_tokenizer_special_id(t, PL_SPECIAL_PADDING),
                   unknown = pl_tokenizer_special_id(t, PL_SPECIAL_UNKNOWN);
    if (w->bos != PL_TOKEN_NONE || d->bos >= 0)
        pl_gguf_put_u32(&c->keys, "tokenizer.ggml.bos_token_id", w->bos != PL_TOKEN_NONE ? w->bos : (uint64_t)d->bos);
    for (size_t i = 0; i < found.count && i < 3; i++) pl_gguf_put_u32(&c->keys, ends[i], (uint64_t)found.id[i]);
    if (found.count > 3) pl_convert_note(c, "a GGUF file names three tokens that end a text; the model has more");
    if (unknown != PL_TOKEN_NONE) pl_gguf_put_u32(&c->keys, "tokenizer.ggml.unknown_token_id", unknown);
    if (pad != PL_TOKEN_NONE || d->pad >= 0)
        pl_gguf_put_u32(&c->keys, "tokenizer.ggml.padding_token_id", pad != PL_TOKEN_NONE ? pad : (uint64_t)d->pad);
}

static pl_status put_template(pl_conversion *c, pl_error *err)
{
    pl_text_template t = {0};
    const pl_status status = pl_pretrained_take_template(c->from, &t, err);
    if (status == PL_OK && t.text) pl_gguf_put_string(&c->keys, "tokenizer.chat_template", t.text, t.bytes);
    pl_free(t.text);
    return status;
}

static pl_status put_keys(pl_conversion *c, const pl_tokenizer *t, pl_error *err)
{
    pl_gguf_tokenizer_words w;
    pl_gguf_keys *k = &c->keys;
    const uint32_t vocab = (uint32_t)pl_pretrained_model(c->from)->vocab;
    PL_TRY(pl_tokenizer_name_gguf(t, name_of(c), &w, err));
    pl_convert_note(c, w.note);
    pl_gguf_put_string(k, "tokenizer.ggml.model", w.model, strlen(w.model));
    pl_gguf_put_string(k, "tokenizer.ggml.pre", w.pre, strlen(w.pre));
    put_lists(k, t, vocab, !w.has_scores);
    if (w.has_scores) PL_TRY(put_scores(k, t, vocab, err));
    put_ids(c, t, &w);
    pl_gguf_put_bool(k, "tokenizer.ggml.add_bos_token", w.add_bos);
    pl_gguf_put_bool(k, "tokenizer.ggml.add_eos_token", w.add_eos);
    pl_gguf_put_bool(k, "tokenizer.ggml.add_space_prefix", w.add_space_prefix);
    return put_template(c, err);
}

pl_status pl_convert_put_tokenizer(pl_conversion *c, pl_error *err)
{
    pl_tokenizer *t = NULL;
    pl_status status = load(c, &t, err);
    if (status == PL_OK) status = put_keys(c, t, err);
    pl_tokenizer_destroy(t);
    if (status != PL_OK) pl_error_append(err, "; `without-tokenizer` writes the model alone");
    return status;
}

/* ---- files of a folder ---- */

static void put_name(pl_json *j, const pl_tokenizer *t, const char *key, int64_t id)
{
    size_t bytes;
    const uint8_t *text =
        id >= 0 && id < pl_tokenizer_vocab_size(t) ? pl_tokenizer_token(t, (uint32_t)id, &bytes) : NULL;
    if (!text) return;
    pl_json_key(j, key);
    pl_json_string_bytes(j, (const char *)text, bytes);
}

static int64_t id_of(const pl_tokenizer *t, pl_special which)
{
    const uint32_t id = pl_tokenizer_special_id(t, which);
    return id == PL_TOKEN_NONE ? PL_PRETRAINED_NO_TOKEN : (int64_t)id;
}

static void print_config(const pl_conversion *c, const pl_tokenizer *t, pl_str *to)
{
    static const struct {
        const char *key;
        pl_special which;
    } names[] = {{"bos_token", PL_SPECIAL_BOS},
                 {"eos_token", PL_SPECIAL_EOS},
                 {"unk_token", PL_SPECIAL_UNKNOWN},
                 {"pad_token", PL_SPECIAL_PADDING}};
    uint32_t before, after;
    pl_json j = pl_json_begin(to, false);
    (void)pl_tokenizer_template(t, 0, &before);
    (void)pl_tokenizer_template(t, 1, &after);
    pl_json_object(&j);
    pl_json_kv_string(&j, "tokenizer_class", "PreTrainedTokenizerFast");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) put_name(&j, t, names[i].key, id_of(t, names[i].which));
    pl_json_kv_bool(&j, "add_bos_token", before > 0);
    pl_json_kv_bool(&j, "add_eos_token", after > 0);
    pl_json_kv_bool(&j, "clean_up_tokenization_spaces", false);
    pl_json_kv_int(&j, "model_max_length", pl_pretrained_model(c->from)->context);
    pl_json_object_end(&j);
    pl_str_append(to, "\n");
}

static pl_status add_template(pl_conversion *c, pl_error *err)
{
    pl_text_template t = {0};
    const pl_status status = pl_pretrained_take_template(c->from, &t, err);
    if (status == PL_OK && t.text)
        pl_str_append_bytes(&pl_convert_add_side(c, "chat_template.jinja")->text, t.text, t.bytes);
    pl_free(t.text);
    return status;
}

static pl_status add_tokenizer_files(pl_conversion *c, pl_tokenizer *t, pl_error *err)
{
    PL_TRY(pl_tokenizer_merge_by_scores(t, err));
    PL_TRY(pl_tokenizer_check_json(t, name_of(c), err));
    pl_tokenizer_print(t, &pl_convert_add_side(c, "tokenizer.json")->text);
    print_config(c, t, &pl_convert_add_side(c, "tokenizer_config.json")->text);
    return add_template(c, err);
}

static pl_status add_files(pl_conversion *c, pl_tokenizer *t, pl_error *err)
{
    const stops found = t ? find_stops(c, t, PL_TOKEN_NONE) : (stops){.count = 0};
    PL_TRY(pl_hf_config_write(c->from, c->matrices, found.id, found.count, &pl_convert_add_side(c, "config.json")->text,
                              err));
    PL_TRY(pl_hf_generation_write(c->from, found.id, found.count,
                                  &pl_convert_add_side(c, "generation_config.json")->text, err));
    return t ? add_tokenizer_files(c, t, err) : PL_OK;
}

pl_status pl_convert_add_tokenizer(pl_conversion *c, pl_error *err)
{
    pl_tokenizer *t = NULL;
    if (c->o->without_tokenizer) return add_files(c, NULL, err);
    pl_status status = load(c, &t, err);
    if (status == PL_OK) status = add_files(c, t, err);
    pl_tokenizer_destroy(t);
    return status;
}
