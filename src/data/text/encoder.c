/* The first window: the text as it is, cut at the added tokens that are looked for there. */
#include "data/text/encoder.h"

#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "data/text/encoder_impl.h"
#include "data/text/nfc.h"
#include "data/text/unicode.h"

enum {
    TEXT_WINDOW = 53248,
    AROUND_PIECE = 4 * PL_TOKEN_BYTES_MAX + 64, /* what is looked at behind a piece */
    BLANK = 0x2581,
};

_Static_assert(TEXT_WINDOW >= 2 * PL_ENCODER_PIECE_MAX + AROUND_PIECE, "a piece and what is looked at behind it fit");
_Static_assert(PL_ENCODER_RAW + TEXT_WINDOW + PL_ENCODER_OUT_IDS <= PL_ENCODER_HELD_MAX, "what waits");

/* ---- from the raw window to the text window ---- */

/* Room for so many bytes more, besides the one that is kept for a prefix. */
static pl_status make_room(pl_encoder *e, size_t bytes, pl_error *err)
{
    if (e->text.capacity - e->text.end > bytes) return PL_OK;
    PL_TRY(pl_encoder_drain_text(e, 0, err));
    pl_window_compact(&e->text);
    return PL_OK;
}

static pl_status put_bytes(pl_encoder *e, const uint8_t *p, size_t bytes, pl_error *err)
{
    PL_TRY(make_room(e, bytes, err));
    memcpy(e->text.byte + e->text.end, p, bytes);
    e->text.end += bytes;
    return PL_OK;
}

static pl_status put_cluster(pl_encoder *e, pl_error *err)
{
    uint32_t *normal = e->cluster + PL_NFC_CLUSTER_MAX;
    const size_t count = pl_nfc_compose(e->cluster, e->cluster_count, normal);
    e->cluster_count = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t utf8[4];
        PL_TRY(put_bytes(e, utf8, pl_utf8_write(normal[i], utf8), err));
    }
    return PL_OK;
}

static pl_status put_char(pl_encoder *e, uint32_t c, const uint8_t *p, size_t bytes, pl_error *err)
{
    const pl_pipeline *pipeline = &e->tokenizer->pipeline;
    if (pipeline->has_blanks && c == BLANK) c = ' ', p = (const uint8_t *)" ", bytes = 1;
    if (!pipeline->has_nfc) return put_bytes(e, p, bytes, err);
    if (e->cluster_count && (pl_nfc_begins(c) || e->cluster_count == PL_NFC_CLUSTER_MAX)) PL_TRY(put_cluster(e, err));
    e->cluster[e->cluster_count++] = c;
    return PL_OK;
}

/* Characters of the raw window up to `end`; one that is cut off there stays, unless the segment is `final`. */
static pl_status move_chars(pl_encoder *e, size_t end, int final, pl_error *err)
{
    pl_window *w = &e->raw;
    while (w->start < end) {
        uint32_t c;
        const size_t length = pl_utf8_read(w->byte + w->start, end - w->start, &c);
        if (length == 0 && !final) return PL_OK;
        if (length == 0 || c == PL_NOT_UTF8)
            return pl_fail(err, PL_E_DATA, "byte %llu of the text is not UTF-8, which this tokenizer expects",
                           (unsigned long long)(e->taken + w->start));
        PL_TRY(put_char(e, c, w->byte + w->start, length, err));
        w->start += length;
    }
    return final && e->cluster_count ? put_cluster(e, err) : PL_OK;
}

static pl_status move_plain(pl_encoder *e, size_t end, int final, pl_error *err)
{
    pl_window *w = &e->raw;
    const pl_pipeline *pipeline = &e->tokenizer->pipeline;
    if (w->start < end && e->segment_begins) {
        e->segment_begins = false;
        e->part_begins = true;
        if (pipeline->prefix == PL_PREFIX_ALWAYS && !(e->is_first && e->options.continues))
            PL_TRY(put_bytes(e, (const uint8_t *)" ", 1, err));
    }
    if (pipeline->is_utf8) {
        PL_TRY(move_chars(e, end, final, err));
    } else if (w->start < end) {
        PL_TRY(put_bytes(e, w->byte + w->start, end - w->start, err));
        w->start = end;
    }
    if (!final) return PL_OK;
    PL_TRY(pl_encoder_drain_text(e, 1, err));
    e->text.start = e->text.end = e->text.searched = 0;
    e->text.strips = false;
    e->enough = 0;
    return PL_OK;
}

