/* Joining without a second copy: bytes that are on the disk in their new place are given back in the parts, as holes of
 * their files. A part's block that is not wholly copied stays whole, so that it can be compared with its checksum again
 * after a kill. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/remove.h"
#include "base/size.h"
#include "base/units.h"
#include "store/block_join.h"
#include "store/folder.h"

enum { SLACK_BYTES = 4 << 20 };

/* ---- room ---- */

static int stat_folder_of(const char *path, struct stat *st)
{
    char folder[PL_FILE_PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    const size_t bytes = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    if (slash && bytes < sizeof folder) memcpy(folder, path, bytes), folder[bytes] = 0;
    return stat(folder, st);
}

pl_status pl_block_join_check_room(const pl_joining *j, uint64_t index_bytes, uint64_t copied_bytes,
                                   uint64_t block_bytes, pl_error *err)
{
    const uint64_t needed = index_bytes + copied_bytes + 2 * block_bytes + SLACK_BYTES;
    struct stat to, from;
    uint64_t available;
    char need[32], have[32];
    if (stat_folder_of(j->path, &to) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: its folder cannot be examined: %s", j->path, strerror(errno));
    for (size_t k = 0; k < j->count; k++)
        if (stat(j->part[k].path, &from) != 0 || from.st_dev != to.st_dev)
            return pl_fail(err, PL_E_USAGE,
                           "%s: lies on another disk than %s, so what is moved from it gives no room there; join "
                           "without `move`",
                           j->part[k].path, j->path);
    PL_TRY(pl_disk_free(j->path, &available, err));
    if (available >= needed) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: moving needs %s (%" PRIu64 " bytes) of disk beside the parts, but %s (%" PRIu64
                   " bytes) are free there; free space",
                   j->path, pl_format_bytes(needed, need, sizeof need), needed,
                   pl_format_bytes(available, have, sizeof have), available);
}

/* ---- freeing ---- */

static pl_status punch(const char *path, int fd, uint64_t begin, uint64_t end, pl_error *err)
{
    const uint64_t from = begin / PL_BLOCK_ALIGN * PL_BLOCK_ALIGN, to = end / PL_BLOCK_ALIGN * PL_BLOCK_ALIGN;
    int rc;
    if (from >= to) return PL_OK;
    do rc = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from));
    while (rc != 0 && errno == EINTR);
    if (rc == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: what was copied of it cannot be given back to the disk: %s; %s", path,
                   strerror(errno),
                   errno == EOPNOTSUPP ? "this file system gives whole files back alone: join without `move`"
                                       : "the same command goes on");
}

/* Whole pages: of that in which the next range begins, the rest goes with the next one. */
static pl_status free_dataset(const pl_block_index *ix, uint32_t dataset, pl_join_part *p, uint64_t was, uint64_t now,
                              pl_error *err)
{
    const pl_block_dataset_record *r = &ix->record[dataset];
    const uint64_t row = r->bytes / p->count, first = pl_align_up(r->offset, PL_BLOCK_ALIGN);
    const uint64_t begin = r->offset + was * row;
    return punch(p->path, ix->data_fd[dataset], begin > first ? begin : first, r->offset + now * row, err);
}

static pl_status free_part(pl_join_part *p, uint32_t kind, uint64_t items, pl_error *err)
{
    pl_block_index ix;
    pl_status status = pl_block_index_open(&ix, p->path, true, NULL, err);
    for (uint32_t i = 0; i < ix.layout.datasets && status == PL_OK; i++)
        if (ix.record[i].kind == kind && !(ix.record[i].flags & PL_BLOCK_FLAG_CONSTANT))
            status = free_dataset(&ix, i, p, p->freed[kind], items, err);
    pl_block_index_close(&ix);
    if (status == PL_OK) p->freed[kind] = items;
    return status;
}

pl_status pl_block_join_free(const pl_joining *j, uint32_t kind, uint64_t done, pl_error *err)
{
    const uint64_t step = pl_block_reader_layout(j->like)->kind[kind].axis[0].step;
    for (size_t k = 0; k < j->count && j->part[k].first < done; k++) {
        pl_join_part *p = &j->part[k];
        const uint64_t has = done - p->first, items = has >= p->count ? p->count : has / step * step;
        if (items > p->freed[kind]) PL_TRY(free_part(p, kind, items, err));
    }
    return PL_OK;
}

/* ---- links ---- */

pl_status pl_block_join_refuse_links(const pl_block_index *held, const char *path, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    const pl_block_form form = (pl_block_form)held->head.form;
    const uint32_t files = form == PL_BLOCK_NPY ? held->layout.datasets : 0;
    for (uint32_t i = 0; i <= files; i++) {
        PL_TRY(pl_block_path_of(path, form, i < files ? held->layout.dataset[i].name : NULL, file, err));
        if (pl_remove_is_link(file))
            return pl_fail(err, PL_E_USAGE, "%s: is a link; what is moved is removed: put what it leads to there",
                           file);
    }
    return PL_OK;
}

/* ---- the end ---- */

static pl_status remove_file(const char *path, pl_error *err)
{
    pl_error why = {0};
    const pl_status status = pl_remove_file(path, &why);
    return status == PL_OK ? PL_OK : pl_fail(err, status, "all is joined, but a part is still there: %s", why.text);
}

static pl_status remove_part(const pl_joining *j, const pl_join_part *p, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(j->like);
    char file[PL_FILE_PATH_MAX];
    if (pl_block_reader_form(j->like) != PL_BLOCK_NPY) return remove_file(p->path, err);
    for (uint32_t i = 0; i <= l->datasets; i++) {
        PL_TRY(pl_block_path_of(p->path, PL_BLOCK_NPY, i < l->datasets ? l->dataset[i].name : NULL, file, err));
        PL_TRY(remove_file(file, err));
    }
    return pl_remove_empty_folder(p->path, err);
}

pl_status pl_block_join_remove_parts(const pl_joining *j, pl_error *err)
{
    for (size_t k = 0; k < j->count; k++)
        if (j->part[k].held) PL_TRY(remove_part(j, &j->part[k], err));
    return PL_OK;
}
