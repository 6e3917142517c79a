/* Reading a problem from CSV (RFC 4180: quotes, CRLF; also a byte order mark and blank lines). Strict: every refusal
 * says file:line:column, what was found and what was expected. Columns are found by the header's names, in any order.
 */
#include "base/utf8.h"
#include "plimsoll/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"
#include "base/str.h"
#include "base/units.h"

enum { TEXT_MAX = 1 << 30, SHOWN = 40 };

typedef enum column { ID, LOWER, UPPER, SIZE, ALIGNMENT, OFFSET, COLUMNS } column;

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "alignment", "offset"};

struct pl_place_table {
    pl_pool *pool; /* ids */
    pl_place_buffer *buffers;
    size_t count, capacity;
    uint32_t *lines;
    size_t line_capacity;
};

typedef struct cell {
    const char *text; /* in the pool when it was quoted, else in the file; not terminated */
    size_t bytes;
    unsigned column; /* where it starts, from 1 */
} cell;

typedef struct reader {
    const char *name, *at, *end, *line_start;
    uint32_t line;
    unsigned cell_count;     /* columns of the header */
    column meaning[COLUMNS]; /* of the header's cells */
    bool present[COLUMNS];
    cell cells[COLUMNS];
    pl_place_table *table;
    pl_error *err;
} reader;

/* Found text for a message: short, without control characters. */
static const char *shown(const cell *c, char buf[SHOWN + 4])
{
    size_t n = c->bytes < SHOWN ? c->bytes : SHOWN;
    for (size_t i = 0; i < n; i++) buf[i] = (unsigned char)c->text[i] < 32 || c->text[i] == 127 ? '?' : c->text[i];
    memcpy(buf + n, c->bytes > SHOWN ? "..." : "", c->bytes > SHOWN ? 4 : 1);
    return buf;
}

static pl_status PL_PRINTF(3, 4) fail_at(reader *r, unsigned at_column, const char *fmt, ...)
{
    pl_str sentence = {0};
    va_list args;
    va_start(args, fmt);
    pl_str_vprintf(&sentence, fmt, args);
    va_end(args);
    pl_status status =
        pl_fail(r->err, PL_E_DATA, "%s:%" PRIu32 ":%u: %s", r->name, r->line, at_column, pl_str_text(&sentence));
    pl_str_deinit(&sentence);
    return status;
}

static unsigned column_at(const reader *r, const char *at) { return (unsigned)(at - r->line_start) + 1; }

