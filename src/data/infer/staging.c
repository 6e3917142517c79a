#include "data/infer/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/hash.h"
#include "base/remove.h"
#include "base/size.h"
#include "base/units.h"

static const char magic[16] = PL_STAGING_MAGIC;

enum { ALIGN = 4096, LEAST_DESCRIPTOR = 3, KEY_BITS = 32, TELL_MS = 250 };

typedef struct head {
    char magic[sizeof magic];
    uint64_t key, files;
} head;

typedef struct entry {
    uint64_t is_staged, bytes;
    pl_npy_array array;
} entry;

static uint64_t entry_at(uint64_t n) { return sizeof(head) + n * sizeof(entry); }

/* ---- the file ---- */

/* A file without a name or, on a file system without such files, one that loses its name at once. */
static int create_nameless(const char *folder)
{
    char path[PL_FILE_PATH_MAX];
    int fd = pl_io_open(folder, O_TMPFILE | O_RDWR);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
    const int n = snprintf(path, sizeof path, "%s/plimsoll-%ld" PL_FILE_TEMPORARY, folder, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof path) return errno = ENAMETOOLONG, -1;
    fd = pl_io_open(path, O_CREAT | O_EXCL | O_RDWR);
    if (fd >= 0) (void)pl_remove_file(path, NULL);
    return fd;
}

pl_status pl_staging_create(const char *folder, bool is_memory, const char *what, int *fd, pl_error *err)
{
    *fd = 0;
    if (is_memory)
        return pl_fail(err, PL_E_STORAGE,
                       "%.300s: lies in memory (tmpfs), where %s would take it; name a folder on a disk "
                       "(`infer.scratch`)",
                       folder, what);
    const int made = create_nameless(folder);
    *fd = made >= 0 && made < LEAST_DESCRIPTOR ? fcntl(made, F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR) : made;
    const int why = errno;
    if (made >= 0 && *fd != made) close(made);
    if (*fd >= 0) return PL_OK;
    *fd = 0;
    return pl_fail(err, PL_E_STORAGE,
                   "%.300s: no file for %s can be made there: %s%s; name another folder (`infer.scratch`)", folder,
                   what, strerror(why), pl_io_hint(why));
}

/* ---- the child ---- */

typedef struct work {
    const pl_staging_wish *wish;
    pl_stager stager;   /* the child's */
    uint64_t at;        /* in the process that waits: the number of the file in work, */
    int64_t told_at_ms; /* and when that was last reported */
} work;

pl_status pl_stager_reserve(const pl_stager *s, const char *name, uint64_t bytes, pl_error *err)
{
    struct statvfs fs;
    char need[32], have[32];
    if (fstatvfs(s->fd, &fs) != 0 || bytes <= (uint64_t)fs.f_bavail * fs.f_frsize) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%.300s: its numbers take %s in %.300s, which has %s free; name another folder (`%s`)", name,
                   pl_format_bytes(bytes, need, sizeof need), s->folder,
                   pl_format_bytes((uint64_t)fs.f_bavail * fs.f_frsize, have, sizeof have), s->key);
}

/* Pages that wait for the disk are bounded, as a writer's are (base/file.h). */
static pl_status write_back(pl_stager *s, pl_error *err)
{
    if (s->at - s->flushed < PL_FILE_WINDOW_BYTES) return PL_OK;
    int error = pl_file_start_write_back(s->fd, s->flushed, s->at - s->flushed);
    if (!error) error = pl_file_drop(s->fd, s->flushed, s->at - s->flushed);
    s->flushed = s->at;
    return error ? pl_fail(err, PL_E_STORAGE, "%.300s: what was read of pictures and HDF5 cannot be written: %s%s",
                           s->folder, strerror(error), pl_io_hint(error))
                 : PL_OK;
}

pl_status pl_stager_put(pl_stager *s, const void *numbers, uint64_t bytes, pl_error *err)
{
    PL_TRY(pl_file_put(s->fd, s->folder, s->at, numbers, (size_t)bytes, err));
    s->at += bytes;
    return write_back(s, err);
}

static pl_status stage_one(pl_stager *s, uint64_t n, const pl_staged *f, pl_error *err)
{
    entry e = {0};
    pl_rows r;
    PL_TRY(pl_rows_find(f->name, f->port, &r, err));
    if (r.kind->stage) {
        const uint64_t begin = pl_align_up(s->at, ALIGN);
        s->at = begin;
        s->array = (pl_npy_array){0};
        PL_TRY(r.kind->stage(s, &r, err));
        e = (entry){.is_staged = true, .bytes = r.bytes, .array = s->array};
        e.array.at = begin;
    }
    return pl_file_put(s->fd, s->folder, entry_at(n), &e, sizeof e, err);
}

