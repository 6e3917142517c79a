#include "data/pages/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

struct pl_scanner {
    pl_scan scan;
    bool begun;
    union {
        pl_scan_lines lines;
        pl_scan_jsonl jsonl;
        pl_scan_csv csv;
    } of;
};

uint64_t pl_scanner_bytes(pl_texts_form form)
{
    /* The line is there twice while its buffer grows, and once more as jansson reads its longest string, whose buffer
     * doubles, too, and is copied; a value of the tree takes below 200 bytes with its note. */
    const uint64_t jsonl = 6 * (uint64_t)PL_TEXTS_LINE_BYTES + 200 * (uint64_t)PL_TEXTS_LINE_VALUES;
    return sizeof(pl_scanner) + 4096 + (form == PL_TEXTS_JSONL ? jsonl : 0);
}

pl_status pl_scanner_create(const pl_texts_setup *setup, pl_text_found found, void *context, pl_scanner **out,
                            pl_error *err)
{
    pl_scanner *s = *out = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "%s: no memory for finding its texts", setup->path);
    s->scan = (pl_scan){.setup = setup, .found = found, .context = context, .line = 1};
    if (setup->form == PL_TEXTS_CSV) s->of.csv = pl_scan_csv_begin(&s->scan);
    return PL_OK;
}

static pl_status feed(pl_scanner *s, const uint8_t *data, size_t bytes, pl_error *err)
{
    switch (s->scan.setup->form) {
    case PL_TEXTS_LINES:
        return pl_scan_lines_feed(&s->scan, &s->of.lines, data, bytes, err);
    case PL_TEXTS_JSONL:
        return pl_scan_jsonl_feed(&s->scan, &s->of.jsonl, data, bytes, err);
    case PL_TEXTS_CSV:
        return pl_scan_csv_feed(&s->scan, &s->of.csv, data, bytes, err);
    default:
        return pl_fail(err, PL_E_INTERNAL, "%s: texts of this form are not found by scanning", s->scan.setup->path);
    }
}

/* What each form keeps of where it is begins behind the mark. */
static void skip_mark(pl_scanner *s, size_t mark)
{
    s->scan.at = mark;
    if (s->scan.setup->form == PL_TEXTS_LINES) s->of.lines.begin = mark;
    if (s->scan.setup->form == PL_TEXTS_JSONL) s->of.jsonl.begin = mark;
    if (s->scan.setup->form == PL_TEXTS_CSV) s->of.csv.begin = mark;
}

pl_status pl_scanner_feed(pl_scanner *s, const void *data, size_t bytes, pl_error *err)
{
    const uint8_t *from = data;
    if (bytes == 0) return PL_OK;
    const size_t mark = s->begun ? 0 : pl_utf8_mark(from, bytes);
    if (mark) skip_mark(s, mark), from += mark, bytes -= mark;
    s->begun = true;
    PL_TRY(feed(s, from, bytes, err));
    s->scan.at += bytes;
    return PL_OK;
}

pl_status pl_scanner_finish(pl_scanner *s, pl_error *err)
{
    switch (s->scan.setup->form) {
    case PL_TEXTS_LINES:
        return pl_scan_lines_finish(&s->scan, &s->of.lines, err);
    case PL_TEXTS_JSONL:
        return pl_scan_jsonl_finish(&s->scan, &s->of.jsonl, err);
    default:
        return pl_scan_csv_finish(&s->scan, &s->of.csv, err);
    }
}

void pl_scanner_destroy(pl_scanner *s)
{
    if (!s) return;
    if (s->scan.setup->form == PL_TEXTS_JSONL) pl_free(s->of.jsonl.line);
    pl_free(s);
}

/* ---- a text a line ---- */

pl_status pl_scan_lines_feed(pl_scan *s, pl_scan_lines *l, const uint8_t *data, size_t bytes, pl_error *err)
{
    const uint8_t *at = data, *const end = data + bytes;
    for (const uint8_t *stop; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1) {
        const uint64_t offset = s->at + (uint64_t)(stop - data);
        const bool cr = stop > data ? stop[-1] == '\r' : l->after_cr;
        const bool cuts = cr && offset > l->begin;
        PL_TRY(s->found(s->context, &(pl_text_place){l->begin, offset - l->begin - cuts, PL_TEXT_RAW}, err));
        l->begin = offset + 1;
        s->line++;
    }
    l->after_cr = end[-1] == '\r';
    return PL_OK;
}

pl_status pl_scan_lines_finish(pl_scan *s, pl_scan_lines *l, pl_error *err)
{
    if (s->at == l->begin) return PL_OK;
    return s->found(s->context, &(pl_text_place){l->begin, s->at - l->begin, PL_TEXT_RAW}, err);
}
