#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "base/size.h"
#include "base/units.h"
#include "store/beside.h"
#include "store/block_index.h"
#include "store/folder.h"

/* ---- the forms ---- */

/* Opened and locked. Another maker may be at it: its file is not to be emptied, nor removed. */
static pl_status open_locked(pl_block_index *ix, const char *path, pl_error *err)
{
    ix->fd = pl_io_open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (ix->fd < 0) {
        int error = errno;
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", path, strerror(error), pl_io_hint(error));
    }
    pl_status status = pl_block_index_lock_to_write(ix, err);
    if (status == PL_OK) return PL_OK;
    close(ix->fd);
    ix->fd = -1;
    return status;
}

/* 0: it is the name of this file; ENOENT: of another or of none; else why that cannot be told. */
static int check_name(int fd, const char *path)
{
    struct stat here, there;
    if (fstat(fd, &here) != 0 || lstat(path, &there) != 0) return errno;
    return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? 0 : ENOENT;
}

/* Between its opening and its lock another maker may have given the file its last name, and let go of it: then it is
 * that one's, with results in it. */
static pl_status create_file(pl_block_index *ix, const char *path, pl_error *err)
{
    PL_TRY(open_locked(ix, path, err));
    const int error = check_name(ix->fd, path);
    if (error) {
        close(ix->fd);
        ix->fd = -1;
        return error == ENOENT
                   ? pl_fail(err, PL_E_STORAGE, "%s: another process made this file just now; begin again", path)
                   : pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", path, strerror(error));
    }
    if (pl_io_truncate(ix->fd, 0) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be emptied: %s", path, strerror(errno));
}

static void use_one_file(pl_block_index *ix)
{
    for (uint32_t i = 0; i < ix->head.datasets; i++) ix->data_fd[i] = ix->fd;
}

static void place_native(pl_block_index *ix)
{
    uint64_t at = pl_align_up(ix->head.index_bytes, PL_BLOCK_ALIGN);
    for (uint32_t i = 0; i < ix->head.datasets; i++) {
        ix->record[i].offset = at;
        at = pl_align_up(at + ix->record[i].bytes, PL_BLOCK_ALIGN);
    }
    ix->head.file_bytes = at;
}

static pl_status create_native(pl_block_index *ix, const pl_block_layout *l, const char *path, pl_error *err)
{
    (void)l;
    PL_TRY(create_file(ix, path, err));
    use_one_file(ix);
    return PL_OK;
}

static void place_npy(pl_block_index *ix)
{
    char header[PL_NPY_HEADER_MAX];
    for (uint32_t i = 0; i < ix->head.datasets; i++)
        ix->record[i].offset = pl_block_npy_header(&ix->dataset[i], header);
    ix->head.file_bytes = ix->head.index_bytes;
}

static pl_status create_npy(pl_block_index *ix, const pl_block_layout *l, const char *path, pl_error *err)
{
    char file[PL_FILE_PATH_MAX], header[PL_NPY_HEADER_MAX];
    if (access(path, F_OK) != 0) PL_TRY(pl_folder_create_one(path, err));
    PL_TRY(pl_block_path_of(path, PL_BLOCK_NPY, NULL, file, err));
    PL_TRY(create_file(ix, file, err));
    for (uint32_t i = 0; i < l->datasets; i++) {
        PL_TRY(pl_block_path_of(path, PL_BLOCK_NPY, l->dataset[i].name, file, err));
        ix->data_fd[i] = pl_io_open(file, O_CREAT | O_TRUNC | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
        if (ix->data_fd[i] < 0)
            return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", file, strerror(errno), pl_io_hint(errno));
        PL_TRY(pl_file_put(ix->data_fd[i], file, 0, header, pl_block_npy_header(&l->dataset[i], header), err));
    }
    return PL_OK;
}

static pl_status create_hdf5(pl_block_index *ix, const pl_block_layout *l, const char *path, pl_error *err)
{
    PL_TRY(create_file(ix, path, err));
    PL_TRY(pl_block_hdf5_create(ix, l, path, err));
    use_one_file(ix);
    return PL_OK;
}

/* What libhdf5 puts around the data: its headers, and up to a page before each dataset so that it is aligned. */
static uint64_t hdf5_overhead(const pl_block_layout *l)
{
    uint64_t bytes = (64 << 10) + (uint64_t)(l->datasets + 1) * (8 << 10);
    for (uint32_t i = 0; i < l->attributes; i++)
        bytes += 512 + (l->attribute[i].text ? strlen(l->attribute[i].text) : 0);
    return pl_align_up(bytes, PL_BLOCK_ALIGN);
}

static uint64_t npy_overhead(const pl_block_layout *l) { return (uint64_t)(l->datasets + 1) * 2 * PL_BLOCK_ALIGN; }
static uint64_t native_overhead(const pl_block_layout *l) { return (l->datasets + 1) * (uint64_t)PL_BLOCK_ALIGN; }

static const struct form {
    uint64_t (*overhead)(const pl_block_layout *); /* bytes at most, beside index and data */
    void (*place)(pl_block_index *);               /* offsets and the file's length; NULL: create tells them */
    pl_status (*create)(pl_block_index *, const pl_block_layout *, const char *path,
                        pl_error *); /* opens what it made */
} forms[PL_BLOCK_FORMS] = {
    [PL_BLOCK_NATIVE] = {native_overhead, place_native, create_native},
    [PL_BLOCK_HDF5] = {hdf5_overhead, NULL, create_hdf5},
    [PL_BLOCK_NPY] = {npy_overhead, place_npy, create_npy},
};

/* ---- sizes ---- */

pl_status pl_block_file_measure(const pl_block_layout *l, pl_block_form form, const pl_block_use *use,
                                pl_block_sizes *sizes, pl_error *err)
{
    *sizes = (pl_block_sizes){0};
    if ((unsigned)form >= PL_BLOCK_FORMS) return pl_fail(err, PL_E_USAGE, "no such form of results: %d", (int)form);
    PL_TRY(pl_block_layout_check(l, err));
    for (uint32_t i = 0; i < l->attributes && form == PL_BLOCK_HDF5; i++)
        if (l->attribute[i].text && strlen(l->attribute[i].text) > PL_BLOCK_ATTRIBUTE_MAX)
            return pl_fail(err, PL_E_USAGE, "attribute %s has more than the %d bytes that HDF5 takes",
                           l->attribute[i].name, PL_BLOCK_ATTRIBUTE_MAX);
    pl_block_index *ix = pl_alloc(1, sizeof *ix);
    if (!ix) return pl_fail(err, PL_E_NOMEM, "no memory to measure a file of results");
    pl_block_index_fill(ix, l, form);
    for (uint32_t i = 0; i < l->datasets; i++) sizes->data_bytes += ix->record[i].bytes;
    sizes->index_bytes = ix->head.index_bytes;
    sizes->disk_bytes = sizes->data_bytes + sizes->index_bytes + forms[form].overhead(l);
    sizes->memory_bytes = pl_block_memory_bytes(l, use);
    sizes->page_cache_bytes = pl_block_cache_bytes(l, use);
    sizes->files = form == PL_BLOCK_NPY ? l->datasets + 1 : 1;
    pl_free(ix);
    return PL_OK;
}

static pl_status check_disk(const char *path, const pl_block_layout *l, pl_block_form form, pl_error *err)
{
    const pl_block_use none = {0};
    pl_block_sizes sizes;
    struct rlimit limit;
    uint64_t available;
    char need[32], have[32], lack[32];
    PL_TRY(pl_block_file_measure(l, form, &none, &sizes, err));
    PL_TRY(pl_disk_free(path, &available, err));
    if (sizes.disk_bytes > available)
        return pl_fail(err, PL_E_STORAGE,
                       "%s: the results need %s (%" PRIu64 " bytes) of disk, but %s (%" PRIu64
                       " bytes) are free there: %s short; free space, choose another disk, or store less",
                       path, pl_format_bytes(sizes.disk_bytes, need, sizeof need), sizes.disk_bytes,
                       pl_format_bytes(available, have, sizeof have), available,
                       pl_format_bytes(sizes.disk_bytes - available, lack, sizeof lack));
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= sizes.disk_bytes)
        return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%s: the results have up to %" PRIu64 " bytes, but no file may be larger than %" PRIu64
                   " bytes (ulimit -f): raise that limit",
                   path, sizes.disk_bytes, (uint64_t)limit.rlim_cur);
}

