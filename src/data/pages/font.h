/* The file of a font, read once into the caller's memory; all pens draw with these bytes. */
#ifndef PL_DATA_PAGES_FONT_H
#define PL_DATA_PAGES_FONT_H

#include <stdint.h>

#include "base/error.h"
#include "base/file.h"

#define PL_FONT_NAME "DejaVu Sans Mono" /* that of the definition (DejaVuSansMono.ttf) */

typedef struct pl_font_file {
    char path[PL_FILE_PATH_MAX];
    uint64_t bytes;
} pl_font_file;

typedef struct pl_font {
    const void *data; /* the caller's */
    uint64_t bytes;
    uint64_t hash; /* xxh64: with the geometry and the versions of the libraries it decides what a page looks like */
} pl_font;

/* The file at `path`, or, NULL, DejaVuSansMono.ttf where systems keep it. PL_E_DATA with what to install or to name. */
pl_status pl_font_find(const char *path, pl_font_file *, pl_error *);
/* Into memory of file->bytes. Whether they are a font is found out when a drawer is opened. */
pl_status pl_font_read(const pl_font_file *, void *memory, pl_font *, pl_error *);
/* Both, into a block of pl_alloc, which is the caller's; path "": as find has NULL. *font is zero on failure. */
pl_status pl_font_load(const char *path, pl_font *, pl_error *);

#endif