static pl_status stage_all(void *context, int channel, pl_error *err)
{
    work *w = context;
    for (uint64_t n = 0; n < w->wish->files; n++) {
        if (!pl_child_tell(channel, &n, sizeof n)) return pl_fail(err, PL_E_STOPPED, "nobody waits for the files");
        PL_TRY(stage_one(&w->stager, n, &w->wish->file[n], err));
    }
    return PL_OK;
}

/* ---- the process that waits ---- */

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static pl_status hear(void *context, const void *note, pl_error *err)
{
    work *w = context;
    const pl_staging_told *told = w->wish->told;
    const int64_t now = now_ms();
    memcpy(&w->at, note, sizeof w->at);
    if (!told || !told->tell || now - w->told_at_ms < TELL_MS) return PL_OK;
    w->told_at_ms = now;
    if (told->tell(told->context, w->at, w->wish->files)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped at file %llu of %llu that are read before planning",
                   (unsigned long long)w->at + 1, (unsigned long long)w->wish->files);
}

static pl_status name_death(const work *w, int number, pl_error *err)
{
    const char *name = w->wish->file[w->at].name;
    if (pl_child_crashed(number))
        return pl_fail(
            err, PL_E_DATA,
            "%.300s: the process that read it was ended by signal %d, a crash of the library: perhaps it got "
            "no memory, or the file is damaged; begin again with more memory, or fetch the file anew",
            name, number);
    return pl_fail(err, PL_E_NOMEM,
                   "%.300s: the process that read it was ended (signal %d), by somebody or for want of memory; begin "
                   "again with more of it",
                   name, number);
}

/* A hash of the user's names, which tells this file from others with its descriptor number. */
static uint64_t key_of(const pl_staging_wish *w)
{
    uint64_t key = 0;
    for (uint64_t n = 0; n < w->files; n++) key = XXH64(w->file[n].name, strlen(w->file[n].name), key);
    return key >> KEY_BITS;
}

pl_status pl_staging_fill(const pl_staging_wish *w, int fd, uint64_t *file_bytes, pl_error *err)
{
    const pl_stager stager = {.fd = fd, .at = entry_at(w->files), .folder = w->folder, .key = w->key};
    work all = {.wish = w, .stager = stager, .told_at_ms = now_ms()};
    head h = {.key = key_of(w), .files = w->files};
    int number;
    memcpy(h.magic, magic, sizeof magic);
    PL_TRY(pl_file_put(fd, w->folder, 0, &h, sizeof h, err));
    const pl_status status = pl_child_run(&(pl_child_work){stage_all, hear, &all}, &number, err);
    if (number) return name_death(&all, number, err);
    const off_t end = lseek(fd, 0, SEEK_END);
    *file_bytes = end > 0 ? (uint64_t)end : 0;
    return status;
}

static pl_status has_any(const pl_staging_wish *w, bool *any, pl_error *err)
{
    pl_rows r;
    *any = false;
    for (uint64_t n = 0; n < w->files && !*any; n++) {
        PL_TRY(pl_rows_find(w->file[n].name, w->file[n].port, &r, err));
        *any = r.kind->stage != NULL;
    }
    return PL_OK;
}

pl_status pl_staging_make(const pl_staging_wish *w, int *fd, uint64_t *fact, uint64_t *file_bytes, pl_error *err)
{
    const uint64_t key = key_of(w);
    bool any;
    *fact = 0;
    PL_TRY(has_any(w, &any, err));
    if (!any) return PL_OK;
    if (w->told && w->told->before) PL_TRY(w->told->before(w->told->context, err));
    PL_TRY(pl_staging_create(w->folder, w->is_memory, "what is read of pictures and HDF5", fd, err));
    pl_status status = pl_staging_fill(w, *fd, file_bytes, err);
    if (status != PL_OK) return close(*fd), *fd = 0, status;
    *fact = key << KEY_BITS | (uint64_t)*fd;
    return PL_OK;
}

pl_status pl_staging_open(uint64_t fact, uint64_t files, int *fd, pl_error *err)
{
    head h = {.files = 0};
    *fd = fcntl((int)(fact & INT32_MAX), F_DUPFD_CLOEXEC, LEAST_DESCRIPTOR);
    const bool is_read = *fd >= 0 && pread(*fd, &h, sizeof h, 0) == (ssize_t)sizeof h;
    if (is_read && memcmp(h.magic, magic, sizeof magic) == 0 && h.key == fact >> KEY_BITS && h.files == files)
        return PL_OK;
    if (*fd >= 0) close(*fd);
    *fd = 0;
    return pl_fail(err, PL_E_DATA,
                   "what was made ready of pictures and HDF5 for this plan is gone with the process that planned; plan "
                   "again where it runs");
}

pl_status pl_staging_entry(int fd, uint64_t n, pl_staged *f, pl_error *err)
{
    entry e;
    PL_TRY(pl_file_read_at(fd, "the file of what was made ready", entry_at(n), &e, sizeof e, err));
    f->is_staged = e.is_staged, f->bytes = e.bytes, f->array = e.array;
    return PL_OK;
}
