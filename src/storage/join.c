/* Parts in temp/ become one file in datasets/: joined under a temporary name, block by block against their checksums;
 * read back and compared; renamed; and only then does a part go, when every byte of it was found in the whole. So a
 * kill leaves all parts, or the whole and some of them, and the next clean goes on from there: joining with what is
 * there of the whole, removing with what is left of the parts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "storage/storage.h"
#include "store/block_file.h"
#include "store/block_index.h"
#include "store/folder.h"

enum { PIECE_BYTES = 1 << 20 };

/* ---- comparing ---- */

static pl_status differs(const char *part, const char *whole, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: is not in %s: %s; nothing of it was removed", part, whole, what);
}

static pl_status check_like(const char *part, const char *whole, const pl_block_reader *p, const pl_block_reader *w,
                            pl_error *err)
{
    const pl_block_layout *a = pl_block_reader_layout(p), *b = pl_block_reader_layout(w);
    if (pl_block_reader_done(w) != pl_block_count(b)) return differs(part, whole, "that is not finished", err);
    if (pl_block_reader_done(p) != pl_block_count(a)) return differs(part, whole, "the part is not finished", err);
    if (!a->whole || b->whole || a->whole != b->kind[0].axis[0].extent || a->datasets != b->datasets)
        return differs(part, whole, "that is not all of its job", err);
    if (strcmp(a->text, b->text) != 0) return differs(part, whole, "another configuration made that", err);
    return PL_OK;
}

static pl_status compare_dataset(const char *part, const char *whole, const pl_block_reader *p,
                                 const pl_block_reader *w, uint32_t i, char *buffer, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(p);
    const pl_block_dataset *d = &l->dataset[i], *in = &pl_block_reader_layout(w)->dataset[i];
    const uint64_t bytes = pl_block_dataset_bytes(d), extent = l->kind[0].axis[0].extent;
    const bool is_split = d->kind != PL_BLOCK_NO_KIND;
    const uint64_t from = is_split ? bytes / extent * l->first : 0;
    if (strcmp(d->name, in->name) != 0 || from + bytes > pl_block_dataset_bytes(in))
        return differs(part, whole, d->name, err);
    for (uint64_t at = 0; at < bytes; at += PIECE_BYTES) {
        const uint64_t n = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        PL_TRY(pl_block_reader_read(p, i, at, buffer, n, err));
        PL_TRY(pl_block_reader_read(w, i, from + at, buffer + PIECE_BYTES, n, err));
        if (memcmp(buffer, buffer + PIECE_BYTES, n) != 0) return differs(part, whole, d->name, err);
    }
    return PL_OK;
}

static pl_status compare_all(const char *whole, const char *part, const pl_block_reader *w, const pl_block_reader *p,
                             pl_error *err)
{
    pl_status status = check_like(part, whole, p, w, err);
    char *buffer = status == PL_OK ? pl_alloc(2, PIECE_BYTES) : NULL;
    if (status == PL_OK && !buffer) status = pl_fail(err, PL_E_NOMEM, "%s: no memory to compare it", part);
    for (uint32_t i = 0; status == PL_OK && i < pl_block_reader_layout(p)->datasets; i++)
        status = compare_dataset(part, whole, p, w, i, buffer, err);
    pl_free(buffer);
    return status;
}

pl_status pl_storage_compare(const char *whole, const char *part, pl_block_reader **held, pl_error *err)
{
    pl_block_reader *w = NULL;
    *held = NULL;
    pl_status status = pl_block_reader_open(whole, false, &w, err);
    if (status == PL_OK) status = pl_block_reader_open(part, true, held, err); /* and locks it */
    if (status == PL_OK) status = pl_storage_check_regular(*held, part, err);
    if (status == PL_OK) status = pl_storage_check_regular(w, whole, err);
    if (status == PL_OK) status = pl_storage_check_apart(*held, part, w, whole, err);
    if (status == PL_OK) status = compare_all(whole, part, w, *held, err);
    pl_block_reader_close(w);
    if (status == PL_OK) return PL_OK;
    pl_block_reader_close(*held);
    *held = NULL;
    return status;
}

/* ---- joining ---- */

typedef struct part_list {
    const char **path;
    size_t count;
} part_list;