/* ---- making ---- */

/* All of its disk space, so that no write fails for want of it later. */
static pl_status reserve_one(const char *path, int fd, uint64_t bytes, pl_error *err)
{
    int error;
    do error = pl_io_inject(PL_IO_WRITE) ? errno : posix_fallocate(fd, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: %" PRIu64 " bytes of disk cannot be reserved: %s%s", path, bytes,
                   strerror(error), pl_io_hint(error));
}

/* Of a file whose maker frees as much as it writes: its length alone. */
static pl_status lengthen_one(const char *path, int fd, uint64_t bytes, pl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (uint64_t)st.st_size >= bytes) return PL_OK;
    if (pl_io_truncate(fd, (off_t)bytes) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot have %" PRIu64 " bytes: %s%s", path, bytes, strerror(errno),
                   pl_io_hint(errno));
}

static pl_status reserve(pl_block_index *ix, bool sparse, pl_error *err)
{
    pl_status (*const one)(const char *, int, uint64_t, pl_error *) = sparse ? lengthen_one : reserve_one;
    PL_TRY(one(ix->path, ix->fd, ix->head.file_bytes, err));
    for (uint32_t i = 0; ix->head.form == PL_BLOCK_NPY && i < ix->head.datasets; i++)
        PL_TRY(one(ix->path, ix->data_fd[i], pl_block_file_end(ix, i), err));
    return PL_OK;
}

