/* Joining parts of a job: what both ways of it know. Only block_join*.c include this. */
#ifndef PL_STORE_BLOCK_JOIN_H
#define PL_STORE_BLOCK_JOIN_H

#include "store/block_index.h"

typedef struct pl_join_part {
    const char *path;
    char *name; /* as a joined HDF5 file says it */
    uint64_t first, count;
    uint64_t sound;       /* its block that was compared with its checksum last; PL_BLOCK_NONE: none yet */
    pl_block_index *held; /* locked for all the time, where parts are moved; NULL: not */
    uint64_t freed[PL_BLOCK_KINDS_MAX]; /* items whose bytes were given back to the disk */
} pl_join_part;

typedef struct pl_joining {
    const char *path;
    pl_join_part *part; /* in the order of what they hold, and all of the job */
    size_t count;
    pl_block_reader *like; /* the first that was given: all of them are of its configuration */
    bool moves;            /* what was copied of a part is freed, and parts are removed at the end */
} pl_joining;

/* ---- block_join_hdf5.c ---- */
/* A new file with virtual datasets, which name the parts; nothing is copied. */
pl_status pl_block_join_hdf5(const pl_joining *, pl_error *);

/* ---- block_join_move.c ---- */
/* Before anything is made: does moving free room where the whole is written, and is there enough for what is there
 * twice? index_bytes: beside the data; block_bytes: of the largest block. PL_E_USAGE, PL_E_STORAGE. */
pl_status pl_block_join_check_room(const pl_joining *, uint64_t index_bytes, uint64_t copied_bytes,
                                   uint64_t block_bytes, pl_error *);
/* Items of a kind below `done` of the whole are on the disk in their new place: the parts give theirs back, but for the
 * block of a part that has a later item, too. */
pl_status pl_block_join_free(const pl_joining *, uint32_t kind, uint64_t done, pl_error *);
/* PL_E_USAGE where a file of the part is a link: what it leads to would be given back to the disk. */
pl_status pl_block_join_refuse_links(const pl_block_index *, const char *path, pl_error *);
/* All is on the disk. Of parts that are gone, or some of whose files are, what is there. */
pl_status pl_block_join_remove_parts(const pl_joining *, pl_error *);

/* ---- block_join_finish.c ---- */
/* Was it killed while parts were removed? Then some are not there, and the whole is complete: it is checked, what is
 * left of the parts is removed, and *finished. Else nothing is done. */
pl_status pl_block_join_finish(pl_joining *, bool *finished, pl_error *);

/* ---- block_join_copy.c ---- */
/* What is there of the whole from before is all that will be left of the parts' blocks: is it sound? */
pl_status pl_block_join_check_there(const pl_joining *, pl_block_reader *, pl_error *);
/* The file of results that one run of all of the job would have made, in the form of the parts. What is there of it
 * already is gone on with. */
pl_status pl_block_join_copy(const pl_joining *, pl_error *);

#endif
