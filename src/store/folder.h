/* Folders, without the heap: opendir takes 32 kB of it, and checkpoints are thinned out after "committed". */
#ifndef PL_STORE_FOLDER_H
#define PL_STORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"

enum { PL_FOLDER_LIST_BYTES = 4096 };

/* Calls `use` for each name in the folder but . and .. until it fails; a folder that is not there is empty, and one
 * that is removed meanwhile ends there. Names that come or go meanwhile may or may not be seen. `list` is memory of the
 * caller, aligned to 8. */
pl_status pl_folder_each(const char *path, char list[PL_FOLDER_LIST_BYTES],
                         pl_status (*use)(void *context, const char *name, pl_error *), void *context, pl_error *);

/* The same for one that is open, at its beginning. */
pl_status pl_folder_each_in(int fd, const char *path, char list[PL_FOLDER_LIST_BYTES],
                            pl_status (*use)(void *context, const char *name, pl_error *), void *context, pl_error *);

/* mkdir; PL_E_STORAGE with the reason. */
pl_status pl_folder_create_one(const char *path, pl_error *);

/* Bytes that the file system of this folder (or of its nearest existing ancestor) still gives to this user. */
pl_status pl_disk_free(const char *path, uint64_t *bytes, pl_error *);

/* Bytes a second that it takes, to the disk: tried with a file of some megabytes that has no name. Negative: it cannot
 * be told, or there is hardly space. */
double pl_disk_measure(const char *path);

/* Is that file system in memory (tmpfs)? Then its files are charged to who writes them, and cannot be dropped. False
 * where that is not known. */
bool pl_disk_is_memory(const char *path);

/* PL_E_STORAGE with both figures when fewer than `needed` bytes are free for `what` ("3 checkpoints"). */
pl_status pl_disk_require(const char *path, uint64_t needed, const char *what, pl_error *);

/* The lock of a run's folder: held until the descriptor is closed or the process ends, however it ends. A second run is
 * refused with the process that holds it, as the file `lock` in it tells: it stays, and is not what is locked. */
pl_status pl_folder_lock(const char *folder, int *fd, pl_error *);
/* Does its file system know such locks? Where not, pl_folder_lock gives one that keeps nobody out. */
bool pl_folder_has_locks(const char *folder);
/* The process that holds it, as the kernel tells without a lock being taken; 0: none, or nobody knows. */
long pl_folder_holder(const char *folder);
void pl_folder_unlock(int *fd); /* sets -1; harmless on -1 */

#endif