static bool at_line_end(const reader *r)
{
    return r->at == r->end || *r->at == '\n' || (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

static void skip_line_end(reader *r)
{
    if (r->at < r->end && *r->at == '\r') r->at++;
    if (r->at < r->end && *r->at == '\n') r->at++;
    r->line_start = r->at;
    r->line++;
}

static void trim(cell *c)
{
    while (c->bytes && (*c->text == ' ' || *c->text == '\t')) c->text++, c->bytes--, c->column++;
    while (c->bytes && (c->text[c->bytes - 1] == ' ' || c->text[c->bytes - 1] == '\t')) c->bytes--;
}

static pl_status read_quoted(reader *r, cell *c)
{
    const char *start = r->at++, *close = r->at;
    while (close < r->end && (*close != '"' || (close + 1 < r->end && close[1] == '"'))) close += *close == '"' ? 2 : 1;
    if (close >= r->end)
        return fail_at(r, column_at(r, start),
                       "a quote opens here and is never closed; double a quote that belongs to the text");
    char *text = pl_pool_alloc(r->table->pool, (size_t)(close - r->at) + 1, 1);
    if (!text) return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for line %" PRIu32, r->name, r->line);
    *c = (cell){text, 0, column_at(r, start)};
    for (; r->at < close; r->at++) {
        if (*r->at == '\n')
            return fail_at(r, c->column,
                           "a quoted cell runs past the end of the line; ids and numbers stand on one line");
        text[c->bytes++] = *r->at;
        if (*r->at == '"') r->at++; /* doubled */
    }
    r->at = close + 1;
    if (r->at < r->end && *r->at != ',' && !at_line_end(r))
        return fail_at(r, column_at(r, r->at), "text after a closing quote; expected a comma or the end of the line");
    return PL_OK;
}

static pl_status read_cell(reader *r, cell *c)
{
    if (r->at < r->end && *r->at == '"') return read_quoted(r, c);
    const char *start = r->at;
    while (!at_line_end(r) && *r->at != ',') r->at++;
    *c = (cell){start, (size_t)(r->at - start), column_at(r, start)};
    trim(c);
    return PL_OK;
}

/* One line into cells; refuses more than `most`. */
static pl_status read_row(reader *r, unsigned most, unsigned *count)
{
    for (*count = 0;; r->at++) {
        cell c;
        if (*count == most)
            return fail_at(r, column_at(r, r->at), "more than %u cells in this row; expected one for each column",
                           most);
        PL_TRY(read_cell(r, &c));
        r->cells[(*count)++] = c;
        if (at_line_end(r)) return PL_OK;
    }
}

static bool same_word(const cell *c, const char *word)
{
    return c->bytes == strlen(word) && strncasecmp(c->text, word, c->bytes) == 0;
}

static pl_status unknown_column(reader *r, const cell *c)
{
    char buf[SHOWN + 4];
    const char *near = pl_nearest(shown(c, buf), column_names, COLUMNS);
    return fail_at(r, c->column,
                   "unknown column '%s'%s%s%s; the columns are id, lower, upper, size, and if wanted "
                   "alignment and offset",
                   buf, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static pl_status read_header(reader *r)
{
    PL_TRY(read_row(r, COLUMNS, &r->cell_count));
    for (unsigned k = 0; k < r->cell_count; k++) {
        const cell *c = &r->cells[k];
        unsigned m = 0;
        while (m < COLUMNS && !same_word(c, column_names[m])) m++;
        if (m == COLUMNS) return unknown_column(r, c);
        if (r->present[m]) return fail_at(r, c->column, "column '%s' appears twice in the header", column_names[m]);
        r->present[m] = true;
        r->meaning[k] = (column)m;
    }
    for (unsigned m = ID; m <= SIZE; m++)
        if (!r->present[m])
            return fail_at(r, 1, "the header lacks the column '%s'; expected id, lower, upper, size in any order",
                           column_names[m]);
    return PL_OK;
}

int pl_place_parse_size(const char *text, uint64_t *bytes)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits]) return pl_parse_bytes(text, bytes);
    errno = 0;
    *bytes = strtoull(text, NULL, 10);
    return errno ? -1 : 0;
}

static pl_status read_number(reader *r, const cell *c, column m, uint64_t *value)
{
    char text[64], buf[SHOWN + 4];
    bool unit = m != LOWER && m != UPPER;
    const char *expected = unit ? "a size such as 4096 or 1.5MiB" : "a whole number";
    if (c->bytes == 0) return fail_at(r, c->column, "%s is empty; expected %s", column_names[m], expected);
    size_t n = c->bytes < sizeof text ? c->bytes : sizeof text - 1;
    memcpy(text, c->text, n);
    text[n] = 0;
    bool plain = strspn(text, "0123456789") == c->bytes;
    if (n != c->bytes || strlen(text) != n || (!plain && !unit) || pl_place_parse_size(text, value))
        return fail_at(r, c->column, "%s is '%s'; expected %s, at most 2^63 - 1", column_names[m], shown(c, buf),
                       expected);
    if (*value > INT64_MAX) return fail_at(r, c->column, "%s is %s, beyond 2^63 - 1", column_names[m], shown(c, buf));
    return PL_OK;
}

static pl_status read_value(reader *r, const cell *c, column m, pl_place_buffer *b)
{
    switch (m) {
    case ID:
        if (!c->bytes) return fail_at(r, c->column, "the id is empty; each buffer needs a name of its own");
        if (memchr(c->text, 0, c->bytes))
            return fail_at(r, c->column, "a zero byte in the id; this is not a text file");
        b->id = pl_pool_strndup(r->table->pool, c->text, c->bytes);
        return b->id ? PL_OK : pl_fail(r->err, PL_E_NOMEM, "%s: no memory for line %" PRIu32, r->name, r->line);
    case LOWER:
        return read_number(r, c, m, &b->lower);
    case UPPER:
        return read_number(r, c, m, &b->upper);
    case SIZE:
        return read_number(r, c, m, &b->size);
    case ALIGNMENT:
        return c->bytes ? read_number(r, c, m, &b->alignment) : PL_OK;
    case OFFSET:
        return c->bytes ? read_number(r, c, m, &b->fixed_offset) : PL_OK;
    case COLUMNS:
        break;
    }
    return PL_OK;
}

static unsigned column_of(const reader *r, column m)
{
    for (unsigned k = 0; k < r->cell_count; k++)
        if (r->meaning[k] == m) return r->cells[k].column;
    return 1;
}

static pl_status check_row(reader *r, const pl_place_buffer *b)
{
    if (b->lower >= b->upper)
        return fail_at(r, column_of(r, UPPER),
                       "upper is %" PRIu64 " and lower %" PRIu64 ": a life [lower, upper) needs lower below upper",
                       b->upper, b->lower);
    if (b->alignment == 0 || (b->alignment & (b->alignment - 1)))
        return fail_at(r, column_of(r, ALIGNMENT), "alignment is %" PRIu64 ", not a power of two", b->alignment);
    if (b->fixed_offset != PL_PLACE_NONE && b->fixed_offset % b->alignment)
        return fail_at(r, column_of(r, OFFSET),
                       "the fixed offset %" PRIu64 " is not a multiple of the alignment %" PRIu64, b->fixed_offset,
                       b->alignment);
    return PL_OK;
}

static pl_status read_buffer(reader *r)
{
    pl_place_table *t = r->table;
    pl_place_buffer b = pl_place_buffer_make(0, 0, 0);
    unsigned count;
    PL_TRY(read_row(r, r->cell_count, &count));
    if (count < r->cell_count)
        return fail_at(r, column_at(r, r->at), "%u cells in this row; expected %u, one for each column of the header",
                       count, r->cell_count);
    for (unsigned k = 0; k < count; k++) PL_TRY(read_value(r, &r->cells[k], r->meaning[k], &b));
    PL_TRY(check_row(r, &b));
    if (pl_grow(&t->buffers, &t->capacity, t->count, sizeof *t->buffers) ||
        pl_grow(&t->lines, &t->line_capacity, t->count, sizeof *t->lines))
        return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for line %" PRIu32, r->name, r->line);
    t->lines[t->count] = r->line;
    t->buffers[t->count++] = b;
    return PL_OK;
}

typedef struct named {
    const char *id;
    uint32_t line;
} named;

static int compare_named(const void *left, const void *right)
{
    const named *a = left, *b = right;
    int order = strcmp(a->id, b->id);
    return order ? order : a->line < b->line ? -1 : a->line > b->line;
}

static pl_status check_ids(reader *r)
{
    pl_place_table *t = r->table;
    named *list = pl_alloc(t->count, sizeof *list);
    if (!list) return pl_fail(r->err, PL_E_NOMEM, "%s: no memory to compare %zu ids", r->name, t->count);
    for (size_t i = 0; i < t->count; i++) list[i] = (named){t->buffers[i].id, t->lines[i]};
    qsort(list, t->count, sizeof *list, compare_named);
    pl_status status = PL_OK;
    for (size_t i = 1; i < t->count && status == PL_OK; i++) {
        if (strcmp(list[i - 1].id, list[i].id)) continue;
        r->line = list[i].line;
        cell c = {list[i].id, strlen(list[i].id), 1};
        char buf[SHOWN + 4];
        status = fail_at(r, 1, "the id '%s' was used before, in line %" PRIu32, shown(&c, buf), list[i - 1].line);
    }
    pl_free(list);
    return status;
}

static pl_status read_all_rows(reader *r)
{
    bool header = false;
    r->line_start = r->at += pl_utf8_mark(r->at, (size_t)(r->end - r->at));
    for (; r->at < r->end; skip_line_end(r)) {
        const char *start = r->at;
        while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) r->at++;
        if (at_line_end(r)) continue; /* blank */
        r->at = start;
        PL_TRY(header ? read_buffer(r) : read_header(r));
        header = true;
    }
    if (!header) return fail_at(r, 1, "the file is empty; expected a header such as id,lower,upper,size");
    return check_ids(r);
}

