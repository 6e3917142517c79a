/* The file that something was prepared from: is it still that one? The one rule for all that is prepared once and found
 * again (tokens, chains, frames of flights, indexes of texts).
 *
 * A file is known by its size, its inode and its two times. Who edits it, or puts another one in its place, can set its
 * size and the time of its contents to what they were, but not the others; and these change, too, where a folder is
 * copied or moved. So where they alone differ, what the file holds decides: it is read once and hashed, and what was
 * prepared notes how the file is known from then on. */
#ifndef PL_BASE_ORIGIN_H
#define PL_BASE_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_origin {
    uint64_t bytes, inode;
    int64_t mtime_ns; /* of its contents, which can be set */
    int64_t ctime_ns; /* of anything about it, which cannot */
    uint64_t content; /* xxh64 of all of it */
} pl_origin;

/* All but the content. path: for sentences. PL_E_STORAGE. */
pl_status pl_origin_look(int fd, const char *path, pl_origin *, pl_error *);
/* As far as can be told without reading it. */
bool pl_origin_is_untouched(const pl_origin *now, const pl_origin *then);
/* xxh64 of a file of so many bytes, from one of them on. Keeps nothing of it in the page cache. PL_E_STORAGE. */
pl_status pl_origin_hash(int fd, const char *path, uint64_t from, uint64_t bytes, uint64_t *content, pl_error *);
/* Is the file the one that it was then? now: as pl_origin_look; gets its content where it is the same, and where that
 * was looked at. */
pl_status pl_origin_match(int fd, const char *path, pl_origin *now, const pl_origin *then, bool *same, pl_error *);
/* Notes in a prepared file how its source is known now: `put` prints it into so many bytes from `at` on, checksum and
 * all. Only where they name a source of the same content already, at `content_at`: another process may have put another
 * file in its place. What cannot be written is looked at again the next time. */
enum { PL_ORIGIN_NOTE_BYTES = 128 };
void pl_origin_note(const char *path, uint64_t at, size_t bytes, size_t content_at,
                    void (*put)(uint8_t *to, const pl_origin *), const pl_origin *);

#endif
