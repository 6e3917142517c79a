/* A command comes to the folder of a run: what is there, and who else is at work. What writes into the folder holds its
 * lock, so a command that comes while a run works there changes nothing; and of what fails nothing is left. */
#ifndef PL_SYSTEMS_PREPARATION_H
#define PL_SYSTEMS_PREPARATION_H

#include "base/file.h"
#include "config/config.h"
#include "store/checkpoint.h"
#include "systems/made.h"

typedef struct pl_preparation pl_preparation;
struct pl_preparation {
    const pl_config *config;
    pl_config *writable; /* the same, where it may be changed; else NULL */
    pl_command command;
    char out[PL_FILE_PATH_MAX];
    pl_saved saved; /* the newest checkpoint; record NULL when there is none or none can be read */
    bool holds_run;
    int lock;
    pl_made made;
    /* Asked before a folder without a lock is taken: may what lies there be written over? NULL: it may. */
    pl_status (*spare)(const pl_preparation *, pl_error *);
    void *own; /* of the system */
};

pl_status pl_preparation_begin(pl_preparation *, const pl_config *, pl_config *writable, pl_command, pl_error *);
/* The hash, by that name, of what the run was trained on; 0: it was not saved yet, or that is not known. */
uint64_t pl_preparation_saved(const pl_preparation *, const char *fact);
/* Undoes what was made when the command failed. */
void pl_preparation_end(pl_preparation *, pl_status);
/* Takes the lock of the folder, which is made where it is not there. Once is enough. */
pl_status pl_preparation_lock(pl_preparation *, pl_error *);
/* That of another folder, in which runs share what is prepared; it is made where it is not there. *lock is for close();
 * −1 where there is nothing to give back. */
pl_status pl_preparation_lock_cache(pl_preparation *, const char *folder, int *lock, pl_error *);

#endif