pl_status pl_place_table_parse(const char *text, size_t bytes, const char *name, pl_place_table **out, pl_error *err)
{
    *out = NULL;
    pl_place_table *t = pl_alloc(1, sizeof *t);
    if (t) t->pool = pl_pool_create();
    if (!t || !t->pool) {
        pl_place_table_destroy(t);
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", name);
    }
    reader r = {.name = name, .at = text, .end = text + bytes, .line_start = text, .line = 1, .table = t, .err = err};
    pl_status status = read_all_rows(&r);
    if (status == PL_OK)
        *out = t;
    else
        pl_place_table_destroy(t);
    return status;
}

pl_status pl_place_table_read(const char *path, pl_place_table **out, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    *out = NULL;
    pl_status status = pl_file_read_input(path, TEXT_MAX, &text, &bytes, err);
    if (status == PL_OK) status = pl_place_table_parse(text, bytes, strcmp(path, "-") ? path : "stdin", out, err);
    pl_free(text);
    return status;
}

pl_place_problem pl_place_table_problem(const pl_place_table *t)
{
    return (pl_place_problem){.buffers = t->buffers, .buffer_count = t->count, .capacity = PL_PLACE_NONE};
}

void pl_place_table_destroy(pl_place_table *t)
{
    if (!t) return;
    pl_pool_destroy(t->pool);
    pl_free(t->buffers);
    pl_free(t->lines);
    pl_free(t);
}
