/* Streaming decode. What is held is the beginning of one character, at most 3 bytes; in a text of a tokenizer with
 * tokens <0xXX> it is a run of these, because only its end says whether they are characters: where it is not UTF-8 as a
 * whole, each byte of it is U+FFFD in Hugging Face's library. */
#include <string.h>

#include "data/text/alphabet.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

static size_t put_replacement(uint8_t *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);
    return 3;
}

/* Bytes at the end of text that begin a character which is not yet complete. */
static size_t unfinished_tail(const uint8_t *text, size_t n)
{
    for (size_t tail = n < 3 ? n : 3; tail > 0; tail--) {
        uint32_t c;
        if (pl_utf8_read(text + n - tail, tail, &c) == 0) return tail;
    }
    return 0;
}

/* The longest beginning of a character that these bytes have, which no further byte continues. */
static size_t broken_part(const uint8_t *p, size_t n)
{
    uint32_t c;
    size_t length = n < 3 ? n : 3;
    while (length > 1 && pl_utf8_read(p, length, &c) != 0) length--;
    return length;
}

/* Characters as they are, U+FFFD for each broken part, and at the end nothing for one that may go on. */
static size_t put_characters(const uint8_t *p, size_t n, uint8_t *out)
{
    size_t made = 0;
    for (size_t at = 0; at < n;) {
        uint32_t c;
        const size_t length = pl_utf8_read(p + at, n - at, &c);
        if (length == 0) break;
        if (c == PL_NOT_UTF8) {
            made += put_replacement(out + made);
            at += broken_part(p + at, n - at);
        } else {
            memcpy(out + made, p + at, length);
            made += length, at += length;
        }
    }
    return made;
}

static int is_utf8(const uint8_t *p, size_t n)
{
    uint32_t c;
    for (size_t at = 0, length; at < n; at += length) {
        length = pl_utf8_read(p + at, n - at, &c);
        if (length == 0 || c == PL_NOT_UTF8) return 0;
    }
    return 1;
}

/* The held run, which ends here. */
static size_t put_run(pl_decoder *d, uint8_t *out)
{
    const size_t n = d->held_bytes;
    const int is_broken = d->run_is_broken || !is_utf8(d->held, n);
    size_t made = 0;
    d->held_bytes = 0;
    d->run_is_broken = 0;
    if (!is_broken) {
        memcpy(out, d->held, n);
        return n;
    }
    for (size_t i = 0; i < n; i++) made += put_replacement(out + made);
    return made;
}

/* The held run goes on, but there is no more room for it. */
static size_t put_full_run(pl_decoder *d, uint8_t *out)
{
    const size_t tail = unfinished_tail(d->held, d->held_bytes);
    const int is_broken = d->run_is_broken || !is_utf8(d->held, d->held_bytes - tail);
    uint8_t rest[4];
    memcpy(rest, d->held + d->held_bytes - tail, tail);
    d->held_bytes -= (uint32_t)(is_broken ? 0 : tail);
    const size_t made = put_run(d, out);
    if (!is_broken) memcpy(d->held, rest, d->held_bytes = (uint32_t)tail);
    d->run_is_broken = is_broken;
    return made;
}

static const pl_added_token *added_of(const pl_tokenizer *t, uint32_t id)
{
    if (!t->added_bit || id >= t->vocab || !(t->added_bit[id / 8] >> id % 8 & 1)) return NULL;
    for (uint32_t i = 0; i < t->added_count; i++)
        if (t->added[i].id == id) return &t->added[i];
    return NULL;
}

/* The text of an added token, in the normal form if it was looked for in that, goes through the decoder like any
 * other's: if all of it is in the byte-level alphabet it means bytes, and U+2581 means a blank. Returns its bytes. */
