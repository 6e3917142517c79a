/* Block files from outside: what is in them, and whether it is sound. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "store/block_index.h"
#include "base/checksum.h"
#include "store/not_finite.h"

enum { READ_BYTES = 1 << 20 };

struct pl_block_reader {
    char *path, *text, *buffer;
    uint64_t *bitmap, done, bad;
    uint64_t not_finite; /* numbers, of all that was hashed */
    bool repair;
    struct {
        void *at; /* page by page, the whole dataset; NULL: not yet */
        size_t bytes;
    } mapped[PL_BLOCK_DATASETS_MAX];
    pl_block_index index;
};

static pl_status read_text(pl_block_reader *r, pl_error *err)
{
    const pl_block_head *h = &r->index.head;
    const uint64_t records =
        sizeof *h + h->kinds * sizeof *r->index.kind_record + h->datasets * sizeof *r->index.record;
    r->text = pl_alloc(h->text_bytes + 1, 1);
    if (!r->text) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its text", r->path);
    r->index.layout.text = r->text;
    return pl_file_read_at(r->index.fd, r->path, h->at + records, r->text, h->text_bytes, err);
}

static pl_status read_all(pl_block_reader *r, pl_error *err)
{
    PL_TRY(pl_block_index_open(&r->index, r->path, r->repair, NULL, err));
    if (r->repair) PL_TRY(pl_block_index_lock(&r->index, err));
    PL_TRY(read_text(r, err));
    r->bitmap = pl_alloc((r->index.head.blocks + 63) / 64, sizeof *r->bitmap);
    if (!r->bitmap) return pl_fail(err, PL_E_NOMEM, "%s: no memory for a bit a block", r->path);
    return pl_block_marks_read(&r->index, r->bitmap, &r->done, &r->bad, err);
}

pl_status pl_block_reader_open(const char *path, bool repair, pl_block_reader **out, pl_error *err)
{
    pl_status status = PL_OK;
    *out = NULL;
    pl_block_reader *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look into it", path);
    r->repair = repair;
    r->index.fd = -1;
    r->path = pl_strdup(path);
    r->buffer = pl_alloc(READ_BYTES, 1);
    if (!r->path || !r->buffer) status = pl_fail(err, PL_E_NOMEM, "%s: no memory to look into it", path);
    if (status == PL_OK) status = read_all(r, err);
    if (status == PL_OK)
        *out = r;
    else
        pl_block_reader_close(r);
    return status;
}

void pl_block_reader_close(pl_block_reader *r)
{
    if (!r) return;
    for (uint32_t i = 0; i < PL_BLOCK_DATASETS_MAX; i++)
        if (r->mapped[i].at) munmap(r->mapped[i].at, r->mapped[i].bytes);
    pl_block_index_close(&r->index);
    pl_free(r->bitmap);
    pl_free(r->text);
    pl_free(r->buffer);
    pl_free(r->path);
    pl_free(r);
}

const pl_block_layout *pl_block_reader_layout(const pl_block_reader *r) { return &r->index.layout; }
pl_block_form pl_block_reader_form(const pl_block_reader *r) { return (pl_block_form)r->index.head.form; }
uint64_t pl_block_reader_done(const pl_block_reader *r) { return r->done; }
uint64_t pl_block_reader_bad_marks(const pl_block_reader *r) { return r->bad; }

bool pl_block_reader_is_done(const pl_block_reader *r, uint64_t block)
{
    return block < r->index.head.blocks && (r->bitmap[block / 64] >> block % 64 & 1);
}

pl_status pl_block_reader_read(const pl_block_reader *r, uint32_t dataset, uint64_t offset, void *data, uint64_t bytes,
                               pl_error *err)
{
    const pl_block_dataset_record *d = &r->index.record[dataset];
    if (offset > d->bytes || bytes > d->bytes - offset)
        return pl_fail(err, PL_E_USAGE, "%s: %s has %" PRIu64 " bytes, %" PRIu64 " from %" PRIu64 " on are not in it",
                       r->path, d->name, d->bytes, bytes, offset);
    return pl_file_read_at(r->index.data_fd[dataset], r->path, d->offset + offset, data, bytes, err);
}

