/* The encodings of what is written, and tensors as they go into a file: as rows of the file, a tile of them at a time.
 * Where neither number nor encoding changes, bytes are copied. */
#include "pretrained/written.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

enum { STAGING_BYTES = 1 << 20, TILE_NUMBERS = 1 << 20 };

/* ---- encodings ---- */

static pl_encoding stored_encoding(const pl_written *w)
{
    for (uint32_t i = 1; i < w->parts; i++)
        if (w->part[i]->encoding != w->part[0]->encoding) return PL_ENCODING_F32;
    return w->part[0]->encoding;
}

static bool is_packed(pl_encoding e) { return pl_encoding_block(e) > 1; }

static pl_encoding encoding_of(const pl_written *w, bool is_gguf, pl_encoding wanted)
{
    if (is_gguf && (w->is_vector || w->is_table)) return PL_ENCODING_F32;
    const bool stays = wanted == PL_ENCODING_COUNT;
    const pl_encoding e =
        pl_pretrained_fit(stays ? stored_encoding(w) : wanted, w->columns, w->is_vocabulary && !stays);
    return is_gguf || !is_packed(e) ? e : PL_ENCODING_F32;
}

pl_status pl_written_list_encode(const pl_written_list *l, bool is_gguf, pl_encoding wanted, pl_error *err)
{
    for (size_t i = 0; i < l->count; i++) {
        pl_written *w = &l->of[i];
        w->encoding = encoding_of(w, is_gguf, wanted);
        const int64_t row = pl_encoding_row_bytes(w->encoding, w->columns);
        if (row < 0 || pl_size_mul((uint64_t)row, (uint64_t)w->rows, &w->bytes))
            return pl_fail(err, PL_E_DATA, "tensor %s has more bytes than a file can hold", w->name);
    }
    return PL_OK;
}

/* ---- room ---- */

static bool is_copied(const pl_pretrained *p, const pl_written *w)
{
    bool is_same = !w->lacks_one && !w->is_transposed;
    for (uint32_t i = 0; i < w->parts; i++)
        is_same = is_same && w->encoding == w->part[i]->encoding && pl_pretrained_is_as_stored(p, w->part[i]) &&
                  (!w->part[i]->only_f32 || w->is_stored);
    return is_same;
}

/* Rows that are read at once: whole heads where rows change their places, few enough for a tile. */
static int64_t tile_rows(const pl_pretrained *p, const pl_written *w, const pl_pretrained_tensor *t)
{
    const int64_t read = pl_pretrained_row_unit(p, t), put = w->pair_heads ? t->rows / w->pair_heads : 1;
    const int64_t unit = w->is_vector ? 1 : read > put ? read : put, fitting = TILE_NUMBERS / t->columns;
    const int64_t rows = fitting < unit ? unit : fitting - fitting % unit;
    return rows < t->rows ? rows : t->rows;
}

/* Columns of ours that are written at once where they become rows. */
static int64_t tile_columns(const pl_written *w)
{
    const int64_t fitting = TILE_NUMBERS / w->rows, most = fitting ? fitting : 1;
    return most < w->columns ? most : w->columns;
}

static void enlarge(uint64_t *bytes, int64_t by)
{
    if ((uint64_t)by > *bytes) *bytes = (uint64_t)by;
}

pl_written_room pl_written_room_plan(const pl_pretrained *p, const pl_written_list *l)
{
    pl_written_room r = {.staging_bytes = STAGING_BYTES};
    for (size_t i = 0; i < l->count; i++) {
        const pl_written *w = &l->of[i];
        for (uint32_t k = 0; k < w->parts; k++) {
            const int64_t numbers = tile_rows(p, w, w->part[k]) * w->part[k]->columns;
            const int64_t tile = w->is_transposed ? tile_columns(w) * w->rows : numbers;
            if (!is_copied(p, w)) enlarge(&r.number_bytes, tile * (int64_t)sizeof(float));
            if (w->is_transposed) enlarge(&r.row_bytes, numbers * (int64_t)sizeof(float));
            enlarge(&r.block_bytes, pl_encoding_row_bytes(w->encoding, tile));
        }
    }
    return r;
}

uint64_t pl_written_room_bytes(const pl_written_room *r)
{
    return pl_alloc_block_bytes(r->staging_bytes) + pl_alloc_block_bytes(r->number_bytes) +
           pl_alloc_block_bytes(r->row_bytes) + pl_alloc_block_bytes(r->block_bytes);
}

pl_status pl_written_room_init(pl_written_room *r, pl_error *err)
{
    r->staging = pl_alloc(r->staging_bytes, 1);
    r->numbers = pl_alloc(r->number_bytes, 1);
    r->row = pl_alloc(r->row_bytes, 1);
    r->blocks = pl_alloc(r->block_bytes, 1);
    if (r->staging && r->numbers && r->row && r->blocks) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory for %" PRIu64 " bytes through which tensors are written",
                   pl_written_room_bytes(r));
}

void pl_written_room_deinit(pl_written_room *r)
{
    pl_free(r->staging);
    pl_free(r->numbers);
    pl_free(r->row);
    pl_free(r->blocks);
}

/* ---- tiles ---- */

typedef struct putting {
    const pl_pretrained *p;
    const pl_written *w;
    const pl_written_room *room;
    pl_file_writer *file;
    pl_written_loss *loss;
    pl_error *err;
} putting;

