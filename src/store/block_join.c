/* Parts of a job, each a file of its own, as one: are they all of it, and of one configuration? */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "store/block_join.h"

static pl_status is_another(const pl_join_part *p, const pl_joining *j, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG, "%s: is no part of the same job as %s: %s; give the parts of one job", p->path,
                   j->part[0].path, what);
}

static bool same_kind(const pl_block_kind *a, const pl_block_kind *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->axes == b->axes;
    for (uint32_t i = 0; same && i < a->axes; i++)
        same = strcmp(a->axis[i].name, b->axis[i].name) == 0 && a->axis[i].step == b->axis[i].step &&
               (i == 0 || a->axis[i].extent == b->axis[i].extent);
    return same;
}

/* The first dimension of what is split is each part's own. */
static bool same_dataset(const pl_block_dataset *a, const pl_block_dataset *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->is_text == b->is_text &&
                a->rank == b->rank && a->kind == b->kind && !a->constant == !b->constant;
    for (uint32_t i = a->kind == PL_BLOCK_NO_KIND ? 0 : 1; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
    return same;
}

static pl_status check_same(const pl_join_part *p, const pl_joining *j, const pl_block_reader *r, pl_error *err)
{
    const pl_block_layout *a = pl_block_reader_layout(j->like), *b = pl_block_reader_layout(r);
    if (strcmp(a->text, b->text) != 0) return is_another(p, j, "another configuration made it", err);
    bool same = a->whole == b->whole && a->kinds == b->kinds && a->datasets == b->datasets;
    for (uint32_t i = 0; same && i < a->kinds; i++) same = same_kind(&a->kind[i], &b->kind[i]);
    if (!same) return is_another(p, j, "its blocks are others", err);
    for (uint32_t i = 0; i < a->datasets; i++)
        if (!same_dataset(&a->dataset[i], &b->dataset[i])) return is_another(p, j, a->dataset[i].name, err);
    return PL_OK;
}

static pl_status check_part(pl_join_part *p, const pl_joining *j, const pl_block_reader *r, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(r);
    const uint64_t blocks = pl_block_count(l), done = pl_block_reader_done(r);
    if (pl_block_reader_form(r) != pl_block_reader_form(j->like))
        return pl_fail(err, PL_E_USAGE, "%s: is in the form %s, %s in the form %s; give parts of one form", p->path,
                       pl_block_form_name(pl_block_reader_form(r)), j->part[0].path,
                       pl_block_form_name(pl_block_reader_form(j->like)));
    if (!l->whole) return pl_fail(err, PL_E_USAGE, "%s: is no part of a job, but the whole of one", p->path);
    if (done != blocks)
        return pl_fail(err, PL_E_DATA, "%s: %" PRIu64 " of its %" PRIu64 " blocks are not finished; let it go on first",
                       p->path, blocks - done, blocks);
    p->first = l->first;
    p->count = l->kind[0].axis[0].extent;
    p->sound = PL_BLOCK_NONE;
    return check_same(p, j, r, err);
}

/* Nobody else writes to it, mends it or moves it meanwhile. */
static pl_status hold_part(pl_join_part *p, pl_error *err)
{
    struct stat st;
    if (lstat(p->path, &st) == 0 && S_ISLNK(st.st_mode))
        return pl_fail(err, PL_E_USAGE, "%s: is a link; what is moved is removed: give what it leads to", p->path);
    p->held = pl_alloc(1, sizeof *p->held);
    if (!p->held) return pl_fail(err, PL_E_NOMEM, "%s: no memory to hold it", p->path);
    pl_block_index_init(p->held, p->path);
    PL_TRY(pl_block_index_open(p->held, p->path, true, NULL, err));
    PL_TRY(pl_block_join_refuse_links(p->held, p->path, err));
    return pl_block_index_lock(p->held, err);
}

static void let_go(pl_join_part *p)
{
    if (p->held) pl_block_index_close(p->held);
    pl_free(p->held);
    pl_free(p->name);
}

static pl_status take_part(pl_joining *j, pl_join_part *p, pl_error *err)
{
    pl_block_reader *r;
    if (j->moves) PL_TRY(hold_part(p, err));
    PL_TRY(pl_block_reader_open(p->path, false, &r, err));
    pl_status status = check_part(p, j, r, err);
    pl_block_reader_close(r);
    return status;
}

static int by_first(const void *a, const void *b)
{
    const pl_join_part *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static pl_status check_whole(const pl_joining *j, pl_error *err)
{
    const uint64_t whole = pl_block_reader_layout(j->like)->whole;
    const char *axis = pl_block_reader_layout(j->like)->kind[0].axis[0].name;
    uint64_t at = 0;
    for (size_t i = 0; i < j->count; i++) {
        const pl_join_part *p = &j->part[i];
        if (p->first < at)
            return pl_fail(err, PL_E_USAGE, "%s: holds %s %" PRIu64 ", which %s has, too; give each part once", p->path,
                           axis, p->first, j->part[i - 1].path);
        if (p->first > at) break;
        at += p->count;
    }
    if (at == whole) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "no part holds %s %" PRIu64 " (of %" PRIu64 "); give all parts of the job", axis,
                   at, whole);
}

static pl_status join_all(pl_joining *j, pl_error *err)
{
    bool finished = false;
    if (j->moves) PL_TRY(pl_block_join_finish(j, &finished, err));
    if (finished) return PL_OK;
    PL_TRY(pl_block_reader_open(j->part[0].path, false, &j->like, err));
    for (size_t i = 0; i < j->count; i++) PL_TRY(take_part(j, &j->part[i], err));
    qsort(j->part, j->count, sizeof *j->part, by_first);
    PL_TRY(check_whole(j, err));
    if (pl_block_reader_form(j->like) != PL_BLOCK_HDF5) return pl_block_join_copy(j, err);
    if (!j->moves) return pl_block_join_hdf5(j, err);
    return pl_fail(err, PL_E_USAGE, "%s: parts in HDF5 form are not copied, so there is nothing to move; join without",
                   j->path);
}

pl_status pl_block_join(const char *path, const char *const *parts, size_t count, bool moves, pl_error *err)
{
    pl_joining j = {.path = path, .count = count, .moves = moves};
    if (count == 0) return pl_fail(err, PL_E_USAGE, "%s: there are no parts to join", path);
    if (strlen(path) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    j.part = pl_alloc(count, sizeof *j.part);
    if (!j.part) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of its parts", path);
    for (size_t i = 0; i < count; i++) j.part[i].path = parts[i];
    pl_status status = join_all(&j, err);
    for (size_t i = 0; i < count; i++) let_go(&j.part[i]);
    pl_free(j.part);
    pl_block_reader_close(j.like);
    return status;
}
