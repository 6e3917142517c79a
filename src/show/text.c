/* What a terminal makes of UTF-8. */
#include <string.h>

#include "base/json.h"
#include "show/cell.h"

static uint32_t code_point(const unsigned char *p, size_t n)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = p[0] & first[n];
    for (size_t i = 1; i < n; i++) c = c << 6 | (p[i] & 0x3f);
    return c;
}

static size_t columns_of(uint32_t c)
{
    if ((c >= 0x300 && c < 0x370) || c == 0x200b || c == 0x200d || (c >= 0xfe00 && c < 0xfe10)) return 0;
    bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2e80 && c < 0xa4d0) || (c >= 0xac00 && c < 0xd7a4) ||
                (c >= 0xf900 && c < 0xfb00) || (c >= 0xfe30 && c < 0xfe70) || (c >= 0xff00 && c < 0xff61) ||
                (c >= 0x1f300 && c < 0x1f650) || (c >= 0x20000 && c < 0x40000);
    return wide ? 2 : 1;
}

size_t pl_text_columns(const char *text, size_t bytes)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t total = 0;
    for (size_t i = 0; i < bytes;) {
        size_t n = pl_json_utf8_length(p + i, bytes - i);
        total += n ? columns_of(code_point(p + i, n)) : 1;
        i += n ? n : 1;
    }
    return total;
}

/* Bytes of the character there; *shown: it may be; else a '?' stands for it. */
static size_t step_over(const unsigned char *p, size_t left, bool *shown)
{
    const size_t n = pl_json_utf8_length(p, left);
    *shown = n && p[0] >= 0x20 && p[0] != 0x7f && !(n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
    return n ? n : 1;
}

void pl_text_clean(char *to, size_t room, const char *from)
{
    size_t bytes = strlen(from), used = 0;
    for (size_t i = 0, step; i < bytes; i += step) {
        bool shown;
        step = step_over((const unsigned char *)from + i, bytes - i, &shown);
        if (used + step >= room) break;
        memcpy(to + used, shown ? from + i : "?", shown ? step : 1);
        used += shown ? step : 1;
    }
    to[used] = 0;
}

void pl_text_append(pl_str *out, const char *text, size_t bytes, bool keep_lines)
{
    for (size_t i = 0, step; i < bytes; i += step) {
        bool shown;
        step = step_over((const unsigned char *)text + i, bytes - i, &shown);
        shown |= keep_lines && text[i] == '\n';
        pl_str_append_bytes(out, shown ? text + i : "?", shown ? step : 1);
    }
}
