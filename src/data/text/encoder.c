/* The window holds the bytes not yet encoded, which begin at `start`; an added token (such as <|endoftext|>) ends a
 * segment of plain text, whose end then counts as an end of text for the pattern. `searched` says how far the window is
 * known to hold no added token: a place is known when the longest of them would fit after it and, where there are both
 * kinds, another one after that: as in Hugging Face's library a token looked for in the normalized text gives way to
 * one looked for in the raw text, even where that one begins later.
 *
 * Frequent pieces are remembered in a direct-mapped cache of fixed size. */
#include "data/text/encoder.h"

#include <string.h>

#include "base/alloc.h"
#include "data/text/bpe_merge.h"
#include "data/text/pretoken.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"
#include "data/text/word_split.h"

enum {
    WINDOW = 65536, /* ≥ twice PL_ENCODER_PIECE_MAX + lookahead, + twice the longest added token */
    OUT_IDS = 4096,
    CACHE_SLOTS = 8192,
    CACHED_BYTES = 22,
    CACHED_IDS = 10,
};

_Static_assert(WINDOW >= 2 * (PL_ENCODER_PIECE_MAX + PL_PRETOKEN_LOOKAHEAD) + 2 * PL_TOKEN_BYTES_MAX + 64,
               "a piece and what is looked at behind it fit");
_Static_assert(WINDOW + OUT_IDS <= PL_ENCODER_HELD_MAX, "what waits");

typedef struct cached_piece { /* one cache line */
    uint8_t bytes, ids, text[CACHED_BYTES];
    uint32_t id[CACHED_IDS];
} cached_piece;

struct pl_encoder {
    const pl_tokenizer *tokenizer;
    pl_id_sink sink;
    void *context;
    size_t start, end;  /* the waiting bytes of the window */
    size_t searched;    /* up to here no added token begins */
    size_t enough;      /* fewer bytes cannot tell where the first piece ends: twice what was too few */
    int segment_begins; /* the next byte is the first of a segment */
    uint32_t out_count;
    uint32_t out[OUT_IDS];
    uint8_t window[WINDOW];
    pl_bpe_work work;
    cached_piece *cache;
    pl_word_split split; /* for words */
};

/* ---- out ---- */

static pl_status send(pl_encoder *e, pl_error *err)
{
    uint32_t count = e->out_count;
    e->out_count = 0;
    return count ? e->sink(e->context, e->out, count, err) : PL_OK;
}

static inline pl_status put(pl_encoder *e, uint32_t id, pl_error *err)
{
    if (e->out_count == OUT_IDS) PL_TRY(send(e, err));
    e->out[e->out_count++] = id;
    return PL_OK;
}

/* ---- one piece ---- */

static void remember(pl_encoder *e, cached_piece *slot, const uint8_t *piece, size_t bytes, uint32_t count)
{
    if (bytes > CACHED_BYTES || count > CACHED_IDS) return;
    slot->bytes = (uint8_t)bytes;
    slot->ids = (uint8_t)count;
    memcpy(slot->text, piece, bytes);
    for (uint32_t i = 0, at = 0; i < count; i++, at = e->work.symbol[at].next) slot->id[i] = e->work.symbol[at].id;
}

static pl_status encode_piece(pl_encoder *e, const uint8_t *piece, size_t bytes, pl_error *err)
{
    cached_piece *slot = &e->cache[pl_hash_bytes(piece, bytes) & (CACHE_SLOTS - 1)];
    if (slot->bytes == bytes && memcmp(slot->text, piece, bytes) == 0) {
        for (uint32_t i = 0; i < slot->ids; i++) PL_TRY(put(e, slot->id[i], err));
        return PL_OK;
    }
    if (e->tokenizer->ignore_merges) {
        uint32_t whole = pl_tokenizer_find(e->tokenizer, piece, bytes);
        if (whole != PL_TOKEN_NONE) return put(e, whole, err);
    }
    uint32_t count = pl_bpe_merge_piece(e->tokenizer, &e->work, piece, bytes);
    remember(e, slot, piece, bytes, count);
    for (uint32_t i = 0, at = 0; i < count; i++, at = e->work.symbol[at].next)
        PL_TRY(put(e, e->work.symbol[at].id, err));
    return PL_OK;
}

/* ---- the window, byte-level BPE ---- */

/* The longest added token of one kind that begins at this place of the window and ends by `end`, or NULL. */
static const pl_added_token *longest_added(const pl_encoder *e, size_t at, size_t end, int normalized)
{
    const pl_tokenizer *t = e->tokenizer;
    if (!t->added_first[e->window[at]]) return NULL;
    for (uint32_t i = 0; i < t->added_count; i++) {
        const pl_added_token *a = &t->added[i];
        if (a->normalized == normalized && a->bytes <= end - at &&
            memcmp(e->window + at, t->text + t->offset[a->id], a->bytes) == 0)
            return a;
    }
    return NULL;
}

