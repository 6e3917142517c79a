#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "data/pages/draw.h"
#include "data/pages/layout.h"

struct pl_drawer {
    const pl_draw_module *module;
    pl_pen *pen;
    pl_page_geometry geometry;
    uint32_t columns, rows;
    pl_page_lines lines;
};

/* ---- the module ---- */

pl_status pl_draw_load(const char *what, pl_module *m, pl_error *err)
{
    const pl_module_wanted wanted = {
        .file = PL_DRAW_FILE,
        .symbol = PL_DRAW_SYMBOL,
        .version = PL_DRAW_VERSION,
        .own_first = true,
        .what = what,
        .install = "; install Raqm, FreeType and libpng (Debian: libraqm-dev libfreetype-dev libpng-dev, and build "
                   "Plimsoll with them there)",
        .instead = ""};
    return pl_module_load(&wanted, m, err);
}

/* ---- a page's form ---- */

pl_page_geometry pl_page_geometry_of(uint32_t image_size)
{
    return (pl_page_geometry){image_size, .font_px = 12, .padding_px = 10, .pitch_px = 16, .whole_advances = true};
}

static uint32_t inner(const pl_page_geometry *g) { return g->image_size - 2 * g->padding_px; }

pl_status pl_page_geometry_check(const pl_page_geometry *g, pl_error *err)
{
    if (g->image_size < PL_PAGE_SIZE_MIN || g->image_size > PL_PAGE_SIZE_MAX)
        return pl_fail(err, PL_E_USAGE, "a page of %" PRIu32 " pixels was asked for; it can have %d to %d",
                       g->image_size, PL_PAGE_SIZE_MIN, PL_PAGE_SIZE_MAX);
    if (g->font_px < 4 || g->font_px > 64 || g->pitch_px < 4 || g->padding_px >= g->image_size / 2 ||
        inner(g) < g->pitch_px || inner(g) / g->pitch_px > PL_PAGE_ROWS_MAX)
        return pl_fail(err, PL_E_USAGE,
                       "a page of %" PRIu32 " pixels with %" PRIu32 " of padding has no or too many lines of %" PRIu32
                       " pixels for a font of %" PRIu32,
                       g->image_size, g->padding_px, g->pitch_px, g->font_px);
    return PL_OK;
}

/* ---- a drawer ---- */

static pl_pen_options options_of(const pl_page_geometry *g)
{
    return (pl_pen_options){g->font_px, g->image_size, g->whole_advances};
}

uint64_t pl_drawer_bytes(const pl_page_geometry *g)
{
    const pl_pen_options o = options_of(g);
    return PL_PEN_ALIGN + pl_align_up(sizeof(pl_drawer), PL_PEN_ALIGN) + pl_pen_bytes(&o);
}

/* As the source has it: the width over the mean advance of A-Z, a-z and 0-9. */
static pl_status find_columns(pl_drawer *d, pl_error *err)
{
    pl_pen_facts facts;
    d->module->tell(d->pen, &facts);
    d->rows = inner(&d->geometry) / d->geometry.pitch_px;
    const uint64_t columns = facts.sample_advance ? UINT64_C(62) * 64 * inner(&d->geometry) / facts.sample_advance : 0;
    if (columns >= 1 && columns <= PL_PAGE_COLUMNS_MAX) return d->columns = (uint32_t)columns, PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "the font %s has letters so %s that a line would have %" PRIu64
                   " of them, and it can have 1 to %d; choose another font or size",
                   facts.family, columns ? "narrow" : "wide", columns, PL_PAGE_COLUMNS_MAX);
}

pl_status pl_drawer_open(const pl_draw_module *module, const pl_page_geometry *g, const pl_font *font, void *memory,
                         uint64_t bytes, pl_drawer **drawer, pl_error *err)
{
    const pl_pen_options o = options_of(g);
    char why[200] = "";
    PL_TRY(pl_page_geometry_check(g, err));
    if (bytes < pl_drawer_bytes(g)) return pl_fail(err, PL_E_INTERNAL, "the memory for a drawer is too small");
    uint8_t *at = (uint8_t *)memory + -(uintptr_t)memory % PL_PEN_ALIGN;
    pl_drawer *d = (pl_drawer *)(void *)at;
    memset(d, 0, sizeof *d);
    d->module = module, d->geometry = *g;
    at += pl_align_up(sizeof *d, PL_PEN_ALIGN);
    if (d->module->open(at, pl_pen_bytes(&o), font->data, font->bytes, &o, &d->pen, why, sizeof why) != 0)
        return pl_fail(err, PL_E_DATA, "the font cannot be drawn with: it %s; choose another", why);
    pl_status status = find_columns(d, err);
    if (status != PL_OK) return d->module->close(d->pen), status;
    *drawer = d;
    return PL_OK;
}

void pl_drawer_close(pl_drawer *d)
{
    if (d) d->module->close(d->pen);
}

uint32_t pl_drawer_columns(const pl_drawer *d) { return d->columns; }
uint32_t pl_drawer_rows(const pl_drawer *d) { return d->rows; }
void pl_drawer_tell(const pl_drawer *d, pl_pen_facts *f) { d->module->tell(d->pen, f); }
void pl_drawer_shape_all(pl_drawer *d) { d->module->shape_all(d->pen); }
void pl_drawer_refuse(pl_drawer *d, uint64_t n) { d->module->refuse(d->pen, n); }

void pl_draw_page(pl_drawer *d, const char *text, size_t bytes, uint8_t *page, pl_page_remarks *remarks)
{
    const pl_page_geometry *g = &d->geometry;
    pl_page_lines *l = &d->lines;
    pl_pen_remarks seen = {0};
    pl_page_lay_out(text, bytes, d->columns, d->rows, l);
    d->module->begin(d->pen, page);
    for (uint32_t i = 0; i < l->rows; i++)
        d->module->line(d->pen, l->text[i], l->length[i], (int)g->padding_px, (int)(g->padding_px + i * g->pitch_px),
                        &seen);
    *remarks =
        (pl_page_remarks){l->invalid_bytes, seen.missing_glyphs, seen.unshaped_lines, l->truncated_bytes, l->rows};
}
