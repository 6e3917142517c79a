#include "texts/scan.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"

struct pl_scanner {
    pl_scan scan;
    bool begun;
    uint64_t begin; /* after the mark */
    union {
        pl_scan_lines lines;
        pl_scan_jsonl jsonl;
        pl_scan_csv csv;
        pl_scan_squad squad;
    } of;
};

uint64_t pl_scanner_bytes(pl_texts_form form)
{
    /* The line exists twice while its buffer grows, twice as it was before mending, and once more while jansson reads
     * its longest string, whose buffer doubles, too, and is copied; a value of the tree takes less than 200 bytes with
     * its bookkeeping. */
    const uint64_t jsonl = 8 * (uint64_t)PL_TEXTS_LINE_BYTES + 200 * (uint64_t)PL_TEXTS_LINE_VALUES;
    return sizeof(pl_scanner) + sizeof(pl_scan_pieces) + 4096 + (form == PL_TEXTS_JSONL ? jsonl : 0);
}

pl_status pl_scanner_create(const pl_texts_setup *setup, pl_text_found found, void *context, pl_scanner **out,
                            pl_error *err)
{
    pl_scanner *s = *out = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "%s: no memory for finding its texts", setup->path);
    s->scan = (pl_scan){.setup = setup, .found = found, .context = context, .line = 1};
    if (setup->form == PL_TEXTS_CSV) s->of.csv = pl_scan_csv_begin(&s->scan);
    if (setup->form == PL_TEXTS_SQUAD) s->of.squad = pl_scan_squad_begin(&s->scan);
    return PL_OK;
}

pl_status pl_scanner_want_pieces(pl_scanner *s, pl_text_piece piece, pl_error *err)
{
    s->scan.pieces = pl_alloc(1, sizeof *s->scan.pieces);
    if (!s->scan.pieces) return pl_fail(err, PL_E_NOMEM, "%s: no memory for reading its texts", s->scan.setup->path);
    s->scan.pieces->piece = piece;
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
    case PL_TEXTS_SQUAD:
        return pl_scan_squad_feed(&s->scan, &s->of.squad, data, bytes, err);
    case PL_TEXTS_WHOLE:
        return pl_scan_pass(&s->scan, PL_TEXT_RAW, data, bytes, err);
    default:
        return pl_fail(err, PL_E_INTERNAL, "%s: texts of this form are not found by scanning", s->scan.setup->path);
    }
}

/* Each form's position begins after the mark. */
static void skip_mark(pl_scanner *s, size_t mark)
{
    s->scan.at = s->begin = mark;
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
    case PL_TEXTS_SQUAD:
        return pl_scan_squad_finish(&s->scan, &s->of.squad, err);
    case PL_TEXTS_WHOLE:
        return pl_scan_found(&s->scan, &(pl_text_place){s->begin, s->scan.at - s->begin, PL_TEXT_RAW}, err);
    default:
        return pl_scan_csv_finish(&s->scan, &s->of.csv, err);
    }
}

void pl_scanner_destroy(pl_scanner *s)
{
    if (!s) return;
    if (s->scan.setup->form == PL_TEXTS_JSONL) pl_free(s->of.jsonl.line), pl_free(s->of.jsonl.as_is);
    pl_free(s->scan.pieces);
    pl_free(s);
}

/* ---- pieces ---- */

static pl_status hand_out(const pl_scan *s, pl_error *err)
{
    pl_scan_pieces *p = s->pieces;
    const size_t bytes = p->unescape.bytes;
    p->unescape.bytes = 0;
    return bytes ? p->piece(s->context, p->buffer, bytes, err) : PL_OK;
}

pl_status pl_scan_pass(const pl_scan *s, pl_text_encoding encoding, const void *data, size_t bytes, pl_error *err)
{
    pl_scan_pieces *p = s->pieces;
    if (!p || bytes == 0) return PL_OK;
    if (!p->in_text) p->unescape = pl_unescape_begin(encoding, p->buffer, sizeof p->buffer);
    p->unescape.marks_broken = true;
    p->in_text = true;
    if (encoding == PL_TEXT_RAW) return p->piece(s->context, data, bytes, err);
    for (const uint8_t *from = data; bytes;) {
        const size_t n = bytes < PL_SCAN_PIECE_BYTES ? bytes : PL_SCAN_PIECE_BYTES;
        (void)pl_unescape_feed(&p->unescape, from, n);
        PL_TRY(hand_out(s, err));
        from += n, bytes -= n;
    }
    return PL_OK;
}

pl_status pl_scan_found(const pl_scan *s, const pl_text_place *place, pl_error *err)
{
    if (s->pieces && s->pieces->in_text) {
        pl_unescape_end(&s->pieces->unescape);
        PL_TRY(hand_out(s, err));
        s->pieces->in_text = false;
    }
    return s->found(s->context, place, err);
}

/* ---- one text per line ---- */

/* A carriage return at the end of the data so far waits: the next byte tells what it belongs to. */
static pl_status pass_line(const pl_scan *s, pl_scan_lines *l, const uint8_t *at, const uint8_t *end, pl_error *err)
{
    if (at == end) return PL_OK;
    if (l->after_cr) PL_TRY(pl_scan_pass(s, PL_TEXT_RAW, "\r", 1, err));
    l->after_cr = end[-1] == '\r';
    return pl_scan_pass(s, PL_TEXT_RAW, at, (size_t)(end - at) - l->after_cr, err);
}

pl_status pl_scan_lines_feed(pl_scan *s, pl_scan_lines *l, const uint8_t *data, size_t bytes, pl_error *err)
{
    const uint8_t *at = data, *const end = data + bytes;
    for (const uint8_t *stop; (stop = memchr(at, '\n', (size_t)(end - at))) != NULL; at = stop + 1) {
        const uint64_t offset = s->at + (uint64_t)(stop - data);
        PL_TRY(pass_line(s, l, at, stop, err));
        PL_TRY(pl_scan_found(s, &(pl_text_place){l->begin, offset - l->begin - l->after_cr, PL_TEXT_RAW}, err));
        l->after_cr = false;
        l->begin = offset + 1;
        s->line++;
    }
    return pass_line(s, l, at, end, err);
}

pl_status pl_scan_lines_finish(pl_scan *s, pl_scan_lines *l, pl_error *err)
{
    if (s->at == l->begin) return PL_OK;
    if (l->after_cr) PL_TRY(pl_scan_pass(s, PL_TEXT_RAW, "\r", 1, err));
    return pl_scan_found(s, &(pl_text_place){l->begin, s->at - l->begin, PL_TEXT_RAW}, err);
}
