/* A job is done by several processes, one after the other, and between two of them its file must not be free: who took
 * it there would end the job. So the job has a descriptor of its own with the lock on it, which exec hands on. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/block_index.h"

enum { DESCRIPTOR_MIN = 64 }; /* out of the way of what programs take for granted */

static int held = -1; /* of this process's job */

int pl_block_is_held(int fd)
{
    struct stat one, other;
    if (held < 0) return 0;
    if (fstat(held, &one) != 0 || fstat(fd, &other) != 0) return -1;
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/* The lock is that of the open file, so it stays when the descriptor that it was taken by is closed. */
static pl_status hold(pl_block_index *ix, const char *path, pl_error *err)
{
    PL_TRY(pl_block_index_open(ix, path, true, NULL, err));
    if (pl_block_is_held(ix->fd) > 0) return PL_OK;
    PL_TRY(pl_block_index_lock_to_write(ix, err));
    int fd = fcntl(ix->fd, F_DUPFD, DESCRIPTOR_MIN);
    if (fd < 0 && errno == EINVAL) fd = fcntl(ix->fd, F_DUPFD, STDERR_FILENO + 1); /* the limit of them is smaller */
    if (fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: no descriptor is left to keep it; raise the limit of them", path);
    if (held >= 0) close(held); /* of a file that is there no more */
    held = fd;
    return PL_OK;
}

pl_status pl_block_file_hold(const char *path, int *fd, pl_error *err)
{
    pl_block_index ix;
    pl_block_index_init(&ix, path);
    pl_status status = hold(&ix, path, err);
    pl_block_index_close(&ix);
    *fd = held;
    return status;
}

void pl_block_file_adopt(int fd)
{
    if (fcntl(fd, F_GETFD) >= 0) held = fd;
}
