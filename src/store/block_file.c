/* The runner's side: in memory of the caller, by pwrite. */
#include "store/block_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "store/block_index.h"
#include "store/checksum.h"

/* What was written and may be in the page cache: two windows, as base/file.h has them, of ranges. */
enum { RANGES = 64, PAGE = 4096, RANGE_EDGES_BYTES = 2 * PAGE };

typedef struct range {
    int fd;
    uint64_t at, bytes;
} range;

typedef struct window {
    range of[RANGES];
    uint32_t count;
    uint64_t charged; /* bytes and the edges of pages */
} window;

typedef struct piece {
    uint64_t at; /* so much of it was put */
    pl_checksum sum;
} piece;

typedef struct finished {
    uint64_t block, hash;
    bool marked;
} finished;

struct pl_block_file {
    const pl_block_layout *layout;
    pl_block_use use;
    uint64_t *done; /* a bit a block */
    uint64_t done_count, found_bytes, written_bytes;
    uint64_t *open; /* [open_max]: block, or PL_BLOCK_NONE */
    piece *pieces;  /* [open_max][datasets] */
    finished *finished;
    uint32_t finished_count;
    bool data_dirty[PL_BLOCK_DATASETS_MAX], index_dirty;
    window now, before;
    pl_error failed; /* what the disk said once */
    pl_block_index index;
};

/* ---- memory ---- */

typedef struct parts {
    uint64_t done, open, pieces, finished, bytes; /* offsets, and the end */
} parts;

static parts parts_of(const pl_block_layout *l, const pl_block_use *use)
{
    parts p = {.done = pl_align_up(sizeof(pl_block_file), 64)};
    p.open = pl_align_up(p.done + (pl_block_count(l) + 63) / 64 * sizeof(uint64_t), 64);
    p.pieces = pl_align_up(p.open + use->open_max * sizeof(uint64_t), 64);
    p.finished = pl_align_up(p.pieces + (uint64_t)use->open_max * l->datasets * sizeof(piece), 64);
    p.bytes = pl_align_up(p.finished + use->finished_max * sizeof(finished), 64);
    return p;
}

uint64_t pl_block_memory_bytes(const pl_block_layout *l, const pl_block_use *use) { return parts_of(l, use).bytes; }

/* Two windows; pages of marks that a commit touches, of heads of carries that are looked at, and some of the index that
 * stay since open. */
uint64_t pl_block_cache_bytes(const pl_block_layout *l, const pl_block_use *use)
{
    enum { OTHERS = 16 };
    const uint64_t pages = use->finished_max + 2 * (uint64_t)l->carry_slots + OTHERS;
    return 2 * (uint64_t)PL_FILE_WINDOW_BYTES + pages * PAGE;
}

static pl_block_file *lay_out(const pl_block_layout *l, const pl_block_use *use, void *memory)
{
    pl_block_file *f = memory;
    const parts p = parts_of(l, use);
    memset(f, 0, p.bytes);
    f->layout = l;
    f->use = *use;
    f->done = (uint64_t *)((char *)memory + p.done);
    f->open = (uint64_t *)((char *)memory + p.open);
    f->pieces = (piece *)((char *)memory + p.pieces);
    f->finished = (finished *)((char *)memory + p.finished);
    for (uint32_t i = 0; i < use->open_max; i++) f->open[i] = PL_BLOCK_NONE;
    return f;
}

/* ---- the page cache ---- */

/* A write that did not reach the disk cannot be made good: which one it was is not known. The file takes no more. */
static pl_status fail_for_good(pl_block_file *f, int error, pl_error *err)
{
    (void)pl_fail(&f->failed, PL_E_STORAGE,
                  "%s: what was written did not reach the disk: %s%s; blocks that are marked are safe, the others are "
                  "made again when the run goes on",
                  f->index.path, strerror(error), pl_io_hint(error));
    return pl_fail(err, PL_E_STORAGE, "%s", f->failed.text);
}

static pl_status check_alive(const pl_block_file *f, pl_error *err)
{
    return f->failed.status == PL_OK ? PL_OK : pl_fail(err, f->failed.status, "%s", f->failed.text);
}

/* Whole pages: of others the kernel keeps the edges. */
static int drop(window *w)
{
    int error = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t at = w->of[i].at / PAGE * PAGE, end = pl_align_up(w->of[i].at + w->of[i].bytes, PAGE);
        int one = pl_file_drop(w->of[i].fd, at, end - at);
        if (!error) error = one;
    }
    w->count = 0;
    w->charged = 0;
    return error;
}

