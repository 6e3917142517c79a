#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "base/utf8.h"

pl_status pl_path_join(char *path, size_t room, const char *folder, const char *name, pl_error *err)
{
    size_t length = strlen(folder);
    const char *slash = length && folder[length - 1] == '/' ? "" : "/";
    int used = snprintf(path, room, "%s%s%s", folder, length ? slash : "", name);
    if (used < 0 || (size_t)used >= room)
        return pl_fail(err, PL_E_USAGE, "the path %.200s…/%s is too long", folder, name);
    return PL_OK;
}

pl_status pl_path_of_part(char *path, size_t room, const char *whole, const char *part, pl_error *err)
{
    const char *slash = strrchr(whole, '/'), *name = slash ? slash + 1 : whole, *dot = strrchr(name, '.');
    const bool is_whole = !part || !part[0];
    if (!dot || dot == name) dot = whole + strlen(whole);
    int used =
        snprintf(path, room, "%.*s%s%s%s", (int)(dot - whole), whole, is_whole ? "" : "-", is_whole ? "" : part, dot);
    if (used < 0 || (size_t)used >= room) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", whole);
    return PL_OK;
}

/* What is written to standard output or error would go on into a file that nobody finds any more. */
static bool takes_output(const struct stat *st)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && S_ISREG(own.st_mode) && own.st_dev == st->st_dev && own.st_ino == st->st_ino)
            return true;
    return false;
}

/* The rename would replace whatever is there: a device, a pipe or a folder is not ours to replace. A link stays, and
 * what it leads to is replaced. The kernel resolves it (O_PATH does not open what is there, so nothing can hang),
 * because realpath may ask for memory. */
static pl_status find_target(pl_file_writer *w, const char *path, pl_error *err)
{
    struct stat st;
    char link[32];
    strcpy(w->path, path);
    if (stat(path, &st) == 0 && takes_output(&st))
        return pl_fail(err, PL_E_STORAGE, "%s: is where the output of this command goes; give another name", path);
    const int unknown = lstat(path, &st) != 0 ? errno : 0;
    if (unknown == ENAMETOOLONG) /* the temporary name is not */
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s; choose a shorter one", path, strerror(unknown));
    if (unknown || S_ISREG(st.st_mode)) return PL_OK;
    if (!S_ISLNK(st.st_mode))
        return pl_fail(err, PL_E_STORAGE, "%s: exists and is not a regular file; give another name", path);
    int fd = pl_io_open(path, O_PATH);
    if (fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: is a link that leads nowhere: %s", path, strerror(errno));
    int known = fstat(fd, &st), error = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, w->path, sizeof w->path - 1);
    if (n <= 0 && known == 0) error = errno;
    close(fd);
    if (known != 0 || n <= 0)
        return pl_fail(err, PL_E_STORAGE, "%s: is a link whose target cannot be found: %s", path, strerror(error));
    if (!S_ISREG(st.st_mode))
        return pl_fail(err, PL_E_STORAGE, "%s: is a link to something that is not a regular file; give another name",
                       path);
    w->path[n] = 0;
    return PL_OK;
}

pl_status pl_path_absolute(char *absolute, size_t room, const char *path, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX] = "";
    while (path[0] == '.' && path[1] == '/') path += 2 + (path[2] == '/');
    if (path[0] != '/' && !getcwd(folder, sizeof folder))
        return pl_fail(err, PL_E_STORAGE, "the current folder has no name: %s", strerror(errno));
    return pl_path_join(absolute, room, folder, path, err);
}

/* The name is another file's now, or none's. */
static bool has_lost_name(int fd, const char *path)
{
    struct stat here, there;
    if (fstat(fd, &here) != 0) return false;
    if (lstat(path, &there) != 0) return errno == ENOENT;
    return here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

static int open_new(const char *path) /* a pipe must not hang */
{
    return pl_io_open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
}

/* The file of the temporary name. Between opening and lock its maker may have given it its last name: then it is to be
 * left alone. Where nothing can be locked or looked at, all are alone. -1: somebody holds it. */
static int open_shared(pl_file_writer *w, bool *is_held)
{
    int fd = open_new(pl_file_temporary(w->path, "", w->temporary));
    if (fd < 0) return *is_held = errno == EWOULDBLOCK, -1; /* a lease: somebody is asking who has it open */
    *is_held = (pl_io_lock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) || has_lost_name(fd, w->temporary);
    if (!*is_held) return fd;
    close(fd);
    return -1;
}

enum { NUMBER_BYTES = 24 }; /* of the process and of its writer */

/* Where another writer is at it, one with our number. */
static int open_temporary(pl_file_writer *w, bool is_alone, bool *is_held)
{
    static unsigned counter;
    char tag[NUMBER_BYTES];
    int fd = open_shared(w, is_held);
    if (!*is_held || is_alone) return fd;
    unsigned number = __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED) % 10000;
    snprintf(tag, sizeof tag, ".%ld-%u", (long)getpid(), number);
    return open_new(pl_file_temporary(w->path, tag, w->temporary));
}

