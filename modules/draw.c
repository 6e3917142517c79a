/* plimsoll-draw.so: lines of text drawn as Pillow draws them (src/data/pages/draw_module.h).
 *
 * A line is laid out by Raqm, which asks FriBidi for directions and HarfBuzz for glyphs, and each glyph's coverage is
 * put over the others by maximum; then the line is put on the page as black ink, darkening by (255 - coverage) / 255.
 * All glyphs are rendered once, when a pen is opened. That makes drawing fast, and after it FreeType needs no more
 * memory than it has.
 *
 * What a page looks like depends on its text alone: the heap of shaping begins empty with every line, and FreeType
 * holds, between lines, what it held behind the opening. */
#include <ft2build.h>
#include FT_FREETYPE_H
#include FT_ADVANCES_H
#include FT_MODULE_H
#include <raqm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "data/pages/draw_module.h"
#include "draw_memory.h"
#include "draw_png.h"

enum {
    PLACES = 1024, /* glyphs of a line */
    LANES = 8      /* pixels of a row that are drawn at once */
};

/* A rendered glyph: rows of coverage, each filled up with zeros to a multiple of LANES. */
typedef struct glyph {
    uint32_t at;       /* in the pen's coverage; ABSENT: it is rendered when it is needed */
    int16_t left, top; /* of its bitmap, from the pen's place on the base line */
    uint16_t width, rows;
    int32_t advance; /* 1/64 pixel */
} glyph;
#define ABSENT UINT32_MAX

typedef struct place {
    uint32_t glyph;
    int x, y; /* of the origin: pixels from the line's, upwards */
} place;

/* Code points whose lines need no shaping: they are read from left to right, no mark, nothing that is left out or
 * replaced by something else, and no table of this font has a rule for them. */
typedef struct range {
    uint32_t first, last;
} range;
static const range plain[] = {{0x20, 0x7e},     {0xa0, 0xac},     {0xae, 0x24f},    {0x370, 0x482},   {0x48a, 0x52f},
                              {0x1e00, 0x1eff}, {0x2010, 0x2010}, {0x2012, 0x2027}, {0x2030, 0x2043}, {0x2045, 0x205e},
                              {0x20a0, 0x20bf}, {0x2100, 0x214f}, {0x2190, 0x23ff}, {0x2500, 0x27bf}};
/* Of these it has none, and draws its box. */
static const range absent[] = {{0x3001, 0x3029},   {0x3041, 0x3096},  {0x30a1, 0x30fa}, {0x3400, 0x4dbf},
                               {0x4e00, 0x9fff},   {0xac00, 0xd7a3},  {0xff01, 0xff5e}, {0x1f300, 0x1f64f},
                               {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}};
enum { PLAIN = sizeof plain / sizeof *plain, MAPPED = 2800, NOT_PLAIN = 0xffff };

struct pl_pen {
    pl_pen_options options;
    FT_Library library;
    FT_Face face;
    struct FT_MemoryRec_ memory; /* FreeType's door to `font` */
    pl_page_heap font, shaping;
    int ascender;
    bool has_fast_way;
    uint64_t outlived;
    glyph *glyphs; /* of all glyphs of the font, or NULL */
    uint8_t *coverage;
    size_t coverage_bytes, coverage_room;
    uint16_t mapped[MAPPED]; /* glyphs of the plain ranges, one behind the other */
    uint8_t *page, *mask;    /* the mask is all zeros between lines */
    int white_from;          /* rows of the page on which nothing was drawn yet: this one and all below */
    size_t place_count;
    place place[PLACES];
};

_Static_assert(sizeof(pl_pen) <= PL_PEN_OWN_BYTES && PL_PEN_OWN_BYTES % PL_PEN_ALIGN == 0, "a pen fits its place");

/* ---- FreeType's memory ---- */

static void *font_alloc(FT_Memory m, long bytes) { return pl_page_heap_alloc(m->user, (size_t)bytes, 0); }
static void font_free(FT_Memory m, void *block) { pl_page_heap_free(m->user, block); }
static void *font_realloc(FT_Memory m, long old, long bytes, void *block)
{
    (void)old;
    return pl_page_heap_resize(m->user, block, (size_t)bytes);
}

