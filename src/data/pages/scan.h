/* Finds the texts in the bytes of a file, in one pass, and says where they lie. Bytes may come in any portions (but the
 * first has the mark of UTF-8 whole, where there is one). What a scanner holds does not grow with the number of texts,
 * nor, but for jsonl, with the length of one. */
#ifndef PL_DATA_SCAN_H
#define PL_DATA_SCAN_H

#include "data/pages/texts.h"
#include "data/pages/unescape.h"

/* Where a text lies in its file, and how. */
typedef struct pl_text_place {
    uint64_t offset, bytes;
    pl_text_encoding encoding;
} pl_text_place;
typedef pl_status (*pl_text_found)(void *context, const pl_text_place *, pl_error *);

typedef struct pl_scanner pl_scanner;
/* The setup, its strings and its path (for sentences) stay the caller's. */
pl_status pl_scanner_create(const pl_texts_setup *, pl_text_found, void *context, pl_scanner **, pl_error *);
pl_status pl_scanner_feed(pl_scanner *, const void *data, size_t bytes, pl_error *);
/* Behind the last byte. */
pl_status pl_scanner_finish(pl_scanner *, pl_error *);
void pl_scanner_destroy(pl_scanner *);    /* NULL is fine */
uint64_t pl_scanner_bytes(pl_texts_form); /* heap it holds at most */

/* ---- of one form each; private to scan*.c ---- */
typedef struct pl_scan {
    const pl_texts_setup *setup;
    pl_text_found found;
    void *context;
    uint64_t at;   /* offset of the portion's first byte */
    uint64_t line; /* number of the line that the next byte is in, from 1 on */
} pl_scan;

typedef struct pl_scan_lines {
    uint64_t begin;
    bool after_cr;
} pl_scan_lines;
pl_status pl_scan_lines_feed(pl_scan *, pl_scan_lines *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_lines_finish(pl_scan *, pl_scan_lines *, pl_error *);

typedef struct pl_scan_jsonl {
    char *line;
    size_t bytes, capacity;
    uint64_t begin;
} pl_scan_jsonl;
pl_status pl_scan_jsonl_feed(pl_scan *, pl_scan_jsonl *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_jsonl_finish(pl_scan *, pl_scan_jsonl *, pl_error *);

typedef struct pl_scan_csv {
    int state;
    bool in_header, doubled; /* doubled: the field has doubled quotes */
    uint8_t last;            /* byte */
    uint64_t record_line, field, fields, column, begin, end;
    pl_text_place text; /* of this record, where its column was reached */
    char name[2 * PL_TEXTS_NAME_BYTES];
    size_t name_bytes; /* of the field in the header, as it stands there; more than there is room for: too long */
} pl_scan_csv;
pl_scan_csv pl_scan_csv_begin(const pl_scan *);
pl_status pl_scan_csv_feed(pl_scan *, pl_scan_csv *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_csv_finish(pl_scan *, pl_scan_csv *, pl_error *);

#endif