static pl_status read_rows(const putting *u, const pl_pretrained_tensor *t, int64_t first, int64_t count,
                           pl_encoding to, void *into)
{
    const pl_pretrained_rows rows = {.first = first, .count = count, .is_stored = u->w->is_stored};
    return pl_pretrained_read_rows(u->p, t, &rows, to, into, u->room->staging, (size_t)u->room->staging_bytes, u->err);
}

/* What rounding did to at most PL_ENCODING_BLOCK_MAX numbers. */
static bool measure(pl_written_loss *loss, pl_encoding e, const float *x, const float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]) != isfinite(y[i]) || (is_packed(e) && !isfinite(x[i]))) return false;
        if (!isfinite(x[i])) continue;
        const double off = fabs((double)y[i] - (double)x[i]);
        loss->squares += (double)x[i] * x[i];
        loss->error_squares += off * off;
        if (off > loss->largest) loss->largest = off;
    }
    return true;
}

/* Numbers of the tile to its blocks: whole rows of the file. */
static pl_status encode(const putting *u, int64_t numbers)
{
    const pl_encoding e = u->w->encoding;
    float again[PL_ENCODING_BLOCK_MAX];
    const float *x = u->room->numbers;
    for (int64_t at = 0, n; at < numbers; at += n) {
        unsigned char *to = u->room->blocks + pl_encoding_row_bytes(e, at);
        n = numbers - at < PL_ENCODING_BLOCK_MAX ? numbers - at : PL_ENCODING_BLOCK_MAX;
        pl_encoding_narrow(e, x + at, n, to);
        if (e == PL_ENCODING_F32) continue;
        pl_encoding_widen(e, to, n, again);
        if (!measure(u->loss, e, x + at, again, n))
            return pl_fail(u->err, PL_E_DATA, "tensor %s holds a number that is not finite or too large for %s",
                           u->w->name, pl_encoding_name(e));
    }
    return PL_OK;
}

/* The row of ours that goes into a row of a head in the file. */
static int64_t our_row(int64_t row, int64_t width)
{
    return row / width * width + row % width / 2 + row % 2 * (width / 2);
}

static pl_status put_paired(const putting *u, int64_t rows, int64_t row_bytes, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        PL_TRY(pl_file_write(u->file, u->room->blocks + our_row(i, width) * row_bytes, (size_t)row_bytes, u->err));
    return PL_OK;
}

static pl_status put_blocks(const putting *u, const pl_pretrained_tensor *t, int64_t rows)
{
    const pl_written *w = u->w;
    const int64_t all = w->is_vector ? t->columns : t->rows;
    const int64_t row_bytes = pl_encoding_row_bytes(w->encoding, w->is_vector ? 1 : t->columns);
    if (w->pair_heads) return put_paired(u, w->is_vector ? t->columns : rows, row_bytes, all / w->pair_heads);
    const int64_t bytes = pl_encoding_row_bytes(w->encoding, rows * t->columns);
    return pl_file_write(u->file, u->room->blocks, (size_t)bytes, u->err);
}

static pl_status put_part(const putting *u, const pl_pretrained_tensor *t)
{
    const int64_t tile = tile_rows(u->p, u->w, t);
    const bool is_copy = is_copied(u->p, u->w);
    for (int64_t first = 0, rows; first < t->rows; first += rows) {
        rows = t->rows - first < tile ? t->rows - first : tile;
        PL_TRY(read_rows(u, t, first, rows, is_copy ? u->w->encoding : PL_ENCODING_F32,
                         is_copy ? (void *)u->room->blocks : u->room->numbers));
        for (int64_t i = 0; i < rows * t->columns && u->w->lacks_one; i++) u->room->numbers[i] -= 1;
        if (!is_copy) PL_TRY(encode(u, rows * t->columns));
        PL_TRY(put_blocks(u, t, rows));
    }
    return PL_OK;
}

/* Columns [first, first + count) of all rows, as rows of the tile. */
static pl_status gather_columns(const putting *u, int64_t first, int64_t count)
{
    int64_t above = 0;
    for (uint32_t k = 0; k < u->w->parts; above += u->w->part[k++]->rows) {
        const pl_pretrained_tensor *t = u->w->part[k];
        const int64_t tile = tile_rows(u->p, u->w, t);
        for (int64_t at = 0, rows; at < t->rows; at += rows) {
            rows = t->rows - at < tile ? t->rows - at : tile;
            PL_TRY(read_rows(u, t, at, rows, PL_ENCODING_F32, u->room->row));
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < count; j++)
                    u->room->numbers[j * u->w->rows + above + at + i] = u->room->row[i * t->columns + first + j];
        }
    }
    return PL_OK;
}

static pl_status put_transposed(const putting *u)
{
    const int64_t tile = tile_columns(u->w);
    for (int64_t first = 0, columns; first < u->w->columns; first += columns) {
        columns = u->w->columns - first < tile ? u->w->columns - first : tile;
        PL_TRY(gather_columns(u, first, columns));
        PL_TRY(encode(u, columns * u->w->rows));
        const int64_t bytes = pl_encoding_row_bytes(u->w->encoding, columns * u->w->rows);
        PL_TRY(pl_file_write(u->file, u->room->blocks, (size_t)bytes, u->err));
    }
    return PL_OK;
}

pl_status pl_written_put(const pl_pretrained *p, const pl_written *w, const pl_written_room *room, pl_file_writer *file,
                         pl_written_loss *loss, pl_error *err)
{
    const putting u = {p, w, room, file, loss, err};
    *loss = (pl_written_loss){0};
    if (w->is_transposed) return put_transposed(&u);
    for (uint32_t k = 0; k < w->parts; k++) PL_TRY(put_part(&u, w->part[k]));
    return PL_OK;
}
