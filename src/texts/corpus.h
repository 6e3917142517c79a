/* The one reader of texts: what a user names, read from front to back, text after text, in memory that does not grow
 * with it. Training a tokenizer, turning text into tokens and preparing texts that are read by number all read here.
 *
 * Names are lines: a file; a folder, for all regular files below it, in byte order of their paths; a pattern (*, ?,
 * [abc]), for all that match, in the same order; or @LIST, a file whose lines are such names. An existing file or
 * folder of that name takes precedence over a pattern or a list. Files compressed by gzip are unpacked on the way.
 *
 * A single file that is read as it is, is *plain*: the text is the file, to the byte. Otherwise texts have ends. */
#ifndef PL_TEXTS_CORPUS_H
#define PL_TEXTS_CORPUS_H

#include <stdio.h>
#include <string.h>

#include "base/text_file.h"
#include "texts/setup.h"

/* Strings are the caller's, and outlive the corpus. */
typedef struct pl_corpus_wish {
    const char *names;
    pl_texts_form form;  /* of every file: AUTO, AUTO_LINES, WHOLE, LINES, JSONL, CSV or SQUAD */
    const char *key;     /* as in pl_texts_setup; for CSV the column. NULL: the usual one */
    const char *scratch; /* path prefix of the file in which a folder's names are sorted; that is removed at once */
} pl_corpus_wish;

typedef struct pl_corpus {
    pl_corpus_wish wish;
    bool is_plain;
    bool has_keys; /* some file has a form with keys; determined where a key is given */
    uint64_t files;
    /* As far as known: bytes of all files on disk; for a plain one its inode and times, else, as inode, a hash of those
     * of all files, and of form and key. The content is known after reading: for a plain one the file's, else a hash of
     * form, key, and the contents of the files in order. Names are in neither. */
    pl_origin origin;
    /* How far reading is: bytes of all files on disk. */
    uint64_t at;
    pl_text_progress progress; /* told how far reading is; may be NULL */
    void *context;
} pl_corpus;

/* The most heap that reading holds. */
uint64_t pl_corpus_bytes(const pl_corpus_wish *);
/* Looks at all files. PL_E_DATA: one is missing, the only one is empty, or a folder or pattern has none; PL_E_CONFIG:
 * form and key do not fit, or nothing has keys. */
pl_status pl_corpus_open(pl_corpus *, const pl_corpus_wish *, pl_error *);

/* What takes texts. A status other than PL_OK stops the reading and is passed on. */
typedef struct pl_corpus_taker {
    pl_status (*piece)(void *context, const void *, size_t bytes, pl_error *); /* the next bytes of a text */
    pl_status (*end)(void *context, pl_error *);                               /* the text ends here; NULL: ignored */
    void *context;
} pl_corpus_taker;
/* Reads all texts in order, and determines the origin's content. phase: for the progress. PL_E_DATA: a file does not
 * have its form, there is no text at all, or something was changed meanwhile. */
pl_status pl_corpus_read(pl_corpus *, const char *phase, const pl_corpus_taker *, pl_error *);
/* Determines only the origin's content. */
pl_status pl_corpus_hash(pl_corpus *, pl_error *);
/* Is it still the corpus that it was then? As pl_origin_match. */
pl_status pl_corpus_match(pl_corpus *, const pl_origin *then, bool *same, pl_error *);
/* What a sentence calls it: its first name, and whether there are more. Defined here since a run needs it, too, whose
 * process does not contain the reader (cmake/parts.cmake). */
enum { PL_CORPUS_SAID_BYTES = 400 };
static inline const char *pl_corpus_said(const char *names, char said[PL_CORPUS_SAID_BYTES])
{
    const int first = (int)strcspn(names, "\n");
    uint64_t more = 0;
    for (const char *at = names + first; *at; at++) more += *at == '\n' && at[1] && at[1] != '\n';
    snprintf(said, PL_CORPUS_SAID_BYTES, "%.*s%s", first < 300 ? first : 300, names, more ? " and others" : "");
    return said;
}

/* PL_E_STOPPED when the progress said so. done of total. */
pl_status pl_corpus_tell(const pl_corpus *, const char *phase, uint64_t done, uint64_t total, pl_error *);

/* ---- corpus_names.c ---- */

/* number: that of the name that means it (a file, a folder, a match), from 1. */
typedef pl_status (*pl_named_found)(void *context, const char *path, uint64_t number, pl_error *);
/* Every file that the names mean, in order; or a folder's in any order, if order is not needed. */
pl_status pl_corpus_each_name(const pl_corpus_wish *, bool in_order, pl_named_found, void *context, pl_error *);
/* Every file and folder that the names mean; folders are not looked into. */
pl_status pl_corpus_each_named(const pl_corpus_wish *, pl_named_found, void *context, pl_error *);

#endif
