#include "reference/mutate.h"

#include <string.h>

typedef struct dice {
    uint64_t state;
} dice;

static uint64_t roll(dice *d, uint64_t below) /* splitmix64 */
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return below ? (x ^ (x >> 31)) % below : 0;
}

/* Replaces [at, at + out) by `in` bytes. */
static size_t splice(char *text, size_t bytes, size_t at, size_t out, const char *in, size_t in_bytes)
{
    char copy[MUTATE_ROOM];
    if (in_bytes) memcpy(copy, in, in_bytes);
    memmove(text + at + in_bytes, text + at + out, bytes - at - out);
    memcpy(text + at, copy, in_bytes);
    return bytes - out + in_bytes;
}

static size_t line_begin(const char *text, size_t at)
{
    while (at > 0 && text[at - 1] != '\n') at--;
    return at;
}

static size_t line_length(const char *text, size_t bytes, size_t begin)
{
    const char *end = memchr(text + begin, '\n', bytes - begin);
    size_t length = end ? (size_t)(end - text) + 1 - begin : bytes - begin;
    return length < MUTATE_ROOM / 4 ? length : MUTATE_ROOM / 4;
}

static size_t damage_number(dice *d, char *text, size_t bytes)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "7",
                                          "-1",
                                          "64",
                                          "4294967295",
                                          "4294967296",
                                          "18446744073709551615",
                                          "9223372036854775807",
                                          "99999999999999999999999",
                                          "nan",
                                          "1e999",
                                          "-",
                                          "B",
                                          ""};
    size_t at = roll(d, bytes), end;
    for (size_t tries = 0; tries < bytes && (text[at] < '0' || text[at] > '9'); tries++) at = (at + 1) % bytes;
    for (end = at; end < bytes && text[end] >= '0' && text[end] <= '9';) end++;
    const char *in = numbers[roll(d, sizeof numbers / sizeof *numbers)];
    return splice(text, bytes, at, end - at, in, strlen(in));
}

static size_t damage_word(dice *d, char *text, size_t bytes)
{
    static const char *const words[] = {"in=",
                                        "out=",
                                        "view=0",
                                        "update=0",
                                        "program=0",
                                        " dead=1",
                                        "phase=update",
                                        "\"",
                                        "\\x",
                                        "\\",
                                        "[",
                                        "]",
                                        "=",
                                        ",",
                                        "\n",
                                        "#",
                                        " predicate=3",
                                        "trip=0",
                                        "scope=\"a\"",
                                        "strides=1,1,1",
                                        "offset=9",
                                        "end",
                                        "f64",
                                        "i32",
                                        "weight",
                                        "input"};
    size_t at = roll(d, bytes);
    const char *in = words[roll(d, sizeof words / sizeof *words)];
    return splice(text, bytes, at, 0, in, strlen(in));
}

static size_t damage_line(dice *d, char *text, size_t bytes)
{
    size_t a = line_begin(text, roll(d, bytes)), b = line_begin(text, roll(d, bytes)),
           length = line_length(text, bytes, a);
    char line[MUTATE_ROOM];
    memcpy(line, text + a, length);
    if (roll(d, 2)) return splice(text, bytes, b, 0, line, length); /* copied elsewhere */
    return splice(text, bytes, a, length, NULL, 0);                 /* dropped */
}

static size_t damage_piece(dice *d, char *text, size_t bytes)
{
    size_t at = roll(d, bytes), length = 1 + roll(d, 40);
    if (at + length > bytes) length = bytes - at;
    char piece[64];
    memcpy(piece, text + at, length);
    if (roll(d, 2)) return splice(text, bytes, roll(d, bytes), 0, piece, length);
    return splice(text, bytes, at, length, NULL, 0);
}

static size_t damage(dice *d, char *text, size_t bytes)
{
    if (bytes == 0) return 0;
    switch (roll(d, 8)) {
    case 0:
        text[roll(d, bytes)] = (char)roll(d, 256);
        return bytes;
    case 1:
        text[roll(d, bytes)] = "0123456789=,[]\"\\ \n-B#"[roll(d, 21)];
        return bytes;
    case 2:
        return damage_word(d, text, bytes);
    case 3:
        return damage_line(d, text, bytes);
    case 4:
        return damage_piece(d, text, bytes);
    default:
        return damage_number(d, text, bytes);
    }
}

size_t mutate(const char *from, size_t bytes, char *to, uint64_t seed)
{
    dice d = {seed};
    memcpy(to, from, bytes);
    for (uint64_t n = 1 + roll(&d, 3); n > 0; n--) bytes = damage(&d, to, bytes);
    return bytes;
}
