/* A tensor from its file into memory: pieces that fit the staging, each converted and put where it belongs. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/narrow.h"
#include "pretrained/model_impl.h"

enum { SOME = PL_ENCODING_BLOCK_MAX, TILE_ROWS = 32 }; /* SOME: numbers that are converted at a time: whole blocks */

typedef struct reading {
    const pl_model_file *file;
    const pl_pretrained_tensor *t;
    const pl_taken *how;
    pl_encoding to;
    unsigned char *into, *staging;
    size_t room;
    int64_t block, block_bytes; /* of the source */
    int64_t quantum;            /* numbers that are whole blocks on both sides */
    pl_error *err;
} reading;

static uint64_t source_bytes(const reading *r, int64_t numbers)
{
    return (uint64_t)(numbers / r->block * r->block_bytes);
}

static unsigned char *target(const reading *r, int64_t number)
{
    return r->into + number / pl_encoding_block(r->to) * pl_encoding_block_bytes(r->to);
}

static pl_status bad(const reading *r, const char *what)
{
    return pl_fail(r->err, PL_E_DATA, "%s: tensor %s %s", r->file->path, r->how->source->name, what);
}

/* ---- numbers ---- */

static bool is_finite_f16(const unsigned char *at)
{
    uint16_t h;
    memcpy(&h, at, sizeof h);
    return (h & 0x7c00) != 0x7c00;
}

/* The one or two scales of each block. */
static bool has_finite_scales(pl_encoding e, const unsigned char *blocks, int64_t numbers)
{
    const int64_t bytes = pl_encoding_block_bytes(e);
    const bool has_two =
        e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q5_1 || e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K;
    const int64_t at = e == PL_ENCODING_Q6_K ? bytes - 2 : 0;
    for (int64_t i = 0; i < numbers / pl_encoding_block(e); i++, blocks += bytes)
        if (!is_finite_f16(blocks + at) || (has_two && !is_finite_f16(blocks + 2))) return false;
    return true;
}

static bool narrow_f64(const unsigned char *from, int64_t n, float *to)
{
    bool fits = true;
    for (int64_t i = 0; i < n; i++) {
        double x;
        memcpy(&x, from + i * 8, sizeof x);
        to[i] = (float)x;
        fits = fits && (isfinite(to[i]) || !isfinite(x));
    }
    return fits;
}

/* Does every number stay finite (and was it, where blocks are made)? */
static bool fits(pl_encoding to, const float *x, int64_t n, const unsigned char *narrowed)
{
    if (pl_encoding_block(to) == 1) {
        const pl_real real = to == PL_ENCODING_F16 ? PL_REAL_F16 : PL_REAL_BF16;
        for (int64_t i = 0; i < n; i++)
            if (isfinite(x[i]) && !isfinite(pl_real_get(real, narrowed, i))) return false;
        return true;
    }
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return has_finite_scales(to, narrowed, n);
}

/* At most SOME numbers; those in f32 are made where they belong. */
static pl_status convert_some(const reading *r, const unsigned char *from, int64_t n, unsigned char *to)
{
    float some[SOME], *x = r->to == PL_ENCODING_F32 ? (float *)to : some;
    if (!r->how->source->is_f64)
        pl_encoding_widen(r->t->encoding, from, n, x);
    else if (!narrow_f64(from, n, x))
        return bad(r, "holds a number that is too large for f32");
    for (int64_t i = 0; i < n && r->t->only_f32; i++) x[i] += 1;
    if (x != some) return PL_OK;
    pl_encoding_narrow(r->to, x, n, to);
    if (fits(r->to, x, n, to)) return PL_OK;
    return pl_fail(r->err, PL_E_DATA, "%s: tensor %s holds a number that is not finite or too large for %s",
                   r->file->path, r->how->source->name, pl_encoding_name(r->to));
}

