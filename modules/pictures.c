/* plimsoll-pictures.so: reads pictures in PNG and JPEG (src/data/infer/pictures_module.h). */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>
#include <png.h>

#include "data/infer/pictures_module.h"

typedef struct reading {
    const pl_picture_reader *o;
    char *why;
    size_t room;
    uint8_t head[PL_PICTURES_SIGNATURE_BYTES]; /* of the file, read already */
    size_t head_used;
    uint8_t *row;   /* three bytes a pixel */
    uint8_t *whole; /* as the library gives it: a row, or all where rows come in several passes */
    uint32_t orientation;
    int result; /* of what failed */
    jmp_buf escape;
} reading;

static int fail(reading *r, const char *text)
{
    if (!r->why[0]) snprintf(r->why, r->room, "%s", text);
    return -1;
}

static int fail_for_memory(reading *r, const char *text)
{
    r->result = PL_PICTURES_NO_MEMORY;
    return fail(r, text);
}

static int fail_for_size(reading *r)
{
    r->result = PL_PICTURES_TOO_LARGE;
    return -1;
}

static size_t get(reading *r, void *to, size_t bytes)
{
    const size_t left = sizeof r->head - r->head_used, first = left < bytes ? left : bytes;
    memcpy(to, r->head + r->head_used, first);
    r->head_used += first;
    return first + (first < bytes ? r->o->get(r->o->context, (char *)to + first, bytes - first) : 0);
}

static int begin(reading *r, uint64_t width, uint64_t height, uint32_t orientation)
{
    if (width * height > r->o->pixels_max) {
        snprintf(r->why, r->room, "%llu x %llu pixels, at most %llu together are read; make it smaller",
                 (unsigned long long)width, (unsigned long long)height, (unsigned long long)r->o->pixels_max);
        return fail_for_size(r);
    }
    r->row = malloc((size_t)width * 3);
    if (!r->row) return fail_for_memory(r, "no memory for a row");
    return r->o->begin(r->o->context, (uint32_t)width, (uint32_t)height, orientation);
}

/* ---- Exif: how the camera was held ----
 *
 * Read as PIL reads it (ImageOps.exif_transpose), which makes pictures ready elsewhere: a number of any type counts,
 * the last entry of the tag does, and a directory ends where it, or what an entry points to, is cut off. */

enum { AS_IT_IS = 1, TURNED_MOST = 8, ORIENTATION = 0x0112, ENTRY_BYTES = 12, IN_PLACE_BYTES = 4 };
enum { SHORT = 3, LONG, RATIONAL, SIGNED_RATIONAL = 10, FLOAT, DOUBLE, IFD, LONG8 = 16, TYPES };

/* Of a number of each type; 0: there is no such type. Bytes and texts are no numbers. */
static const uint8_t type_bytes[TYPES] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};

static uint64_t number_at(const uint8_t *at, uint32_t bytes, bool little)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < bytes; i++) n = n << 8 | at[little ? bytes - 1 - i : i];
    return n;
}

static double ratio_of(uint64_t above, uint64_t below, bool is_signed)
{
    const double a = is_signed ? (double)(int32_t)above : (double)above;
    const double b = is_signed ? (double)(int32_t)below : (double)below;
    return b != 0 ? a / b : 0;
}

static double real_of(uint64_t bits, uint32_t bytes)
{
    const uint32_t half = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &half, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return bytes == sizeof narrow ? (double)narrow : wide;
}

/* The first number of an entry. One below 0 is none of those that are looked for, and neither is it as a large one. */
static double first_number(const uint8_t *at, uint32_t type, bool little)
{
    const uint64_t n = number_at(at, type_bytes[type], little);
    if (type == RATIONAL || type == SIGNED_RATIONAL)
        return ratio_of(number_at(at, 4, little), number_at(at + 4, 4, little), type == SIGNED_RATIONAL);
    if (type == FLOAT || type == DOUBLE) return real_of(n, type_bytes[type]);
    return type == 1 || type == 2 || type == 7 ? 0 : (double)n;
}

