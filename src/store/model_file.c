#include "store/model_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

pl_status pl_model_file_open(pl_model_file *f, const char *path, pl_error *err)
{
    struct stat st;
    pl_status status;
    *f = (pl_model_file){0};
    PL_TRY(pl_file_open(path, &f->fd, &f->bytes, err));
    PL_TRY_DONE(fstat(f->fd, &st) ? pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno))
                                  : PL_OK);
    f->device = st.st_dev, f->inode = st.st_ino, f->modified = st.st_mtim;
    f->path = pl_strdup(path);
    PL_TRY_DONE(f->path ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", path));
    return PL_OK;
done:
    close(f->fd);
    return status;
}

void pl_model_file_close(pl_model_file *f)
{
    if (f->path && f->fd >= 0) close(f->fd);
    pl_free(f->path);
    *f = (pl_model_file){0};
}

static bool is_same(const pl_model_file *f, const struct stat *st)
{
    return st->st_dev == f->device && st->st_ino == f->inode && (uint64_t)st->st_size == f->bytes &&
           st->st_mtim.tv_sec == f->modified.tv_sec && st->st_mtim.tv_nsec == f->modified.tv_nsec;
}

pl_status pl_model_file_check(const pl_model_file *f, pl_error *err)
{
    struct stat there;
    if (stat(f->path, &there) == 0 && is_same(f, &there)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: was replaced or written to after it was opened; start again when it is whole",
                   f->path);
}

pl_status pl_model_file_check_held(const pl_model_file *f, pl_error *err)
{
    struct stat held;
    if (fstat(f->fd, &held) == 0 && is_same(f, &held)) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: was written to while it was in use, so what was computed meanwhile may be wrong; start again "
                   "when it is whole",
                   f->path);
}

pl_status pl_model_file_read(const pl_model_file *f, uint64_t offset, void *to, size_t bytes, pl_error *err)
{
    return pl_file_read_at(f->fd, f->path, offset, to, bytes, err);
}
