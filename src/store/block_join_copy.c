/* Parts in the native or .npy form as one file of that form: the one that a run of all of the job makes, made here by
 * the same hands (block_make.c, block_file.c), so with its room reserved first, its bytes, and blocks that are done or
 * not: who is killed goes on.
 *
 * Blocks of the whole need not be those of the parts: what a block holds of a dataset are bytes in a row, and parts
 * have consecutive ranges of them. Before a part's bytes are taken, the blocks of it that have them are compared with
 * their checksums. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "store/block_join.h"

enum { COPY_BYTES = 1 << 20, COMMIT_BYTES = 256 << 20, COMMIT_BLOCKS = 4096, ALIGNMENT = 64 };

typedef struct copying {
    const pl_joining *j;
    pl_block_layout layout; /* of the whole */
    pl_block_kind kind[PL_BLOCK_KINDS_MAX];
    pl_block_dataset dataset[PL_BLOCK_DATASETS_MAX];
    void *constant[PL_BLOCK_DATASETS_MAX]; /* NULL: it is none */
    pl_block_reader *reader;               /* of one part at a time */
    pl_join_part *open;                    /* that one; NULL: none */
    pl_block_file *file;
    char *buffer;
    uint64_t uncommitted;
    uint64_t next[PL_BLOCK_KINDS_MAX]; /* moving: the first block of each kind that is not done, as far as is known */
} copying;

/* ---- parts ---- */

static pl_status open_part(copying *c, pl_join_part *p, pl_error *err)
{
    if (c->open == p) return PL_OK;
    pl_block_reader_close(c->reader);
    c->reader = NULL, c->open = NULL;
    PL_TRY(pl_block_reader_open(p->path, false, &c->reader, err));
    c->open = p;
    return PL_OK;
}

/* Bytes in a dataset of one item on the axis that is split. */
static uint64_t row_bytes(const copying *c, uint32_t dataset)
{
    return pl_block_dataset_bytes(&c->dataset[dataset]) / c->layout.kind[0].axis[0].extent;
}

static pl_status is_damaged(const pl_join_part *p, const char *name, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s: %s: damaged; `plimsoll results check --repair` and its run make that again, then join goes on",
                   p->path, name);
}

/* ---- the layout of the whole ---- */

static pl_status read_constant(copying *c, uint32_t dataset, uint64_t *at, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(c->reader);
    const uint64_t bytes = pl_block_dataset_bytes(&l->dataset[dataset]);
    bool is_sound;
    PL_TRY(pl_block_reader_verify_constant(c->reader, dataset, &is_sound, err));
    if (!is_sound) return is_damaged(c->open, l->dataset[dataset].name, err);
    PL_TRY(pl_block_reader_read(c->reader, dataset, 0, (char *)c->constant[dataset] + *at, bytes, err));
    if (l->dataset[dataset].kind != PL_BLOCK_NO_KIND) *at += bytes;
    return PL_OK;
}

static pl_status read_constants(copying *c, pl_error *err)
{
    uint64_t at[PL_BLOCK_DATASETS_MAX] = {0};
    for (uint32_t i = 0; i < c->layout.datasets; i++) {
        if (!c->dataset[i].constant) continue;
        c->constant[i] = pl_alloc(pl_block_dataset_bytes(&c->dataset[i]), 1);
        if (!c->constant[i]) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its constants", c->j->path);
        c->dataset[i].constant = c->constant[i];
    }
    for (size_t k = 0; k < c->j->count; k++) {
        PL_TRY(open_part(c, &c->j->part[k], err));
        for (uint32_t i = 0; i < c->layout.datasets; i++)
            if (c->constant[i]) PL_TRY(read_constant(c, i, &at[i], err));
    }
    return PL_OK;
}

static pl_status make_layout(copying *c, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(c->j->like);
    c->layout = *l;
    c->layout.kind = c->kind, c->layout.dataset = c->dataset;
    c->layout.first = c->layout.whole = 0;
    for (uint32_t i = 0; i < l->kinds; i++) {
        c->kind[i] = l->kind[i];
        c->kind[i].axis[0].extent = l->whole;
        if (l->kind[i].axes == 0)
            return pl_fail(err, PL_E_UNSUPPORTED, "%s: its blocks of %s are not split by parts", c->j->path,
                           l->kind[i].name);
    }
    for (uint32_t i = 0; i < l->datasets; i++) {
        c->dataset[i] = l->dataset[i];
        if (l->dataset[i].kind != PL_BLOCK_NO_KIND) c->dataset[i].shape[0] = l->whole;
    }
    return read_constants(c, err);
}

