/* Moving that was killed while it removed the parts, or whose parts were removed by hand afterwards: the whole is there
 * and complete, some parts are not. The same command ends what was begun. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "store/block_join.h"
#include "store/folder.h"

static bool is_whole_part(const char *path)
{
    pl_block_index ix;
    pl_error ignored;
    const pl_status status = pl_block_index_open(&ix, path, false, NULL, &ignored);
    pl_block_index_close(&ix);
    return status == PL_OK;
}

static bool are_all_there(const pl_joining *j)
{
    for (size_t k = 0; k < j->count; k++)
        if (!is_whole_part(j->part[k].path)) return false;
    return true;
}

/* What can have been made by moving, and is complete; nobody writes to it or mends it meanwhile. NULL: none is. */
static pl_block_reader *open_complete(const char *path)
{
    struct stat st;
    pl_error ignored;
    pl_block_reader *r;
    if (lstat(path, &st) != 0 || S_ISLNK(st.st_mode) || pl_block_reader_open(path, true, &r, &ignored) != PL_OK)
        return NULL;
    const pl_block_layout *l = pl_block_reader_layout(r);
    if (!l->whole && pl_block_reader_form(r) != PL_BLOCK_HDF5 && pl_block_reader_done(r) == pl_block_count(l)) return r;
    pl_block_reader_close(r);
    return NULL;
}

static pl_status check_left(const pl_joining *j, pl_join_part *p, pl_error *err)
{
    const pl_block_layout *whole = pl_block_reader_layout(j->like), *l = &p->held->layout;
    const uint64_t all = whole->kind[0].axis[0].extent;
    const bool is_part = p->held->head.form == (uint32_t)pl_block_reader_form(j->like) && l->whole == all &&
                         l->kinds == whole->kinds && l->datasets == whole->datasets;
    if (!is_part) return pl_fail(err, PL_E_USAGE, "%s: is no part of %s; leave it out", p->path, j->path);
    PL_TRY(pl_block_index_match_text(p->held, whole->text, err));
    return pl_block_index_lock(p->held, err);
}

static pl_status see_one(void *context, const char *name, pl_error *err)
{
    (void)name, (void)err;
    *(bool *)context = false;
    return PL_OK;
}

/* Of a part in the form npy, whose files were all removed already. */
static bool is_empty_folder(const pl_joining *j, const char *path)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    bool is_empty = true;
    pl_error ignored;
    return pl_block_reader_form(j->like) == PL_BLOCK_NPY &&
           pl_folder_each(path, list, see_one, &is_empty, &ignored) == PL_OK && is_empty;
}

/* A folder whose files are gone but for the index is known by that. */
static pl_status hold_left(const pl_joining *j, pl_join_part *p, pl_error *err)
{
    struct stat st;
    bool is_there = true;
    if (lstat(p->path, &st) != 0 && errno == ENOENT) return PL_OK;
    if (S_ISDIR(st.st_mode) && is_empty_folder(j, p->path)) return PL_OK;
    if (S_ISLNK(st.st_mode))
        return pl_fail(err, PL_E_USAGE, "%s: is a link; what is moved is removed: give what it leads to", p->path);
    p->held = pl_alloc(1, sizeof *p->held);
    if (!p->held) return pl_fail(err, PL_E_NOMEM, "%s: no memory to hold it", p->path);
    PL_TRY(pl_block_index_open_head(p->held, p->path, true, &is_there, err));
    if (is_there) PL_TRY(pl_block_join_refuse_links(p->held, p->path, err));
    return is_there ? check_left(j, p, err) : PL_OK;
}

/* One that has lost all its files: it is empty, or it is not removed. */
static void remove_empty_folders(const pl_joining *j)
{
    for (size_t k = 0; k < j->count; k++)
        if (!j->part[k].held && is_empty_folder(j, j->part[k].path))
            (void)pl_remove_empty_folder(j->part[k].path, NULL);
}

pl_status pl_block_join_finish(pl_joining *j, bool *finished, pl_error *err)
{
    *finished = false;
    if (are_all_there(j)) return PL_OK;
    j->like = open_complete(j->path);
    if (!j->like) return PL_OK;
    for (size_t k = 0; k < j->count; k++) PL_TRY(hold_left(j, &j->part[k], err));
    PL_TRY(pl_block_join_check_there(j, j->like, err));
    PL_TRY(pl_block_join_remove_parts(j, err));
    remove_empty_folders(j);
    *finished = true;
    return PL_OK;
}
