#include "data/text/tokenizer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

/* ---- hashing ---- */

uint64_t pl_hash_bytes(const void *data, size_t bytes) { return XXH3_64bits(data, bytes); }

uint64_t pl_hash_pair(uint32_t left, uint32_t right)
{
    uint64_t x = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    return x ^ (x >> 29);
}

uint32_t pl_table_size(uint32_t count)
{
    uint32_t size = 16;
    while (size / 2 < count) size *= 2;
    return size;
}

/* ---- building ---- */

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory for the tokenizer's tables"); }

static pl_status copy_texts(pl_tokenizer *t, const pl_vocab_entry *entry, pl_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < t->vocab; i++) total += entry[i].bytes;
    if (total > UINT32_MAX)
        return pl_fail(err, PL_E_DATA, "the tokens of the vocabulary are longer than 4 GiB together");
    t->text = pl_alloc(total, 1);
    t->offset = pl_alloc((size_t)t->vocab + 1, sizeof *t->offset);
    if (!t->text || !t->offset) return no_memory(err);
    for (uint32_t i = 0, at = 0; i < t->vocab; i++) {
        if (entry[i].bytes) memcpy(t->text + at, entry[i].text, entry[i].bytes);
        if (entry[i].bytes > t->longest) t->longest = entry[i].bytes;
        t->offset[i + 1] = at += entry[i].bytes;
    }
    return PL_OK;
}

/* The slot of these bytes in the token table: the one that has them, or the free one where they would go. */
static uint32_t *token_place(const pl_tokenizer *t, const uint8_t *text, size_t bytes)
{
    for (uint32_t at = (uint32_t)pl_hash_bytes(text, bytes);; at++) {
        uint32_t *slot = &t->token_slot[at & t->token_mask];
        if (*slot == 0) return slot;
        uint32_t begin = t->offset[*slot - 1], length = t->offset[*slot] - begin;
        if (length == bytes && memcmp(t->text + begin, text, bytes) == 0) return slot;
    }
}

static pl_status index_tokens(pl_tokenizer *t, const pl_vocab_entry *entry, pl_error *err)
{
    uint32_t size = pl_table_size(t->vocab);
    t->token_slot = pl_alloc(size, sizeof *t->token_slot);
    if (!t->token_slot) return no_memory(err);
    t->token_mask = size - 1;
    for (uint32_t id = 0; id < t->vocab; id++) {
        if (!entry[id].in_model || entry[id].bytes == 0) continue;
        uint32_t *slot = token_place(t, entry[id].text, entry[id].bytes);
        if (*slot) return pl_fail(err, PL_E_DATA, "the ids %u and %u stand for the same token", *slot - 1, id);
        *slot = id + 1;
    }
    return PL_OK;
}

pl_status pl_tokenizer_begin(pl_tokenizer_kind kind, const pl_vocab_entry *entry, uint32_t vocab, pl_tokenizer **out,
                             pl_error *err)
{
    pl_tokenizer *t = *out = pl_alloc(1, sizeof *t);
    if (!t) return no_memory(err);
    t->kind = kind;
    t->vocab = vocab;
    t->unknown = PL_TOKEN_NONE;
    pl_status status = copy_texts(t, entry, err);
    if (status == PL_OK && (kind == PL_TOKENIZER_BPE || kind == PL_TOKENIZER_WORDS))
        status = index_tokens(t, entry, err);
    if (status != PL_OK) pl_tokenizer_destroy(t), *out = NULL;
    return status;
}

static uint32_t *pair_place(const pl_tokenizer *t, uint32_t left, uint32_t right)
{
    for (uint64_t at = pl_hash_pair(left, right);; at++) {
        uint32_t *slot = &t->pair_slot[at & t->pair_mask];
        if (*slot == 0) return slot;
        const pl_merge *m = &t->merge[*slot - 1];
        if (m->left == left && m->right == right) return slot;
    }
}

static pl_status copy_merges(pl_tokenizer *t, const pl_bpe_parts *parts, pl_error *err)
{
    uint32_t size = pl_table_size(parts->merge_count);
    t->merge = pl_alloc(parts->merge_count, sizeof *t->merge);
    t->pair_slot = pl_alloc(size, sizeof *t->pair_slot);
    if (!t->merge || !t->pair_slot) return no_memory(err);
    t->pair_mask = size - 1;
    t->merge_count = parts->merge_count;
    if (t->merge_count) memcpy(t->merge, parts->merge, t->merge_count * sizeof *t->merge);
    /* A pair that is listed twice has the later rank, as in Hugging Face's reader. */
    for (uint32_t i = 0; i < t->merge_count; i++) *pair_place(t, t->merge[i].left, t->merge[i].right) = i + 1;
    return PL_OK;
}

