/* Finds the texts in the bytes of a file, in one pass, says where they lie, and gives them out as they pass. Bytes may
 * come in any portions (but the first contains all of the UTF-8 mark, if there is one). A scanner's memory does not
 * grow with the number of texts, nor, except for jsonl, with the length of one. */
#ifndef PL_TEXTS_SCAN_H
#define PL_TEXTS_SCAN_H

#include "base/error.h"
#include "texts/setup.h"
#include "texts/unescape.h"

/* Where a text lies in its file, and how. */
typedef struct pl_text_place {
    uint64_t offset, bytes;
    pl_text_encoding encoding;
} pl_text_place;
typedef pl_status (*pl_text_found)(void *context, const pl_text_place *, pl_error *);
/* The next bytes of a text, which is reported as found when all of it has passed. */
typedef pl_status (*pl_text_piece)(void *context, const void *, size_t bytes, pl_error *);

typedef struct pl_scanner pl_scanner;
/* The setup, its strings and its path (for sentences) stay the caller's. */
pl_status pl_scanner_create(const pl_texts_setup *, pl_text_found, void *context, pl_scanner **, pl_error *);
pl_status pl_scanner_feed(pl_scanner *, const void *data, size_t bytes, pl_error *);
/* Before the first byte: the texts are wanted, too, decoded. */
pl_status pl_scanner_want_pieces(pl_scanner *, pl_text_piece, pl_error *);
/* After the last byte. */
pl_status pl_scanner_finish(pl_scanner *, pl_error *);
void pl_scanner_destroy(pl_scanner *);    /* NULL is fine */
uint64_t pl_scanner_bytes(pl_texts_form); /* the most heap it holds */

/* ---- one form each; private to scan*.c ---- */

enum { PL_SCAN_PIECE_BYTES = 4096 };
typedef struct pl_scan_pieces {
    pl_text_piece piece;
    bool in_text;
    pl_unescape unescape;
    uint8_t buffer[PL_SCAN_PIECE_BYTES + 16]; /* also holds what an escape cut in two still yields */
} pl_scan_pieces;

typedef struct pl_scan {
    const pl_texts_setup *setup;
    pl_text_found found;
    void *context;
    pl_scan_pieces *pieces; /* NULL: only places are wanted */
    uint64_t at;            /* offset of the portion's first byte */
    uint64_t line;          /* number of the line that the next byte is in, from 1 */
} pl_scan;

/* Bytes of a text as they lie in the file. */
pl_status pl_scan_pass(const pl_scan *, pl_text_encoding, const void *, size_t bytes, pl_error *);
/* The text whose bytes have passed. */
pl_status pl_scan_found(const pl_scan *, const pl_text_place *, pl_error *);

typedef struct pl_scan_lines {
    uint64_t begin;
    bool after_cr; /* not passed yet: it may belong to the line end */
} pl_scan_lines;
pl_status pl_scan_lines_feed(pl_scan *, pl_scan_lines *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_lines_finish(pl_scan *, pl_scan_lines *, pl_error *);

typedef struct pl_scan_jsonl {
    char *line;
    char *as_is; /* the line before mending, where pieces are wanted; same size */
    size_t bytes, capacity;
    uint64_t begin;
} pl_scan_jsonl;
pl_status pl_scan_jsonl_feed(pl_scan *, pl_scan_jsonl *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_jsonl_finish(pl_scan *, pl_scan_jsonl *, pl_error *);

enum { PL_SQUAD_DEPTH_MAX = 64, PL_SQUAD_WORD_BYTES = 32 };

typedef struct pl_scan_csv {
    int state;
    bool in_header, doubled; /* doubled: the field has doubled quotes */
    uint8_t last;            /* byte */
    uint64_t record_line, field, fields, column, begin, end;
    uint64_t passed;        /* the bytes before this one have passed */
    const uint8_t *portion; /* begins at scan->at */
    pl_text_place text;     /* this record's, if its column was reached */
    char name[2 * PL_TEXTS_NAME_BYTES];
    size_t name_bytes; /* of the field in the header, as written; more than fits: too long */
} pl_scan_csv;
pl_scan_csv pl_scan_csv_begin(const pl_scan *);
pl_status pl_scan_csv_feed(pl_scan *, pl_scan_csv *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_csv_finish(pl_scan *, pl_scan_csv *, pl_error *);

typedef struct pl_scan_squad {
    uint8_t state, after_string;                    /* what a string that ends is followed by */
    uint8_t depth, level[PL_SQUAD_DEPTH_MAX], next; /* what each bracket encloses; what the next value would be */
    uint8_t parts;                                  /* wanted */
    uint8_t digits;                                 /* of an escape, still to come */
    bool escaped, wanted, has_escape, any;
    char word[PL_SQUAD_WORD_BYTES]; /* a key, or true, false, null, a number */
    size_t word_bytes;
    uint64_t begin, passed, line_begin;
} pl_scan_squad;
/* "contexts,answers" as bits; 0: it names anything else. NULL: all. */
uint8_t pl_squad_parts(const char *);
pl_scan_squad pl_scan_squad_begin(const pl_scan *);
pl_status pl_scan_squad_feed(pl_scan *, pl_scan_squad *, const uint8_t *, size_t bytes, pl_error *);
pl_status pl_scan_squad_finish(pl_scan *, pl_scan_squad *, pl_error *);

#endif