/* The last full window is being written back while the next one fills. */
static pl_status turn(pl_block_file *f, pl_error *err)
{
    int error = 0;
    for (uint32_t i = 0; i < f->now.count && !error; i++)
        error = pl_file_start_write_back(f->now.of[i].fd, f->now.of[i].at, f->now.of[i].bytes);
    if (!error) error = drop(&f->before);
    f->before = f->now;
    f->now.count = 0;
    f->now.charged = 0;
    return error ? fail_for_good(f, error, err) : PL_OK;
}

/* Bytes that may be written at this place before the window turns. */
static uint64_t room_at(const pl_block_file *f, int fd, uint64_t at, range **goes_on)
{
    const window *w = &f->now;
    uint64_t edges = RANGE_EDGES_BYTES;
    *goes_on = NULL;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->of[i].fd == fd && w->of[i].at + w->of[i].bytes == at) *goes_on = (range *)&w->of[i], edges = 0;
    if (w->charged + edges >= PL_FILE_WINDOW_BYTES || (edges && w->count == RANGES)) return 0;
    return PL_FILE_WINDOW_BYTES - w->charged - edges;
}

static pl_status write_bounded(pl_block_file *f, int fd, uint64_t at, const void *data, uint64_t bytes, pl_error *err)
{
    const char *from = data;
    while (bytes) {
        range *goes_on;
        uint64_t room = room_at(f, fd, at, &goes_on);
        if (room == 0) {
            PL_TRY(turn(f, err));
            continue;
        }
        uint64_t n = bytes < room ? bytes : room;
        PL_TRY(pl_file_put(fd, f->index.path, at, from, n, err));
        if (goes_on)
            goes_on->bytes += n;
        else
            f->now.of[f->now.count++] = (range){fd, at, n};
        f->now.charged += n + (goes_on ? 0 : RANGE_EDGES_BYTES);
        from += n, at += n, bytes -= n;
    }
    return PL_OK;
}

/* ---- the carry ---- */

static bool is_done(const pl_block_file *f, uint64_t block)
{
    return block < f->index.head.blocks && (f->done[block / 64] >> block % 64 & 1);
}

static bool is_finished(const pl_block_file *f, uint64_t block)
{
    for (uint32_t i = 0; i < f->finished_count; i++)
        if (f->finished[i].block == block) return true;
    return is_done(f, block);
}

static uint64_t seal_of(const pl_block_file *f, const pl_block_carry_head *h)
{
    const uint64_t words[4] = {h->after, h->next, h->hash, f->index.head.checksum};
    return pl_checksum_of(words, sizeof words);
}

static pl_status read_carry(const pl_block_file *f, uint32_t slot, uint32_t place, pl_block_carry_head *h,
                            bool *is_valid, pl_error *err)
{
    uint64_t at = pl_block_carry_at(&f->index.head, slot, place);
    PL_TRY(pl_file_read_at(f->index.fd, f->index.path, at, h, sizeof *h, err));
    posix_fadvise(f->index.fd, (off_t)at, PL_BLOCK_ALIGN, POSIX_FADV_DONTNEED); /* a page that was written stays */
    *is_valid = h->seal == seal_of(f, h) && is_done(f, h->after);
    return PL_OK;
}

/* The place that nothing would go on from after a kill now. Where both would serve, since the slot went from one
 * sequence to another, the one that does not serve this sequence goes: the other begins anew then. */
static pl_status free_place(const pl_block_file *f, uint32_t slot, uint64_t after, uint32_t *place, pl_error *err)
{
    pl_block_carry_head h[2];
    bool needed[2];
    for (uint32_t i = 0; i < 2; i++) {
        PL_TRY(read_carry(f, slot, i, &h[i], &needed[i], err));
        needed[i] = needed[i] && !is_done(f, h[i].next);
    }
    *place = needed[0] && (!needed[1] || h[0].next == after) ? 1 : 0;
    return PL_OK;
}

