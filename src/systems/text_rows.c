/* Lines of a text file for a model of tokens: each line is an item, its ids by the run's tokenizer, and −1 behind the
 * last. One that has more tokens than the model takes comes in windows, each of which begins with half of the one
 * before, so that behind the first window every token is judged with at least half a window before it.
 *
 *      |← most →|
 *           |← most →|        step = most / 2 ids are new in each
 *                |← … |
 *
 * Lines are encoded as a stream, window by window; memory, which is asked for at the start, does not grow with them.
 * Where no line can be so long, rows are lines. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/infer/lines.h"
#include "data/text/encoder.h"
#include "data/text/text_data.h"
#include "systems/text.h"

enum { EMPTY }; /* bits of remarks */
static const pl_rows_remark remarks[] = {[EMPTY] = {PL_INFER_EMPTY}, {NULL, NULL}};

enum { PIECE = 4096 }; /* bytes that are encoded at once */
#define NOWHERE UINT64_MAX

typedef struct encoding {
    pl_infer_lines lines;
    pl_encoder *encoder;
    const char *path;
    uint64_t most, step;
    int64_t below;
    uint64_t marked_row[PL_INFER_MARKS]; /* rows before the lines with a mark */
    uint64_t row, line;                  /* the next one, and its line; row NOWHERE: unknown */
    bool in_line;                        /* its first windows were read */
    uint64_t at, end;                    /* text of the line that is still to be encoded */
    bool is_encoded;                     /* all of it, and nothing waits in the encoder */
    int32_t *id;                         /* [room] of the next window, and what came with them */
    uint64_t ids, room;
} encoding;

static encoding **encoding_of(const pl_rows *r) { return (encoding **)(void *)(uintptr_t)r->own; }

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    return port->dtype == PL_DTYPE_I32 && pl_infer_lines_are_text(head, bytes);
}

/* ---- a window ---- */

static pl_status take_ids(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    encoding *e = context;
    if (count > e->room - e->ids) return pl_fail(err, PL_E_INTERNAL, "no room for the tokens of a line");
    for (size_t i = 0; i < count; i++) {
        if (e->below && ids[i] >= (uint64_t)e->below)
            return pl_fail(err, PL_E_DATA,
                           "%.300s:%" PRIu64 " (item %" PRIu64
                           "): the line has the id %u, but the model a vocabulary of %" PRId64,
                           e->path, e->line + 1, e->line, ids[i], e->below);
        e->id[e->ids++] = (int32_t)ids[i];
    }
    return PL_OK;
}

static pl_status begin_line(const pl_rows *r, encoding *e, int fd, void *scratch, pl_error *err)
{
    PL_TRY(pl_infer_lines_locate(r, &e->lines, fd, e->line, scratch, &e->at, &e->end, err));
    e->ids = 0;
    e->is_encoded = false;
    return PL_OK;
}

/* Enough ids to know whether this window is the last. */
static pl_status encode(encoding *e, int fd, void *scratch, pl_error *err)
{
    while (e->ids <= e->most && !e->is_encoded) {
        const uint64_t left = e->end - e->at, bytes = left < PIECE ? left : PIECE;
        PL_TRY(pl_file_read_at(fd, e->path, e->at, scratch, (size_t)bytes, err));
        PL_TRY(pl_encoder_feed(e->encoder, scratch, (size_t)bytes, err));
        e->at += bytes;
        e->is_encoded = e->at == e->end;
        if (e->is_encoded) PL_TRY(pl_encoder_finish(e->encoder, err));
    }
    return PL_OK;
}

static pl_status check_length(const encoding *e, pl_error *err)
{
    if (e->ids <= e->most || e->step > 0) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.300s:%" PRIu64 " (item %" PRIu64
                   "): the line has more than one token, and the model takes no more",
                   e->path, e->line + 1, e->line);
}

static void hand_out(encoding *e, int32_t *to, pl_rows_part *part)
{
    const uint64_t count = e->ids < e->most ? e->ids : e->most;
    memcpy(to, e->id, count * sizeof *to);
    for (uint64_t i = count; i < e->most; i++) to[i] = -1;
    *part = (pl_rows_part){.item = e->line, .again = e->in_line ? e->most - e->step : 0, .is_last = e->ids <= e->most};
    e->row++;
    e->in_line = !part->is_last;
    e->line += part->is_last;
    if (part->is_last) return;
    e->ids -= e->step;
    memmove(e->id, e->id + e->step, e->ids * sizeof *e->id);
}

static pl_status read_next(const pl_rows *r, encoding *e, int fd, int32_t *to, void *scratch, pl_rows_part *part,
                           pl_error *err)
{
    if (!e->in_line) PL_TRY(begin_line(r, e, fd, scratch, err));
    PL_TRY(encode(e, fd, scratch, err));
    PL_TRY(check_length(e, err));
    hand_out(e, to, part);
    return PL_OK;
}

/* ---- a row by its number ---- */

