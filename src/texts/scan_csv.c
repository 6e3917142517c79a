/* CSV as in RFC 4180, and as files are: lines may end without a carriage return, the last may lack its end, and a quote
 * within a field that begins without one stands for itself. Only a text's place is kept, so a field may have any
 * length. (libcsv keeps whole fields, and does not say where they lie.) */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "texts/scan.h"

/* Before a field's first byte; within one without quotes; within quotes; after a quote there, which is doubled or the
 * last one; after a carriage return that follows it. */
enum { BEGIN, PLAIN, QUOTED, QUOTE, RETURN };
#define NO_COLUMN UINT64_MAX

static const char *column_of(const pl_scan *s) { return s->setup->column ? s->setup->column : "text"; }

/* The number of a column, from 0, or NO_COLUMN. */
static uint64_t number_of(const char *name)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)name[0])) return NO_COLUMN;
    const uint64_t n = strtoull(name, &end, 10);
    return *end || errno || n == 0 ? NO_COLUMN : n - 1;
}

pl_scan_csv pl_scan_csv_begin(const pl_scan *s)
{
    const bool headless = s->setup->headless;
    return (pl_scan_csv){.state = BEGIN,
                         .in_header = !headless,
                         .record_line = 1,
                         .column = headless ? number_of(column_of(s)) : NO_COLUMN};
}

/* ---- records ---- */

static pl_status fail_record(const pl_scan *s, const pl_scan_csv *c, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s:%" PRIu64 ": has %" PRIu64 " fields, the first record %" PRIu64
                   "; commas and line ends within a text need quotes around it",
                   s->setup->path, c->record_line, c->field, c->fields);
}

/* The first record says how many fields the others have. */
static pl_status take_first(const pl_scan *s, pl_scan_csv *c, pl_error *err)
{
    if (c->in_header && c->column == NO_COLUMN) c->column = number_of(column_of(s));
    c->fields = c->field;
    if (c->column < c->fields) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s:%" PRIu64 ": has no column \"%.100s\" among its %" PRIu64 "; give %s",
                   s->setup->path, c->record_line, column_of(s), c->fields,
                   c->in_header ? "the name of one, or its number from 1 on" : "its number from 1 on");
}

static pl_status take_record(const pl_scan *s, pl_scan_csv *c, pl_error *err)
{
    if (c->fields == 0) PL_TRY(take_first(s, c, err));
    if (c->field != c->fields) return fail_record(s, c, err);
    if (!c->in_header) PL_TRY(pl_scan_found(s, &c->text, err));
    c->in_header = false;
    return PL_OK;
}

/* ---- fields ---- */

static bool is_wanted_name(const pl_scan *s, const pl_scan_csv *c)
{
    char name[sizeof c->name];
    if (c->name_bytes > sizeof c->name) return false;
    pl_unescape u = pl_unescape_begin(c->doubled ? PL_TEXT_CSV : PL_TEXT_RAW, name, sizeof name);
    (void)pl_unescape_feed(&u, (const uint8_t *)c->name, c->name_bytes);
    return u.bytes == strlen(column_of(s)) && memcmp(name, column_of(s), u.bytes) == 0;
}

static bool is_bare(const pl_scan_csv *c) { return c->state == BEGIN || c->state == PLAIN; }

/* Passes the bytes of the wanted field before `end`, if not done. What an earlier portion held back is a carriage
 * return, or a quote that the next one doubles. */
static pl_status pass_field(const pl_scan *s, pl_scan_csv *c, uint64_t end, pl_error *err)
{
    const pl_text_encoding encoding = is_bare(c) ? PL_TEXT_RAW : PL_TEXT_CSV;
    uint64_t from = c->passed > c->begin ? c->passed : c->begin;
    if (!s->pieces || c->in_header || c->field != c->column || from >= end) return PL_OK;
    if (from < s->at) PL_TRY(pl_scan_pass(s, encoding, is_bare(c) ? "\r" : "\"", 1, err));
    if (from < s->at) from++;
    c->passed = end;
    return from < end ? pl_scan_pass(s, encoding, c->portion + (from - s->at), (size_t)(end - from), err) : PL_OK;
}

