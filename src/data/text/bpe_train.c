/* First, words are counted (words.h). Then each word is a row of symbols in one flat array, rows ended by END:
 *
 *      t h e END _ c a t END …          after t h -> th:        th e END END _ c a t END …
 *
 * A merge searches the array for its pair (eight places at a time), closes the gap inside the row, pads the row with
 * END, and adjusts the counts of the neighbouring pairs; when a quarter of the array is padding it is packed. This
 * needs two bytes a place where lists of occurrences need ten, and for vocabularies up to tens of thousands the
 * searching costs less than the lists. Invariant: pairs = how often each pair of neighbours occurs, each row as often
 * as its word.
 *
 * Idea and numbering: Sennrich, Haddow, Birch (ACL 2016) and Hugging Face's tokenizers (models/bpe/trainer.rs). */
#include "data/text/bpe_train.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/alphabet.h"
#include "data/text/pairs.h"
#include "data/text/pretoken.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/words.h"

enum { END = 0xffff, WINDOW = 65536 };

struct pl_bpe_trainer {
    pl_bpe_options options;
    pl_words words;
    pl_pairs pairs;
    uint16_t *symbol;
    size_t places, padding; /* of symbol */
    uint32_t vocab;         /* tokens so far */
    uint32_t bytes_begin;   /* id of the first byte */
    uint8_t *text;          /* [options.vocab · room]: token texts */
    uint8_t *length;        /* [options.vocab] */
    uint32_t *hash;         /* [options.vocab]: of the texts */
    pl_merge *merge;
    uint32_t merge_count;
    bool closed; /* all text is in, pairs are counted */
    size_t held;
    uint8_t window[WINDOW];
};

/* ---- options and memory ---- */

pl_bpe_options pl_bpe_options_default(uint32_t vocab)
{
    return (pl_bpe_options){.vocab = vocab,
                            .special = PL_END_OF_TEXT,
                            .min_count = 2,
                            .word_bytes = 128,
                            .word_limit = 1 << 18,
                            .word_text_limit = 5 << 19};
}

pl_status pl_bpe_options_check(const pl_bpe_options *o, pl_error *err)
{
    uint32_t least = 256 + (o->special != NULL);
    if (o->vocab < least || o->vocab > PL_BPE_VOCAB_MAX)
        return pl_fail(err, PL_E_CONFIG,
                       "vocab_size is %u; byte-level BPE needs at least %u (the 256 bytes%s) and is trained up to %d",
                       o->vocab, least, o->special ? " and the special token" : "", PL_BPE_VOCAB_MAX);
    if (o->special && (!*o->special || strlen(o->special) > PL_BPE_WORD_BYTES_MAX))
        return pl_fail(err, PL_E_CONFIG, "the special token has %zu bytes; 1 to %d were expected", strlen(o->special),
                       PL_BPE_WORD_BYTES_MAX);
    if (o->word_bytes < PL_PRETOKEN_CAP_MIN || o->word_bytes > PL_BPE_WORD_BYTES_MAX)
        return pl_fail(err, PL_E_CONFIG, "words are cut at %u bytes; %d to %d were expected", o->word_bytes,
                       PL_PRETOKEN_CAP_MIN, PL_BPE_WORD_BYTES_MAX);
    if (o->word_limit < 16 || o->word_limit > 1u << 28 || o->word_text_limit > 1u << 30 ||
        o->word_text_limit < 16 * o->word_bytes)
        return pl_fail(err, PL_E_CONFIG,
                       "the table of words has room for %u words and %u bytes; 16 to 2^28 words and 16 words' length "
                       "to 2^30 bytes were expected",
                       o->word_limit, o->word_text_limit);
    return PL_OK;
}

static uint32_t text_room(const pl_bpe_options *o)
{
    uint32_t special = o->special ? (uint32_t)strlen(o->special) : 0;
    return special > o->word_bytes ? special : o->word_bytes;
}

static size_t place_limit(const pl_bpe_options *o) { return (size_t)o->word_text_limit + o->word_limit; }

/* Different pairs at one time: no more than bytes in words, and no more than pairs of ids. */
static uint32_t pair_limit(const pl_bpe_options *o, uint32_t text_bytes)
{
    uint64_t all = (uint64_t)o->vocab * o->vocab;
    return (uint32_t)(all < text_bytes ? all : text_bytes);
}

/* Merges into an existing token do not count towards vocab; there cannot be many. */
static uint32_t merge_limit(const pl_bpe_options *o) { return 2 * o->vocab; }

static uint64_t table_bytes(const pl_bpe_options *o)
{
    return (uint64_t)o->vocab * (text_room(o) + sizeof(uint8_t) + sizeof(uint32_t)) + merge_limit(o) * sizeof(pl_merge);
}