static uint32_t orientation_of(double number)
{
    for (uint32_t i = AS_IT_IS; i <= TURNED_MOST; i++)
        if (number == i) return i;
    return AS_IT_IS;
}

/* Of a block as TIFF has it, the tag Orientation of its first directory. A damaged one says nothing: it is no part of
 * the picture. */
static uint32_t find_orientation(const uint8_t *tiff, size_t bytes)
{
    uint32_t orientation = AS_IT_IS;
    if (bytes < 8 || tiff[0] != tiff[1] || (tiff[0] != 'I' && tiff[0] != 'M')) return AS_IT_IS;
    if ((tiff[2] != 42 || tiff[3]) && (tiff[3] != 42 || tiff[2])) return AS_IT_IS; /* PIL takes either order */
    const bool little = tiff[0] == 'I';
    const size_t at = (size_t)number_at(tiff + 4, 4, little);
    if (at > bytes - 2) return AS_IT_IS;
    const size_t there = (bytes - at - 2) / ENTRY_BYTES, said = (size_t)number_at(tiff + at, 2, little);
    const uint8_t *entry = tiff + at + 2;
    for (size_t i = 0; i < said && i < there; i++, entry += ENTRY_BYTES) {
        const uint32_t type = (uint32_t)number_at(entry + 2, 2, little), unit = type < TYPES ? type_bytes[type] : 0;
        const uint64_t size = number_at(entry + 4, 4, little) * unit, place = number_at(entry + 8, 4, little);
        if (size == 0) continue;
        if (size > IN_PLACE_BYTES && (place > bytes || size > bytes - place)) break;
        if (number_at(entry, 2, little) != ORIENTATION) continue;
        orientation = orientation_of(first_number(size > IN_PLACE_BYTES ? tiff + place : entry + 8, type, little));
    }
    return orientation;
}

/* ---- PNG ---- */

enum { CHUNK_HEAD_BYTES = 8, CHUNK_SUM_BYTES = 4 };

static int skip(reading *r, uint64_t bytes)
{
    uint8_t piece[4096];
    while (bytes) {
        const size_t some = bytes < sizeof piece ? (size_t)bytes : sizeof piece;
        if (get(r, piece, some) < some) return -1;
        bytes -= some;
    }
    return 0;
}

static int take_exif(reading *r, uint32_t bytes)
{
    uint8_t *exif = bytes <= r->o->bytes_max ? malloc(bytes + (bytes == 0)) : NULL;
    if (!exif) return skip(r, bytes);
    const int result = get(r, exif, bytes) < bytes ? -1 : 0;
    if (result == 0) r->orientation = find_orientation(exif, bytes);
    free(exif);
    return result;
}

/* Of several chunks eXIf the last one before the rows counts, or, where there is none, the last after them, as PIL has
 * it: libpng would tell the first, and after the rows too late. That a file ends too early is said when it is read. */
static void png_look_for_exif(reading *r)
{
    uint8_t head[CHUNK_HEAD_BYTES];
    bool had_rows = false, has_exif = false;
    while (get(r, head, sizeof head) == sizeof head && memcmp(head + 4, "IEND", 4) != 0) {
        const uint32_t bytes = (uint32_t)number_at(head, 4, false);
        const bool is_exif = memcmp(head + 4, "eXIf", 4) == 0;
        had_rows |= memcmp(head + 4, "IDAT", 4) == 0;
        if (had_rows && has_exif) return;
        if (is_exif ? take_exif(r, bytes) : skip(r, bytes)) return;
        has_exif |= is_exif && !had_rows;
        if (skip(r, CHUNK_SUM_BYTES)) return;
    }
}

static void png_get(png_structp png, png_bytep to, size_t bytes)
{
    if (get(png_get_io_ptr(png), to, bytes) < bytes) png_error(png, "the file ends before the picture does");
}