/* ---- blocks ---- */

/* The blocks of a part in which its items [begin, end) lie; all other places are those of the whole's block. */
static pl_status verify(copying *c, uint32_t kind, uint64_t begin, uint64_t end, const uint64_t *place, pl_error *err)
{
    const pl_block_layout *l = pl_block_reader_layout(c->reader);
    const uint64_t step = l->kind[kind].axis[0].step;
    uint64_t at[PL_BLOCK_AXES_MAX];
    char name[PL_BLOCK_SENTENCE_BYTES];
    memcpy(at, place, sizeof at);
    for (at[0] = begin; at[0] < end; at[0] = (at[0] / step + 1) * step) {
        const uint64_t block = pl_block_at(l, kind, at);
        bool is_sound = true;
        if (c->open->sound == block) continue;
        PL_TRY(pl_block_reader_verify(c->reader, block, &is_sound, err));
        if (!is_sound) return is_damaged(c->open, pl_block_name(l, block, name), err);
        c->open->sound = block;
    }
    return PL_OK;
}

static pl_status copy_bytes(copying *c, uint64_t block, uint32_t dataset, uint64_t from, uint64_t to, uint64_t bytes,
                            pl_error *err)
{
    for (uint64_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < COPY_BYTES ? bytes - at : COPY_BYTES;
        PL_TRY(pl_block_reader_read(c->reader, dataset, from + at, c->buffer, n, err));
        PL_TRY(pl_block_file_put(c->file, block, dataset, to + at, c->buffer, n, err));
    }
    c->uncommitted += bytes;
    return PL_OK;
}

/* A block of the whole, and the parts that have something of it: [first, last). */
typedef struct target {
    uint64_t block, begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
    uint32_t kind;
    pl_join_part *first, *last;
} target;

