/* Parts of a job, each a file of its own, as one HDF5 file: virtual datasets name the parts, nothing is copied. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/block_hdf5.h"
#include "store/block_index.h"

typedef struct part {
    const char *path;
    char *name; /* as the joined file says it */
    uint64_t first, count;
} part;

/* Everything of the first part that the others must have, too. */
typedef struct joining {
    const char *path;
    part *part;
    size_t count;
    pl_block_reader *like; /* the first part that was given */
    pl_hdf5_joined array[PL_BLOCK_DATASETS_MAX];
} joining;

static pl_status is_another(const part *p, const joining *j, const char *what, pl_error *err)
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

static pl_status check_same(const part *p, const joining *j, const pl_block_reader *r, pl_error *err)
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

static pl_status check_part(part *p, const joining *j, const pl_block_reader *r, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(r);
    const uint64_t blocks = pl_block_count(l), done = pl_block_reader_done(r);
    if (pl_block_reader_form(r) != PL_BLOCK_HDF5)
        return pl_fail(err, PL_E_USAGE, "%s: is in the form %s; only parts in the HDF5 form can be joined", p->path,
                       pl_block_form_name(pl_block_reader_form(r)));
    if (!l->whole) return pl_fail(err, PL_E_USAGE, "%s: is no part of a job, but the whole of one", p->path);
    if (done != blocks)
        return pl_fail(err, PL_E_DATA, "%s: %" PRIu64 " of its %" PRIu64 " blocks are not finished; let it go on first",
                       p->path, blocks - done, blocks);
    p->first = l->first;
    p->count = l->kind[0].axis[0].extent;
    return check_same(p, j, r, err);
}

/* From the folder of the joined file where the part lies in it or below, else from the root. */
static pl_status name_part(part *p, const char *path, pl_error *err)
{
    char from[PL_FILE_PATH_MAX], to[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_absolute(from, sizeof from, path, err));
    PL_TRY(pl_path_absolute(to, sizeof to, p->path, err));
    size_t folder = (size_t)(strrchr(from, '/') - from) + 1;
    p->name = pl_strdup(strncmp(from, to, folder) == 0 ? to + folder : to);
    return p->name ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its name", p->path);
}

static pl_status take_part(joining *j, part *p, pl_error *err)
{
    pl_block_reader *r;
    PL_TRY(name_part(p, j->path, err));
    PL_TRY(pl_block_reader_open(p->path, false, &r, err));
    pl_status status = check_part(p, j, r, err);
    pl_block_reader_close(r);
    return status;
}

static int by_first(const void *a, const void *b)
{
    const part *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static pl_status check_whole(const joining *j, pl_error *err)
{
    const uint64_t whole = pl_block_reader_layout(j->like)->whole;
    const char *axis = pl_block_reader_layout(j->like)->kind[0].axis[0].name;
    uint64_t at = 0;
    for (size_t i = 0; i < j->count; i++) {
        const part *p = &j->part[i];
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

static void list_arrays(joining *j)
{
    const pl_block_layout *l = pl_block_reader_layout(j->like);
    for (uint32_t i = 0; i < l->datasets; i++) {
        const pl_block_dataset *d = &l->dataset[i];
        j->array[i] = (pl_hdf5_joined){pl_hdf5_array_of(d), d->kind != PL_BLOCK_NO_KIND};
        if (j->array[i].is_split) j->array[i].of.shape[0] = l->whole;
    }
}

static pl_status sync_and_name(const char *temporary, const char *path, pl_error *err)
{
    int fd = pl_io_open(temporary, O_RDONLY), rc = fd < 0 ? -1 : pl_io_sync(fd), error = errno;
    if (fd >= 0) close(fd);
    if (rc == 0) return pl_block_give_name(temporary, path, err);
    return pl_fail(err, PL_E_STORAGE, "%s: could not be completed: %s%s", path, strerror(error), pl_io_hint(error));
}

/* In our own words where there can be none: libhdf5 tells of its own functions. */
static pl_status check_place(const char *temporary, pl_error *err)
{
    int fd = pl_io_open(temporary, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) return close(fd), PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%.*s: cannot be created: %s%s",
                   (int)(strlen(temporary) - sizeof PL_FILE_TEMPORARY + 1), temporary, strerror(errno),
                   pl_io_hint(errno));
}

static pl_status write_by(const joining *j, const pl_hdf5_module *module, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX], why[256];
    snprintf(temporary, sizeof temporary, "%s" PL_FILE_TEMPORARY, j->path);
    PL_TRY(check_place(temporary, err));
    pl_hdf5_part *list = pl_alloc(j->count, sizeof *list);
    if (!list) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of its parts", j->path);
    for (size_t i = 0; i < j->count; i++) list[i] = (pl_hdf5_part){j->part[i].name, j->part[i].first, j->part[i].count};
    int rc = module->join(temporary, j->array, pl_block_reader_layout(j->like)->datasets, list, j->count,
                          j->part[0].path, why, sizeof why);
    pl_free(list);
    pl_status status = rc == 0 ? sync_and_name(temporary, j->path, err)
                               : pl_fail(err, PL_E_STORAGE, "%s: cannot be made: %s", j->path, why);
    if (status != PL_OK) unlink(temporary);
    return status;
}

static pl_status join_all(joining *j, pl_error *err)
{
    const pl_hdf5_module *module;
    void *handle;
    PL_TRY(pl_block_reader_open(j->part[0].path, false, &j->like, err));
    for (size_t i = 0; i < j->count; i++) PL_TRY(take_part(j, &j->part[i], err));
    qsort(j->part, j->count, sizeof *j->part, by_first);
    PL_TRY(check_whole(j, err));
    list_arrays(j);
    PL_TRY(pl_hdf5_load(PL_HDF5_OF_RESULTS, &handle, &module, err));
    pl_status status = write_by(j, module, err);
    pl_hdf5_unload(handle);
    return status;
}

pl_status pl_block_join(const char *path, const char *const *parts, size_t count, pl_error *err)
{
    joining j = {.path = path, .count = count};
    if (count == 0) return pl_fail(err, PL_E_USAGE, "%s: there are no parts to join", path);
    if (strlen(path) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    if (access(path, F_OK) == 0)
        return pl_fail(err, PL_E_STORAGE, "%s: is there already; remove it or choose another name", path);
    j.part = pl_alloc(count, sizeof *j.part);
    if (!j.part) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of its parts", path);
    for (size_t i = 0; i < count; i++) j.part[i].path = parts[i];
    pl_status status = join_all(&j, err);
    for (size_t i = 0; i < count; i++) pl_free(j.part[i].name);
    pl_free(j.part);
    pl_block_reader_close(j.like);
    return status;
}