static pl_status create(pl_file_writer *w, const char *path, bool is_alone, pl_error *err)
{
    bool is_held = false;
    *w = (pl_file_writer){.fd = -1};
    if (strlen(path) >= sizeof w->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    PL_TRY(find_target(w, path, err));
    if (strlen(w->path) + NUMBER_BYTES + sizeof PL_FILE_TEMPORARY > sizeof w->temporary)
        return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    w->fd = open_temporary(w, is_alone, &is_held);
    if (w->fd < 0 && is_held && is_alone) {
        w->temporary[0] = 0;
        return pl_fail(err, PL_E_STORAGE,
                       "%s: is being written by another process; wait for its end, or give another name", path);
    }
    if (w->fd < 0 || pl_io_truncate(w->fd, 0) != 0) {
        int error = errno;
        if (w->fd >= 0) pl_file_abandon(w);
        pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", error == ELOOP ? w->temporary : path, strerror(error),
                pl_io_hint(error));
        w->temporary[0] = 0;
        return PL_E_STORAGE;
    }
    pl_file_keep_rights(w->fd, w->path, S_IRUSR | S_IWUSR); /* who comes after a kill takes it over */
    return PL_OK;
}

pl_status pl_file_create(pl_file_writer *w, const char *path, pl_error *err) { return create(w, path, false, err); }

pl_status pl_file_create_alone(pl_file_writer *w, const char *path, pl_error *err)
{
    return create(w, path, true, err);
}

pl_status pl_file_put(int fd, const char *path, uint64_t offset, const void *data, size_t bytes, pl_error *err)
{
    const char *from = data;
    while (bytes) {
        size_t chunk = bytes < ((size_t)1 << 20) ? bytes : (size_t)1 << 20;
        ssize_t n = pl_io_inject(PL_IO_WRITE) ? -1 : pwrite(fd, from, chunk, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            int error = n == 0 ? ENOSPC : errno;
            return pl_fail(err, PL_E_STORAGE, "%s: writing at byte %llu failed: %s%s", path, (unsigned long long)offset,
                           strerror(error), pl_io_hint(error));
        }
        from += n, offset += (uint64_t)n, bytes -= (size_t)n;
    }
    return PL_OK;
}

/* Linux tells of a write-back that failed once only: here it may be this call that hears of it, and fsync would find
 * nothing. File systems that have no such call say so by one of these. */
static int write_back(int fd, uint64_t at, uint64_t bytes, unsigned flags)
{
    int rc;
    do rc = pl_io_inject(PL_IO_FSYNC) ? -1 : sync_file_range(fd, (off_t)at, (off_t)bytes, flags);
    while (rc != 0 && errno == EINTR);
    return rc == 0 || errno == ENOSYS || errno == EINVAL || errno == ESPIPE || errno == ENOTSUP ? 0 : errno;
}

int pl_file_start_write_back(int fd, uint64_t at, uint64_t bytes)
{
    return write_back(fd, at, bytes, SYNC_FILE_RANGE_WRITE);
}

/* The page cache holds pieces of up to 2 MiB, and lets one go only when the range has all of it: so what lies before it
 * is named once more. */
enum { PIECE_BYTES = 2 << 20 };

int pl_file_drop(int fd, uint64_t at, uint64_t bytes)
{
    const unsigned wait = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    int error = write_back(fd, at, bytes, wait);
    uint64_t from = at > PIECE_BYTES ? at - PIECE_BYTES : 0;
    posix_fadvise(fd, (off_t)from, (off_t)(at + bytes - from), POSIX_FADV_DONTNEED);
    return error;
}

