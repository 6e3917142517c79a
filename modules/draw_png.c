/* A page as a PNG of one grey channel, by libpng; its memory, like that of all that draws, is the caller's. */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "draw_memory.h"
#include "draw_png.h"

typedef struct output {
    uint8_t *to;
    uint64_t bytes, room;
    char *why;
    size_t why_room;
} output;

static void put(png_structp png, png_bytep data, size_t bytes)
{
    output *o = png_get_io_ptr(png);
    if (bytes > o->room - o->bytes) png_error(png, "there is not room enough");
    memcpy(o->to + o->bytes, data, bytes);
    o->bytes += bytes;
}

static void flush(png_structp png) { (void)png; }

static void complain(png_structp png, png_const_charp text)
{
    const output *o = png_get_error_ptr(png);
    snprintf(o->why, o->why_room, "libpng: %s", text);
    png_longjmp(png, 1);
}

static void warn(png_structp png, png_const_charp text) { (void)png, (void)text; }

static const char mark[] = "Software\0Plimsoll"; /* by which `plimsoll storage` knows it */

static int write_page(png_structp png, png_infop info, const uint8_t *page, uint32_t size)
{
    if (setjmp(png_jmpbuf(png))) return -1;
    png_set_IHDR(png, info, size, size, 8, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    png_write_chunk(png, (png_const_bytep) "tEXt", (png_const_bytep)mark, sizeof mark - 1);
    for (uint32_t y = 0; y < size; y++) png_write_row(png, page + (size_t)y * size);
    png_write_end(png, info);
    return 0;
}

static int write_with(output *o, const uint8_t *page, uint32_t size)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, o, complain, warn);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int result = -1;
    if (info) {
        png_set_write_fn(png, o, put, flush);
        result = write_page(png, info, page, size);
    } else {
        snprintf(o->why, o->why_room, "libpng could not be started");
    }
    png_destroy_write_struct(&png, &info);
    return result;
}

int draw_png(void *memory, uint64_t bytes, const uint8_t *page, uint32_t image_size, void *to, uint64_t room,
             uint64_t *png_bytes, char *why, size_t why_room)
{
    output o = {to, 0, room, why, why_room};
    pl_page_heap heap;
    pl_page_heap_init(&heap, memory, bytes);
    pl_page_heap *before = pl_draw_use_heap(&heap);
    const int result = write_with(&o, page, image_size);
    pl_draw_use_heap(before);
    *png_bytes = o.bytes;
    return result;
}
