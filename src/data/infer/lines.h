/* Lines of a file by their number: where each begins is found once, in one pass; a line is read when it is wanted, and
 * its end ("\n" or "\r\n") is no part of it. */
#ifndef PL_DATA_INFER_LINES_H
#define PL_DATA_INFER_LINES_H

#include "data/infer/rows.h"

typedef struct pl_infer_lines {
    uint64_t *begin; /* [count + 1] */
    size_t capacity;
    uint64_t count;
} pl_infer_lines;

/* Ends with deinit, also when it fails. */
pl_status pl_infer_lines_find(const pl_rows *, pl_infer_lines *, pl_error *);
void pl_infer_lines_deinit(pl_infer_lines *);
/* Text without zeros at its beginning, as far as that is there. */
bool pl_infer_lines_are_text(const char *head, size_t bytes);

/* Piece after piece of a line into `scratch` (PL_ROWS_SCRATCH_BYTES), handed to `take`, whose failure is passed on. */
typedef pl_status pl_infer_take(void *context, const char *piece, size_t bytes, pl_error *);
pl_status pl_infer_lines_read(const pl_rows *, const pl_infer_lines *, uint64_t line, void *scratch, pl_infer_take *,
                              void *context, pl_error *);

#endif