static void png_complain(png_structp png, png_const_charp text)
{
    fail(png_get_error_ptr(png), text);
    png_longjmp(png, 1);
}

static void png_ignore(png_structp png, png_const_charp text) { (void)png, (void)text; }

/* Of four bytes a pixel. */
static int put_on_white(reading *r, const uint8_t *rgba, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++)
        for (int c = 0; c < 3; c++) {
            const uint32_t a = rgba[4 * x + 3], mixed = rgba[4 * x + (uint32_t)c] * a + 255 * (255 - a);
            r->row[3 * x + (uint32_t)c] = (uint8_t)((mixed + 127) / 255);
        }
    return r->o->row(r->o->context, r->row);
}

static void png_as_rgba(png_structp png)
{
    png_set_expand(png); /* palettes, few bits, and what one colour makes transparent */
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 255, PNG_FILLER_AFTER); /* where there is none */
}

static int png_rows(reading *r, png_structp png, png_infop info)
{
    png_read_info(png, info);
    const uint32_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
    png_as_rgba(png);
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    const size_t row = (size_t)width * 4;
    if (png_get_rowbytes(png, info) != row) return fail(r, "its rows are of an unknown form");
    if (begin(r, width, height, r->orientation)) return -1;
    r->whole = malloc(passes > 1 ? row * height : row);
    if (!r->whole) return fail_for_memory(r, "no memory for its rows");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < height; y++) {
            uint8_t *at = r->whole + (passes > 1 ? row * y : 0);
            png_read_row(png, at, NULL);
            if (pass == passes - 1 && put_on_white(r, at, width)) return -1;
        }
    png_read_end(png, NULL);
    return 0;
}

/* Where plimsoll-draw.so is loaded, too, libpng came with it, and takes its memory from that module's (draw_memory.c),
 * which is as large as a page needs. */
static png_voidp png_take(png_structp png, png_alloc_size_t bytes)
{
    reading *r = png_get_mem_ptr(png);
    if (bytes > r->o->bytes_max) { /* a chunk's own length, which may be anything */
        (void)fail_for_size(r);
        snprintf(r->why, r->room, "a part of %llu bytes, at most %llu are read", (unsigned long long)bytes,
                 (unsigned long long)r->o->bytes_max);
        return NULL;
    }
    void *block = malloc(bytes);
    if (!block) r->result = PL_PICTURES_NO_MEMORY;
    return block;
}

static void png_give(png_structp png, png_voidp block) { (void)png, free(block); }

static int read_png(reading *r)
{
    volatile int result = -1;
    png_structp png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, r, png_complain, png_ignore, r, png_take, png_give);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info && !setjmp(png_jmpbuf(png))) {
        png_set_read_fn(png, r, png_get);
        result = png_rows(r, png, info);
    }
    if (!info) fail_for_memory(r, "no memory to start libpng");
    png_destroy_read_struct(&png, &info, NULL);
    return result;
}

/* ---- JPEG ---- */

typedef struct jpeg {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    reading *r;
    uint8_t *exif;
    size_t exif_bytes;
    uint8_t piece[4096], segment[1 << 16];
} jpeg;

static void jpeg_note(j_common_ptr d)
{
    jpeg *j = d->client_data;
    char text[JMSG_LENGTH_MAX];
    d->err->format_message(d, text);
    if (d->err->msg_code == JERR_OUT_OF_MEMORY) j->r->result = PL_PICTURES_NO_MEMORY;
    fail(j->r, text);
}

static void jpeg_complain(j_common_ptr d)
{
    jpeg *j = d->client_data;
    jpeg_note(d);
    longjmp(j->r->escape, 1);
}

/* A warning, of which libjpeg makes grey areas and goes on. These are of no consequence. */
static void jpeg_warn(j_common_ptr d, int level)
{
    const int code = d->err->msg_code;
    if (level >= 0 || code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM || code == JWRN_JFIF_MAJOR) return;
    jpeg_complain(d);
}

