/* Lists of names: a file whose lines are names, for more of them than arguments or a config can hold. A name is
 * relative to the folder of its list, so that it means the same wherever a command is run. The only reader of lists,
 * for texts and for infer's files. Running plans read them, too. */
#ifndef PL_TEXTS_LIST_H
#define PL_TEXTS_LIST_H

#include "base/file.h"

enum { PL_LISTS_DEEP = 8 /* nesting depth */, PL_LIST_BYTES_MAX = 16 << 20 };

/* Where a name stands; NULL in its place: the user gave it. */
typedef struct pl_list_line {
    const char *list;
    uint64_t number; /* from 1 on */
} pl_list_line;

typedef pl_status (*pl_list_taken)(void *context, const char *name, const pl_list_line *, pl_error *);
/* Each line that is not empty, without its end. PL_E_DATA: there is no such list, or it is not a list. A status other
 * than PL_OK from `taken` ends it. */
pl_status pl_list_each(const char *list, pl_list_taken taken, void *context, pl_error *);
/* The name relative to the current folder. Nameless lists, which the command makes from its arguments
 * (/proc/self/fd/3), lie in no folder. */
pl_status pl_list_seen(const pl_list_line *, const char *name, char path[PL_FILE_PATH_MAX], pl_error *);
/* "LIST:NUMBER", in `room` bytes; "" where that tells the user nothing. Returns the text. */
const char *pl_list_place(const pl_list_line *, char *text, size_t room);
/* PL_E_DATA, with the line, if it names a missing file. */
pl_status pl_list_check_there(const pl_list_line *, const char *path, pl_error *);

#endif
