#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/procfile.h"
#include "base/units.h"

static pl_status each_in_batch(char *list, ssize_t bytes, pl_status (*use)(void *, const char *, pl_error *),
                               void *context, pl_error *err)
{
    for (ssize_t at = 0; at < bytes;) {
        const struct dirent64 *entry = (const struct dirent64 *)(list + at);
        at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        PL_TRY(use(context, entry->d_name, err));
    }
    return PL_OK;
}

pl_status pl_folder_each_in(int fd, const char *path, char list[PL_FOLDER_LIST_BYTES],
                            pl_status (*use)(void *, const char *, pl_error *), void *context, pl_error *err)
{
    ssize_t bytes = 0;
    pl_status status = PL_OK;
    while (status == PL_OK && (bytes = getdents64(fd, list, PL_FOLDER_LIST_BYTES)) > 0)
        status = each_in_batch(list, bytes, use, context, err);
    if (bytes < 0 && errno != ENOENT) /* ENOENT: it was removed meanwhile */
        status = pl_fail(err, PL_E_STORAGE, "%s: cannot be listed: %s", path, strerror(errno));
    return status;
}

pl_status pl_folder_each(const char *path, char list[PL_FOLDER_LIST_BYTES],
                         pl_status (*use)(void *, const char *, pl_error *), void *context, pl_error *err)
{
    int fd = pl_io_open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 && errno == ENOENT) return PL_OK;
    if (fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened as a folder: %s", path, strerror(errno));
    const pl_status status = pl_folder_each_in(fd, path, list, use, context, err);
    close(fd);
    return status;
}

pl_status pl_folder_create_one(const char *path, pl_error *err)
{
    if ((pl_io_inject(PL_IO_OPEN) ? -1 : mkdir(path, 0755)) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", path, strerror(errno), pl_io_hint(errno));
}

/* What `ask` says of the folder or of its nearest existing ancestor: 0, or -1 with errno. */
static int ask_disk(const char *path, int (*ask)(const char *at, void *answer), void *answer)
{
    char at[PL_FILE_PATH_MAX];
    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof at) return -1;
    strcpy(at, *path ? path : ".");
    while (ask(at, answer) != 0) {
        char *slash = strrchr(at, '/');
        if (errno != ENOENT || strcmp(at, ".") == 0 || strcmp(at, "/") == 0) return -1;
        if (!slash)
            strcpy(at, ".");
        else
            slash[slash == at] = 0;
    }
    return 0;
}

static int ask_space(const char *at, void *answer) { return statvfs(at, answer); }
static int ask_kind(const char *at, void *answer) { return statfs(at, answer); }

pl_status pl_disk_free(const char *path, uint64_t *bytes, pl_error *err)
{
    struct statvfs fs;
    if (ask_disk(path, ask_space, &fs) != 0)
        return pl_fail(err, PL_E_STORAGE, "%.300s: the free space of its disk cannot be read: %s", path,
                       strerror(errno));
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return PL_OK;
}

enum { PIECE = 16 << 10, PIECES = 512, LITTLE = 256 << 20 };

/* 0, or −1: not written. */
static int write_some(const char *at, void *answer)
{
    struct timespec begin, end;
    size_t written;
    int fd = pl_io_open(at, O_TMPFILE | O_WRONLY);
    if (fd < 0 && errno == ENOTDIR) errno = ENOENT; /* the file itself: its folder is asked */
    if (fd < 0) return -1;
    const char piece[PIECE] = {0};
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < PIECES && !error; i++) error = pl_io_append(fd, piece, PIECE, &written);
    if (!error && pl_io_sync_data(fd) != 0) error = errno;
    clock_gettime(CLOCK_MONOTONIC, &end);
    close(fd);
    const double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    if (!error && seconds > 0) *(double *)answer = (double)PIECE * PIECES / seconds;
    return 0; /* the folder is there: another is not to be asked */
}

double pl_disk_measure(const char *path)
{
    double bytes_per_second = -1;
    uint64_t available = 0;
    struct rlimit limit;
    pl_error ignored = {0};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < (rlim_t)PIECE * PIECES) return -1;
    if (pl_disk_free(path, &available, &ignored) != PL_OK || available < LITTLE) return -1;
    (void)ask_disk(path, write_some, &bytes_per_second);
    return bytes_per_second;
}

bool pl_disk_is_memory(const char *path)
{
    static const uint32_t tmpfs = 0x01021994, ramfs = 0x858458f6; /* <linux/magic.h> */
    struct statfs fs;
    if (ask_disk(path, ask_kind, &fs) != 0) return false;
    return (uint32_t)fs.f_type == tmpfs || (uint32_t)fs.f_type == ramfs;
}

static uint64_t counted_bytes; /* nftw has no context, and one thread asks */

static int count_file(const char *path, const struct stat *st, int kind, struct FTW *place)
{
    (void)path, (void)place;
    if (kind != FTW_NS) counted_bytes += (uint64_t)st->st_blocks * 512;
    return 0;
}

uint64_t pl_folder_memory_bytes(const char *path)
{
    enum { FOLDERS_OPEN = 8 };
    counted_bytes = 0;
    if (pl_disk_is_memory(path)) (void)nftw(path, count_file, FOLDERS_OPEN, FTW_PHYS | FTW_MOUNT);
    return counted_bytes;
}

