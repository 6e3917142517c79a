#include "data/pages/pack.h"

#include <string.h>

enum { WHITE = 255 };

typedef struct bits {
    uint8_t *to;
    const uint8_t *from, *end;
    uint64_t held;
    unsigned count;
    bool ended; /* read past the end */
} bits;

static void put(bits *b, unsigned value, unsigned count)
{
    b->held |= (uint64_t)value << b->count;
    for (b->count += count; b->count >= 8; b->count -= 8, b->held >>= 8) *b->to++ = (uint8_t)b->held;
}

static unsigned get(bits *b, unsigned count)
{
    while (b->count < count) {
        if (b->from == b->end) return b->ended = true, 0;
        b->held |= (uint64_t)*b->from++ << b->count;
        b->count += 8;
    }
    const unsigned value = (unsigned)(b->held & ((1u << count) - 1));
    b->held >>= count;
    b->count -= count;
    return value;
}

/* Bits for the number of one of so many shades: one shade needs none. */
static unsigned width_of(unsigned shades)
{
    unsigned width = 0;
    while (1u << width < shades) width++;
    return width;
}

static bool is_empty(const uint8_t *row, uint32_t columns)
{
    for (uint32_t x = 0; x < columns; x++)
        if (row[x] != WHITE) return false;
    return true;
}

/* code: the number of each shade; returns how many there are. */
static unsigned find_shades(const uint8_t *page, uint64_t pixels, uint8_t *shade, uint8_t code[256])
{
    bool seen[256] = {false};
    unsigned n = 0;
    for (uint64_t i = 0; i < pixels; i++) seen[page[i]] = true;
    for (unsigned v = 0; v < WHITE; v++)
        if (seen[v]) code[v] = (uint8_t)n, shade[n++] = (uint8_t)v;
    return n;
}

uint64_t pl_pack(const uint8_t *page, uint32_t rows, uint32_t columns, uint8_t *to)
{
    uint8_t code[256];
    const uint64_t pixels = (uint64_t)rows * columns;
    const unsigned n = find_shades(page, pixels, to + 1, code), width = width_of(n);
    to[0] = (uint8_t)n;
    bits b = {.to = to + 1 + n};
    for (uint32_t y = 0; y < rows; y++) put(&b, !is_empty(page + (uint64_t)y * columns, columns), 1);
    for (uint32_t y = 0; y < rows; y++) {
        const uint8_t *row = page + (uint64_t)y * columns;
        if (is_empty(row, columns)) continue;
        for (uint32_t x = 0; x < columns; x++) put(&b, row[x] != WHITE, 1);
    }
    for (uint64_t i = 0; i < pixels; i++)
        if (page[i] != WHITE) put(&b, code[page[i]], width);
    if (b.count) put(&b, 0, 8 - b.count);
    return (uint64_t)(b.to - to);
}

/* Fills rows with 255 or 0, then sets the pixels of rows of 0, and last gives ink its shades. */
static void read_ink(bits *b, uint32_t rows, uint32_t columns, uint8_t *page)
{
    for (uint32_t y = 0; y < rows; y++) memset(page + (uint64_t)y * columns, get(b, 1) ? 0 : WHITE, columns);
    for (uint32_t y = 0; y < rows; y++) {
        uint8_t *row = page + (uint64_t)y * columns;
        if (row[0] == WHITE) continue;
        for (uint32_t x = 0; x < columns; x++) row[x] = get(b, 1) ? 0 : WHITE;
    }
}

bool pl_unpack(const uint8_t *from, uint64_t bytes, uint32_t rows, uint32_t columns, uint8_t *page)
{
    if (bytes < 1 || bytes - 1 < from[0]) return false;
    const unsigned n = from[0], width = width_of(n);
    const uint8_t *shade = from + 1;
    bits b = {.from = from + 1 + n, .end = from + bytes};
    for (unsigned i = 0; i < n; i++)
        if (shade[i] == WHITE || (i && shade[i] <= shade[i - 1])) return false;
    read_ink(&b, rows, columns, page);
    for (uint64_t i = 0; i < (uint64_t)rows * columns; i++) {
        if (page[i] == WHITE) continue;
        const unsigned code = get(&b, width);
        if (code >= n) return false;
        page[i] = shade[code];
    }
    return !b.ended && b.from == b.end && b.held == 0;
}