/* The added token at this place of the window, or NULL. */
static const pl_added_token *added_at(const pl_encoder *e, size_t at)
{
    const pl_added_token *found = longest_added(e, at, e->end, 0);
    if (found) return found;
    found = longest_added(e, at, e->end, 1);
    if (!found || !e->tokenizer->added_mixed) return found;
    for (size_t next = at + 1; next < at + found->bytes; next++)
        if (longest_added(e, next, e->end, 0)) return longest_added(e, at, next, 1);
    return found;
}

/* Moves `searched` forward to the next added token, or as far as can be known. */
static const pl_added_token *search_added(pl_encoder *e, int final)
{
    size_t longest = e->tokenizer->added_longest, unsure = longest && !final ? longest - 1 : 0;
    if (e->tokenizer->added_mixed) unsure *= 2;
    for (; e->searched + unsure < e->end; e->searched++) {
        const pl_added_token *found = longest ? added_at(e, e->searched) : NULL;
        if (found) return found;
    }
    return NULL;
}

/* With add_prefix_space each segment of plain text that does not begin with a blank is given one: in place of a byte
 * already encoded or, at the front of the window, in the byte that feeding leaves free. */
static void begin_segment(pl_encoder *e, size_t *segment_end)
{
    e->segment_begins = 0;
    if (!e->tokenizer->add_prefix_space || e->window[e->start] == ' ') return;
    if (e->start == 0) {
        memmove(e->window + 1, e->window, e->end);
        e->start++, e->end++, e->searched++, (*segment_end)++;
    }
    e->window[--e->start] = ' ';
}

static pl_status encode_segment(pl_encoder *e, size_t end, int final, pl_error *err)
{
    if (e->start < end && e->segment_begins) begin_segment(e, &end);
    while (e->start < end) {
        const uint8_t *piece = e->window + e->start;
        size_t waiting = end - e->start;
        if (!final && waiting < e->enough) break; /* a long piece in small portions is looked at a few times only */
        size_t bytes = pl_pretoken_length(piece, waiting, final, PL_ENCODER_PIECE_MAX);
        e->enough = bytes ? 0 : 2 * waiting;
        if (bytes == 0) break;
        PL_TRY(encode_piece(e, piece, bytes, err));
        e->start += bytes;
    }
    return PL_OK;
}

static pl_status drain_bpe(pl_encoder *e, int final, pl_error *err)
{
    for (;;) {
        const pl_added_token *found = search_added(e, final);
        PL_TRY(encode_segment(e, e->searched, final || found, err));
        if (!found) return PL_OK;
        PL_TRY(put(e, found->id, err));
        e->start = e->searched += found->bytes;
        e->segment_begins = 1;
    }
}

/* ---- the simpler kinds ---- */

static pl_status drain_bytes(pl_encoder *e, pl_error *err)
{
    for (; e->start < e->end; e->start++) PL_TRY(put(e, e->window[e->start], err));
    return PL_OK;
}

static pl_status drain_chars(pl_encoder *e, int final, pl_error *err)
{
    while (e->start < e->end) {
        uint32_t c;
        size_t bytes = pl_utf8_read(e->window + e->start, e->end - e->start, &c);
        if (bytes == 0 && !final) break;
        PL_TRY(put(e, bytes ? pl_tokenizer_char_id(e->tokenizer, c) : 0, err));
        e->start += bytes ? bytes : 1;
    }
    return PL_OK;
}

/* ---- words ---- */

static pl_status put_word(void *context, const uint8_t *word, size_t bytes, pl_error *err)
{
    pl_encoder *e = context;
    const uint32_t id = word ? pl_tokenizer_find(e->tokenizer, word, bytes) : PL_TOKEN_NONE;
    return put(e, id == PL_TOKEN_NONE ? e->tokenizer->unknown : id, err);
}

static pl_status drain_words(pl_encoder *e, int final, pl_error *err)
{
    for (;;) {
        const pl_added_token *found = search_added(e, final);
        PL_TRY(pl_word_split_feed(&e->split, e->window + e->start, e->searched - e->start, err));
        e->start = e->searched;
        if (found || final) PL_TRY(pl_word_split_end(&e->split, err));
        if (!found) return PL_OK;
        PL_TRY(put(e, found->id, err));
        e->start = e->searched += found->bytes;
    }
}

