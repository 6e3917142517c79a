/* The files of results, as their layout names them. What else lies in a folder of .npy is somebody's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/remove.h"
#include "storage/storage.h"
#include "store/block_file.h"
#include "store/block_index.h"
#include "store/folder.h"

/* The first is the index, or all there is. */
static uint32_t count_own(const pl_block_reader *r)
{
    return pl_block_reader_form(r) == PL_BLOCK_NPY ? pl_block_reader_layout(r)->datasets + 1 : 1;
}

static pl_status own_path(const pl_block_reader *r, const char *path, uint32_t i, char own[PL_FILE_PATH_MAX],
                          pl_error *err)
{
    return pl_block_path_of(path, pl_block_reader_form(r), i ? pl_block_reader_layout(r)->dataset[i - 1].name : NULL,
                            own, err);
}

static pl_status check_type(const char *path, mode_t type, struct stat *st, pl_error *err)
{
    if (lstat(path, st) != 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    if ((st->st_mode & S_IFMT) == type) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: is a link, or another thing; nothing of it was removed", path);
}

pl_status pl_storage_check_regular(const pl_block_reader *r, const char *path, pl_error *err)
{
    char own[PL_FILE_PATH_MAX];
    struct stat st;
    if (pl_block_reader_form(r) == PL_BLOCK_NPY) PL_TRY(check_type(path, S_IFDIR, &st, err));
    for (uint32_t i = 0; i < count_own(r); i++) {
        PL_TRY(own_path(r, path, i, own, err));
        PL_TRY(check_type(own, S_IFREG, &st, err));
    }
    return PL_OK;
}

pl_status pl_storage_check_apart(const pl_block_reader *p, const char *part, const pl_block_reader *w,
                                 const char *whole, pl_error *err)
{
    char a[PL_FILE_PATH_MAX], b[PL_FILE_PATH_MAX];
    struct stat x, y;
    for (uint32_t i = 0; i < count_own(p) && i < count_own(w); i++) {
        PL_TRY(own_path(p, part, i, a, err));
        PL_TRY(own_path(w, whole, i, b, err));
        PL_TRY(check_type(a, S_IFREG, &x, err));
        PL_TRY(check_type(b, S_IFREG, &y, err));
        if (x.st_dev == y.st_dev && x.st_ino == y.st_ino)
            return pl_fail(err, PL_E_DATA, "%s: is the same file as %s; nothing of it was removed", a, b);
    }
    return PL_OK;
}

/* ---- what else is there ---- */

typedef struct others {
    const pl_block_reader *reader;
    const char *path;
} others;

static pl_status check_name(void *context, const char *name, pl_error *err)
{
    const others *o = context;
    char own[PL_FILE_PATH_MAX];
    for (uint32_t i = 0; i < count_own(o->reader); i++) {
        PL_TRY(own_path(o->reader, o->path, i, own, err));
        if (strcmp(strrchr(own, '/') + 1, name) == 0) return PL_OK;
    }
    return pl_fail(err, PL_E_DATA, "%s: has %.200s in it, which is not of these results: left alone", o->path, name);
}

pl_status pl_storage_check_alone(const pl_block_reader *r, const char *path, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    others o = {r, path};
    return pl_block_reader_form(r) == PL_BLOCK_NPY ? pl_folder_each(path, list, check_name, &o, err) : PL_OK;
}

/* ---- to the disk, and away ---- */

static pl_status sync_file(const char *path, pl_error *err)
{
    int fd = pl_io_open(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened: %s", path, strerror(errno));
    const int rc = pl_io_sync(fd), error = errno;
    close(fd);
    return rc == 0 ? PL_OK : pl_fail(err, PL_E_STORAGE, "%s: is not on the disk: %s", path, strerror(error));
}

pl_status pl_storage_sync_own(const pl_block_reader *r, const char *path, pl_error *err)
{
    char own[PL_FILE_PATH_MAX];
    for (uint32_t i = 0; i < count_own(r); i++) {
        PL_TRY(own_path(r, path, i, own, err));
        PL_TRY(sync_file(own, err));
    }
    return pl_block_reader_form(r) == PL_BLOCK_NPY ? pl_folder_sync(path, err) : PL_OK;
}

pl_status pl_storage_remove_own(const pl_block_reader *r, const char *path, pl_error *err)
{
    char own[PL_FILE_PATH_MAX];
    for (uint32_t i = count_own(r); i-- > 0;) {
        PL_TRY(own_path(r, path, i, own, err));
        PL_TRY(pl_remove_file(own, err));
    }
    return PL_OK;
}
