/* What lies in a folder that Plimsoll keeps its files in, which of it may be deleted and why, and deleting it
 * (docs/storage.md). Deleted is only what is known by its content or by a name that nobody else gives, under the locks
 * that runs take; links, and what is unknown, are told and left alone.
 *
 *     pl_storage_rules rules = {.keep_last = 3};
 *     pl_storage *storage;
 *     if (pl_storage_look("runs", &rules, &storage, &error) == PL_OK) {
 *         status = pl_storage_clean(storage, NULL, NULL, &cleaned, &error);
 *         pl_storage_destroy(storage);
 *     }
 */
#ifndef PLIMSOLL_STORAGE_H
#define PLIMSOLL_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_storage pl_storage;

/* What is to be done beside removing what killed processes left behind. */
typedef struct pl_storage_rules {
    uint64_t keep_last; /* of each run so many sound checkpoints, the best and the latest stay; 0: all */
    bool bounds_caches; /* each cache gets at most so many bytes of disk; 0: it is removed */
    uint64_t cache_bytes;
    bool consolidates;    /* parts in temp/ become one file in datasets/ */
    uint64_t limit_bytes; /* told against what is there; 0: none */
} pl_storage_rules;

typedef enum pl_storage_kind {
    PL_STORAGE_RUN, /* records of a run: config, plan, metrics, reports */
    PL_STORAGE_CHECKPOINT,
    PL_STORAGE_RESULTS,
    PL_STORAGE_PART, /* results of a part of a job */
    PL_STORAGE_DATA, /* tokens, frames, the index of texts */
    PL_STORAGE_CACHE,
    PL_STORAGE_TEMPORARY,
    PL_STORAGE_OUTPUT, /* written where a command was told to: pages, models for other programs, arrays */
    PL_STORAGE_LINK,
    PL_STORAGE_UNKNOWN,
    PL_STORAGE_KINDS
} pl_storage_kind;

typedef enum pl_storage_fate {
    PL_STORAGE_STAYS,
    PL_STORAGE_GOES,
    PL_STORAGE_SHRINKS,
    PL_STORAGE_JOINS,  /* into one file with other parts; then it goes */
    PL_STORAGE_IN_USE, /* by a process that is running: left alone */
    PL_STORAGE_FATES
} pl_storage_fate;

/* Texts belong to the storage. */
typedef struct pl_storage_item {
    const char *path; /* from the folder on */
    pl_storage_kind kind;
    pl_storage_fate fate;
    const char *why;
    uint64_t bytes; /* of the disk */
    uint64_t gain;  /* of them, when the rules are followed */
    double age_seconds;
} pl_storage_item;

/* Looks, and changes nothing. PL_E_USAGE where there is no such folder, PL_E_STORAGE where it cannot be read. With
 * keep_last the checkpoints that would stay are read and compared with their checksums. */
PL_API PL_MUST_USE pl_status pl_storage_look(const char *folder, const pl_storage_rules *, pl_storage **, pl_error *);
PL_API void pl_storage_destroy(pl_storage *); /* NULL is fine */

PL_API size_t pl_storage_count(const pl_storage *);
PL_API pl_storage_item pl_storage_at(const pl_storage *, size_t index); /* in the order of their paths */

/* Text in a block for pl_text_free: tables, or JSON (schema plimsoll.storage/1). */
typedef enum pl_storage_form { PL_STORAGE_TEXT, PL_STORAGE_JSON } pl_storage_form;
PL_API PL_MUST_USE pl_status pl_storage_print(const pl_storage *, pl_storage_form, char **text, size_t *bytes,
                                              pl_error *);

typedef struct pl_storage_cleaned {
    uint64_t items, bytes; /* that are gone, and what that gave to the disk */
    uint64_t left;         /* that should have gone and did not: `tell` heard why */
    uint64_t in_use;       /* what a process was using when it was looked at: whatever it is, it was left alone */
} pl_storage_cleaned;

/* Does what was found when it was looked at, each under the lock of who could be using it, and looked at again first.
 * `tell` (or NULL) hears of each what became of it: gained bytes, or `problem`, why it is left. The first failure is
 * given back when all else is done; that somebody is using a thing is none. */
PL_API PL_MUST_USE pl_status pl_storage_clean(const pl_storage *,
                                              void (*tell)(void *context, const pl_storage_item *, uint64_t gained,
                                                           const char *problem),
                                              void *context, pl_storage_cleaned *, pl_error *);

/* Do temporary files pile up there? Then a sentence with the remedy into the text, else "". Changes nothing, and never
 * fails: a warning is no reason to end a run. */
enum { PL_STORAGE_WARNING_BYTES = 512 };
PL_API void pl_storage_warn(const char *folder, char text[PL_STORAGE_WARNING_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
