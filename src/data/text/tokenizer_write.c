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

#define BLANK "\xe2\x96\x81"

void pl_tokenizer_append_token(const pl_tokenizer *t, uint32_t id, pl_str *out)
{
    const uint8_t *text = t->text + t->offset[id];
    const uint32_t bytes = t->offset[id + 1] - t->offset[id];
    const bool has_blanks = t->pipeline.has_blanks && pl_tokenizer_find(t, text, bytes) == id;
    for (uint32_t i = 0; !t->pipeline.is_bytes && i < bytes; i++)
        pl_str_append_bytes(out, has_blanks && text[i] == ' ' ? BLANK : (const char *)&text[i],
                            has_blanks && text[i] == ' ' ? 3 : 1);
    for (uint32_t i = t->offset[id]; t->pipeline.is_bytes && i < t->offset[id + 1]; i++) {
        uint8_t utf8[4];
        pl_str_append_bytes(out, utf8, pl_utf8_write(pl_alphabet_char(t->text[i]), utf8));
    }
}

void pl_tokenizer_append_added(const pl_tokenizer *t, const pl_added_token *a, pl_str *out)
{
    if (a->normalized)
        pl_str_append_bytes(out, t->text + t->offset[a->id], a->bytes);
    else
        pl_str_append_bytes(out, a->wanted, a->wanted_bytes);
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

static void print_added(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_key(j, "added_tokens");
    pl_json_array(j);
    for (uint32_t i = 0; i < t->added_count; i++) {
        const pl_added_token *a = &added[i];
        pl_json_object(j);
        pl_json_kv_uint(j, "id", a->id);
        pl_json_key(j, "content");
        pl_str_clear(word);
        pl_tokenizer_append_added(t, a, word);
        pl_json_string_bytes(j, pl_str_text(word), word->bytes);
        pl_json_kv_bool(j, "single_word", false);
        pl_json_kv_bool(j, "lstrip", a->strips_left);
        pl_json_kv_bool(j, "rstrip", a->strips_right);
        pl_json_kv_bool(j, "normalized", a->normalized);
        pl_json_kv_bool(j, "special", a->special);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void begin_part(pl_json *j, const char *type)
{
    pl_json_object(j);
    pl_json_kv_string(j, "type", type);
}

static void begin_sequence(pl_json *j, const char *list)
{
    begin_part(j, "Sequence");
    pl_json_key(j, list);
    pl_json_array(j);
}

static void end_sequence(pl_json *j) { pl_json_array_end(j), pl_json_object_end(j); }

static void print_byte_level(pl_json *j, bool add_prefix_space, bool use_regex)
{
    begin_part(j, "ByteLevel");
    pl_json_kv_bool(j, "add_prefix_space", add_prefix_space);
    pl_json_kv_bool(j, "trim_offsets", true);
    pl_json_kv_bool(j, "use_regex", use_regex);
    pl_json_object_end(j);
}

static void print_replace(pl_json *j, const char *from, const char *to)
{
    begin_part(j, "Replace");
    pl_json_key(j, "pattern"), pl_json_object(j);
    pl_json_kv_string(j, "String", from);
    pl_json_object_end(j);
    pl_json_kv_string(j, "content", to);
    pl_json_object_end(j);
}

/* Blanks are the business of Metaspace where nothing is put before each segment, and pieces or prefixes are its. */
static bool has_metaspace(const pl_pipeline *p)
{
    return p->has_blanks && (p->cuts_blanks || p->prefix == PL_PREFIX_MISSING || p->prefix == PL_PREFIX_FIRST);
}

static void print_normalizer(pl_json *j, const pl_pipeline *p)
{
    pl_json_key(j, "normalizer");
    const bool replaces = p->has_blanks && !has_metaspace(p);
    if (!p->has_nfc && !replaces) {
        pl_json_null(j);
        return;
    }
    begin_sequence(j, "normalizers");
    if (p->has_nfc) begin_part(j, "NFC"), pl_json_object_end(j);
    if (p->prefix == PL_PREFIX_ALWAYS) {
        begin_part(j, "Prepend");
        pl_json_kv_string(j, "prepend", BLANK);
        pl_json_object_end(j);
    }
    if (replaces) print_replace(j, " ", BLANK);
    end_sequence(j);
}

static void print_metaspace(pl_json *j, const pl_pipeline *p)
{
    begin_part(j, "Metaspace");
    pl_json_kv_string(j, "replacement", BLANK);
    pl_json_kv_string(j, "prepend_scheme",
                      p->prefix == PL_PREFIX_MISSING ? "always"
                      : p->prefix == PL_PREFIX_FIRST ? "first"
                                                     : "never");
    pl_json_kv_bool(j, "split", p->cuts_blanks);
    pl_json_object_end(j);
}

static void print_pattern(pl_json *j, const char *regex)
{
    begin_part(j, "Split");
    pl_json_key(j, "pattern"), pl_json_object(j);
    pl_json_kv_string(j, "Regex", regex);
    pl_json_object_end(j);
    pl_json_kv_string(j, "behavior", "Isolated");
    pl_json_kv_bool(j, "invert", false);
    pl_json_object_end(j);
}

static void print_pre_tokenizer(pl_json *j, const pl_pipeline *p)
{
    const pl_pretoken rule = p->pretoken;
    const bool is_gpt2 = rule.scanner == PL_SCANNER_GPT2;
    pl_json_key(j, "pre_tokenizer");
    if (is_gpt2 && rule.precut == PL_PRECUT_NONE) {
        print_byte_level(j, p->prefix == PL_PREFIX_MISSING, true);
    } else if (p->is_bytes) {
        begin_sequence(j, "pretokenizers");
        if (rule.precut != PL_PRECUT_NONE) {
            begin_part(j, "Digits");
            pl_json_kv_bool(j, "individual_digits", rule.precut == PL_PRECUT_EACH_DIGIT);
            pl_json_object_end(j);
        }
        if (!is_gpt2) print_pattern(j, rule.scanner == PL_SCANNER_LLAMA3 ? PL_PATTERN_LLAMA3 : PL_PATTERN_QWEN2);
        print_byte_level(j, false, is_gpt2);
        end_sequence(j);
    } else if (has_metaspace(p)) {
        print_metaspace(j, p);
    } else {
        pl_json_null(j);
    }
}

static void print_decoder(pl_json *j, const pl_pipeline *p)
{
    pl_json_key(j, "decoder");
    if (p->is_bytes) {
        print_byte_level(j, true, true);
        return;
    }
    begin_sequence(j, "decoders");
    if (p->has_blanks) print_replace(j, BLANK, " ");
    if (p->joins_bytes) begin_part(j, "ByteFallback"), pl_json_object_end(j);
    begin_part(j, "Fuse"), pl_json_object_end(j);
    if (p->strips_blank) {
        begin_part(j, "Strip");
        pl_json_kv_string(j, "content", " ");
        pl_json_kv_uint(j, "start", 1), pl_json_kv_uint(j, "stop", 0);
        pl_json_object_end(j);
    }
    end_sequence(j);
}

/* Whether the model has the token or it was only added. */
static void append_any(const pl_tokenizer *t, const pl_added_token *a, uint32_t id, pl_str *word)
{
    if (a)
        pl_tokenizer_append_added(t, a, word);
    else
        pl_tokenizer_append_token(t, id, word);
}

/* ids of the template, each by the text of its token. */
static void print_ids(const pl_tokenizer *t, const pl_added_token *added, const uint32_t *ids, uint32_t count,
                      pl_json *j, pl_str *word)
{
    for (uint32_t i = 0; i < count; i++) {
        pl_str_clear(word);
        append_any(t, added_with_id(t, added, ids[i]), ids[i], word);
        pl_json_object(j);
        pl_json_key(j, "SpecialToken"), pl_json_object(j);
        pl_json_key(j, "id"), pl_json_string_bytes(j, pl_str_text(word), word->bytes);
        pl_json_kv_uint(j, "type_id", 0);
        pl_json_object_end(j), pl_json_object_end(j);
    }
}

static void print_sequence(pl_json *j, const char *id, unsigned type)
{
    pl_json_object(j);
    pl_json_key(j, "Sequence"), pl_json_object(j);
    pl_json_kv_string(j, "id", id);
    pl_json_kv_uint(j, "type_id", type);
    pl_json_object_end(j), pl_json_object_end(j);
}

static void print_special(const pl_tokenizer *t, const pl_added_token *added, uint32_t id, pl_json *j, pl_str *word)
{
    pl_str_clear(word);
    append_any(t, added_with_id(t, added, id), id, word);
    pl_json_key(j, pl_str_text(word)), pl_json_object(j);
    pl_json_key(j, "id"), pl_json_string_bytes(j, pl_str_text(word), word->bytes);
    pl_json_key(j, "ids"), pl_json_array(j), pl_json_uint(j, id), pl_json_array_end(j);
    pl_json_key(j, "tokens"), pl_json_array(j);
    pl_json_string_bytes(j, pl_str_text(word), word->bytes);
    pl_json_array_end(j);
    pl_json_object_end(j);
}

static void print_post_processor(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    const pl_pipeline *p = &t->pipeline;
    pl_json_key(j, "post_processor");
    if (!p->before_count && !p->after_count) {
        pl_json_null(j);
        return;
    }
    begin_part(j, "TemplateProcessing");
    for (int pair = 0; pair < 2; pair++) {
        pl_json_key(j, pair ? "pair" : "single"), pl_json_array(j);
        print_ids(t, added, p->before, p->before_count, j, word);
        print_sequence(j, "A", 0);
        if (pair) print_sequence(j, "B", 1);
        print_ids(t, added, p->after, p->after_count, j, word);
        pl_json_array_end(j);
    }
    uint32_t all[2 * PL_TEMPLATE_IDS_MAX], count = 0;
    for (uint32_t i = 0; i < p->before_count + p->after_count; i++) {
        const uint32_t id = i < p->before_count ? p->before[i] : p->after[i - p->before_count];
        uint32_t k = 0;
        while (k < count && all[k] != id) k++;
        if (k == count) all[count++] = id;
    }
    pl_json_key(j, "special_tokens"), pl_json_object(j);
    for (uint32_t i = 0; i < count; i++) print_special(t, added, all[i], j, word);
    pl_json_object_end(j);
    pl_json_object_end(j);
}

/* In a GGUF file there can be tokens that no text becomes, such as the first of two with the same text. */
static void print_vocab(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_key(j, "vocab");
    pl_json_object(j);
    for (uint32_t id = 0; id < t->vocab; id++) {
        const uint32_t bytes = t->offset[id + 1] - t->offset[id];
        if (bytes == 0) continue;
        const pl_added_token *a = added_with_id(t, added, id);
        if (a ? !a->in_model : pl_tokenizer_find(t, t->text + t->offset[id], bytes) != id) continue;
        pl_str_clear(word);
        append_any(t, a, id, word);
        pl_json_kv_uint(j, pl_str_text(word), id);
    }
    pl_json_object_end(j);
}

static void print_merges(const pl_tokenizer *t, pl_json *j, pl_str *word)
{
    pl_json_key(j, "merges");
    pl_json_array(j);
    for (uint32_t i = 0; i < t->merge_count; i++) {
        if (!t->pipeline.is_bytes) pl_json_array(j);
        pl_str_clear(word);
        pl_tokenizer_append_token(t, t->merge[i].left, word);
        if (t->pipeline.is_bytes)
            pl_str_append(word, " ");
        else
            pl_json_string_bytes(j, pl_str_text(word), word->bytes), pl_str_clear(word);
        pl_tokenizer_append_token(t, t->merge[i].right, word);
        pl_json_string_bytes(j, pl_str_text(word), word->bytes);
        if (!t->pipeline.is_bytes) pl_json_array_end(j);
    }
    pl_json_array_end(j);
}

static void print_bpe_model(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    pl_json_kv_string(j, "type", "BPE");
    pl_json_key(j, "dropout"), pl_json_null(j);
    pl_str_clear(word);
    if (t->unknown != PL_TOKEN_NONE) append_any(t, added_with_id(t, added, t->unknown), t->unknown, word);
    pl_json_kv_string(j, "unk_token", t->unknown == PL_TOKEN_NONE ? NULL : pl_str_text(word));
    pl_json_key(j, "continuing_subword_prefix"), pl_json_null(j);
    pl_json_key(j, "end_of_word_suffix"), pl_json_null(j);
    pl_json_kv_bool(j, "fuse_unk", t->fuse_unknown);
    pl_json_kv_bool(j, "byte_fallback", t->pipeline.byte_fallback);
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

static void print_words_pipeline(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    print_part(j, "truncation", NULL), print_part(j, "padding", NULL);
    print_added(t, added, j, word);
    print_part(j, "normalizer", t->lower ? "Lowercase" : NULL);
    print_part(j, "pre_tokenizer", "WhitespaceSplit");
    print_part(j, "post_processor", NULL), print_part(j, "decoder", NULL);
}

static void print_pipeline(const pl_tokenizer *t, const pl_added_token *added, pl_json *j, pl_str *word)
{
    static const char *const absent[] = {"truncation", "padding"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) pl_json_key(j, absent[i]), pl_json_null(j);
    print_added(t, added, j, word);
    print_normalizer(j, &t->pipeline);
    print_pre_tokenizer(j, &t->pipeline);
    print_post_processor(t, added, j, word);
    print_decoder(j, &t->pipeline);
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
    if (t->kind == PL_TOKENIZER_BPE) print_pipeline(t, added, &j, &word);
    if (t->kind == PL_TOKENIZER_WORDS) print_words_pipeline(t, added, &j, &word);
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

/* Added tokens of a GGUF file are looked for longest first over the whole text; that library takes the first one. Only
 * texts in which two of them overlap tell. */
pl_status pl_tokenizer_check_json(const pl_tokenizer *t, const char *name, pl_error *err)
{
    if (t->pipeline.pretoken.precut == PL_PRECUT_PUNCTUATION)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: a tokenizer.json has no place for the pre-tokenizer \"default\" of this GGUF file", name);
    if (t->score && !t->merge_count)
        return pl_fail(err, PL_E_USAGE,
                       "%s: a tokenizer of a GGUF file with scores has none of the merges of a tokenizer.json", name);
    return PL_OK;
}

pl_status pl_tokenizer_save(const pl_tokenizer *t, const char *path, pl_error *err)
{
    pl_str text = {0};
    PL_TRY(pl_tokenizer_check_json(t, path, err));
    pl_tokenizer_print(t, &text);
    pl_status status = text.failed ? pl_fail(err, PL_E_NOMEM, "%s: no memory for writing the tokenizer", path)
                                   : pl_file_write_all(path, pl_str_text(&text), text.bytes, err);
    pl_str_deinit(&text);
    return status;
}