static pl_status drain_raw(pl_encoder *e, int final, pl_error *err)
{
    static const pl_added_set none;
    const pl_added_set *set = e->options.ignores_added ? &none : &e->tokenizer->raw;
    for (;;) {
        size_t plain;
        const pl_added_token *found = pl_window_next(&e->raw, set, false, final, &plain);
        PL_TRY(move_plain(e, plain, final || found, err));
        if (!found) break;
        e->raw.start = e->raw.searched += found->wanted_bytes;
        e->raw.strips = found->strips_right;
        e->segment_begins = true;
        e->is_first = false;
        PL_TRY(pl_encoder_put(e, found->id, err));
    }
    if (final) return PL_OK;
    PL_TRY(pl_encoder_drain_text(e, 0, err));
    pl_window_compact(&e->text);
    return PL_OK;
}

/* ---- the simpler kinds ---- */

static pl_status drain_bytes(pl_encoder *e, pl_error *err)
{
    for (; e->raw.start < e->raw.end; e->raw.start++) PL_TRY(pl_encoder_put(e, e->raw.byte[e->raw.start], err));
    return PL_OK;
}

static pl_status drain_chars(pl_encoder *e, int final, pl_error *err)
{
    pl_window *w = &e->raw;
    while (w->start < w->end) {
        uint32_t c;
        size_t bytes = pl_utf8_read(w->byte + w->start, w->end - w->start, &c);
        if (bytes == 0 && !final) break;
        PL_TRY(pl_encoder_put(e, bytes ? pl_tokenizer_char_id(e->tokenizer, c) : 0, err));
        w->start += bytes ? bytes : 1;
    }
    return PL_OK;
}

static pl_status put_word(void *context, const uint8_t *word, size_t bytes, pl_error *err)
{
    pl_encoder *e = context;
    const uint32_t id = word ? pl_tokenizer_find(e->tokenizer, word, bytes) : PL_TOKEN_NONE;
    return pl_encoder_put(e, id == PL_TOKEN_NONE ? e->tokenizer->unknown : id, err);
}

/* ---- the stream ---- */

static pl_status drain(pl_encoder *e, int final, pl_error *err)
{
    switch (e->tokenizer->kind) {
    case PL_TOKENIZER_BYTES:
        return drain_bytes(e, err);
    case PL_TOKENIZER_CHARS:
        return drain_chars(e, final, err);
    default:
        return drain_raw(e, final, err);
    }
}

static pl_status put_template(pl_encoder *e, int after, pl_error *err)
{
    uint32_t count;
    const uint32_t *ids = pl_tokenizer_template(e->tokenizer, after, &count);
    for (uint32_t i = 0; i < count && e->options.adds_special; i++) PL_TRY(pl_encoder_put(e, ids[i], err));
    return PL_OK;
}

static pl_status open_text(pl_encoder *e, pl_error *err)
{
    if (e->is_open) return PL_OK;
    e->is_open = true;
    return put_template(e, 0, err);
}

pl_status pl_encoder_feed(pl_encoder *e, const void *text, size_t bytes, pl_error *err)
{
    const uint8_t *from = text;
    pl_window *w = &e->raw;
    PL_TRY(open_text(e, err));
    while (bytes) {
        size_t room = w->capacity - w->end, portion = bytes < room ? bytes : room;
        memcpy(w->byte + w->end, from, portion);
        w->end += portion, from += portion, bytes -= portion;
        PL_TRY(drain(e, 0, err));
        e->taken += w->start;
        pl_window_compact(w);
    }
    return PL_OK;
}

static void begin_text(pl_encoder *e)
{
    e->raw.start = e->raw.end = e->raw.searched = 0;
    e->text.start = e->text.end = e->text.searched = 0;
    e->raw.strips = e->text.strips = false;
    e->out_count = e->cluster_count = 0;
    e->enough = 0;
    e->taken = 0;
    e->is_open = false;
    e->segment_begins = e->part_begins = e->is_first = true;
}

pl_status pl_encoder_finish(pl_encoder *e, pl_error *err)
{
    pl_status status = open_text(e, err);
    if (status == PL_OK) status = drain(e, 1, err);
    if (status == PL_OK) status = put_template(e, 1, err);
    if (status == PL_OK) status = pl_encoder_send(e, err);
    begin_text(e);
    return status;
}

void pl_encoder_set_options(pl_encoder *e, pl_encode_options options) { e->options = options; }

/* ---- life ---- */

typedef struct sizes {
    size_t piece, text, cache, cluster; /* bytes, bytes, slots, characters */
} sizes;

