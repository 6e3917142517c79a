/* Lines of a file by their number: where some of them begin is found once, in one pass, and kept in memory that does
 * not grow with the file; a line is read when it is wanted, and its end ("\n" or "\r\n") is no part of it. Line after
 * line each is found where the last ended. */
#ifndef PL_DATA_INFER_LINES_H
#define PL_DATA_INFER_LINES_H

#include "data/infer/rows.h"

enum { PL_INFER_MARKS = 2048 };

/* A line is an item, also one with nothing in it: items and lines have the same numbers, whatever reads them. */
#define PL_INFER_EMPTY "empty", "are empty lines" /* a remark (pl_rows_remark) */

typedef struct pl_infer_lines {
    uint64_t count;
    uint64_t longest;              /* bytes, its end included */
    uint64_t mark[PL_INFER_MARKS]; /* where every `every`-th line begins, from the first on */
    uint64_t marks, every;
    uint64_t next, next_at; /* the line behind the last one that was read, and where it begins */
} pl_infer_lines;

/* PL_E_DATA for a file that is no text: it has a zero in it. Asks for no memory. */
pl_status pl_infer_lines_find(const pl_rows *, pl_infer_lines *, pl_error *);
/* Text without zeros at its beginning, as far as that is there. */
bool pl_infer_lines_are_text(const char *head, size_t bytes);

/* Where the text of a line lies in the file, without its end. By one thread at a time; scratch as below. */
pl_status pl_infer_lines_locate(const pl_rows *, pl_infer_lines *, int fd, uint64_t line, void *scratch,
                                uint64_t *begin, uint64_t *end, pl_error *);
/* Piece after piece of a line into `scratch` (PL_ROWS_SCRATCH_BYTES), handed to `take`, whose failure is passed on. By
 * one thread at a time. */
typedef pl_status pl_infer_take(void *context, const char *piece, size_t bytes, pl_error *);
pl_status pl_infer_lines_read(const pl_rows *, pl_infer_lines *, uint64_t line, void *scratch, pl_infer_take *,
                              void *context, pl_error *);

#endif