/* ---- glyphs ---- */

/* As Pillow asks for it: hinted by the font's own program, 256 levels. */
static const FT_Bitmap *render(pl_pen *p, uint32_t index)
{
    const FT_Bitmap *b = &p->face->glyph->bitmap;
    if (FT_Load_Glyph(p->face, index, FT_LOAD_DEFAULT | FT_LOAD_RENDER)) return NULL;
    return b->pixel_mode == FT_PIXEL_MODE_GRAY && b->buffer ? b : NULL;
}

/* Gives back the bitmap that FreeType still holds, so that it holds the same as before the line. */
static void forget_bitmap(pl_pen *p) { (void)FT_Load_Glyph(p->face, 0, FT_LOAD_DEFAULT); }

static void keep_glyph(pl_pen *p, uint32_t index)
{
    glyph *g = &p->glyphs[index];
    const FT_Bitmap *b = render(p, index);
    const FT_GlyphSlot slot = p->face->glyph;
    *g = (glyph){.at = ABSENT};
    if (!b && (slot->bitmap.rows || slot->format != FT_GLYPH_FORMAT_BITMAP)) return; /* of another kind */
    *g = (glyph){ABSENT, (int16_t)slot->bitmap_left, (int16_t)slot->bitmap_top, 0, 0, (int32_t)slot->advance.x};
    const size_t stride = b ? (b->width + LANES - 1) / LANES * LANES : 0, bytes = b ? stride * b->rows : 0;
    if ((b && (b->width > UINT16_MAX || b->rows > UINT16_MAX)) || slot->bitmap_left != g->left ||
        slot->bitmap_top != g->top || bytes > p->coverage_room - p->coverage_bytes)
        return;
    g->at = (uint32_t)p->coverage_bytes;
    if (!b) return;
    g->width = (uint16_t)b->width, g->rows = (uint16_t)b->rows;
    for (uint32_t y = 0; y < b->rows; y++)
        memcpy(p->coverage + g->at + y * stride, b->buffer + (ptrdiff_t)y * b->pitch, b->width);
    p->coverage_bytes += bytes;
}

static void keep_glyphs(pl_pen *p, uint8_t *area)
{
    const size_t count = (size_t)p->face->num_glyphs, bytes = (count * sizeof *p->glyphs + 63) / 64 * 64;
    if (bytes >= PL_PEN_GLYPHS_BYTES) return;
    memset(area, 0, PL_PEN_GLYPHS_BYTES);
    p->glyphs = (glyph *)(void *)area;
    p->coverage = area + bytes, p->coverage_room = PL_PEN_GLYPHS_BYTES - bytes;
    for (uint32_t i = 0; i < count; i++) keep_glyph(p, i);
}

/* NULL: it has to be rendered, or the font has none of that number. */
static const glyph *kept(const pl_pen *p, uint32_t index)
{
    const bool is_kept = p->glyphs && index < (FT_ULong)p->face->num_glyphs && p->glyphs[index].at != ABSENT;
    return is_kept ? &p->glyphs[index] : NULL;
}

/* ---- which way ---- */

/* The font for which the ranges above were tested, code point by code point, against Raqm. */
static bool is_known(FT_Face f)
{
    return f->family_name && strcmp(f->family_name, "DejaVu Sans Mono") == 0 && f->style_name &&
           strcmp(f->style_name, "Book") == 0 && f->num_glyphs == 3377;
}

static void map_plain(pl_pen *p)
{
    uint32_t n = 0;
    for (size_t i = 0; i < PLAIN; i++)
        for (uint32_t c = plain[i].first; c <= plain[i].last && n < MAPPED; c++) {
            const FT_UInt index = FT_Get_Char_Index(p->face, c);
            p->mapped[n++] = index == 0 || index >= NOT_PLAIN ? NOT_PLAIN : (uint16_t)index;
        }
}