/* The simpler kinds need neither cache nor room for merges. */
static sizes sizes_of(const pl_tokenizer *t, size_t text_bytes)
{
    const size_t grows = t->pipeline.has_nfc ? 3 : 1; /* bytes of a normal form for each byte */
    sizes s = {.text = t->kind == PL_TOKENIZER_WORDS ? TEXT_WINDOW : 0};
    if (t->kind != PL_TOKENIZER_BPE) return s;
    s.piece = text_bytes > SIZE_MAX / 64 ? SIZE_MAX / 64 : text_bytes * grows + 1;
    if (s.piece < PL_ENCODER_PIECE_MAX) s.piece = PL_ENCODER_PIECE_MAX;
    s.text = TEXT_WINDOW + (s.piece - PL_ENCODER_PIECE_MAX);
    s.cache = PL_ENCODER_CACHE_SLOTS;
    s.cluster = t->pipeline.has_nfc ? PL_NFC_CLUSTER_MAX * (1 + PL_NFC_EXPANSION_MAX) : 0;
    return s;
}

uint64_t pl_encoder_bytes(const pl_tokenizer *t, size_t text_bytes)
{
    const sizes s = sizes_of(t, text_bytes);
    return sizeof(pl_encoder) + PL_ENCODER_RAW + s.text + s.piece * (sizeof(pl_symbol) + 2 * sizeof(uint64_t)) +
           s.cache * sizeof(pl_cached_piece) + s.cluster * sizeof(uint32_t) + 7 * PL_ALLOC_HEADER_BYTES;
}

pl_status pl_encoder_create_for(const pl_tokenizer *t, size_t text_bytes, pl_id_sink sink, void *context,
                                pl_encoder **out, pl_error *err)
{
    const sizes s = sizes_of(t, text_bytes);
    pl_encoder *e = *out = pl_alloc(1, sizeof *e);
    if (e) {
        e->tokenizer = t;
        e->sink = sink;
        e->context = context;
        e->piece_max = s.piece;
        pl_word_split_init(&e->split, t->lower, put_word, e);
        e->raw = (pl_window){.byte = pl_alloc(PL_ENCODER_RAW, 1), .capacity = PL_ENCODER_RAW};
        e->text = (pl_window){.byte = pl_alloc(s.text, 1), .capacity = s.text};
        e->work.symbol = pl_alloc(s.piece, sizeof(pl_symbol));
        e->work.heap = pl_alloc(s.piece, 2 * sizeof(uint64_t));
        e->cache = pl_alloc(s.cache, sizeof *e->cache);
        e->cluster = pl_alloc(s.cluster, sizeof *e->cluster);
        begin_text(e);
        if (e->raw.byte && e->text.byte && e->work.symbol && e->work.heap && e->cache && e->cluster) return PL_OK;
    }
    pl_encoder_destroy(e);
    *out = NULL;
    return pl_fail(err, PL_E_NOMEM, "no memory for an encoder (%llu bytes)",
                   (unsigned long long)pl_encoder_bytes(t, text_bytes));
}

pl_status pl_encoder_create(const pl_tokenizer *t, pl_id_sink sink, void *context, pl_encoder **out, pl_error *err)
{
    return pl_encoder_create_for(t, 0, sink, context, out, err);
}

void pl_encoder_destroy(pl_encoder *e)
{
    if (!e) return;
    pl_free(e->raw.byte);
    pl_free(e->text.byte);
    pl_free(e->work.symbol);
    pl_free(e->work.heap);
    pl_free(e->cache);
    pl_free(e->cluster);
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

pl_status pl_encode_with(const pl_tokenizer *t, pl_encode_options options, const void *text, size_t bytes,
                         uint32_t **ids, size_t *count, pl_error *err)
{
    id_list list = {0};
    pl_encoder *e = NULL;
    pl_status status = pl_encoder_create_for(t, bytes, collect, &list, &e, err);
    if (status == PL_OK) {
        pl_encoder_set_options(e, options);
        status = pl_encoder_feed(e, text, bytes, err);
    }
    if (status == PL_OK) status = pl_encoder_finish(e, err);
    pl_encoder_destroy(e);
    if (status != PL_OK) pl_free(list.ids), list = (id_list){0};
    *ids = list.ids;
    *count = list.count;
    return status;
}

pl_status pl_encode(const pl_tokenizer *t, const void *text, size_t bytes, uint32_t **ids, size_t *count, pl_error *err)
{
    return pl_encode_with(t, (pl_encode_options){0}, text, bytes, ids, count, err);
}
