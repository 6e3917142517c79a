/* Removes the checkpoints of a run, so that another begins in its folder: all of them or, where one holds what is not
 * ours or is a link, none. First goes what names the latest and the best: whoever ends this halfway leaves a run that
 * can be resumed from what is left, or begun anew again. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "base/remove.h"
#include "store/checkpoint.h"
#include "store/checkpoint_scratch.h"
#include "store/folder.h"

static const char *const files[] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE};
enum { FILES = sizeof files / sizeof *files };

typedef struct forgetting {
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
} forgetting;

static bool is_step(const char *name)
{
    static const char *const ends[] = {"", ".tmp", ".old"};
    uint64_t step;
    for (int i = 0; i < 3; i++)
        if (pl_step_name_parse_with(name, ends[i], &step) == 0) return true;
    return false;
}

static bool is_ours(const char *name)
{
    char temporary[64];
    for (int i = 0; i < FILES; i++) {
        snprintf(temporary, sizeof temporary, "%s" PL_FILE_TEMPORARY, files[i]);
        if (strcmp(name, files[i]) == 0 || strcmp(name, temporary) == 0) return true;
    }
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Refuses before anything is removed. */
static pl_status check_step(void *context, const char *name, pl_error *err)
{
    forgetting *f = context;
    int fd;
    pl_status status = PL_OK;
    if (!is_step(name)) return PL_OK;
    PL_TRY(pl_path_join(f->path, sizeof f->path, f->folder, name, err));
    PL_TRY(pl_remove_open_folder(f->path, &fd, err));
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && !d) return close(fd), pl_fail(err, PL_E_STORAGE, "%s: cannot be read: %s", f->path, strerror(errno));
    for (const struct dirent *e; d && status == PL_OK && (e = readdir(d));)
        if (!is_ours(e->d_name))
            status =
                pl_fail(err, PL_E_STORAGE,
                        "%s/%s: is no part of a checkpoint, so nothing is removed; move it away, or choose another "
                        "folder",
                        f->path, e->d_name);
    if (d) closedir(d);
    return status;
}

static pl_status remove_step(void *context, const char *name, pl_error *err)
{
    forgetting *f = context;
    if (!is_step(name)) return PL_OK;
    PL_TRY(pl_path_join(f->path, sizeof f->path, f->folder, name, err));
    return pl_remove_folder(f->path, files, FILES, err);
}

pl_status pl_saved_forget(const char *folder, pl_error *err)
{
    static const char *const pointers[] = {"latest", "best"};
    forgetting f;
    PL_TRY(pl_path_join(f.folder, sizeof f.folder, folder, "checkpoints", err));
    PL_TRY(pl_folder_each(f.folder, f.list, check_step, &f, err));
    for (int i = 0; i < 2; i++) {
        PL_TRY(pl_path_join(f.path, sizeof f.path, f.folder, pointers[i], err));
        PL_TRY(pl_remove_file(f.path, err));
    }
    return pl_folder_each(f.folder, f.list, remove_step, &f, err);
}
