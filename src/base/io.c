#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <unistd.h>

static struct {
    atomic_uint_fast64_t left;
    atomic_int error, forever;
} injected[PL_IO_KINDS];

void pl_io_fail_at(pl_io_kind kind, uint64_t n, int errno_value, int forever)
{
    atomic_store(&injected[kind].error, errno_value);
    atomic_store(&injected[kind].forever, forever);
    atomic_store(&injected[kind].left, n);
}

int pl_io_inject(pl_io_kind kind)
{
    uint_fast64_t left = atomic_load_explicit(&injected[kind].left, memory_order_relaxed);
    if (left == 0) return 0;
    if (left > 1) {
        atomic_store(&injected[kind].left, left - 1);
        return 0;
    }
    if (!atomic_load(&injected[kind].forever)) atomic_store(&injected[kind].left, 0);
    errno = atomic_load(&injected[kind].error);
    return 1;
}

const char *pl_io_hint(int error)
{
    switch (error) {
    case ENOSPC:
        return "; free space on that disk";
    case EROFS:
        return "; choose a folder on a writable file system";
    case EACCES:
    case EPERM:
        return "; check the permissions or choose another folder";
    case EFBIG:
        return "; the limit on the size of files is reached (ulimit -f, or the file system's own): raise it";
    case ELOOP: /* where O_NOFOLLOW asks for it */
        return "; it is a link, which is not followed here: move it away";
    case EMFILE:
        return "; the limit on open files is reached: raise it (ulimit -n)";
    case ENFILE:
        return "; no more files can be open on this machine: end other programs";
    case EDQUOT:
        return "; the quota is used up";
    default:
        return "";
    }
}

int pl_io_open(const char *path, int flags)
{
    int fd;
    do fd = pl_io_inject(PL_IO_OPEN) ? -1 : open(path, flags | O_CLOEXEC, 0666);
    while (fd < 0 && errno == EINTR);
    return fd;
}

int pl_io_sync(int fd)
{
    int rc;
    do rc = pl_io_inject(PL_IO_FSYNC) ? -1 : fsync(fd);
    while (rc != 0 && errno == EINTR);
    return rc;
}

int pl_io_sync_data(int fd)
{
    int rc;
    do rc = pl_io_inject(PL_IO_FSYNC) ? -1 : fdatasync(fd);
    while (rc != 0 && errno == EINTR);
    return rc;
}

int pl_io_truncate(int fd, uint64_t bytes)
{
    int rc;
    do rc = ftruncate(fd, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    return rc;
}

int pl_io_lock(int fd, int how)
{
    int rc;
    do rc = flock(fd, how);
    while (rc != 0 && errno == EINTR);
    return rc;
}

bool pl_io_has_no_locks(int error) { return error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK; }

int pl_io_close(int fd) { return close(fd) != 0 && errno != EINTR ? -1 : 0; }

int pl_io_append(int fd, const void *data, size_t bytes, size_t *written)
{
    for (*written = 0; *written < bytes;) {
        ssize_t n = pl_io_inject(PL_IO_WRITE) ? -1 : write(fd, (const char *)data + *written, bytes - *written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 ? ENOSPC : errno;
        *written += (size_t)n;
    }
    return 0;
}
