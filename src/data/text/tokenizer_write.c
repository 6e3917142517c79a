/* tokenizer.json as Hugging Face's library reads it (version "1.0", models BPE and WordLevel). Merges are written as
 * "left right", which all its versions read; no token of the byte-level alphabet has a blank. The simpler kinds, which
 * that library does not have, name a model type of their own: {"type": "PlimsollBytes"}, {"type": "PlimsollChars",
 * "code_points": […]}. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

/* A token in the alphabet of GPT-2. */
static void append_token(const pl_tokenizer *t, uint32_t id, pl_str *out)
{
    for (uint32_t i = t->offset[id]; i < t->offset[id + 1]; i++) {
        uint8_t utf8[4];
        pl_str_append_bytes(out, utf8, pl_utf8_write(pl_alphabet_char(t->text[i]), utf8));
    }
}

static int compare_ids(const void *left, const void *right)
{
    const pl_added_token *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* The added tokens by id, as Hugging Face wants them, in a block for pl_free; NULL when memory is refused. */
static pl_added_token *added_by_id(const pl_tokenizer *t)
{
    pl_added_token *added = pl_alloc(t->added_count, sizeof *added);
    if (!added) return NULL;
    if (t->added_count) memcpy(added, t->added, t->added_count * sizeof *added);
    qsort(added, t->added_count, sizeof *added, compare_ids);
    return added;
}

static const pl_added_token *added_with_id(const pl_tokenizer *t, const pl_added_token *added, uint32_t id)
{
    pl_added_token key = {.id = id};
    return t->added_count ? bsearch(&key, added, t->added_count, sizeof *added, compare_ids) : NULL;
}

static void print_added(const pl_tokenizer *t, const pl_added_token *added, pl_json *j)
{
    pl_json_key(j, "added_tokens");
    pl_json_array(j);
    for (uint32_t i = 0; i < t->added_count; i++) {
        const pl_added_token *a = &added[i];
        pl_json_object(j);
        pl_json_kv_uint(j, "id", a->id);
        pl_json_key(j, "content");
        pl_json_string_bytes(j, (const char *)t->text + t->offset[a->id], a->bytes);
        pl_json_kv_bool(j, "single_word", false);
        pl_json_kv_bool(j, "lstrip", false);
        pl_json_kv_bool(j, "rstrip", false);
        pl_json_kv_bool(j, "normalized", a->normalized);
        pl_json_kv_bool(j, "special", a->special);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void print_byte_level(pl_json *j, const char *key, bool add_prefix_space)
{
    pl_json_key(j, key);
    pl_json_object(j);
    pl_json_kv_string(j, "type", "ByteLevel");
    pl_json_kv_bool(j, "add_prefix_space", add_prefix_space);
    pl_json_kv_bool(j, "trim_offsets", true);
    pl_json_kv_bool(j, "use_regex", true);
    pl_json_object_end(j);
}

static void print_vocab(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_key(j, "vocab");
    pl_json_object(j);
    for (uint32_t id = 0; id < t->vocab; id++) {
        if (t->offset[id] == t->offset[id + 1]) continue;
        const pl_added_token *a = added_with_id(t, added, id);
        if (a && !a->in_model) continue;
        pl_str_clear(word);
        if (a)
            pl_str_append_bytes(word, t->text + t->offset[id], a->bytes);
        else
            append_token(t, id, word);
        pl_json_kv_uint(j, pl_str_text(word), id);
    }
    pl_json_object_end(j);
}

static void print_merges(const pl_tokenizer *t, pl_json *j, pl_str *word)
{
    pl_json_key(j, "merges");
    pl_json_array(j);
    for (uint32_t i = 0; i < t->merge_count; i++) {
        pl_str_clear(word);
        append_token(t, t->merge[i].left, word);
        pl_str_append(word, " ");
        append_token(t, t->merge[i].right, word);
        pl_json_string_bytes(j, pl_str_text(word), word->bytes);
    }
    pl_json_array_end(j);
}

static void print_bpe_model(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_kv_string(j, "type", "BPE");
    pl_json_key(j, "dropout"), pl_json_null(j);
    pl_str_clear(word);
    if (t->unknown != PL_TOKEN_NONE) {
        const pl_added_token *a = added_with_id(t, added, t->unknown);
        if (a)
            pl_str_append_bytes(word, t->text + t->offset[a->id], a->bytes);
        else
            append_token(t, t->unknown, word);
    }
    pl_json_kv_string(j, "unk_token", t->unknown == PL_TOKEN_NONE ? NULL : pl_str_text(word));
    pl_json_key(j, "continuing_subword_prefix"), pl_json_null(j);
    pl_json_key(j, "end_of_word_suffix"), pl_json_null(j);
    pl_json_kv_bool(j, "fuse_unk", t->fuse_unknown);
    pl_json_kv_bool(j, "byte_fallback", false);
    pl_json_kv_bool(j, "ignore_merges", t->ignore_merges);
    print_vocab(t, added, j, word);
    print_merges(t, j, word);
}

static void print_chars_model(const pl_tokenizer *t, pl_json *j)
{
    pl_json_kv_string(j, "type", "PlimsollChars");
    pl_json_kv_string(j, "unk_token", "<unk>");
    pl_json_key(j, "code_points");
    pl_json_array(j);
    for (uint32_t i = 0; i + 1 < t->vocab; i++) pl_json_uint(j, t->code_point[i]);
    pl_json_array_end(j);
}

/* Words are written as they are, without the blank. */
static void print_words_model(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_kv_string(j, "type", "WordLevel");
    pl_json_key(j, "vocab");
    pl_json_object(j);
    for (uint32_t id = 0; id < t->vocab; id++) {
        const pl_added_token *a = added_with_id(t, added, id);
        const uint32_t begin = t->offset[id] + !a, end = t->offset[id + 1];
        if (begin >= end || (a && !a->in_model)) continue;
        pl_str_clear(word);
        pl_str_append_bytes(word, t->text + begin, end - begin);
        pl_json_kv_uint(j, pl_str_text(word), id);
    }
    pl_json_object_end(j);
    const uint32_t unknown = t->offset[t->unknown] + !added_with_id(t, added, t->unknown);
    pl_str_clear(word);
    pl_str_append_bytes(word, t->text + unknown, t->offset[t->unknown + 1] - unknown);
    pl_json_kv_string(j, "unk_token", pl_str_text(word));
}

static void print_part(pl_json *j, const char *key, const char *type)
{
    pl_json_key(j, key);
    if (!type) {
        pl_json_null(j);
        return;
    }
    pl_json_object(j);
    pl_json_kv_string(j, "type", type);
    pl_json_object_end(j);
}

static void print_words_pipeline(const pl_tokenizer *t, const pl_added_token *added, pl_json *j)
{
    print_part(j, "truncation", NULL), print_part(j, "padding", NULL);
    print_added(t, added, j);
    print_part(j, "normalizer", t->lower ? "Lowercase" : NULL);
    print_part(j, "pre_tokenizer", "WhitespaceSplit");
    print_part(j, "post_processor", NULL), print_part(j, "decoder", NULL);
}

static void print_pipeline(const pl_tokenizer *t, const pl_added_token *added, pl_json *j)
{
    static const char *const absent[] = {"truncation", "padding"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) pl_json_key(j, absent[i]), pl_json_null(j);
    print_added(t, added, j);
    pl_json_key(j, "normalizer"), pl_json_null(j);
    print_byte_level(j, "pre_tokenizer", t->add_prefix_space);
    pl_json_key(j, "post_processor"), pl_json_null(j);
    print_byte_level(j, "decoder", true);
}

void pl_tokenizer_print(const pl_tokenizer *t, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_str word = {0};
    pl_added_token *added = added_by_id(t);
    if (!added) {
        out->failed = 1;
        return;
    }
    pl_json_object(&j);
    pl_json_kv_string(&j, "version", "1.0");
    if (t->kind == PL_TOKENIZER_BPE) print_pipeline(t, added, &j);
    if (t->kind == PL_TOKENIZER_WORDS) print_words_pipeline(t, added, &j);
    pl_json_key(&j, "model");
    pl_json_object(&j);
    if (t->kind == PL_TOKENIZER_BPE)
        print_bpe_model(t, added, &j, &word);
    else if (t->kind == PL_TOKENIZER_WORDS)
        print_words_model(t, added, &j, &word);
    else if (t->kind == PL_TOKENIZER_CHARS)
        print_chars_model(t, &j);
    else
        pl_json_kv_string(&j, "type", "PlimsollBytes");
    pl_json_object_end(&j);
    pl_json_object_end(&j);
    pl_str_append(out, "\n");
    if (word.failed) out->failed = 1;
    pl_str_deinit(&word);
    pl_free(added);
}

pl_status pl_tokenizer_save(const pl_tokenizer *t, const char *path, pl_error *err)
{
    pl_str text = {0};
    pl_tokenizer_print(t, &text);
    pl_status status = text.failed ? pl_fail(err, PL_E_NOMEM, "%s: no memory for writing the tokenizer", path)
                                   : pl_file_write_all(path, pl_str_text(&text), text.bytes, err);
    pl_str_deinit(&text);
    return status;
}
