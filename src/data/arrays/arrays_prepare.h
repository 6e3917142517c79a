/* From a user's arrays to arrays.bin: once, before anything is planned. Every number is looked at, in the memory of one
 * sample: what is no number is refused before a training begins. */
#ifndef PL_DATA_ARRAYS_PREPARE_H
#define PL_DATA_ARRAYS_PREPARE_H

#include "data/arrays/arrays_file.h"

typedef struct pl_arrays_wish {
    const char *file[PL_ARRAYS_FILES]; /* as data/infer/rows.h names them; NULL: there is none, of angles alone */
    uint32_t window;                   /* frames of a sample */
    const char *folder, *path;         /* where arrays.bin is to be */
    pl_status (*before_writing)(void *context, pl_error *);
    /* Samples that were looked at. false: that is to end (PL_E_STOPPED). */
    bool (*tell)(void *context, uint64_t done, uint64_t of);
    void *context;
} pl_arrays_wish;

/* Is the file there, and was it made of these files, as they are now? What changed of a file but its contents is
 * noted in it. */
pl_status pl_arrays_match(const pl_arrays_wish *, const pl_arrays_record *, bool *same, pl_error *);
/* PL_E_DATA: the files do not fit, or each other; PL_E_STORAGE: the numbers of HDF5 do not fit on the disk. */
pl_status pl_arrays_prepare(const pl_arrays_wish *, pl_error *);

/* Is the file there that these arrays are made into? content: of the one that is there; 0: there is none, or it is
 * damaged. */
pl_status pl_arrays_is_made(const pl_arrays_wish *, bool *made, uint64_t *content, pl_error *);

#endif