static pl_status list_parts(const pl_storage *s, size_t set, part_list *l, pl_error *err)
{
    char full[PL_FILE_PATH_MAX];
    l->path = pl_alloc(s->entries, sizeof *l->path);
    if (!l->path) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of its parts", s->root);
    for (size_t i = 0; i < s->entries; i++) {
        if (s->entry[i].set != set) continue;
        PL_TRY(pl_storage_path(s, s->entry[i].item.path, full, err));
        PL_TRY(pl_storage_text(s, &l->path[l->count], err, "%s", full));
        l->count++;
    }
    return PL_OK;
}

static pl_status verify(const char *path, pl_error *err)
{
    pl_block_reader *r;
    pl_block_checked c = {0};
    PL_TRY(pl_block_reader_open(path, false, &r, err));
    pl_status status = pl_block_reader_check(r, NULL, NULL, &c, err);
    const uint64_t blocks = pl_block_count(pl_block_reader_layout(r)), done = pl_block_reader_done(r);
    if (status == PL_OK && (done != blocks || c.damaged || c.constants_damaged || pl_block_reader_bad_marks(r)))
        status = pl_fail(err, PL_E_DATA,
                         "%s: reads back with %" PRIu64 " of %" PRIu64 " blocks, %" PRIu64
                         " of them damaged; nothing was removed: remove it, and join again",
                         path, done, blocks, c.damaged);
    pl_block_reader_close(r);
    return status;
}

/* Every folder that was made on the way is on the disk, too. */
static pl_status sync_folders(const pl_storage *s, const char *target, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    for (size_t n = strlen(target); n-- > 0;) {
        if (target[n] != '/') continue;
        const char name[2] = {0};
        PL_TRY(pl_storage_path(s, name, folder, err));
        const size_t root = strlen(folder);
        if (root + n + 2 > sizeof folder) return pl_fail(err, PL_E_USAGE, "%s: the path below it is too long", s->root);
        snprintf(folder + root, sizeof folder - root, "/%.*s", (int)n, target);
        PL_TRY(pl_folder_sync(folder, err));
    }
    return pl_folder_sync(s->root, err);
}

static pl_status make(const pl_storage *s, const char *target, const char *full, const part_list *parts, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX];
    pl_file_temporary(full, "", temporary);
    if (strlen(temporary) + sizeof PL_FILE_TEMPORARY >= PL_FILE_PATH_MAX)
        return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", full);
    PL_TRY(pl_block_join(temporary, parts->path, parts->count, false, err));
    PL_TRY(verify(temporary, err));
    PL_TRY(pl_block_give_name(temporary, full, err));
    return sync_folders(s, target, err);
}

static pl_status check_part(const char *path, pl_error *err)
{
    pl_block_reader *r;
    PL_TRY(pl_block_reader_open(path, false, &r, err));
    pl_status status = pl_storage_check_regular(r, path, err);
    if (status == PL_OK) status = pl_storage_check_alone(r, path, err);
    pl_block_reader_close(r);
    return status;
}

/* Somebody copied it there, or a clean was killed: it is brought to the disk before a part goes. */
static pl_status take_whole(const pl_storage *s, const char *target, const char *full, pl_error *err)
{
    pl_block_reader *r;
    PL_TRY(pl_block_reader_open(full, false, &r, err));
    pl_status status = pl_storage_check_regular(r, full, err);
    if (status == PL_OK) status = pl_storage_sync_own(r, full, err);
    pl_block_reader_close(r);
    return status == PL_OK ? sync_folders(s, target, err) : status;
}

pl_status pl_storage_join(const pl_storage *s, size_t set, const pl_storage_ears *ears, pl_error *err)
{
    char full[PL_FILE_PATH_MAX];
    part_list parts = {0};
    struct stat st;
    const char *target = s->set[set].target;
    PL_TRY(pl_storage_path(s, target, full, err));
    pl_status status = list_parts(s, set, &parts, err);
    for (size_t i = 0; i < parts.count && status == PL_OK; i++) status = check_part(parts.path[i], err);
    if (status == PL_OK && lstat(full, &st) == 0)
        status = take_whole(s, target, full, err);
    else if (status == PL_OK) {
        if (errno == ENOENT)
            status = make(s, target, full, &parts, err);
        else
            status = pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", full, strerror(errno));
    }
    if (status == PL_OK && ears->joined) status = ears->joined(full, parts.path[0], err);
    pl_free(parts.path);
    return status;
}
