/* A command enters the folder of a run: what is there, and who else is at work. Whatever writes into the folder holds
 * its lock, so a command that comes while a run works there changes nothing; and a failure leaves nothing behind. */
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
    /* Asked before a folder without a lock is taken: may its files be overwritten? NULL: they may. */
    pl_status (*spare)(const pl_preparation *, pl_error *);
    void *own; /* the system's */
};

pl_status pl_preparation_begin(pl_preparation *, const pl_config *, pl_config *writable, pl_command, pl_error *);
/* The hash of that name of what the run was trained on; 0: not saved yet, or not known. */
uint64_t pl_preparation_saved(const pl_preparation *, const char *fact);
/* Undoes what was made when the command failed. */
void pl_preparation_end(pl_preparation *, pl_status);
/* Takes the lock of the folder, which is created if missing. Once is enough. */
pl_status pl_preparation_lock(pl_preparation *, pl_error *);
/* The same for a folder in which runs share what is prepared; it is created if missing. *lock is for close(); −1 where
 * there is nothing to release. */
pl_status pl_preparation_lock_cache(pl_preparation *, const char *folder, int *lock, pl_error *);

#endif
