/* Sequences of frames as a source: the ports "images" f32 [micro_batch, window, height, width], "angles" f32
 * [micro_batch, 2] (zenith, azimuth) and "target" f32 [micro_batch, 1] (the height); angles and heights are scaled, an
 * unseen angle is 0. Pictures are read by position from the frame file, and leave the page cache again.
 *
 * In training a step is a whole batch, in the order of a draw that continues across the end of an epoch. Held-out
 * samples come from front to back; rows past its end are 0, with a target of NAN, which counts nothing. */
#ifndef PL_DATA_CLOUDS_SOURCE_H
#define PL_DATA_CLOUDS_SOURCE_H

#include "data/clouds/augment.h"
#include "data/clouds/draw.h"
#include "base/scaler.h"
#include "stream/source.h"

/* A labelled frame. */
typedef struct pl_clouds_sample {
    uint32_t flight;
    float height_km;
    uint64_t frame; /* number in the flight */
    double seconds; /* since 1970 */
    double zenith, azimuth;
} pl_clouds_sample;

typedef struct pl_clouds_samples {
    uint64_t count;
    pl_clouds_sample *sample;
    uint64_t *picture; /* [count, window] */
} pl_clouds_samples;

typedef struct pl_clouds_scalers {
    pl_scaler zenith, azimuth, height;
} pl_clouds_scalers;

typedef struct pl_clouds_source {
    pl_source source; /* first: this is one */
    const pl_frames *frames;
    pl_clouds_samples samples[2]; /* by part */
    pl_clouds_scalers scaler;
    pl_draw draw; /* the training part's */
    uint32_t window;
    bool zscore, augment;
    bool zenith, azimuth; /* does the model see them? */
    pl_philox variation;
} pl_clouds_source;

/* Completes a source whose frames, samples and rules are set; they live as long as it. at_once: see pl_source. */
void pl_clouds_source_init(pl_clouds_source *, uint32_t batch, uint32_t at_once, uint64_t seed);
/* The sample of a row of a step; NULL: past the end. number: counted over the whole run. */
const pl_clouds_sample *pl_clouds_source_row(const pl_clouds_source *, pl_part, uint64_t number);

#endif
