#include "systems/clouds_flight.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define SIGNAL  "Product/Signal"
#define TIMES   "Time/TimeUTC"
#define DAYS    "layer_descriptor/Profile_Decimal_Julian_Day"
#define BASES   "layer_descriptor/Layer_Base_Altitude"
#define LIDAR   "layer_descriptor/Lidar_Surface_Altitude"
#define DEM     "layer_descriptor/DEM_Surface_Altitude"
#define ZENITH  "nav/solarZenith"
#define AZIMUTH "nav/sunAzGrd"

/* A file may tell of more than it holds, and what it tells takes memory or time: 46 hours of 25 frames a second. */
enum { FRAMES_MAX = 1 << 22, PROFILES_MAX = 1 << 24 };
enum { PROFILES_AT_ONCE = 1024, WHY_BYTES = 256, SIDE_MAX = 65536 };

/* ---- a file ---- */

typedef struct source {
    const pl_hdf5_module *module;
    const char *path;
    void *file;
} source;

static pl_status open_source(source *s, pl_error *err)
{
    char why[WHY_BYTES];
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(s->path, &fd, &bytes, err)); /* what is there at all is the system's to say */
    close(fd);
    const int result = s->module->open(s->path, &s->file, why, sizeof why);
    if (result == 0) return PL_OK;
    if (result == PL_HDF5_NO_MEMORY) return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it: %s", s->path, why);
    if (strstr(why, "lock file"))
        return pl_fail(err, PL_E_STORAGE, "%s: another process has it locked (%s); wait until it is done", s->path,
                       why);
    return pl_fail(err, PL_E_DATA, "%s: is no HDF5 file, or is truncated or damaged: %s", s->path, why);
}

/* A dataset of numbers with so many dimensions, from `low` to `high` of them. */
static pl_status find(const source *s, const char *name, uint32_t low, uint32_t high, const char *expected,
                      pl_hdf5_seen *seen, pl_error *err)
{
    char why[WHY_BYTES];
    const int result = s->module->look(s->file, name, seen, why, sizeof why);
    if (result == PL_HDF5_NO_MEMORY)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to look at %s: %s", s->path, name, why);
    if (result != 0) return pl_fail(err, PL_E_DATA, "%s: %s cannot be examined: %s", s->path, name, why);
    if (!seen->is_there)
        return pl_fail(err, PL_E_DATA, "%s: there is no dataset %s; %s is expected", s->path, name, expected);
    if (!seen->is_number)
        return pl_fail(err, PL_E_DATA, "%s: %s does not hold numbers; %s is expected", s->path, name, expected);
    if (seen->rank < low || seen->rank > high)
        return pl_fail(err, PL_E_DATA, "%s: %s has %u dimension%s; %s is expected", s->path, name, seen->rank,
                       seen->rank == 1 ? "" : "s", expected);
    if (seen->lack[0]) return pl_fail(err, PL_E_DATA, "%s: %s: %s", s->path, name, seen->lack);
    for (uint32_t i = 1; i < seen->rank; i++)
        if (seen->shape[i] < 1)
            return pl_fail(err, PL_E_DATA, "%s: %s has a dimension of 0; %s is expected", s->path, name, expected);
    return PL_OK;
}

static pl_status read_part(const source *s, const char *name, const uint64_t *first, const uint64_t *count,
                           const char *dtype, void *to, pl_hdf5_missing *missing, pl_error *err)
{
    char why[WHY_BYTES];
    const int result = s->module->read(s->file, name, first, count, dtype, to, missing, why, sizeof why);
    if (result == 0) return PL_OK;
    if (result == PL_HDF5_NO_MEMORY)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to read %s: %s", s->path, name, why);
    return pl_fail(err, PL_E_DATA, "%s: %s cannot be read from row %" PRIu64 " on: %s", s->path, name, first[0], why);
}

/* Numbers [first, first + count) of the only column, or the first one. Those that the file says are none are NAN, and
 * count as such; what was never written is no flight's end, but a file that was not finished. */
