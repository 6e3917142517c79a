/* A text as a picture: how `plimsoll encode` sees it.
 *
 *     pl_draw_options options = pl_draw_default();
 *     if (pl_draw_text("Hello", 5, &options, &png, &bytes, &said, &error) == PL_OK) pl_text_free(png);
 */
#ifndef PLIMSOLL_DRAW_H
#define PLIMSOLL_DRAW_H

#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_draw_options {
    uint32_t image_size; /* pixels of both sides */
    const char *font;    /* a file of an outline font; NULL: DejaVu Sans Mono, where the system has it */
    int raqm_advances;   /* glyphs advance by 1/64 pixel, as Pillow has it where it uses Raqm: 28 columns, not 29 */
} pl_draw_options;

/* 224 pixels, DejaVu Sans Mono, glyphs advance by whole pixels. */
PL_API pl_draw_options pl_draw_default(void);

/* What a page shows, and what it does not show as it should. */
typedef struct pl_draw_said {
    uint32_t lines, rows, columns; /* lines there are; what a page has room for */
    uint64_t invalid_bytes;        /* no UTF-8: each is drawn as U+FFFD */
    uint64_t missing_glyphs;       /* the font has none: drawn as its box */
    uint64_t unshaped_lines;       /* drawn letter by letter, since shaping failed */
    uint64_t truncated_bytes;      /* the page is full: left out */
} pl_draw_said;

/* The page as a grey PNG, in a block for pl_text_free. Any bytes make a page. PL_E_UNSUPPORTED where FreeType, Raqm and
 * libpng were not there when Plimsoll was built; PL_E_DATA without a font. */
PL_API PL_MUST_USE pl_status pl_draw_text(const char *text, size_t bytes, const pl_draw_options *, char **png,
                                          size_t *png_bytes, pl_draw_said *, pl_error *);
/* The same with what is in a file (of at most 64 MiB), or, "-", on standard input. */
PL_API PL_MUST_USE pl_status pl_draw_file(const char *path, const pl_draw_options *, char **png, size_t *png_bytes,
                                          pl_draw_said *, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
