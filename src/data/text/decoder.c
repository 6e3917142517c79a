/* Streaming decode. At most the beginning of one character is held: each call looks for the longest unfinished tail (1
 * to 3 bytes that could begin a valid character) and outputs everything before it. */
#include <string.h>

#include "data/text/tokenizer.h"
#include "data/text/unicode.h"

/* Bytes at the end of text that begin a character which is not yet complete. */
static size_t unfinished_tail(const uint8_t *text, size_t n)
{
    for (size_t tail = n < 3 ? n : 3; tail > 0; tail--) {
        uint32_t c;
        if (pl_utf8_read(text + n - tail, tail, &c) == 0) return tail;
    }
    return 0;
}

size_t pl_decoder_push(pl_decoder *d, const pl_tokenizer *t, uint32_t id, uint8_t *out)
{
    size_t bytes, held = d->held_bytes;
    const uint8_t *text = pl_tokenizer_token(t, id, &bytes);
    memcpy(out, d->held, held);
    /* A special word does not begin with a blank. */
    if (bytes && text[0] != ' ' && pl_tokenizer_kind_of(t) == PL_TOKENIZER_WORDS) out[held++] = ' ';
    memcpy(out + held, text, bytes);
    size_t total = held + bytes, tail = unfinished_tail(out, total);
    memcpy(d->held, out + total - tail, tail);
    d->held_bytes = (uint32_t)tail;
    return total - tail;
}

size_t pl_decoder_finish(pl_decoder *d, uint8_t out[4])
{
    size_t n = d->held_bytes;
    memcpy(out, d->held, n);
    d->held_bytes = 0;
    return n;
}
