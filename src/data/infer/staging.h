/* Files made ready before planning: what is read by libraries that ask for memory (pictures, HDF5) is turned into
 * arrays of numbers, as in a .npy, in one file for all. That file never has a name, so it vanishes with the last
 * process that has it open, however that ends; it lies on a disk, not in memory. A child reads the files
 * (base/child.h), so no page of these libraries is in a process that plans or runs.
 *
 *      head      what it is, and the file that the child is at
 *      entries   one for each of the user's files, in their order
 *      numbers   of each that was made ready, one array after the other */
#ifndef PL_DATA_INFER_STAGING_H
#define PL_DATA_INFER_STAGING_H

#include "data/infer/rows.h"
#include "data/infer/pictures.h"
#include "store/hdf5_load.h"

#define PL_STAGING_MAGIC "plimsoll staged"

/* Part of the data's identity: the file's descriptor, the same in the process that planned and the one that runs, and a
 * part of its hash. */
#define PL_FACT_STAGED "staged"

/* One of the user's files, and how it is read. */
typedef struct pl_staged {
    const char *name;
    const pl_infer_port *port;
    bool is_staged; /* it was made ready */
    uint64_t bytes; /* size of the user's file */
    pl_npy_array array;
} pl_staged;

/* Callbacks of a caller whose plan makes files ready; may be NULL. */
typedef struct pl_staging_told {
    pl_status (*before)(void *context, pl_error *); /* before the first file is read, which may take long */
    /* Reports files from time to time, where it takes long. false: stop (PL_E_STOPPED). */
    bool (*tell)(void *context, uint64_t done, uint64_t of);
    void *context;
} pl_staging_told;

typedef struct pl_staging_wish {
    const char *folder; /* for the file */
    const char *key;    /* the config's key that names the folder: "infer.scratch" */
    bool is_memory;     /* the folder lies in memory (tmpfs), and is refused */
    const pl_staged *file;
    uint64_t files;
    const pl_staging_told *told; /* or NULL */
} pl_staging_wish;

/* A file without a name in that folder; what: that it is for, for sentences. *fd 0 where it fails. */
pl_status pl_staging_create(const char *folder, bool is_memory, const char *what, int *fd, pl_error *);
/* Makes those ready whose kind needs it. *fact 0: there are none. Else *fd is for close, and *file_bytes are the
 * file's. *fd is 0 where there are none, and where this fails. */
pl_status pl_staging_make(const pl_staging_wish *, int *fd, uint64_t *fact, uint64_t *file_bytes, pl_error *);
/* The same at the beginning of a file of the caller's, for pl_staging_entry; written even where nothing is staged. */
pl_status pl_staging_fill(const pl_staging_wish *, int fd, uint64_t *file_bytes, pl_error *);
/* The file of a plan with this fact, opened by this process or the one that planned; *fd is for close. PL_E_DATA where
 * it is not there. */
pl_status pl_staging_open(uint64_t fact, uint64_t files, int *fd, pl_error *);
/* Fills is_staged, bytes and array of file number n. */
pl_status pl_staging_entry(int fd, uint64_t n, pl_staged *, pl_error *);

/* ---- for the kinds: in the child ---- */

typedef struct pl_stager {
    int fd;
    uint64_t at, flushed;     /* where the next numbers go; what is on its way to the disk */
    const char *folder, *key; /* for sentences */
    pl_npy_array array;       /* describes the numbers put, all but `at` */
    pl_module pictures, hdf5; /* loaded by the first file that needs them */
} pl_stager;

/* Before anything is put: is there enough space? PL_E_STORAGE. */
pl_status pl_stager_reserve(const pl_stager *, const char *name, uint64_t bytes, pl_error *);
pl_status pl_stager_put(pl_stager *, const void *numbers, uint64_t bytes, pl_error *);

#endif
