/* The second window: segments in their normal form, pieces, ids. Frequent pieces are remembered in a direct-mapped
 * cache of fixed size. */
#include "data/text/encoder_impl.h"

#include <string.h>

#include "base/utf8.h"
#include "data/text/unicode.h"

/* ---- out ---- */

pl_status pl_encoder_send(pl_encoder *e, pl_error *err)
{
    uint32_t count = e->out_count;
    e->out_count = 0;
    return count ? e->sink(e->context, e->out, count, err) : PL_OK;
}

pl_status pl_encoder_put(pl_encoder *e, uint32_t id, pl_error *err)
{
    if (e->out_count == PL_ENCODER_OUT_IDS) PL_TRY(pl_encoder_send(e, err));
    e->out[e->out_count++] = id;
    return PL_OK;
}

static pl_status put_all(pl_encoder *e, const uint32_t *ids, uint32_t count, pl_error *err)
{
    for (uint32_t i = 0; i < count; i++) PL_TRY(pl_encoder_put(e, ids[i], err));
    return PL_OK;
}

/* ---- one piece ---- */

static void remember(pl_cached_piece *slot, const uint8_t *piece, size_t bytes, const uint32_t *ids, uint32_t count)
{
    if (bytes > PL_CACHED_BYTES || count > PL_CACHED_IDS) return;
    slot->bytes = (uint8_t)bytes;
    slot->ids = (uint8_t)count;
    memcpy(slot->text, piece, bytes);
    memcpy(slot->id, ids, count * sizeof *ids);
}

static pl_status encode_piece(pl_encoder *e, const uint8_t *piece, size_t bytes, pl_error *err)
{
    const uint32_t *ids;
    pl_cached_piece *slot = &e->cache[pl_hash_bytes(piece, bytes) & (PL_ENCODER_CACHE_SLOTS - 1)];
    if (slot->bytes == bytes && memcmp(slot->text, piece, bytes) == 0) return put_all(e, slot->id, slot->ids, err);
    if (e->tokenizer->ignore_merges) {
        uint32_t whole = pl_tokenizer_find(e->tokenizer, piece, bytes);
        if (whole != PL_TOKEN_NONE) return pl_encoder_put(e, whole, err);
    }
    uint32_t count = pl_bpe_merge_piece(e->tokenizer, &e->work, piece, bytes, &ids);
    remember(slot, piece, bytes, ids, count);
    return put_all(e, ids, count, err);
}

/* ---- windows ---- */

void pl_window_compact(pl_window *w)
{
    if (w->start == 0) return;
    memmove(w->byte, w->byte + w->start, w->end - w->start);
    w->end -= w->start;
    w->searched -= w->searched < w->start ? w->searched : w->start;
    w->start = 0;
}

/* Length of the character of white space at p[at], or 0; in a normal form with blanks for U+2581 these are none. */
static size_t space_at(const uint8_t *p, size_t at, size_t end, bool has_blanks)
{
    uint32_t c;
    const size_t length = pl_utf8_read(p + at, end - at, &c);
    return length && c != PL_NOT_UTF8 && pl_unicode_class(c) == PL_CHAR_SPACE && !(has_blanks && c == ' ') ? length : 0;
}

/* Drops white space up to where an added token begins: that token is found even in it, as in Hugging Face's library.
 * False: more bytes are needed to tell. */
static bool strip_right(pl_window *w, const pl_added_set *set, bool has_blanks, int final)
{
    while (w->strips && w->start < w->end) {
        if (!final && w->end - w->start < set->longest + 4) return false;
        const size_t length = space_at(w->byte, w->start, w->end, has_blanks);
        if (!length || pl_added_longest(set, w->byte + w->start, w->end - w->start)) {
            w->strips = false;
            break;
        }
        w->start += length;
    }
    if (w->searched < w->start) w->searched = w->start;
    return true;
}

/* Where white space begins that ends at `end`; looks at `most` bytes. */
static size_t strip_left(const pl_window *w, size_t end, size_t most, bool has_blanks)
{
    const size_t least = end - w->start > most ? end - most : w->start;
    for (size_t at = end; at > least;) {
        do at--;
        while (at > w->start && (w->byte[at] & 0xc0) == 0x80);
        if (space_at(w->byte, at, end, has_blanks) != end - at) break;
        end = at;
    }
    return end;
}

