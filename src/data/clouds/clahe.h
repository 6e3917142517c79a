/* Contrast limited adaptive histogram equalisation (Zuiderveld, Graphics Gems IV, 1994), as scikit-image's
 * equalize_adapthist defines it, to the last grey level.
 *
 * The image, rounded to 16 bits, stretched to PL_CLAHE_LEVELS grey levels, counted in PL_CLAHE_BINS bins, is cut into
 * tiles of an eighth of each side (rounded down, at least 1); the last ones are filled up with what lies before the
 * border, mirrored. In a tile's histogram no bin keeps more than clip = max(1, floor(clip_limit · pixels of a tile)).
 * What is above goes to the other bins: an equal share for each, and what then lacks no more than a share is filled up;
 * the rest one by one at even steps until none is left or no bin has room (the filling may have taken too much). The
 * sums from the first bin on, scaled to the grey levels, are the tile's map. A pixel's new level is that of the four
 * nearest tiles' maps, interpolated between the centres of the tiles; the image is then stretched to [0, 1]. */
#ifndef PL_DATA_CLAHE_H
#define PL_DATA_CLAHE_H

#include <stdint.h>

enum { PL_CLAHE_BINS = 256, PL_CLAHE_LEVELS = 1 << 14 };

uint64_t pl_clahe_scratch_bytes(uint32_t height, uint32_t width);
/* Numbers in [0, 1], none of them NAN, [height, width], both 1 or more; out may be the image. clip_limit: a part of a
 * tile, 0 or less: no limit. scratch: aligned to 8, left dirty. What comes out as one value becomes 0. */
void pl_clahe(uint32_t height, uint32_t width, double clip_limit, const float *image, void *scratch, float *out);

#endif
