/* Any number of texts, read by number. Those of a file, or of a folder of texts, stay where they are: an index is made
 * once, and a text is read through it, by position. Texts of several files, of gzip files, and of a folder of records
 * are gathered in one file next to the index. Or there is no file at all, and text i is made from (seed, i)
 * (grammar.h).
 *
 * Preparing streams: memory does not grow with the number of texts, nor with the length of one, and what has been read
 * leaves the page cache. Reading asks for no memory and no library. */
#ifndef PL_DATA_TEXTS_H
#define PL_DATA_TEXTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/origin.h"
#include "base/text_file.h"
#include "texts/setup.h"

enum { PL_TEXTS_WINDOW_BYTES = 1 << 18 }; /* two windows of the source, and of the index, stay in the page cache */

/* What is known about the texts; for a file and a folder it stands in the index. */
typedef struct pl_texts_info {
    uint64_t count;          /* texts in the source, whatever the setup's count */
    uint64_t recipe;         /* form, key and column, hashed */
    pl_origin source;        /* the file; for a folder the bytes of all files, and as content a hash of paths, sizes
                            * and contents, in order; for a grammar the seed as content */
    uint64_t listing;        /* folder: of paths, sizes, inodes, times, in any order; gathered: xxh64 of the texts */
    uint64_t gathered_bytes; /* gathered: of the texts, one after the other */
    uint64_t names_bytes;    /* folder: of the paths in the index */
    uint64_t longest;        /* bytes that the longest text takes in its file */
    uint64_t body_hash;      /* hash of what follows the header */
} pl_texts_info;

/* ---- texts_prepare.c: in the planner ---- */
typedef struct pl_texts_options {
    pl_texts_setup setup;
    const char *index_path;    /* for the index; not used for a grammar */
    pl_text_progress progress; /* may be NULL */
    void *context;
    /* Called once before the index is written, never when it is reused: makes the folder, keeps others out. May be
     * NULL. */
    pl_status (*before_writing)(void *, pl_error *);
    void *writing;
} pl_texts_options;

typedef struct pl_texts_result {
    pl_texts_info info;
    bool reused;
    char reason[256]; /* why the index was made again although there was one; empty otherwise */
} pl_texts_result;

/* Heap that preparing holds at most, jansson's included. */
uint64_t pl_texts_prepare_bytes(const pl_texts_setup *);
/* On success the index at index_path is complete and that of the source as it is now. */
pl_status pl_texts_prepare(const pl_texts_options *, pl_texts_result *, pl_error *);

/* ---- texts.c: in planner and runner ---- */
typedef struct pl_texts {
    pl_texts_form form;
    uint64_t seed, count; /* count: texts that can be read */
    uint64_t wanted;      /* as the setup has it; 0: all */
    pl_texts_info info;
    int fd, index_fd;                      /* a folder has no fd */
    _Atomic uint64_t window, index_window; /* where reading is, in windows */
    char path[PL_FILE_PATH_MAX];           /* the source's */
    char index_path[PL_FILE_PATH_MAX];
} pl_texts;

/* Checks the whole index, and that the source has the size and time from which it was made. PL_E_DATA: it is damaged or
 * belongs to another source or setup; the sentence says which. */
pl_status pl_texts_open(pl_texts *, const pl_texts_setup *, const char *index_path, pl_error *);
void pl_texts_close(pl_texts *); /* harmless on one that was not opened, if zeroed with fds −1 */

/* The text of a number below `count`: its first bytes, at most `room`, into the caller's memory. *whole: these are all.
 * (Where not, the last character may be cut.) Several threads may read at once. PL_E_DATA when the source was changed
 * or cut short meanwhile. */
pl_status pl_texts_read(pl_texts *, uint64_t number, void *buffer, size_t room, size_t *bytes, bool *whole, pl_error *);

/* Is a file still as its index says? Then what was read from it so far is right. PL_E_DATA, PL_E_STORAGE. (The files of
 * a folder are checked one by one when they are read.) */
pl_status pl_texts_check(const pl_texts *, pl_error *);

/* What a resumed run must find again: the same texts have the same, whatever their file's name and time of change. */
uint64_t pl_texts_identity(const pl_texts *);
uint64_t pl_texts_index_bytes(const pl_texts_info *); /* of the index as a file; a grammar has none */

#endif