/* Two windows: the last full one is being written back while the next one fills; what is on disk leaves the cache. */
static pl_status bound_page_cache(pl_file_writer *w, pl_error *err)
{
    while (w->bytes - w->flushed >= PL_FILE_WINDOW_BYTES) {
        int error = pl_file_start_write_back(w->fd, w->flushed, PL_FILE_WINDOW_BYTES);
        if (error == 0 && w->flushed >= PL_FILE_WINDOW_BYTES)
            error = pl_file_drop(w->fd, w->flushed - PL_FILE_WINDOW_BYTES, PL_FILE_WINDOW_BYTES);
        if (error)
            return pl_fail(err, PL_E_STORAGE, "%s: what was written before byte %llu did not reach the disk: %s%s",
                           w->path, (unsigned long long)w->bytes, strerror(error), pl_io_hint(error));
        w->flushed += PL_FILE_WINDOW_BYTES;
    }
    return PL_OK;
}

pl_status pl_file_write(pl_file_writer *w, const void *data, size_t bytes, pl_error *err)
{
    const char *from = data;
    while (bytes) {
        size_t room = PL_FILE_WINDOW_BYTES - (size_t)(w->bytes - w->flushed), chunk = bytes < room ? bytes : room;
        PL_TRY(pl_file_put(w->fd, w->path, w->bytes, from, chunk, err));
        w->bytes += chunk, from += chunk, bytes -= chunk;
        PL_TRY(bound_page_cache(w, err));
    }
    return PL_OK;
}

pl_status pl_file_write_at(pl_file_writer *w, uint64_t offset, const void *data, size_t bytes, pl_error *err)
{
    return pl_file_put(w->fd, w->path, offset, data, bytes, err);
}

static pl_status folder_of(const char *path, char *folder, size_t room, pl_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 1;
    if (n + 1 > room) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    memcpy(folder, slash ? path : ".", n);
    folder[n] = 0;
    if (n == 0) strcpy(folder, "/");
    return PL_OK;
}

pl_status pl_folder_sync(const char *path, pl_error *err)
{
    int fd = pl_io_open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened as a folder: %s", path, strerror(errno));
    int rc = pl_io_sync(fd), error = errno;
    close(fd);
    /* Some file systems cannot sync a folder; their renames are as durable as they get. */
    if (rc != 0 && error != EINVAL && error != ENOTSUP)
        return pl_fail(err, PL_E_STORAGE, "%s: syncing the folder failed: %s", path, strerror(error));
    return PL_OK;
}

/* To the disk. What is closed may fail, so that comes before the name; the lock is held until then: dup's descriptor,
 * which takes the place of the other, shares it. 0 or an errno. */
static int complete(pl_file_writer *w)
{
    pl_file_keep_rights(w->fd, w->path, 0);
    int error = pl_io_sync(w->fd) != 0 ? errno : 0, lock = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    if (!error) posix_fadvise(w->fd, 0, 0, POSIX_FADV_DONTNEED);
    if (pl_io_close(w->fd) != 0 && !error) error = errno;
    w->fd = lock;
    return error;
}

/* is_one_of_many: what had the name before gets the temporary one, where the file system can do that, so that it can
 * be given back. 0 or an errno. */
static int give_name(pl_file_writer *w, bool is_one_of_many)
{
    if (pl_io_inject(PL_IO_RENAME)) return errno;
    w->is_exchanged = is_one_of_many && renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE) == 0;
    return w->is_exchanged || rename(w->temporary, w->path) == 0 ? 0 : errno;
}

static void take_name_back(pl_file_writer *w)
{
    if (w->is_exchanged) (void)renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE);
    (void)pl_remove_file(w->is_exchanged ? w->temporary : w->path, NULL);
}

/* It has its name for good. */
static void let_go(pl_file_writer *w)
{
    if (w->is_exchanged) (void)pl_remove_file(w->temporary, NULL);
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    w->temporary[0] = 0;
}

static pl_status sync_folder_of(const pl_file_writer *w, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(folder_of(w->path, folder, sizeof folder, err));
    return pl_folder_sync(folder, err);
}

