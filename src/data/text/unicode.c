#include "data/text/unicode.h"

#include <stdlib.h>

typedef struct point_range {
    uint32_t first, last;
} point_range;

static const uint32_t ranges[] = {
#include "data/text/unicode_ranges.inc"
};

static const point_range punctuation[] = {
#include "data/text/unicode_punctuation.inc"
};

static const point_range more_digits[] = {
#include "data/text/unicode_digits.inc"
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

static int compare(const void *left, const void *right)
{
    const point_range *a = left, *b = right;
    return a->last < b->first ? -1 : a->first > b->last;
}

static bool is_in(const point_range *list, size_t count, uint32_t c)
{
    return bsearch(&(point_range){c, c}, list, count, sizeof *list, compare) != NULL;
}

bool pl_unicode_is_punctuation(uint32_t code_point)
{
    return is_in(punctuation, sizeof punctuation / sizeof *punctuation, code_point);
}

bool pl_unicode_is_digit(uint32_t code_point)
{
    return pl_unicode_class(code_point) == PL_CHAR_NUMBER ||
           is_in(more_digits, sizeof more_digits / sizeof *more_digits, code_point);
}
