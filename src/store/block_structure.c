/* What lies in the files of a block file beside index and datasets: headers of .npy, what libhdf5 has around the
 * data, zeros elsewhere. Its hash has the mark behind that of the last block; a run never writes there. Behind the
 * end lies nothing. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "store/block_index.h"
#include "store/checksum.h"

typedef pl_status (*gap_use)(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *);

/* The first of index and datasets that begins at `from` or later. */
static bool next_extent(const pl_block_index *ix, uint64_t from, uint64_t *begin, uint64_t *end)
{
    *begin = UINT64_MAX;
    if (ix->head.at >= from) *begin = ix->head.at, *end = ix->head.at + ix->head.index_bytes;
    for (uint32_t i = 0; i < ix->head.datasets; i++) {
        const pl_block_dataset_record *r = &ix->record[i];
        if (r->offset >= from && r->offset < *begin) *begin = r->offset, *end = r->offset + r->bytes;
    }
    return *begin != UINT64_MAX;
}

static pl_status each_gap(const pl_block_index *ix, gap_use use, void *context, pl_error *err)
{
    uint64_t at = 0, begin, end;
    if (ix->head.form == PL_BLOCK_NPY) {
        for (uint32_t i = 0; i < ix->head.datasets; i++)
            PL_TRY(use(context, ix->data_fd[i], 0, ix->record[i].offset, err));
        return PL_OK;
    }
    for (; next_extent(ix, at, &begin, &end); at = end)
        if (begin > at) PL_TRY(use(context, ix->fd, at, begin - at, err));
    return ix->head.file_bytes > at ? use(context, ix->fd, at, ix->head.file_bytes - at, err) : PL_OK;
}

/* ---- behind the end ---- */

/* Each file of it, and where it must end: use gets the bytes that lie behind. */
static pl_status each_rest(const pl_block_index *ix, gap_use use, void *context, pl_error *err)
{
    struct stat st;
    for (uint32_t i = 0; i <= ix->head.datasets; i++) {
        const bool is_index = i == ix->head.datasets;
        const int fd = is_index ? ix->fd : ix->data_fd[i];
        const uint64_t end = is_index ? ix->head.file_bytes : pl_block_file_end(ix, i);
        if (!is_index && ix->head.form != PL_BLOCK_NPY) continue;
        if (fstat(fd, &st) != 0)
            return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", ix->path, strerror(errno));
        if ((uint64_t)st.st_size > end) PL_TRY(use(context, fd, end, (uint64_t)st.st_size - end, err));
    }
    return PL_OK;
}

static pl_status count_rest(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *err)
{
    (void)fd, (void)at, (void)err;
    *(uint64_t *)context += bytes;
    return PL_OK;
}

static pl_status cut_rest(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *err)
{
    (void)bytes;
    if (ftruncate(fd, (off_t)at) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: what lies behind its end cannot be cut off: %s", (const char *)context,
                   strerror(errno));
}

/* ---- the hash ---- */

typedef struct summing {
    const char *path;
    pl_checksum sum;
} summing;

static pl_status add_gap(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *err)
{
    summing *s = context;
    char page[PL_BLOCK_ALIGN];
    for (uint64_t done = 0; done < bytes; done += sizeof page) {
        uint64_t n = bytes - done < sizeof page ? bytes - done : sizeof page;
        PL_TRY(pl_file_read_at(fd, s->path, at + done, page, n, err));
        pl_checksum_update(&s->sum, page, n);
    }
    return PL_OK;
}

static pl_status hash_structure(const pl_block_index *ix, uint64_t *hash, pl_error *err)
{
    summing s = {.path = ix->path};
    pl_checksum_init(&s.sum);
    PL_TRY(each_gap(ix, add_gap, &s, err));
    *hash = pl_checksum_value(&s.sum);
    return PL_OK;
}

pl_status pl_block_structure_note(const pl_block_index *ix, pl_error *err)
{
    uint64_t hash;
    PL_TRY(hash_structure(ix, &hash, err));
    pl_block_mark mark = {hash, pl_block_seal(ix, ix->head.blocks, hash)};
    return pl_block_mark_write(ix, ix->head.blocks, &mark, err);
}

