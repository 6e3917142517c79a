/* From a user's arrays to arrays.bin: once, before anything is planned. Every number is checked, in the memory of one
 * sample: a NaN or infinity is refused before a training begins. */
#ifndef PL_DATA_ARRAYS_PREPARE_H
#define PL_DATA_ARRAYS_PREPARE_H

#include "data/arrays/arrays_file.h"

typedef struct pl_arrays_wish {
    const char *file[PL_ARRAYS_FILES]; /* as data/infer/rows.h names them; NULL, for angles alone: none */
    uint32_t window;                   /* frames of a sample */
    const char *folder, *path;         /* for arrays.bin */
    pl_status (*before_writing)(void *context, pl_error *);
    /* Reports the samples checked so far. false: stop (PL_E_STOPPED). */
    bool (*tell)(void *context, uint64_t done, uint64_t of);
    void *context;
} pl_arrays_wish;

/* Is the file there, and was it made from these files, as they are now? Changes in a file other than in its contents
 * are noted in it. */
pl_status pl_arrays_match(const pl_arrays_wish *, const pl_arrays_record *, bool *same, pl_error *);
/* PL_E_DATA: the files are not as wanted, or do not match; PL_E_STORAGE: the numbers of HDF5 do not fit on the disk. */
pl_status pl_arrays_prepare(const pl_arrays_wish *, pl_error *);

/* Have these arrays been made into the file? content: that of the existing file; 0: none, or it is damaged. */
pl_status pl_arrays_is_made(const pl_arrays_wish *, bool *made, uint64_t *content, pl_error *);

#endif
