/* Which heights of a lidar's stream of profiles belong to which frames of a camera, and the angles of the sun.
 *
 * A profile's height is its lowest layer's base. It is valid over the ocean (its DEM is 0 and the lidar sees a surface
 * within 0.9 km of 0), where it is finite, not PL_LIDAR_MISSING and inside the filter's range. It labels the frame that
 * is nearest in time, if that is within PL_MATCH_SECONDS; of several profiles for a frame the last one counts. */
#ifndef PL_DATA_LIDAR_H
#define PL_DATA_LIDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PL_LIDAR_MISSING (-9999.0f)
#define PL_MATCH_SECONDS 0.5
#define PL_NO_FRAME      UINT64_MAX

/* ---- the filter ---- */

typedef struct pl_label_filter {
    const char *name;
    float low_km, high_km; /* both ends belong to it */
} pl_label_filter;

/* "basic": 0.1 to 2 km, "practical": 0.05 to 2.5 km; NULL: there is none of that name. */
const pl_label_filter *pl_label_filter_find(const char *name);
bool pl_label_is_valid(const pl_label_filter *, float base_km, float lidar_surface_m, float dem_surface_m);

/* ---- times ---- */

/* Decimal days of a year (1.5: noon of the first of January) to seconds since 1970. The whole part may stand still at
 * midnight while the fraction falls back: where that falls by more than 0.2 and the whole part did not grow, another
 * day is added from there on. */
typedef struct pl_julian_clock {
    int year;
    bool has_begun;
    double whole, fraction; /* of the last one */
    double days_added;
} pl_julian_clock;

/* The year is the two digits before the name's first dot, counted from 2000: "CPL_259015_10feb25.hdf5". False: there
 * are none. */
bool pl_julian_year_of(const char *path, int *year);
pl_julian_clock pl_julian_begin(int year);
/* NAN where the day is not finite or below 1 or above 1000; then nothing else changes. */
double pl_julian_seconds(pl_julian_clock *, double day);

/* ---- labels of frames ---- */

/* PL_E_DATA, with the first place: times that are not finite or do not grow (equal ones are refused, too). */
pl_status pl_times_check(const double *times, uint64_t count, pl_error *);
/* The nearest of `count` times that grow, the earlier of two that are as near; PL_NO_FRAME: none is near enough. */
uint64_t pl_match_frame(const double *times, uint64_t count, double seconds);

/* ---- angles ---- */

/* Zenith: what is not finite, or more than a turn, becomes the mean of the others. PL_E_DATA when there is none. */
pl_status pl_zenith_mend(double *degrees, uint64_t count, pl_error *);
/* Azimuth: what is not finite becomes 0; then into [0, 360). */
void pl_azimuth_mend(double *degrees, uint64_t count);

/* ---- windows ---- */

/* The frame that stands at `place` of the `window` frames around one: those beyond an end are the one at that end. */
uint64_t pl_window_frame(uint64_t frame, uint64_t frames, uint32_t window, uint32_t place);

#endif
