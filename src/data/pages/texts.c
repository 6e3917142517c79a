#include "data/pages/texts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/pages/grammar.h"
#include "data/pages/texts_index.h"

/* ---- opening ---- */

static pl_status refuse_changed(const char *path, uint64_t now, uint64_t then, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s: was changed since its index was made (it has %" PRIu64 " bytes, the index says %" PRIu64
                   "); put it back as it was, or begin anew with the texts as they are",
                   path, now, then);
}

/* While texts are read, only size and time of the contents count: linking or moving a file changes nothing. */
static pl_status check_unchanged(int fd, const char *path, uint64_t bytes, int64_t mtime_ns, pl_error *err)
{
    pl_origin now;
    PL_TRY(pl_origin_look(fd, path, &now, err));
    return now.bytes == bytes && now.mtime_ns == mtime_ns ? PL_OK : refuse_changed(path, now.bytes, bytes, err);
}

pl_status pl_texts_check(const pl_texts *t, pl_error *err)
{
    if (t->fd < 0 || t->form == PL_TEXTS_FOLDER) return PL_OK;
    return check_unchanged(t->fd, t->path, t->info.source.bytes, t->info.source.mtime_ns, err);
}

static pl_status copy_path(char to[PL_FILE_PATH_MAX], const char *path, pl_error *err)
{
    if (strlen(path) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    strcpy(to, path);
    return PL_OK;
}

/* The source may have moved since its index was made. */
static pl_status find_source(pl_texts *t, pl_error *err)
{
    pl_origin now;
    bool same;
    PL_TRY(pl_origin_look(t->fd, t->path, &now, err));
    PL_TRY(pl_origin_match(t->fd, t->path, &now, &t->info.source, &same, err));
    if (!same) return refuse_changed(t->path, now.bytes, t->info.source.bytes, err);
    t->info.source = now;
    return PL_OK;
}

/* Checks that gathered texts are whole: read once, then known by size and time like other files. */
static pl_status open_gathered(pl_texts *t, pl_error *err)
{
    uint64_t bytes, hash;
    pl_origin now;
    PL_TRY(pl_texts_gathered_path(t->path, t->index_path, err));
    PL_TRY(pl_file_open(t->path, &t->fd, &bytes, err));
    PL_TRY(pl_origin_look(t->fd, t->path, &now, err));
    PL_TRY(pl_origin_hash(t->fd, t->path, 0, bytes, &hash, err));
    if (bytes != t->info.gathered_bytes || hash != t->info.listing)
        return pl_fail(err, PL_E_DATA, "%s: is damaged (checksum); delete it, it is made again from the texts",
                       t->path);
    posix_fadvise(t->fd, 0, 0, POSIX_FADV_RANDOM);
    t->info.source.bytes = now.bytes, t->info.source.mtime_ns = now.mtime_ns;
    return PL_OK;
}

static pl_status open_source(pl_texts *t, const pl_texts_setup *s, pl_error *err)
{
    pl_texts_form form;
    uint64_t bytes;
    PL_TRY(pl_texts_open_index(t->index_path, &t->index_fd, &form, &t->info, err));
    if ((form != t->form && form != PL_TEXTS_GATHERED) || t->info.recipe != pl_texts_recipe(s))
        return pl_fail(err, PL_E_DATA, "%s: is an index of texts of another form, key or column; make it again",
                       t->index_path);
    posix_fadvise(t->index_fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead, which would be megabytes on some disks */
    t->form = form;
    if (t->form == PL_TEXTS_FOLDER) return PL_OK;
    if (t->form == PL_TEXTS_GATHERED) return open_gathered(t, err);
    PL_TRY(pl_file_open(t->path, &t->fd, &bytes, err));
    posix_fadvise(t->fd, 0, 0, POSIX_FADV_RANDOM);
    return find_source(t, err);
}

pl_status pl_texts_open(pl_texts *t, const pl_texts_setup *s, const char *index_path, pl_error *err)
{
    t->fd = t->index_fd = -1;
    t->form = s->form, t->seed = s->seed, t->count = t->wanted = s->count;
    t->path[0] = t->index_path[0] = 0;
    atomic_init(&t->window, 0), atomic_init(&t->index_window, 0);
    t->info = (pl_texts_info){.count = s->count, .recipe = pl_texts_recipe(s), .source = {.content = s->seed}};
    if (s->form == PL_TEXTS_GRAMMAR) return PL_OK;
    PL_TRY(copy_path(t->path, s->path, err));
    PL_TRY(copy_path(t->index_path, index_path, err));
    const pl_status status = open_source(t, s, err);
    if (status != PL_OK) pl_texts_close(t);
    if (t->count == 0 || t->count > t->info.count) t->count = t->info.count;
    return status;
}

void pl_texts_close(pl_texts *t)
{
    if (t->fd >= 0) close(t->fd);
    if (t->index_fd >= 0) close(t->index_fd);
    t->fd = t->index_fd = -1;
}

uint64_t pl_texts_identity(const pl_texts *t)
{
    const uint64_t all[] = {t->info.recipe, t->info.source.content};
    return XXH64(all, sizeof all, 0);
}

/* ---- reading ---- */

/* Texts are read more or less in order. Entering another window drops everything before the previous one; being one
 * window behind the other threads, as happens at an edge, is not a move. */
static bool moves(_Atomic uint64_t *window, int fd, uint64_t at)
{
    const uint64_t here = at / PL_TEXTS_WINDOW_BYTES, there = atomic_load_explicit(window, memory_order_relaxed);
    if (here == there || here + 1 == there) return false;
    atomic_store_explicit(window, here, memory_order_relaxed);
    if (here > 1) posix_fadvise(fd, 0, (off_t)((here - 1) * PL_TEXTS_WINDOW_BYTES), POSIX_FADV_DONTNEED);
    return true;
}

static size_t least(uint64_t bytes, size_t room) { return bytes < room ? (size_t)bytes : room; }

/* Reads escaped text in pieces, as far as there is room for it. */
static pl_status decode(const pl_texts *t, const pl_text_place *p, pl_unescape *u, pl_error *err)
{
    uint8_t piece[4096];
    for (uint64_t at = 0; at < p->bytes && u->whole;) {
        const size_t n = least(p->bytes - at, sizeof piece);
        PL_TRY(pl_file_read_at(t->fd, t->path, p->offset + at, piece, n, err));
        (void)pl_unescape_feed(u, piece, n);
        at += n;
    }
    pl_unescape_end(u);
    return PL_OK;
}

static pl_status read_file(pl_texts *t, const pl_text_place *p, void *buffer, size_t room, size_t *bytes, bool *whole,
                           pl_error *err)
{
    if (moves(&t->window, t->fd, p->offset))
        PL_TRY(check_unchanged(t->fd, t->path, t->info.source.bytes, t->info.source.mtime_ns, err));
    if (p->encoding == PL_TEXT_RAW) {
        *bytes = least(p->bytes, room), *whole = *bytes == p->bytes;
        return pl_file_read_at(t->fd, t->path, p->offset, buffer, *bytes, err);
    }
    pl_unescape u = pl_unescape_begin(p->encoding, buffer, room);
    u.marks_broken = true;
    PL_TRY(decode(t, p, &u, err));
    *bytes = u.bytes, *whole = u.whole;
    return PL_OK;
}

static pl_status read_in_folder(const pl_texts *t, const pl_text_place *p, void *buffer, size_t room, size_t *bytes,
                                bool *whole, pl_error *err)
{
    char name[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    int64_t mtime_ns;
    uint64_t size;
    int fd;
    PL_TRY(pl_texts_read_file(t->index_fd, t->index_path, &t->info, p->offset, name, &mtime_ns, err));
    PL_TRY(pl_path_join(path, sizeof path, t->path, name, err));
    PL_TRY(pl_file_open(path, &fd, &size, err));
    pl_status status = check_unchanged(fd, path, p->bytes, mtime_ns, err);
    *bytes = least(p->bytes, room), *whole = *bytes == p->bytes;
    if (status == PL_OK) status = pl_file_read_at(fd, path, 0, buffer, *bytes, err);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return status;
}

static void make(const pl_texts *t, uint64_t number, void *buffer, size_t room, size_t *bytes, bool *whole)
{
    char text[PL_GRAMMAR_TEXT_BYTES];
    const size_t n = pl_grammar_text(t->seed, number, text);
    *bytes = least(n, room), *whole = *bytes == n;
    memcpy(buffer, text, *bytes);
}

pl_status pl_texts_read(pl_texts *t, uint64_t number, void *buffer, size_t room, size_t *bytes, bool *whole,
                        pl_error *err)
{
    pl_text_place place;
    if (number >= t->count)
        return pl_fail(err, PL_E_INTERNAL, "text %" PRIu64 " was asked for; there are %" PRIu64, number, t->count);
    if (t->form == PL_TEXTS_GRAMMAR) {
        make(t, number, buffer, room, bytes, whole);
        return PL_OK;
    }
    (void)moves(&t->index_window, t->index_fd, pl_texts_entries_at(&t->info) + number * PL_TEXTS_ENTRY_BYTES);
    PL_TRY(pl_texts_read_place(t->index_fd, t->index_path, &t->info, t->form, number, &place, err));
    if (t->form == PL_TEXTS_FOLDER) return read_in_folder(t, &place, buffer, room, bytes, whole, err);
    return read_file(t, &place, buffer, room, bytes, whole, err);
}
