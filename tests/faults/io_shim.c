/* LD_PRELOAD: every call of the program that touches a file is counted by its kind and written to a log, and the n-th
 * of a kind fails, is cut short, or is where the process dies. The count goes on in the program that is executed next,
 * because the log is where it is kept:
 *
 *      PL_FAULT_LOG=FILE                       a line for each call; "!" before it: here it failed
 *      PL_FAULT=KIND:N:once|forever:ACTION     ACTION: a number of errno, or one of
 *          short   reads or writes half of what was asked for
 *          kill    the process is killed instead of the call
 *          torn    half of the write is done, then it is killed
 *          lost    killed, and what a loss of power may take is taken: of each file what was written after its last
 *                  fsync, of each folder the renames after its last fsync
 *      PL_FAULT_PATHS=TEXT                     only calls on paths with this in them count
 *
 * Works below the memory filter of a run: it asks for no memory, and its own calls go by syscall(2). Calls that the C
 * library makes inside of other functions are not seen; io_tests.py compares with strace that there are none. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OPEN, CLOSE, READ, WRITE, SYNC, RENAME, CUT, LOCK, MKDIR, UNLINK, LIST, LOOK, MEMORY, KINDS };
static const char *const kind_names[KINDS] = {"open", "close", "read",   "write", "sync", "rename", "cut",
                                              "lock", "mkdir", "unlink", "list",  "look", "memory"};
enum { ACTION_ERROR, ACTION_SHORT, ACTION_KILL, ACTION_TORN, ACTION_LOST };
enum { LOG_FD = 700, KEPT_FD = 701, FILES_MAX = 64, RENAMES_MAX = 16 };

static atomic_long count[KINDS];
static int kind_wanted = KINDS, action, error_wanted, forever;
static long n_wanted;
static const char *paths;
static int log_fd = -1;

static void die(void)
{
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* ---- what a loss of power takes ---- */

typedef struct written_file {
    dev_t device;
    ino_t inode;
    off_t synced;
    int fd; /* a second one, so that it can be cut when the program has closed its own */
    bool dirty;
} written_file;

typedef struct renamed {
    char from[512], to[512], old[540];
    unsigned flags;
} renamed;

static written_file file[FILES_MAX];
static renamed renames[RENAMES_MAX];
static int file_count, rename_count;

static int look_at(int fd, struct stat *st) { return (int)syscall(SYS_newfstatat, fd, "", st, AT_EMPTY_PATH); }

/* Opened anew: a duplicate would hold on to the locks of the program's own. */
static int keep_open(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int again = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
    const int kept = (int)syscall(SYS_fcntl, again, F_DUPFD_CLOEXEC, KEPT_FD);
    syscall(SYS_close, again);
    return kept;
}

static written_file *find_file(int fd, const struct stat *st)
{
    for (int i = 0; i < file_count; i++)
        if (file[i].device == st->st_dev && file[i].inode == st->st_ino) return &file[i];
    if (file_count == FILES_MAX) return NULL;
    file[file_count] = (written_file){st->st_dev, st->st_ino, st->st_size, -1, false};
    file[file_count].fd = keep_open(fd);
    return &file[file_count++];
}

/* A second descriptor would hold the lock on. */
static bool is_remembered(const char *path)
{
    size_t n = strlen(path);
    return action == ACTION_LOST && path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 &&
           strncmp(path, "/dev/", 5) != 0 && (n < 5 || strcmp(path + n - 5, "/lock") != 0);
}