static target find_target(const copying *c, uint64_t block)
{
    target t = {.block = block};
    size_t low = 0, high = c->j->count;
    t.kind = pl_block_ranges(&c->layout, block, t.begin, t.end);
    while (high - low > 1) { /* the last part that begins at or before it */
        const size_t middle = low + (high - low) / 2;
        *(c->j->part[middle].first <= t.begin[0] ? &low : &high) = middle;
    }
    t.first = t.last = c->j->part + low;
    while (t.last < c->j->part + c->j->count && t.last->first < t.end[0]) t.last++;
    return t;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

static pl_status copy_dataset(copying *c, const target *t, uint32_t dataset, uint64_t piece, uint64_t bytes,
                              pl_error *err)
{
    const uint64_t row = row_bytes(c, dataset);
    for (pl_join_part *p = t->first; p < t->last; p++) {
        const uint64_t begin = p->first * row, end = begin + p->count * row;
        const uint64_t low = larger(piece, begin), high = smaller(piece + bytes, end);
        PL_TRY(open_part(c, p, err));
        PL_TRY(copy_bytes(c, t->block, dataset, low - begin, low - piece, high - low, err));
    }
    return PL_OK;
}

/* Of each kind, the items before the first block that is not done. */
static pl_status free_moved(copying *c, pl_error *err)
{
    uint64_t first = 0;
    for (uint32_t k = 0; k < c->layout.kinds; k++) {
        const uint64_t last = first + pl_block_count_of(&c->kind[k]);
        uint64_t begin[PL_BLOCK_AXES_MAX] = {c->layout.kind[0].axis[0].extent}, end[PL_BLOCK_AXES_MAX];
        if (c->next[k] < first) c->next[k] = first;
        while (c->next[k] < last && pl_block_file_is_done(c->file, c->next[k])) c->next[k]++;
        if (c->next[k] < last) (void)pl_block_ranges(&c->layout, c->next[k], begin, end);
        PL_TRY(pl_block_join_free(c->j, k, begin[0], err));
        first = last;
    }
    return PL_OK;
}

static pl_status commit(copying *c, pl_error *err)
{
    c->uncommitted = 0;
    PL_TRY(pl_block_file_commit(c->file, err));
    return c->j->moves ? free_moved(c, err) : PL_OK;
}

static pl_status copy_block(copying *c, uint64_t block, pl_error *err)
{
    const target t = find_target(c, block);
    uint64_t piece, bytes;
    for (pl_join_part *p = t.first; p < t.last; p++) {
        const uint64_t begin = larger(t.begin[0], p->first), end = smaller(t.end[0], p->first + p->count);
        PL_TRY(open_part(c, p, err));
        PL_TRY(verify(c, t.kind, begin - p->first, end - p->first, t.begin, err));
    }
    for (uint32_t i = 0; i < c->layout.datasets; i++)
        if (pl_block_piece(&c->layout, block, i, &piece, &bytes)) PL_TRY(copy_dataset(c, &t, i, piece, bytes, err));
    PL_TRY(pl_block_file_finish(c->file, block, err));
    return c->uncommitted < COMMIT_BYTES ? PL_OK : commit(c, err);
}

static pl_status copy_blocks(copying *c, pl_error *err)
{
    for (uint64_t block = 0; block < pl_block_count(&c->layout); block++)
        if (!pl_block_file_is_done(c->file, block)) PL_TRY(copy_block(c, block, err));
    return commit(c, err);
}

/* ---- the file ---- */

static uint64_t largest_block(const copying *c)
{
    uint64_t most = 0, first = 0, offset, bytes;
    for (uint32_t k = 0; k < c->layout.kinds; first += pl_block_count_of(&c->kind[k++])) {
        uint64_t all = 0;
        for (uint32_t i = 0; i < c->layout.datasets; i++)
            if (pl_block_piece(&c->layout, first, i, &offset, &bytes)) all += bytes;
        most = larger(most, all);
    }
    return most;
}

static pl_status make_file(copying *c, pl_block_form form, const pl_block_sizes *sizes, pl_error *err)
{
    pl_block_found found;
    if (!c->j->moves) return pl_block_file_make(c->j->path, form, &c->layout, &found, err);
    PL_TRY(pl_block_join_check_room(c->j, sizes->disk_bytes - sizes->data_bytes, COMMIT_BYTES, largest_block(c), err));
    return pl_block_file_make_sparse(c->j->path, form, &c->layout, &found, err);
}

pl_status pl_block_join_check_there(const pl_joining *j, pl_block_reader *r, pl_error *err)
{
    for (uint64_t block = 0; block < pl_block_count(pl_block_reader_layout(r)); block++) {
        bool is_sound = true;
        if (pl_block_reader_is_done(r, block)) PL_TRY(pl_block_reader_verify(r, block, &is_sound, err));
        if (!is_sound)
            return pl_fail(err, PL_E_DATA,
                           "%s: its block %llu is damaged, so nothing is moved; \"plimsoll results check --repair\" "
                           "takes it out, and joining puts it there again",
                           j->path, (unsigned long long)block);
    }
    return PL_OK;
}

static pl_status check_there(const copying *c, pl_error *err)
{
    pl_block_reader *r;
    PL_TRY(pl_block_reader_open(c->j->path, false, &r, err));
    pl_status status = pl_block_join_check_there(c->j, r, err);
    pl_block_reader_close(r);
    return status;
}

static pl_status copy_all(copying *c, pl_error *err)
{
    const pl_block_use use = {.open_max = 1, .finished_max = COMMIT_BLOCKS};
    const pl_block_form form = pl_block_reader_form(c->j->like);
    pl_block_sizes sizes;
    pl_error ignored;
    PL_TRY(make_layout(c, err));
    PL_TRY(pl_block_file_measure(&c->layout, form, &use, &sizes, err));
    PL_TRY(make_file(c, form, &sizes, err));
    char *memory = pl_alloc(1, sizes.memory_bytes + ALIGNMENT);
    c->buffer = pl_alloc(COPY_BYTES, 1);
    pl_status status = memory && c->buffer ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory to join", c->j->path);
    void *at = (void *)pl_align_up((uintptr_t)memory, ALIGNMENT);
    if (status == PL_OK)
        status = pl_block_file_open(c->j->path, &c->layout, &use, at, sizes.memory_bytes, &c->file, err);
    if (status == PL_OK && c->j->moves) status = check_there(c, err);
    if (status == PL_OK) status = copy_blocks(c, err);
    if (status == PL_OK)
        status = pl_block_file_close(c->file, err);
    else
        (void)pl_block_file_close(c->file, &ignored);
    pl_free(c->buffer);
    pl_free(memory);
    return status == PL_OK && c->j->moves ? pl_block_join_remove_parts(c->j, err) : status;
}

pl_status pl_block_join_copy(const pl_joining *j, pl_error *err)
{
    copying *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "%s: no memory to join", j->path);
    c->j = j;
    pl_status status = copy_all(c, err);
    pl_block_reader_close(c->reader);
    for (uint32_t i = 0; i < PL_BLOCK_DATASETS_MAX; i++) pl_free(c->constant[i]);
    pl_free(c);
    return status;
}