enum { SPACE_HELD_MAX = 1024 };

const pl_added_token *pl_window_next(pl_window *w, const pl_added_set *set, bool has_blanks, int final, size_t *plain)
{
    *plain = w->start;
    if (!strip_right(w, set, has_blanks, final)) return NULL;
    const pl_added_token *found = pl_added_search(set, w->byte, w->end, final, &w->searched);
    *plain = w->searched;
    if (found ? found->strips_left : set->strips_left && !final) {
        const size_t before = strip_left(w, w->searched, found ? SIZE_MAX : SPACE_HELD_MAX, has_blanks);
        if (found || w->searched - before < SPACE_HELD_MAX - 4) *plain = before;
    }
    return found;
}

/* ---- the text window ---- */

/* A part of plain text that does not begin with a blank is given one: in place of a byte already encoded or, at the
 * front of the window, in the byte that is left free. */
static void begin_part(pl_encoder *e, size_t *end)
{
    pl_window *w = &e->text;
    const pl_prefix prefix = e->tokenizer->pipeline.prefix;
    const bool is_first = e->is_first, continues = is_first && e->options.continues;
    e->part_begins = e->is_first = false;
    if (continues || w->byte[w->start] == ' ') return;
    if (prefix != PL_PREFIX_MISSING && !(prefix == PL_PREFIX_FIRST && is_first)) return;
    if (w->start == 0) {
        memmove(w->byte + 1, w->byte, w->end);
        w->start++, w->end++, w->searched++, ++*end;
    }
    w->byte[--w->start] = ' ';
}

static size_t piece_length(const pl_encoder *e, const uint8_t *p, size_t n, int final)
{
    const pl_tokenizer *t = e->tokenizer;
    return t->pipeline.pretoken.scanner == PL_SCANNER_NONE
               ? pl_bpe_cut(t, p, n, final, e->piece_max)
               : pl_pretoken_length(t->pipeline.pretoken, p, n, final, e->piece_max);
}

static pl_status encode_part(pl_encoder *e, size_t end, int final, pl_error *err)
{
    pl_window *w = &e->text;
    if (w->start < end && e->part_begins) begin_part(e, &end);
    while (w->start < end) {
        const uint8_t *piece = w->byte + w->start;
        size_t waiting = end - w->start;
        if (!final && waiting < e->enough) break; /* a long piece in small portions is looked at a few times only */
        size_t bytes = piece_length(e, piece, waiting, final);
        const size_t more = 2 * waiting, most = e->piece_max + PL_PRETOKEN_LOOKAHEAD;
        e->enough = bytes ? 0 : more < most ? more : most;
        if (bytes == 0) break;
        PL_TRY(encode_piece(e, piece, bytes, err));
        w->start += bytes;
    }
    return PL_OK;
}

static pl_status split_words(pl_encoder *e, size_t end, int final, pl_error *err)
{
    PL_TRY(pl_word_split_feed(&e->split, e->text.byte + e->text.start, end - e->text.start, err));
    e->text.start = end;
    return final ? pl_word_split_end(&e->split, err) : PL_OK;
}

pl_status pl_encoder_drain_text(pl_encoder *e, int final, pl_error *err)
{
    static const pl_added_set none;
    const pl_added_set *set = e->options.ignores_added ? &none : &e->tokenizer->normalized;
    for (;;) {
        size_t plain;
        const pl_added_token *found = pl_window_next(&e->text, set, e->tokenizer->pipeline.has_blanks, final, &plain);
        if (e->tokenizer->kind == PL_TOKENIZER_WORDS)
            PL_TRY(split_words(e, plain, final || found, err));
        else
            PL_TRY(encode_part(e, plain, final || found, err));
        if (!found) return PL_OK;
        e->text.start = e->text.searched += found->wanted_bytes;
        PL_TRY(pl_encoder_put(e, found->id, err));
        e->text.strips = found->strips_right;
        e->part_begins = true;
        e->is_first = false;
    }
}
