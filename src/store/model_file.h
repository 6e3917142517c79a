/* A file of a model: held open, and known again. A model that is replaced or written to while it is read would be half
 * of one and half of another, so who reads one asks before and after whether the file is still what was opened. */
#ifndef PL_STORE_MODEL_FILE_H
#define PL_STORE_MODEL_FILE_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/error.h"

typedef struct pl_model_file {
    char *path;
    int fd;
    uint64_t bytes;
    dev_t device;
    ino_t inode;
    struct timespec modified;
} pl_model_file;

pl_status pl_model_file_open(pl_model_file *, const char *path, pl_error *);
void pl_model_file_close(pl_model_file *); /* also one that is zeroed or whose opening failed */
/* PL_E_DATA: the file was written to, or its path leads to another one. */
pl_status pl_model_file_check(const pl_model_file *, pl_error *);
/* The same of the file that is held open, whatever its path leads to. PL_E_STORAGE. */
pl_status pl_model_file_check_held(const pl_model_file *, pl_error *);
pl_status pl_model_file_read(const pl_model_file *, uint64_t offset, void *to, size_t bytes, pl_error *);

#endif
