#include "store/block_index.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"

uint64_t pl_block_seal(const pl_block_index *ix, uint64_t block, uint64_t hash)
{
    const uint64_t words[3] = {hash, block, ix->head.checksum};
    return pl_checksum_of(words, sizeof words);
}

static bool is_empty(const pl_block_mark *m) { return m->hash == 0 && m->seal == 0; }

static uint64_t mark_at(const pl_block_index *ix, uint64_t block)
{
    return pl_block_marks_at(&ix->head) + block * sizeof(pl_block_mark);
}

pl_status pl_block_mark_read(const pl_block_index *ix, uint64_t block, pl_block_mark *mark, pl_error *err)
{
    return pl_file_read_at(ix->fd, ix->path, mark_at(ix, block), mark, sizeof *mark, err);
}

pl_status pl_block_mark_write(const pl_block_index *ix, uint64_t block, const pl_block_mark *mark, pl_error *err)
{
    return pl_file_put(ix->fd, ix->path, mark_at(ix, block), mark, sizeof *mark, err);
}

/* Calls `use` with each mark, in order; what was read leaves the page cache. */
static pl_status each_mark(const pl_block_index *ix,
                           pl_status (*use)(void *context, uint64_t block, const pl_block_mark *, pl_error *),
                           void *context, pl_error *err)
{
    enum { AT_ONCE = 256 };
    pl_block_mark marks[AT_ONCE];
    for (uint64_t block = 0; block < ix->head.blocks; block += AT_ONCE) {
        uint64_t left = ix->head.blocks - block, n = left < AT_ONCE ? left : AT_ONCE;
        PL_TRY(pl_file_read_at(ix->fd, ix->path, mark_at(ix, block), marks, n * sizeof *marks, err));
        for (uint64_t i = 0; i < n; i++) PL_TRY(use(context, block + i, &marks[i], err));
    }
    posix_fadvise(ix->fd, (off_t)mark_at(ix, 0), (off_t)pl_block_marks_bytes(ix->head.blocks), POSIX_FADV_DONTNEED);
    return PL_OK;
}

typedef struct reading {
    const pl_block_index *ix;
    uint64_t *bitmap, done, bad;
} reading;

static pl_status note(void *context, uint64_t block, const pl_block_mark *m, pl_error *err)
{
    reading *r = context;
    (void)err;
    if (is_empty(m)) return PL_OK;
    bool whole = m->seal == pl_block_seal(r->ix, block, m->hash);
    r->done += whole;
    r->bad += !whole;
    if (whole) r->bitmap[block / 64] |= UINT64_C(1) << block % 64;
    return PL_OK;
}

pl_status pl_block_marks_read(const pl_block_index *ix, uint64_t *bitmap, uint64_t *done, uint64_t *bad, pl_error *err)
{
    reading r = {.ix = ix, .bitmap = bitmap};
    memset(bitmap, 0, (ix->head.blocks + 63) / 64 * sizeof *bitmap);
    PL_TRY(each_mark(ix, note, &r, err));
    *done = r.done;
    *bad = r.bad;
    return PL_OK;
}

/* ---- mending ---- */

typedef struct mending {
    const pl_block_index *ix;
    uint64_t file_bytes[PL_BLOCK_DATASETS_MAX], cleared;
} mending;

/* Does a piece of it end behind the end of its file? */
static bool is_cut_off(const mending *m, uint64_t block)
{
    const pl_block_index *ix = m->ix;
    uint64_t offset, bytes;
    for (uint32_t i = 0; ix->short_files && i < ix->layout.datasets; i++)
        if (pl_block_piece(&ix->layout, block, i, &offset, &bytes) &&
            ix->record[i].offset + offset + bytes > m->file_bytes[i])
            return true;
    return false;
}

static pl_status mend(void *context, uint64_t block, const pl_block_mark *mark, pl_error *err)
{
    mending *m = context;
    if (is_empty(mark) || (mark->seal == pl_block_seal(m->ix, block, mark->hash) && !is_cut_off(m, block)))
        return PL_OK;
    m->cleared++;
    return pl_block_mark_write(m->ix, block, &(pl_block_mark){0}, err);
}

pl_status pl_block_marks_mend(const pl_block_index *ix, uint64_t *cleared, pl_error *err)
{
    mending m = {.ix = ix};
    for (uint32_t i = 0; i < ix->layout.datasets; i++) {
        off_t end = lseek(ix->data_fd[i], 0, SEEK_END);
        m.file_bytes[i] = end > 0 ? (uint64_t)end : 0;
    }
    PL_TRY(each_mark(ix, mend, &m, err));
    *cleared = m.cleared;
    return PL_OK;
}

/* ---- bytes ---- */

pl_status pl_block_write_zeros(int fd, const char *path, uint64_t offset, uint64_t bytes, pl_error *err)
{
    static const char zeros[PL_BLOCK_ALIGN];
    for (uint64_t at = 0; at < bytes; at += sizeof zeros) {
        uint64_t n = bytes - at < sizeof zeros ? bytes - at : sizeof zeros;
        PL_TRY(pl_file_put(fd, path, offset + at, zeros, n, err));
    }
    return PL_OK;
}

pl_status pl_block_carry_look(const pl_block_index *ix, bool empty_it, bool *was_empty, pl_error *err)
{
    static const char zeros[PL_BLOCK_ALIGN];
    char page[PL_BLOCK_ALIGN];
    const pl_block_head *h = &ix->head;
    const uint64_t begin = pl_block_carry_at(h, 0, 0), end = pl_block_carry_at(h, h->carry_slots, 0);
    *was_empty = true;
    for (uint64_t at = begin; at < end; at += sizeof page) {
        PL_TRY(pl_file_read_at(ix->fd, ix->path, at, page, sizeof page, err));
        if (memcmp(page, zeros, sizeof page) == 0) continue;
        *was_empty = false;
        if (empty_it) PL_TRY(pl_file_put(ix->fd, ix->path, at, zeros, sizeof zeros, err));
    }
    if (end > begin) posix_fadvise(ix->fd, (off_t)begin, (off_t)(end - begin), POSIX_FADV_DONTNEED);
    return PL_OK;
}
