/* From a prepared picture to what a model sees: varied (training), standardised, as f32, in two passes over its bytes.
 *
 * The same for all frames of a sample, drawn from (seed, number of the sample):
 *   contrast    c in [0.8, 1.2), about the frame's mean, then brightness b in [0.8, 1.2): b·(m + c·(x − m)), clipped to
 *               [0, 1]. On the picture in [0, 1], before it is standardised.
 *   flip        left and right, one time in two; the sun's azimuth then is 360° − what it was.
 *   erasing     one time in two a rectangle becomes 0: of 2 to 10 % of the area, its height by its width from 0.3 to
 *               3.3 (each ratio as likely as its inverse), not higher or wider than the frame. At the end, where 0 is
 *               the frame's mean: what lies around it keeps the scale that it has in validation, and the rectangle
 *               says nothing. (Black, before standardising, would shift all the rest.)
 *
 * A pixel has one of a few values (256, or the 15,361 of f16 in [0, 1]), so all statistics come from a count of them,
 * which no order of pixels changes, and the arithmetic is done once a value. */
#ifndef PL_DATA_AUGMENT_H
#define PL_DATA_AUGMENT_H

#include <stdbool.h>

#include "base/philox.h"
#include "data/clouds/frames.h"

typedef struct pl_variation {
    bool varies; /* false: nothing of this is done */
    double contrast, brightness;
    bool flips, erases;
    uint32_t top, left, height, width; /* of the rectangle */
} pl_variation;

pl_variation pl_variation_draw(const pl_philox *, uint64_t number, uint32_t height, uint32_t width);
/* Degrees, in [0, 360). */
double pl_variation_azimuth(const pl_variation *, double azimuth);

typedef struct pl_picture_rules {
    uint32_t height, width;
    pl_frames_form form;
    bool zscore; /* else in [0, 1] */
} pl_picture_rules;

uint64_t pl_picture_scratch_bytes(pl_frames_form);
/* picture: as in the file, aligned to 2; scratch: aligned to 8, left dirty; out [height, width]. False where a number
 * lies outside [0, 1]: no picture of ours. */
bool pl_picture_make(const pl_picture_rules *, const pl_variation *, const void *picture, void *scratch, float *out);

#endif
