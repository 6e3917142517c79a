#include "base/utf8.h"

#include <string.h>

/* The smallest and largest second byte after this first byte (Unicode 16.0, table 3-7): no overlong forms, no
 * surrogates. */
static int second_byte_fits(uint8_t first, uint8_t second)
{
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

size_t pl_utf8_read(const uint8_t *p, size_t n, uint32_t *code_point)
{
    *code_point = p[0] < 0x80 ? p[0] : PL_NOT_UTF8;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    uint32_t value = p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (i == n) return 0;
        if ((p[i] & 0xc0) != 0x80 || (i == 1 && !second_byte_fits(p[0], p[1]))) return 1;
        value = value << 6 | (p[i] & 0x3f);
    }
    *code_point = value;
    return length;
}

size_t pl_utf8_write(uint32_t c, uint8_t out[4])
{
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, c >>= 6) out[i] = 0x80 | (c & 0x3f);
    out[0] = (uint8_t)(mark[length] | c);
    return length;
}

size_t pl_utf8_mark(const void *text, size_t bytes)
{
    static const char mark[3] = "\xef\xbb\xbf";
    return bytes >= sizeof mark && memcmp(text, mark, sizeof mark) == 0 ? sizeof mark : 0;
}