static void note_write(int fd, const char *path)
{
    struct stat st;
    if (!is_remembered(path) || look_at(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
    written_file *f = find_file(fd, &st);
    if (f) f->dirty = true;
}

static void forget_renames(const char *folder)
{
    size_t n = strlen(folder);
    int kept = 0;
    for (int i = 0; i < rename_count; i++) {
        bool here =
            strncmp(renames[i].to, folder, n) == 0 && renames[i].to[n] == '/' && !strchr(renames[i].to + n + 1, '/');
        if (here && renames[i].old[0]) syscall(SYS_unlinkat, AT_FDCWD, renames[i].old, 0);
        if (!here) renames[kept++] = renames[i];
    }
    rename_count = kept;
}

static void note_sync(int fd, const char *path)
{
    struct stat st;
    if (!is_remembered(path) || look_at(fd, &st) != 0) return;
    if (S_ISDIR(st.st_mode)) {
        forget_renames(path);
        return;
    }
    written_file *f = find_file(fd, &st);
    if (f) f->dirty = false, f->synced = st.st_size;
}

static void make_absolute(const char *path, char *out, size_t room)
{
    char here[400] = "";
    if (path[0] != '/') syscall(SYS_getcwd, here, sizeof here);
    snprintf(out, room, "%s%s%s", here, path[0] == '/' ? "" : "/", path);
}

/* Before it is done: what is there now would be gone. */
static void note_rename(const char *from, const char *to, unsigned flags)
{
    if (action != ACTION_LOST || rename_count == RENAMES_MAX) return;
    renamed *r = &renames[rename_count++];
    *r = (renamed){.flags = flags};
    make_absolute(from, r->from, sizeof r->from);
    make_absolute(to, r->to, sizeof r->to);
    snprintf(r->old, sizeof r->old, "%.500s.power-%d", to, rename_count); /* relative, as the program sees it */
    if (flags || syscall(SYS_linkat, AT_FDCWD, r->to, AT_FDCWD, r->old, 0) != 0) r->old[0] = 0;
}

static void lose_power(void)
{
    for (int i = 0; i < file_count; i++)
        if (file[i].dirty) syscall(SYS_ftruncate, file[i].fd, file[i].synced);
    while (rename_count-- > 0) {
        const renamed *r = &renames[rename_count];
        syscall(SYS_renameat2, AT_FDCWD, r->to, AT_FDCWD, r->from, r->flags);
        if (r->old[0]) syscall(SYS_renameat2, AT_FDCWD, r->old, AT_FDCWD, r->to, 0);
    }
}

/* ---- counting ---- */

static void read_log(void)
{
    char text[4096], line[64];
    size_t used = 0;
    ssize_t n;
    off_t at = 0;
    while ((n = syscall(SYS_pread64, log_fd, text, sizeof text, at)) > 0) {
        at += n;
        for (ssize_t i = 0; i < n; i++) {
            if (text[i] != '\n') {
                if (used + 1 < sizeof line) line[used++] = text[i];
                continue;
            }
            line[used] = 0;
            used = 0;
            for (int k = 0; k < KINDS; k++) {
                size_t length = strlen(kind_names[k]);
                if (strncmp(line + 1, kind_names[k], length) == 0 && line[1 + length] == ' ') count[k]++;
            }
        }
    }
}

static void read_wish(const char *wish)
{
    static const char *const actions[] = {"", "short", "kill", "torn", "lost"};
    char kind[16], often[16], what[16];
    if (sscanf(wish, "%15[a-z]:%ld:%15[a-z]:%15s", kind, &n_wanted, often, what) != 4) return;
    for (int k = 0; k < KINDS; k++)
        if (strcmp(kind, kind_names[k]) == 0) kind_wanted = k;
    for (int i = ACTION_SHORT; i <= ACTION_LOST; i++)
        if (strcmp(what, actions[i]) == 0) action = i;
    error_wanted = atoi(what);
    forever = strcmp(often, "forever") == 0;
}

static struct dirent *(*real_readdir)(DIR *);
static int (*real_closedir)(DIR *);

__attribute__((constructor)) static void begin(void)
{
    *(void **)&real_readdir = dlsym(RTLD_NEXT, "readdir");
    *(void **)&real_closedir = dlsym(RTLD_NEXT, "closedir");
    const char *log = getenv("PL_FAULT_LOG"), *wish = getenv("PL_FAULT");
    if (!log) return;
    paths = getenv("PL_FAULT_PATHS");
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    log_fd = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, LOG_FD);
    syscall(SYS_close, fd);
    read_log();
    if (wish) read_wish(wish);
}

/* What is to happen to this call: -1 nothing, else the action. */
static int fate(int kind, const char *function, const char *path)
{
    char line[PATH_MAX];
    if (log_fd < 0 || (paths && !strstr(path, paths))) return -1;
    long n = ++count[kind];
    bool hit = kind == kind_wanted && (n == n_wanted || (forever && n > n_wanted));
    int bytes = snprintf(line, sizeof line, "%c%s %s %s\n", hit ? '!' : ' ', kind_names[kind], function, path);
    for (char *at = line; (at = strchr(at, '\n')) && at[1]; at++) *at = '?'; /* a call is a line */
    syscall(SYS_write, log_fd, line, bytes < PATH_MAX ? bytes : PATH_MAX - 1);
    if (!hit) return -1;
    if (action == ACTION_LOST) lose_power();
    if (action == ACTION_KILL || action == ACTION_LOST) die();
    errno = error_wanted;
    return action;
}

static const char *path_of(int fd, char path[PATH_MAX])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = 0;
    return path;
}

