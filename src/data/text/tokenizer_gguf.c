#include "data/text/tokenizer_gguf.h"

#include <string.h>

#include "base/alloc.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer_file.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

enum { RAW_TOKEN_MAX = 3 * PL_TOKEN_BYTES_MAX };

typedef struct reader {
    const pl_gguf_tokenizer *of;
    pl_error *err;
    bool is_bytes; /* "gpt2" */
    uint64_t texts_bytes;
    uint8_t *texts;        /* as they stand in the file, in a row */
    pl_vocab_entry *entry; /* [tokens] */
    uint8_t *converted;    /* what they stand for, in a row */
    uint32_t *slot, slot_mask;
    pl_added_token *added;
    pl_merge *merge;
    float *score;
    pl_bpe_parts parts;
} reader;

#define BAD(...) pl_fail(r->err, PL_E_DATA, __VA_ARGS__)

static pl_status no_memory(const reader *r)
{
    return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for reading the tokenizer", r->of->name);
}

static pl_gguf_token_type type_of(const reader *r, uint32_t id)
{
    int32_t type = PL_GGUF_TOKEN_NORMAL;
    if (r->of->types) memcpy(&type, (const char *)r->of->types + 4 * (size_t)id, sizeof type);
    return (pl_gguf_token_type)type;
}

static bool is_added(pl_gguf_token_type type)
{
    return type == PL_GGUF_TOKEN_UNKNOWN || type == PL_GGUF_TOKEN_CONTROL || type == PL_GGUF_TOKEN_USER_DEFINED;
}

/* ---- what the keys say ---- */

const pl_gguf_pre pl_gguf_pres[] = {
    {"gpt-2", {PL_SCANNER_GPT2, PL_PRECUT_NONE}, 0, 0},
    {"smollm", {PL_SCANNER_GPT2, PL_PRECUT_EACH_DIGIT}, 0, 0},
    {"llama-bpe", {PL_SCANNER_LLAMA3, PL_PRECUT_NONE}, 0, 1},
    {"llama3", {PL_SCANNER_LLAMA3, PL_PRECUT_NONE}, 0, 1},
    {"llama-v3", {PL_SCANNER_LLAMA3, PL_PRECUT_NONE}, 0, 1},
    {"qwen2", {PL_SCANNER_QWEN2, PL_PRECUT_NONE}, 1, 0},
    {"default", {PL_SCANNER_GPT2, PL_PRECUT_PUNCTUATION}, 0, 0},
    {NULL},
};

static pl_status read_pre(reader *r)
{
    const char *pre = r->of->pre ? r->of->pre : "default";
    for (const pl_gguf_pre *known = pl_gguf_pres; known->name; known++) {
        if (strcmp(pre, known->name) != 0) continue;
        r->parts.pipeline.pretoken = known->rule;
        r->parts.pipeline.has_nfc = known->has_nfc;
        r->parts.ignore_merges = known->ignore_merges;
        return PL_OK;
    }
    return BAD(
        "%s: the pre-tokenizer \"%.60s\" (tokenizer.ggml.pre) is not supported; gpt-2, smollm, llama-bpe, qwen2 or "
        "default was expected",
        r->of->name, pre);
}

static pl_status special_of(const reader *r, pl_special which, uint32_t otherwise, uint32_t *id)
{
    const int64_t given = r->of->special_id[which];
    *id = given == PL_GGUF_ABSENT ? otherwise : (uint32_t)given;
    if (given == PL_GGUF_ABSENT && (otherwise == PL_TOKEN_NONE || otherwise < r->of->tokens)) return PL_OK;
    if (given >= 0 && given < r->of->tokens) return PL_OK;
    return BAD("%s: the id %lld of a special token is not below the number of tokens, %u", r->of->name,
               (long long)(given == PL_GGUF_ABSENT ? otherwise : given), r->of->tokens);
}

