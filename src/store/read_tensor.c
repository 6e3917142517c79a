#include "store/read_tensor.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/narrow.h"

enum { SOME = PL_ENCODING_BLOCK_MAX, TILE_ROWS = 32 }; /* SOME: numbers that are converted at a time: whole blocks */

typedef struct reading {
    const pl_tensor_source *from;
    const pl_tensor_place *to;
    unsigned char *staging;
    size_t room;
    int64_t quantum; /* numbers that are whole blocks on both sides */
    pl_error *err;
} reading;

static uint64_t source_bytes(const pl_tensor_source *s, int64_t numbers)
{
    const int64_t bytes = s->is_f64 ? (int64_t)sizeof(double) : pl_encoding_block_bytes(s->encoding);
    return (uint64_t)(numbers / pl_encoding_block(s->encoding) * bytes);
}

static int64_t bytes_of(pl_encoding e, int64_t numbers)
{
    return numbers / pl_encoding_block(e) * pl_encoding_block_bytes(e);
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

static pl_status bad(const pl_tensor_source *s, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: tensor %s %s", s->file->path, s->name, what);
}

/* At most SOME numbers; those in f32 are made where they belong. */
static pl_status convert_some(const pl_tensor_source *s, const unsigned char *from, int64_t n, pl_encoding as,
                              unsigned char *to, pl_error *err)
{
    float some[SOME], *x = as == PL_ENCODING_F32 ? (float *)(void *)to : some;
    if (!s->is_f64)
        pl_encoding_widen(s->encoding, from, n, x);
    else if (!narrow_f64(from, n, x))
        return bad(s, "holds a number that is too large for f32", err);
    for (int64_t i = 0; i < n && s->adds_one; i++) x[i] += 1;
    if (x != some) return PL_OK;
    pl_encoding_narrow(as, x, n, to);
    if (fits(as, x, n, to)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: tensor %s holds a number that is not finite or too large for %s", s->file->path,
                   s->name, pl_encoding_name(as));
}

pl_status pl_tensor_convert(const pl_tensor_source *s, const void *from, int64_t n, pl_encoding to, void *into,
                            pl_error *err)
{
    const unsigned char *at = from;
    unsigned char *place = into;
    if (pl_encoding_block(s->encoding) > 1 && !has_finite_scales(s->encoding, at, n))
        return bad(s, "has a block whose scale is not finite", err);
    if (to == s->encoding && !s->is_f64 && !s->adds_one) {
        memcpy(into, from, source_bytes(s, n));
        return PL_OK;
    }
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = n - i < SOME ? n - i : SOME;
        PL_TRY(convert_some(s, at + source_bytes(s, i), some, to, place + bytes_of(to, i), err));
    }
    return PL_OK;
}

/* Numbers of the file, to be put from number `at` of the place on. */
static pl_status convert(const reading *r, const unsigned char *from, int64_t n, int64_t at)
{
    unsigned char *place = r->to->data;
    return pl_tensor_convert(r->from, from, n, r->to->encoding, place + bytes_of(r->to->encoding, at), r->err);
}

/* ---- as it lies ---- */

/* The row of ours that a row of the file is: there a head's pairs are neighbours, here they are half a head apart. */
static int64_t our_row(const reading *r, int64_t row, int64_t rows)
{
    const int64_t width = rows / r->from->pair_heads, head = row / width, k = row % width;
    return head * width + k % 2 * (width / 2) + k / 2;
}

/* A piece that begins at number `at` of the tensor, in the order of the file. */
static pl_status place(const reading *r, int64_t at, int64_t n)
{
    const bool is_vector = r->from->is_vector;
    const int64_t stretch = is_vector ? 1 : r->to->columns, rows = is_vector ? r->to->columns : r->to->rows;
    if (!r->from->pair_heads) return convert(r, r->staging, n, at);
    for (int64_t i = 0, some; i < n; i += some) {
        const int64_t row = (at + i) / stretch, column = (at + i) % stretch;
        some = n - i < stretch - column ? n - i : stretch - column;
        PL_TRY(convert(r, r->staging + source_bytes(r->from, i), some, our_row(r, row, rows) * stretch + column));
    }
    return PL_OK;
}

/* The kernel drops whole pages only: what pieces before left of theirs goes with the next one. */
static void forget(const reading *r, uint64_t offset, uint64_t bytes)
{
    const uint64_t from = offset - offset % PL_FILE_WINDOW_BYTES;
    posix_fadvise(r->from->file->fd, (off_t)from, (off_t)(offset + bytes - from), POSIX_FADV_DONTNEED);
}

