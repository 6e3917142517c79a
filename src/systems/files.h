/* What two paths have to do with each other. */
#ifndef PL_SYSTEMS_FILES_H
#define PL_SYSTEMS_FILES_H

#include <stdbool.h>

#include "base/error.h"

/* Are these two one file, or will they be? */
bool pl_files_are_one(const char *a, const char *b);
/* Does the file lie in this folder, or will it? Neither need be there. */
bool pl_file_is_below(const char *path, const char *folder);

/* Before a command writes what it was told a name for: PL_E_USAGE where that name belongs to a run, to prepared data or
 * to results (store/run_files.h). own: a record that the command itself is to write, or NULL. */
pl_status pl_file_check_free(const char *path, const char *own, pl_error *);

#endif
