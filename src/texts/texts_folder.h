/* The files below a folder, in byte order of their paths, in bounded memory: what has been found is sorted in portions,
 * each kept in a temporary file, and then merged. */
#ifndef PL_TEXTS_FOLDER_H
#define PL_TEXTS_FOLDER_H

#include "base/file.h"

typedef struct pl_listed {
    const char *path; /* below the folder */
    uint64_t bytes;
    int64_t mtime_ns;
    uint64_t content; /* for the caller that adds it, returned as it is */
    int64_t ctime_ns; /* the sorter keeps neither this nor the inode: 0 then */
    uint64_t inode;
} pl_listed;
typedef pl_status (*pl_listed_found)(void *context, const pl_listed *, pl_error *);

/* ---- folder_walk.c ---- */
/* Each regular file, and each link to one, in any order. Links to folders are not followed. */
pl_status pl_folder_walk(const char *folder, pl_listed_found, void *context, pl_error *);

/* ---- folder_sort.c ---- */
typedef struct pl_sorter pl_sorter;
uint64_t pl_sorter_bytes(void); /* heap it holds */
/* The temporary file gets this name (base/file.h) and is gone when the sorter is. */
pl_status pl_sorter_create(const char *path, pl_sorter **, pl_error *);
pl_status pl_sorter_add(pl_sorter *, const pl_listed *, pl_error *);
/* Hands out all that were added, in order; may be repeated, but nothing more can be added. */
pl_status pl_sorter_each(pl_sorter *, pl_listed_found, void *context, pl_error *);
void pl_sorter_destroy(pl_sorter *); /* NULL is fine */

#endif
