#include "data/text/word_split.h"

#include <string.h>

#include "data/text/unicode.h"

static const struct {
    uint32_t first, last;
    uint32_t step;
    int32_t more;
} ranges[] = {
#include "data/text/unicode_lower.inc"
};

enum { REPLACEMENT = 0xfffd, I_WITH_DOT = 0x130, DOT_ABOVE = 0x307 };

static uint32_t lower_of(uint32_t c)
{
    size_t low = 0, high = sizeof ranges / sizeof *ranges;
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
    while (low < high) { /* the first range that ends at or after it */
        const size_t middle = low + (high - low) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    const bool in = low < sizeof ranges / sizeof *ranges && ranges[low].first <= c &&
                    (c - ranges[low].first) % ranges[low].step == 0;
    return in ? (uint32_t)((int32_t)c + ranges[low].more) : c;
}

void pl_word_split_init(pl_word_split *s, bool lower, pl_word_found found, void *context)
{
    *s = (pl_word_split){.lower = lower, .found = found, .context = context, .bytes = 1, .word = {' '}};
}

static pl_status end_word(pl_word_split *s, pl_error *err)
{
    const uint32_t bytes = s->bytes;
    const bool is_long = s->is_long;
    s->bytes = 1, s->is_long = false;
    return bytes > 1 ? s->found(s->context, is_long ? NULL : s->word, bytes, err) : PL_OK;
}

static void add(pl_word_split *s, uint32_t c)
{
    s->is_long |= s->bytes + 4 > PL_TOKEN_BYTES_MAX;
    if (!s->is_long) s->bytes += (uint32_t)pl_utf8_write(c, s->word + s->bytes);
}

static pl_status take(pl_word_split *s, uint32_t c, pl_error *err)
{
    if (c == PL_NOT_UTF8) c = REPLACEMENT;
    if (pl_unicode_class(c) == PL_CHAR_SPACE) return end_word(s, err);
    add(s, !s->lower ? c : c == I_WITH_DOT ? 'i' : lower_of(c));
    if (s->lower && c == I_WITH_DOT) add(s, DOT_ABOVE);
    return PL_OK;
}

/* The held character continues in the text; *taken: bytes of that which were needed. */
static pl_status take_held(pl_word_split *s, const uint8_t *text, size_t bytes, int final, size_t *taken, pl_error *err)
{
    *taken = 0;
    while (s->held_bytes) {
        uint32_t c;
        while (s->held_bytes < sizeof s->held && *taken < bytes) s->held[s->held_bytes++] = text[(*taken)++];
        const size_t n = pl_utf8_read(s->held, s->held_bytes, &c);
        if (n == 0 && !final) return PL_OK;
        const size_t used = n ? n : 1;
        PL_TRY(take(s, n ? c : PL_NOT_UTF8, err));
        s->held_bytes -= (uint32_t)used;
        memmove(s->held, s->held + used, s->held_bytes);
        const size_t back = s->held_bytes < *taken ? s->held_bytes : *taken; /* these are read from the text itself */
        s->held_bytes -= (uint32_t)back, *taken -= back;
    }
    return PL_OK;
}

pl_status pl_word_split_feed(pl_word_split *s, const uint8_t *text, size_t bytes, pl_error *err)
{
    size_t at;
    PL_TRY(take_held(s, text, bytes, 0, &at, err));
    while (at < bytes) {
        uint32_t c;
        const size_t n = pl_utf8_read(text + at, bytes - at, &c);
        if (n == 0) {
            s->held_bytes = (uint32_t)(bytes - at);
            memcpy(s->held, text + at, s->held_bytes);
            return PL_OK;
        }
        PL_TRY(take(s, c, err));
        at += n;
    }
    return PL_OK;
}

pl_status pl_word_split_end(pl_word_split *s, pl_error *err)
{
    size_t none;
    PL_TRY(take_held(s, NULL, 0, 1, &none, err));
    return end_word(s, err);
}
