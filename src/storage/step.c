/* The folder of a checkpoint: whether it is one, and how it goes. Nobody finds a folder of its name with files missing
 * (store/checkpoint_save.c does the same), and what cannot go stays under its name. */
#include "store/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/remove.h"
#include "storage/storage.h"
#include "store/folder.h"

enum { STEP_FILES = 3 };
static const char *const step_files[STEP_FILES] = {PL_MODEL_FILE, PL_STATE_FILE, PL_RECORD_FILE};

/* How many of its files are there. PL_E_DATA where one, or the folder itself, is a link or another thing. */
static pl_status count_files(const char *path, int *count, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    struct stat st;
    *count = 0;
    if (lstat(path, &st) != 0)
        return pl_fail(err, errno == ENOENT ? PL_E_DATA : PL_E_STORAGE, "%s: cannot be examined: %s", path,
                       strerror(errno));
    if (!S_ISDIR(st.st_mode)) return pl_fail(err, PL_E_DATA, "%s: is no folder", path);
    for (int i = 0; i < STEP_FILES; i++) {
        PL_TRY(pl_path_join(file, sizeof file, path, step_files[i], err));
        const bool is_there = lstat(file, &st) == 0;
        if (!is_there && errno != ENOENT)
            return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", file, strerror(errno));
        if (is_there && !S_ISREG(st.st_mode)) return pl_fail(err, PL_E_DATA, "%s: is a link, or no file", file);
        *count += is_there;
    }
    return PL_OK;
}

pl_status pl_storage_check_step(const char *path, pl_error *err)
{
    int count;
    PL_TRY(count_files(path, &count, err));
    return count == STEP_FILES ? PL_OK : pl_fail(err, PL_E_DATA, "%s: a file of it is missing", path);
}

pl_status pl_storage_check_replaced(const char *old, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_saved saved;
    if (!pl_ends_with(old, ".old")) return PL_OK;
    snprintf(path, sizeof path, "%.*s", (int)(strlen(old) - 4), old);
    PL_TRY(pl_storage_check_step(path, err));
    pl_status status = pl_saved_open(path, PL_SAVED_WHOLE, &saved, err);
    pl_saved_deinit(&saved);
    return status;
}

pl_status pl_storage_empty_step(const char *path, pl_error *err)
{
    return pl_remove_folder(path, step_files, STEP_FILES, err);
}

pl_status pl_storage_put_aside(const char *from, const char *to, bool *aside, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    int rc = pl_io_inject(PL_IO_RENAME) ? -1 : renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (rc != 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be removed: %s", from, strerror(errno));
    *aside = true;
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(from, '/') - from), from);
    return pl_folder_sync(folder, err);
}

/* One file that must stay (chattr +i) would leave a folder that no run can put away. */
static pl_status check_removable(const char *path, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    if (access(path, W_OK | X_OK) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be emptied: %s", path, strerror(errno));
    for (int i = 0; i < STEP_FILES; i++) {
        PL_TRY(pl_path_join(file, sizeof file, path, step_files[i], err));
        if (access(file, W_OK) != 0 && errno == EPERM)
            return pl_fail(err, PL_E_STORAGE, "%s: cannot be removed: %s", file, strerror(errno));
    }
    return PL_OK;
}

pl_status pl_storage_remove_step(const char *path, bool *aside, pl_error *err)
{
    char temporary[PL_FILE_PATH_MAX];
    int files, left;
    int n = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (n < 0 || (size_t)n >= sizeof temporary) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    PL_TRY(count_files(path, &files, err));
    PL_TRY(check_removable(path, err));
    PL_TRY(pl_storage_put_aside(path, temporary, aside, err));
    pl_status status = pl_storage_empty_step(temporary, err);
    if (status != PL_OK && count_files(temporary, &left, NULL) == PL_OK && left == files)
        (void)pl_storage_put_aside(temporary, path, aside, NULL); /* all of it is there still */
    return status;
}
