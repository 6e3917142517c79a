/* Synthetic flights over an ocean with clouds of one height: frames, angles, and a lidar's profiles, of which the
 * height is known. All is a pure function of (seed, flight, frame): nothing repeats, and memory does not grow with a
 * flight.
 *
 * Ocean and clouds are Gaussian random fields of unit variance over an endless strip: white noise, a number for each
 * point of the ground, filtered around the part that a frame sees. A cloud is where its field is above a threshold. The
 * height follows a field over the frames, mapped so that it is uniform in [PL_SCENE_LOW_KM, PL_SCENE_HIGH_KM].
 *
 *   shadow     each cloud casts a dark copy of itself, displaced by L = h·tan(zenith)/gsd pixels away from the sun (x
 *              to the east, y to the south): what a model of single frames and the angles can learn. L is at most
 *              PL_SCENE_SHADOW_PIXELS at the default gsd, less than the 18 pixels that a point behind the third
 *              convolution sees; and clouds are small, so that little of a shadow is hidden.
 *   parallax   no shadows; the ground moves by s = v·dt/gsd pixels a frame and the clouds by s·A/(A − h), A the
 *              aircraft's altitude: the height is in the displacement between frames alone, so a model that encodes
 *              each frame by itself cannot know it. The negative control.
 *
 * Frames are so far apart that a flight takes hours, as the track of its sun does, sees many clouds, and that the shift
 * of clouds against the ground is pixels, not parts of one.
 *
 * Flights differ in texture, coverage, wind, brightness, noise, vignette and the tracks of the sun, which is high in
 * the south. A pixel in 100,000 is NAN, and some angles are where there is no label.
 *
 * Three profiles belong to each frame. The second lies within the tolerance: it labels the frame, with noise, or is one
 * that the filter drops, for each of its reasons. The first comes a little earlier: sometimes valid and wrong, to be
 * overwritten. The third lies between two frames: sometimes valid, never to be matched. */
#ifndef PL_DATA_SCENE_H
#define PL_DATA_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PL_SCENE_LOW_KM         0.1
#define PL_SCENE_HIGH_KM        2.0
#define PL_SCENE_LABEL_NOISE_KM 0.03
#define PL_SCENE_FRAME_SECONDS  10.0
#define PL_SCENE_GSD_METRES     125.0 /* 2 km · tan 45° / 16 */
#define PL_SCENE_ZENITH_LOW     25.0
#define PL_SCENE_ZENITH_HIGH    45.0
#define PL_SCENE_AZIMUTH_LOW    150.0
#define PL_SCENE_AZIMUTH_HIGH   210.0
#define PL_SCENE_SHADOW_PIXELS  16
enum { PL_SCENE_PROFILES = 3, PL_SCENE_FLIGHTS_MAX = 31, PL_SCENE_SIDE_MAX = 4096 };

typedef enum pl_cue { PL_CUE_SHADOW, PL_CUE_PARALLAX } pl_cue;

typedef struct pl_scene {
    uint32_t height, width;
    double gsd_metres; /* of a pixel on the ground */
    pl_cue cue;
    uint64_t seed;
} pl_scene;

/* PL_E_USAGE: sides of 8 to PL_SCENE_SIDE_MAX pixels; a gsd at which no shadow is longer than the shorter side. */
pl_status pl_scene_check(const pl_scene *, pl_error *);

typedef struct pl_scene_flight {
    const pl_scene *of; /* the caller's */
    uint32_t number;
    uint64_t frames, labels;      /* labels are spread over the frames, the first has one */
    double texture_pixels;        /* of the ocean */
    double threshold;             /* of the clouds */
    double wind_x, wind_y;        /* pixels a frame */
    double ocean, cloud, noise;   /* brightness, and the deviation of each pixel */
    double vignette;              /* how much less there is in the corners */
    double zenith[2], azimuth[2]; /* first and last frame */
} pl_scene_flight;

/* frames 1 or more, labels at most frames. */
pl_scene_flight pl_scene_flight_of(const pl_scene *, uint32_t number, uint64_t frames, uint64_t labels);

/* Where a flight is: step from frame to frame. */
typedef struct pl_scene_at {
    uint64_t frame;
    double height_km, zenith, azimuth; /* as they are: those of the files may be NAN */
    double ground_y, cloud_y, cloud_x; /* of the frame's first row and column on the strip */
    bool has_label;
} pl_scene_at;

pl_scene_at pl_scene_begin(const pl_scene_flight *);
void pl_scene_next(const pl_scene_flight *, pl_scene_at *);

uint64_t pl_scene_scratch_bytes(const pl_scene *);
/* out [height, width]; scratch: aligned to 8, left dirty. */
void pl_scene_fill(const pl_scene_flight *, const pl_scene_at *, void *scratch, float *out);

/* What the navigation file says: NAN in some frames without a label. */
void pl_scene_angles(const pl_scene_flight *, const pl_scene_at *, double *zenith, double *azimuth);

typedef struct pl_scene_profile {
    double seconds; /* after the time of the frame */
    float base_km, lidar_surface_m, dem_surface_m;
} pl_scene_profile;
void pl_scene_profiles(const pl_scene_flight *, const pl_scene_at *, pl_scene_profile[PL_SCENE_PROFILES]);

#endif
