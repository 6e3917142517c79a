/* Files. Reading by position into the caller's memory; writing so that nothing half-written is ever read (invariant 8):
 * a temporary name in the same folder, write, fsync, rename, fsync of the folder. An abandoned temporary file is
 * removed; that of a process that was killed is taken over by the next one.
 *
 * The writer allocates nothing and keeps the page cache it fills bounded: every PL_FILE_WINDOW_BYTES it starts
 * write-back and drops what has reached the disk, so a save costs a container at most two windows of charged memory. */
#ifndef PL_BASE_FILE_H
#define PL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/io.h"

/* Behind the name of a file that is being made. Long enough to be nobody's but ours: what has it is written over. */
#define PL_FILE_TEMPORARY ".plimsoll.tmp"

enum { PL_FILE_PATH_MAX = 4096, PL_FILE_TEMPORARY_MAX = PL_FILE_PATH_MAX + 16, PL_FILE_WINDOW_BYTES = 1 << 20 };

/* The name next to `path` under which it is made: with PL_FILE_TEMPORARY at its end, after the tag (may be ""). Where
 * this would be longer than the file system takes, the beginning of the name and a hash. Returns it. */
const char *pl_file_temporary(const char *path, const char *tag, char temporary[PL_FILE_TEMPORARY_MAX]);
/* Whoever could read a file can read what replaces it, and nobody else: the open file gets the mode of the one that is
 * there, if there is one, and its owner and group as far as we may give them; where not the group, that gets the rights
 * of others. `more`: further bits (of the owner, while it is written). */
void pl_file_keep_rights(int fd, const char *replaced, unsigned more);

/* A file being written; fields are private. Lives wherever the caller puts it. */
typedef struct pl_file_writer {
    int fd;
    uint64_t bytes;    /* written so far */
    uint64_t flushed;  /* write-back started up to here */
    bool is_exchanged; /* what had the name before has the temporary one */
    char path[PL_FILE_PATH_MAX];
    char temporary[PL_FILE_TEMPORARY_MAX];
} pl_file_writer;

/* Opens path + PL_FILE_TEMPORARY for writing (replacing a left-over), or a name of its own where another process or
 * writer is at work on the same path: the last one to commit has the name then. A link to a regular file is followed;
 * what is there and is no regular file is refused. */
pl_status pl_file_create(pl_file_writer *, const char *path, pl_error *);
/* The same, but PL_E_STORAGE where another is at work on the path. */
pl_status pl_file_create_alone(pl_file_writer *, const char *path, pl_error *);
pl_status pl_file_write(pl_file_writer *, const void *data, size_t bytes, pl_error *);
/* Rewrites bytes already written (a header whose numbers are known last). */
pl_status pl_file_write_at(pl_file_writer *, uint64_t offset, const void *data, size_t bytes, pl_error *);
/* fsync, rename to the final name, fsync the folder. On failure the temporary file is removed. */
pl_status pl_file_commit(pl_file_writer *, pl_error *);
/* The same for several: all have their names then, or none has, and what had them before has them still (where the file
 * system exchanges names; else it is gone where a name was given already). */
pl_status pl_file_commit_all(pl_file_writer *, size_t count, pl_error *);
/* Closes and removes the temporary file; harmless after commit or on a zeroed writer. */
void pl_file_abandon(pl_file_writer *);

/* All of the bytes at `offset` of a file that is open. */
pl_status pl_file_put(int fd, const char *path, uint64_t offset, const void *data, size_t bytes, pl_error *);
/* Starts write-back of a range; waits for it and takes the range, and what is clean just before it, out of the page
 * cache. Both give 0 or an errno: a write that failed earlier may be heard of here, and only here. */
int pl_file_start_write_back(int fd, uint64_t at, uint64_t bytes);
int pl_file_drop(int fd, uint64_t at, uint64_t bytes);
/* Exactly `bytes` bytes at `offset`; PL_E_DATA when the file ends before, naming the offset. */
pl_status pl_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t bytes, pl_error *);
/* Is there anything of that name? PL_E_STORAGE where the system does not say. */
pl_status pl_file_look(const char *path, bool *is_there, pl_error *);
/* What is it? NONE: nothing of that name can be seen; OTHER: also a link to nothing. PL_E_STORAGE: the system does not
 * say. */
typedef enum pl_file_kind { PL_FILE_NONE, PL_FILE_FOLDER, PL_FILE_OTHER } pl_file_kind;
pl_status pl_file_find_kind(const char *path, pl_file_kind *, pl_error *);
/* Opens for reading; *bytes gets the size. PL_E_DATA when there is no such file, or no regular one; PL_E_STORAGE when
 * the system does not give it (rights, descriptors, a disk that fails): its contents are then unknown. */
pl_status pl_file_open(const char *path, int *fd, uint64_t *bytes, pl_error *);
/* The whole of a small file (at most `limit` bytes), zero-terminated, in a block for pl_free. */
pl_status pl_file_read_all(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *);
/* The same of a text that people write: without a byte order mark. */
pl_status pl_file_read_text(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *);
/* Such a text, or standard input to its end where the path is "-". */
pl_status pl_file_read_input(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *);
/* May one be put here that begins with `beginning` and is `what` ("page")? Where nothing is, an empty file, or one that
 * begins so; where is_torn, also one that ends within that. PL_E_USAGE: somebody else's is there. */
enum { PL_FILE_BEGINNING_MAX = 128 };
pl_status pl_file_check_replaced(const char *path, const char *beginning, bool is_torn, const char *what, pl_error *);
/* create + write + commit. */
pl_status pl_file_write_all(const char *path, const void *data, size_t bytes, pl_error *);
/* mkdir -p. */
pl_status pl_folder_create(const char *path, pl_error *);
/* Syncs a folder so that renames in it are durable. */
pl_status pl_folder_sync(const char *path, pl_error *);
/* The same path from the root: the current folder before it unless it begins with a slash. Links are not followed, and
 * nothing needs to be there. */
pl_status pl_path_absolute(char *absolute, size_t room, const char *path, pl_error *);
/* path = folder "/" name into room bytes; PL_E_USAGE when too long. */
pl_status pl_path_join(char *path, size_t room, const char *folder, const char *name, pl_error *);
/* "results.h5" and "2-of-4" make "results-2-of-4.h5"; a dot that begins a name begins no ending. Without a part (NULL
 * or "") it is the path. PL_E_USAGE when too long. */
pl_status pl_path_of_part(char *path, size_t room, const char *whole, const char *part, pl_error *);

#endif
