/* plimsoll synth clouds: flights of data/clouds/scene.h as the files that the regression of cloud heights reads. Frame
 * by frame: the memory is that of one frame, and the page cache that of a window, however long a flight is. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/remove.h"
#include "data/clouds/lidar.h"
#include "data/clouds/scene.h"
#include "plimsoll/synth.h"
#include "store/hdf5_load.h"

pl_synth_clouds_options pl_synth_clouds_default(void)
{
    return (pl_synth_clouds_options){.flights = 6,
                                     .labels_part = 5,
                                     .height = 440,
                                     .width = 640,
                                     .gsd_metres = PL_SCENE_GSD_METRES,
                                     .cue = PL_SYNTH_SHADOW,
                                     .seed = 1};
}

/* ---- the flights ---- */

/* The documented flights with the numbers of their labels (of 04Nov24 none is told). Those with `midnight` fly over it;
 * in the files of some the day's number then stands still, in those of others it grows. */
static const struct {
    int day, month, year;
    uint32_t labels;
    bool midnight, stands_still;
} documented[] = {{10, 2, 2025, 191, false, false}, {30, 10, 2024, 501, true, true}, {4, 11, 2024, 120, false, false},
                  {23, 10, 2024, 105, true, false}, {18, 2, 2025, 44, false, false}, {12, 2, 2025, 92, false, false}};
enum { DOCUMENTED = sizeof documented / sizeof *documented, NAME_BYTES = 16, LAYERS = 4, MOMENTS = 3 };

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

typedef struct flight {
    pl_scene_flight scene;
    int day, month, year;
    double begins;  /* seconds since 1970, of the first frame */
    double january; /* of its year */
    bool stands_still;
    char name[NAME_BYTES], small[NAME_BYTES]; /* 10Feb25, 10feb25 */
} flight;

static double seconds_of(int year, int month, int day)
{
    struct tm at = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return (double)timegm(&at);
}

static uint64_t labels_of(const pl_synth_clouds_options *o, uint32_t number)
{
    const uint32_t all = number < DOCUMENTED ? documented[number].labels : 100;
    const uint64_t part = all / o->labels_part;
    return o->labels ? o->labels : part > 1 ? part : 2;
}

/* Others than the documented ones are days of March 2025. */
static void date(flight *f, uint32_t number)
{
    const bool known = number < DOCUMENTED;
    f->day = known ? documented[number].day : (int)number;
    f->month = known ? documented[number].month : 3;
    f->year = known ? documented[number].year : 2025;
    f->stands_still = known && documented[number].stands_still;
    f->begins = seconds_of(f->year, f->month, f->day) + 18 * 3600;
    f->january = seconds_of(f->year, 1, 1);
    if (known && documented[number].midnight)
        f->begins += 6 * 3600 - floor((double)f->scene.frames / 2) * PL_SCENE_FRAME_SECONDS;
    snprintf(f->name, sizeof f->name, "%02d%s%02d", f->day, months[f->month - 1], f->year % 100);
    snprintf(f->small, sizeof f->small, "%02d%s%02d", f->day, months[f->month - 1], f->year % 100);
    f->small[2] = (char)(f->small[2] - 'A' + 'a');
}

static flight flight_of(const pl_scene *scene, const pl_synth_clouds_options *o, uint32_t number)
{
    const uint64_t labels = labels_of(o, number);
    flight f = {.scene = pl_scene_flight_of(scene, number, labels + labels / 2 + 2, labels)};
    date(&f, number);
    return f;
}

/* As the lidar's file has it; the day's number may be that of the first frame still. */
static double decimal_day(const flight *f, double seconds)
{
    const double days = (seconds - f->january) / 86400 + 1;
    return f->stands_still ? floor((f->begins - f->january) / 86400 + 1) + (days - floor(days)) : days;
}

/* ---- files ---- */

enum { CAMERA, LIDAR, NAVIGATION, FILES, ARRAYS_MAX = 5 };
enum { SIGNAL, TIME, HEIGHT };                 /* of the camera */
enum { DAY, BASE, SURFACE, DEM };              /* of the lidar */
enum { ZENITH, AZIMUTH, LATITUDE, LONGITUDE }; /* of the navigation */

typedef struct made_file {
    char path[PL_FILE_PATH_MAX], temporary[PL_FILE_TEMPORARY_MAX];
    int fd; /* -1: not open */
    uint64_t flushed;
    pl_hdf5_array array[ARRAYS_MAX];
} made_file;

typedef struct maker {
    const pl_synth_clouds_options *o;
    const char *folder;
    pl_scene scene;
    uint32_t margin; /* rows above the swath, and below */
    const pl_hdf5_module *module;
    float *frame; /* [rows of the file][width] */
    void *scratch;
    made_file file[FILES];
    flight flight;
} maker;

