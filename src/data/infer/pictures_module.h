/* What the module plimsoll-pictures.so offers: pictures in PNG and JPEG, read by libpng and libjpeg row by row. It is
 * loaded by who prepares pictures, and by nothing else, so no page of these libraries is in a process that runs. Plain
 * values: the module is compiled from modules/pictures.c alone and links nothing of src/. */
#ifndef PL_DATA_INFER_PICTURES_MODULE_H
#define PL_DATA_INFER_PICTURES_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_PICTURES_FILE   "plimsoll-pictures.so"
#define PL_PICTURES_SYMBOL "pl_pictures_functions"
enum {
    PL_PICTURES_VERSION = 5,
    PL_PICTURES_SIGNATURE_BYTES = 8,
    PL_PICTURES_NO_MEMORY = -2,
    PL_PICTURES_TOO_LARGE = -3
};

/* Who asks for a picture. What these functions give, if it is not 0 (of get: less than was asked for), ends the
 * reading: there was no room, or the file could not be read. */
typedef struct pl_picture_reader {
    void *context;
    size_t (*get)(void *context, void *to, size_t bytes); /* the next bytes of the file; fewer at its end alone */
    int (*again)(void *context);                          /* get begins at the beginning of the file again */
    /* orientation: Exif's tag of that name, 1 … 8; 1: the picture is as its rows are */
    int (*begin)(void *context, uint32_t width, uint32_t height, uint32_t orientation);
    int (*row)(void *context, const uint8_t *rgb); /* from the top, as they lie in the file; three bytes a pixel */
    /* Of it, and of what of a JPEG is in memory at once, or of one part of a PNG: more is refused by the header, before
     * memory is asked for. What is interlaced takes four bytes a pixel. */
    uint64_t pixels_max, bytes_max;
} pl_picture_reader;

/* Functions give 0, or -1 with a reason in `why`, or PL_PICTURES_NO_MEMORY or PL_PICTURES_TOO_LARGE where that is the
 * reason. */
typedef struct pl_pictures_module {
    uint32_t version;
    /* All rows, or not a whole picture: also a damaged file is none. What is transparent lies on white, 16 bits become
     * 8, and grey, palettes and CMYK become RGB. Interlaced and progressive pictures are in memory whole, others are a
     * row at a time. */
    int (*read)(const pl_picture_reader *, char *why, size_t room);
} pl_pictures_module;

#endif