/* `n` numbers, whole blocks on both sides. */
static pl_status convert(const reading *r, const unsigned char *from, int64_t n, unsigned char *to)
{
    if (r->block > 1 && !has_finite_scales(r->t->encoding, from, n))
        return bad(r, "has a block whose scale is not finite");
    if (r->to == r->t->encoding && !r->how->source->is_f64 && !r->t->only_f32) {
        memcpy(to, from, source_bytes(r, n));
        return PL_OK;
    }
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = n - i < SOME ? n - i : SOME;
        PL_TRY(convert_some(r, from + source_bytes(r, i), some, to + (target(r, i) - r->into)));
    }
    return PL_OK;
}

/* ---- as it lies ---- */

/* The row of ours that a row of the file is: there a head's pairs are neighbours, here they are half a head apart. */
static int64_t our_row(const reading *r, int64_t row, int64_t rows)
{
    const int64_t width = rows / r->how->pair_heads, head = row / width, k = row % width;
    return head * width + k % 2 * (width / 2) + k / 2;
}

/* A piece that begins at number `at` of the tensor, in the order of the file. */
static pl_status place(const reading *r, int64_t at, int64_t n)
{
    const bool is_vector = r->how->is_vector;
    const int64_t stretch = is_vector ? 1 : r->t->columns, rows = is_vector ? r->t->columns : r->t->rows;
    if (!r->how->pair_heads) return convert(r, r->staging, n, target(r, at));
    for (int64_t i = 0, some; i < n; i += some) {
        const int64_t row = (at + i) / stretch, column = (at + i) % stretch;
        some = n - i < stretch - column ? n - i : stretch - column;
        PL_TRY(convert(r, r->staging + source_bytes(r, i), some, target(r, our_row(r, row, rows) * stretch + column)));
    }
    return PL_OK;
}

static void forget(const reading *r, uint64_t offset, uint64_t bytes)
{
    posix_fadvise(r->file->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

static pl_status read_straight(const reading *r)
{
    const int64_t all = r->t->rows * r->t->columns, first = r->how->first * (r->how->is_vector ? 1 : r->t->columns);
    const int64_t fitting = (int64_t)(r->room / (size_t)r->block_bytes) * r->block,
                  piece = fitting - fitting % r->quantum;
    for (int64_t at = 0; at < all; at += piece) {
        const int64_t n = all - at < piece ? all - at : piece;
        const uint64_t offset = r->how->source->offset + source_bytes(r, first + at);
        PL_TRY(pl_model_file_read(r->file, offset, r->staging, source_bytes(r, n), r->err));
        forget(r, offset, source_bytes(r, n));
        PL_TRY(place(r, at, n));
    }
    return PL_OK;
}

/* ---- transposed ---- */

typedef struct tile {
    int64_t row, rows, column, columns; /* of the source, columns from the tensor's first */
} tile;

static pl_status read_tile(const reading *r, const tile *t)
{
    const uint64_t bytes = source_bytes(r, t->columns), stride = source_bytes(r, (int64_t)r->how->source->columns);
    const uint64_t offset =
        r->how->source->offset + (uint64_t)t->row * stride + source_bytes(r, r->how->first + t->column);
    if (bytes == stride) return pl_model_file_read(r->file, offset, r->staging, bytes * (uint64_t)t->rows, r->err);
    for (int64_t i = 0; i < t->rows; i++)
        PL_TRY(pl_model_file_read(r->file, offset + (uint64_t)i * stride, r->staging + (uint64_t)i * bytes, bytes,
                                  r->err));
    return PL_OK;
}

static pl_status place_tile(const reading *r, const tile *t)
{
    _Alignas(double) unsigned char column[SOME * sizeof(double)];
    for (int64_t c = 0; c < t->columns; c++) {
        for (int64_t i = 0; i < t->rows; i++)
            memcpy(column + i * r->block_bytes, r->staging + (i * t->columns + c) * r->block_bytes,
                   (size_t)r->block_bytes);
        PL_TRY(convert(r, column, t->rows, target(r, (t->column + c) * r->t->columns + t->row)));
    }
    return PL_OK;
}

/* The source has a row for each of our columns. */
static pl_status read_transposed(const reading *r)
{
    const int64_t height = r->quantum > TILE_ROWS ? r->quantum : TILE_ROWS;
    const int64_t width = (int64_t)r->room / (height * r->block_bytes);
    const uint64_t stride = source_bytes(r, (int64_t)r->how->source->columns);
    for (tile t = {0}; t.row < r->t->columns; t.row += height) {
        t.rows = r->t->columns - t.row < height ? r->t->columns - t.row : height;
        for (t.column = 0; t.column < r->t->rows; t.column += width) {
            t.columns = r->t->rows - t.column < width ? r->t->rows - t.column : width;
            PL_TRY(read_tile(r, &t));
            PL_TRY(place_tile(r, &t));
        }
        forget(r, r->how->source->offset + (uint64_t)t.row * stride, (uint64_t)t.rows * stride);
    }
    return PL_OK;
}

/* ---- */

static pl_status check(const reading *r)
{
    const bool is_copy = r->to == r->t->encoding && !r->how->source->is_f64;
    if (r->room < PL_PRETRAINED_STAGING_MIN)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: a staging of %zu bytes is too small; give at least %d",
                       r->t->name, r->room, PL_PRETRAINED_STAGING_MIN);
    if (r->t->only_f32 && r->to != PL_ENCODING_F32)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: can only be read as f32", r->t->name);
    if (pl_encoding_row_bytes(r->to, r->t->columns) < 0)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: its rows of %" PRId64 " numbers are not whole blocks of %s",
                       r->t->name, r->t->columns, pl_encoding_name(r->to));
    if (!is_copy && !pl_encoding_is_written(r->to))
        return pl_fail(r->err, PL_E_UNSUPPORTED, "tensor %s: %s is not written; it is only read where a file holds it",
                       r->t->name, pl_encoding_name(r->to));
    return pl_model_file_check(r->file, r->err);
}