/* What the encoder holds back goes nowhere. */
static void forget(encoding *e)
{
    pl_error ignored;
    e->ids = 0;
    (void)pl_encoder_finish(e->encoder, &ignored);
    e->row = NOWHERE;
    e->in_line = false;
}

static void go_to_mark(encoding *e, uint64_t row)
{
    uint64_t low = 0, high = e->lines.marks;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(e->marked_row[middle] <= row ? &low : &high) = middle;
    }
    if (e->row <= row && e->row >= e->marked_row[low]) return;
    forget(e);
    e->row = e->marked_row[low];
    e->line = low * e->lines.every;
}

static pl_status read_row(const pl_rows *r, encoding *e, uint64_t row, int fd, int32_t *to, void *scratch,
                          pl_rows_part *part, pl_error *err)
{
    go_to_mark(e, row);
    while (e->row <= row) {
        const pl_status status = e->line < e->lines.count
                                     ? read_next(r, e, fd, to, scratch, part, err)
                                     : pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read", r->path);
        if (status != PL_OK) return forget(e), status;
    }
    return PL_OK;
}

static pl_status read_text(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    int fd;
    PL_TRY(pl_rows_reopen(r, &fd, err));
    const pl_status status = read_row(r, *encoding_of(r), row, fd, to, scratch, r->part, err);
    close(fd);
    if (status == PL_OK && *(const int32_t *)to < 0) *r->remark |= 1u << EMPTY;
    return status;
}

/* ---- opening ---- */

static void count_marks(encoding *e)
{
    if (!e->in_line && e->line % e->lines.every == 0) e->marked_row[e->line / e->lines.every] = e->row;
}

/* By reading all of it once. */
static pl_status count_rows(pl_rows *r, encoding *e, int32_t *to, void *scratch, pl_error *err)
{
    pl_rows_part part;
    int fd;
    pl_status status = pl_rows_reopen(r, &fd, err);
    if (status != PL_OK) return status;
    while (e->line < e->lines.count && status == PL_OK) {
        count_marks(e);
        status = read_next(r, e, fd, to, scratch, &part, err);
    }
    close(fd);
    r->count = e->row;
    return forget(e), status;
}

static pl_status find_rows(pl_rows *r, encoding *e, bool any_long, pl_error *err)
{
    r->count = r->items = e->lines.count;
    for (uint64_t i = 0; i < e->lines.marks; i++) e->marked_row[i] = i * e->lines.every;
    if (!any_long) return PL_OK;
    void *scratch = pl_alloc(1, PL_ROWS_SCRATCH_BYTES), *to = pl_alloc(e->most, sizeof(int32_t));
    const pl_status status = scratch && to ? count_rows(r, e, to, scratch, err)
                                           : pl_fail(err, PL_E_NOMEM, "no memory to read %.300s", r->path);
    pl_free(scratch);
    pl_free(to);
    return status;
}

/* What a line's tokenizer puts before and after it. */
static uint64_t template_ids(const pl_text_data *of)
{
    uint32_t count[2] = {0};
    for (int after = 0; after < 2 && of->has_special; after++)
        (void)pl_tokenizer_template(of->tokenizer, after, &count[after]);
    return (uint64_t)count[0] + count[1];
}

static pl_status open_text(pl_rows *r, pl_error *err)
{
    encoding *e = *encoding_of(r) = pl_alloc(1, sizeof *e);
    if (!e) return pl_fail(err, PL_E_NOMEM, "no memory for the lines of %.300s", r->path);
    e->path = r->path;
    e->most = pl_infer_port_elems(r->port), e->step = e->most / 2, e->below = r->port->below;
    const pl_text_data *of = pl_text_data_of(r->port->of);
    PL_TRY(pl_encoder_create(of->tokenizer, take_ids, e, &e->encoder, err));
    pl_encoder_set_options(e->encoder, (pl_encode_options){.adds_special = of->has_special});
    PL_TRY(pl_infer_lines_find(r, &e->lines, err));
    /* A byte has one id at most, and a blank before the first may have one, too. */
    const uint64_t most_ids = e->lines.longest + 1 + template_ids(of);
    const uint64_t at_once = PL_ENCODER_HELD_MAX + PIECE + template_ids(of);
    e->room = e->most + 1 + (most_ids < at_once ? most_ids : at_once);
    e->id = pl_alloc(e->room, sizeof *e->id);
    if (!e->id) return pl_fail(err, PL_E_NOMEM, "no memory for the lines of %.300s", r->path);
    return find_rows(r, e, most_ids > e->most, err);
}

static void close_text(pl_rows *r)
{
    encoding *e = *encoding_of(r);
    if (!e) return;
    pl_encoder_destroy(e->encoder);
    pl_free(e->id);
    pl_free(e);
}

const pl_rows_kind pl_text_rows = {.what = "lines of text",
                                   .is_mine = is_mine,
                                   .open = open_text,
                                   .read = read_text,
                                   .close = close_text,
                                   .remarks = remarks};
