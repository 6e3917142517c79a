/* textwrap works on a list of chunks: words and runs of white space by turns. Here a chunk is never stored: a reader is
 * a place in the text, a copy of it looks ahead, by at most a line. Only one question needs more, whether a word is all
 * of white space that separates no words (U+00A0, …), and its answer is kept until the word is through. */
#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"
#include "data/pages/layout.h"

enum { TAB = 8, END = -1 };

typedef struct reader {
    const uint8_t *text;
    size_t at, bytes;
    uint32_t column;  /* since the paragraph or the last '\r' began: where the next tab leads to */
    uint32_t pending; /* blanks of a tab that are still to come */
    uint64_t invalid; /* bytes */
} reader;

/* Of the word that a reader is in: whether what is left of it, looked at as far as `until`, is blank. */
typedef struct seen {
    size_t until;
    bool blank;
} seen;

static bool separates(uint32_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/* What Python's str.strip() takes away. */
static bool is_space(uint32_t c)
{
    if (c < 0x80) return separates(c) || (c >= 0x1c && c <= 0x1f);
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
           c == 0x202f || c == 0x205f || c == 0x3000;
}

/* ---- reading ---- */

static uint32_t decode(reader *r)
{
    uint32_t c;
    size_t n = pl_utf8_read(r->text + r->at, r->bytes - r->at, &c);
    if (n > 0 && c != PL_NOT_UTF8) return r->at += n, c;
    r->at++, r->invalid++;
    return PL_PAGE_REPLACEMENT;
}

/* The next code point of the paragraph, white space that separates words as ' '; END behind the last. */
static int32_t next(reader *r)
{
    if (r->pending > 0) return r->pending--, ' ';
    if (r->at == r->bytes || r->text[r->at] == '\n') return END;
    uint32_t c = decode(r);
    if (c == '\t') {
        r->pending = TAB - r->column % TAB - 1;
        r->column = 0;
        return ' ';
    }
    r->column = c == '\r' ? 0 : r->column + 1;
    return separates(c) ? ' ' : (int32_t)c;
}

static bool at_end(const reader *r) { return r->pending == 0 && (r->at == r->bytes || r->text[r->at] == '\n'); }

/* Code points of the chunk that begins here, up to `limit`; all that there are of it, or the first. */
static uint32_t chunk_length(reader r, uint32_t limit)
{
    int32_t c = next(&r);
    const bool white = c == ' ';
    uint32_t n = 0;
    for (; n < limit && c != END && (c == ' ') == white; n++) c = next(&r);
    return n;
}

/* The first of them, so many. */
static uint32_t take(reader *r, uint32_t *text, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) text[i] = (uint32_t)next(r);
    return count;
}

/* ---- what is blank ---- */

/* The word that begins here. */
static bool word_is_blank(reader r, seen *s)
{
    if (r.at < s->until) return s->blank;
    int32_t c;
    for (s->blank = true; s->blank && (c = next(&r)) != END && c != ' ';) s->blank = is_space((uint32_t)c);
    s->until = r.at;
    return s->blank;
}

static bool chunk_is_blank(const reader *r, seen *s)
{
    reader copy = *r;
    const int32_t c = next(&copy);
    return c == ' ' || (c != END && is_space((uint32_t)c) && word_is_blank(*r, s));
}

static void skip_chunk(reader *r)
{
    reader ahead = *r;
    const int32_t first = next(&ahead);
    for (int32_t c = first; c != END && (c == ' ') == (first == ' '); c = next(&ahead)) *r = ahead;
}

static bool line_is_blank(const uint32_t *text, uint32_t n)
{
    while (n > 0 && is_space(text[n - 1])) n--;
    return n == 0;
}

static bool paragraph_is_blank(reader r)
{
    int32_t c;
    while ((c = next(&r)) != END)
        if (!is_space((uint32_t)c)) return false;
    return true;
}

/* ---- lines ---- */

/* What textwrap puts into one line, whose last chunk it drops if that is blank; returns its length, 0: no line. A word
 * that is too long for any line is cut where this one ends, which may be before its first letter. */
static uint32_t fill_line(reader *r, uint32_t width, uint32_t *text)
{
    uint32_t n = 0, last = 0, chunk = 0;
    while (!at_end(r) && n + (chunk = chunk_length(*r, width + 1)) <= width) last = n, n += take(r, text + n, chunk);
    if (!at_end(r) && chunk > width) last = n, n += take(r, text + n, width - n);
    return line_is_blank(text + last, n - last) ? last : n;
}

static void wrap_paragraph(reader *r, seen *s, uint32_t columns, uint32_t rows, pl_page_lines *page)
{
    bool begun = false;
    while (!at_end(r) && page->rows < rows) {
        if (begun && chunk_is_blank(r, s)) skip_chunk(r);
        uint32_t n = fill_line(r, columns, page->text[page->rows]);
        if (n > 0) page->length[page->rows++] = n, begun = true;
    }
}

/* White space at the end of a text is nothing that is missed on its page. */
static uint64_t bytes_left(reader r)
{
    while (r.at < r.bytes && separates(r.text[r.at])) r.at++;
    return r.bytes - r.at;
}

void pl_page_lay_out(const char *text, size_t bytes, uint32_t columns, uint32_t rows, pl_page_lines *page)
{
    reader r = {.text = (const uint8_t *)text, .bytes = bytes};
    seen s = {0};
    page->rows = 0;
    while (page->rows < rows) {
        r.column = r.pending = 0;
        if (paragraph_is_blank(r)) {
            page->length[page->rows++] = 0;
            while (!at_end(&r)) next(&r);
        } else {
            wrap_paragraph(&r, &s, columns, rows, page);
        }
        if (!at_end(&r) || r.at == r.bytes) break;
        r.at++;
    }
    page->invalid_bytes = r.invalid;
    page->truncated_bytes = bytes_left(r);
}