pl_status pl_disk_require(const char *path, uint64_t needed, const char *what, pl_error *err)
{
    uint64_t available = 0;
    char need[32], have[32], lack[32];
    PL_TRY(pl_disk_free(path, &available, err));
    if (needed <= available) return PL_OK;
    return pl_fail(
        err, PL_E_STORAGE,
        "%s: %s need %s (%" PRIu64 " bytes) of disk, but %s are free there: %s short; free space, choose another"
        " folder or keep fewer checkpoints",
        path, what, pl_format_bytes(needed, need, sizeof need), needed, pl_format_bytes(available, have, sizeof have),
        pl_format_bytes(needed - available, lack, sizeof lack));
}

/* ---- lock ---- */

/* Who holds the lock. The file names who wrote last, which may be one that has ended, if its successor had no time yet
 * to write; so the kernel is asked (/proc/locks), and the file only where that cannot be read. Some file systems have
 * another device there than stat tells: then both must agree. 0: nobody knows. */
static long holder_of(int locked, long written)
{
    struct stat st;
    pl_procfile f;
    unsigned long inode;
    unsigned device[2];
    long pid, holder = 0;
    if (fstat(locked, &st) != 0 || pl_procfile_open(&f, "/proc/locks") != 0) return written;
    for (const char *line; !holder && (line = pl_procfile_line(&f));) {
        if (sscanf(line, "%*u: FLOCK %*s WRITE %ld %x:%x:%lu", &pid, &device[0], &device[1], &inode) != 4) continue;
        bool same = device[0] == major(st.st_dev) && device[1] == minor(st.st_dev);
        if (inode == st.st_ino && pid > 0 && (same || pid == written)) holder = pid;
    }
    pl_procfile_close(&f);
    return holder;
}

static pl_status refused(const char *folder, int locked, int fd, pl_error *err)
{
    char text[32] = {0};
    long written = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0 || sscanf(text, "%ld", &written) != 1 || written < 0) written = 0;
    long pid = holder_of(locked, written);
    if (pid > 0)
        return pl_fail(err, PL_E_STORAGE,
                       "%s: another run (process %ld) is using this folder; wait for it, stop it, or"
                       " choose another folder",
                       folder, pid);
    return pl_fail(err, PL_E_STORAGE, "%s: another run is using this folder; wait for it or choose another", folder);
}

long pl_folder_holder(const char *folder)
{
    char path[PL_FILE_PATH_MAX];
    int fd = pl_io_open(folder, O_RDONLY | O_DIRECTORY);
    long pid = fd < 0 ? 0 : holder_of(fd, 0);
    if (fd >= 0) close(fd);
    if (pid || pl_path_join(path, sizeof path, folder, "lock", NULL) != PL_OK) return pid;
    fd = pl_io_open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    pid = fd < 0 ? 0 : holder_of(fd, 0);
    if (fd >= 0) close(fd);
    return pid;
}

/* The folder is what is locked: a file in it could be removed, and then two would hold it. NFS locks only what is open
 * for writing, which no folder can be: there it is the file. */
static pl_status take_lock(const char *folder, int folder_fd, int file_fd, int *lock, pl_error *err)
{
    *lock = folder_fd;
    int rc = pl_io_lock(folder_fd, LOCK_EX | LOCK_NB);
    if (rc != 0 && errno == EBADF) rc = pl_io_lock(*lock = file_fd, LOCK_EX | LOCK_NB);
    if (rc == 0 || pl_io_has_no_locks(errno)) return PL_OK;
    if (errno == EWOULDBLOCK) return refused(folder, *lock, file_fd, err);
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be locked: %s", folder, strerror(errno));
}

pl_status pl_folder_lock(const char *folder, int *lock, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], text[32];
    int file = -1, held = -1;
    *lock = -1;
    PL_TRY(pl_folder_create(folder, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, "lock", err));
    int fd = pl_io_open(folder, O_RDONLY | O_DIRECTORY);
    if (fd >= 0) file = pl_io_open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW);
    pl_status status = file >= 0 ? take_lock(folder, fd, file, &held, err)
                                 : pl_fail(err, PL_E_STORAGE, "%s: cannot be opened: %s%s", fd < 0 ? folder : path,
                                           strerror(errno), pl_io_hint(errno));
    /* As wide as any, over the one before: whatever a kill leaves of it is a number that ends a line, by which the
     * folder of a run is known (store/run_files.c). */
    int n = snprintf(text, sizeof text, "%010ld\n", (long)getpid());
    if (status == PL_OK && (pwrite(file, text, (size_t)n, 0) != n || pl_io_truncate(file, n) != 0)) {
        /* a full disk: the lock holds all the same */
    }
    if (status == PL_OK) *lock = held;
    if (fd >= 0 && fd != *lock) close(fd);
    if (file >= 0 && file != *lock) close(file);
    return status;
}

/* Asked for and given back, unless somebody has it. */
bool pl_folder_has_locks(const char *folder)
{
    const int fd = pl_io_open(folder, O_RDONLY | O_DIRECTORY);
    const bool has = fd < 0 || pl_io_lock(fd, LOCK_SH | LOCK_NB) == 0 || !pl_io_has_no_locks(errno);
    if (fd >= 0) close(fd);
    return has;
}

void pl_folder_unlock(int *lock)
{
    if (*lock >= 0) close(*lock);
    *lock = -1;
}
