/* Doing it: first parts are joined, then each thing goes for which the list says so. A thing is looked at again just
 * before, under the lock that whoever could use it takes, and is left where it is another one by now.
 *
 * In what order makes it safe to be killed anywhere: a file goes by one call; a folder is renamed to a name under which
 * nobody reads it and the next clean knows it as a left-over, then emptied. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/remove.h"
#include "data/pages/cache.h"
#include "storage/storage.h"
#include "store/block_file.h"
#include "store/folder.h"

static pl_status cannot(const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be removed: %s", path, strerror(errno));
}

static pl_status no_locks(const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_STORAGE,
                   "%s: " PL_IO_NO_LOCKS "it is not known whether a process is using it; remove by hand what is not",
                   path);
}

static pl_status in_use(const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_STOPPED, "%s: a process is using it", path);
}

/* Is it the one that was looked at? */
static pl_status check_same(const pl_storage_entry *e, const char *path, pl_error *err)
{
    struct stat st;
    const bool is_there = lstat(path, &st) == 0;
    if (!is_there && errno != ENOENT)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(errno));
    if (is_there && st.st_dev == e->device && st.st_ino == e->inode) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "%s: was changed since it was looked at", path);
}

/* ---- trees of results ---- */

typedef struct tree {
    const char *path;
    int folder;
} tree;

static pl_status remove_npy(void *context, const char *name, pl_error *err)
{
    const tree *t = context;
    if (strcmp(name, "index") != 0 && !pl_ends_with(name, ".npy")) return PL_OK;
    const int error = pl_remove_at(t->folder, name);
    if (error == 0 || error == ELOOP) return PL_OK; /* a link stays, and the folder with it */
    return pl_fail(err, PL_E_STORAGE, "%s/%s: cannot be removed: %s", t->path, name, strerror(error));
}

/* What somebody else has put there stays, and the folder with it. */
static pl_status empty_tree(const char *path, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    tree t = {.path = path};
    PL_TRY(pl_remove_open_folder(path, &t.folder, err));
    pl_status status = t.folder < 0 ? PL_OK : pl_folder_each_in(t.folder, path, list, remove_npy, &t, err);
    if (t.folder >= 0) close(t.folder);
    return status == PL_OK ? pl_remove_empty_folder(path, err) : status;
}

/* As a whole or not at all as far as its name tells: it is renamed to a temporary name, then emptied. *aside: it is
 * there, so what fails then is ours. */
static pl_status remove_tree(const pl_block_reader *r, const char *path, bool *aside, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX];
    pl_file_temporary(path, "", temporary);
    if (strlen(temporary) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    PL_TRY(pl_storage_check_alone(r, path, err));
    PL_TRY(pl_storage_put_aside(path, temporary, aside, err));
    pl_status status = pl_storage_check_alone(r, temporary, err);
    if (status != PL_OK) return (void)pl_storage_put_aside(temporary, path, aside, NULL), status;
    PL_TRY(pl_storage_remove_own(r, temporary, err));
    return pl_remove_empty_folder(temporary, err);
}

/* ---- what processes left behind ---- */

static pl_status remove_left_file(const char *path, pl_error *err)
{
    int fd;
    bool is_held;
    PL_TRY(pl_storage_hold(path, &fd, &is_held, err));
    if (is_held) return in_use(path, err);
    struct stat st;
    const bool is_removed = fstat(fd, &st) == 0 && st.st_nlink == 0; /* between opening and locking it */
    pl_status status =
        is_removed ? pl_fail(err, PL_E_STOPPED, "%s: somebody else has removed it", path) : pl_remove_file(path, err);
    close(fd);
    return status;
}

static pl_status remove_left_tree(const char *path, pl_error *err)
{
    char index[PL_FILE_PATH_MAX];
    int fd = -1;
    bool is_held = false;
    PL_TRY(pl_path_join(index, sizeof index, path, "index", err));
    if (access(index, F_OK) == 0) PL_TRY(pl_storage_hold(index, &fd, &is_held, err));
    if (is_held) return in_use(path, err);
    pl_status status = empty_tree(path, err);
    if (fd >= 0) close(fd);
    return status;
}

