/* Joining parts of a job: what both ways of it know. Only block_join*.c include this. */
#ifndef PL_STORE_BLOCK_JOIN_H
#define PL_STORE_BLOCK_JOIN_H

#include "store/block_index.h"

typedef struct pl_join_part {
    const char *path;
    char *name; /* as a joined HDF5 file says it */
    uint64_t first, count;
    uint64_t sound; /* its block that was compared with its checksum last; PL_BLOCK_NONE: none yet */
} pl_join_part;

typedef struct pl_joining {
    const char *path;
    pl_join_part *part; /* in the order of what they hold, and all of the job */
    size_t count;
    pl_block_reader *like; /* the first that was given: all of them are of its configuration */
} pl_joining;

/* ---- block_join_hdf5.c ---- */
/* A new file with virtual datasets, which name the parts; nothing is copied. */
pl_status pl_block_join_hdf5(const pl_joining *, pl_error *);

/* ---- block_join_copy.c ---- */
/* The file of results that one run of all of the job would have made, in the form of the parts. What is there of it
 * already is gone on with. */
pl_status pl_block_join_copy(const pl_joining *, pl_error *);

#endif