/* Longest first; among equals by id: the order of a file's list has no meaning and must not reach the hash. */
static int goes_before(const pl_added_token *a, const pl_added_token *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->id < b->id;
}

static pl_status copy_added(pl_tokenizer *t, const pl_added_token *added, uint32_t count, pl_error *err)
{
    t->added = pl_alloc(count, sizeof *t->added);
    if (!t->added) return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        pl_added_token add = added[i];
        uint32_t at = t->added_count++;
        for (; at > 0 && goes_before(&add, &t->added[at - 1]); at--) t->added[at] = t->added[at - 1];
        t->added[at] = add;
        t->added_first[t->text[t->offset[add.id]]] = 1;
        if (add.bytes > t->added_longest) t->added_longest = add.bytes;
        if (add.normalized != added[0].normalized) t->added_mixed = 1;
    }
    return PL_OK;
}

/* Everything that decides ids or the text of ids, in a fixed order. */
static uint64_t hash_all(const pl_tokenizer *t)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    uint32_t head[] = {1,
                       t->kind,
                       t->vocab,
                       t->merge_count,
                       t->added_count,
                       t->unknown,
                       (uint32_t)t->fuse_unknown,
                       (uint32_t)t->ignore_merges,
                       (uint32_t)t->add_prefix_space};
    XXH64_update(&state, head, sizeof head);
    XXH64_update(&state, t->offset, ((size_t)t->vocab + 1) * sizeof *t->offset);
    XXH64_update(&state, t->text, t->offset[t->vocab]);
    if (t->merge_count) XXH64_update(&state, t->merge, t->merge_count * sizeof *t->merge);
    for (uint32_t i = 0; i < t->added_count; i++) {
        XXH64_update(&state, &t->added[i].id, sizeof t->added[i].id);
        if (t->added_mixed) XXH64_update(&state, &t->added[i].normalized, sizeof t->added[i].normalized);
    }
    if (t->kind == PL_TOKENIZER_WORDS) XXH64_update(&state, &t->lower, sizeof t->lower);
    return XXH64_digest(&state);
}

pl_status pl_tokenizer_finish_words(pl_tokenizer *t, const pl_word_parts *parts, pl_error *err)
{
    t->unknown = parts->unknown;
    t->lower = parts->lower;
    PL_TRY(copy_added(t, parts->added, parts->added_count, err));
    t->hash = hash_all(t);
    return PL_OK;
}

pl_status pl_tokenizer_finish_bpe(pl_tokenizer *t, const pl_bpe_parts *parts, pl_error *err)
{
    t->unknown = parts->unknown;
    t->fuse_unknown = parts->fuse_unknown;
    t->ignore_merges = parts->ignore_merges;
    t->add_prefix_space = parts->add_prefix_space;
    PL_TRY(copy_merges(t, parts, err));
    PL_TRY(copy_added(t, parts->added, parts->added_count, err));
    for (unsigned b = 0; b < 256; b++) t->byte_id[b] = pl_tokenizer_find(t, &(uint8_t){(uint8_t)b}, 1);
    t->hash = hash_all(t);
    return PL_OK;
}

pl_status pl_tokenizer_create_bytes(pl_tokenizer **out, pl_error *err)
{
    uint8_t all[256];
    pl_vocab_entry entry[256];
    for (unsigned b = 0; b < 256; b++) {
        all[b] = (uint8_t)b;
        entry[b] = (pl_vocab_entry){&all[b], 1, 1};
    }
    PL_TRY(pl_tokenizer_begin(PL_TOKENIZER_BYTES, entry, 256, out, err));
    (*out)->hash = hash_all(*out);
    return PL_OK;
}

static pl_status fill_chars(pl_tokenizer *t, const uint32_t *code_points, size_t count, pl_error *err)
{
    t->code_point = pl_alloc(count, sizeof *t->code_point);
    if (!t->code_point) return no_memory(err);
    if (count) memcpy(t->code_point, code_points, count * sizeof *code_points);
    t->unknown = 0;
    t->hash = hash_all(t);
    return PL_OK;
}

