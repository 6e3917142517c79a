/* Drawing a text as a page: white paper, black ink, one byte a pixel (255: paper), DejaVu Sans Mono at 12 pixels, lines
 * of 16 pixels, 10 pixels of padding; on 224 x 224 that is 12 lines of 29 columns. What does not fit is left out, and
 * counted, like everything else that is not drawn as it should be; any bytes make a page.
 *
 * A drawer belongs to one thread. It lies in the caller's memory, and a page asks for no other: its bytes depend on the
 * text, the font, the geometry and the versions of the libraries alone. Loading, opening and closing are for the time
 * before a run. */
#ifndef PL_DATA_PAGES_DRAW_H
#define PL_DATA_PAGES_DRAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/module.h"
#include "data/pages/draw_module.h"
#include "data/pages/font.h"

/* ---- the module ---- */

/* Finds plimsoll-draw.so, loaded already or not. PL_E_UNSUPPORTED with what to install: "WHAT needs …". */
pl_status pl_draw_load(const char *what, pl_module *, pl_error *);

/* ---- a page's form ---- */

typedef struct pl_page_geometry {
    uint32_t image_size; /* pixels of both sides */
    uint32_t font_px, padding_px, pitch_px;
    bool whole_advances; /* glyphs advance by whole pixels, as the font's hinting has it; false: by 1/64, as Pillow
                            lays text out with Raqm (28 columns) */
} pl_page_geometry;

enum { PL_PAGE_SIZE_MIN = 40, PL_PAGE_SIZE_MAX = 896 };
/* The documented one, of pages of this size. */
pl_page_geometry pl_page_geometry_of(uint32_t image_size);
pl_status pl_page_geometry_check(const pl_page_geometry *, pl_error *);

/* All that texts become such pages by. */
typedef struct pl_page_form {
    const pl_draw_module *draw;
    const pl_page_geometry *geometry;
    const pl_font *font;
} pl_page_form;

/* ---- a drawer ---- */

typedef struct pl_drawer pl_drawer;

typedef struct pl_page_remarks {
    uint64_t invalid_bytes;   /* no UTF-8: each is drawn as U+FFFD */
    uint64_t missing_glyphs;  /* the font has none: drawn as its box */
    uint64_t unshaped_lines;  /* drawn glyph by glyph, since shaping failed */
    uint64_t truncated_bytes; /* the page is full: left out */
    uint64_t lines;           /* there are */
} pl_page_remarks;

uint64_t pl_drawer_bytes(const pl_page_geometry *);
/* Not from two threads at once. PL_E_DATA for a font that cannot be read or is no outline font. */
pl_status pl_drawer_open(const pl_draw_module *, const pl_page_geometry *, const pl_font *, void *memory,
                         uint64_t bytes, pl_drawer **, pl_error *);
void pl_drawer_close(pl_drawer *); /* NULL is fine */
uint32_t pl_drawer_columns(const pl_drawer *);
uint32_t pl_drawer_rows(const pl_drawer *);
void pl_drawer_tell(const pl_drawer *, pl_pen_facts *);
/* For tests: all further lines are shaped, also those that look the same without; the n-th request for memory of each
 * line is refused, and those behind it (0: none). */
void pl_drawer_shape_all(pl_drawer *);
void pl_drawer_refuse(pl_drawer *, uint64_t n);

/* page: image_size x image_size bytes. */
void pl_draw_page(pl_drawer *, const char *text, size_t bytes, uint8_t *page, pl_page_remarks *);

#endif
