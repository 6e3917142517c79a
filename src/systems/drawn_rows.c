#include "systems/drawn_rows.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "data/infer/lines.h"
#include "data/pages/pages_data.h"

enum { ALIGNMENT = 64, TEXT_BYTES = 32 << 10 /* more than the largest page shows */ };

typedef struct drawing {
    pl_infer_lines lines;
    pl_drawer *drawer;
    void *memory; /* its memory, followed by a page */
    uint8_t *page;
    uint64_t pixels;
    size_t bytes; /* of the line that was read */
    bool is_cut;  /* it has more */
    char text[TEXT_BYTES];
} drawing;

static drawing **drawing_of(const pl_rows *r) { return (drawing **)(void *)(uintptr_t)r->own; }

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    return port->picture && pl_infer_lines_are_text(head, bytes);
}

static pl_status open_drawer(drawing *d, const pl_page_form *f, pl_error *err)
{
    const uint64_t drawer = pl_align_up(pl_drawer_bytes(f->geometry), ALIGNMENT);
    d->pixels = (uint64_t)f->geometry->image_size * f->geometry->image_size;
    d->memory = pl_alloc(1, drawer + d->pixels + ALIGNMENT);
    if (!d->memory) return pl_fail(err, PL_E_NOMEM, "no memory to draw texts");
    char *at = (char *)pl_align_up((uintptr_t)d->memory, ALIGNMENT);
    d->page = (uint8_t *)at + drawer;
    return pl_drawer_open(f->draw, f->geometry, f->font, at, drawer, &d->drawer, err);
}

static pl_status open_rows(pl_rows *r, pl_error *err)
{
    drawing *d = *drawing_of(r) = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory to draw texts");
    PL_TRY(open_drawer(d, r->port->of->for_rows, err));
    PL_TRY(pl_infer_lines_find(r, &d->lines, err));
    r->count = d->lines.count;
    return PL_OK;
}

static void close_rows(pl_rows *r)
{
    drawing *d = *drawing_of(r);
    if (!d) return;
    pl_drawer_close(d->drawer);
    pl_free(d->memory);
    pl_free(d);
}

static pl_status take(void *context, const char *piece, size_t bytes, pl_error *err)
{
    drawing *d = context;
    const size_t room = sizeof d->text - d->bytes, taken = bytes < room ? bytes : room;
    (void)err;
    memcpy(d->text + d->bytes, piece, taken);
    d->bytes += taken;
    d->is_cut |= taken < bytes;
    return PL_OK;
}

static pl_status read_row(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    drawing *d = *drawing_of(r);
    pl_page_remarks remarks;
    float *plane = to;
    d->bytes = 0, d->is_cut = false;
    PL_TRY(pl_infer_lines_read(r, &d->lines, row, scratch, take, d, err));
    if (d->is_cut) d->bytes = pl_page_without_cut(d->text, d->bytes);
    pl_draw_page(d->drawer, d->text, d->bytes, d->page, &remarks);
    *r->remark |= pl_page_remark_bits(&remarks, !d->is_cut);
    if (d->bytes == 0) *r->remark |= 1u << PL_PAGE_REMARK_COUNT;
    for (uint64_t c = 0; c < r->port->dim[0]; c++)
        for (uint64_t i = 0; i < d->pixels; i++) plane[c * d->pixels + i] = (float)d->page[i] / 255.0f;
    return PL_OK;
}

#define REMARK(c, word, text) {word, text},
static const pl_rows_remark remarks[] = {PL_PAGE_REMARKS(REMARK){PL_INFER_EMPTY}, {NULL, NULL}};
_Static_assert(sizeof remarks / sizeof *remarks <= PL_ROWS_REMARKS_MAX + 1, "bits");

const pl_rows_kind pl_drawn_rows = {.what = "lines of text",
                                    .is_mine = is_mine,
                                    .open = open_rows,
                                    .read = read_row,
                                    .close = close_rows,
                                    .remarks = remarks};