static pl_status read_straight(const reading *r)
{
    const pl_tensor_source *s = r->from;
    const int64_t block = pl_encoding_block(s->encoding), all = r->to->rows * r->to->columns,
                  first = s->first * (s->is_vector ? 1 : r->to->columns),
                  fitting = (int64_t)(r->room / source_bytes(s, block)) * block, piece = fitting - fitting % r->quantum;
    for (int64_t at = 0; at < all; at += piece) {
        const int64_t n = all - at < piece ? all - at : piece;
        const uint64_t offset = s->offset + source_bytes(s, first + at);
        PL_TRY(pl_model_file_read(s->file, offset, r->staging, source_bytes(s, n), r->err));
        forget(r, offset, source_bytes(s, n));
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
    const pl_tensor_source *s = r->from;
    const uint64_t bytes = source_bytes(s, t->columns), stride = source_bytes(s, s->columns);
    const uint64_t offset = s->offset + (uint64_t)t->row * stride + source_bytes(s, s->first + t->column);
    if (bytes == stride) return pl_model_file_read(s->file, offset, r->staging, bytes * (uint64_t)t->rows, r->err);
    for (int64_t i = 0; i < t->rows; i++)
        PL_TRY(pl_model_file_read(s->file, offset + (uint64_t)i * stride, r->staging + (uint64_t)i * bytes, bytes,
                                  r->err));
    return PL_OK;
}

static pl_status place_tile(const reading *r, const tile *t)
{
    _Alignas(double) unsigned char column[SOME * sizeof(double)];
    const size_t one = source_bytes(r->from, 1);
    for (int64_t c = 0; c < t->columns; c++) {
        for (int64_t i = 0; i < t->rows; i++)
            memcpy(column + (size_t)i * one, r->staging + (size_t)(i * t->columns + c) * one, one);
        PL_TRY(convert(r, column, t->rows, (t->column + c) * r->to->columns + t->row));
    }
    return PL_OK;
}

/* The source has a row for each of our columns. */
static pl_status read_transposed(const reading *r)
{
    const pl_tensor_source *s = r->from;
    const int64_t height = r->quantum > TILE_ROWS ? r->quantum : TILE_ROWS;
    const int64_t width = (int64_t)(r->room / ((size_t)height * source_bytes(s, 1)));
    const uint64_t stride = source_bytes(s, s->columns);
    for (tile t = {0}; t.row < r->to->columns; t.row += height) {
        t.rows = r->to->columns - t.row < height ? r->to->columns - t.row : height;
        for (t.column = 0; t.column < r->to->rows; t.column += width) {
            t.columns = r->to->rows - t.column < width ? r->to->rows - t.column : width;
            PL_TRY(read_tile(r, &t));
            PL_TRY(place_tile(r, &t));
        }
        forget(r, s->offset + (uint64_t)t.row * stride, (uint64_t)t.rows * stride);
    }
    return PL_OK;
}

/* ---- */

static pl_status check(const reading *r)
{
    const pl_encoding to = r->to->encoding;
    const bool is_copy = to == r->from->encoding && !r->from->is_f64;
    if (r->room < PL_TENSOR_STAGING_MIN)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: a staging of %zu bytes is too small; give at least %d",
                       r->from->name, r->room, PL_TENSOR_STAGING_MIN);
    if (r->from->adds_one && to != PL_ENCODING_F32)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: can only be read as f32", r->from->name);
    if (pl_encoding_row_bytes(to, r->to->columns) < 0)
        return pl_fail(r->err, PL_E_USAGE, "tensor %s: its rows of %" PRId64 " numbers are not whole blocks of %s",
                       r->from->name, r->to->columns, pl_encoding_name(to));
    if (!is_copy && !pl_encoding_is_written(to))
        return pl_fail(r->err, PL_E_UNSUPPORTED, "tensor %s: %s is not written; it is only read where a file holds it",
                       r->from->name, pl_encoding_name(to));
    return PL_OK;
}

pl_status pl_tensor_read(const pl_tensor_source *from, const pl_tensor_place *to, void *staging, size_t staging_bytes,
                         pl_error *err)
{
    const int64_t theirs = pl_encoding_block(from->encoding), ours = pl_encoding_block(to->encoding);
    const reading r = {.from = from,
                       .to = to,
                       .staging = staging,
                       .room = staging_bytes,
                       .quantum = theirs > ours ? theirs : ours,
                       .err = err};
    PL_TRY(check(&r));
    return from->is_transposed ? read_transposed(&r) : read_straight(&r);
}