static pl_status sync_one(const char *path, int fd, pl_error *err)
{
    if (pl_io_sync(fd) == 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        return PL_OK;
    }
    return pl_fail(err, PL_E_STORAGE, "%s: did not reach the disk: %s%s", path, strerror(errno), pl_io_hint(errno));
}

static pl_status sync_all(const pl_block_index *ix, pl_error *err)
{
    for (uint32_t i = 0; ix->head.form == PL_BLOCK_NPY && i < ix->head.datasets; i++)
        PL_TRY(sync_one(ix->path, ix->data_fd[i], err));
    return sync_one(ix->path, ix->fd, err);
}

static pl_status write_constants(const pl_block_index *ix, const pl_block_layout *l, pl_error *err)
{
    for (uint32_t i = 0; i < l->datasets; i++)
        if (l->dataset[i].constant)
            PL_TRY(pl_file_put(ix->data_fd[i], ix->path, ix->record[i].offset, l->dataset[i].constant,
                               ix->record[i].bytes, err));
    return PL_OK;
}

static pl_status fill_file(pl_block_index *ix, const pl_block_layout *l, bool sparse, pl_error *err)
{
    PL_TRY(reserve(ix, sparse, err));
    PL_TRY(write_constants(ix, l, err));
    PL_TRY(pl_block_index_write(ix, l->text, err));
    PL_TRY(pl_block_structure_note(ix, err));
    return sync_all(ix, err);
}

