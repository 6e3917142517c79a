/* What a frozen part of a model makes of each page, kept on the disk for later epochs: a file of one place for each of
 * the first pages, as many as its size allows.
 *
 *   64 bytes    a header: what the features are of, how many places there are, and a checksum of it
 *   8 a place   the checksum of what lies in the place (xxh64, 1 for 0; its seed the header's sum plus the place's
 *               number, so that what was of another header or place does not count); 0: nothing
 *   at a page   the places
 *
 * A place counts where its checksum is that of its bytes, so nothing here needs to be written in an order, or to have
 * reached the disk: what was torn or damaged is made again. The file's length is known beforehand and reserved. Behind
 * the opening nothing asks for memory, and the page cache is kept to PL_PAGE_FEATURES_CACHE_BYTES.
 *
 * A place is read by the threads of the ring while another is written by who runs programs. */
#ifndef PL_DATA_PAGE_FEATURES_H
#define PL_DATA_PAGE_FEATURES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/file.h"

enum { PL_PAGE_FEATURES_SAID_BYTES = 400, PL_PAGE_FEATURES_CACHE_BYTES = 3 * PL_FILE_WINDOW_BYTES };

typedef struct pl_page_features {
    int fd; /* -1: not open */
    char *path;
    uint64_t places, place_bytes;
    uint64_t seed;                          /* of the places' checksums: the header's sum; a place adds its number */
    _Atomic uint64_t *sum;                  /* [places] */
    _Atomic uint64_t moved;                 /* bytes since the page cache was last emptied */
    _Atomic uint32_t damaged;               /* places that were, since it was last told */
    _Atomic int failed;                     /* errno of a read or a write: from then on nothing is */
    bool told;                              /* that */
    char said[PL_PAGE_FEATURES_SAID_BYTES]; /* what opening has found; "": nothing */
} pl_page_features;

/* For `items` things of so many bytes each, in a file of at most `most` bytes. PL_E_CONFIG when not one fits. */
pl_status pl_page_features_init(pl_page_features *, const char *path, uint64_t items, uint64_t place_bytes,
                                uint64_t most, pl_error *);
void pl_page_features_deinit(pl_page_features *);
uint64_t pl_page_features_file_bytes(const pl_page_features *);

/* Those of another key are dropped, and so is a damaged file. PL_E_STORAGE where there is no room, or another process
 * has it; PL_E_USAGE when the file is somebody else's. */
pl_status pl_page_features_open(pl_page_features *, uint64_t key, pl_error *);

/* Is there a place for the item, and is something in it? */
bool pl_page_features_has(const pl_page_features *, uint64_t item);
/* False: it is not there, or no longer as it was written. */
bool pl_page_features_read(pl_page_features *, uint64_t item, void *to);
void pl_page_features_write(pl_page_features *, uint64_t item, const void *from);
/* What has happened since it was last asked, as a sentence; false: nothing. By one thread. */
bool pl_page_features_tell(pl_page_features *, char *text, size_t room);

#endif