/* The field ends before `end`, and lies within its quotes if it has any. */
static pl_status take_field(const pl_scan *s, pl_scan_csv *c, uint64_t end, pl_error *err)
{
    PL_TRY(pass_field(s, c, end, err));
    if (c->in_header && c->name_bytes <= sizeof c->name) c->name_bytes = (size_t)(end - c->begin);
    if (c->in_header && c->column == NO_COLUMN && is_wanted_name(s, c)) c->column = c->field;
    if (c->field == c->column)
        c->text = (pl_text_place){c->begin, end - c->begin, c->doubled ? PL_TEXT_CSV : PL_TEXT_RAW};
    c->field++;
    c->state = BEGIN;
    c->doubled = false;
    c->name_bytes = 0;
    return PL_OK;
}

/* At the end of a line, which is at offset `at`. An empty line is not a record. */
static pl_status take_line(const pl_scan *s, pl_scan_csv *c, uint64_t at, pl_error *err)
{
    const bool is_empty = c->field == 0 && is_bare(c) && at == c->begin;
    PL_TRY(take_field(s, c, is_bare(c) ? at : c->end, err));
    if (!is_empty) PL_TRY(take_record(s, c, err));
    c->field = 0;
    return PL_OK;
}

/* ---- bytes ---- */

static pl_status fail_quote(const pl_scan *s, const pl_scan_csv *c, uint64_t line, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s:%" PRIu64 ": field %" PRIu64
                   " goes on behind its closing quote; a quote within a text must be doubled",
                   s->setup->path, line, c->field + 1);
}

/* The header's names are kept as long as they can be the wanted one. */
static void keep_name(pl_scan_csv *c, uint8_t byte)
{
    if (c->name_bytes < sizeof c->name) c->name[c->name_bytes] = (char)byte;
    c->name_bytes += c->name_bytes <= sizeof c->name;
}

/* A carriage return before the line end belongs to it, also at the end of a file whose rest may have been cut off. */
static pl_status end_line(pl_scan *s, pl_scan_csv *c, uint64_t at, pl_error *err)
{
    PL_TRY(take_line(s, c, is_bare(c) && c->last == '\r' && at > c->begin ? at - 1 : at, err));
    c->begin = at + 1;
    c->record_line = ++s->line;
    return PL_OK;
}

static pl_status take_quoted(pl_scan *s, pl_scan_csv *c, uint8_t byte, uint64_t at, pl_error *err)
{
    if (c->state == QUOTED) {
        s->line += byte == '\n';
        if (byte == '"') c->state = QUOTE, c->end = at;
    } else if (c->state == QUOTE && byte == '"') {
        c->state = QUOTED, c->doubled = true;
    } else if (byte == '\n') {
        return end_line(s, c, at, err);
    } else if (c->state == QUOTE && byte == ',') {
        PL_TRY(take_field(s, c, c->end, err));
        c->begin = at + 1;
    } else if (c->state == QUOTE && byte == '\r') {
        c->state = RETURN;
    } else {
        return fail_quote(s, c, s->line, err);
    }
    return PL_OK;
}

static pl_status take_bare(pl_scan *s, pl_scan_csv *c, uint8_t byte, uint64_t at, pl_error *err)
{
    if (byte == '\n') return end_line(s, c, at, err);
    if (byte == ',') {
        PL_TRY(take_field(s, c, at, err));
        c->begin = at + 1;
    } else if (c->state == BEGIN && byte == '"') {
        c->state = QUOTED;
        c->begin = at + 1;
    } else {
        c->state = PLAIN;
    }
    return PL_OK;
}

pl_status pl_scan_csv_feed(pl_scan *s, pl_scan_csv *c, const uint8_t *data, size_t bytes, pl_error *err)
{
    c->portion = data;
    for (size_t i = 0; i < bytes; i++) {
        PL_TRY((is_bare(c) ? take_bare : take_quoted)(s, c, data[i], s->at + i, err));
        if (c->in_header && s->at + i >= c->begin) keep_name(c, data[i]);
        c->last = data[i];
    }
    const uint64_t end = s->at + bytes;
    return pass_field(s, c, is_bare(c) ? end - (c->last == '\r') : c->state == QUOTED ? end : c->end, err);
}

pl_status pl_scan_csv_finish(pl_scan *s, pl_scan_csv *c, pl_error *err)
{
    if (c->state == QUOTED)
        return pl_fail(err, PL_E_DATA,
                       "%s:%" PRIu64 ": field %" PRIu64 " of the record that begins here has no closing quote",
                       s->setup->path, c->record_line, c->field + 1);
    if (c->field == 0 && s->at == c->begin && c->state == BEGIN) return PL_OK;
    return end_line(s, c, s->at, err);
}