static pl_status folder_of(const char *path, char folder[PL_FILE_PATH_MAX], pl_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 1;
    if (n >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    memcpy(folder, slash ? path : ".", n);
    folder[n] = 0;
    return n ? PL_OK : (strcpy(folder, "/"), PL_OK);
}

/* Of a file system that knows no RENAME_NOREPLACE: a link replaces nothing, either, but a folder has none. */
static int rename_by_link(const char *temporary, const char *path)
{
    struct stat st;
    int rc = link(temporary, path);
    if (rc == 0) return (errno = pl_remove_at(AT_FDCWD, temporary)) ? -1 : 0;
    if (errno == EEXIST || lstat(path, &st) == 0) return errno = EEXIST, -1;
    return rename(temporary, path);
}

pl_status pl_block_give_name(const char *temporary, const char *path, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    int rc = pl_io_inject(PL_IO_RENAME) ? -1 : renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE);
    if (rc != 0 && errno == EINVAL) rc = rename_by_link(temporary, path);
    if (rc != 0 && errno == EEXIST)
        return pl_fail(err, PL_E_STORAGE, "%s: came while it was being made, and is not replaced; begin again", path);
    if (rc != 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be renamed to %s: %s", temporary, path, strerror(errno));
    PL_TRY(folder_of(path, folder, err));
    return pl_folder_sync(folder, err);
}

static void remove_temporary(const char *temporary, const pl_block_layout *l)
{
    char file[PL_FILE_PATH_MAX];
    if (pl_remove_at(AT_FDCWD, temporary) != EISDIR) return;
    for (uint32_t i = 0; i <= l->datasets; i++) {
        const char *dataset = i < l->datasets ? l->dataset[i].name : NULL;
        if (pl_block_path_of(temporary, PL_BLOCK_NPY, dataset, file, NULL) == PL_OK) (void)pl_remove_file(file, NULL);
    }
    (void)pl_remove_empty_folder(temporary, NULL);
}

static pl_status make_new(pl_block_index *ix, const char *path, pl_block_form form, const pl_block_layout *l,
                          bool sparse, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX], folder[PL_FILE_PATH_MAX];
    pl_status status;
    pl_block_index_init(ix, path);
    pl_file_temporary(path, "", temporary);
    PL_TRY(folder_of(path, folder, err));
    PL_TRY(pl_folder_create(folder, err));
    if (!sparse) PL_TRY(check_disk(path, l, form, err));
    pl_block_index_fill(ix, l, form);
    memcpy(ix->dataset, l->dataset, l->datasets * sizeof *l->dataset);
    ix->layout = *l;
    ix->layout.dataset = ix->dataset;
    if (forms[form].place) forms[form].place(ix);
    PL_TRY_DONE(forms[form].create(ix, l, temporary, err));
    PL_TRY_DONE(fill_file(ix, l, sparse, err));
    PL_TRY_DONE(pl_block_give_name(temporary, path, err));
done:
    if (status != PL_OK && ix->fd >= 0) remove_temporary(temporary, l);
    if (status != PL_OK) (void)pl_remove_empty_folder(temporary, NULL); /* and no file: it may be another maker's */
    pl_block_index_close(ix);
    return status;
}

/* ---- finding ---- */

typedef enum purpose { LOOK, MAKE, MAKE_SPARSE } purpose;

static pl_status count_done(const pl_block_index *ix, pl_block_found *found, pl_error *err)
{
    uint64_t bad = 0, *bitmap = pl_alloc((size_t)(ix->head.blocks + 63) / 64, sizeof *bitmap);
    if (!bitmap) return pl_fail(err, PL_E_NOMEM, "%s: no memory for a bit a block", ix->path);
    found->blocks = ix->head.blocks;
    found->carry_slots = ix->head.carry_slots;
    pl_status status = pl_block_marks_read(ix, bitmap, &found->done, &bad, err);
    if (status == PL_OK) found->done_bytes = pl_block_done_bytes(&ix->layout, bitmap);
    if (!found->lost) found->lost = bad;
    pl_free(bitmap);
    return status;
}

/* First the marks, then the length: killed in between, the file is still too short, and this is done again. */
static pl_status mend(pl_block_index *ix, const pl_block_layout *l, bool sparse, pl_block_found *found, pl_error *err)
{
    bool is_sound;
    PL_TRY(pl_block_marks_mend(ix, &found->lost, err));
    if (found->lost) PL_TRY(sync_one(ix->path, ix->fd, err));
    PL_TRY(pl_block_structure_check(ix, &is_sound, err));
    PL_TRY(reserve(ix, sparse, err)); /* also where a copy of the file has holes */
    PL_TRY(write_constants(ix, l, err));
    if (!is_sound) PL_TRY(pl_block_structure_mend(ix, l, err));
    return sync_all(ix, err);
}

/* Of what lies beside the blocks no more than its mark is looked at: check reads it. */
static pl_status find_mending(const pl_block_index *ix, bool *needs_mending, pl_error *err)
{
    pl_block_mark beside;
    *needs_mending = true;
    if (ix->short_files) return PL_OK;
    PL_TRY(pl_block_mark_read(ix, ix->head.blocks, &beside, err));
    *needs_mending = beside.seal != pl_block_seal(ix, ix->head.blocks, beside.hash);
    return PL_OK;
}

