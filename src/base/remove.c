#include "base/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { NAME_BYTES = 256 }; /* a name and what ends it */

static bool is_link(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

bool pl_remove_is_link(const char *path) { return is_link(AT_FDCWD, path); }

/* A folder is not removed by this call: the kernel says so (EISDIR). */
int pl_remove_at(int folder, const char *name)
{
    if (is_link(folder, name)) return ELOOP;
    return unlinkat(folder, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

static pl_status fail(const char *path, int error, pl_error *err)
{
    if (error == ELOOP)
        return pl_fail(err, PL_E_STORAGE, "%s: is a link, so neither it nor what it leads to is removed; move it away",
                       path);
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be removed: %s", path, strerror(error));
}

pl_status pl_remove_file(const char *path, pl_error *err)
{
    const int error = pl_remove_at(AT_FDCWD, path);
    return error ? fail(path, error, err) : PL_OK;
}

/* With O_DIRECTORY a link is ENOTDIR, as is a file. */
pl_status pl_remove_open_folder(const char *path, int *folder, pl_error *err)
{
    *folder = pl_io_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const int error = errno;
    if (*folder >= 0 || error == ENOENT) return PL_OK;
    if (is_link(AT_FDCWD, path)) return fail(path, ELOOP, err);
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened as a folder: %s", path, strerror(error));
}

pl_status pl_remove_empty_folder(const char *path, pl_error *err)
{
    if (rmdir(path) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == EEXIST) return PL_OK;
    const int error = errno;
    return fail(path, is_link(AT_FDCWD, path) ? ELOOP : error, err);
}

pl_status pl_remove_made(const char *path, pl_error *err)
{
    int error = pl_remove_at(AT_FDCWD, path);
    if (error == EISDIR) error = rmdir(path) == 0 || errno == ENOTEMPTY || errno == EEXIST ? 0 : errno;
    return error ? fail(path, error, err) : PL_OK;
}

static int remove_both(int folder, const char *name)
{
    char temporary[NAME_BYTES];
    snprintf(temporary, sizeof temporary, "%s" PL_FILE_TEMPORARY, name);
    const int first = pl_remove_at(folder, name), second = pl_remove_at(folder, temporary);
    return second ? second : first;
}

pl_status pl_remove_folder(const char *path, const char *const *names, size_t count, pl_error *err)
{
    int folder, error = 0;
    PL_TRY(pl_remove_open_folder(path, &folder, err));
    if (folder < 0) return PL_OK;
    for (size_t i = 0; i < count; i++) {
        const int other = remove_both(folder, names[i]);
        if (other) error = other;
    }
    close(folder);
    if (error)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be emptied: %s; move it away", path,
                       error == ELOOP ? "a link is in it, and is not removed" : strerror(error));
    return pl_remove_empty_folder(path, err);
}

bool pl_remove_meets_link(const char *path, const char *const *names, size_t count)
{
    char temporary[NAME_BYTES];
    if (is_link(AT_FDCWD, path)) return true;
    const int folder = pl_io_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    bool meets = false;
    for (size_t i = 0; i < count && folder >= 0; i++) {
        snprintf(temporary, sizeof temporary, "%s" PL_FILE_TEMPORARY, names[i]);
        meets |= is_link(folder, names[i]) || is_link(folder, temporary);
    }
    if (folder >= 0) close(folder);
    return meets;
}