static uint32_t absent_glyph(const pl_pen *p, uint32_t c)
{
    for (size_t i = 0; i < sizeof absent / sizeof *absent && c >= absent[i].first; i++)
        if (c <= absent[i].last) return FT_Get_Char_Index(p->face, c) == 0 ? 0 : NOT_PLAIN;
    return NOT_PLAIN;
}

static uint32_t plain_glyph(const pl_pen *p, uint32_t c)
{
    uint32_t n = 0;
    for (size_t i = 0; i < PLAIN && c >= plain[i].first; i++) {
        const uint32_t at = n + c - plain[i].first;
        if (c <= plain[i].last) return at < MAPPED ? p->mapped[at] : NOT_PLAIN;
        n += plain[i].last - plain[i].first + 1;
    }
    return absent_glyph(p, c);
}

/* ---- placing ---- */

/* Far from every page is far enough: a damaged font may say anything. */
static int pixel(int64_t x)
{
    enum { FAR = 1 << 20 };
    const int64_t whole = (x + 32) >> 6;
    return (int)(whole < -FAR ? -FAR : whole > FAR ? FAR : whole);
}

/* 1/64 pixel; hinted it is a whole one. */
static int64_t advance_of(pl_pen *p, uint32_t index)
{
    FT_Fixed advance;
    const glyph *g = p->options.whole_advances ? kept(p, index) : NULL;
    if (g) return g->advance;
    if (FT_Get_Advance(p->face, index, p->options.whole_advances ? FT_LOAD_DEFAULT : FT_LOAD_NO_HINTING, &advance))
        return 0;
    return (advance + 512) >> 10;
}

/* Glyph by glyph. False, and nothing is placed: one of them needs shaping. */
static bool place_plain(pl_pen *p, const uint32_t *text, uint32_t count)
{
    int64_t x = 0;
    p->place_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = plain_glyph(p, text[i]);
        if (index == NOT_PLAIN) return false;
        p->place[p->place_count++] = (place){index, pixel(x), 0};
        x += advance_of(p, index);
    }
    return true;
}

/* What is left where shaping failed. */
static void place_unshaped(pl_pen *p, const uint32_t *text, uint32_t count)
{
    int64_t x = 0;
    p->place_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = FT_Get_Char_Index(p->face, text[i]);
        p->place[p->place_count++] = (place){index, pixel(x), 0};
        x += advance_of(p, index);
    }
}

static raqm_t *lay_out(pl_pen *p, const uint32_t *text, uint32_t count)
{
    raqm_t *r = raqm_create();
    if (r && raqm_set_text(r, text, count) && raqm_set_par_direction(r, RAQM_DIRECTION_DEFAULT) &&
        raqm_set_language(r, "en", 0, count) && raqm_set_freetype_face(r, p->face) &&
        (!p->options.whole_advances || raqm_set_freetype_load_flags(r, FT_LOAD_DEFAULT)) && raqm_layout(r))
        return r;
    if (r) raqm_destroy(r);
    return NULL;
}

static bool take_places(pl_pen *p, raqm_t *r)
{
    size_t count = 0;
    const raqm_glyph_t *g = raqm_get_glyphs(r, &count);
    int64_t x = 0, y = 0;
    if (!g || count > PLACES) return false;
    for (size_t i = 0; i < count; i++) {
        p->place[i] = (place){g[i].index, pixel(x + g[i].x_offset), pixel(y + g[i].y_offset)};
        x += g[i].x_advance, y += g[i].y_advance;
    }
    p->place_count = count;
    return true;
}

static bool shape(pl_pen *p, const uint32_t *text, uint32_t count)
{
    raqm_t *r = lay_out(p, text, count);
    const bool ok = r && take_places(p, r);
    if (r) raqm_destroy(r);
    p->outlived += p->shaping.used > 0;
    return ok;
}