static int fate_of(int kind, const char *function, int fd, char path[PATH_MAX])
{
    int error = errno, what = fate(kind, function, path_of(fd, path));
    if (what < 0) errno = error;
    return what;
}

/* ---- the calls ---- */

EXPORT int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    if (fate(OPEN, "open", path) >= 0) return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

EXPORT int memfd_create(const char *name, unsigned flags)
{
    return fate(MEMORY, "memfd_create", name) >= 0 ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

/* As Linux does it: the descriptor is gone, whatever is said. */
EXPORT int close(int fd)
{
    char path[PATH_MAX];
    bool fails = fate_of(CLOSE, "close", fd, path) >= 0;
    int error = errno, rc = (int)syscall(SYS_close, fd);
    if (fails) errno = error;
    return fails ? -1 : rc;
}

static size_t half(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
    char path[PATH_MAX];
    int what = fate_of(READ, "read", fd, path);
    if (what == ACTION_ERROR) return -1;
    return syscall(SYS_read, fd, data, what == ACTION_SHORT ? half(bytes) : bytes);
}

EXPORT ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    char path[PATH_MAX];
    int what = fate_of(READ, "pread", fd, path);
    if (what == ACTION_ERROR) return -1;
    return syscall(SYS_pread64, fd, data, what == ACTION_SHORT ? half(bytes) : bytes, at);
}

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    char path[PATH_MAX];
    int what = fate_of(WRITE, "write", fd, path);
    if (what == ACTION_ERROR) return -1;
    note_write(fd, path);
    ssize_t n = syscall(SYS_write, fd, data, what >= 0 ? half(bytes) : bytes);
    if (what == ACTION_TORN) die();
    return n;
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    char path[PATH_MAX];
    int what = fate_of(WRITE, "pwrite", fd, path);
    if (what == ACTION_ERROR) return -1;
    note_write(fd, path);
    ssize_t n = syscall(SYS_pwrite64, fd, data, what >= 0 ? half(bytes) : bytes, at);
    if (what == ACTION_TORN) die();
    return n;
}

EXPORT int fsync(int fd)
{
    char path[PATH_MAX];
    if (fate_of(SYNC, "fsync", fd, path) >= 0) return -1;
    note_sync(fd, path);
    return (int)syscall(SYS_fsync, fd);
}

EXPORT int fdatasync(int fd)
{
    char path[PATH_MAX];
    if (fate_of(SYNC, "fdatasync", fd, path) >= 0) return -1;
    note_sync(fd, path);
    return (int)syscall(SYS_fdatasync, fd);
}

EXPORT int sync_file_range(int fd, off_t at, off_t bytes, unsigned flags)
{
    char path[PATH_MAX];
    if (fate_of(SYNC, "sync_file_range", fd, path) >= 0) return -1;
    return (int)syscall(SYS_sync_file_range, fd, at, bytes, flags);
}