/* ---- the stream ---- */

static pl_status drain(pl_encoder *e, int final, pl_error *err)
{
    switch (e->tokenizer->kind) {
    case PL_TOKENIZER_BYTES:
        return drain_bytes(e, err);
    case PL_TOKENIZER_CHARS:
        return drain_chars(e, final, err);
    case PL_TOKENIZER_WORDS:
        return drain_words(e, final, err);
    default:
        return drain_bpe(e, final, err);
    }
}

/* Moves what waits to the front of the window. */
static void compact(pl_encoder *e)
{
    if (e->start == 0) return;
    memmove(e->window, e->window + e->start, e->end - e->start);
    e->end -= e->start;
    e->searched -= e->searched < e->start ? e->searched : e->start;
    e->start = 0;
}

pl_status pl_encoder_feed(pl_encoder *e, const void *text, size_t bytes, pl_error *err)
{
    const uint8_t *from = text;
    while (bytes) {
        size_t room = WINDOW - 1 - e->end,
               portion = bytes < room ? bytes : room; /* one byte is kept for a prefix space */
        memcpy(e->window + e->end, from, portion);
        e->end += portion, from += portion, bytes -= portion;
        PL_TRY(drain(e, 0, err));
        compact(e);
    }
    return PL_OK;
}

pl_status pl_encoder_finish(pl_encoder *e, pl_error *err)
{
    pl_status status = drain(e, 1, err);
    if (status == PL_OK) status = send(e, err);
    e->start = e->end = e->searched = 0;
    e->out_count = 0;
    e->enough = 0;
    e->segment_begins = 1;
    return status;
}

/* ---- life ---- */

/* The simpler kinds need neither cache nor room for merges. */
static size_t work_pieces(const pl_tokenizer *t) { return t->kind == PL_TOKENIZER_BPE ? PL_ENCODER_PIECE_MAX : 0; }
static size_t cache_slots(const pl_tokenizer *t) { return t->kind == PL_TOKENIZER_BPE ? CACHE_SLOTS : 0; }

static uint64_t encoder_bytes(const pl_tokenizer *t)
{
    return sizeof(pl_encoder) + work_pieces(t) * (sizeof(pl_symbol) + 3 * sizeof(uint64_t)) +
           cache_slots(t) * sizeof(cached_piece);
}

pl_status pl_encoder_create(const pl_tokenizer *t, pl_id_sink sink, void *context, pl_encoder **out, pl_error *err)
{
    pl_encoder *e = *out = pl_alloc(1, sizeof *e);
    if (e) {
        e->tokenizer = t;
        e->sink = sink;
        e->context = context;
        e->segment_begins = 1;
        pl_word_split_init(&e->split, t->lower, put_word, e);
        e->work.symbol = pl_alloc(work_pieces(t), sizeof(pl_symbol));
        e->work.heap = pl_alloc(work_pieces(t), 3 * sizeof(uint64_t));
        e->cache = pl_alloc(cache_slots(t), sizeof *e->cache);
        if (e->work.symbol && e->work.heap && e->cache) return PL_OK;
    }
    pl_encoder_destroy(e);
    *out = NULL;
    return pl_fail(err, PL_E_NOMEM, "no memory for an encoder (%llu bytes)", (unsigned long long)encoder_bytes(t));
}

void pl_encoder_destroy(pl_encoder *e)
{
    if (!e) return;
    pl_free(e->work.symbol);
    pl_free(e->work.heap);
    pl_free(e->cache);
    pl_free(e);
}

/* ---- a whole text ---- */

typedef struct id_list {
    uint32_t *ids;
    size_t count, capacity;
} id_list;

static pl_status collect(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    id_list *list = context;
    for (size_t i = 0; i < count; i++) {
        if (pl_grow(&list->ids, &list->capacity, list->count, sizeof *ids))
            return pl_fail(err, PL_E_NOMEM, "no memory for %zu token ids", list->count + 1);
        list->ids[list->count++] = ids[i];
    }
    return PL_OK;
}

pl_status pl_encode(const pl_tokenizer *t, const void *text, size_t bytes, uint32_t **ids, size_t *count, pl_error *err)
{
    id_list list = {0};
    pl_encoder *e = NULL;
    pl_status status = pl_encoder_create(t, collect, &list, &e, err);
    if (status == PL_OK) status = pl_encoder_feed(e, text, bytes, err);
    if (status == PL_OK) status = pl_encoder_finish(e, err);
    pl_encoder_destroy(e);
    if (status != PL_OK) pl_free(list.ids), list = (id_list){0};
    *ids = list.ids;
    *count = list.count;
    return status;
}
