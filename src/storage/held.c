/* Who is using a file? Ages and numbers of processes in names are guesses; the kernel knows. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "storage/storage.h"

/* A write lease is granted only where nobody else has the file open, and is given back at once. Who opens it in between
 * waits that long, and the kernel signals us: by a signal that is ignored unless somebody asks for it. */
static int ask_lease(int fd)
{
    (void)fcntl(fd, F_SETSIG, SIGURG);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) return fcntl(fd, F_SETLEASE, F_UNLCK), 0;
    return errno == EAGAIN || errno == EBUSY ? 1 : -1; /* -1: this file system has none */
}

int pl_storage_is_open(const char *path)
{
    int fd = pl_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return -1;
    int answer = ask_lease(fd);
    close(fd);
    return answer;
}

/* Files are locked by flock (base/file.c), results by a range of their first byte (store/block_index.c). -1: here are
 * no locks. */
static int lock_both(int fd)
{
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
    int rc;
    if (pl_io_lock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return 1;
        if (pl_io_has_no_locks(errno)) return -1;
    }
    do rc = fcntl(fd, F_OFD_SETLK, &range);
    while (rc != 0 && errno == EINTR);
    if (rc != 0 && pl_io_has_no_locks(errno)) return -1;
    return rc != 0 && (errno == EAGAIN || errno == EACCES);
}

pl_status pl_storage_hold(const char *path, int *fd, bool *is_held, pl_error *err)
{
    *is_held = false;
    *fd = pl_io_open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0 && errno == EWOULDBLOCK) return *is_held = true, PL_OK; /* a lease: it is being asked about right now */
    if (*fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened to see who uses it: %s; remove it by hand", path,
                       strerror(errno));
    const int locked = lock_both(*fd);
    *is_held = locked > 0 || ask_lease(*fd) > 0;
    if (locked == 0 && !*is_held) return PL_OK;
    close(*fd);
    *fd = -1;
    if (*is_held) return PL_OK;
    return pl_fail(
        err, PL_E_STORAGE,
        "%s: " PL_IO_NO_LOCKS "it is not known whether a process is writing it; remove it by hand when none is", path);
}
