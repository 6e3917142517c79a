/* How a document lies in its block, for its writer and its renderers: items one after the other, each followed by its
 * text, if it has one, which ends with a 0 and is padded to 8 bytes. */
#ifndef PL_SHOW_ITEM_H
#define PL_SHOW_ITEM_H

#include "show/doc.h"

typedef enum pl_doc_tag {
    PL_ITEM_TITLE,   /* name: before; value.text: what; text: the title */
    PL_ITEM_SECTION, /* name: title; NULL: it is the text */
    PL_ITEM_SECTION_END,
    PL_ITEM_SHOWN,
    PL_ITEM_SHOWN_END,
    PL_ITEM_CARD, /* text: the number, a 0, the words */
    PL_ITEM_PARAGRAPH,
    PL_ITEM_TABLE, /* name: key */
    PL_ITEM_TABLE_END,
    PL_ITEM_ROW, /* name: key */
    PL_ITEM_ROW_END,
    PL_ITEM_CELL,  /* in a row; or with a name a number for programs */
    PL_ITEM_SHARE, /* name: class; value.real */
    PL_ITEM_FIGURE,
    PL_ITEM_DRAWING, /* text: HTML */
    PL_ITEM_OBJECT,  /* name: key; for programs, as all below */
    PL_ITEM_OBJECT_END,
    PL_ITEM_ARRAY,
    PL_ITEM_ARRAY_END
} pl_doc_tag;

typedef enum pl_cell_type {
    PL_CELL_BLANK,
    PL_CELL_UNKNOWN,
    PL_CELL_WORDS,
    PL_CELL_COUNT,
    PL_CELL_DIFFERENCE,
    PL_CELL_REAL,
    PL_CELL_BOOL,
    PL_CELL_BAR
} pl_cell_type;

enum {
    PL_ITEM_LONG = 1 << 8,
    PL_ITEM_ESTIMATED = 1 << 9,
    PL_ITEM_SECONDS = 1 << 10,
    PL_ITEM_DIGITS = 11, /* of cells: from this bit on */
    PL_ITEM_HALF = 1 << 11,
    PL_ITEM_FOLDED = 1 << 12,
    PL_ITEM_DRAWN = 1 << 13
};

typedef struct pl_doc_item {
    uint8_t tag, type; /* pl_doc_tag, pl_cell_type */
    uint16_t flags;
    uint32_t text_bytes; /* without its 0 */
    const char *name;
    union {
        uint64_t count; /* of a table: of its columns, which are the text */
        int64_t difference;
        double real;
        const char *text;
    } value;
} pl_doc_item;

/* The first item after this one (NULL: of all); NULL: there is no more. */
const pl_doc_item *pl_item_next(const pl_doc *, const pl_doc_item *);
const char *pl_item_text(const pl_doc_item *); /* "": it has none */
/* The end of what begins with this item: a table, a row, a section, what is for people. NULL: the document was cut. */
const pl_doc_item *pl_item_end(const pl_doc *, const pl_doc_item *begin);
/* The next row for people after an item within a table; NULL: there is none. */
const pl_doc_item *pl_item_row(const pl_doc *, const pl_doc_item *);
/* The columns of a table's item. */
const pl_doc_column *pl_item_columns(const pl_doc_item *);

#endif
