#include "data/text/alphabet.h"

#include "base/utf8.h"

static int stands_for_itself(uint32_t c) { return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad); }

/* The other bytes in order: 0x00…0x20, 0x7f…0xa0, 0xad. */
static uint32_t place_among_others(uint8_t b) { return b <= 0x20 ? b : b == 0xad ? 67 : (uint32_t)b - 0x7f + 33; }

uint32_t pl_alphabet_char(uint8_t byte) { return stands_for_itself(byte) ? byte : 0x100 + place_among_others(byte); }

int pl_alphabet_byte(uint32_t c)
{
    if (c < 0x100) return stands_for_itself(c) ? (int)c : -1;
    if (c > PL_ALPHABET_LAST) return -1;
    uint32_t place = c - 0x100;
    return place <= 0x20 ? (int)place : place == 67 ? 0xad : (int)(place - 33 + 0x7f);
}

int64_t pl_alphabet_decode(const uint8_t *text, size_t bytes, uint8_t *out, uint32_t *other)
{
    int64_t made = 0;
    for (size_t at = 0, length; at < bytes; at += length) {
        *other = PL_NOT_UTF8;
        length = pl_utf8_read(text + at, bytes - at, other);
        const int byte = length ? pl_alphabet_byte(*other) : -1;
        if (byte < 0) return -1;
        out[made++] = (uint8_t)byte;
    }
    return made;
}

void pl_alphabet_order(uint8_t bytes[256])
{
    size_t n = 0;
    for (uint32_t c = 0; c <= PL_ALPHABET_LAST; c++)
        if (pl_alphabet_byte(c) >= 0) bytes[n++] = (uint8_t)pl_alphabet_byte(c);
}
