/* The one reader of texts: what a user names, read from front to back, text after text, in memory that does not grow
 * with it. Who trains a tokenizer, turns text into tokens, or makes texts ready that are read by number reads here.
 *
 * Names are lines: a file; a folder, of which all regular files below it, in the order of the bytes of their paths; a
 * pattern (*, ?, [abc]), of which all that match, in the same order; or @LIST, a file whose lines are such names. What
 * is called so comes before a pattern or a list. What is compressed by gzip is unpacked on the way.
 *
 * One file that is read as it is, is *plain*: the text is the file, to the byte. In all others texts end. */
#ifndef PL_TEXTS_CORPUS_H
#define PL_TEXTS_CORPUS_H

#include <stdio.h>
#include <string.h>

#include "base/text_file.h"
#include "texts/setup.h"

/* Strings are the caller's, and outlive what is opened. */
typedef struct pl_corpus_wish {
    const char *names;
    pl_texts_form form; /* of every file: AUTO, AUTO_LINES, WHOLE, LINES, JSONL, CSV or SQUAD */
    const char *key;    /* as in pl_texts_setup; of CSV the column. NULL: the usual one */
    const char
        *scratch; /* a path that the file begins with in which names of a folder are sorted; it is gone at once */
} pl_corpus_wish;

typedef struct pl_corpus {
    pl_corpus_wish wish;
    bool is_plain;
    bool has_keys; /* a file has what a key is of; looked for where one is given */
    uint64_t files;
    /* As it is known: bytes of all files as they lie; of a plain one its inode and times, else, as inode, a hash of
     * those of all files, and of form and key. The content is known when it was read: of a plain one that of the file,
     * else a hash of form, key, and the contents of the files in order. Names are in neither. */
    pl_origin origin;
    /* How far reading is: bytes of all files as they lie. */
    uint64_t at;
    pl_text_progress progress; /* told of what is read; may be NULL */
    void *context;
} pl_corpus;

/* Heap that reading holds at most. */
uint64_t pl_corpus_bytes(const pl_corpus_wish *);
/* Looks at all files. PL_E_DATA: one is not there, is empty where it is the only one, a folder or pattern has none;
 * PL_E_CONFIG: form and key do not fit, or nothing has keys. */
pl_status pl_corpus_open(pl_corpus *, const pl_corpus_wish *, pl_error *);

/* Who takes texts. What it returns besides PL_OK stops the reading and is handed on. */
typedef struct pl_corpus_taker {
    pl_status (*piece)(void *context, const void *, size_t bytes, pl_error *); /* the next bytes of a text */
    pl_status (*end)(void *context, pl_error *);                               /* it ends here; NULL: never mind */
    void *context;
} pl_corpus_taker;
/* All texts in order, and the content of the origin. phase: what the progress is told. PL_E_DATA: a file is not what
 * its form says, there is no text at all, or something was changed meanwhile. */
pl_status pl_corpus_read(pl_corpus *, const char *phase, const pl_corpus_taker *, pl_error *);
/* Only the content of the origin. */
pl_status pl_corpus_hash(pl_corpus *, pl_error *);
/* Is it the corpus that it was then? As pl_origin_match. */
pl_status pl_corpus_match(pl_corpus *, const pl_origin *then, bool *same, pl_error *);
/* How a sentence calls it: its first name, and whether there are more. Here, for a run says it, too, and the reader is
 * not in its process (cmake/parts.cmake). */
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

/* number: of the name that means it (a file, a folder, a match), from 1 on. */
typedef pl_status (*pl_named_found)(void *context, const char *path, uint64_t number, pl_error *);
/* Every file that the names mean, in order; or, where the order is not needed, those of a folder in any. */
pl_status pl_corpus_each_name(const pl_corpus_wish *, bool in_order, pl_named_found, void *context, pl_error *);
/* Every file and folder that the names mean; folders are not looked into. */
pl_status pl_corpus_each_named(const pl_corpus_wish *, pl_named_found, void *context, pl_error *);

#endif
