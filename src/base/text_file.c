#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static int64_t mtime_of(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

pl_status pl_text_open(pl_text_file *t, const char *path, pl_error *err)
{
    struct stat st;
    *t = (pl_text_file){.fd = -1, .path = path};
    PL_TRY(pl_file_open(path, &t->fd, &t->bytes, err));
    pl_status status = PL_OK;
    if (fstat(t->fd, &st) != 0)
        status = pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    else if (t->bytes == 0)
        status = pl_fail(err, PL_E_DATA, "%s: is empty; a file with text is needed", path);
    if (status != PL_OK) {
        pl_text_close(t);
        return status;
    }
    t->mtime_ns = mtime_of(&st);
    t->ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    posix_fadvise(t->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return PL_OK;
}

pl_status pl_text_read(pl_text_file *t, void *buffer, size_t room, size_t *got, pl_error *err)
{
    uint64_t left = t->bytes - t->at;
    *got = left < room ? (size_t)left : room;
    if (*got == 0) return PL_OK;
    PL_TRY(pl_file_read_at(t->fd, t->path, t->at, buffer, *got, err));
    t->at += *got;
    posix_fadvise(t->fd, 0, (off_t)t->at, POSIX_FADV_DONTNEED);
    return PL_OK;
}

void pl_text_rewind(pl_text_file *t) { t->at = 0; }

pl_status pl_text_check_unchanged(const pl_text_file *t, pl_error *err)
{
    struct stat st;
    if (fstat(t->fd, &st) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", t->path, strerror(errno));
    if ((uint64_t)st.st_size == t->bytes && mtime_of(&st) == t->mtime_ns) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: was changed while it was being read; start again when it is complete", t->path);
}

void pl_text_close(pl_text_file *t)
{
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
}

pl_status pl_text_tell_of(const pl_text_file *t, pl_text_progress progress, void *context, const char *phase,
                          uint64_t done, uint64_t total, pl_error *err)
{
    if (!progress || progress(context, phase, done, total)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "%s: stopped while %s", t->path, phase);
}

pl_status pl_text_tell(const pl_text_file *t, pl_text_progress progress, void *context, const char *phase,
                       pl_error *err)
{
    return pl_text_tell_of(t, progress, context, phase, t->at, t->bytes, err);
}