static pl_status read_column(const source *s, const char *name, uint64_t first, uint64_t count, const char *dtype,
                             void *to, pl_error *err)
{
    const uint64_t begin[2] = {first, 0}, many[2] = {count, 1};
    pl_hdf5_missing missing;
    PL_TRY(read_part(s, name, begin, many, dtype, to, &missing, err));
    if (missing.unwritten == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: %s: number %" PRIu64 " was never written; bring the file whole", s->path, name,
                   missing.unwritten_row);
}

/* At least so many rows: what is longer has what stands behind the last frame. */
static pl_status find_column(const source *s, const char *name, uint64_t rows, pl_error *err)
{
    pl_hdf5_seen seen;
    PL_TRY(find(s, name, 1, 2, "a number for each frame", &seen, err));
    if (seen.shape[0] >= rows) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: %s has %" PRIu64 " numbers, but there are %" PRIu64 " frames; a number for each is expected",
                   s->path, name, seen.shape[0], rows);
}

/* ---- camera and navigation ---- */

typedef struct columns {
    double *seconds, *zenith, *azimuth; /* [frames] */
} columns;

static pl_status read_camera(const source *s, pl_flight *f, columns *c, pl_error *err)
{
    pl_hdf5_seen seen;
    PL_TRY(find(s, SIGNAL, 3, 3, "[frames, rows, columns]", &seen, err));
    if (seen.shape[0] < 1) return pl_fail(err, PL_E_DATA, "%s: %s has no frames", s->path, SIGNAL);
    if (seen.shape[0] > FRAMES_MAX)
        return pl_fail(err, PL_E_DATA, "%s: %s has %" PRIu64 " frames; at most %d are read, so split the flight",
                       s->path, SIGNAL, seen.shape[0], FRAMES_MAX);
    if (seen.shape[1] > SIDE_MAX || seen.shape[2] > SIDE_MAX)
        return pl_fail(err, PL_E_DATA, "%s: %s has frames of %" PRIu64 " by %" PRIu64 "; at most %d by %d are read",
                       s->path, SIGNAL, seen.shape[1], seen.shape[2], SIDE_MAX, SIDE_MAX);
    f->frames = seen.shape[0], f->rows = (uint32_t)seen.shape[1], f->columns = (uint32_t)seen.shape[2];
    PL_TRY(find_column(s, TIMES, f->frames, err));
    f->record = pl_alloc(f->frames, sizeof *f->record);
    c->seconds = pl_alloc(f->frames, 3 * sizeof *c->seconds);
    if (!f->record || !c->seconds)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for what belongs to its %" PRIu64 " frames", s->path, f->frames);
    c->zenith = c->seconds + f->frames, c->azimuth = c->zenith + f->frames;
    PL_TRY(read_column(s, TIMES, 0, f->frames, "f64", c->seconds, err));
    const pl_status status = pl_times_check(c->seconds, f->frames, err);
    return status == PL_OK ? PL_OK : pl_fail_prefix(err, status, "%s: %s", s->path, TIMES);
}

static pl_status read_navigation(const source *s, const pl_flight *f, columns *c, pl_error *err)
{
    PL_TRY(find_column(s, ZENITH, f->frames, err));
    PL_TRY(find_column(s, AZIMUTH, f->frames, err));
    PL_TRY(read_column(s, ZENITH, 0, f->frames, "f64", c->zenith, err));
    PL_TRY(read_column(s, AZIMUTH, 0, f->frames, "f64", c->azimuth, err));
    pl_azimuth_mend(c->azimuth, f->frames);
    const pl_status status = pl_zenith_mend(c->zenith, f->frames, err);
    return status == PL_OK ? PL_OK : pl_fail_prefix(err, status, "%s: %s", s->path, ZENITH);
}

