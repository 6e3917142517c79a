/* A text that people and programs read as it is, and that is trusted later: its checksum lies next to it, in
 * PATH.xxh64, as `xxh64sum` writes and checks it. */
#ifndef PL_STORE_SUM_FILE_H
#define PL_STORE_SUM_FILE_H

#include <stdbool.h>

#include "base/error.h"

#define PL_SUM_FILE_ENDING ".xxh64"

/* Of the file at path, which is whole on the disk. Asks for no memory. */
pl_status pl_sum_file_write(const char *path, pl_error *);
/* Is the file there, and as it was written? One without a checksum, of an earlier build, is taken as it is. */
pl_status pl_sum_file_check(const char *path, bool *is_sound, pl_error *);

#endif