static pl_status map_dataset(pl_block_reader *r, uint32_t dataset, uint64_t from, uint64_t bytes, pl_error *err)
{
    const pl_block_dataset_record *d = &r->index.record[dataset];
    void *at = bytes > SIZE_MAX
                   ? MAP_FAILED
                   : mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, r->index.data_fd[dataset], (off_t)from);
    if (at == MAP_FAILED)
        return pl_fail(err, PL_E_NOMEM,
                       "%s: %s cannot be mapped (%" PRIu64 " bytes of addresses): %s; read it in parts instead",
                       r->path, d->name, bytes, bytes > SIZE_MAX ? "there are too few" : strerror(errno));
    r->mapped[dataset].at = at, r->mapped[dataset].bytes = (size_t)bytes;
    return PL_OK;
}

pl_status pl_block_reader_map(pl_block_reader *r, uint32_t dataset, const void **data, pl_error *err)
{
    const pl_block_dataset_record *d = &r->index.record[dataset];
    const uint64_t skipped = d->offset % (uint64_t)sysconf(_SC_PAGESIZE), end = d->offset + d->bytes;
    struct stat st;
    if (fstat(r->index.data_fd[dataset], &st) != 0 || (uint64_t)st.st_size < end)
        return pl_fail(err, PL_E_DATA,
                       "%s: %s ends at byte %" PRIu64 " of its file, which has %" PRIu64
                       ": it is truncated; the run that goes on makes it whole",
                       r->path, d->name, end, (uint64_t)st.st_size);
    if (!r->mapped[dataset].at) PL_TRY(map_dataset(r, dataset, d->offset - skipped, d->bytes + skipped, err));
    *data = (const char *)r->mapped[dataset].at + skipped;
    return PL_OK;
}

/* ---- check ---- */

/* The kernel reads ahead in pieces of up to 2 MiB, and takes one out of the cache only when the range holds all of it:
 * so what was read a little before is named once more. */
static void drop_behind(int fd, uint64_t end, uint64_t bytes)
{
    const uint64_t all = bytes + (4 << 20), from = end > all ? end - all : 0;
    posix_fadvise(fd, (off_t)from, (off_t)(end - from), POSIX_FADV_DONTNEED);
}

/* xxh64 of a part of a dataset; what of it is not finite is counted on the way. */
static pl_status read_part(pl_block_reader *r, uint32_t dataset, uint64_t offset, uint64_t bytes, uint64_t *hash,
                           pl_error *err)
{
    const int fd = r->index.data_fd[dataset];
    const uint64_t from = r->index.record[dataset].offset + offset;
    pl_checksum sum;
    pl_checksum_init(&sum);
    for (uint64_t at = 0; at < bytes; at += READ_BYTES) {
        const size_t n = bytes - at < READ_BYTES ? (size_t)(bytes - at) : READ_BYTES;
        PL_TRY(pl_file_read_at(fd, r->path, from + at, r->buffer, n, err));
        pl_checksum_update(&sum, r->buffer, n);
        r->not_finite += pl_not_finite_count(r->index.dataset[dataset].dtype, r->buffer, n);
        drop_behind(fd, from + at + n, n);
    }
    *hash = pl_checksum_value(&sum);
    return PL_OK;
}

/* PL_OK also where the file ends too soon: then *is_sound is false. */
static pl_status hash_part(pl_block_reader *r, uint32_t dataset, uint64_t offset, uint64_t bytes, uint64_t *hash,
                           bool *is_sound, pl_error *err)
{
    pl_status status = read_part(r, dataset, offset, bytes, hash, err);
    if (status != PL_E_DATA) return status;
    *is_sound = false;
    return PL_OK;
}

static uint64_t bytes_of(const pl_block_reader *r, uint64_t block)
{
    uint64_t offset, bytes, all = 0;
    for (uint32_t i = 0; i < r->index.layout.datasets; i++)
        if (pl_block_piece(&r->index.layout, block, i, &offset, &bytes)) all += bytes;
    return all;
}

