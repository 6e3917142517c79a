#include "texts/unescape.h"

#include <string.h>

/* After a backslash; after the first of two quotes; waiting for so many digits of \uXXXX. */
enum { PLAIN, ESCAPED, QUOTED, DIGITS_1, DIGITS_2, DIGITS_3, DIGITS_4 };
enum { REPLACEMENT = 0xfffd };

pl_unescape pl_unescape_begin(pl_text_encoding encoding, void *to, size_t room)
{
    return (pl_unescape){.encoding = encoding, .to = to, .room = room, .whole = true};
}

static void put(pl_unescape *u, const uint8_t *from, size_t bytes)
{
    const size_t left = u->room - u->bytes, n = bytes < left ? bytes : left;
    if (n) memmove(u->to + u->bytes, from, n);
    u->bytes += n;
    if (n < bytes) u->whole = false;
}

static void put_point(pl_unescape *u, uint32_t c)
{
    uint8_t b[4];
    size_t n = 1;
    if (c < 0x80) {
        b[0] = (uint8_t)c;
    } else if (c < 0x800) {
        b[0] = (uint8_t)(0xc0 | c >> 6), b[1] = (uint8_t)(0x80 | (c & 63)), n = 2;
    } else if (c < 0x10000) {
        b[0] = (uint8_t)(0xe0 | c >> 12), b[1] = (uint8_t)(0x80 | (c >> 6 & 63)), b[2] = (uint8_t)(0x80 | (c & 63));
        n = 3;
    } else {
        b[0] = (uint8_t)(0xf0 | c >> 18), b[1] = (uint8_t)(0x80 | (c >> 12 & 63));
        b[2] = (uint8_t)(0x80 | (c >> 6 & 63)), b[3] = (uint8_t)(0x80 | (c & 63)), n = 4;
    }
    put(u, b, n);
}

static void put_broken(pl_unescape *u)
{
    static const uint8_t no_utf8 = 0xff;
    if (u->marks_broken)
        put(u, &no_utf8, 1);
    else
        put_point(u, REPLACEMENT);
}

/* The first half of a pair without its second half. */
static void flush_high(pl_unescape *u)
{
    if (u->high) put_broken(u);
    u->high = 0;
}

static void take_unit(pl_unescape *u)
{
    const uint32_t unit = u->unit;
    const bool is_low = unit >= 0xdc00 && unit <= 0xdfff, is_high = unit >= 0xd800 && unit <= 0xdbff;
    if (u->high && is_low) {
        put_point(u, 0x10000 + ((u->high - 0xd800) << 10) + (unit - 0xdc00));
        u->high = 0;
        return;
    }
    flush_high(u);
    if (is_high)
        u->high = unit;
    else if (is_low)
        put_broken(u);
    else
        put_point(u, unit);
}

static int digit_of(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 32) >= 'a' && (c | 32) <= 'f') return (c | 32) - 'a' + 10;
    return -1;
}

static void take_digit(pl_unescape *u, uint8_t c)
{
    const int digit = digit_of(c);
    if (digit < 0) {
        flush_high(u);
        put_point(u, REPLACEMENT);
        u->state = PLAIN;
        return;
    }
    u->unit = u->unit << 4 | (uint32_t)digit;
    u->state = u->state == DIGITS_1 ? PLAIN : u->state - 1;
    if (u->state == PLAIN) take_unit(u);
}

static void take_escaped(pl_unescape *u, uint8_t c)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *name = c ? strchr(names, c) : NULL;
    if (c == 'u') {
        u->state = DIGITS_4, u->unit = 0;
        return;
    }
    flush_high(u);
    u->state = PLAIN;
    put_point(u, name ? (uint32_t)means[name - names] : REPLACEMENT);
}

/* Takes a run without special bytes at once. Returns its length. */
static size_t take_plain(pl_unescape *u, const uint8_t *from, size_t bytes)
{
    const uint8_t special = u->encoding == PL_TEXT_JSON ? '\\' : '"';
    const uint8_t *at = u->encoding == PL_TEXT_RAW ? NULL : memchr(from, special, bytes);
    const size_t n = at ? (size_t)(at - from) : bytes;
    if (n) flush_high(u);
    put(u, from, n);
    if (!at) return n;
    if (special == '"') put(u, at, 1);
    u->state = special == '"' ? QUOTED : ESCAPED;
    return n + 1;
}

bool pl_unescape_feed(pl_unescape *u, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0; at < bytes && u->whole;) {
        if (u->state == PLAIN) {
            at += take_plain(u, from + at, bytes - at);
        } else if (u->state == QUOTED) {
            at += from[at] == '"'; /* the second quote; or there is none after all */
            u->state = PLAIN;
        } else if (u->state == ESCAPED) {
            take_escaped(u, from[at++]);
        } else {
            take_digit(u, from[at++]);
        }
    }
    return u->whole;
}

void pl_unescape_end(pl_unescape *u)
{
    flush_high(u);
    if (u->state == ESCAPED || u->state >= DIGITS_1) put_point(u, REPLACEMENT);
    u->state = PLAIN;
}
