#include "base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

pl_status pl_text_open(pl_text_file *t, const char *path, pl_error *err)
{
    *t = (pl_text_file){.fd = -1, .path = path};
    PL_TRY(pl_file_open(path, &t->fd, &t->bytes, err));
    pl_status status = pl_origin_look(t->fd, path, &t->origin, err);
    if (status == PL_OK && t->bytes == 0)
        status = pl_fail(err, PL_E_DATA, "%s: is empty; a file with text is needed", path);
    if (status != PL_OK) {
        pl_text_close(t);
        return status;
    }
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
    pl_origin now;
    PL_TRY(pl_origin_look(t->fd, t->path, &now, err));
    if (pl_origin_is_untouched(&now, &t->origin)) return PL_OK;
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