static void fill_records(pl_flight *f, const columns *c)
{
    for (uint64_t i = 0; i < f->frames; i++)
        f->record[i] = (pl_frames_record){.seconds = c->seconds[i],
                                          .zenith = c->zenith[i],
                                          .azimuth = c->azimuth[i],
                                          .picture = PL_FRAMES_NONE,
                                          .profile = PL_FRAMES_NONE,
                                          .label_km = NAN};
}

/* ---- lidar ---- */

typedef struct profiles {
    double day[PROFILES_AT_ONCE];
    float base[PROFILES_AT_ONCE], surface[PROFILES_AT_ONCE], dem[PROFILES_AT_ONCE];
} profiles;

static pl_status find_profiles(const source *s, uint64_t *count, pl_error *err)
{
    static const char *const others[] = {BASES, LIDAR, DEM};
    pl_hdf5_seen seen, other;
    PL_TRY(find(s, DAYS, 1, 2, "a day for each profile", &seen, err));
    *count = seen.shape[0];
    if (*count > PROFILES_MAX)
        return pl_fail(err, PL_E_DATA, "%s: %s has %" PRIu64 " profiles; at most %d are read, so split the flight",
                       s->path, DAYS, *count, PROFILES_MAX);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        PL_TRY(find(s, others[i], 1, 2, "a number for each profile", &other, err));
        if (other.shape[0] != *count)
            return pl_fail(err, PL_E_DATA, "%s: %s has %" PRIu64 " profiles, but %s has %" PRIu64, s->path, others[i],
                           other.shape[0], DAYS, *count);
    }
    return PL_OK;
}

static pl_status read_profiles(const source *s, uint64_t first, uint64_t count, profiles *p, pl_error *err)
{
    PL_TRY(read_column(s, DAYS, first, count, "f64", p->day, err));
    PL_TRY(read_column(s, BASES, first, count, "f32", p->base, err));
    PL_TRY(read_column(s, LIDAR, first, count, "f32", p->surface, err));
    return read_column(s, DEM, first, count, "f32", p->dem, err);
}

typedef struct matching {
    const pl_label_filter *filter;
    const double *seconds; /* of the frames */
    pl_julian_clock clock;
} matching;

static void match(matching *m, pl_flight *f, const profiles *p, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double seconds = pl_julian_seconds(&m->clock, p->day[i]);
        if (!pl_label_is_valid(m->filter, p->base[i], p->surface[i], p->dem[i])) continue;
        const uint64_t frame = pl_match_frame(m->seconds, f->frames, seconds);
        if (frame == PL_NO_FRAME) continue;
        f->labels += f->record[frame].profile == PL_FRAMES_NONE;
        f->record[frame].label_km = p->base[i], f->record[frame].profile = first + i;
    }
}

static pl_status read_lidar(const source *s, const pl_label_filter *filter, pl_flight *f, const columns *c,
                            pl_error *err)
{
    uint64_t count;
    int year;
    if (!pl_julian_year_of(s->path, &year))
        return pl_fail(err, PL_E_DATA,
                       "%s: the year of its days is not known; its name must have it as two digits before the first "
                       "dot, as in CPL_259015_10feb25.hdf5",
                       s->path);
    PL_TRY(find_profiles(s, &count, err));
    profiles *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "%s: no memory for reading profiles", s->path);
    matching m = {filter, c->seconds, pl_julian_begin(year)};
    pl_status status = PL_OK;
    for (uint64_t at = 0; at < count && status == PL_OK; at += PROFILES_AT_ONCE) {
        const uint64_t some = count - at < PROFILES_AT_ONCE ? count - at : PROFILES_AT_ONCE;
        status = read_profiles(s, at, some, p, err);
        if (status == PL_OK) match(&m, f, p, at, some);
    }
    pl_free(p);
    return status;
}

/* ---- the flight ---- */