pl_status pl_pretrained_read_rows(const pl_pretrained *p, const pl_pretrained_tensor *t, const pl_pretrained_rows *rows,
                                  pl_encoding to, void *into, void *staging, size_t staging_bytes, pl_error *err)
{
    pl_pretrained_tensor part = *t;
    pl_taken how = p->taken[t - p->tensors];
    if (how.pair_heads) how.pair_heads = how.pair_heads * rows->count / t->rows;
    how.first += rows->first, part.rows = rows->count;
    part.only_f32 = t->only_f32 && !rows->is_stored;
    reading r = {.file = &p->files[t->file],
                 .t = &part,
                 .how = &how,
                 .to = to,
                 .into = into,
                 .staging = staging,
                 .room = staging_bytes,
                 .block = pl_encoding_block(t->encoding),
                 .block_bytes = how.source->is_f64 ? 8 : pl_encoding_block_bytes(t->encoding),
                 .err = err};
    r.quantum = r.block > pl_encoding_block(to) ? r.block : pl_encoding_block(to);
    PL_TRY(check(&r));
    PL_TRY(how.is_transposed ? read_transposed(&r) : read_straight(&r));
    return pl_model_file_check(r.file, err);
}

pl_status pl_pretrained_read(const pl_pretrained *p, const pl_pretrained_tensor *t, pl_encoding to, void *into,
                             void *staging, size_t staging_bytes, pl_error *err)
{
    const pl_pretrained_rows all = {.count = t->rows};
    return pl_pretrained_read_rows(p, t, &all, to, into, staging, staging_bytes, err);
}

int64_t pl_pretrained_row_unit(const pl_pretrained *p, const pl_pretrained_tensor *t)
{
    const pl_taken *how = &p->taken[t - p->tensors];
    return how->is_vector ? t->rows : how->pair_heads ? t->rows / how->pair_heads : 1;
}

bool pl_pretrained_is_as_stored(const pl_pretrained *p, const pl_pretrained_tensor *t)
{
    return !p->taken[t - p->tensors].source->is_f64;
}
