#include "data/text/tokenizer.h"

#include <stdio.h>
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

uint32_t *pl_vocab_place(const pl_vocab_entry *entry, uint32_t *slot, uint32_t mask, const void *text, size_t bytes)
{
    for (uint32_t at = (uint32_t)pl_hash_bytes(text, bytes);; at++) {
        uint32_t *found = &slot[at & mask];
        if (*found == 0) return found;
        const pl_vocab_entry *e = &entry[*found - 1];
        if (e->bytes == bytes && memcmp(e->text, text, bytes) == 0) return found;
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
    for (int i = 0; i < PL_SPECIALS; i++) t->special_id[i] = PL_TOKEN_NONE;
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
    /* A pair that is listed twice has the later rank, as in Hugging Face's reader, unless the first counts. */
    for (uint32_t i = 0; i < t->merge_count; i++) {
        uint32_t *slot = pair_place(t, t->merge[i].left, t->merge[i].right);
        if (*slot == 0 || !parts->is_gguf) *slot = i + 1;
    }
    return PL_OK;
}

/* One bit for each two characters that stand next to each other in a token of the model: between two others no merge
 * can happen, so a piece may be cut there. Where unknown characters are fused or overtaken by bytes, or a token such as
 * <0x0A> is in a merge, there is no such place. */
static pl_status index_inner(pl_tokenizer *t, pl_error *err)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < t->token_mask + 1; i++)
        pairs += t->token_slot[i] ? t->offset[t->token_slot[i]] - t->offset[t->token_slot[i] - 1] : 0;
    const uint32_t size = pl_table_size((uint32_t)(pairs < UINT32_MAX / 64 ? 2 * pairs : UINT32_MAX / 32));
    t->inner = pl_alloc(size / 8, 1);
    if (!t->inner) return no_memory(err);
    t->inner_mask = size - 1;
    for (uint32_t i = 0; i < t->token_mask + 1; i++) {
        if (!t->token_slot[i]) continue;
        const uint32_t id = t->token_slot[i] - 1, end = t->offset[id + 1];
        uint32_t before = PL_NOT_UTF8, c;
        for (uint32_t at = t->offset[id]; at < end; before = c) {
            const size_t bytes = pl_utf8_read(t->text + at, end - at, &c);
            const uint64_t bit = pl_hash_pair(before, c) & t->inner_mask;
            if (before != PL_NOT_UTF8) t->inner[bit / 8] |= (uint8_t)(1u << bit % 8);
            at += bytes ? (uint32_t)bytes : 1;
        }
    }
    return PL_OK;
}

static int has_all_bytes(const pl_tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++)
        if (t->byte_id[b] == PL_TOKEN_NONE) return 0;
    return 1;
}

/* Does a merge take a token that stands for a byte, or the unknown one? */
static int merges_bytes(const pl_tokenizer *t)
{
    for (uint32_t i = 0; i < t->merge_count; i++)
        for (unsigned k = 0; k < 2; k++) {
            size_t bytes;
            const uint32_t id = k ? t->merge[i].left : t->merge[i].right;
            const uint8_t *text = t->text + t->offset[id];
            bytes = t->offset[id + 1] - t->offset[id];
            if (pl_byte_of_name(text, bytes) >= 0 || id == t->unknown) return 1;
        }
    return 0;
}

pl_pipeline pl_pipeline_gpt2(int add_prefix_space)
{
    return (pl_pipeline){.is_bytes = 1,
                         .pretoken = {PL_SCANNER_GPT2, PL_PRECUT_NONE},
                         .prefix = add_prefix_space ? PL_PREFIX_MISSING : PL_PREFIX_NONE};
}