uint64_t pl_bpe_train_bytes(const pl_bpe_options *o)
{
    uint64_t finished =
        (uint64_t)o->vocab * (sizeof(pl_vocab_entry) + text_room(o)) + /* the tokenizer that comes out */
        (pl_table_size(o->vocab) + pl_table_size(merge_limit(o)) + o->vocab) * sizeof(uint32_t) +
        merge_limit(o) * sizeof(pl_merge) + sizeof(pl_tokenizer);
    return sizeof(pl_bpe_trainer) + pl_words_bytes(o->word_limit, o->word_text_limit) +
           place_limit(o) * sizeof(uint16_t) + pl_pairs_bytes(pair_limit(o, o->word_text_limit)) + table_bytes(o) +
           finished;
}

/* ---- tokens ---- */

static uint8_t *token_text(const pl_bpe_trainer *t, uint32_t id)
{
    return t->text + (size_t)id * text_room(&t->options);
}

static uint32_t add_token(pl_bpe_trainer *t, const void *text, uint32_t bytes)
{
    uint32_t id = t->vocab++;
    memcpy(token_text(t, id), text, bytes);
    t->length[id] = (uint8_t)bytes;
    t->hash[id] = (uint32_t)pl_hash_bytes(text, bytes);
    return id;
}

static uint32_t find_token(const pl_bpe_trainer *t, const uint8_t *text, uint32_t bytes)
{
    uint32_t hash = (uint32_t)pl_hash_bytes(text, bytes);
    for (uint32_t id = 0; id < t->vocab; id++)
        if (t->hash[id] == hash && t->length[id] == bytes && memcmp(token_text(t, id), text, bytes) == 0) return id;
    return PL_TOKEN_NONE;
}

static void add_alphabet(pl_bpe_trainer *t)
{
    uint8_t order[256];
    pl_alphabet_order(order);
    if (t->options.special) add_token(t, t->options.special, (uint32_t)strlen(t->options.special));
    t->bytes_begin = t->vocab;
    for (unsigned i = 0; i < 256; i++) add_token(t, &order[i], 1);
}

/* ---- life ---- */

pl_status pl_bpe_trainer_create(const pl_bpe_options *options, pl_bpe_trainer **out, pl_error *err)
{
    *out = NULL;
    PL_TRY(pl_bpe_options_check(options, err));
    pl_bpe_trainer *t = pl_alloc(1, sizeof *t);
    if (!t) return pl_fail(err, PL_E_NOMEM, "no memory for training a tokenizer");
    t->options = *options;
    t->text = pl_alloc(options->vocab, text_room(options));
    t->length = pl_alloc(options->vocab, sizeof *t->length);
    t->hash = pl_alloc(options->vocab, sizeof *t->hash);
    t->merge = pl_alloc(merge_limit(options), sizeof *t->merge);
    pl_status status = t->text && t->length && t->hash && t->merge
                           ? pl_words_init(&t->words, options->word_limit, options->word_text_limit, err)
                           : pl_fail(err, PL_E_NOMEM, "no memory for training a tokenizer");
    if (status != PL_OK) {
        pl_bpe_trainer_destroy(t);
        return status;
    }
    add_alphabet(t);
    *out = t;
    return PL_OK;
}

void pl_bpe_trainer_destroy(pl_bpe_trainer *t)
{
    if (!t) return;
    pl_words_deinit(&t->words);
    pl_pairs_deinit(&t->pairs);
    pl_free(t->symbol);
    pl_free(t->text);
    pl_free(t->length);
    pl_free(t->hash);
    pl_free(t->merge);
    pl_free(t);
}

uint64_t pl_bpe_trainer_evicted(const pl_bpe_trainer *t) { return t->words.evicted; }

/* ---- counting words ---- */

static void count_window(pl_bpe_trainer *t, int final)
{
    size_t at = 0;
    while (at < t->held) {
        size_t bytes = pl_pretoken_length(pl_pipeline_gpt2(0).pretoken, t->window + at, t->held - at, final,
                                          t->options.word_bytes);
        if (bytes == 0) break;
        pl_words_add(&t->words, t->window + at, (uint32_t)bytes);
        at += bytes;
    }
    t->held -= at;
    memmove(t->window, t->window + at, t->held);
}

void pl_bpe_trainer_feed(pl_bpe_trainer *t, const void *text, size_t bytes)
{
    const uint8_t *from = text;
    while (bytes) {
        size_t room = WINDOW - t->held, portion = bytes < room ? bytes : room;
        memcpy(t->window + t->held, from, portion);
        t->held += portion, from += portion, bytes -= portion;
        count_window(t, 0);
    }
}

void pl_bpe_trainer_cut(pl_bpe_trainer *t) { count_window(t, 1); }

/* ---- symbols and pairs ---- */

