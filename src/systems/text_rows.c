/* Lines of a text file for a model of tokens: each line is an item, its ids by the run's tokenizer, and −1 behind the
 * last. Where lines begin is known from the start; a line is read and encoded when it is wanted, by an encoder whose
 * memory was asked for at the start, too. A line has as many tokens as the model takes, at most, and at least one. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/text/encoder.h"
#include "data/text/text_data.h"
#include "systems/text.h"

typedef struct lines {
    uint64_t *begin; /* [count + 1] */
    size_t capacity;
    pl_encoder *encoder;
    int32_t *to; /* ids of the line that is read, so far */
    uint64_t ids, most, line;
    int64_t below;
    const char *path;
} lines;

static lines **lines_of(const pl_rows *r) { return (lines **)(void *)(uintptr_t)r->own; }

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    return port->dtype == PL_DTYPE_I32 && !memchr(head, 0, bytes);
}

static pl_status take(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    lines *l = context;
    if (count > l->most - l->ids)
        return pl_fail(err, PL_E_DATA,
                       "%.300s:%" PRIu64 ": the line has more than %" PRIu64 " tokens, which is what the model takes; "
                       "break it",
                       l->path, l->line + 1, l->most);
    for (size_t i = 0; i < count; i++) {
        if (l->below && ids[i] >= (uint64_t)l->below)
            return pl_fail(err, PL_E_DATA,
                           "%.300s:%" PRIu64 ": the line has the id %u, but the model a vocabulary of %" PRId64,
                           l->path, l->line + 1, ids[i], l->below);
        l->to[l->ids++] = (int32_t)ids[i];
    }
    return PL_OK;
}

/* ---- where lines begin ---- */

static pl_status add_begin(lines *l, uint64_t *count, uint64_t at, pl_error *err)
{
    if (pl_grow(&l->begin, &l->capacity, *count, sizeof *l->begin))
        return pl_fail(err, PL_E_NOMEM, "no memory for the places of %" PRIu64 " lines", *count);
    l->begin[(*count)++] = at;
    return PL_OK;
}

static pl_status scan(const pl_rows *r, int fd, lines *l, uint64_t *begins, pl_error *err)
{
    char piece[4096];
    PL_TRY(add_begin(l, begins, 0, err));
    for (uint64_t at = 0; at < r->bytes;) {
        const size_t bytes = r->bytes - at < sizeof piece ? (size_t)(r->bytes - at) : sizeof piece;
        PL_TRY(pl_file_read_at(fd, r->path, at, piece, bytes, err));
        for (size_t i = 0; i < bytes; i++)
            if (piece[i] == '\n' && at + i + 1 < r->bytes) PL_TRY(add_begin(l, begins, at + i + 1, err));
        at += bytes;
    }
    return add_begin(l, begins, r->bytes, err);
}

static pl_status open_text(pl_rows *r, pl_error *err)
{
    uint64_t begins = 0, bytes;
    int fd;
    lines *l = *lines_of(r) = pl_alloc(1, sizeof *l);
    if (!l) return pl_fail(err, PL_E_NOMEM, "no memory for the lines of %.300s", r->path);
    l->path = r->path;
    l->most = pl_infer_port_elems(r->port), l->below = r->port->below;
    PL_TRY(pl_encoder_create(pl_text_data_of(r->port->of)->tokenizer, take, l, &l->encoder, err));
    PL_TRY(pl_file_open(r->path, &fd, &bytes, err));
    pl_status status = scan(r, fd, l, &begins, err);
    close(fd);
    r->count = begins ? begins - 1 : 0;
    return status;
}

static void close_text(pl_rows *r)
{
    lines *l = *lines_of(r);
    if (!l) return;
    pl_encoder_destroy(l->encoder);
    pl_free(l->begin);
    pl_free(l);
}

/* ---- a line ---- */

/* Without its end. */
static pl_status encode(const pl_rows *r, int fd, lines *l, char *scratch, pl_error *err)
{
    const uint64_t end = l->begin[l->line + 1];
    for (uint64_t at = l->begin[l->line], bytes; at < end; at += bytes) {
        bytes = end - at < PL_ROWS_SCRATCH_BYTES ? end - at : PL_ROWS_SCRATCH_BYTES;
        PL_TRY(pl_file_read_at(fd, r->path, at, scratch, (size_t)bytes, err));
        size_t text = (size_t)bytes;
        if (at + bytes == end && text && scratch[text - 1] == '\n') text--;
        if (at + bytes == end && text && scratch[text - 1] == '\r') text--;
        PL_TRY(pl_encoder_feed(l->encoder, scratch, text, err));
    }
    return PL_OK;
}

static pl_status encode_line(const pl_rows *r, int fd, lines *l, char *scratch, pl_error *err)
{
    pl_status status = encode(r, fd, l, scratch, err);
    if (status == PL_OK) return pl_encoder_finish(l->encoder, err);
    pl_error ignored;
    l->ids = 0; /* what the encoder holds back goes nowhere */
    (void)pl_encoder_finish(l->encoder, &ignored);
    return status;
}

static pl_status read_text(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    lines *l = *lines_of(r);
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(r->path, &fd, &bytes, err));
    l->to = to, l->ids = 0, l->line = row;
    pl_status status = bytes == r->bytes ? encode_line(r, fd, l, scratch, err)
                                         : pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read", r->path);
    close(fd);
    if (status != PL_OK) return status;
    if (l->ids == 0)
        return pl_fail(err, PL_E_DATA,
                       "%.300s:%" PRIu64 ": the line is empty, and has no token to begin with; take it out", r->path,
                       row + 1);
    for (; l->ids < l->most; l->ids++) l->to[l->ids] = -1;
    return PL_OK;
}

const pl_rows_kind pl_text_rows = {"lines of text", is_mine, open_text, read_text, close_text};