/* What GPT-2's pipeline does not have goes into the hash only where it is there: hashes of older files stay. */
static void hash_pipeline(XXH64_state_t *state, const pl_tokenizer *t)
{
    const pl_pipeline *p = &t->pipeline;
    const uint32_t all[] = {(uint32_t)p->is_bytes,
                            (uint32_t)p->is_utf8,
                            (uint32_t)p->has_nfc,
                            (uint32_t)p->has_blanks,
                            (uint32_t)p->cuts_blanks,
                            p->pretoken.scanner,
                            p->pretoken.precut,
                            p->prefix,
                            (uint32_t)p->byte_fallback,
                            (uint32_t)p->joins_bytes,
                            (uint32_t)p->strips_blank,
                            (uint32_t)t->raw.is_longest_first,
                            t->score != NULL};
    const pl_pipeline plain = pl_pipeline_gpt2(p->prefix == PL_PREFIX_MISSING);
    if (memcmp(p, &plain, sizeof plain) == 0 && !t->raw.is_longest_first) return;
    XXH64_update(state, all, sizeof all);
    XXH64_update(state, &p->before_count, sizeof p->before_count);
    XXH64_update(state, p->before, p->before_count * sizeof *p->before);
    XXH64_update(state, p->after, p->after_count * sizeof *p->after);
    if (t->score) XXH64_update(state, t->score, t->vocab * sizeof *t->score);
}

static void hash_strips(XXH64_state_t *state, const pl_tokenizer *t, const pl_added_token *a)
{
    const uint32_t strips[] = {(uint32_t)a->strips_left, (uint32_t)a->strips_right};
    if (a->strips_left || a->strips_right) XXH64_update(state, strips, sizeof strips);
    if (a->wanted != t->text + t->offset[a->id]) XXH64_update(state, a->wanted, a->wanted_bytes);
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
                       t->pipeline.prefix == PL_PREFIX_MISSING};
    XXH64_update(&state, head, sizeof head);
    XXH64_update(&state, t->offset, ((size_t)t->vocab + 1) * sizeof *t->offset);
    XXH64_update(&state, t->text, t->offset[t->vocab]);
    if (t->merge_count) XXH64_update(&state, t->merge, t->merge_count * sizeof *t->merge);
    for (uint32_t i = 0; i < t->added_count; i++) {
        XXH64_update(&state, &t->added[i].id, sizeof t->added[i].id);
        if (t->added_mixed) XXH64_update(&state, &t->added[i].normalized, sizeof t->added[i].normalized);
        hash_strips(&state, t, &t->added[i]);
    }
    if (t->kind == PL_TOKENIZER_BPE) hash_pipeline(&state, t);
    if (t->kind == PL_TOKENIZER_WORDS) XXH64_update(&state, &t->lower, sizeof t->lower);
    return XXH64_digest(&state);
}

void pl_tokenizer_hash_again(pl_tokenizer *t) { t->hash = hash_all(t); }

pl_status pl_tokenizer_finish_words(pl_tokenizer *t, const pl_word_parts *parts, pl_error *err)
{
    t->unknown = parts->unknown;
    t->lower = parts->lower;
    PL_TRY(pl_tokenizer_set_added(t, parts->added, parts->added_count, err));
    t->hash = hash_all(t);
    return PL_OK;
}

static pl_status copy_scores(pl_tokenizer *t, const float *score, pl_error *err)
{
    t->score = pl_alloc(t->vocab, sizeof *t->score);
    if (!t->score) return no_memory(err);
    memcpy(t->score, score, t->vocab * sizeof *score);
    return PL_OK;
}

static void find_bytes(pl_tokenizer *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        t->byte_id[b] = t->pipeline.is_bytes        ? pl_tokenizer_find(t, &(uint8_t){(uint8_t)b}, 1)
                        : t->pipeline.byte_fallback ? pl_tokenizer_find(t, (const uint8_t *)name, 6)
                                                    : PL_TOKEN_NONE;
    }
}

