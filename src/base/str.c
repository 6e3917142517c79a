#include "base/str.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/locale.h"

static int reserve(pl_str *s, size_t more)
{
    if (s->failed) return -1;
    if (more < s->capacity - s->bytes && s->data) return 0;
    size_t wanted = s->capacity ? s->capacity : 64;
    if (s->fixed) goto refused;
    while (wanted - s->bytes <= more) {
        if (wanted > SIZE_MAX / 2) goto refused;
        wanted *= 2;
    }
    char *bigger = pl_realloc(s->data, wanted, 1);
    if (!bigger) goto refused;
    s->data = bigger;
    s->capacity = wanted;
    return 0;
refused:
    s->failed = 1;
    return -1;
}

void pl_str_append_bytes(pl_str *s, const void *data, size_t bytes)
{
    if (reserve(s, bytes)) return;
    if (bytes) memcpy(s->data + s->bytes, data, bytes);
    s->bytes += bytes;
    s->data[s->bytes] = 0;
}

void pl_str_append(pl_str *s, const char *text) { pl_str_append_bytes(s, text, strlen(text)); }

/* Into the room there is; when that was too little, once more into enough. */
void pl_str_vprintf(pl_str *s, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    size_t room = s->data && !s->failed ? s->capacity - s->bytes : 0;
    int needed = pl_vprint(room ? s->data + s->bytes : NULL, room, fmt, args);
    if (needed >= 0 && (size_t)needed >= room) {
        if (room) s->data[s->bytes] = 0; /* nothing was written, should there be no more room */
        if (reserve(s, (size_t)needed))
            needed = -1;
        else
            pl_vprint(s->data + s->bytes, (size_t)needed + 1, fmt, again);
    }
    if (needed > 0) s->bytes += (size_t)needed;
    va_end(again);
}

void pl_str_printf(pl_str *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pl_str_vprintf(s, fmt, args);
    va_end(args);
}

static void append_number(pl_str *s, bool negative, uint64_t digits)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits);
    if (negative) text[--at] = '-';
    pl_str_append_bytes(s, text + at, sizeof text - at);
}

void pl_str_uint(pl_str *s, uint64_t value) { append_number(s, false, value); }
void pl_str_int(pl_str *s, int64_t value)
{
    append_number(s, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void pl_str_pad(pl_str *s, char c, size_t count)
{
    if (reserve(s, count)) return;
    memset(s->data + s->bytes, c, count);
    s->bytes += count;
    s->data[s->bytes] = 0;
}

/* Bytes that begin a character of UTF-8. */
static size_t count_characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += (text[i] & 0xc0) != 0x80;
    return count;
}

void pl_str_wrap(pl_str *s, const char *text, size_t bytes, size_t indent, size_t columns)
{
    size_t column = indent;
    for (size_t at = 0, word; at < bytes; at += word + (at + word < bytes)) {
        word = 0;
        while (at + word < bytes && text[at + word] != ' ') word++;
        size_t wide = count_characters(text + at, word);
        if (column > indent && column + 1 + wide > columns) {
            pl_str_append(s, "\n");
            pl_str_pad(s, ' ', indent);
            column = indent;
        } else if (column > indent) {
            pl_str_append(s, " ");
            column++;
        }
        pl_str_append_bytes(s, text + at, word);
        column += wide;
    }
}

void pl_str_fold(pl_str *s, size_t from, size_t columns)
{
    size_t column = 0, space = SIZE_MAX, since = 0; /* where the line's last space between words is, and what follows */
    bool begun = false;                             /* a word stands in the line: what was before it is no such space */
    for (size_t i = from; i < s->bytes && !s->failed; i++) {
        char c = s->data[i];
        if (c == '\n') {
            column = since = 0, space = SIZE_MAX, begun = false;
            continue;
        }
        if ((c & 0xc0) != 0x80) column++, since++;
        if (c == ' ' && begun) space = i, since = 0;
        begun |= c != ' ';
        if (column <= columns || space == SIZE_MAX || c == ' ') continue;
        s->data[space] = '\n';
        column = since, space = SIZE_MAX;
    }
}

const char *pl_str_text(const pl_str *s) { return s->data ? s->data : ""; }

void pl_str_clear(pl_str *s)
{
    s->bytes = 0;
    if (s->data) s->data[0] = 0;
}

pl_str pl_str_fixed(char *memory, size_t bytes)
{
    pl_str s = {.data = memory, .capacity = bytes, .fixed = 1};
    memory[0] = 0;
    return s;
}

void pl_str_deinit(pl_str *s)
{
    if (!s->fixed) pl_free(s->data);
    *s = (pl_str){0};
}

void pl_str_double(pl_str *s, double value)
{
    char text[40];
    if (isnan(value)) {
        pl_str_append(s, "nan");
        return;
    }
    if (value == floor(value) && fabs(value) < 0x1p53) { /* whole numbers without an exponent */
        pl_str_printf(s, "%.0f", value);
        return;
    }
    /* The fewest digits that give the number again. Up to 15 survive the way through a double, so when 15 are not
     * enough (the common case of a measured number) no fewer are. */
    pl_print(text, sizeof text, "%.15g", value);
    for (int digits = pl_read_double(text, NULL) == value ? 1 : 16; digits <= 17; digits++) {
        pl_print(text, sizeof text, "%.*g", digits, value);
        if (pl_read_double(text, NULL) == value) break;
    }
    pl_str_append(s, text);
}

enum { WORD_MAX = 64 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Letters to insert, remove, change or swap with their neighbour (Damerau 1964, each place edited once). */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1], *before = rows[0], *above = rows[1], *row = rows[2];
    size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX) return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++) above[j] = j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above, above = row, row = oldest;
    }
    return above[nb];
}

/* A word of two letters is near to too much. */
bool pl_nearer(const char *word, const char *candidate, size_t *best)
{
    size_t distance = edit_distance(word, candidate);
    if (distance > strlen(word) / 3 || distance >= *best) return false;
    *best = distance;
    return true;
}

const char *pl_nearest(const char *word, const char *const *candidates, size_t count)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < count; i++)
        if (pl_nearer(word, candidates[i], &best)) nearest = candidates[i];
    return nearest;
}

/* Where the ending begins that it may be; NULL: the name is no longer than that. */
static const char *end_of(const char *name, const char *ending)
{
    const size_t bytes = strlen(name), end = strlen(ending);
    return bytes > end ? name + bytes - end : NULL;
}

bool pl_ends_with(const char *name, const char *ending)
{
    const char *end = end_of(name, ending);
    return end && strcmp(end, ending) == 0;
}

bool pl_ends_in_any_case(const char *name, const char *ending)
{
    const char *end = end_of(name, ending);
    return end && strcasecmp(end, ending) == 0;
}
