#include "data/pages/page_features.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/units.h"

enum { PAGE_BYTES = 4096, HEADER_BYTES = 64, ZEROS = 512 };

static const char magic[8] = {'P', 'L', 'F', 'E', 'A', 'T', '0', '1'};

typedef struct header {
    char magic[8];
    uint64_t key, places, place_bytes, sum; /* of what comes before it */
    uint64_t unused[3];
} header;
_Static_assert(sizeof(header) == HEADER_BYTES, "a header");

static uint64_t sum_of(const void *data, size_t bytes, uint64_t seed)
{
    const uint64_t sum = XXH64(data, bytes, seed);
    return sum ? sum : 1;
}

/* ---- where things lie ---- */

static uint64_t table_at(uint64_t item) { return HEADER_BYTES + item * sizeof(uint64_t); }
static uint64_t places_at(const pl_page_features *f) { return pl_align_up(table_at(f->places), PAGE_BYTES); }
static uint64_t place_at(const pl_page_features *f, uint64_t item) { return places_at(f) + item * f->place_bytes; }
uint64_t pl_page_features_file_bytes(const pl_page_features *f) { return f->places ? place_at(f, f->places) : 0; }

/* So many and no more fit, of at most so many. */
static uint64_t most_places(const pl_page_features *f, uint64_t items, uint64_t most)
{
    pl_page_features tried = {.places = 1, .place_bytes = f->place_bytes};
    uint64_t fit = 1, beyond = (items < most / f->place_bytes ? items : most / f->place_bytes) + 1;
    while (beyond - fit > 1) {
        tried.places = fit + (beyond - fit) / 2;
        *(pl_page_features_file_bytes(&tried) <= most ? &fit : &beyond) = tried.places;
    }
    return fit;
}

pl_status pl_page_features_init(pl_page_features *f, const char *path, uint64_t items, uint64_t place_bytes,
                                uint64_t most, pl_error *err)
{
    char limit[32], needed[32];
    const uint64_t least = PAGE_BYTES + place_bytes;
    *f = (pl_page_features){.fd = -1, .place_bytes = place_bytes};
    if (place_bytes > UINT64_MAX / 4 || most < least)
        return pl_fail(
            err, PL_E_CONFIG,
            "vision_encoder.features_cache %s is too small for the features of one page, which take %s; allow more",
            pl_format_bytes(most, limit, sizeof limit), pl_format_bytes(least, needed, sizeof needed));
    f->places = most_places(f, items, most);
    f->path = pl_strdup(path);
    f->sum = pl_alloc(f->places, sizeof *f->sum);
    if (f->path && f->sum) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory for the table of %" PRIu64 " features", f->places);
}

void pl_page_features_deinit(pl_page_features *f)
{
    if (f->path && f->fd >= 0) (void)pl_io_close(f->fd);
    pl_free(f->path);
    pl_free((void *)f->sum);
    *f = (pl_page_features){.fd = -1};
}

/* ---- opening ---- */

static pl_status fail_file(const pl_page_features *f, const char *what, int error, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE, "%s: the features cannot be %s: %s%s", f->path, what, strerror(error),
                   pl_io_hint(error));
}