pl_status pl_tokenizer_finish_bpe(pl_tokenizer *t, const pl_bpe_parts *parts, pl_error *err)
{
    t->unknown = parts->unknown;
    t->fuse_unknown = parts->fuse_unknown;
    t->ignore_merges = parts->ignore_merges;
    t->pipeline = parts->pipeline;
    t->raw.is_longest_first = parts->is_gguf;
    if (parts->score) PL_TRY(copy_scores(t, parts->score, err));
    PL_TRY(copy_merges(t, parts, err));
    PL_TRY(pl_tokenizer_set_added(t, parts->added, parts->added_count, err));
    find_bytes(t);
    if (t->pipeline.pretoken.scanner == PL_SCANNER_NONE && !t->pipeline.is_bytes && !merges_bytes(t) &&
        (t->score || has_all_bytes(t) || (!t->fuse_unknown && !t->pipeline.byte_fallback)))
        PL_TRY(index_inner(t, err));
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
    pl_free(t->score);
    pl_free(t->inner);
    pl_tokenizer_free_added(t);
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

static const struct all_bytes {
    uint8_t byte[256];
} all_bytes = {{
#define FOUR(b)    (b), (b) + 1, (b) + 2, (b) + 3
#define SIXTEEN(b) FOUR(b), FOUR((b) + 4), FOUR((b) + 8), FOUR((b) + 12)
#define QUARTER(b) SIXTEEN(b), SIXTEEN((b) + 16), SIXTEEN((b) + 32), SIXTEEN((b) + 48)
    QUARTER(0), QUARTER(64), QUARTER(128), QUARTER(192)}};

size_t pl_fold_blanks(const uint8_t *text, size_t bytes, uint8_t *out)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; n++) {
        const bool is_blank = bytes - i >= 3 && memcmp(text + i, "\xe2\x96\x81", 3) == 0;
        out[n] = is_blank ? ' ' : text[i];
        i += is_blank ? 3 : 1;
    }
    return n;
}

int pl_byte_of_name(const uint8_t *text, size_t bytes)
{
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>') return -1;
    int value = 0;
    for (size_t i = 3; i < 5; i++) {
        const char *digits = "0123456789abcdef", *at = memchr(digits, text[i] | (text[i] > '9' ? 0x20 : 0), 16);
        if (!at) return -1;
        value = value * 16 + (int)(at - digits);
    }
    return value;
}

const uint8_t *pl_tokenizer_token(const pl_tokenizer *t, uint32_t id, size_t *bytes)
{
    *bytes = id < t->vocab ? t->offset[id + 1] - t->offset[id] : 0;
    const uint8_t *text = t->text + (id < t->vocab ? t->offset[id] : 0);
    const int byte = t->pipeline.joins_bytes ? pl_byte_of_name(text, *bytes) : -1;
    if (byte < 0) return text;
    *bytes = 1;
    return all_bytes.byte + byte;
}

uint32_t pl_tokenizer_special_id(const pl_tokenizer *t, pl_special which) { return t->special_id[which]; }
static void add_stop(uint32_t id, uint32_t *ids, uint32_t room, uint32_t *count)
{
    for (uint32_t i = 0; i < *count && i < room; i++)
        if (ids[i] == id) return;
    if (id == PL_TOKEN_NONE) return;
    if (*count < room) ids[*count] = id;
    ++*count;
}

uint32_t pl_tokenizer_stop_ids(const pl_tokenizer *t, uint32_t *ids, uint32_t room)
{
    static const char *const names[] = {"<|eot_id|>",      "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                                        "<|end_of_text|>", "</s>",       "<eos>",   "<|eom_id|>"};
    uint32_t count = 0;
    add_stop(t->special_id[PL_SPECIAL_EOS], ids, room, &count);
    if (!t->raw.is_longest_first) return count; /* not from a GGUF file */
    add_stop(t->special_id[PL_SPECIAL_EOT], ids, room, &count);
    add_stop(t->special_id[PL_SPECIAL_EOM], ids, room, &count);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_stop(pl_tokenizer_added_id(t, names[i]), ids, room, &count);
    return count;
}

uint32_t pl_tokenizer_added_count(const pl_tokenizer *t) { return t->added_count; }

uint32_t pl_tokenizer_added_at(const pl_tokenizer *t, uint32_t i, int *special)
{
    *special = t->added[i].special;
    return t->added[i].id;
}

const uint32_t *pl_tokenizer_template(const pl_tokenizer *t, int after, uint32_t *count)
{
    *count = after ? t->pipeline.after_count : t->pipeline.before_count;
    return after ? t->pipeline.after : t->pipeline.before;
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
    if (t->special_id[PL_SPECIAL_EOS] != PL_TOKEN_NONE) return t->special_id[PL_SPECIAL_EOS];
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
