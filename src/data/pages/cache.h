/* A cache of pages, on the disk: packed (pack.h), under a hash of their content (a text, a number) and of whatever else
 * decides them, in a file kept by SQLite (cache_module.h). It holds drawn pages, which helps only where drawing takes
 * most of the time, or denoised ones. It may be removed at any time.
 *
 * A failure here makes nothing else fail: pages are made, and a sentence waits to be told. A page that is read must
 * have the right checksum, which covers its key, too; else the file is given up, and made anew by the next run. */
#ifndef PL_DATA_PAGES_CACHE_H
#define PL_DATA_PAGES_CACHE_H

#include "data/pages/cache_module.h"
#include "data/pages/draw.h"

enum { PL_PAGE_CACHE_TEXT_BYTES = 400 };
#define PL_PAGE_CACHE_NAME "plimsoll-pages.sqlite" /* a file of that name that is not ours is removed */

typedef struct pl_page_cache pl_page_cache;

/* Words for sentences about it. */
typedef struct pl_page_cache_use {
    const char *makes;    /* "this run draws all pages" */
    const char *size_key; /* the config's key for its bound */
    const char *without;  /* how to go on without the module */
} pl_page_cache_use;

extern const pl_page_cache_use pl_page_cache_drawn, pl_page_cache_denoised;

typedef struct pl_page_cache_setup {
    const char *folder;       /* made if missing; stays the caller's */
    uint64_t file_bytes;      /* the file's bound; PL_CACHE_FILE_BYTES_MIN at least */
    uint32_t rows, row_bytes; /* of a page (pack.h) */
    const pl_page_cache_use *use;
} pl_page_cache_setup;

typedef struct pl_page_cache_count {
    uint64_t found, drawn; /* pages that were there, and that were not */
    uint64_t left_out;     /* of those: packed larger than a value may be, so not kept */
    pl_cache_facts facts;  /* of the file and its memory, when it was closed */
} pl_page_cache_count;

/* On the disk, journal included. */
uint64_t pl_page_cache_disk_bytes(uint64_t file_bytes);

/* Finds the module, and takes memory for all that follows: one block of pl_alloc. PL_E_UNSUPPORTED with the package
 * that is missing, PL_E_NOMEM. No file is touched. */
pl_status pl_page_cache_create(const pl_page_cache_setup *, pl_page_cache **, pl_error *);
/* Loads the module for good, so that its pages count as the process's (systems/system.h). */
pl_status pl_page_cache_keep_module(const pl_page_cache_use *, pl_error *);
/* Closes it, too. NULL is fine. */
void pl_page_cache_destroy(pl_page_cache *);

/* Opens the file; recipe: a hash of what decides a page besides its content. Where that fails, it stays closed and
 * there is something to tell. From here on it uses no memory but its own. */
void pl_page_cache_open(pl_page_cache *, uint64_t recipe);
bool pl_page_cache_is_open(const pl_page_cache *);

/* Scratch of a thread: a packed page. */
uint64_t pl_page_cache_scratch_bytes(uint32_t rows, uint32_t row_bytes);
/* May each such page be kept, whatever is on it? */
bool pl_page_cache_keeps(uint32_t rows, uint32_t row_bytes);

/* text: the page's content, bytes of any kind. Several threads may ask at once. */
bool pl_page_cache_get(pl_page_cache *, const void *text, size_t bytes, bool whole, void *scratch, uint8_t *page,
                       uint8_t *remarks);
void pl_page_cache_put(pl_page_cache *, const void *text, size_t bytes, bool whole, void *scratch, const uint8_t *page,
                       uint8_t remarks);

/* For a folder whose lock the caller holds (flock of the folder, as runs do): removes its file, or lowers its bound in
 * bytes of disk; PL_CACHE_FILE_BYTES_MIN at least. PL_E_UNSUPPORTED where the file cannot be made smaller. */
pl_status pl_page_cache_remove(const char *folder, pl_error *);
pl_status pl_page_cache_shrink(const char *folder, uint64_t file_bytes, pl_error *);

/* True, and a sentence, where something was not told yet. */
bool pl_page_cache_tell(pl_page_cache *, char text[PL_PAGE_CACHE_TEXT_BYTES]);
void pl_page_cache_read_count(pl_page_cache *, pl_page_cache_count *);

#endif
