/* The files that the user names, each with its input. A line of the text is PATH, NAME=PATH, or @LIST or NAME=@LIST: a
 * file of such lines (texts/list.h), for more of them than a config takes. */
#ifndef PL_DATA_INFER_NAMES_H
#define PL_DATA_INFER_NAMES_H

#include "base/error.h"
#include "base/str.h"
#include "data/infer/port.h"

typedef struct pl_infer_name {
    const char *path;
    const char *place; /* "LIST:LINE" that names it; "": the user named it */
    uint32_t port;
} pl_infer_name;

typedef struct pl_infer_names {
    char *text, *places; /* what `name` points into */
    pl_infer_name *name;
    uint64_t count;
    pl_str lists; /* lists that were read, a line each */
} pl_infer_names;

/* With one input all files belong to it; else a file without a NAME= belongs to the next input that has none.
 * PL_E_USAGE: a file's input is not known; PL_E_DATA: a list cannot be read. For pl_infer_names_deinit, also when it
 * fails. */
pl_status pl_infer_names_read(const char *text, const pl_infer_port *, uint32_t ports, pl_infer_names *, pl_error *);
/* PL_E_USAGE: NAME=FILE where no input has that name and no file has the whole as its name; PL_E_DATA: a list names a
 * file that is not there. */
pl_status pl_infer_names_check(const pl_infer_names *, const pl_infer_port *, uint32_t ports, pl_error *);
void pl_infer_names_deinit(pl_infer_names *);

#endif