/* Isolates and a separator of paragraphs within one line: FriBidi 1.0.8 then reads and writes what it gave back. */
static bool breaks_fribidi(const uint32_t *text, uint32_t count)
{
    bool isolates = false, separators = false;
    for (uint32_t i = 0; i < count; i++) {
        isolates |= text[i] >= 0x2066 && text[i] <= 0x2069;
        separators |= (text[i] >= 0x1c && text[i] <= 0x1e) || text[i] == 0x85 || text[i] == 0x2029;
    }
    return isolates && separators;
}

/* False: the heap is too small for this line, or a library fails. */
static bool place_shaped(pl_pen *p, const uint32_t *text, uint32_t count)
{
    jmp_buf escape;
    volatile bool ok = false;
    if (breaks_fribidi(text, count)) return false;
    pl_page_heap_reset(&p->shaping);
    pl_page_heap *before = pl_draw_use_heap(&p->shaping);
    if (setjmp(escape) == 0) {
        pl_draw_set_escape(&escape);
        ok = shape(p, text, count);
    }
    pl_draw_set_escape(NULL);
    pl_draw_use_heap(before);
    return ok;
}

/* ---- drawing ---- */

typedef struct bitmap {
    const uint8_t *coverage;
    ptrdiff_t stride;
    int x, y, width, rows; /* on the page */
    bool is_filled_up;     /* its rows to a multiple of LANES */
} bitmap;

static bool find_bitmap(pl_pen *p, const place *q, int x, int y, bitmap *b)
{
    const glyph *g = kept(p, q->glyph);
    if (g) {
        *b = (bitmap){p->coverage + g->at,
                      (g->width + LANES - 1) / LANES * LANES,
                      x + q->x + g->left,
                      y - q->y - g->top,
                      g->width,
                      g->rows,
                      true};
        return true;
    }
    const FT_Bitmap *f = render(p, q->glyph);
    const FT_GlyphSlot slot = p->face->glyph;
    if (!f) return false;
    *b = (bitmap){f->buffer,    f->pitch, x + q->x + slot->bitmap_left, y - q->y - slot->bitmap_top, (int)f->width,
                  (int)f->rows, false};
    return true;
}

static int larger(int a, int b) { return a > b ? a : b; }
static int smaller(int a, int b) { return a < b ? a : b; }

/* The darker of page and ink. */
static void ink_row(uint8_t *restrict page, const uint8_t *restrict coverage, int n)
{
    for (int i = 0; i < n; i++) {
        const uint8_t ink = (uint8_t)(255 - coverage[i]);
        page[i] = page[i] < ink ? page[i] : ink;
    }
}

static void cover_row(uint8_t *restrict mask, const uint8_t *restrict coverage, int n)
{
    for (int i = 0; i < n; i++) mask[i] = mask[i] > coverage[i] ? mask[i] : coverage[i];
}

/* Onto paper that is white still, so that the line's coverage is what the page shows. */
static void ink(pl_pen *p, const bitmap *b)
{
    const int size = (int)p->options.image_size;
    const int x0 = larger(b->x, 0), x1 = smaller(b->x + b->width, size), y1 = smaller(b->y + b->rows, size);
    const bool one_step = b->is_filled_up && b->width <= LANES && b->x >= 0 && b->x + LANES <= size;
    for (int y = larger(b->y, 0); y < y1; y++) {
        uint8_t *to = p->page + (size_t)y * (size_t)size;
        const uint8_t *from = b->coverage + (y - b->y) * b->stride;
        if (one_step)
            ink_row(to + b->x, from, LANES);
        else if (x0 < x1)
            ink_row(to + x0, from + (x0 - b->x), x1 - x0);
    }
}

static void cover(pl_pen *p, const bitmap *b)
{
    const int size = (int)p->options.image_size;
    const int x0 = larger(b->x, 0), x1 = smaller(b->x + b->width, size), y1 = smaller(b->y + b->rows, size);
    for (int y = larger(b->y, 0); y < y1 && x0 < x1; y++)
        cover_row(p->mask + (size_t)y * (size_t)size + x0, b->coverage + (y - b->y) * b->stride + (x0 - b->x), x1 - x0);
}

