/* plimsoll draw: one page as a picture, by the drawer that an encoding has. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/pages/draw.h"
#include "plimsoll/draw.h"

enum { TEXT_MAX = 64 << 20, PNG_MEMORY = 512 << 10 };

typedef struct picture {
    pl_module draw;
    pl_font_file file;
    pl_page_geometry geometry;
    pl_drawer *drawer;
    void *font, *memory, *png_memory; /* blocks */
    uint8_t *page;
} picture;

pl_draw_options pl_draw_default(void) { return (pl_draw_options){.image_size = 224}; }

static pl_status open_drawer(picture *p, const pl_draw_options *o, pl_error *err)
{
    pl_font font;
    p->geometry = pl_page_geometry_of(o->image_size);
    p->geometry.whole_advances = !o->raqm_advances;
    PL_TRY(pl_page_geometry_check(&p->geometry, err));
    PL_TRY(pl_draw_load("drawing a text", &p->draw, err));
    PL_TRY(pl_font_find(o->font, &p->file, err));
    p->font = pl_alloc(p->file.bytes, 1);
    p->memory = pl_alloc(pl_drawer_bytes(&p->geometry), 1);
    p->png_memory = pl_alloc(PNG_MEMORY, 1);
    p->page = pl_alloc(o->image_size, o->image_size);
    if (!p->font || !p->memory || !p->png_memory || !p->page)
        return pl_fail(err, PL_E_NOMEM, "no memory to draw a page of %u pixels", o->image_size);
    PL_TRY(pl_font_read(&p->file, p->font, &font, err));
    pl_status status = pl_drawer_open(p->draw.functions, &p->geometry, &font, p->memory, pl_drawer_bytes(&p->geometry),
                                      &p->drawer, err);
    return status == PL_E_DATA ? pl_fail_prefix(err, status, "%s", p->file.path) : status;
}

static void release(picture *p)
{
    pl_drawer_close(p->drawer);
    pl_module_unload(&p->draw);
    pl_free(p->page);
    pl_free(p->png_memory);
    pl_free(p->memory);
    pl_free(p->font);
    pl_free(p);
}

/* A PNG of noise is larger than its pixels by the headers of its blocks and rows. */
static pl_status make_png(const picture *p, char **png, size_t *bytes, pl_error *err)
{
    const uint32_t size = p->geometry.image_size;
    const uint64_t room = (uint64_t)size * size * 9 / 8 + 4096;
    uint64_t made = 0;
    char why[200] = "";
    const pl_draw_module *draw = p->draw.functions;
    char *block = pl_alloc(room, 1);
    if (!block) return pl_fail(err, PL_E_NOMEM, "no memory for a picture of %u pixels", size);
    if (draw->png(p->png_memory, PNG_MEMORY, p->page, size, block, room, &made, why, sizeof why) != 0) {
        pl_free(block);
        return pl_fail(err, PL_E_INTERNAL, "the page cannot be made a PNG: %s", why);
    }
    *png = block, *bytes = (size_t)made;
    return PL_OK;
}

pl_status pl_draw_text(const char *text, size_t bytes, const pl_draw_options *o, char **png, size_t *png_bytes,
                       pl_draw_said *said, pl_error *err)
{
    pl_page_remarks r;
    picture *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory to draw a page");
    pl_status status = open_drawer(p, o, err);
    if (status == PL_OK) {
        pl_draw_page(p->drawer, text, bytes, p->page, &r);
        *said = (pl_draw_said){(uint32_t)r.lines, pl_drawer_rows(p->drawer), pl_drawer_columns(p->drawer),
                               r.invalid_bytes,   r.missing_glyphs,          r.unshaped_lines,
                               r.truncated_bytes};
        status = make_png(p, png, png_bytes, err);
    }
    release(p);
    return status;
}

pl_status pl_draw_file(const char *path, const pl_draw_options *o, char **png, size_t *png_bytes, pl_draw_said *said,
                       pl_error *err)
{
    char *text;
    size_t bytes;
    PL_TRY(pl_file_read_input(path, TEXT_MAX, &text, &bytes, err));
    pl_status status = pl_draw_text(text, bytes, o, png, png_bytes, said, err);
    pl_free(text);
    return status;
}
