/* From a camera's frame to what the model sees: flat field, stretched to [0, 1], CLAHE, z-scores.
 *
 * Flat field: a frame times median(reference) / max(reference, 1e-3), pixel by pixel; the reference is the mean of a
 * flight's first frames. (The published code fits a line through the reference and divides it away again: its gain is
 * 1 everywhere. This is the correction that was meant.)
 *
 * A pixel that is not finite, before or after the gain, counts in no statistic: it takes the mean of the others on its
 * way through CLAHE, and stands at the mean of their results in the end, which is 0 in z-scores. A frame without any
 * finite pixel is 0. */
#ifndef PL_DATA_PREPROCESS_H
#define PL_DATA_PREPROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { PL_FLAT_FRAMES = 100 };

/* ---- the flat field of a flight ---- */

typedef struct pl_flat_field {
    uint64_t pixels;
    uint32_t frames; /* taken so far */
    double *sum;     /* [pixels], in the caller's memory */
    uint8_t *count;  /* [pixels] finite numbers in the sum */
} pl_flat_field;

uint64_t pl_flat_field_bytes(uint64_t pixels);
/* memory: aligned to 8. */
void pl_flat_field_begin(pl_flat_field *, uint64_t pixels, void *memory);
/* In the order of the flight; what comes behind the first PL_FLAT_FRAMES is left out. */
void pl_flat_field_add(pl_flat_field *, const float *frame);
/* Into gain [pixels]; 1 where no frame had a finite number. PL_E_DATA when the median is not above 0: these are no
 * radiances. */
pl_status pl_flat_field_finish(pl_flat_field *, float *gain, pl_error *);

/* The middle one of `n` numbers, or the mean of the middle two: finite ones, at least one of them. */
double pl_median_f32(const float *x, uint64_t n);

/* ---- a frame ---- */

/* The z-score of a pixel. What is divided by has a little added, as the definition has it: a frame of one value is 0,
 * not an error. */
#define PL_PIXEL_TINY 1e-8
static inline float pl_pixel_score(double x, double mean, double deviation)
{
    return (float)((x - mean) / (deviation + PL_PIXEL_TINY));
}

typedef struct pl_preprocess {
    uint32_t height, width;
    double clip_limit; /* of CLAHE */
    bool zscore;       /* else [0, 1] */
} pl_preprocess;

uint64_t pl_preprocess_scratch_bytes(const pl_preprocess *);
/* gain: of the flat field, or NULL: none. out [height, width] may be the frame. scratch: aligned to 8, left dirty.
 * Returns how many pixels were not finite. */
uint64_t pl_preprocess_frame(const pl_preprocess *, const float *frame, const float *gain, void *scratch, float *out);

#endif