static pl_status lock(pl_page_features *f, pl_error *err)
{
    f->fd = pl_io_open(f->path, O_RDWR | O_CREAT);
    if (f->fd < 0) return fail_file(f, "opened", errno, err);
    if (pl_io_lock(f->fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return PL_OK; /* or it has no locks */
    return pl_fail(err, PL_E_STORAGE,
                   "%s: another process works with these features; wait for its end, or give this "
                   "run a folder of its own",
                   f->path);
}

static header header_of(const pl_page_features *f, uint64_t key)
{
    header h = {.key = key, .places = f->places, .place_bytes = f->place_bytes};
    memcpy(h.magic, magic, sizeof magic);
    h.sum = sum_of(&h, offsetof(header, sum), 0);
    return h;
}

/* Anew: the table is emptied before the header says what it is of. */
static pl_status begin_anew(pl_page_features *f, const header *h, pl_error *err)
{
    static const uint64_t zeros[ZEROS];
    for (uint64_t i = 0; i < f->places; i += ZEROS) {
        const uint64_t count = f->places - i < ZEROS ? f->places - i : ZEROS;
        PL_TRY(pl_file_put(f->fd, f->path, table_at(i), zeros, count * sizeof *zeros, err));
    }
    for (uint64_t i = 0; i < f->places; i++) f->sum[i] = 0;
    return pl_file_put(f->fd, f->path, 0, h, sizeof *h, err);
}

static pl_status read_table(pl_page_features *f, pl_error *err)
{
    uint64_t piece[ZEROS];
    for (uint64_t i = 0; i < f->places; i += ZEROS) {
        const uint64_t count = f->places - i < ZEROS ? f->places - i : ZEROS;
        PL_TRY(pl_file_read_at(f->fd, f->path, table_at(i), piece, count * sizeof *piece, err));
        for (uint64_t k = 0; k < count; k++) f->sum[i + k] = piece[k];
    }
    return PL_OK;
}

static pl_status reserve(pl_page_features *f, pl_error *err)
{
    int error;
    const uint64_t bytes = pl_page_features_file_bytes(f);
    if (pl_io_truncate(f->fd, bytes) != 0) return fail_file(f, "given their length", errno, err);
    do error = pl_io_inject(PL_IO_WRITE) ? errno : posix_fallocate(f->fd, 0, (off_t)bytes);
    while (error == EINTR);
    return error && error != EOPNOTSUPP && error != EINVAL ? fail_file(f, "given room", error, err) : PL_OK;
}

pl_status pl_page_features_open(pl_page_features *f, uint64_t key, pl_error *err)
{
    struct stat st;
    header was = {.key = 0};
    const header wanted = header_of(f, key);
    f->seed = wanted.sum;
    PL_TRY(lock(f, err));
    if (fstat(f->fd, &st) != 0) return fail_file(f, "looked at", errno, err);
    if (st.st_size >= HEADER_BYTES) PL_TRY(pl_file_read_at(f->fd, f->path, 0, &was, sizeof was, err));
    const bool is_ours = memcmp(was.magic, magic, sizeof magic) == 0;
    if (st.st_size > 0 && !is_ours && (st.st_size < HEADER_BYTES || was.magic[0]))
        return pl_fail(err, PL_E_USAGE, "%s: is no file of features; move it away", f->path);
    PL_TRY(reserve(f, err));
    if ((uint64_t)st.st_size == pl_page_features_file_bytes(f) && memcmp(&was, &wanted, sizeof was) == 0)
        return read_table(f, err);
    if (is_ours)
        snprintf(f->said, sizeof f->said,
                 "%.250s: holds features of another tower or of other pages, or is damaged; "
                 "they are made anew",
                 f->path);
    return begin_anew(f, &wanted, err);
}

/* ---- reading and writing ---- */

/* Nothing of it stays in the page cache. What cannot be written is heard of when it is read. */
static void count_moved(pl_page_features *f, uint64_t bytes)
{
    if (atomic_fetch_add(&f->moved, bytes) + bytes < PL_FILE_WINDOW_BYTES) return;
    atomic_store(&f->moved, 0);
    const uint64_t all = pl_page_features_file_bytes(f);
    if (pl_file_start_write_back(f->fd, 0, all) == 0) (void)pl_file_drop(f->fd, 0, all);
}

bool pl_page_features_has(const pl_page_features *f, uint64_t item)
{
    return f->fd >= 0 && item < f->places && !f->failed && f->sum[item] != 0;
}

static void give_up(pl_page_features *f, int error)
{
    int none = 0;
    (void)atomic_compare_exchange_strong(&f->failed, &none, error ? error : EIO);
}

/* In the file, too: the next run is not to find it once more. */
static void forget(pl_page_features *f, uint64_t item, uint64_t sum)
{
    static const uint64_t nothing = 0;
    pl_error ignored;
    if (!atomic_compare_exchange_strong(&f->sum[item], &sum, 0)) return;
    atomic_fetch_add(&f->damaged, 1);
    (void)pl_file_put(f->fd, f->path, table_at(item), &nothing, sizeof nothing, &ignored);
}

bool pl_page_features_read(pl_page_features *f, uint64_t item, void *to)
{
    pl_error ignored;
    if (!pl_page_features_has(f, item)) return false;
    uint64_t sum = f->sum[item];
    if (pl_file_read_at(f->fd, f->path, place_at(f, item), to, f->place_bytes, &ignored) != PL_OK)
        return give_up(f, errno), false;
    count_moved(f, f->place_bytes);
    if (sum_of(to, f->place_bytes, f->seed + item) == sum) return true;
    forget(f, item, sum);
    return false;
}

void pl_page_features_write(pl_page_features *f, uint64_t item, const void *from)
{
    pl_error ignored;
    if (f->fd < 0 || item >= f->places || f->failed) return;
    const uint64_t sum = sum_of(from, f->place_bytes, f->seed + item);
    if (pl_file_put(f->fd, f->path, place_at(f, item), from, f->place_bytes, &ignored) != PL_OK ||
        pl_file_put(f->fd, f->path, table_at(item), &sum, sizeof sum, &ignored) != PL_OK) {
        give_up(f, errno);
        return;
    }
    f->sum[item] = sum;
    count_moved(f, f->place_bytes);
}

bool pl_page_features_tell(pl_page_features *f, char *text, size_t room)
{
    const uint32_t damaged = atomic_exchange(&f->damaged, 0);
    if (f->said[0]) {
        snprintf(text, room, "%s", f->said);
        f->said[0] = 0;
        return true;
    }
    if (f->failed && !f->told) {
        snprintf(text, room, "%.300s: the features can no longer be read or written: %s%s; the run goes on without",
                 f->path, strerror(f->failed), pl_io_hint(f->failed));
        f->told = true;
        return true;
    }
    if (damaged == 0) return false;
    snprintf(text, room,
             "%.300s: the features of %" PRIu32 " page%s are no longer as they were written, and are made again",
             f->path, damaged, pl_plural(damaged));
    return true;
}