pl_status pl_block_reader_verify(pl_block_reader *r, uint64_t block, bool *is_sound, pl_error *err)
{
    uint64_t offset, bytes, hash = 0;
    pl_block_mark mark;
    pl_checksum sum;
    *is_sound = true;
    pl_checksum_init(&sum);
    for (uint32_t i = 0; i < r->index.layout.datasets && *is_sound; i++) {
        if (!pl_block_piece(&r->index.layout, block, i, &offset, &bytes)) continue;
        PL_TRY(hash_part(r, i, offset, bytes, &hash, is_sound, err));
        pl_checksum_update(&sum, &hash, sizeof hash);
    }
    PL_TRY(pl_block_mark_read(&r->index, block, &mark, err));
    *is_sound = *is_sound && mark.hash == pl_checksum_value(&sum);
    return PL_OK;
}

pl_status pl_block_reader_verify_constant(pl_block_reader *r, uint32_t dataset, bool *is_sound, pl_error *err)
{
    const pl_block_dataset_record *d = &r->index.record[dataset];
    uint64_t hash = 0;
    *is_sound = true;
    PL_TRY(hash_part(r, dataset, 0, d->bytes, &hash, is_sound, err));
    *is_sound = *is_sound && hash == d->constant_hash;
    return PL_OK;
}

static pl_status check_constants(pl_block_reader *r, void (*tell)(void *, uint64_t, const char *), void *context,
                                 pl_block_checked *c, pl_error *err)
{
    for (uint32_t i = 0; i < r->index.layout.datasets; i++) {
        const pl_block_dataset_record *d = &r->index.record[i];
        bool is_sound;
        if (!(d->flags & PL_BLOCK_FLAG_CONSTANT)) continue;
        PL_TRY(pl_block_reader_verify_constant(r, i, &is_sound, err));
        c->bytes += d->bytes;
        if (is_sound) continue;
        c->constants_damaged++;
        if (tell) tell(context, PL_BLOCK_NONE, d->name);
    }
    return PL_OK;
}

static pl_status check_structure(const pl_block_reader *r, void (*tell)(void *, uint64_t, const char *), void *context,
                                 pl_block_checked *c, pl_error *err)
{
    static const char *const what[] = {[PL_BLOCK_NATIVE] = "what lies between the datasets, or behind them",
                                       [PL_BLOCK_HDF5] = "what HDF5 has around its datasets, or what lies behind them",
                                       [PL_BLOCK_NPY] = "the header of a .npy file, or what lies behind its data"};
    bool is_sound;
    PL_TRY(pl_block_structure_check(&r->index, &is_sound, err));
    if (is_sound) return PL_OK;
    c->constants_damaged++;
    if (tell) tell(context, PL_BLOCK_NONE, what[r->index.head.form]);
    return PL_OK;
}

static pl_status clear(pl_block_reader *r, uint64_t block, pl_error *err)
{
    r->bitmap[block / 64] &= ~(UINT64_C(1) << block % 64);
    r->done--;
    return pl_block_mark_write(&r->index, block, &(pl_block_mark){0}, err);
}

static pl_status finish_repair(pl_block_reader *r, const pl_block_checked *c, pl_error *err)
{
    uint64_t cleared;
    if (c->constants_damaged) PL_TRY(pl_block_mark_write(&r->index, r->index.head.blocks, &(pl_block_mark){0}, err));
    PL_TRY(pl_block_marks_mend(&r->index, &cleared, err));
    r->bad = 0;
    if (pl_io_sync_data(r->index.fd) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: the cleared marks did not reach the disk", r->path);
}

pl_status pl_block_reader_check(pl_block_reader *r, void (*tell)(void *, uint64_t, const char *), void *context,
                                pl_block_checked *c, pl_error *err)
{
    char name[PL_BLOCK_SENTENCE_BYTES];
    *c = (pl_block_checked){0};
    PL_TRY(check_structure(r, tell, context, c, err));
    PL_TRY(check_constants(r, tell, context, c, err));
    for (uint64_t block = 0; block < r->index.head.blocks; block++) {
        bool is_sound;
        if (!pl_block_reader_is_done(r, block)) continue;
        const uint64_t before = r->not_finite;
        PL_TRY(pl_block_reader_verify(r, block, &is_sound, err));
        c->checked++;
        c->bytes += bytes_of(r, block);
        if (is_sound) c->not_finite += r->not_finite - before;
        if (is_sound) continue;
        c->damaged++;
        if (tell) tell(context, block, pl_block_name(&r->index.layout, block, name));
        if (r->repair) PL_TRY(clear(r, block, err));
    }
    return r->repair ? finish_repair(r, c, err) : PL_OK;
}
