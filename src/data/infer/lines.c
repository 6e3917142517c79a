#include "data/infer/lines.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/utf8.h"

bool pl_infer_lines_are_text(const char *head, size_t bytes) { return !memchr(head, 0, bytes); }

/* ---- where they begin ---- */

/* When there is no room left, every other mark is dropped. */
static void halve(pl_infer_lines *l)
{
    for (uint64_t i = 0; i < PL_INFER_MARKS / 2; i++) l->mark[i] = l->mark[2 * i];
    l->marks = PL_INFER_MARKS / 2;
    l->every *= 2;
}

static void end_line(pl_infer_lines *l, uint64_t at)
{
    if (at - l->next_at > l->longest) l->longest = at - l->next_at;
    l->next_at = at;
}

static void add_line(pl_infer_lines *l, uint64_t at)
{
    end_line(l, at);
    if (l->count % l->every == 0) {
        if (l->marks == PL_INFER_MARKS) halve(l);
        if (l->count % l->every == 0) l->mark[l->marks++] = at;
    }
    l->count++;
}

/* ---- texts that were made ready ---- */

static uint64_t end_of_rows(const pl_rows *r) { return r->records_bytes ? r->records_at + r->records_bytes : r->bytes; }

static pl_status find_end_of_record(const pl_rows *r, int fd, uint64_t *at, pl_error *err)
{
    uint64_t bytes;
    PL_TRY(pl_file_read_at(fd, r->path, *at, &bytes, sizeof bytes, err));
    if (bytes > end_of_rows(r) - *at - sizeof bytes)
        return pl_fail(err, PL_E_DATA, "%.300s: what was made ready of it is damaged", r->path);
    *at += sizeof bytes + bytes;
    return PL_OK;
}

static pl_status scan_records(const pl_rows *r, int fd, pl_infer_lines *l, pl_error *err)
{
    for (uint64_t at = r->records_at; at < end_of_rows(r);) {
        add_line(l, at);
        PL_TRY(find_end_of_record(r, fd, &at, err));
    }
    return PL_OK;
}

static pl_status scan(const pl_rows *r, int fd, pl_infer_lines *l, pl_error *err)
{
    char piece[4096];
    if (r->records_bytes) return scan_records(r, fd, l, err);
    if (r->bytes == 0) add_line(l, 0);
    for (uint64_t at = 0; at < r->bytes;) {
        const size_t bytes = r->bytes - at < sizeof piece ? (size_t)(r->bytes - at) : sizeof piece;
        PL_TRY(pl_file_read_at(fd, r->path, at, piece, bytes, err));
        if (at == 0) add_line(l, pl_utf8_mark(piece, bytes));
        for (size_t i = 0; i < bytes; i++) {
            if (!piece[i])
                return pl_fail(err, PL_E_DATA, "%.300s: is no text: byte %" PRIu64 " is 0, in line %" PRIu64, r->path,
                               at + i, l->count);
            if (piece[i] == '\n' && at + i + 1 < r->bytes) add_line(l, at + i + 1);
        }
        at += bytes;
    }
    return PL_OK;
}

pl_status pl_infer_lines_find(const pl_rows *r, pl_infer_lines *l, pl_error *err)
{
    uint64_t bytes;
    int fd;
    *l = (pl_infer_lines){.every = 1, .next_at = r->records_at};
    PL_TRY(r->records_bytes ? pl_rows_reopen(r, &fd, err) : pl_file_open(r->path, &fd, &bytes, err));
    pl_status status = scan(r, fd, l, err);
    end_line(l, end_of_rows(r));
    l->next_at = l->mark[0];
    close(fd);
    return status;
}

/* ---- one of them ---- */

/* Moves *at past the end of the line that begins there. */
static pl_status find_end(const pl_rows *r, int fd, uint64_t *at, char *scratch, pl_error *err)
{
    if (r->records_bytes) return find_end_of_record(r, fd, at, err);
    for (uint64_t bytes; *at < r->bytes; *at += bytes) {
        bytes = r->bytes - *at < PL_ROWS_SCRATCH_BYTES ? r->bytes - *at : PL_ROWS_SCRATCH_BYTES;
        PL_TRY(pl_file_read_at(fd, r->path, *at, scratch, (size_t)bytes, err));
        const char *end = memchr(scratch, '\n', (size_t)bytes);
        if (end) return *at += (uint64_t)(end - scratch) + 1, PL_OK;
    }
    return PL_OK;
}

/* From the last line that was read, or from the mark before it. */
static pl_status find_begin(const pl_rows *r, pl_infer_lines *l, int fd, uint64_t line, char *scratch, pl_error *err)
{
    const uint64_t mark = line / l->every;
    if (line < l->next || l->next < mark * l->every) l->next = mark * l->every, l->next_at = l->mark[mark];
    for (; l->next < line; l->next++) {
        if (l->next_at >= end_of_rows(r))
            return pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read", r->path);
        PL_TRY(find_end(r, fd, &l->next_at, scratch, err));
    }
    return PL_OK;
}

/* How many of a piece's last bytes are the line's end. */
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
        const bool has_end = at + bytes == end && !r->records_bytes;
        const uint64_t text = has_end ? bytes - end_of(scratch, bytes) : bytes;
        PL_TRY(take(context, scratch, (size_t)text, err));
    }
    return PL_OK;
}

/* The line's bytes, with its end. */
static pl_status find_line(const pl_rows *r, pl_infer_lines *l, int fd, uint64_t line, char *scratch, uint64_t *begin,
                           uint64_t *end, pl_error *err)
{
    PL_TRY(find_begin(r, l, fd, line, scratch, err));
    *begin = *end = l->next_at;
    PL_TRY(find_end(r, fd, end, scratch, err));
    l->next = line + 1, l->next_at = *end;
    return PL_OK;
}

pl_status pl_infer_lines_locate(const pl_rows *r, pl_infer_lines *l, int fd, uint64_t line, void *scratch,
                                uint64_t *begin, uint64_t *end, pl_error *err)
{
    char last[2];
    PL_TRY(find_line(r, l, fd, line, scratch, begin, end, err));
    if (r->records_bytes) return *begin += sizeof(uint64_t), PL_OK;
    const uint64_t bytes = *end - *begin < sizeof last ? *end - *begin : sizeof last;
    PL_TRY(pl_file_read_at(fd, r->path, *end - bytes, last, (size_t)bytes, err));
    *end -= end_of(last, bytes);
    return PL_OK;
}

static pl_status read_line(const pl_rows *r, pl_infer_lines *l, int fd, uint64_t line, char *scratch,
                           pl_infer_take *take, void *context, pl_error *err)
{
    uint64_t begin, end;
    PL_TRY(find_line(r, l, fd, line, scratch, &begin, &end, err));
    if (r->records_bytes) begin += sizeof(uint64_t);
    return read_pieces(r, fd, begin, end, scratch, take, context, err);
}

pl_status pl_infer_lines_read(const pl_rows *r, pl_infer_lines *l, uint64_t line, void *scratch, pl_infer_take *take,
                              void *context, pl_error *err)
{
    int fd;
    PL_TRY(pl_rows_reopen(r, &fd, err));
    const pl_status status = read_line(r, l, fd, line, scratch, take, context, err);
    close(fd);
    return status;
}
