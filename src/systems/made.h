/* What a command made before it failed, so that it leaves nothing of it: folders and files that were not there before,
 * in the order in which they came. */
#ifndef PL_SYSTEMS_MADE_H
#define PL_SYSTEMS_MADE_H

#include <stddef.h>

#include "base/error.h"

enum { PL_MADE_MAX = 64 };

typedef struct pl_made {
    char *path[PL_MADE_MAX];
    size_t count;
} pl_made;

/* mkdir -p. */
pl_status pl_made_folder(pl_made *, const char *path, pl_error *);
/* A file that is about to be made. */
pl_status pl_made_file(pl_made *, const char *path, pl_error *);
/* Removes what is there, the last first; a folder in which there is something else stays. PL_E_STORAGE says what
 * cannot be removed; err may be NULL. */
pl_status pl_made_undo(pl_made *, pl_error *err);
/* Forgets what lies neither in this folder nor on the way to it. */
void pl_made_keep_outside(pl_made *, const char *folder);
void pl_made_forget(pl_made *);

#endif