pl_status pl_block_file_carry(pl_block_file *f, uint32_t slot, uint64_t after, uint64_t next, const void *data,
                              pl_error *err)
{
    uint32_t place;
    pl_block_carry_head h = {.after = after, .next = next};
    const uint64_t bytes = f->index.head.carry_bytes;
    PL_TRY(check_alive(f, err));
    if (slot >= f->index.head.carry_slots || after >= f->index.head.blocks || next >= f->index.head.blocks)
        return pl_fail(err, PL_E_INTERNAL, "%s: there is no slot %u to go on from, or no such block", f->index.path,
                       slot);
    PL_TRY(free_place(f, slot, after, &place, err));
    h.hash = pl_checksum_of(data, bytes);
    h.seal = seal_of(f, &h);
    uint64_t at = pl_block_carry_at(&f->index.head, slot, place);
    f->index_dirty = true;
    PL_TRY(write_bounded(f, f->index.fd, at + sizeof h, data, bytes, err));
    return write_bounded(f, f->index.fd, at, &h, sizeof h, err);
}

pl_status pl_block_file_recall(pl_block_file *f, uint64_t next, void *data, bool *found, pl_error *err)
{
    const pl_block_head *head = &f->index.head;
    *found = false;
    for (uint32_t i = 0; i < 2 * head->carry_slots && !*found; i++) {
        pl_block_carry_head h;
        bool is_valid;
        PL_TRY(read_carry(f, i / 2, i % 2, &h, &is_valid, err));
        if (!is_valid || h.next != next) continue;
        uint64_t at = pl_block_carry_at(head, i / 2, i % 2) + sizeof h;
        PL_TRY(pl_file_read_at(f->index.fd, f->index.path, at, data, head->carry_bytes, err));
        *found = pl_checksum_of(data, head->carry_bytes) == h.hash;
        posix_fadvise(f->index.fd, (off_t)at, (off_t)head->carry_bytes, POSIX_FADV_DONTNEED);
    }
    return PL_OK;
}

uint32_t pl_block_file_slots(const pl_block_file *f) { return f->index.head.carry_slots; }

static pl_status empty_carry(pl_block_file *f, pl_error *err)
{
    bool was_empty;
    PL_TRY(pl_block_carry_look(&f->index, true, &was_empty, err));
    return was_empty || pl_io_sync_data(f->index.fd) == 0 ? PL_OK : fail_for_good(f, errno, err);
}

/* ---- open ---- */

static pl_status open_and_match(pl_block_file *f, const char *path, pl_error *err)
{
    uint64_t bad;
    PL_TRY(pl_block_index_open(&f->index, path, true, NULL, err));
    PL_TRY(pl_block_index_match(&f->index, f->layout, err));
    PL_TRY(pl_block_index_lock_to_write(&f->index, err));
    if (f->index.short_files)
        return pl_fail(err, PL_E_DATA, "%s: a file of it is truncated; plan again with it there: that makes it whole",
                       path);
    PL_TRY(pl_block_marks_read(&f->index, f->done, &f->done_count, &bad, err));
    f->found_bytes = pl_block_done_bytes(f->layout, f->done);
    posix_fadvise(f->index.fd, 0, 0, POSIX_FADV_RANDOM); /* a look at a carry's head is to read no more than that */
    return f->done_count == f->index.head.blocks ? empty_carry(f, err) : PL_OK;
}

pl_status pl_block_file_open(const char *path, const pl_block_layout *l, const pl_block_use *use, void *memory,
                             uint64_t memory_bytes, pl_block_file **out, pl_error *err)
{
    *out = NULL;
    PL_TRY(pl_block_layout_check(l, err));
    if (use->open_max < 1 || use->finished_max < 1 || memory_bytes < pl_block_memory_bytes(l, use))
        return pl_fail(err, PL_E_INTERNAL, "%s: is opened in %" PRIu64 " bytes, but needs %" PRIu64, path, memory_bytes,
                       pl_block_memory_bytes(l, use));
    pl_block_file *f = lay_out(l, use, memory);
    pl_status status = open_and_match(f, path, err);
    if (status == PL_OK)
        *out = f;
    else
        pl_block_index_close(&f->index);
    return status;
}

bool pl_block_file_is_done(const pl_block_file *f, uint64_t block) { return is_done(f, block); }
uint64_t pl_block_file_done(const pl_block_file *f) { return f->done_count; }
uint64_t pl_block_file_written_bytes(const pl_block_file *f) { return f->written_bytes; }
bool pl_block_file_has_locks(const pl_block_file *f) { return pl_block_index_has_locks(&f->index); }

uint64_t pl_block_file_there_bytes(const pl_block_file *f) { return f->found_bytes + f->written_bytes; }

uint64_t pl_block_file_data_bytes(const pl_block_file *f)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < f->layout->datasets; i++)
        if (pl_block_is_made(&f->layout->dataset[i])) bytes += pl_block_dataset_bytes(&f->layout->dataset[i]);
    return bytes;
}

