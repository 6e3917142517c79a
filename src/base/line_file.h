/* Files of lines below a header: what an evaluation tells of each sample. On their way into the file lines are
 * gathered, for a system call for each would be slow on a disk far away; writing asks for no memory. */
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

/* ---- reading one ---- */

typedef struct pl_lines {
    const char *path, *what; /* "page": what a line is */
    char *text, *at;
    uint64_t line; /* the number of the one that was given last */
} pl_lines;

/* PL_E_DATA where it has another header. */
pl_status pl_lines_open(pl_lines *, const char *path, const char *header, const char *what, pl_error *);
/* The next one, without its end, for the caller to cut; NULL: there are no more. Of one that is cut off "". */
char *pl_lines_next(pl_lines *);
/* PL_E_DATA: that one is no such thing. */
pl_status pl_lines_refuse(const pl_lines *, pl_error *);
void pl_lines_close(pl_lines *);

/* Whoever refuses such a file ends with this. */
#define PL_LINES_REMEDY "delete the file and train again with --resume, which makes it anew"

#endif