EXPORT int rename(const char *from, const char *to)
{
    if (fate(RENAME, "rename", to) >= 0) return -1;
    note_rename(from, to, 0);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

EXPORT int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (fate(RENAME, "renameat2", to) >= 0) return -1;
    note_rename(from, to, flags);
    return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

EXPORT int ftruncate(int fd, off_t bytes)
{
    char path[PATH_MAX];
    return fate_of(CUT, "ftruncate", fd, path) >= 0 ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

/* Says what is wrong by itself, not in errno. */
EXPORT int posix_fallocate(int fd, off_t at, off_t bytes)
{
    char path[PATH_MAX];
    if (fate_of(CUT, "posix_fallocate", fd, path) >= 0) return error_wanted;
    return syscall(SYS_fallocate, fd, 0, at, bytes) == 0 ? 0 : errno;
}

EXPORT int flock(int fd, int how)
{
    char path[PATH_MAX];
    return fate_of(LOCK, "flock", fd, path) >= 0 ? -1 : (int)syscall(SYS_flock, fd, how);
}

EXPORT int mkdir(const char *path, mode_t mode)
{
    return fate(MKDIR, "mkdir", path) >= 0 ? -1 : (int)syscall(SYS_mkdir, path, mode);
}

EXPORT int unlink(const char *path) { return fate(UNLINK, "unlink", path) >= 0 ? -1 : (int)syscall(SYS_unlink, path); }

EXPORT int unlinkat(int folder, const char *path, int flags)
{
    return fate(UNLINK, "unlinkat", path) >= 0 ? -1 : (int)syscall(SYS_unlinkat, folder, path, flags);
}

EXPORT int rmdir(const char *path) { return fate(UNLINK, "rmdir", path) >= 0 ? -1 : (int)syscall(SYS_rmdir, path); }

EXPORT int remove(const char *path)
{
    if (fate(UNLINK, "remove", path) >= 0) return -1;
    long rc = syscall(SYS_unlink, path);
    return (int)(rc != 0 && errno == EISDIR ? syscall(SYS_rmdir, path) : rc);
}

EXPORT ssize_t getdents64(int fd, void *list, size_t bytes)
{
    char path[PATH_MAX];
    return fate_of(LIST, "getdents64", fd, path) >= 0 ? -1 : syscall(SYS_getdents64, fd, list, bytes);
}

/* A folder as the C library reads it: each entry is a call here, and many of them one of the kernel's. */
EXPORT DIR *opendir(const char *path)
{
    if (fate(OPEN, "opendir", path) >= 0) return NULL;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopendir(fd);
}

EXPORT struct dirent *readdir(DIR *folder)
{
    char path[PATH_MAX];
    return fate_of(LIST, "readdir", dirfd(folder), path) >= 0 ? NULL : real_readdir(folder);
}

EXPORT int closedir(DIR *folder)
{
    char path[PATH_MAX];
    bool fails = fate_of(CLOSE, "closedir", dirfd(folder), path) >= 0;
    int error = errno, rc = real_closedir(folder);
    if (fails) errno = error;
    return fails ? -1 : rc;
}

EXPORT int stat(const char *restrict path, struct stat *restrict st)
{
    return fate(LOOK, "stat", path) >= 0 ? -1 : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

EXPORT int lstat(const char *restrict path, struct stat *restrict st)
{
    if (fate(LOOK, "lstat", path) >= 0) return -1;
    return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fstat(int fd, struct stat *st)
{
    char path[PATH_MAX];
    return fate_of(LOOK, "fstat", fd, path) >= 0 ? -1 : look_at(fd, st);
}

EXPORT int access(const char *path, int how)
{
    return fate(LOOK, "access", path) >= 0 ? -1 : (int)syscall(SYS_access, path, how);
}

EXPORT ssize_t readlink(const char *restrict path, char *restrict text, size_t bytes)
{
    return fate(LOOK, "readlink", path) >= 0 ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, text, bytes);
}