static size_t put_added(const pl_tokenizer *t, const pl_added_token *a, uint8_t *out)
{
    const uint8_t *text = a->wanted;
    size_t made = 0;
    if (t->pipeline.has_blanks) return pl_fold_blanks(text, a->wanted_bytes, out);
    for (size_t at = 0, length; at < a->wanted_bytes; at += length) {
        uint32_t c = PL_NOT_UTF8;
        length = pl_utf8_read(text + at, a->wanted_bytes - at, &c);
        const int byte = t->pipeline.is_bytes && length ? pl_alphabet_byte(c) : -1;
        if (byte < 0) {
            memcpy(out, text, a->wanted_bytes);
            return a->wanted_bytes;
        }
        out[made++] = (uint8_t)byte;
    }
    return made;
}

/* The text's first blank, which a prefix put there. */
static size_t strip(pl_decoder *d, uint8_t *out, size_t made)
{
    if (d->has_begun || made == 0) return made;
    d->has_begun = 1;
    if (!d->of->pipeline.strips_blank || out[0] != ' ') return made;
    memmove(out, out + 1, made - 1);
    return made - 1;
}

static size_t push_text(pl_decoder *d, const pl_tokenizer *t, const uint8_t *text, size_t bytes, int is_byte,
                        uint8_t *out)
{
    size_t made = 0;
    if (is_byte) {
        if (d->held_bytes == PL_DECODER_HELD_MAX) made = put_full_run(d, out);
        d->held[d->held_bytes++] = text[0];
    } else if (t->pipeline.joins_bytes) {
        made = put_run(d, out);
        memcpy(out + made, text, bytes);
        made += bytes;
    } else {
        uint8_t *whole = out + 3 * (d->held_bytes + bytes); /* out has room for both */
        memcpy(whole, d->held, d->held_bytes);
        memcpy(whole + d->held_bytes, text, bytes);
        const size_t total = d->held_bytes + bytes, tail = unfinished_tail(whole, total);
        made = put_characters(whole, total, out);
        memcpy(d->held, whole + total - tail, tail);
        d->held_bytes = (uint32_t)tail;
    }
    return strip(d, out, made);
}

static size_t push_bytes(pl_decoder *d, const pl_tokenizer *t, const uint8_t *text, size_t bytes, uint8_t *out)
{
    size_t held = d->held_bytes;
    memcpy(out, d->held, held);
    /* A special word does not begin with a blank. */
    if (bytes && text[0] != ' ' && t->kind == PL_TOKENIZER_WORDS) out[held++] = ' ';
    memcpy(out + held, text, bytes);
    size_t total = held + bytes, tail = unfinished_tail(out, total);
    memcpy(d->held, out + total - tail, tail);
    d->held_bytes = (uint32_t)tail;
    return strip(d, out, total - tail);
}

size_t pl_decoder_room(const pl_tokenizer *t) { return 4 * ((size_t)t->longest + PL_DECODER_HELD_MAX) + 4; }

size_t pl_decoder_push(pl_decoder *d, const pl_tokenizer *t, uint32_t id, uint8_t *out)
{
    size_t bytes;
    uint8_t decoded[PL_TOKEN_BYTES_MAX];
    d->of = t;
    const uint8_t *text = pl_tokenizer_token(t, id, &bytes);
    const pl_added_token *a = d->is_text || d->skips_special ? added_of(t, id) : NULL;
    if (a && a->special && d->skips_special) return 0;
    if (!d->is_text) return push_bytes(d, t, text, bytes, out);
    const int is_byte = t->pipeline.joins_bytes && bytes == 1 && t->offset[id + 1] - t->offset[id] != 1;
    if (a && !is_byte && bytes <= sizeof decoded) bytes = put_added(t, a, decoded), text = decoded;
    return bytes ? push_text(d, t, text, bytes, is_byte, out) : 0;
}

size_t pl_decoder_finish(pl_decoder *d, uint8_t *out)
{
    size_t made = d->held_bytes;
    if (!d->is_text || !made)
        memcpy(out, d->held, made);
    else
        made = d->of->pipeline.joins_bytes ? put_run(d, out) : put_replacement(out);
    made = strip(d, out, made);
    d->held_bytes = 0;
    d->has_begun = d->run_is_broken = 0;
    return made;
}
