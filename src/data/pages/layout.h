/* A text as the lines of a page: paragraphs ('\n'), each broken as Python's textwrap.fill(width = columns,
 * break_long_words = True, break_on_hyphens = False) breaks it: greedily, one code point a column, tabs to the next
 * multiple of 8, white space between words as it is and dropped where a line is broken. A paragraph of white space is
 * an empty line.
 *
 * No memory but the page, and bounded time: what lies behind the last line is not read (but for the white space that
 * follows it), each byte before that at most a few times. A line has at most `columns` code points, so that is all that
 * is ever shaped at once, whatever the text. */
#ifndef PL_DATA_PAGES_LAYOUT_H
#define PL_DATA_PAGES_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum { PL_PAGE_ROWS_MAX = 64, PL_PAGE_COLUMNS_MAX = 128, PL_PAGE_REPLACEMENT = 0xfffd };

typedef struct pl_page_lines {
    uint32_t rows; /* lines there are */
    uint32_t length[PL_PAGE_ROWS_MAX];
    uint32_t text[PL_PAGE_ROWS_MAX][PL_PAGE_COLUMNS_MAX]; /* code points */
    uint64_t invalid_bytes;   /* each of which is a U+FFFD in the lines, as far as it was read */
    uint64_t truncated_bytes; /* behind the last line: the page is full */
} pl_page_lines;

/* At most `rows` lines of `columns`, both at least 1 and within the limits. */
void pl_page_lay_out(const char *text, size_t bytes, uint32_t columns, uint32_t rows, pl_page_lines *);

#endif