pl_status pl_file_commit_all(pl_file_writer *w, size_t count, pl_error *err)
{
    pl_status status = PL_OK;
    size_t at = 0, named = 0;
    int error = 0;
    while (at < count && (error = complete(&w[at])) == 0) at++;
    while (!error && named < count && (error = give_name(&w[named], count > 1)) == 0) named++;
    if (error) {
        const char *path = w[at < count ? at : named].path;
        status =
            pl_fail(err, PL_E_STORAGE, "%s: could not be completed: %s%s", path, strerror(error), pl_io_hint(error));
        while (named > 0) take_name_back(&w[--named]);
        for (size_t i = 0; i < count; i++) pl_file_abandon(&w[i]);
        return status;
    }
    for (size_t i = 0; i < count; i++) let_go(&w[i]);
    for (size_t i = 0; i < count && status == PL_OK; i++) status = sync_folder_of(&w[i], err);
    return status;
}

pl_status pl_file_commit(pl_file_writer *w, pl_error *err) { return pl_file_commit_all(w, 1, err); }

void pl_file_abandon(pl_file_writer *w)
{
    if (!w->temporary[0]) return;
    (void)pl_remove_file(w->temporary, NULL);
    if (w->fd >= 0) close(w->fd);
    w->fd = -1;
    w->temporary[0] = 0;
}

pl_status pl_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t bytes, pl_error *err)
{
    char *to = data;
    while (bytes) {
        ssize_t n = pl_io_inject(PL_IO_READ) ? -1 : pread(fd, to, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return pl_fail(err, PL_E_STORAGE, "%s: reading at byte %llu failed: %s", path, (unsigned long long)offset,
                           strerror(errno));
        if (n == 0)
            return pl_fail(err, PL_E_DATA, "%s: ends at byte %llu, but %zu more were expected; the file is truncated",
                           path, (unsigned long long)offset, bytes);
        to += n, offset += (uint64_t)n, bytes -= (size_t)n;
    }
    return PL_OK;
}

pl_status pl_file_open(const char *path, int *fd, uint64_t *bytes, pl_error *err)
{
    struct stat st;
    *fd = pl_io_open(path, O_RDONLY | O_NONBLOCK); /* a pipe must not hang */
    if (*fd < 0) {
        bool is_missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
        return pl_fail(err, is_missing ? PL_E_DATA : PL_E_STORAGE, "%s: cannot be opened: %s%s", path, strerror(errno),
                       errno == EMFILE ? pl_io_hint(errno) : "");
    }
    int known = fstat(*fd, &st), error = errno;
    if (known != 0 || !S_ISREG(st.st_mode)) {
        close(*fd);
        *fd = -1;
        return known == 0 ? pl_fail(err, PL_E_DATA, "%s: is not a regular file", path)
                          : pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(error));
    }
    if (bytes) *bytes = (uint64_t)st.st_size;
    return PL_OK;
}

pl_status pl_file_look(const char *path, bool *is_there, pl_error *err)
{
    *is_there = access(path, F_OK) == 0;
    if (*is_there || errno == ENOENT || errno == ENOTDIR) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
}

pl_status pl_file_find_kind(const char *path, pl_file_kind *kind, pl_error *err)
{
    struct stat st;
    const bool is_seen = stat(path, &st) == 0, is_link = !is_seen && errno == ENOENT && lstat(path, &st) == 0;
    *kind = is_link ? PL_FILE_OTHER : PL_FILE_NONE;
    if (is_seen) *kind = S_ISDIR(st.st_mode) ? PL_FILE_FOLDER : PL_FILE_OTHER;
    const bool is_named =
        errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == EACCES || errno == ELOOP;
    if (is_seen || is_link || is_named) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%.300s: cannot be examined: %s", path, strerror(errno));
}

pl_status pl_file_read_all(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *err)
{
    int fd;
    uint64_t size = 0;
    PL_TRY(pl_file_open(path, &fd, &size, err));
    pl_status status = PL_OK;
    *text = NULL;
    if (size > limit) {
        status = pl_fail(err, PL_E_DATA, "%s: has %llu bytes, at most %llu were expected", path,
                         (unsigned long long)size, (unsigned long long)limit);
        goto done;
    }
    *text = pl_alloc((size_t)size + 1, 1);
    if (!*text) {
        status = pl_fail(err, PL_E_NOMEM, "%s: no memory for its %llu bytes", path, (unsigned long long)size);
        goto done;
    }
    status = pl_file_read_at(fd, path, 0, *text, (size_t)size, err);
    if (status == PL_OK && size == 0 && pread(fd, &(char){0}, 1, 0) > 0)
        status = pl_fail(err, PL_E_DATA, "%s: has more bytes than its size of 0 says; give a copy of it", path);
    if (bytes) *bytes = (size_t)size;
done:
    close(fd);
    if (status != PL_OK) pl_free(*text), *text = NULL;
    return status;
}

