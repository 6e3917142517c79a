#include "chat/text.h"

#include "base/utf8.h"

size_t pl_chat_char(const char *p, size_t n)
{
    uint32_t point;
    size_t bytes = pl_utf8_read((const uint8_t *)p, n, &point);
    return bytes ? bytes : 1;
}

size_t pl_chat_char_before(const char *p, size_t n)
{
    for (size_t bytes = 2; bytes <= 4 && bytes <= n; bytes++)
        if (pl_chat_char(p + n - bytes, bytes) == bytes) return bytes;
    return 1;
}

size_t pl_chat_length(const char *p, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i += pl_chat_char(p + i, n - i)) count++;
    return count;
}

size_t pl_chat_offset(const char *p, size_t n, size_t index)
{
    size_t i = 0;
    while (i < n && index-- > 0) i += pl_chat_char(p + i, n - i);
    return i;
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

size_t pl_chat_space(const char *p, size_t n)
{
    uint32_t point;
    for (size_t i = 0, bytes; i < n; i += bytes) {
        bytes = pl_utf8_read((const uint8_t *)p + i, n - i, &point);
        if (bytes == 0 || !is_space(point)) return i;
    }
    return n;
}

size_t pl_chat_space_before(const char *p, size_t n)
{
    size_t left = n;
    while (left > 0) {
        size_t bytes = pl_chat_char_before(p, left);
        if (pl_chat_space(p + left - bytes, bytes) == 0) break;
        left -= bytes;
    }
    return n - left;
}

bool pl_chat_is_ascii(const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)p[i] >= 0x80) return false;
    return true;
}
