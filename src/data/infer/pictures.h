/* Pictures from files in PNG and JPEG, as a model wants them: bytes [channels, size, size] from 0 (black) to 255.
 * Reading asks for memory: it is done before planning. */
#ifndef PL_DATA_INFER_PICTURES_H
#define PL_DATA_INFER_PICTURES_H

#include "base/error.h"
#include "base/module.h"
#include "data/infer/pictures_module.h"

/* 64 Mi pixels: a PNG that is interlaced takes four bytes for each of its own, a JPEG in several scans two for each
 * number of each. What is in memory whole is bounded beside that, for nobody planned it. */
#define PL_PICTURE_PIXELS_MAX (UINT64_C(1) << 26)
#define PL_PICTURE_BYTES_MAX  (UINT64_C(256) << 20)

/* PL_E_UNSUPPORTED where the module is not there. */
pl_status pl_pictures_load(pl_module *, pl_error *);

/* PL_E_DATA, with the path and what is wrong with it: a damaged file is not half a picture, and one may be too large.
 * PL_E_STORAGE where the system does not give it, PL_E_NOMEM where its library got no memory. channels: 1 (grey) or 3
 * (planes of red, green, blue). */
pl_status pl_picture_read(const pl_pictures_module *, const char *path, uint32_t size, uint32_t channels, uint8_t *to,
                          pl_error *);

#endif
