#include "base/origin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"

enum { PART_BYTES = 16 * 1024, WINDOW_BYTES = 1 << 18 };

static int64_t ns_of(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

pl_status pl_origin_look(int fd, const char *path, pl_origin *o, pl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    *o = (pl_origin){.bytes = (uint64_t)st.st_size,
                     .inode = (uint64_t)st.st_ino,
                     .mtime_ns = ns_of(st.st_mtim),
                     .ctime_ns = ns_of(st.st_ctim)};
    return PL_OK;
}

bool pl_origin_is_untouched(const pl_origin *now, const pl_origin *then)
{
    return now->bytes == then->bytes && now->inode == then->inode && now->mtime_ns == then->mtime_ns &&
           now->ctime_ns == then->ctime_ns;
}

pl_status pl_origin_hash(int fd, const char *path, uint64_t from, uint64_t bytes, uint64_t *content, pl_error *err)
{
    uint8_t part[PART_BYTES];
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint64_t at = from; at < bytes;) {
        const size_t some = bytes - at < sizeof part ? (size_t)(bytes - at) : sizeof part;
        PL_TRY(pl_file_read_at(fd, path, at, part, some, err));
        XXH64_update(&state, part, some);
        at += some;
        if (at % WINDOW_BYTES < sizeof part) posix_fadvise(fd, 0, (off_t)at, POSIX_FADV_DONTNEED);
    }
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    *content = XXH64_digest(&state);
    return PL_OK;
}

pl_status pl_origin_match(int fd, const char *path, pl_origin *now, const pl_origin *then, bool *same, pl_error *err)
{
    *same = pl_origin_is_untouched(now, then);
    if (*same) now->content = then->content;
    if (*same || now->bytes != then->bytes) return PL_OK;
    PL_TRY(pl_origin_hash(fd, path, 0, now->bytes, &now->content, err));
    *same = now->content == then->content;
    return PL_OK;
}

/* In its place: what is torn has no checksum, and is made again then. */
void pl_origin_note(const char *path, uint64_t at, size_t bytes, size_t content_at,
                    void (*put)(uint8_t *to, const pl_origin *), const pl_origin *o)
{
    uint8_t part[PL_ORIGIN_NOTE_BYTES];
    pl_error ignored;
    const int fd = pl_io_open(path, O_RDWR);
    if (fd < 0) return;
    if (pl_file_read_at(fd, path, at, part, bytes, &ignored) == PL_OK && pl_get_u64(part, content_at) == o->content) {
        put(part, o);
        (void)pl_file_put(fd, path, at, part, bytes, &ignored);
    }
    close(fd);
}