/* ---- blocks ---- */

static pl_status misused(const pl_block_file *f, uint64_t block, const char *what, pl_error *err)
{
    char name[PL_BLOCK_SENTENCE_BYTES];
    return pl_fail(err, PL_E_INTERNAL, "%s: %s: %s", f->index.path, pl_block_name(f->layout, block, name), what);
}

/* Its place among those that are open, or open_max. */
static uint32_t find_open(const pl_block_file *f, uint64_t block)
{
    uint32_t i = 0;
    while (i < f->use.open_max && f->open[i] != block) i++;
    return i;
}

static pl_status begin(pl_block_file *f, uint64_t block, uint32_t *slot, pl_error *err)
{
    *slot = find_open(f, block);
    if (*slot < f->use.open_max) return PL_OK;
    if (is_finished(f, block)) return misused(f, block, "is finished already", err);
    *slot = find_open(f, PL_BLOCK_NONE);
    if (*slot == f->use.open_max) return misused(f, block, "more blocks are open than was planned", err);
    f->open[*slot] = block;
    piece *p = f->pieces + (uint64_t)*slot * f->layout->datasets;
    for (uint32_t i = 0; i < f->layout->datasets; i++) {
        p[i].at = 0;
        pl_checksum_init(&p[i].sum);
    }
    return PL_OK;
}

pl_status pl_block_file_put(pl_block_file *f, uint64_t block, uint32_t dataset, uint64_t offset, const void *data,
                            uint64_t bytes, pl_error *err)
{
    uint64_t piece_at, piece_bytes;
    uint32_t slot;
    PL_TRY(check_alive(f, err));
    if (block >= f->index.head.blocks || dataset >= f->layout->datasets)
        return pl_fail(err, PL_E_INTERNAL, "%s: there is no block %" PRIu64 " or no dataset %u", f->index.path, block,
                       dataset);
    if (!pl_block_piece(f->layout, block, dataset, &piece_at, &piece_bytes))
        return misused(f, block, "does not make this dataset", err);
    PL_TRY(begin(f, block, &slot, err));
    piece *p = f->pieces + (uint64_t)slot * f->layout->datasets + dataset;
    if (offset != p->at || bytes > piece_bytes - p->at)
        return misused(f, block, "what is put does not go on where the last one ended, or is too much", err);
    f->data_dirty[dataset] = true;
    PL_TRY(write_bounded(f, f->index.data_fd[dataset], f->index.record[dataset].offset + piece_at + offset, data, bytes,
                         err));
    pl_checksum_update(&p->sum, data, bytes);
    p->at += bytes;
    f->written_bytes += bytes;
    return PL_OK;
}

/* xxh64 over those of its pieces, as `check` makes it again (block_read.c). */
static pl_status hash_of(const pl_block_file *f, uint32_t slot, uint64_t block, uint64_t *hash, pl_error *err)
{
    const piece *p = f->pieces + (uint64_t)slot * f->layout->datasets;
    uint64_t offset, bytes;
    pl_checksum sum;
    pl_checksum_init(&sum);
    for (uint32_t i = 0; i < f->layout->datasets; i++) {
        if (!pl_block_piece(f->layout, block, i, &offset, &bytes)) continue;
        if (p[i].at != bytes) return misused(f, block, "is finished, but a piece of it is not whole", err);
        uint64_t one = pl_checksum_value(&p[i].sum);
        pl_checksum_update(&sum, &one, sizeof one);
    }
    *hash = pl_checksum_value(&sum);
    return PL_OK;
}

pl_status pl_block_file_finish(pl_block_file *f, uint64_t block, pl_error *err)
{
    uint64_t hash = 0;
    uint32_t slot = find_open(f, block);
    PL_TRY(check_alive(f, err));
    if (block == PL_BLOCK_NONE || slot == f->use.open_max)
        return pl_fail(err, PL_E_INTERNAL, "%s: block %" PRIu64 " is finished, but was not begun", f->index.path,
                       block);
    PL_TRY(hash_of(f, slot, block, &hash, err));
    f->open[slot] = PL_BLOCK_NONE;
    f->finished[f->finished_count++] = (finished){block, hash, false};
    return f->finished_count == f->use.finished_max ? pl_block_file_commit(f, err) : PL_OK;
}

void pl_block_file_abandon(pl_block_file *f, uint64_t block)
{
    uint32_t slot = find_open(f, block);
    if (slot < f->use.open_max) f->open[slot] = PL_BLOCK_NONE;
}