/* Words become rows of symbols; from here on a word's offset and bytes are those of its row. */
static pl_status build_rows(pl_bpe_trainer *t, pl_error *err)
{
    uint16_t id_of[256];
    const pl_words *w = &t->words;
    for (uint32_t i = 0; i < 256; i++) id_of[*token_text(t, t->bytes_begin + i)] = (uint16_t)(t->bytes_begin + i);
    t->places = (size_t)w->text_bytes + w->count;
    t->symbol = pl_alloc(t->places, sizeof *t->symbol);
    if (!t->symbol) return pl_fail(err, PL_E_NOMEM, "no memory for training a tokenizer (%zu symbols)", t->places);
    for (uint32_t i = 0; i < w->count; i++) {
        pl_word *word = &w->word[i];
        uint16_t *row = t->symbol + word->offset + i;
        for (uint32_t j = 0; j < word->bytes; j++) row[j] = id_of[w->text[word->offset + j]];
        row[word->bytes] = END;
        word->offset += i;
    }
    return PL_OK;
}

static void count_pairs(pl_bpe_trainer *t)
{
    for (uint32_t i = 0; i < t->words.count; i++) {
        const pl_word *word = &t->words.word[i];
        const uint16_t *row = t->symbol + word->offset;
        for (uint32_t j = 0; j + 1 < word->bytes; j++)
            pl_pairs_add(&t->pairs, pl_pair_key(row[j], row[j + 1]), word->count);
    }
}

typedef uint16_t lanes __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

/* The first place in [at, places − 1) where left and right stand side by side, or places − 1. */
static size_t find_pair(const pl_bpe_trainer *t, size_t at, uint16_t left, uint16_t right)
{
    const uint16_t *s = t->symbol;
    size_t end = t->places - 1;
    lanes a = {0}, b = {0};
    a += left, b += right;
    for (; at + 8 <= end; at += 8) {
        lanes first, second;
        memcpy(&first, s + at, sizeof first);
        memcpy(&second, s + at + 1, sizeof second);
        halves hit = (halves)((first == a) & (second == b));
        if (hit[0] | hit[1]) break;
    }
    while (at < end && (s[at] != left || s[at + 1] != right)) at++;
    return at;
}

