/* Lines of text on their way into a file: gathered, for a system call for each would be slow on a disk far away. Asks
 * for no memory. */
#ifndef PL_BASE_LINE_FILE_H
#define PL_BASE_LINE_FILE_H

#include "base/file.h"

enum { PL_LINE_BYTES = 256, PL_LINE_BLOCK_BYTES = 4096 };

typedef struct pl_line_file {
    pl_file_writer *file;
    size_t bytes;
    char text[PL_LINE_BLOCK_BYTES];
} pl_line_file;

/* Room for another line of PL_LINE_BYTES − 1 bytes at most. */
pl_status pl_line_begin(pl_line_file *, pl_error *);
/* More of it. */
void pl_line_put(pl_line_file *, const char *fmt, ...) PL_PRINTF(2, 3);
pl_status pl_line_flush(pl_line_file *, pl_error *);

/* The whole file: what `put` gives, or nothing. */
pl_status pl_line_file_write(const char *path, pl_status (*put)(pl_line_file *, const void *context, pl_error *),
                             const void *context, pl_error *);

#endif
