/* A text read once from its beginning to its end, in the caller's blocks. What has been read leaves the page cache, so
 * that a text of any size costs a container no more than a few blocks. */
#ifndef PL_BASE_TEXT_FILE_H
#define PL_BASE_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/origin.h"

enum { PL_TEXT_BLOCK_BYTES = 256 * 1024 };

typedef struct pl_text_file {
    int fd;
    const char *path; /* the caller's */
    uint64_t bytes, at;
    pl_origin origin; /* as it was opened; no content */
} pl_text_file;

/* PL_E_DATA when it cannot be opened, is no regular file or is empty. */
pl_status pl_text_open(pl_text_file *, const char *path, pl_error *);
/* The next bytes, at most `room`; *got is 0 at the end. */
pl_status pl_text_read(pl_text_file *, void *buffer, size_t room, size_t *got, pl_error *);
void pl_text_rewind(pl_text_file *);
/* PL_E_DATA when the file is no longer what it was when it was opened. */
pl_status pl_text_check_unchanged(const pl_text_file *, pl_error *);
void pl_text_close(pl_text_file *); /* harmless on one that was not opened, if zeroed with fd −1 */

/* Called now and then; done of total bytes. May be NULL. False: stop. */
typedef bool (*pl_text_progress)(void *context, const char *phase, uint64_t done, uint64_t total);
/* PL_E_STOPPED when it said so. */
pl_status pl_text_tell_of(const pl_text_file *, pl_text_progress, void *context, const char *phase, uint64_t done,
                          uint64_t total, pl_error *);
/* How much of the text was read. */
pl_status pl_text_tell(const pl_text_file *, pl_text_progress, void *context, const char *phase, pl_error *);

#endif