static pl_status read_special(const reader *r, uint32_t id[PL_SPECIALS])
{
    static const uint32_t of_llama[] = {[PL_SPECIAL_BOS] = 1, [PL_SPECIAL_EOS] = 2, [PL_SPECIAL_UNKNOWN] = 0};
    for (int i = 0; i < PL_SPECIALS; i++) {
        const uint32_t otherwise = !r->is_bytes && i <= PL_SPECIAL_UNKNOWN ? of_llama[i] : PL_TOKEN_NONE;
        PL_TRY(special_of(r, (pl_special)i, otherwise, &id[i]));
    }
    return PL_OK;
}

static pl_status read_keys(reader *r, uint32_t special[PL_SPECIALS])
{
    const pl_gguf_tokenizer *g = r->of;
    pl_pipeline *p = &r->parts.pipeline;
    const char *model = g->model ? g->model : "";
    r->is_bytes = strcmp(model, "gpt2") == 0;
    if (!r->is_bytes && strcmp(model, "llama") != 0)
        return BAD("%s: the tokenizer \"%.60s\" (tokenizer.ggml.model) is not supported; gpt2 or llama was expected",
                   g->name, model);
    if (!g->tokens || g->tokens > PL_VOCAB_MAX || g->merges > PL_MERGES_MAX)
        return BAD("%s: has %u tokens and %u merges; 1 to %d and at most %d were expected", g->name, g->tokens,
                   g->merges, PL_VOCAB_MAX, PL_MERGES_MAX);
    if (r->is_bytes ? !g->merges : !g->scores)
        return BAD("%s: tokenizer.ggml.%s was expected", g->name, r->is_bytes ? "merges" : "scores");
    *p = (pl_pipeline){.is_bytes = r->is_bytes, .is_utf8 = 1};
    r->parts.is_gguf = 1;
    PL_TRY(read_special(r, special));
    r->parts.unknown = r->is_bytes ? PL_TOKEN_NONE : special[PL_SPECIAL_UNKNOWN];
    if (r->is_bytes) {
        PL_TRY(read_pre(r));
    } else {
        p->has_blanks = p->byte_fallback = p->joins_bytes = 1;
        p->strips_blank = g->add_space_prefix != 0;
        p->prefix = g->add_space_prefix != 0 ? PL_PREFIX_ALWAYS : PL_PREFIX_NONE;
    }
    const bool bos = g->add_bos == PL_GGUF_ABSENT ? !r->is_bytes || r->parts.ignore_merges : g->add_bos;
    if (bos && special[PL_SPECIAL_BOS] != PL_TOKEN_NONE) p->before[p->before_count++] = special[PL_SPECIAL_BOS];
    if (g->add_eos == 1 && special[PL_SPECIAL_EOS] != PL_TOKEN_NONE)
        p->after[p->after_count++] = special[PL_SPECIAL_EOS];
    return PL_OK;
}

/* ---- tokens ---- */

static pl_status token_at(const reader *r, uint32_t i, const char **text, size_t *bytes)
{
    PL_TRY(r->of->token(r->of->context, i, text, bytes, r->err));
    if (*bytes <= RAW_TOKEN_MAX) return PL_OK;
    return BAD("%s: token %u has %zu bytes; at most %d were expected", r->of->name, i, *bytes, RAW_TOKEN_MAX);
}

static pl_status count_texts(reader *r, uint32_t *added)
{
    const char *text;
    size_t bytes;
    *added = 0;
    for (uint32_t i = 0; i < r->of->tokens; i++) {
        PL_TRY(token_at(r, i, &text, &bytes));
        r->texts_bytes += bytes;
        *added += is_added(type_of(r, i));
    }
    return *added <= PL_ADDED_MAX ? PL_OK
                                  : BAD("%s: more than %d special tokens are not supported", r->of->name, PL_ADDED_MAX);
}

/* A text that is there twice is that of the later token, as in llama.cpp. */
static pl_status read_texts(reader *r)
{
    size_t at = 0;
    for (uint32_t i = 0; i < r->of->tokens; i++) {
        const char *text;
        size_t bytes;
        PL_TRY(token_at(r, i, &text, &bytes));
        if (bytes > r->texts_bytes - at) return BAD("%s: the tokens are longer than before", r->of->name);
        if (bytes) memcpy(r->texts + at, text, bytes);
        r->entry[i] = (pl_vocab_entry){.text = r->texts + at, .bytes = (uint32_t)bytes};
        at += bytes;
        if (!bytes) continue;
        uint32_t *slot = pl_vocab_place(r->entry, r->slot, r->slot_mask, text, bytes);
        if (*slot) r->entry[*slot - 1].in_model = 0;
        *slot = i + 1;
        r->entry[i].in_model = 1;
    }
    return PL_OK;
}