static uint32_t rows_of(const maker *m) { return m->scene.height + 2 * m->margin; }

/* Their names end as the documented ones do: the lidar's year is read off its name. */
static void name_file(const flight *f, int which, char *name, size_t room)
{
    if (which == CAMERA)
        snprintf(name, room, "%s/SYNTHETIC_IRAI_L1B_Rev-_%04d%02d%02d.h5", f->name, f->year, f->month, f->day);
    if (which == LIDAR) snprintf(name, room, "%s/SYNTHETIC_CPL_L2_01kmLay_%s.hdf5", f->name, f->small);
    if (which == NAVIGATION)
        snprintf(name, room, "%s/SYNTHETIC_CRS_%04d%02d%02d_nav.hdf", f->name, f->year, f->month, f->day);
}

static size_t list_arrays(const maker *m, int which, pl_hdf5_array a[ARRAYS_MAX])
{
    const uint64_t frames = m->flight.scene.frames, profiles = frames * PL_SCENE_PROFILES;
    if (which == CAMERA) {
        a[SIGNAL] = (pl_hdf5_array){"Product/Signal", "f32", .rank = 3, .shape = {frames, rows_of(m), m->scene.width}};
        a[TIME] = (pl_hdf5_array){"Time/TimeUTC", "f64", .rank = 1, .shape = {frames}};
        a[HEIGHT] = (pl_hdf5_array){"synthetic/height", "f64", .rank = 1, .shape = {frames}};
        return 3;
    }
    if (which == LIDAR) {
        a[DAY] = (pl_hdf5_array){"layer_descriptor/Profile_Decimal_Julian_Day", "f64", .rank = 2,
                                 .shape = {profiles, MOMENTS}};
        a[BASE] =
            (pl_hdf5_array){"layer_descriptor/Layer_Base_Altitude", "f32", .rank = 2, .shape = {profiles, LAYERS}};
        a[SURFACE] = (pl_hdf5_array){"layer_descriptor/Lidar_Surface_Altitude", "f32", .rank = 1, .shape = {profiles}};
        a[DEM] = (pl_hdf5_array){"layer_descriptor/DEM_Surface_Altitude", "f32", .rank = 1, .shape = {profiles}};
        return 4;
    }
    a[ZENITH] = (pl_hdf5_array){"nav/solarZenith", "f64", .rank = 1, .shape = {frames}};
    a[AZIMUTH] = (pl_hdf5_array){"nav/sunAzGrd", "f64", .rank = 1, .shape = {frames}};
    a[LATITUDE] = (pl_hdf5_array){"nav/IWG_lat", "f64", .rank = 1, .shape = {frames}};
    a[LONGITUDE] = (pl_hdf5_array){"nav/IWG_lon", "f64", .rank = 1, .shape = {frames}};
    return 4;
}

