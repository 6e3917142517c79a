/* What two paths have to do with each other. */
#ifndef PL_SYSTEMS_FILES_H
#define PL_SYSTEMS_FILES_H

#include <stdbool.h>

/* Are these two one file, or will they be? */
bool pl_files_are_one(const char *a, const char *b);
/* Does the file lie in this folder, or will it? Neither need be there. */
bool pl_file_is_below(const char *path, const char *folder);

#endif
