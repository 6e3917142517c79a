/* Lines of a text file for a model of tokens: each line is an item, its ids by the run's tokenizer, and −1 behind the
 * last. The encoder's memory is asked for at the start. A line has as many tokens as the model takes, at most. */
#include <inttypes.h>

#include "base/alloc.h"
#include "data/infer/lines.h"
#include "data/text/encoder.h"
#include "data/text/text_data.h"
#include "systems/text.h"

enum { EMPTY }; /* bits of remarks */
static const pl_rows_remark remarks[] = {[EMPTY] = {PL_INFER_EMPTY}, {NULL, NULL}};

typedef struct encoding {
    pl_infer_lines lines;
    pl_encoder *encoder;
    const char *path;
    int32_t *to; /* ids of the line that is read, so far */
    uint64_t ids, most, line;
    int64_t below;
} encoding;

static encoding **encoding_of(const pl_rows *r) { return (encoding **)(void *)(uintptr_t)r->own; }

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    return port->dtype == PL_DTYPE_I32 && pl_infer_lines_are_text(head, bytes);
}

static pl_status take_ids(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    encoding *e = context;
    if (count > e->most - e->ids)
        return pl_fail(err, PL_E_DATA,
                       "%.300s:%" PRIu64 " (item %" PRIu64 "): the line has more than %" PRIu64
                       " tokens, which is what the model takes; break it",
                       e->path, e->line + 1, e->line, e->most);
    for (size_t i = 0; i < count; i++) {
        if (e->below && ids[i] >= (uint64_t)e->below)
            return pl_fail(err, PL_E_DATA,
                           "%.300s:%" PRIu64 " (item %" PRIu64
                           "): the line has the id %u, but the model a vocabulary of %" PRId64,
                           e->path, e->line + 1, e->line, ids[i], e->below);
        e->to[e->ids++] = (int32_t)ids[i];
    }
    return PL_OK;
}

static pl_status take_text(void *context, const char *piece, size_t bytes, pl_error *err)
{
    encoding *e = context;
    return pl_encoder_feed(e->encoder, piece, bytes, err);
}

static pl_status open_text(pl_rows *r, pl_error *err)
{
    encoding *e = *encoding_of(r) = pl_alloc(1, sizeof *e);
    if (!e) return pl_fail(err, PL_E_NOMEM, "no memory for the lines of %.300s", r->path);
    e->path = r->path;
    e->most = pl_infer_port_elems(r->port), e->below = r->port->below;
    PL_TRY(pl_encoder_create(pl_text_data_of(r->port->of)->tokenizer, take_ids, e, &e->encoder, err));
    PL_TRY(pl_infer_lines_find(r, &e->lines, err));
    r->count = e->lines.count;
    return PL_OK;
}

static void close_text(pl_rows *r)
{
    encoding *e = *encoding_of(r);
    if (!e) return;
    pl_encoder_destroy(e->encoder);
    pl_free(e);
}

static pl_status encode_line(const pl_rows *r, encoding *e, void *scratch, pl_error *err)
{
    pl_status status = pl_infer_lines_read(r, &e->lines, e->line, scratch, take_text, e, err);
    if (status == PL_OK) return pl_encoder_finish(e->encoder, err);
    pl_error ignored;
    e->ids = 0; /* what the encoder holds back goes nowhere */
    (void)pl_encoder_finish(e->encoder, &ignored);
    return status;
}

static pl_status read_text(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    encoding *e = *encoding_of(r);
    e->to = to, e->ids = 0, e->line = row;
    PL_TRY(encode_line(r, e, scratch, err));
    if (e->ids == 0) *r->remark |= 1u << EMPTY;
    for (; e->ids < e->most; e->ids++) e->to[e->ids] = -1;
    return PL_OK;
}

const pl_rows_kind pl_text_rows = {.what = "lines of text",
                                   .is_mine = is_mine,
                                   .open = open_text,
                                   .read = read_text,
                                   .close = close_text,
                                   .remarks = remarks};