pl_status pl_block_structure_check(const pl_block_index *ix, bool *is_sound, pl_error *err)
{
    pl_block_mark mark;
    uint64_t hash = 0, rest = 0;
    *is_sound = false;
    PL_TRY(each_rest(ix, count_rest, &rest, err));
    PL_TRY(pl_block_mark_read(ix, ix->head.blocks, &mark, err));
    pl_status status = hash_structure(ix, &hash, err);
    if (status == PL_E_DATA) return PL_OK; /* it ends too soon */
    *is_sound =
        status == PL_OK && rest == 0 && mark.hash == hash && mark.seal == pl_block_seal(ix, ix->head.blocks, hash);
    return status;
}

/* ---- mending ---- */

static pl_status empty_gap(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *err)
{
    return pl_block_write_zeros(fd, context, at, bytes, err);
}

size_t pl_block_npy_header(const pl_block_dataset *d, char header[PL_NPY_HEADER_MAX])
{
    return pl_npy_header(d->dtype, d->is_text ? d->shape[d->rank - 1] : 0, d->rank - d->is_text, d->shape, header);
}

static pl_status write_npy_headers(const pl_block_index *ix, pl_error *err)
{
    char header[PL_NPY_HEADER_MAX];
    for (uint32_t i = 0; i < ix->head.datasets; i++)
        PL_TRY(pl_file_put(ix->data_fd[i], ix->path, 0, header, pl_block_npy_header(&ix->dataset[i], header), err));
    return PL_OK;
}

typedef struct copying {
    int from;
    const char *from_path, *to_path;
} copying;

static pl_status copy_gap(void *context, int fd, uint64_t at, uint64_t bytes, pl_error *err)
{
    const copying *c = context;
    char page[PL_BLOCK_ALIGN];
    for (uint64_t done = 0; done < bytes; done += sizeof page) {
        uint64_t n = bytes - done < sizeof page ? bytes - done : sizeof page;
        PL_TRY(pl_file_read_at(c->from, c->from_path, at + done, page, n, err));
        PL_TRY(pl_file_put(fd, c->to_path, at + done, page, n, err));
    }
    return PL_OK;
}

static bool same_places(const pl_block_index *a, const pl_block_index *b)
{
    bool same = a->head.at == b->head.at && a->head.file_bytes == b->head.file_bytes;
    for (uint32_t i = 0; same && i < a->head.datasets; i++) same = a->record[i].offset == b->record[i].offset;
    return same;
}

/* libhdf5 makes the same file once more, empty, and what is around the data is taken from there. */
static pl_status copy_hdf5(const pl_block_index *ix, pl_block_index *again, const pl_block_layout *l, const char *path,
                           pl_error *err)
{
    again->fd = pl_io_open(path, O_CREAT | O_TRUNC | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (again->fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s", path, strerror(errno));
    pl_block_index_fill(again, l, PL_BLOCK_HDF5);
    again->head.index_bytes = ix->head.index_bytes; /* its own number of slots */
    PL_TRY(pl_block_hdf5_create(again, l, path, err));
    if (!same_places(ix, again))
        return pl_fail(err, PL_E_DATA,
                       "%s: what HDF5 has around its data is damaged, and this libhdf5 would place the data elsewhere; "
                       "use the one that made it, or move the file away and make it anew",
                       ix->path);
    copying c = {again->fd, path, ix->path};
    return each_gap(ix, copy_gap, &c, err);
}

static pl_status mend_hdf5(const pl_block_index *ix, const pl_block_layout *l, pl_error *err)
{
    char path[PL_FILE_TEMPORARY_MAX];
    pl_block_index *again = pl_alloc(1, sizeof *again);
    if (!again) return pl_fail(err, PL_E_NOMEM, "%s: no memory to mend it", ix->path);
    pl_file_temporary(ix->path, "", path);
    pl_block_index_init(again, ix->path);
    pl_status status = copy_hdf5(ix, again, l, path, err);
    if (again->fd >= 0) close(again->fd);
    (void)pl_remove_file(path, NULL);
    pl_free(again);
    return status;
}

pl_status pl_block_structure_mend(const pl_block_index *ix, const pl_block_layout *l, pl_error *err)
{
    switch ((pl_block_form)ix->head.form) {
    case PL_BLOCK_NPY:
        PL_TRY(write_npy_headers(ix, err));
        break;
    case PL_BLOCK_HDF5:
        PL_TRY(mend_hdf5(ix, l, err));
        break;
    default:
        PL_TRY(each_gap(ix, empty_gap, (void *)ix->path, err));
    }
    PL_TRY(each_rest(ix, cut_rest, (void *)ix->path, err));
    return pl_block_structure_note(ix, err);
}