/* ---- commit ---- */

static pl_status sync_data(pl_block_file *f, pl_error *err)
{
    const bool one_file = f->index.head.form != PL_BLOCK_NPY;
    bool shared = f->index_dirty;
    for (uint32_t i = 0; i < f->layout->datasets; i++) {
        if (!f->data_dirty[i]) continue;
        shared |= one_file;
        if (!one_file && pl_io_sync_data(f->index.data_fd[i]) != 0) return fail_for_good(f, errno, err);
        f->data_dirty[i] = false;
    }
    if (shared && pl_io_sync_data(f->index.fd) != 0) return fail_for_good(f, errno, err);
    f->index_dirty = false;
    int error = drop(&f->before);
    if (!error) error = drop(&f->now);
    return error ? fail_for_good(f, error, err) : PL_OK;
}

static finished *find_unmarked(pl_block_file *f, uint64_t block)
{
    for (uint32_t i = 0; i < f->finished_count; i++)
        if (f->finished[i].block == block && !f->finished[i].marked) return &f->finished[i];
    return NULL;
}

/* Is it of the same sequence as the block before it? Then it differs from that in its place on the last axis alone. */
static bool goes_on(const pl_block_file *f, uint64_t block)
{
    uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
    const uint32_t axes = f->layout->kind[pl_block_ranges(f->layout, block, begin, end)].axes;
    return axes > 0 && begin[axes - 1] > 0;
}

/* The marks of the blocks from this one on that are finished, of its sequence, in one write as far as they lie in one
 * page: a kill finds all of them or none. Of a sequence that finished two blocks since the last commit a slot has what
 * the second left, but no longer what the first did: with the first mark alone it would have to begin anew. The next
 * sequence waits for its turn: were it marked before what the slot had before it, both would serve (free_place), and
 * one of the two would have to begin anew. */
static pl_status mark_run(pl_block_file *f, uint64_t block, pl_error *err)
{
    enum { IN_PAGE = PL_BLOCK_ALIGN / sizeof(pl_block_mark) };
    pl_block_mark marks[IN_PAGE];
    uint64_t count = 0;
    for (finished *b; (b = find_unmarked(f, block + count)); count++) {
        if (count && ((block + count) % IN_PAGE == 0 || !goes_on(f, block + count))) break;
        marks[count] = (pl_block_mark){b->hash, pl_block_seal(&f->index, b->block, b->hash)};
        b->marked = true;
    }
    uint64_t at = pl_block_marks_at(&f->index.head) + block * sizeof *marks;
    if (find_unmarked(f, block + count) && goes_on(f, block + count))
        PL_TRY(mark_run(f, block + count, err)); /* the next page, first */
    return pl_file_put(f->index.fd, f->index.path, at, marks, count * sizeof *marks, err);
}

static pl_status write_marks(pl_block_file *f, pl_error *err)
{
    const uint64_t marks = pl_block_marks_at(&f->index.head);
    for (uint32_t i = 0; i < f->finished_count; i++) f->finished[i].marked = false; /* a commit that failed, again */
    for (uint32_t i = 0; i < f->finished_count; i++)
        if (!f->finished[i].marked) PL_TRY(mark_run(f, f->finished[i].block, err));
    if (pl_io_sync_data(f->index.fd) != 0) return fail_for_good(f, errno, err);
    for (uint32_t i = 0; i < f->finished_count; i++)
        posix_fadvise(f->index.fd, (off_t)((marks + f->finished[i].block * sizeof(pl_block_mark)) / PAGE * PAGE), PAGE,
                      POSIX_FADV_DONTNEED);
    return PL_OK;
}

pl_status pl_block_file_commit(pl_block_file *f, pl_error *err)
{
    PL_TRY(check_alive(f, err));
    if (f->finished_count == 0) return PL_OK;
    PL_TRY(sync_data(f, err));
    PL_TRY(write_marks(f, err));
    for (uint32_t i = 0; i < f->finished_count; i++)
        f->done[f->finished[i].block / 64] |= UINT64_C(1) << f->finished[i].block % 64;
    f->done_count += f->finished_count;
    f->finished_count = 0;
    return f->done_count == f->index.head.blocks ? empty_carry(f, err) : PL_OK;
}

pl_status pl_block_file_close(pl_block_file *f, pl_error *err)
{
    if (!f) return PL_OK;
    pl_status status = pl_block_file_commit(f, err);
    pl_block_index_close(&f->index);
    return status;
}