static void jpeg_nothing(j_decompress_ptr d) { (void)d; }

static boolean jpeg_fill(j_decompress_ptr d)
{
    jpeg *j = d->client_data;
    j->source.bytes_in_buffer = get(j->r, j->piece, sizeof j->piece);
    j->source.next_input_byte = j->piece;
    if (j->source.bytes_in_buffer == 0) {
        fail(j->r, "the file ends before the picture does");
        longjmp(j->r->escape, 1);
    }
    return TRUE;
}

static void jpeg_skip(j_decompress_ptr d, long bytes)
{
    struct jpeg_source_mgr *s = d->src;
    while (bytes > (long)s->bytes_in_buffer) {
        bytes -= (long)s->bytes_in_buffer;
        (void)jpeg_fill(d);
    }
    if (bytes <= 0) return;
    s->next_input_byte += bytes;
    s->bytes_in_buffer -= (size_t)bytes;
}

static uint8_t jpeg_byte(j_decompress_ptr d)
{
    struct jpeg_source_mgr *s = d->src;
    if (s->bytes_in_buffer == 0) (void)jpeg_fill(d);
    s->bytes_in_buffer--;
    return *s->next_input_byte++;
}

/* Exif lies in a segment APP1 of at most 64 KiB, and goes on in the next ones where it is longer. So the first block
 * of several counts: what follows it is its continuation, to which nothing in it points. */
static void add_exif(jpeg *j, const uint8_t *more, size_t bytes)
{
    if (bytes > j->r->o->bytes_max - j->exif_bytes) return;
    uint8_t *longer = realloc(j->exif, j->exif_bytes + bytes);
    if (!longer) {
        (void)fail_for_memory(j->r, "no memory for its Exif");
        longjmp(j->r->escape, 1);
    }
    memcpy(longer + j->exif_bytes, more, bytes);
    j->exif = longer;
    j->exif_bytes += bytes;
}

static boolean jpeg_app1(j_decompress_ptr d)
{
    static const uint8_t begins[] = {'E', 'x', 'i', 'f', 0, 0};
    jpeg *j = d->client_data;
    size_t said = (size_t)jpeg_byte(d) << 8;
    said |= jpeg_byte(d);
    const size_t bytes = said < 2 ? 0 : said - 2;
    for (size_t i = 0; i < bytes; i++) j->segment[i] = jpeg_byte(d);
    if (bytes > sizeof begins && memcmp(j->segment, begins, sizeof begins) == 0)
        add_exif(j, j->segment + sizeof begins, bytes - sizeof begins);
    return TRUE;
}

/* Adobe's programs, which alone write such, store them inverted. */
static void from_cmyk(const uint8_t *cmyk, uint32_t width, bool inverted, uint8_t *rgb)
{
    for (uint32_t x = 0; x < width; x++)
        for (uint32_t c = 0; c < 3; c++) {
            const uint32_t ink = cmyk[4 * x + c], black = cmyk[4 * x + 3];
            const uint32_t mixed = inverted ? ink * black : (255 - ink) * (255 - black);
            rgb[3 * x + c] = (uint8_t)((mixed + 127) / 255);
        }
}

static uint64_t round_up(uint64_t n, int to) { return (n + (uint64_t)to - 1) / (uint64_t)to * (uint64_t)to; }

/* Of a picture in several scans (each progressive one) libjpeg keeps the numbers of all blocks until the last came. */
static int check_scans(reading *r, j_decompress_ptr d)
{
    uint64_t bytes = 0;
    for (int i = 0; i < d->num_components && jpeg_has_multiple_scans(d); i++) {
        const jpeg_component_info *c = &d->comp_info[i];
        bytes += round_up(c->width_in_blocks, c->h_samp_factor) * round_up(c->height_in_blocks, c->v_samp_factor) *
                 sizeof(JBLOCK);
    }
    if (bytes <= r->o->bytes_max) return 0;
    snprintf(r->why, r->room,
             "%u x %u pixels in several scans (progressive) take %llu bytes of memory, at most %llu are given; save it "
             "as baseline JPEG, or make it smaller",
             d->image_width, d->image_height, (unsigned long long)bytes, (unsigned long long)r->o->bytes_max);
    return fail_for_size(r);
}