static pl_status read_stdin(uint64_t limit, char **text, size_t *bytes, pl_error *err)
{
    size_t capacity = 0;
    *text = NULL, *bytes = 0;
    for (;;) {
        if (*bytes == capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            char *grown = capacity / 2 > limit ? NULL : pl_realloc(*text, capacity, 1);
            if (!grown)
                return pl_fail(err, PL_E_DATA, "stdin: more text than fits memory (at most %llu bytes)",
                               (unsigned long long)limit);
            *text = grown;
        }
        ssize_t got = read(STDIN_FILENO, *text + *bytes, capacity - *bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return pl_fail(err, PL_E_DATA, "stdin: cannot be read: %s", strerror(errno));
        if (got == 0) return PL_OK;
        *bytes += (size_t)got;
    }
}

static void drop_mark(char *text, size_t *bytes)
{
    const size_t mark = pl_utf8_mark(text, *bytes);
    if (mark) memmove(text, text + mark, *bytes - mark + 1); /* and the zero at its end */
    *bytes -= mark;
}

pl_status pl_file_read_text(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *err)
{
    PL_TRY(pl_file_read_all(path, limit, text, bytes, err));
    drop_mark(*text, bytes);
    return PL_OK;
}

pl_status pl_file_read_input(const char *path, uint64_t limit, char **text, size_t *bytes, pl_error *err)
{
    if (strcmp(path, "-") != 0) return pl_file_read_text(path, limit, text, bytes, err);
    pl_status status = read_stdin(limit, text, bytes, err);
    if (status != PL_OK) pl_free(*text), *text = NULL;
    return status;
}

pl_status pl_file_check_replaced(const char *path, const char *beginning, bool is_torn, const char *what, pl_error *err)
{
    char found[PL_FILE_BEGINNING_MAX];
    size_t n = strlen(beginning);
    uint64_t bytes;
    pl_error ignored;
    int fd;
    if (pl_file_open(path, &fd, &bytes, &ignored) != PL_OK)
        return PL_OK; /* not there; else writing says what is wrong */
    if (n > bytes && (is_torn || bytes == 0)) n = (size_t)bytes;
    const bool is_one = n <= sizeof found && n <= bytes && pl_file_read_at(fd, path, 0, found, n, &ignored) == PL_OK &&
                        memcmp(found, beginning, n) == 0;
    close(fd);
    return is_one ? PL_OK
                  : pl_fail(err, PL_E_USAGE, "%s: is there already and is no %s; choose another name for the %s", path,
                            what, what);
}

pl_status pl_file_write_all(const char *path, const void *data, size_t bytes, pl_error *err)
{
    pl_file_writer w;
    PL_TRY(pl_file_create(&w, path, err));
    pl_status status = pl_file_write(&w, data, bytes, err);
    if (status == PL_OK) return pl_file_commit(&w, err);
    pl_file_abandon(&w);
    return status;
}

/* A folder that is new is durable when the one above it is. That one may be closed to us (x without r): then it is as
 * durable as it gets. */
static pl_status sync_above(const char *path, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(folder_of(path, folder, sizeof folder, err));
    return access(folder, R_OK) == 0 ? pl_folder_sync(folder, err) : PL_OK;
}

pl_status pl_folder_create(const char *path, pl_error *err)
{
    char part[PL_FILE_PATH_MAX];
    size_t n = strlen(path);
    if (n == 0) return PL_OK;
    if (n >= sizeof part) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0) continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0755) == 0) {
            PL_TRY(sync_above(part, err));
            continue;
        }
        int reason = errno; /* that access leaves its own behind is no reason */
        if (reason == EEXIST || (reason == EROFS && access(part, F_OK) == 0)) continue;
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", part, strerror(reason), pl_io_hint(reason));
    }
    struct stat st;
    if (stat(path, &st) != 0)
        return errno == ENOENT ? pl_fail(err, PL_E_STORAGE, "%s: is a link that leads nowhere", path)
                               : pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: is in the way: a folder was expected there", path);
}