pl_status pl_tokenizer_create_chars(const uint32_t *code_points, size_t count, pl_tokenizer **out, pl_error *err)
{
    *out = NULL;
    if (count >= PL_VOCAB_MAX)
        return pl_fail(err, PL_E_DATA, "%zu characters are more than a vocabulary may have", count);
    pl_vocab_entry *entry = pl_alloc(count + 1, sizeof *entry);
    uint8_t(*text)[4] = pl_alloc(count + 1, sizeof *text);
    pl_status status = entry && text ? PL_OK : no_memory(err);
    if (status == PL_OK) {
        entry[0] =
            (pl_vocab_entry){(const uint8_t *)"\xef\xbf\xbd", 3, 1}; /* an unknown character is shown as U+FFFD */
        for (size_t i = 0; i < count; i++)
            entry[i + 1] = (pl_vocab_entry){text[i], (uint32_t)pl_utf8_write(code_points[i], text[i]), 1};
        status = pl_tokenizer_begin(PL_TOKENIZER_CHARS, entry, (uint32_t)count + 1, out, err);
    }
    if (status == PL_OK) status = fill_chars(*out, code_points, count, err);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    pl_free(entry);
    pl_free(text);
    return status;
}

void pl_tokenizer_destroy(pl_tokenizer *t)
{
    if (!t) return;
    pl_free(t->text);
    pl_free(t->offset);
    pl_free(t->merge);
    pl_free(t->pair_slot);
    pl_free(t->token_slot);
    pl_free(t->added);
    pl_free(t->code_point);
    pl_free(t);
}

/* ---- asking ---- */

static const char *const kind_names[PL_TOKENIZER_KINDS] = {"bpe", "bytes", "chars", "words"};

pl_tokenizer_kind pl_tokenizer_kind_of(const pl_tokenizer *t) { return t->kind; }
const char *pl_tokenizer_kind_name(pl_tokenizer_kind kind) { return kind_names[kind]; }
uint32_t pl_tokenizer_vocab_size(const pl_tokenizer *t) { return t->vocab; }
uint32_t pl_tokenizer_longest_token(const pl_tokenizer *t) { return t->longest; }
uint64_t pl_tokenizer_hash(const pl_tokenizer *t) { return t->hash; }
uint32_t pl_tokenizer_unknown_id(const pl_tokenizer *t) { return t->unknown; }

int pl_tokenizer_kind_parse(const char *name, pl_tokenizer_kind *kind)
{
    for (int k = 0; k < PL_TOKENIZER_KINDS; k++) {
        if (strcmp(name, kind_names[k]) != 0) continue;
        *kind = (pl_tokenizer_kind)k;
        return 0;
    }
    return -1;
}

const uint8_t *pl_tokenizer_token(const pl_tokenizer *t, uint32_t id, size_t *bytes)
{
    *bytes = id < t->vocab ? t->offset[id + 1] - t->offset[id] : 0;
    return t->text + (id < t->vocab ? t->offset[id] : 0);
}

uint32_t pl_tokenizer_added_id(const pl_tokenizer *t, const char *content)
{
    size_t length = strlen(content);
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].bytes == length && memcmp(t->text + t->offset[t->added[i].id], content, length) == 0)
            return t->added[i].id;
    return PL_TOKEN_NONE;
}

uint32_t pl_tokenizer_end_id(const pl_tokenizer *t)
{
    const uint32_t end = pl_tokenizer_added_id(t, PL_END_OF_TEXT);
    return end == PL_TOKEN_NONE && t->kind == PL_TOKENIZER_WORDS ? pl_tokenizer_added_id(t, "<EOS>") : end;
}

uint32_t pl_tokenizer_rank(const pl_tokenizer *t, uint32_t left, uint32_t right)
{
    uint32_t found = *pair_place(t, left, right);
    return found ? found - 1 : PL_TOKEN_NONE;
}

uint32_t pl_tokenizer_find(const pl_tokenizer *t, const uint8_t *text, size_t bytes)
{
    uint32_t found = *token_place(t, text, bytes);
    return found ? found - 1 : PL_TOKEN_NONE;
}

uint32_t pl_tokenizer_char_id(const pl_tokenizer *t, uint32_t code_point)
{
    uint32_t low = 0, high = t->vocab - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->code_point[middle] < code_point)
            low = middle + 1;
        else
            high = middle;
    }
    return low < t->vocab - 1 && t->code_point[low] == code_point ? low + 1 : 0;
}
