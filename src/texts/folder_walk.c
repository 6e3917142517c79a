#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "texts/texts_folder.h"
#include "texts/setup.h"

typedef struct walk {
    pl_listed_found found;
    void *context;
    size_t below;                /* length of what precedes the path below the folder */
    char path[PL_FILE_PATH_MAX]; /* the current path */
} walk;

static pl_status walk_folder(walk *w, size_t length, uint32_t depth, pl_error *err);

static pl_status fail_here(const walk *w, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", w->path, strerror(errno));
}

/* Visits what is at w->path. */
static pl_status visit(walk *w, size_t length, uint32_t depth, pl_error *err)
{
    struct stat own, st;
    if (lstat(w->path, &own) != 0) return errno == ENOENT ? PL_OK : fail_here(w, err);
    if (S_ISDIR(own.st_mode)) return walk_folder(w, length, depth + 1, err);
    if (stat(w->path, &st) != 0) return S_ISLNK(own.st_mode) ? PL_OK : fail_here(w, err); /* a dangling link */
    if (!S_ISREG(st.st_mode)) return PL_OK;
    const pl_listed file = {.path = w->path + w->below,
                            .bytes = (uint64_t)st.st_size,
                            .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
                            .ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec,
                            .inode = (uint64_t)st.st_ino};
    return w->found(w->context, &file, err);
}

/* w->path[0 … length) followed by a slash and the name, while that is visited. */
static pl_status visit_name(walk *w, size_t length, uint32_t depth, const char *name, pl_error *err)
{
    const size_t bytes = strlen(name);
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return PL_OK;
    if (length + 1 + bytes >= sizeof w->path)
        return pl_fail(err, PL_E_DATA, "the path %.200s…/%.200s is too long", w->path, name);
    w->path[length] = '/';
    memcpy(w->path + length + 1, name, bytes + 1);
    const pl_status status = visit(w, length + 1 + bytes, depth, err);
    w->path[length] = 0;
    return status;
}

static pl_status open_folder(const walk *w, DIR **folder, pl_error *err)
{
    const int fd = pl_io_open(w->path, O_RDONLY | O_DIRECTORY);
    *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (*folder) return PL_OK;
    const int error = errno;
    if (fd >= 0) close(fd);
    return pl_fail(err,
                   error == ENOENT || error == ENOTDIR ? PL_E_DATA
                   : error == ENOMEM                   ? PL_E_NOMEM
                                                       : PL_E_STORAGE,
                   "%s: cannot be opened as a folder: %s", w->path, strerror(error));
}

static pl_status walk_folder(walk *w, size_t length, uint32_t depth, pl_error *err)
{
    pl_status status = PL_OK;
    DIR *folder;
    if (depth > PL_TEXTS_DEPTH_MAX)
        return pl_fail(err, PL_E_DATA, "%s: lies more than %d folders deep", w->path, PL_TEXTS_DEPTH_MAX);
    PL_TRY(open_folder(w, &folder, err));
    errno = 0;
    for (struct dirent *entry; status == PL_OK && (entry = readdir(folder)); errno = 0)
        status = visit_name(w, length, depth, entry->d_name, err);
    if (status == PL_OK && errno != 0) status = fail_here(w, err);
    (void)closedir(folder);
    return status;
}

pl_status pl_folder_walk(const char *folder, pl_listed_found found, void *context, pl_error *err)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    walk *w = length < sizeof w->path ? pl_alloc(1, sizeof *w) : NULL;
    if (length >= sizeof w->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", folder);
    if (!w) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look through it", folder);
    memcpy(w->path, folder, length);
    w->found = found, w->context = context, w->below = length + 1;
    const pl_status status = walk_folder(w, length, 0, err);
    pl_free(w);
    return status;
}
