/* Everything that is wrong with a model, in one sentence: a person who converts a model again wants to know all of it
 * at once. */
#ifndef PL_PRETRAINED_PROBLEMS_H
#define PL_PRETRAINED_PROBLEMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

typedef struct pl_problems {
    char text[768];
    size_t bytes, count, unwritten; /* what no longer fits is counted */
} pl_problems;

void pl_problems_add(pl_problems *, const char *fmt, ...) PL_PRINTF(2, 3);
/* PL_OK without problems; else "PATH: WHAT: first; second; …". */
pl_status pl_problems_fail(const pl_problems *, pl_status, const char *path, const char *what, pl_error *);

#endif
