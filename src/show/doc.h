/* A document: everything that a command shows, as one value, written down once.
 *
 * A section function adds what it knows about a thing (paragraphs, tables of typed cells, figures); a renderer turns it
 * all into text for a terminal, into JSON for programs or into a page (show/render.h). A cell holds a number of a kind,
 * never digits: how bytes, seconds or counts look is decided in one place (show/cell.h).
 *
 *     static const pl_doc_column columns[] = {{"name", ""}, {"nodes", "nodes", PL_DOC_COUNT}, {NULL, "peak at"}};
 *     pl_doc_section(d, "By program");
 *     pl_doc_table(d, "programs", columns, 3);
 *     for (…) {
 *         pl_doc_row(d, 0);
 *         pl_doc_words(d, "%s", name);
 *         pl_doc_count(d, nodes);
 *         pl_doc_words(d, "%s", operator);                 has no key: for people
 *         pl_doc_key_count(d, "peak_position", position);  stands in no column: for programs
 *         pl_doc_row_end(d);
 *     }
 *     pl_doc_table_end(d);
 *     pl_doc_section_end(d);
 *
 * People and programs see the same rows in the same order, but not always in the same nesting: sections and cards are
 * for people, objects, arrays and numbers without a column for programs, and a table is an array where it has a key.
 *
 * A document lies in one block: growing, or the caller's (aligned to 8 bytes) where no memory may be asked for. Keys,
 * titles and classes are constants: the pointers are kept. Texts are copied. A refusal of memory is sticky
 * (`body.failed`): whoever renders looks once, at the end. */
#ifndef PL_SHOW_DOC_H
#define PL_SHOW_DOC_H

#include "base/str.h"

typedef enum pl_doc_kind {
    PL_DOC_WORDS,
    PL_DOC_COUNT,      /* 1,234,567 */
    PL_DOC_BYTES,      /* 115,343,360: exact, and MB with two decimals in a column next to it */
    PL_DOC_EXACT,      /* 115,343,360: exact bytes alone */
    PL_DOC_MEGABYTES,  /* 115.34; 0 is "-" */
    PL_DOC_SIZE,       /* 104 MB: three digits */
    PL_DOC_DIFFERENCE, /* of bytes, with a sign; 0 is "0" */
    PL_DOC_SECONDS,    /* 340 ms; hardly any is "-" */
    PL_DOC_OPERATIONS, /* 1.23 G: of floating-point operations; 0 is "-" */
    PL_DOC_MOVED,      /* 1.23 GB: bytes that were counted as a real number */
    PL_DOC_PERCENT,    /* of a share: 0.125 is 12.5 %; so many decimals as the column says */
    PL_DOC_NUMBER,     /* so many significant digits as the column says */
    PL_DOC_FIXED,      /* so many decimals as the column says */
    PL_DOC_RATE,       /* a second: 7,104, or three digits */
    PL_DOC_BOOL,       /* yes or no */
    PL_DOC_BAR,        /* shares of the row's whole, each with a class: drawn on the page */
} pl_doc_kind;

typedef struct pl_doc_column {
    const char *key;   /* in JSON; NULL: for people alone */
    const char *title; /* above it */
    pl_doc_kind kind;
    int digits;     /* PL_DOC_NUMBER: significant; PL_DOC_FIXED, PL_DOC_PERCENT: decimals */
    bool is_remark; /* explains the row: set smaller on the page */
    bool is_extra;  /* text leaves it out where its line is too narrow for all columns */
} pl_doc_column;

enum { PL_DOC_COLUMNS_MAX = 24 };

/* Flags of rows, and of paragraphs (good, bad). */
enum {
    PL_DOC_TOTAL = 1 << 0,  /* a sum of the rows before it: a line above it, and it stands out */
    PL_DOC_STRONG = 1 << 1, /* stands out */
    PL_DOC_GOOD = 1 << 2,
    PL_DOC_BAD = 1 << 3,
    PL_DOC_INDENT = 1 << 4, /* a part of what a row below it sums up */
    PL_DOC_SHOWN = 1 << 5,  /* people only */
    PL_DOC_HIDDEN = 1 << 6  /* programs only */
};

typedef struct pl_doc {
    pl_str body;
    size_t open; /* where the item that is being written begins; SIZE_MAX: none is */
} pl_doc;

pl_doc pl_doc_begin(void);
/* In the caller's memory, aligned to 8 bytes: asks for none. */
pl_doc pl_doc_begin_fixed(void *memory, size_t bytes);
void pl_doc_deinit(pl_doc *);

/* ---- for people: pages, sections, paragraphs ---- */

/* First, if at all. A page's title is "TITLE – WHAT", its heading "BEFORE TITLE". */
void pl_doc_title(pl_doc *, const char *before, const char *what, const char *title);
void pl_doc_section(pl_doc *, const char *title);
/* A section that the short form of a report leaves out. */
void pl_doc_section_long(pl_doc *, const char *title);
/* With a title that is no constant. */
void pl_doc_section_named(pl_doc *, const char *fmt, ...) PL_PRINTF(2, 3);
/* Within a section, a part of it with a title of its own: pl_doc_section again; one that stands next to another where a
 * page has room; and one that a page shows when it is asked for. */
