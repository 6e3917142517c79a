/* What the module plimsoll-cache.so offers: values by key in one file, bounded in bytes, the least recently used given
 * up first, and not washed out by a scan (modules/cache.c).
 * SQLite keeps them; it is part of the module and of nothing else, so that its settings are the module's own, and all
 * that it asks for comes from the caller's memory. Plain values: of src/ the module has this header and the heap
 * (heap.h).
 *
 * The file can be removed at any time: who has it open goes on with what has no name any more. A process that is killed
 * leaves a journal, with which the next one undoes what was half done. */
#ifndef PL_DATA_PAGES_CACHE_MODULE_H
#define PL_DATA_PAGES_CACHE_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_CACHE_FILE   "plimsoll-cache.so"
#define PL_CACHE_SYMBOL "pl_cache_functions"
enum {
    PL_CACHE_VERSION = 3,
    PL_CACHE_KEY_BYTES = 16,
    PL_CACHE_MEMORY_BYTES = 1 << 20,     /* SQLite's, at most; measured: half of it */
    PL_CACHE_FILE_BYTES_MIN = 1 << 20,   /* of the file */
    PL_CACHE_JOURNAL_BYTES = 4 << 20,    /* of the journal beside it, at most */
    PL_CACHE_PAGE_CACHE_BYTES = 8 << 20, /* of both in the kernel's cache, at most */
    PL_CACHE_VALUE_BYTES_MAX = 256 << 10 /* SQLite has it in its memory as a whole */
};

typedef struct pl_cache_store pl_cache_store;

typedef enum pl_cache_answer {
    PL_CACHE_OK,
    PL_CACHE_NONE,    /* no such value */
    PL_CACHE_DAMAGED, /* the file is none of ours, or cannot be read: remove it */
    PL_CACHE_FAILED   /* `why` says so */
} pl_cache_answer;

typedef struct pl_cache_facts {
    uint64_t values, bytes;                   /* kept, and what they take of the file */
    uint64_t used_bytes, peak_bytes, refused; /* of the memory; requests that it could not serve */
} pl_cache_facts;

/* Not to be called from two threads at once. */
typedef struct pl_cache_module {
    uint32_t version;
    /* One at a time in a process. The file is made where there is none; it never has more than file_bytes. */
    pl_cache_answer (*open)(void *memory, uint64_t bytes, const char *path, uint64_t file_bytes, pl_cache_store **,
                            char *why, size_t room);
    pl_cache_answer (*get)(pl_cache_store *, const uint8_t key[PL_CACHE_KEY_BYTES], void *to, uint64_t room,
                           uint64_t *bytes);
    /* A value of a key that has none. One that is too large is not kept: PL_CACHE_NONE. */
    pl_cache_answer (*put)(pl_cache_store *, const uint8_t key[PL_CACHE_KEY_BYTES], const void *value, uint64_t bytes);
    const char *(*why)(const pl_cache_store *); /* of the last answer that was no success */
    void (*tell)(pl_cache_store *, pl_cache_facts *);
    void (*close)(pl_cache_store *); /* what was put stays */
    /* A file that nobody has open gets a smaller bound: values go, the least recently used first, then the file is cut.
     * PL_CACHE_NONE: it cannot be cut. */
    pl_cache_answer (*shrink)(void *memory, uint64_t bytes, const char *path, uint64_t file_bytes, char *why,
                              size_t room);
} pl_cache_module;

#endif