static uint32_t word_at(const pl_words *w, size_t place)
{
    uint32_t low = 0, high = w->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (w->word[middle].offset <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Merges in one row from left to right. The pair itself has left the table; subtracting it does nothing. */
static void merge_row(pl_bpe_trainer *t, pl_word *word, pl_merge m)
{
    uint16_t *row = t->symbol + word->offset, id = (uint16_t)m.id;
    uint32_t to = 0, n = word->bytes;
    for (uint32_t from = 0; from < n; from++, to++) {
        row[to] = row[from];
        if (row[from] != m.left || from + 1 == n || row[from + 1] != m.right) continue;
        if (to > 0) {
            pl_pairs_subtract(&t->pairs, pl_pair_key(row[to - 1], (uint16_t)m.left), word->count);
            pl_pairs_add(&t->pairs, pl_pair_key(row[to - 1], id), word->count);
        }
        if (from + 2 < n) {
            pl_pairs_subtract(&t->pairs, pl_pair_key((uint16_t)m.right, row[from + 2]), word->count);
            pl_pairs_add(&t->pairs, pl_pair_key(id, row[from + 2]), word->count);
        }
        row[to] = id;
        from++;
    }
    for (uint32_t i = to; i < n; i++) row[i] = END;
    t->padding += n - to;
    word->bytes = to;
}

static void pack_rows(pl_bpe_trainer *t)
{
    size_t to = 0;
    for (uint32_t i = 0; i < t->words.count; i++) {
        pl_word *word = &t->words.word[i];
        memmove(t->symbol + to, t->symbol + word->offset, word->bytes * sizeof *t->symbol);
        word->offset = (uint32_t)to;
        to += word->bytes;
        t->symbol[to++] = END;
    }
    t->places = to;
    t->padding = 0;
}

static void apply_merge(pl_bpe_trainer *t, pl_merge m)
{
    pl_pairs_remove(&t->pairs, pl_pair_key((uint16_t)m.left, (uint16_t)m.right));
    for (size_t at = 0;;) {
        at = find_pair(t, at, (uint16_t)m.left, (uint16_t)m.right);
        if (at == t->places - 1) break;
        pl_word *word = &t->words.word[word_at(&t->words, at)];
        merge_row(t, word, m);
        at = (size_t)word->offset + word->bytes; /* only END is left of this row */
    }
    if (t->padding > t->places / 4) pack_rows(t);
}

/* ---- merges ---- */

/* The token that left and right make: a new one, or the one that has these bytes already. */
static uint32_t joined_token(pl_bpe_trainer *t, uint32_t left, uint32_t right)
{
    uint8_t text[2 * PL_BPE_WORD_BYTES_MAX];
    uint32_t bytes = (uint32_t)t->length[left] + t->length[right];
    memcpy(text, token_text(t, left), t->length[left]);
    memcpy(text + t->length[left], token_text(t, right), t->length[right]);
    uint32_t known = find_token(t, text, bytes);
    return known != PL_TOKEN_NONE ? known : add_token(t, text, bytes);
}

pl_status pl_bpe_trainer_close(pl_bpe_trainer *t, pl_error *err)
{
    if (t->closed) return PL_OK;
    count_window(t, 1);
    if (t->words.refused) return pl_fail(err, PL_E_NOMEM, "no memory for the table of words");
    pl_words_close(&t->words);
    t->closed = true;
    if (t->words.count == 0) return PL_OK;
    PL_TRY(pl_pairs_init(&t->pairs, pair_limit(&t->options, t->words.text_bytes), err));
    PL_TRY(build_rows(t, err));
    count_pairs(t);
    return PL_OK;
}

bool pl_bpe_trainer_merge(pl_bpe_trainer *t)
{
    if (t->vocab >= t->options.vocab || t->merge_count >= merge_limit(&t->options)) return false;
    const pl_pair *top = pl_pairs_top(&t->pairs);
    if (!top || top->count < t->options.min_count) return false;
    pl_merge m = {top->key >> 16, top->key & 0xffff, 0};
    m.id = joined_token(t, m.left, m.right);
    t->merge[t->merge_count++] = m;
    apply_merge(t, m);
    return true;
}

static pl_status make_tokenizer(const pl_bpe_trainer *t, pl_tokenizer **out, pl_error *err)
{
    pl_vocab_entry *entry = pl_alloc(t->vocab, sizeof *entry);
    if (!entry) return pl_fail(err, PL_E_NOMEM, "no memory for the tokenizer's vocabulary");
    for (uint32_t id = 0; id < t->vocab; id++) entry[id] = (pl_vocab_entry){token_text(t, id), t->length[id], 1};
    pl_status status = pl_tokenizer_begin(PL_TOKENIZER_BPE, entry, t->vocab, out, err);
    pl_free(entry);
    PL_TRY(status);
    pl_added_token special = {.id = 0, .bytes = t->length[0], .special = 1, .in_model = 1};
    status = pl_tokenizer_finish_bpe(*out,
                                     &(pl_bpe_parts){.merge = t->merge,
                                                     .merge_count = t->merge_count,
                                                     .added = &special,
                                                     .added_count = t->options.special != NULL,
                                                     .unknown = PL_TOKEN_NONE,
                                                     .pipeline = pl_pipeline_gpt2(0)},
                                     err);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    return status;
}

pl_status pl_bpe_trainer_finish(pl_bpe_trainer *t, pl_tokenizer **out, pl_error *err)
{
    *out = NULL;
    PL_TRY(pl_bpe_trainer_close(t, err));
    while (pl_bpe_trainer_merge(t)) {
    }
    return make_tokenizer(t, out, err);
}

/* ---- from texts ---- */

static pl_status take_piece(void *trainer, const void *data, size_t bytes, pl_error *err)
{
    (void)err;
    pl_bpe_trainer_feed(trainer, data, bytes);
    return PL_OK;
}

static pl_status take_end(void *trainer, pl_error *err)
{
    (void)err;
    pl_bpe_trainer_cut(trainer);
    return PL_OK;
}

/* A large vocabulary takes thousands of merges of milliseconds each: training may stop after any of them. */
static pl_status merge_pairs(pl_bpe_trainer *t, const pl_corpus *corpus, pl_error *err)
{
    PL_TRY(pl_bpe_trainer_close(t, err));
    do PL_TRY(pl_corpus_tell(corpus, "merging pairs into tokens", t->vocab, t->options.vocab, err));
    while (pl_bpe_trainer_merge(t));
    return PL_OK;
}

pl_status pl_bpe_train(pl_corpus *corpus, const pl_bpe_options *options, uint64_t *evicted, pl_tokenizer **out,
                       pl_error *err)
{
    pl_bpe_trainer *t = NULL;
    *out = NULL;
    PL_TRY(pl_bpe_trainer_create(options, &t, err));
    const pl_corpus_taker taker = {.piece = take_piece, .end = take_end, .context = t};
    pl_status status = pl_corpus_read(corpus, "learning the vocabulary", &taker, err);
    if (status == PL_OK) status = merge_pairs(t, corpus, err);
    if (status == PL_OK) status = pl_bpe_trainer_finish(t, out, err);
    if (status == PL_OK && evicted) *evicted = pl_bpe_trainer_evicted(t);
    pl_bpe_trainer_destroy(t);
    return status;
}