static pl_added_token *add(reader *r, uint32_t id, pl_gguf_token_type type)
{
    const pl_vocab_entry *e = &r->entry[id];
    if (!e->bytes || e->bytes > PL_TOKEN_BYTES_MAX) return NULL;
    pl_added_token *a = &r->added[r->parts.added_count++];
    *a = (pl_added_token){.id = id,
                          .special = type != PL_GGUF_TOKEN_USER_DEFINED,
                          .in_model = e->in_model,
                          .wanted = e->text,
                          .wanted_bytes = e->bytes};
    return a;
}

static bool is_plain(const uint8_t *text, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f) return false;
    return true;
}

/* What a token stands for, at `out`. Special tokens are in no merge: plain text never becomes one. */
static pl_status convert(reader *r, uint32_t id, uint8_t *out)
{
    pl_vocab_entry *e = &r->entry[id];
    const pl_gguf_token_type type = type_of(r, id);
    uint32_t other, bytes = e->bytes;
    pl_added_token *added = is_added(type) ? add(r, id, type) : NULL;
    int64_t made = -1;
    if (type == PL_GGUF_TOKEN_UNKNOWN || type == PL_GGUF_TOKEN_CONTROL)
        e->in_model = 0;
    else if (r->is_bytes && type == PL_GGUF_TOKEN_USER_DEFINED)
        e->in_model &= is_plain(e->text, bytes);
    else if (r->is_bytes)
        made = pl_alphabet_decode(e->text, bytes, out, &other), e->in_model &= made >= 0;
    else if (!bytes || !memchr(e->text, ' ', bytes))
        made = (int64_t)pl_fold_blanks(e->text, bytes, out);
    else
        e->in_model = 0; /* no normal form has a blank */
    if (made < 0) memcpy(out, e->text, bytes);
    e->text = out;
    e->bytes = made < 0 ? bytes : (uint32_t)made;
    if (added) added->bytes = e->bytes;
    if (e->bytes <= PL_TOKEN_BYTES_MAX) return PL_OK;
    return BAD("%s: token %u has %u bytes; at most %d were expected", r->of->name, id, e->bytes, PL_TOKEN_BYTES_MAX);
}

static pl_status convert_all(reader *r)
{
    uint8_t *out = r->converted;
    for (uint32_t i = 0; i < r->of->tokens; i++) {
        PL_TRY(convert(r, i, out));
        out += r->entry[i].bytes;
    }
    r->parts.added = r->added;
    if (r->is_bytes) return PL_OK;
    for (uint32_t i = 0; i < r->of->tokens; i++)
        if (r->entry[i].in_model && r->entry[i].bytes == 1 && r->entry[i].text[0] == ' ') return PL_OK;
    return BAD("%s: the vocabulary lacks U+2581, which stands for blanks", r->of->name);
}

/* ---- merges and scores ---- */

static uint32_t find_raw(const reader *r, const char *text, size_t bytes)
{
    const uint32_t found = bytes ? *pl_vocab_place(r->entry, r->slot, r->slot_mask, text, bytes) : 0;
    return found ? found - 1 : PL_TOKEN_NONE;
}