void pl_doc_section_half(pl_doc *, const char *title);
void pl_doc_section_folded(pl_doc *, const char *title);
void pl_doc_section_drawn(pl_doc *, const char *title); /* of figures for pages: text leaves it out */
void pl_doc_section_end(pl_doc *);
/* A number worth a look from afar, and what it is: "128 MB", "charged, planned". */
void pl_doc_card(pl_doc *, const char *number, const char *fmt, ...) PL_PRINTF(3, 4);
/* A paragraph; text breaks its lines where it must. */
void pl_doc_say(pl_doc *, unsigned flags, const char *fmt, ...) PL_PRINTF(3, 4);
/* The same for a writer of sentences: whatever is appended to the string until the end is the paragraph; nothing
 * appended: there is none. Ends of lines are kept as such. */
pl_str *pl_doc_paragraph(pl_doc *, unsigned flags);
void pl_doc_paragraph_end(pl_doc *);

/* What stands between these is for people alone, whatever keys it has. */
void pl_doc_shown(pl_doc *);
void pl_doc_shown_end(pl_doc *);

/* ---- for both: tables ---- */

/* key: of the array of its rows; NULL: rows go into the array or object that is open. A table in a
 * row of another is for programs alone. */
void pl_doc_table(pl_doc *, const char *key, const pl_doc_column *columns, int count);
void pl_doc_table_end(pl_doc *);
void pl_doc_row(pl_doc *, unsigned flags);
/* A row that is one number to programs: of the open object, the key's value is that of its first cell with a number. */
void pl_doc_row_of(pl_doc *, const char *key, unsigned flags);
void pl_doc_row_end(pl_doc *);

/* Cells, in the order of the columns; those that a row lacks at its end stay empty and have no key. */
void pl_doc_words(pl_doc *, const char *fmt, ...) PL_PRINTF(2, 3);
void pl_doc_text(pl_doc *, const char *text, size_t bytes);
/* For a writer of sentences, as pl_doc_paragraph: a cell, or with a key words for programs. */
pl_str *pl_doc_sentence(pl_doc *, const char *key);
void pl_doc_sentence_end(pl_doc *);
void pl_doc_count(pl_doc *, uint64_t); /* of any kind that is whole and without a sign */
void pl_doc_difference(pl_doc *, int64_t);
void pl_doc_real(pl_doc *, double);
/* The same for a row of another quantity than its neighbours: so many digits, not the column's; at most 31. */
void pl_doc_number(pl_doc *, double, int digits);
/* A prediction: "~1.23 s" where it is estimated; negative: unknown; to programs null where not above 0. */
void pl_doc_seconds(pl_doc *, double seconds, bool is_estimated);
void pl_doc_bool(pl_doc *, bool);
void pl_doc_unknown(pl_doc *); /* "-"; null */
void pl_doc_blank(pl_doc *);   /* nothing; no key */
/* One more share, from 0 to 1, of the bar in the column that is next; the cell is there with the first and ends with
 * pl_doc_bar_end. */
void pl_doc_bar(pl_doc *, const char *class_name, double share);
void pl_doc_bar_end(pl_doc *);

/* ---- for people: figures ---- */

/* What is drawn, from data of the caller's that outlive the document. Either may be NULL: it has no such picture. */
typedef struct pl_doc_figure {
    void (*text)(const void *of, unsigned columns, bool color, pl_str *out);
    void (*page)(const void *of, pl_str *out); /* HTML */
    const void *of;
    bool explored; /* the page's picture is one that its script lets people zoom and search (explore.js) */
} pl_doc_figure;
void pl_doc_draw(pl_doc *, const pl_doc_figure *);
/* A figure for pages that is drawn at once, by charts (show/chart.h) that append to the string until the end: so their
 * data need not outlive it. */
pl_str *pl_doc_drawing(pl_doc *);
void pl_doc_drawing_end(pl_doc *);

/* ---- for programs: between sections, or in a row; key "": an element of the array that is open ---- */

void pl_doc_object(pl_doc *, const char *key); /* key NULL: inside an array */
void pl_doc_object_end(pl_doc *);
void pl_doc_array(pl_doc *, const char *key);
void pl_doc_array_end(pl_doc *);
void pl_doc_key_words(pl_doc *, const char *key, const char *text); /* NULL: null */
void pl_doc_key_text(pl_doc *, const char *key, const char *text, size_t bytes);
void pl_doc_key_count(pl_doc *, const char *key, uint64_t);
void pl_doc_key_difference(pl_doc *, const char *key, int64_t);
void pl_doc_key_real(pl_doc *, const char *key, double);
void pl_doc_key_bool(pl_doc *, const char *key, bool);
void pl_doc_key_null(pl_doc *, const char *key);
/* What is not known is null. */
void pl_doc_key_count_if(pl_doc *, bool known, const char *key, uint64_t);
void pl_doc_key_real_if(pl_doc *, bool known, const char *key, double);

#endif
