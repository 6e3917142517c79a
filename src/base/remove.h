/* Removing, for everybody. Links on the way to a folder that somebody named are followed: a run, or its checkpoints,
 * may lie on another disk. What is removed from there is never a link, nor what one leads to: we make none, so it is
 * somebody's, and what was moved away is not ours to delete. It stays, and the status or the errno says so (ELOOP).
 * A folder is emptied through a descriptor that was opened without following a link, so that nothing that takes its
 * place meanwhile is emptied instead. Asks for no memory; what is not there is fine. */
#ifndef PL_BASE_REMOVE_H
#define PL_BASE_REMOVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* A file in an open folder, or by its path. 0, or an errno. */
int pl_remove_at(int folder, const char *name);
/* PL_E_STORAGE with the sentence; err may be NULL, for who cleans up after a failure and tells of that. */
pl_status pl_remove_file(const char *path, pl_error *err);

/* Opens a folder in order to empty it. *folder is -1 where there is none; a link is PL_E_STORAGE. */
pl_status pl_remove_open_folder(const char *path, int *folder, pl_error *);
/* What a call of ours made, a file or a folder, goes; a folder only when it is empty. err may be NULL, as above. */
pl_status pl_remove_made(const char *path, pl_error *err);
/* A folder that is empty goes; one in which there is something stays. */
pl_status pl_remove_empty_folder(const char *path, pl_error *);
/* The named files, and their temporary ones, then the folder if nothing else is in it. Files that a person put there
 * stay, and the folder with them. */
pl_status pl_remove_folder(const char *path, const char *const *names, size_t count, pl_error *);

bool pl_remove_is_link(const char *path);
/* Is it a link, or a folder in which one of the named files, or of their temporary ones, is one? */
bool pl_remove_meets_link(const char *path, const char *const *names, size_t count);

#endif
