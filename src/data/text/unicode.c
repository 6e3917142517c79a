#include "data/text/unicode.h"

static const uint32_t ranges[] = {
#include "data/text/unicode_ranges.inc"
};

static pl_char_class ascii_class(uint32_t c)
{
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return PL_CHAR_LETTER;
    if (c >= '0' && c <= '9') return PL_CHAR_NUMBER;
    return c == ' ' || (c >= '\t' && c <= '\r') ? PL_CHAR_SPACE : PL_CHAR_OTHER;
}

pl_char_class pl_unicode_class(uint32_t code_point)
{
    if (code_point < 0x80) return ascii_class(code_point);
    size_t low = 0, high = sizeof ranges / sizeof *ranges; /* ranges[low] begins at or before code_point */
    if (code_point > 0x10ffff) return PL_CHAR_OTHER;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (ranges[middle] >> 2 <= code_point)
            low = middle;
        else
            high = middle;
    }
    return (pl_char_class)(ranges[low] & 3);
}