/* ---- caches ---- */

/* Where the cache lies in the folder of a run itself, that lock is held already. */
static bool is_of_run(const pl_storage *s, const pl_storage_entry *e, const char *folder)
{
    char run[PL_FILE_PATH_MAX];
    return e->run != PL_STORAGE_NONE && pl_storage_path(s, s->run[e->run].path, run, NULL) == PL_OK &&
           strcmp(run, folder) == 0;
}

static pl_status change_cache(const pl_storage *s, const pl_storage_entry *e, const char *path, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    int fd = pl_io_open(folder, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return cannot(path, err);
    pl_status status = PL_OK;
    if (!is_of_run(s, e, folder) && pl_io_lock(fd, LOCK_EX | LOCK_NB) != 0)
        status = errno == EWOULDBLOCK        ? in_use(path, err)
                 : pl_io_has_no_locks(errno) ? no_locks(path, err)
                                             : cannot(path, err);
    if (status == PL_OK && e->item.fate == PL_STORAGE_GOES)
        status = pl_page_cache_remove(folder, err);
    else if (status == PL_OK)
        status = pl_page_cache_shrink(folder, s->rules.cache_bytes, err);
    close(fd);
    return status;
}

/* ---- parts ---- */

static pl_status remove_part(const pl_storage *s, const pl_storage_entry *e, const char *path, bool *aside,
                             pl_error *err)
{
    char whole[PL_FILE_PATH_MAX];
    pl_block_reader *held;
    PL_TRY(pl_storage_path(s, s->set[e->set].target, whole, err));
    PL_TRY(pl_storage_compare(whole, path, &held, err));
    pl_status status = e->shape == PL_STORAGE_TREE ? remove_tree(held, path, aside, err) : pl_remove_file(path, err);
    pl_block_reader_close(held);
    return status;
}

/* ---- the list ---- */

typedef struct work {
    const pl_storage *s;
    const pl_storage_ears *ears;
    pl_storage_cleaned *cleaned;
    pl_error *err;
    pl_status first; /* failure */
    pl_status kept;  /* of the run at hand: may its checkpoints go? */
    pl_error why_not;
} work;

static void note(work *w, const pl_storage_entry *e, pl_status status, uint64_t gained, const char *why)
{
    if (status == PL_OK) {
        w->cleaned->items++;
        w->cleaned->bytes += gained;
    } else {
        w->cleaned->left++;
        if (w->first == PL_OK && status != PL_E_STOPPED) w->first = pl_fail(w->err, status, "%s", why);
    }
    if (w->ears->tell) w->ears->tell(w->ears->context, &e->item, gained, status == PL_OK ? NULL : why);
}

static uint64_t left_of_cache(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static pl_status act(const pl_storage *s, const pl_storage_entry *e, char *path, bool *aside, pl_error *err)
{
    PL_TRY(check_same(e, path, err));
    if (e->item.kind == PL_STORAGE_CACHE) return change_cache(s, e, path, err);
    if (e->item.fate == PL_STORAGE_JOINS) return remove_part(s, e, path, aside, err);
    switch (e->shape) {
    case PL_STORAGE_FILE:
        return remove_left_file(path, err);
    case PL_STORAGE_TREE:
        return remove_left_tree(path, err);
    case PL_STORAGE_STEP:
        return pl_storage_remove_step(path, aside, err);
    case PL_STORAGE_STEP_LEFT_OVER:
        PL_TRY(pl_storage_check_replaced(path, err));
        return pl_storage_empty_step(path, err);
    }
    return PL_OK;
}

static bool is_gone(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

/* What somebody else has removed meanwhile, another clean for one, is neither removed here nor left. */
static void do_one(work *w, const pl_storage_entry *e)
{
    char path[PL_FILE_PATH_MAX];
    bool aside = false;
    pl_error why = {0};
    pl_status status = pl_storage_path(w->s, e->item.path, path, &why);
    if (status == PL_OK && is_gone(path)) return;
    if (status == PL_OK) status = act(w->s, e, path, &aside, &why);
    if (status != PL_OK && !aside && is_gone(path)) return;
    const uint64_t left = e->item.fate == PL_STORAGE_SHRINKS ? left_of_cache(path) : 0;
    note(w, e, status, e->item.bytes > left ? e->item.bytes - left : 0, why.text);
}

static bool has_work(const pl_storage_entry *e)
{
    return e->item.fate == PL_STORAGE_GOES || e->item.fate == PL_STORAGE_SHRINKS || e->item.fate == PL_STORAGE_JOINS;
}

/* All of a run, or of what lies in none, under its lock. A part goes only when its set was joined. */
static void do_each_of(work *w, size_t run, const bool *joined, bool steps)
{
    const pl_storage *s = w->s;
    for (size_t i = 0; i < s->entries; i++) {
        const pl_storage_entry *e = &s->entry[i];
        if (e->run != run || !has_work(e) || (e->shape == PL_STORAGE_STEP) != steps ||
            (e->set != PL_STORAGE_NONE && !joined[e->set]))
            continue;
        if (e->shape == PL_STORAGE_STEP && w->kept != PL_OK)
            note(w, e, w->kept, 0, w->why_not.text);
        else
            do_one(w, e);
    }
}

/* A checkpoint goes after what was put aside for it. */
static void do_all_of(work *w, size_t run, const bool *joined)
{
    do_each_of(w, run, joined, false);
    do_each_of(w, run, joined, true);
}

static void leave_run(work *w, size_t run, pl_status status, const pl_error *why)
{
    for (size_t i = 0; i < w->s->entries; i++)
        if (w->s->entry[i].run == run && has_work(&w->s->entry[i])) note(w, &w->s->entry[i], status, 0, why->text);
}

static bool run_has_work(const pl_storage *s, size_t run)
{
    for (size_t i = 0; i < s->entries; i++)
        if (s->entry[i].run == run && has_work(&s->entry[i])) return true;
    return false;
}

static void do_run(work *w, size_t run, const bool *joined)
{
    char path[PL_FILE_PATH_MAX];
    pl_error why = {0};
    int lock = -1;
    if (!run_has_work(w->s, run)) return;
    pl_status status = pl_storage_path(w->s, w->s->run[run].path, path, &why);
    if (status == PL_OK && !pl_folder_has_locks(path)) status = no_locks(path, &why);
    if (status == PL_OK) status = pl_folder_lock(path, &lock, &why);
    if (status == PL_OK) w->kept = pl_storage_check_kept(w->s, run, &w->why_not);
    if (status == PL_OK)
        do_all_of(w, run, joined);
    else
        leave_run(w, run, pl_folder_holder(path) > 0 ? PL_E_STOPPED : status, &why);
    pl_folder_unlock(&lock);
}

static void join_sets(work *w, bool *joined)
{
    for (size_t i = 0; i < w->s->sets; i++) {
        pl_error why = {0};
        pl_status status = pl_storage_join(w->s, i, w->ears, &why);
        joined[i] = status == PL_OK;
        for (size_t k = 0; k < w->s->entries && status != PL_OK; k++)
            if (w->s->entry[k].set == i) note(w, &w->s->entry[k], status, 0, why.text);
    }
}

pl_status pl_storage_work(const pl_storage *s, const pl_storage_ears *ears, pl_storage_cleaned *cleaned, pl_error *err)
{
    work w = {.s = s, .ears = ears, .cleaned = cleaned, .err = err};
    *cleaned = (pl_storage_cleaned){0};
    for (size_t i = 0; i < s->entries; i++) cleaned->in_use += s->entry[i].item.fate == PL_STORAGE_IN_USE;
    bool *joined = pl_alloc(s->sets + 1, sizeof *joined);
    if (!joined) return pl_fail(err, PL_E_NOMEM, "%s: no memory to clean it", s->root);
    join_sets(&w, joined);
    for (size_t run = 0; run < s->runs; run++) do_run(&w, run, joined);
    do_all_of(&w, PL_STORAGE_NONE, joined);
    pl_free(joined);
    return w.first;
}