static pl_status create_file(maker *m, int which, pl_error *err)
{
    made_file *f = &m->file[which];
    char name[128], why[256], folder[PL_FILE_PATH_MAX];
    const pl_hdf5_attribute kind = {"", "made_by", "plimsoll synth clouds", 0};
    const size_t arrays = list_arrays(m, which, f->array);
    name_file(&m->flight, which, name, sizeof name);
    PL_TRY(pl_path_join(folder, sizeof folder, m->folder, m->flight.name, err));
    PL_TRY(pl_folder_create(folder, err));
    PL_TRY(pl_path_join(f->path, sizeof f->path, m->folder, name, err));
    PL_TRY(pl_remove_file(pl_file_temporary(f->path, "", f->temporary), err)); /* libhdf5 would follow a link */
    if (m->module->create(f->temporary, f->array, arrays, &kind, 1, why, sizeof why) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be made as an HDF5 file: %s", f->path, why);
    f->flushed = 0;
    f->fd = pl_io_open(f->temporary, O_RDWR | O_CLOEXEC);
    if (f->fd >= 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be written: %s%s", f->path, strerror(errno), pl_io_hint(errno));
}

static pl_status put(made_file *f, int array, uint64_t at, const void *data, size_t bytes, pl_error *err)
{
    return pl_file_put(f->fd, f->path, f->array[array].offset + at, data, bytes, err);
}

/* The window that is written goes to the disk and out of the page cache; what was written before it is there. */
static pl_status flush(made_file *f, uint64_t end, pl_error *err)
{
    if (end < f->flushed + PL_FILE_WINDOW_BYTES) return PL_OK;
    int error = pl_file_start_write_back(f->fd, f->flushed, end - f->flushed);
    if (!error) error = pl_file_drop(f->fd, f->flushed, end - f->flushed);
    f->flushed = end;
    if (!error) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: writing failed: %s%s", f->path, strerror(error), pl_io_hint(error));
}

static pl_status finish_file(made_file *f, pl_error *err)
{
    pl_file_keep_rights(f->fd, f->path, 0);
    int error = pl_io_sync(f->fd) ? errno : 0;
    if (pl_io_close(f->fd) && !error) error = errno;
    f->fd = -1;
    if (!error && pl_remove_is_link(f->path)) error = ELOOP;
    if (!error && (pl_io_inject(PL_IO_RENAME) || rename(f->temporary, f->path) != 0)) error = errno;
    if (!error) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be written: %s%s", f->path, strerror(error), pl_io_hint(error));
}

/* What a failure left; nothing where a file has its name. */
static void abandon_files(maker *m)
{
    for (int i = 0; i < FILES; i++) {
        made_file *f = &m->file[i];
        if (f->fd >= 0) pl_io_close(f->fd);
        if (f->temporary[0]) (void)pl_remove_file(f->temporary, NULL);
        f->fd = -1, f->temporary[0] = 0;
    }
}

/* ---- a frame ---- */

static pl_status put_camera(maker *m, const pl_scene_at *at, double seconds, pl_error *err)
{
    made_file *f = &m->file[CAMERA];
    const uint64_t bytes = (uint64_t)rows_of(m) * m->scene.width * sizeof(float);
    pl_scene_fill(&m->flight.scene, at, m->scratch, m->frame + (uint64_t)m->margin * m->scene.width);
    PL_TRY(put(f, SIGNAL, at->frame * bytes, m->frame, bytes, err));
    PL_TRY(flush(f, f->array[SIGNAL].offset + (at->frame + 1) * bytes, err));
    PL_TRY(put(f, TIME, at->frame * sizeof seconds, &seconds, sizeof seconds, err));
    return put(f, HEIGHT, at->frame * sizeof(double), &at->height_km, sizeof(double), err);
}

/* The first moment is the profile's time; lower layers come first, and those that are not there are missing. */
static pl_status put_lidar(maker *m, const pl_scene_at *at, double seconds, pl_error *err)
{
    made_file *f = &m->file[LIDAR];
    pl_scene_profile profile[PL_SCENE_PROFILES];
    double day[PL_SCENE_PROFILES][MOMENTS];
    float base[PL_SCENE_PROFILES][LAYERS], surface[PL_SCENE_PROFILES], dem[PL_SCENE_PROFILES];
    pl_scene_profiles(&m->flight.scene, at, profile);
    for (int i = 0; i < PL_SCENE_PROFILES; i++) {
        for (int k = 0; k < MOMENTS; k++) day[i][k] = decimal_day(&m->flight, seconds + profile[i].seconds + k);
        for (int k = 0; k < LAYERS; k++) base[i][k] = k ? PL_LIDAR_MISSING : profile[i].base_km;
        if (isfinite(base[i][0]) && base[i][0] > 0 && at->frame % 2) base[i][1] = base[i][0] + 4;
        surface[i] = profile[i].lidar_surface_m, dem[i] = profile[i].dem_surface_m;
    }
    PL_TRY(put(f, DAY, at->frame * sizeof day, day, sizeof day, err));
    PL_TRY(put(f, BASE, at->frame * sizeof base, base, sizeof base, err));
    PL_TRY(put(f, SURFACE, at->frame * sizeof surface, surface, sizeof surface, err));
    return put(f, DEM, at->frame * sizeof dem, dem, sizeof dem, err);
}

static pl_status put_navigation(maker *m, const pl_scene_at *at, pl_error *err)
{
    made_file *f = &m->file[NAVIGATION];
    const uint64_t place = at->frame * sizeof(double);
    const double degrees = at->ground_y * m->scene.gsd_metres / 111320; /* south, over the Pacific */
    const double latitude = 30 - degrees, longitude = -125 + 0.1 * m->flight.scene.number;
    double zenith, azimuth;
    pl_scene_angles(&m->flight.scene, at, &zenith, &azimuth);
    PL_TRY(put(f, ZENITH, place, &zenith, sizeof zenith, err));
    PL_TRY(put(f, AZIMUTH, place, &azimuth, sizeof azimuth, err));
    PL_TRY(put(f, LATITUDE, place, &latitude, sizeof latitude, err));
    return put(f, LONGITUDE, place, &longitude, sizeof longitude, err);
}

/* ---- a flight, all flights ---- */

static pl_status make_flight(maker *m, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    for (int i = 0; i < FILES; i++) PL_TRY(create_file(m, i, err));
    pl_scene_at at = pl_scene_begin(&m->flight.scene);
    for (uint64_t i = 0; i < m->flight.scene.frames; i++) {
        const double seconds = m->flight.begins + (double)i * PL_SCENE_FRAME_SECONDS;
        PL_TRY(put_camera(m, &at, seconds, err));
        PL_TRY(put_lidar(m, &at, seconds, err));
        PL_TRY(put_navigation(m, &at, err));
        pl_scene_next(&m->flight.scene, &at);
    }
    for (int i = 0; i < FILES; i++) {
        PL_TRY(finish_file(&m->file[i], err));
        m->file[i].temporary[0] = 0;
    }
    PL_TRY(pl_path_join(folder, sizeof folder, m->folder, m->flight.name, err));
    return pl_folder_sync(folder, err);
}

/* JSON's quoted texts are YAML's, too. */
static void print_config(const maker *m, const char *folder, pl_str *text)
{
    static const char *const keys[FILES] = {"iFileName", "cFileName", "nFileName"};
    char name[128];
    pl_json json = pl_json_begin(text, true);
    pl_str_append(text, "data_directory: ");
    pl_json_string(&json, folder);
    pl_str_printf(text, "\nswath_slice: [%u, %u]\nflights:\n", m->margin, m->margin + m->scene.height);
    for (uint32_t i = 0; i < m->o->flights; i++) {
        const flight f = flight_of(&m->scene, m->o, i);
        pl_str_printf(text, "  - name: \"%s\"\n", f.name);
        for (int k = 0; k < FILES; k++) {
            name_file(&f, k, name, sizeof name);
            pl_str_printf(text, "    %s: \"%s\"\n", keys[k], name);
        }
    }
}

static pl_status write_config(const maker *m, pl_str *text, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_absolute(folder, sizeof folder, m->folder, err));
    PL_TRY(pl_path_join(path, sizeof path, m->folder, PL_SYNTH_CLOUDS_FILE, err));
    print_config(m, folder, text);
    if (text->failed) return pl_fail(err, PL_E_NOMEM, "no memory for %s", PL_SYNTH_CLOUDS_FILE);
    return pl_file_write_all(path, pl_str_text(text), text->bytes, err);
}

static pl_status check(const pl_synth_clouds_options *o, pl_error *err)
{
    if (o->flights < 1 || o->flights > PL_SCENE_FLIGHTS_MAX)
        return pl_fail(err, PL_E_USAGE, "%u flights were asked for; there can be 1 to %d", o->flights,
                       PL_SCENE_FLIGHTS_MAX);
    if (o->labels > 1000000 || (!o->labels && !o->labels_part))
        return pl_fail(err, PL_E_USAGE, "%u labels in each flight were asked for; there can be 1 to 1000000",
                       o->labels);
    return PL_OK;
}

static pl_status take_memory(maker *m, pl_error *err)
{
    m->frame = pl_alloc((size_t)rows_of(m) * m->scene.width, sizeof *m->frame); /* zeros beside the swath */
    m->scratch = pl_alloc(pl_scene_scratch_bytes(&m->scene), 1);
    if (m->frame && m->scratch) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory for a frame of %u by %u pixels; make it smaller", m->scene.height,
                   m->scene.width);
}

