/* What the texts of a source are: how they lie in their files, and which string of a record is one. */
#ifndef PL_TEXTS_SETUP_H
#define PL_TEXTS_SETUP_H

#include <stdbool.h>
#include <stdint.h>

/* Those up to gathered are stored as numbers in files (data/pages/texts_index.h).
 *
 *   lines    one text per line, which ends with "\n" or "\r\n"; the last may lack its end
 *   jsonl    one object per line, in which the text is the string at a key; lines of blanks alone are passed over
 *   csv      RFC 4180, commas; the first record names the columns; empty lines are passed over
 *   folder   each regular file below a folder is a text, in the order of the bytes of its path; links to folders are
 *            not followed
 *   grammar  made, without a file
 *   squad    SQuAD's JSON: contexts, questions, and the first answer to each question, in the order of the file
 *   whole    a file is a text
 *   gathered texts of any source, read once and kept one after another (data/pages/texts.h)
 *   auto     one of jsonl, csv, squad and whole, as the name and the beginning of each file tell
 *   … lines  likewise, but what would be whole is lines
 *
 * A UTF-8 mark (EF BB BF) at the beginning of a file belongs to no text. Bytes that are not UTF-8, and zeros, are given
 * as they are; half of a surrogate pair in JSON (\ud800) as the byte FF, which is not UTF-8 either. An empty text is a
 * text. (Parquet is left out: Debian 12 has no library for it, Arrow's included.) */
typedef enum pl_texts_form {
    PL_TEXTS_LINES,
    PL_TEXTS_JSONL,
    PL_TEXTS_CSV,
    PL_TEXTS_FOLDER,
    PL_TEXTS_GRAMMAR,
    PL_TEXTS_SQUAD,
    PL_TEXTS_WHOLE,
    PL_TEXTS_GATHERED,
    PL_TEXTS_AUTO,
    PL_TEXTS_AUTO_LINES
} pl_texts_form;

enum {
    PL_TEXTS_NAME_BYTES = 256,      /* of a key or a column, with its end */
    PL_TEXTS_LINE_BYTES = 4 << 20,  /* jsonl: of a line, at most; other texts may have any length */
    PL_TEXTS_LINE_VALUES = 1 << 15, /* jsonl: commas and brackets of a line, which bound its tree's memory */
    PL_TEXTS_DEPTH_MAX = 32,        /* folders within folders */
};

/* All strings are the caller's. */
typedef struct pl_texts_setup {
    pl_texts_form form;
    const char *path;   /* of the file or folder; for a grammar NULL */
    const char *key;    /* jsonl; NULL: "text". squad: contexts, questions, answers, with commas; NULL: all three */
    const char *column; /* csv: its name or, if no column has that name, its number, from 1; NULL: "text" */
    bool headless;      /* csv: the first record has a text, too, and the column is a number */
    uint64_t seed;      /* grammar */
    uint64_t count;     /* grammar: how many; others: the first so many, 0: all */
} pl_texts_setup;

#endif