/* The line's coverage as black ink, on whatever is there; a product over 255 is rounded as Pillow rounds it. */
static void paste(pl_pen *p, int first, int last)
{
    const size_t size = p->options.image_size;
    uint8_t *restrict page = p->page, *restrict mask = p->mask;
    for (size_t i = (size_t)first * size; i < (size_t)last * size; i++) {
        const uint32_t product = page[i] * (255u - mask[i]) + 128;
        page[i] = (uint8_t)((product + (product >> 8)) >> 8);
        mask[i] = 0;
    }
}

/* The rows of the page that a line touches; false: one of its glyphs is not rendered yet. */
static bool find_rows(pl_pen *p, int y, int *first, int *last)
{
    bool all = true;
    *first = (int)p->options.image_size, *last = 0;
    for (size_t i = 0; i < p->place_count && all; i++) {
        const glyph *g = kept(p, p->place[i].glyph);
        const int top = g ? y - p->place[i].y - g->top : 0;
        all = g != NULL;
        if (g && g->rows > 0) *first = smaller(*first, top), *last = larger(*last, top + g->rows);
    }
    *first = all ? larger(*first, 0) : 0;
    *last = all ? smaller(*last, (int)p->options.image_size) : (int)p->options.image_size;
    return all;
}

static void draw_places(pl_pen *p, int x, int y)
{
    int first, last;
    const bool all = find_rows(p, y, &first, &last), on_white = all && first >= p->white_from;
    bitmap b;
    for (size_t i = 0; i < p->place_count; i++)
        if (find_bitmap(p, &p->place[i], x, y, &b)) on_white ? ink(p, &b) : cover(p, &b);
    if (!on_white) paste(p, first, last);
    p->white_from = larger(p->white_from, last);
    if (!all) forget_bitmap(p);
}

static void begin(pl_pen *p, uint8_t *page)
{
    memset(page, 255, (size_t)p->options.image_size * p->options.image_size);
    p->page = page, p->white_from = 0;
}

static void line(pl_pen *p, const uint32_t *text, uint32_t count, int x, int y, pl_pen_remarks *remarks)
{
    if (count > PLACES) count = PLACES;
    if (count == 0) return;
    const bool fast = p->has_fast_way && place_plain(p, text, count);
    if (!fast && !place_shaped(p, text, count)) {
        place_unshaped(p, text, count);
        remarks->unshaped_lines++;
    }
    for (size_t i = 0; i < p->place_count; i++) remarks->missing_glyphs += p->place[i].glyph == 0;
    draw_places(p, x, y + p->ascender);
}

/* ---- opening ---- */

static int fail(char *why, size_t room, const char *what, FT_Error error)
{
    if (error == FT_Err_Out_Of_Memory)
        snprintf(why, room, "needs more than %d KB of memory", PL_PEN_FONT_BYTES >> 10);
    else
        snprintf(why, room, "%s (FreeType's error 0x%02x)", what, (unsigned)error);
    return -1;
}

static int open_font(pl_pen *p, const void *font, uint64_t bytes, char *why, size_t room)
{
    FT_Error e = FT_New_Library(&p->memory, &p->library);
    if (e) return fail(why, room, "finds no FreeType that starts", e);
    FT_Add_Default_Modules(p->library);
    e = FT_New_Memory_Face(p->library, font, (FT_Long)bytes, 0, &p->face);
    if (e) return fail(why, room, "is no font that can be read", e);
    if (!FT_IS_SCALABLE(p->face)) return snprintf(why, room, "is a font of bitmaps, of one size each"), -1;
    e = FT_Set_Pixel_Sizes(p->face, 0, p->options.font_px);
    if (e) return fail(why, room, "cannot be had in this size", e);
    p->ascender = pixel(p->face->size->metrics.ascender);
    return 0;
}

/* What the libraries make when they first need it and then keep (languages, tables of functions, lists of shapers) must
 * not lie in a pen's memory: a letter of many scripts each is laid out in the module's own. */
