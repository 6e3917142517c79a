#include "data/infer/lines.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

bool pl_infer_lines_are_text(const char *head, size_t bytes) { return !memchr(head, 0, bytes); }

static pl_status add_begin(pl_infer_lines *l, uint64_t *begins, uint64_t at, pl_error *err)
{
    if (pl_grow(&l->begin, &l->capacity, *begins, sizeof *l->begin))
        return pl_fail(err, PL_E_NOMEM, "no memory for the places of %" PRIu64 " lines", *begins);
    l->begin[(*begins)++] = at;
    return PL_OK;
}

static pl_status scan(const pl_rows *r, int fd, pl_infer_lines *l, uint64_t *begins, pl_error *err)
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

pl_status pl_infer_lines_find(const pl_rows *r, pl_infer_lines *l, pl_error *err)
{
    uint64_t begins = 0, bytes;
    int fd;
    PL_TRY(pl_file_open(r->path, &fd, &bytes, err));
    pl_status status = scan(r, fd, l, &begins, err);
    close(fd);
    l->count = begins ? begins - 1 : 0;
    return status;
}

void pl_infer_lines_deinit(pl_infer_lines *l)
{
    pl_free(l->begin);
    *l = (pl_infer_lines){0};
}

/* How many of the last `bytes` bytes of a line are its end. */
static uint64_t end_of(const char *piece, uint64_t bytes)
{
    uint64_t end = bytes > 0 && piece[bytes - 1] == '\n';
    return end + (bytes > end && piece[bytes - end - 1] == '\r');
}

/* The last two bytes come with their piece, so that an end is never cut in two. */
static pl_status read_pieces(const pl_rows *r, int fd, uint64_t at, uint64_t end, char *scratch, pl_infer_take *take,
                             void *context, pl_error *err)
{
    enum { PIECE = PL_ROWS_SCRATCH_BYTES - 2 };
    for (uint64_t bytes; at < end; at += bytes) {
        bytes = end - at <= PL_ROWS_SCRATCH_BYTES ? end - at : PIECE;
        PL_TRY(pl_file_read_at(fd, r->path, at, scratch, (size_t)bytes, err));
        const uint64_t text = at + bytes == end ? bytes - end_of(scratch, bytes) : bytes;
        PL_TRY(take(context, scratch, (size_t)text, err));
    }
    return PL_OK;
}

pl_status pl_infer_lines_read(const pl_rows *r, const pl_infer_lines *l, uint64_t line, void *scratch,
                              pl_infer_take *take, void *context, pl_error *err)
{
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(r->path, &fd, &bytes, err));
    pl_status status = bytes == r->bytes
                           ? read_pieces(r, fd, l->begin[line], l->begin[line + 1], scratch, take, context, err)
                           : pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read", r->path);
    close(fd);
    return status;
}