pl_status pl_flight_check_labels(const pl_flight *f, const pl_label_filter *filter, pl_error *err)
{
    float low = INFINITY, high = -INFINITY;
    if (f->labels < 2)
        return pl_fail(err, PL_E_DATA,
                       "flight %s has %" PRIu64 " label%s, and two or more are needed: profiles of its lidar that are "
                       "over the ocean, between %g and %g km, within %g s of a frame; leave the flight out, or choose "
                       "another filter_type",
                       f->files->name, f->labels, f->labels == 1 ? "" : "s", (double)filter->low_km,
                       (double)filter->high_km, PL_MATCH_SECONDS);
    for (uint64_t i = 0; i < f->frames; i++)
        if (isfinite(f->record[i].label_km))
            low = fminf(low, f->record[i].label_km), high = fmaxf(high, f->record[i].label_km);
    if (high > low) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "flight %s: its %" PRIu64
                   " labels are all %g km; with no variance there is nothing to tell apart: leave the flight "
                   "out",
                   f->files->name, f->labels, (double)low);
}

/* Which of the three files, and what is read from it. */
typedef enum part { CAMERA, NAVIGATION, PROFILES } part;

static pl_status read_file(const pl_hdf5_module *module, part which, const pl_label_filter *filter, pl_flight *f,
                           columns *c, pl_error *err)
{
    const char *const path[] = {f->files->camera, f->files->navigation, f->files->lidar};
    source s = {module, path[which], NULL};
    PL_TRY(open_source(&s, err));
    pl_status status = which == CAMERA       ? read_camera(&s, f, c, err)
                       : which == NAVIGATION ? read_navigation(&s, f, c, err)
                                             : read_lidar(&s, filter, f, c, err);
    module->close(s.file);
    if (status == PL_OK && which == NAVIGATION) fill_records(f, c);
    return status;
}

pl_status pl_flight_read(const pl_hdf5_module *module, const pl_flight_files *files, const pl_label_filter *filter,
                         pl_flight *f, pl_error *err)
{
    columns c = {0};
    *f = (pl_flight){.files = files};
    pl_status status = read_file(module, CAMERA, filter, f, &c, err);
    if (status == PL_OK) status = read_file(module, NAVIGATION, filter, f, &c, err);
    if (status == PL_OK) status = read_file(module, PROFILES, filter, f, &c, err);
    if (status == PL_OK) status = pl_flight_check_labels(f, filter, err);
    pl_free(c.seconds);
    if (status != PL_OK) pl_flight_deinit(f);
    return status;
}

void pl_flight_deinit(pl_flight *f)
{
    pl_free(f->record);
    f->record = NULL;
}

/* ---- its frames ---- */

/* It was closed since its shape was looked at. */
static pl_status check_still(const source *s, const pl_flight *f, pl_error *err)
{
    pl_hdf5_seen seen;
    PL_TRY(find(s, SIGNAL, 3, 3, "[frames, rows, columns]", &seen, err));
    if (seen.shape[0] == f->frames && seen.shape[1] >= f->rows && seen.shape[2] == f->columns) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: %s changed its shape while it was read; begin again when it is whole", s->path,
                   SIGNAL);
}

pl_status pl_flight_camera_open(pl_flight_camera *c, const pl_hdf5_module *module, const pl_flight *f, pl_error *err)
{
    source s = {module, f->files->camera, NULL};
    *c = (pl_flight_camera){module, f, NULL};
    PL_TRY(open_source(&s, err));
    const pl_status status = check_still(&s, f, err);
    if (status != PL_OK) return module->close(s.file), status;
    c->file = s.file;
    return PL_OK;
}

void pl_flight_camera_close(pl_flight_camera *c)
{
    if (c->file) c->module->close(c->file);
    c->file = NULL;
}

pl_status pl_flight_camera_read(const pl_flight_camera *c, uint64_t frame, uint32_t first, uint32_t end, float *out,
                                pl_error *err)
{
    const source s = {c->module, c->flight->files->camera, c->file};
    const uint64_t begin[3] = {frame, first, 0}, count[3] = {1, end - first, c->flight->columns};
    pl_hdf5_missing missing; /* NAN, as what is damaged */
    return read_part(&s, SIGNAL, begin, count, "f32", out, &missing, err);
}
