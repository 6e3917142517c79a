/* System calls on files as everything here makes them: tried again when a signal came between, and made to fail where
 * a test asks for it. What can be cut short goes on until it is whole or fails. */
#ifndef PL_BASE_IO_H
#define PL_BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For the tests: the n-th call of this kind from now on fails with this errno, once or (forever) from then on. */
typedef enum pl_io_kind { PL_IO_OPEN, PL_IO_READ, PL_IO_WRITE, PL_IO_FSYNC, PL_IO_RENAME, PL_IO_KINDS } pl_io_kind;
void pl_io_fail_at(pl_io_kind, uint64_t n, int errno_value, int forever);
/* For code that makes such a call itself (renaming a folder): nonzero, with errno set, when a test asked for this one
 * to fail.   int rc = pl_io_inject(PL_IO_RENAME) ? -1 : rename(from, to);  */
int pl_io_inject(pl_io_kind);

/* Each gives -1 with errno set when it failed. Descriptors are closed by exec; a file that is created gets 0666 less
 * the umask. */
int pl_io_open(const char *path, int flags);
int pl_io_sync(int fd);      /* fsync */
int pl_io_sync_data(int fd); /* fdatasync */
int pl_io_truncate(int fd, uint64_t bytes);
int pl_io_lock(int fd, int how); /* flock */
/* Is this what a file system says that has no locks (Lustre without the option `flock`)? Whoever only writes goes on,
 * and the run says once that nobody is kept out; whoever removes what another may be using does not. */
bool pl_io_has_no_locks(int error);
#define PL_IO_NO_LOCKS "this file system has no locks (Lustre has them when it is mounted with the option flock), so "
/* The descriptor is gone in any case. An error means that earlier writes failed; an interruption is not an error. */
int pl_io_close(int fd);

/* Writes at the file's position: 0, or errno with *written < bytes. A write that was cut short is tried on, because
 * only the next one says why. */
int pl_io_append(int fd, const void *data, size_t bytes, size_t *written);
/* What to do about it, as the end of a sentence ("; free space on that disk"), or "". */
const char *pl_io_hint(int error);

#endif