static pl_status make_all(maker *m, pl_str *text, pl_error *err)
{
    for (uint32_t i = 0; i < m->o->flights; i++) {
        m->flight = flight_of(&m->scene, m->o, i);
        PL_TRY(make_flight(m, err));
        if (m->o->tell) m->o->tell(m->o->context, m->flight.name, m->flight.scene.frames, m->flight.scene.labels);
    }
    return write_config(m, text, err);
}

static pl_status make_with_module(maker *m, pl_str *text, pl_error *err)
{
    pl_module hdf5;
    PL_TRY(pl_hdf5_load("a file of a flight", "", &hdf5, err));
    m->module = hdf5.functions;
    pl_status status = take_memory(m, err);
    if (status == PL_OK) status = make_all(m, text, err);
    abandon_files(m);
    pl_free(m->scratch);
    pl_free(m->frame);
    pl_module_unload(&hdf5);
    return status;
}

pl_status pl_synth_clouds(const char *folder, const pl_synth_clouds_options *o, char **text, size_t *bytes,
                          pl_error *err)
{
    pl_str config = {0};
    PL_TRY(check(o, err));
    const pl_scene scene = {o->height, o->width, o->gsd_metres,
                            o->cue == PL_SYNTH_PARALLAX ? PL_CUE_PARALLAX : PL_CUE_SHADOW, o->seed};
    PL_TRY(pl_scene_check(&scene, err));
    maker *m = pl_alloc(1, sizeof *m);
    if (!m) return pl_fail(err, PL_E_NOMEM, "no memory to make flights");
    m->o = o, m->folder = folder, m->scene = scene, m->margin = (o->height + 5) / 11;
    for (int i = 0; i < FILES; i++) m->file[i].fd = -1;
    pl_status status = make_with_module(m, &config, err);
    pl_free(m);
    if (status != PL_OK) return pl_str_deinit(&config), status;
    *text = config.data, *bytes = config.bytes;
    return PL_OK;
}