/* "left right", cut at the first blank after the first byte; one of tokens that are not there counts for nothing. */
static pl_status read_merges(reader *r)
{
    for (uint32_t i = 0; i < r->of->merges; i++) {
        char joined[2 * RAW_TOKEN_MAX];
        const char *text, *blank;
        size_t bytes;
        PL_TRY(r->of->merge(r->of->context, i, &text, &bytes, r->err));
        blank = bytes > 2 && bytes <= sizeof joined ? memchr(text + 1, ' ', bytes - 1) : NULL;
        if (!blank) return BAD("%s: merge %u is not of the form \"left right\"", r->of->name, i);
        const size_t left = (size_t)(blank - text), right = bytes - left - 1;
        memcpy(joined, text, left);
        memcpy(joined + left, blank + 1, right);
        const pl_merge m = {find_raw(r, text, left), find_raw(r, blank + 1, right), find_raw(r, joined, left + right)};
        if (m.left == PL_TOKEN_NONE || m.right == PL_TOKEN_NONE || m.id == PL_TOKEN_NONE) continue;
        r->merge[r->parts.merge_count++] = m;
    }
    r->parts.merge = r->merge;
    return PL_OK;
}

/* ---- all ---- */

static pl_status make_tables(reader *r, uint32_t added)
{
    const uint32_t tokens = r->of->tokens, merges = r->is_bytes ? r->of->merges : 0;
    r->slot_mask = pl_table_size(tokens) - 1;
    r->texts = pl_alloc(r->texts_bytes + 1, 1);
    r->converted = pl_alloc(r->texts_bytes + 1, 1);
    r->entry = pl_alloc(tokens, sizeof *r->entry);
    r->slot = pl_alloc((size_t)r->slot_mask + 1, sizeof *r->slot);
    r->added = pl_alloc((size_t)added + 1, sizeof *r->added);
    r->merge = pl_alloc((size_t)merges + 1, sizeof *r->merge);
    r->score = pl_alloc(tokens, sizeof *r->score);
    if (!r->texts || !r->converted || !r->entry || !r->slot || !r->added || !r->merge || !r->score) return no_memory(r);
    if (!r->is_bytes) memcpy(r->score, r->of->scores, tokens * sizeof *r->score);
    r->parts.score = r->is_bytes ? NULL : r->score;
    return PL_OK;
}

static pl_status create(reader *r, pl_tokenizer **out)
{
    uint32_t added, special[PL_SPECIALS];
    PL_TRY(read_keys(r, special));
    PL_TRY(count_texts(r, &added));
    PL_TRY(make_tables(r, added));
    PL_TRY(read_texts(r));
    if (r->is_bytes) PL_TRY(read_merges(r));
    PL_TRY(convert_all(r));
    pl_status status = pl_tokenizer_begin(PL_TOKENIZER_BPE, r->entry, r->of->tokens, out, r->err);
    if (status != PL_OK) return pl_fail_prefix(r->err, status, "%s", r->of->name);
    memcpy((*out)->special_id, special, sizeof special);
    return pl_tokenizer_finish_bpe(*out, &r->parts, r->err);
}

pl_status pl_tokenizer_create_gguf(const pl_gguf_tokenizer *g, pl_tokenizer **out, pl_error *err)
{
    reader r = {.of = g, .err = err};
    *out = NULL;
    pl_status status = create(&r, out);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    pl_free(r.texts), pl_free(r.converted), pl_free(r.entry), pl_free(r.slot), pl_free(r.added), pl_free(r.merge);
    pl_free(r.score);
    return status;
}

pl_status pl_tokenizer_gguf_bytes(const pl_gguf_tokenizer *g, uint64_t *bytes, pl_error *err)
{
    reader r = {.of = g, .err = err};
    uint32_t added, special[PL_SPECIALS];
    *bytes = 0;
    PL_TRY(read_keys(&r, special));
    PL_TRY(count_texts(&r, &added));
    const uint64_t tokens = g->tokens, merges = r.is_bytes ? g->merges : 0, slot = 4 * sizeof(uint32_t);
    const uint64_t read = 2 * r.texts_bytes + tokens * (sizeof(pl_vocab_entry) + sizeof(float) + slot) +
                          added * sizeof(pl_added_token) + merges * sizeof(pl_merge);
    const uint64_t made = 3 * r.texts_bytes + tokens * (2 * sizeof(uint32_t) + slot + 1) +
                          added * (sizeof(pl_added_token) + 2 * sizeof(void *)) + merges * (sizeof(pl_merge) + slot) +
                          sizeof(pl_tokenizer);
    *bytes = read + made + 32 * (64 + PL_ALLOC_HEADER_BYTES);
    return PL_OK;
}