static int provoke(pl_pen *p, char *why, size_t room)
{
    static bool is_done;
    static const uint32_t scripts[] = {'A',    0x301,  0x5d0,  0x5b8,   0x628,  0x64e,  0x644,  0x627,  0x915,
                                       0x94d,  0x937,  0xe01,  0xe33,   0xf40,  0x1000, 0x1780, 0x1820, 0x1100,
                                       0x1161, 0xac00, 0x200d, 0x1f600, 0xa980, 0x1a20, 0x10a00};
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts && !is_done; i++) {
        raqm_t *r = lay_out(p, &scripts[i], 1);
        if (!r) return snprintf(why, room, "cannot be laid out by Raqm, or there is no memory for it"), -1;
        raqm_destroy(r);
    }
    is_done = true;
    return 0;
}

static int prepare(pl_pen *p, const void *font, uint64_t bytes, uint8_t *glyphs, char *why, size_t room)
{
    pl_page_heap *before = pl_draw_use_heap(&p->shaping); /* glyphs in colour ask libpng, which asks malloc */
    int result = open_font(p, font, bytes, why, room);
    if (result == 0) keep_glyphs(p, glyphs), forget_bitmap(p);
    pl_draw_use_heap(NULL);
    if (result == 0) result = provoke(p, why, room);
    pl_draw_use_heap(before);
    if (result == 0) p->has_fast_way = p->glyphs && is_known(p->face), map_plain(p);
    return result;
}

static void close_pen(pl_pen *p)
{
    if (p->library) FT_Done_Library(p->library);
    p->library = NULL;
}

static int open_pen(void *memory, uint64_t bytes, const void *font, uint64_t font_bytes, const pl_pen_options *o,
                    pl_pen **pen, char *why, size_t room)
{
    if (bytes < pl_pen_bytes(o)) return snprintf(why, room, "has too little memory"), -1;
    pl_pen *p = memset(memory, 0, sizeof *p);
    uint8_t *at = (uint8_t *)memory + PL_PEN_OWN_BYTES;
    p->options = *o;
    p->mask = memset(at, 0, pl_pen_mask_bytes(o));
    at += pl_pen_mask_bytes(o);
    pl_page_heap_init(&p->font, at, PL_PEN_FONT_BYTES);
    at += PL_PEN_FONT_BYTES;
    pl_page_heap_init(&p->shaping, at, pl_pen_shaping_bytes(o));
    at += pl_pen_shaping_bytes(o);
    p->memory = (struct FT_MemoryRec_){&p->font, font_alloc, font_free, font_realloc};
    const int result = prepare(p, font, font_bytes, at, why, room);
    if (result) close_pen(p);
    *pen = p;
    return result;
}

static void tell(const pl_pen *p, pl_pen_facts *f)
{
    *f = (pl_pen_facts){.ascender = p->ascender,
                        .has_fast_way = p->has_fast_way,
                        .font_peak_bytes = p->font.peak,
                        .font_bytes = p->font.used,
                        .shaping_peak_bytes = p->shaping.peak,
                        .glyph_bytes = p->glyphs ? (size_t)(p->coverage - (uint8_t *)p->glyphs) + p->coverage_bytes : 0,
                        .outlived = p->outlived};
    snprintf(f->family, sizeof f->family, "%s", p->face->family_name ? p->face->family_name : "");
    snprintf(f->style, sizeof f->style, "%s", p->face->style_name ? p->face->style_name : "");
    for (const char *c = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"; *c; c++)
        f->sample_advance += (uint64_t)advance_of((pl_pen *)p, FT_Get_Char_Index(p->face, (FT_ULong)*c));
}

static void shape_all(pl_pen *p) { p->has_fast_way = false; }
static void refuse(pl_pen *p, uint64_t n) { p->shaping.refuse_from = n; }

__attribute__((visibility("default"))) const pl_draw_module pl_draw_functions = {
    .version = PL_DRAW_VERSION,
    .open = open_pen,
    .close = close_pen,
    .tell = tell,
    .shape_all = shape_all,
    .refuse = refuse,
    .begin = begin,
    .line = line,
    .png = draw_png,
    .memory = pl_draw_own_memory,
};
