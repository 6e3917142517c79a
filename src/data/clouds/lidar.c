#include "data/clouds/lidar.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the filter ---- */

#define SURFACE_KM 0.9

static const pl_label_filter filters[] = {{"basic", 0.1f, 2.0f}, {"practical", 0.05f, 2.5f}};

const pl_label_filter *pl_label_filter_find(const char *name)
{
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (strcmp(filters[i].name, name) == 0) return &filters[i];
    return NULL;
}

/* Comparisons with a NAN are false. */
bool pl_label_is_valid(const pl_label_filter *f, float base_km, float lidar_surface_m, float dem_surface_m)
{
    const bool over_ocean = fabs((double)lidar_surface_m / 1000) <= SURFACE_KM && dem_surface_m == 0;
    return over_ocean && base_km != PL_LIDAR_MISSING && base_km >= f->low_km && base_km <= f->high_km;
}

/* ---- times ---- */

bool pl_julian_year_of(const char *path, int *year)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t bytes = strcspn(name, ".");
    if (bytes < 2 || !isdigit((unsigned char)name[bytes - 2]) || !isdigit((unsigned char)name[bytes - 1])) return false;
    *year = 2000 + 10 * (name[bytes - 2] - '0') + (name[bytes - 1] - '0');
    return true;
}

pl_julian_clock pl_julian_begin(int year) { return (pl_julian_clock){.year = year}; }

/* Days from 1970 to the first of January, Gregorian; years from 1970 on. */
static double days_before(int year)
{
    const int last = year - 1;
    return 365.0 * (year - 1970) + (last / 4 - 1969 / 4) - (last / 100 - 1969 / 100) + (last / 400 - 1969 / 400);
}

double pl_julian_seconds(pl_julian_clock *c, double day)
{
    if (!(day >= 1 && day <= 1000)) return NAN;
    const double whole = floor(day), fraction = day - whole;
    if (c->has_begun && fraction - c->fraction < -0.2 && whole <= c->whole) c->days_added++;
    c->has_begun = true, c->whole = whole, c->fraction = fraction;
    return (days_before(c->year) + whole - 1 + c->days_added) * 86400 + fraction * 86400;
}

/* ---- labels of frames ---- */

pl_status pl_times_check(const double *times, uint64_t count, pl_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(times[i]))
            return pl_fail(err, PL_E_DATA,
                           "the time of frame %" PRIu64 " is not a finite number; seconds since 1970 are expected", i);
        if (i && !(times[i] > times[i - 1]))
            return pl_fail(err, PL_E_DATA,
                           "the time of frame %" PRIu64 ", %.3f, is not behind that of the frame before it, %.3f; put "
                           "the frames in the order of their times",
                           i, times[i], times[i - 1]);
    }
    return PL_OK;
}

/* The first time at or behind this one, or count. */
static uint64_t first_behind(const double *times, uint64_t count, double seconds)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (times[middle] < seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t pl_match_frame(const double *times, uint64_t count, double seconds)
{
    if (!isfinite(seconds) || count == 0) return PL_NO_FRAME;
    uint64_t best = first_behind(times, count, seconds);
    if (best == count || (best && seconds - times[best - 1] <= times[best] - seconds)) best--;
    return fabs(times[best] - seconds) <= PL_MATCH_SECONDS ? best : PL_NO_FRAME;
}

/* ---- angles ---- */

/* What is missing may be -9999, too. */
static bool is_angle(double degrees) { return fabs(degrees) <= 360; }

pl_status pl_zenith_mend(double *degrees, uint64_t count, pl_error *err)
{
    double sum = 0;
    uint64_t known = 0;
    for (uint64_t i = 0; i < count; i++)
        if (is_angle(degrees[i])) sum += degrees[i], known++;
    if (known == 0)
        return pl_fail(err, PL_E_DATA,
                       "none of the %" PRIu64 " zenith angles of the sun is a finite number from -360 to 360", count);
    for (uint64_t i = 0; i < count; i++)
        if (!is_angle(degrees[i])) degrees[i] = sum / (double)known;
    return PL_OK;
}

void pl_azimuth_mend(double *degrees, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        double turned = isfinite(degrees[i]) ? fmod(degrees[i], 360) : 0;
        if (turned < 0) turned += 360;
        degrees[i] = turned < 360 ? turned : 0; /* of a tiny negative one the sum is 360 */
    }
}

/* ---- windows ---- */

uint64_t pl_window_frame(uint64_t frame, uint64_t frames, uint32_t window, uint32_t place)
{
    const uint64_t back = window / 2, at = frame + place;
    if (at < back) return 0;
    return at - back < frames ? at - back : frames - 1;
}
