/* What the module plimsoll-draw.so offers: lines of text drawn by FreeType, HarfBuzz and Raqm, and pages as PNG. Plain
 * values: of src/ the module has this header and the heap (heap.h).
 *
 * A pen is what one thread draws with: it lies in the caller's memory, and all that the libraries ask for while it
 * draws comes from there. The module brings its own malloc, which the libraries that are loaded with it call
 * (modules/draw_memory.c). Where those call the program's (a sanitizer's) nevertheless, they draw the same. */
#ifndef PL_DATA_PAGES_DRAW_MODULE_H
#define PL_DATA_PAGES_DRAW_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_DRAW_FILE   "plimsoll-draw.so"
#define PL_DRAW_SYMBOL "pl_draw_functions"
enum { PL_DRAW_VERSION = 1 };

/* The parts of a pen's memory. Of DejaVu Sans Mono, FreeType takes 75 KB and all its glyphs 306 KB. Shaping takes most
 * where each letter of a line is of another script than the one before: 16.3 KB a letter, 472 KB for 29 columns. */
enum {
    PL_PEN_ALIGN = 64,
    PL_PEN_OWN_BYTES = 32 << 10,
    PL_PEN_FONT_BYTES = 256 << 10,       /* FreeType's */
    PL_PEN_GLYPHS_BYTES = 384 << 10,     /* rendered glyphs; those that find no room are rendered when they are drawn */
    PL_PEN_SHAPING_BYTES = 96 << 10,     /* HarfBuzz's, Raqm's, FriBidi's, for one line, */
    PL_PEN_SHAPING_PIXEL_BYTES = 3 << 10 /* and for each pixel of its width */
};

typedef struct pl_pen pl_pen;

typedef struct pl_pen_options {
    uint32_t font_px;
    uint32_t image_size; /* pixels, of both sides */
    int whole_advances;  /* glyphs advance by whole pixels, as they are hinted */
} pl_pen_options;

static inline uint64_t pl_pen_shaping_bytes(const pl_pen_options *o)
{
    return PL_PEN_SHAPING_BYTES + (uint64_t)o->image_size * PL_PEN_SHAPING_PIXEL_BYTES;
}
static inline uint64_t pl_pen_mask_bytes(const pl_pen_options *o)
{
    return ((uint64_t)o->image_size * o->image_size + PL_PEN_ALIGN - 1) / PL_PEN_ALIGN * PL_PEN_ALIGN;
}
static inline uint64_t pl_pen_bytes(const pl_pen_options *o)
{
    return PL_PEN_OWN_BYTES + PL_PEN_FONT_BYTES + PL_PEN_GLYPHS_BYTES + pl_pen_shaping_bytes(o) + pl_pen_mask_bytes(o);
}

typedef struct pl_pen_facts {
    char family[64], style[32]; /* of the font */
    int ascender;               /* pixels from the top of a line to its base line */
    uint64_t sample_advance;    /* of A-Z, a-z and 0-9 together, in 1/64 pixel */
    int has_fast_way;
    /* What it took of the memory for it, at most and now: */
    uint64_t font_peak_bytes, font_bytes, shaping_peak_bytes, glyph_bytes;
    uint64_t outlived; /* lines behind which something was not given back by the libraries (never seen) */
} pl_pen_facts;

typedef struct pl_pen_remarks {
    uint64_t missing_glyphs; /* drawn as the font's box */
    uint64_t unshaped_lines; /* drawn glyph by glyph, since shaping failed */
} pl_pen_remarks;

/* Functions that can fail give 0, or -1 with a reason in `why`. */
typedef struct pl_draw_module {
    uint32_t version;
    /* Memory of pl_pen_bytes, aligned to PL_PEN_ALIGN. The font's bytes must stay as long as the pen. Not to be called
     * from two threads at once. */
    int (*open)(void *memory, uint64_t bytes, const void *font, uint64_t font_bytes, const pl_pen_options *, pl_pen **,
                char *why, size_t room);
    void (*close)(pl_pen *);
    void (*tell)(const pl_pen *, pl_pen_facts *);
    /* For tests: leave out the fast way from now on; refuse the n-th request of each line that is shaped, and those
     * behind it (0: none). */
    void (*shape_all)(pl_pen *);
    void (*refuse)(pl_pen *, uint64_t n);
    /* An empty page (image_size x image_size, 255) that lines are now drawn on, from the top downwards. */
    void (*begin)(pl_pen *, uint8_t *page);
    /* Code points in logical order; x and y: the line's upper left corner. What is outside of the page is left out. */
    void (*line)(pl_pen *, const uint32_t *text, uint32_t count, int x, int y, pl_pen_remarks *);
    /* The page as a PNG of one channel, into `to`; libpng gets its memory from here, half a megabyte is enough. */
    int (*png)(void *memory, uint64_t bytes, const uint8_t *page, uint32_t image_size, void *to, uint64_t room,
               uint64_t *png_bytes, char *why, size_t why_room);
    /* Of the module's own memory, for what the libraries keep as long as they are loaded: given out now, at most, and
     * requests refused. */
    void (*memory)(uint64_t *used, uint64_t *peak, uint64_t *refused);
} pl_draw_module;

#endif