/* A run that was killed between its last mark and the end may have left something there. */
static pl_status finish_carry(const pl_block_index *ix, bool may_mend, pl_block_found *found, pl_error *err)
{
    bool was_empty;
    PL_TRY(pl_block_carry_look(ix, may_mend, &was_empty, err));
    found->needs_mending = !was_empty && !may_mend;
    return may_mend && !was_empty ? sync_one(ix->path, ix->fd, err) : PL_OK;
}

/* Somebody may have begun it just now, so it is not replaced, even where nothing of it is done. */
static pl_status check_same(const pl_block_index *ix, pl_block_form form, const pl_block_layout *l, pl_error *err)
{
    pl_block_found found = {0};
    pl_error unread;
    pl_status status;
    if (ix->head.form == form)
        status = pl_block_index_match(ix, l, err);
    else
        status = pl_fail(err, PL_E_CONFIG, "%s: holds results in the form %s, not %s; choose another file or that form",
                         ix->path, pl_block_form_name(ix->head.form), pl_block_form_name(form));
    if (status != PL_E_CONFIG || count_done(ix, &found, &unread) != PL_OK || found.done || found.lost) return status;
    pl_error_append(err, "; no block of it is done: if nobody is at work on it, it can be removed");
    return status;
}

static pl_status use_found(pl_block_index *ix, pl_block_form form, const pl_block_layout *l, purpose to,
                           pl_block_found *found, pl_error *err)
{
    PL_TRY(check_same(ix, form, l, err));
    if (to != LOOK) {
        PL_TRY(pl_block_index_lock_to_write(ix, err));
        PL_TRY(mend(ix, l, to == MAKE_SPARSE, found, err));
    } else {
        PL_TRY(find_mending(ix, &found->needs_mending, err));
    }
    PL_TRY(count_done(ix, found, err));
    return found->done == found->blocks && !found->needs_mending ? finish_carry(ix, to != LOOK, found, err) : PL_OK;
}

static pl_status find_or_make(const char *path, pl_block_form form, const pl_block_layout *l, purpose to,
                              pl_block_found *found, pl_error *err)
{
    char own[PL_FILE_PATH_MAX], longest[PL_FILE_PATH_MAX];
    bool is_there = false;
    *found = (pl_block_found){0};
    PL_TRY(pl_block_layout_check(l, err));
    if (snprintf(own, sizeof own, "%s", path) >= (int)(PL_FILE_PATH_MAX - sizeof PL_FILE_TEMPORARY))
        return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    for (size_t n = strlen(own); n > 1 && own[n - 1] == '/'; n--) own[n - 1] = 0;
    PL_TRY(pl_beside_path(own, PL_BESIDE_PROCESSES, longest, err)); /* said before anything is made */
    pl_block_index *ix = pl_alloc(1, sizeof *ix);
    if (!ix) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look at it", path);
    pl_status status = pl_block_index_open(ix, own, to != LOOK, &is_there, err);
    if (status == PL_OK && is_there) status = use_found(ix, form, l, to, found, err);
    if (is_there) pl_block_index_close(ix);
    if (status == PL_OK && !is_there) {
        *found = (pl_block_found){.is_new = true, .blocks = pl_block_count(l), .carry_slots = l->carry_slots};
        status = to == LOOK ? check_disk(own, l, form, err) : make_new(ix, own, form, l, to == MAKE_SPARSE, err);
    }
    pl_free(ix);
    return status;
}

pl_status pl_block_file_make(const char *path, pl_block_form form, const pl_block_layout *l, pl_block_found *found,
                             pl_error *err)
{
    return find_or_make(path, form, l, MAKE, found, err);
}

pl_status pl_block_file_make_sparse(const char *path, pl_block_form form, const pl_block_layout *l,
                                    pl_block_found *found, pl_error *err)
{
    return find_or_make(path, form, l, MAKE_SPARSE, found, err);
}

pl_status pl_block_file_look(const char *path, pl_block_form form, const pl_block_layout *l, pl_block_found *found,
                             pl_error *err)
{
    return find_or_make(path, form, l, LOOK, found, err);
}
