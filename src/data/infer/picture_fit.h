/* A picture made as large as a model wants it: its shorter side becomes `size`, and of the longer one the middle is
 * taken. Each pixel is the weighed mean of those that it covers, and of their neighbours (a triangle as wide as two
 * pixels of the result, or of the picture where that is smaller), first along rows, then along columns: what
 * torchvision's Resize and CenterCrop make of PIL's BILINEAR, without rounding between the two.
 *
 * Rows come as they lie in the file, whose first is the top of what is seen only where nothing is turned; no more than
 * sums of the result is kept of them. The result is turned as it is taken, which is the same as turning the picture
 * before. */
#ifndef PL_DATA_INFER_PICTURE_FIT_H
#define PL_DATA_INFER_PICTURE_FIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

typedef struct pl_picture_axis {
    double scale;  /* pixels of the picture in one of the result */
    int64_t first; /* of the result before cropping */
    uint32_t from; /* pixels of the picture */
    bool flipped;  /* its first pixel is the last of what is seen */
} pl_picture_axis;

typedef struct pl_picture_fit {
    uint32_t size, channels; /* 1: grey, as 0.299 R + 0.587 G + 0.114 B; 3 */
    pl_picture_axis x, y;    /* along rows of the file, and along its columns */
    bool transposed;         /* the file's rows are columns of what is seen */
    uint32_t next;           /* row that comes */
    float *row;              /* [size, 3] of the one that came */
    float *sum, *weights;    /* [size, size, 3]; [size] */
} pl_picture_fit;

/* orientation: Exif's tag of that name, 1 … 8. Asks for the memory that it needs, which pl_picture_fit_end gives back,
 * also when this fails. */
pl_status pl_picture_fit_begin(pl_picture_fit *, uint32_t width, uint32_t height, uint32_t orientation, uint32_t size,
                               uint32_t channels, pl_error *);
/* rgb [width, 3] */
void pl_picture_fit_row(pl_picture_fit *, const uint8_t *rgb);
/* to [channels, size, size], when all rows came */
void pl_picture_fit_take(const pl_picture_fit *, uint8_t *to);
void pl_picture_fit_end(pl_picture_fit *);

#endif