static int jpeg_rows(reading *r, jpeg *j)
{
    j_decompress_ptr d = &j->d;
    if (jpeg_read_header(d, TRUE) != JPEG_HEADER_OK) return fail(r, "it has no picture");
    const bool four = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = four ? JCS_CMYK : JCS_RGB;
    r->orientation = find_orientation(j->exif, j->exif_bytes);
    if (check_scans(r, d) || begin(r, d->image_width, d->image_height, r->orientation)) return -1;
    r->whole = malloc((size_t)d->image_width * 4);
    if (!r->whole) return fail_for_memory(r, "no memory for a row");
    jpeg_start_decompress(d);
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = four ? r->whole : r->row;
        jpeg_read_scanlines(d, &row, 1);
        if (four) from_cmyk(r->whole, d->image_width, d->saw_Adobe_marker, r->row);
        if (r->o->row(r->o->context, r->row)) return -1;
    }
    jpeg_finish_decompress(d);
    return 0;
}

static int read_jpeg(reading *r)
{
    volatile int result = -1;
    jpeg *j = calloc(1, sizeof *j);
    if (!j) return fail_for_memory(r, "no memory for reading it");
    j->r = r;
    j->d.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = jpeg_complain;
    j->errors.emit_message = jpeg_warn;
    j->d.client_data = j;
    if (!setjmp(r->escape)) {
        jpeg_create_decompress(&j->d);
        j->source = (struct jpeg_source_mgr){.init_source = jpeg_nothing,
                                             .fill_input_buffer = jpeg_fill,
                                             .skip_input_data = jpeg_skip,
                                             .resync_to_restart = jpeg_resync_to_restart,
                                             .term_source = jpeg_nothing};
        j->d.src = &j->source;
        jpeg_set_marker_processor(&j->d, JPEG_APP0 + 1, jpeg_app1);
        result = jpeg_rows(r, j);
    }
    jpeg_destroy_decompress(&j->d);
    free(j->exif);
    free(j);
    return result;
}

/* ---- either ---- */

static bool is_png(const uint8_t *head) { return png_sig_cmp(head, 0, PL_PICTURES_SIGNATURE_BYTES) == 0; }
static bool is_jpeg(const uint8_t *head) { return head[0] == 0xff && head[1] == 0xd8 && head[2] == 0xff; }

static int read_picture(const pl_picture_reader *o, char *why, size_t room)
{
    reading r = {.o = o, .why = why, .room = room};
    int result;
    why[0] = 0;
    if (o->get(o->context, r.head, sizeof r.head) < sizeof r.head) return fail(&r, "it is too short");
    if (is_png(r.head)) {
        r.head_used = sizeof r.head; /* what is looked for comes after it */
        r.orientation = AS_IT_IS;
        png_look_for_exif(&r);
        if (o->again(o->context) || o->get(o->context, r.head, sizeof r.head) < sizeof r.head)
            return fail(&r, "it cannot be read twice");
        r.head_used = 0;
        result = read_png(&r);
    } else
        result = is_jpeg(r.head) ? read_jpeg(&r) : fail(&r, "it is neither PNG nor JPEG");
    free(r.row);
    free(r.whole);
    return result && r.result ? r.result : result;
}

extern __attribute__((visibility("default"))) const pl_pictures_module pl_pictures_functions; /* PL_PICTURES_SYMBOL */
const pl_pictures_module pl_pictures_functions = {.version = PL_PICTURES_VERSION, .read = read_picture};
