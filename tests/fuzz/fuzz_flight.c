/* What libhdf5 answers about a flight's files: a module whose answers are drawn from the input, so that types, ranks,
 * sizes, links that lead nowhere, failures and numbers are as odd as they can be. It holds who asks to what the module
 * wants (src/store/hdf5_module.h). Read is the flight alone, then all that is made of it.
 *
 * The input: six bytes of wishes; for each dataset a byte (0: as it should be) and what that asks for; the same once
 * more for the camera's pictures as they are when its file is opened again; then a byte for each call. What is missing
 * is 0, so nothing at all is a good flight. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "store/hdf5_load.h"
#include "systems/clouds_prepare.h"

enum { FRAMES = 5, ROWS = 24, COLUMNS = 17, DATASETS = 8, FILES = 3 };
enum { SIGNAL, SECONDS, DAYS, BASES, SURFACES, DEMS, ZENITHS, AZIMUTHS, AGAIN }; /* AGAIN: the signal, a second time */

typedef struct dataset {
    const char *name;
    int file; /* camera, lidar, navigation */
    pl_hdf5_seen seen;
} dataset;

static const dataset good[] = {
    {"Product/Signal", 0, {1, 1, 3, {FRAMES, ROWS, COLUMNS}}},
    {"Time/TimeUTC", 0, {1, 1, 1, {FRAMES}}},
    {"layer_descriptor/Profile_Decimal_Julian_Day", 1, {1, 1, 2, {FRAMES, 2}}},
    {"layer_descriptor/Layer_Base_Altitude", 1, {1, 1, 2, {FRAMES, 3}}},
    {"layer_descriptor/Lidar_Surface_Altitude", 1, {1, 1, 1, {FRAMES}}},
    {"layer_descriptor/DEM_Surface_Altitude", 1, {1, 1, 1, {FRAMES}}},
    {"nav/solarZenith", 2, {1, 1, 1, {FRAMES}}},
    {"nav/sunAzGrd", 2, {1, 1, 1, {FRAMES}}},
    {"Product/Signal", 0, {1, 1, 3, {FRAMES, ROWS, COLUMNS}}},
};

/* ---- the input ---- */

static struct {
    const uint8_t *at, *end;
    dataset set[AGAIN + 1];
    int open, times; /* which file is open, -1: none; how often the camera was opened */
} fake;

static uint8_t next(void) { return fake.at < fake.end ? *fake.at++ : 0; }

static uint64_t next_size(void)
{
    static const uint64_t odd[] = {1023,
                                   1024,
                                   1025,
                                   2049,
                                   65535,
                                   65536,
                                   65537,
                                   (1 << 22) + 1,
                                   (1 << 24) + 1,
                                   UINT64_C(1) << 32,
                                   UINT64_C(1) << 40,
                                   INT64_MAX,
                                   UINT64_MAX - 1023,
                                   UINT64_MAX};
    const uint8_t byte = next();
    return byte < 128 ? byte : odd[(size_t)byte % (sizeof odd / sizeof *odd)];
}

static void draw_dataset(dataset *d)
{
    const uint8_t how = next() % 5;
    if (how == 1) d->seen.is_there = 0;
    if (how == 2) d->seen.is_number = 0;
    if (how == 3) d->seen.shape[0] = next_size();
    if (how < 4) return;
    d->seen.rank = next() % 33; /* libhdf5's largest is 32; of those beyond 8 the module tells no sizes */
    for (uint32_t i = 0; i < d->seen.rank && i < PL_HDF5_RANK_MAX; i++) d->seen.shape[i] = next_size();
}

/* Millions of profiles are read for seconds, and show no more than thousands of them: so many are too many. */
static void draw_sizes(void)
{
    enum { LIDAR_FILE = 1 };
    for (int i = 0; i <= AGAIN; i++) {
        draw_dataset(&fake.set[i]);
        uint64_t *rows = &fake.set[i].seen.shape[0];
        if (good[i].file == LIDAR_FILE && *rows > 1 << 20 && *rows <= 1 << 24) *rows = (1 << 24) + 1;
    }
}

/* ---- the module ---- */

static int fail(char *why, size_t room)
{
    static const char *const reasons[] = {"libhdf5: unable to lock file", "libhdf5: bad object header",
                                          "libhdf5: wrong version number", "libhdf5 gave no reason"};
    const uint8_t byte = next();
    if (byte < 128) return snprintf(why, room, "%s", reasons[byte % 4]), -1;
    memset(why, 'x', room - 1); /* a long one */
    return why[room - 1] = 0, -1;
}

static const char *path_of(int file)
{
    static char path[FILES][PL_FILE_PATH_MAX];
    static const char *const name[FILES] = {"camera.h5", "lidar25.h5", "navigation.h5"};
    if (!path[file][0]) {
        snprintf(path[file], sizeof path[file], "%s/%s", fuzz_folder(), name[file]);
        fuzz_write(path[file], "no HDF5", 7);
    }
    return path[file];
}

static int open_fake(const char *path, void **file, char *why, size_t room)
{
    FUZZ_CHECK(fake.open < 0, "%s: another file is open", path);
    if (next() % 8 == 7) return fail(why, room);
    for (fake.open = 0; strcmp(path, path_of(fake.open)) != 0; fake.open++)
        FUZZ_CHECK(fake.open + 1 < FILES, "%s: no file of the flight", path);
    fake.times += fake.open == 0;
    *file = &fake;
    return 0;
}

static void close_fake(void *file)
{
    FUZZ_CHECK(file == &fake && fake.open >= 0, "closed, but not open");
    fake.open = -1;
}

static const dataset *find_fake(const void *file, const char *name)
{
    FUZZ_CHECK(file == &fake && fake.open >= 0, "%s: no file is open", name);
    for (int i = 0; i < DATASETS; i++)
        if (strcmp(name, good[i].name) == 0 && good[i].file == fake.open)
            return &fake.set[i == SIGNAL && fake.times > 1 ? AGAIN : i];
    fuzz_broken(__FILE__, __LINE__, "%s: not in this file", name);
}

static int look_fake(void *file, const char *name, pl_hdf5_seen *seen, char *why, size_t room)
{
    const dataset *d = find_fake(file, name);
    memset(seen, 0, sizeof *seen);
    if (next() % 8 == 7) return fail(why, room);
    if (d->seen.is_there) *seen = d->seen;
    return 0;
}

/* Of element i, first dimension `row`: what makes a good flight. */
static double value_of(const dataset *d, uint64_t row, uint64_t i)
{
    switch (d - fake.set) {
    case SECONDS:
        return 1738368000 + (double)row; /* the first of February 2025 */
    case DAYS:
        return 32 + (double)row / 86400;
    case BASES:
        return 0.5 + 0.001 * (double)(row % 1000);
    case ZENITHS:
        return 30 + (double)(row % 40);
    case AZIMUTHS:
        return (double)(row % 360);
    case SIGNAL:
    case AGAIN:
        return 280 + (double)(i % 7);
    default:
        return 0;
    }
}

static double odd_value(void)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, -9999, 1, 366.5, 1000, DBL_MAX, DBL_MIN, -1e300};
    return odd[next() % (sizeof odd / sizeof *odd)];
}

static void put_value(void *to, bool wide, uint64_t i, double value)
{
    if (wide)
        ((double *)to)[i] = value;
    else
        ((float *)to)[i] = value > (double)FLT_MAX ? INFINITY : value < -(double)FLT_MAX ? -INFINITY : (float)value;
}

static int read_fake(void *file, const char *name, const uint64_t *first, const uint64_t *count, const char *dtype,
                     void *to, pl_hdf5_missing *missing, char *why, size_t room)
{
    const dataset *d = find_fake(file, name);
    const bool wide = strcmp(dtype, "f64") == 0;
    uint64_t all = 1;
    FUZZ_CHECK(wide || strcmp(dtype, "f32") == 0, "%s: as %s", name, dtype);
    FUZZ_CHECK(d->seen.is_there && d->seen.is_number && d->seen.rank, "%s: not there, or no numbers", name);
    for (uint32_t i = 0; i < d->seen.rank; i++, all *= count[i - 1])
        FUZZ_CHECK(first[i] <= d->seen.shape[i] && count[i] <= d->seen.shape[i] - first[i], "%s: beyond its end", name);
    const uint8_t how = next();
    *missing = (pl_hdf5_missing){.filled = how % 8 == 6, .filled_row = first[0]};
    if (how % 8 == 5 && how >= 128) missing->unwritten = all, missing->unwritten_row = first[0];
    if (how % 8 == 7) return fail(why, room);
    for (uint64_t i = 0; i < all; i++) put_value(to, wide, i, value_of(d, first[0] + i / (all / count[0]), i));
    if (all > 0)
        for (int odd = how % 8; odd > 0; odd--) put_value(to, wide, next() % all, odd_value());
    if (how >= 240) /* all of them */
        for (uint64_t i = 1; i < all; i++) memcpy((char *)to + i * (wide ? 8 : 4), to, wide ? 8 : 4);
    return 0;
}

static const pl_hdf5_module module = {PL_HDF5_VERSION, NULL, NULL, open_fake, close_fake, look_fake, read_fake};

/* In place of the real ones (CMakeLists.txt: --wrap). */
pl_status __wrap_pl_hdf5_load(const char *, const char *, pl_module *, pl_error *);
void __wrap_pl_module_unload(pl_module *);

pl_status __wrap_pl_hdf5_load(const char *what, const char *instead, pl_module *to, pl_error *err)
{
    (void)what, (void)instead, (void)err;
    *to = (pl_module){&fake, &module};
    return PL_OK;
}

void __wrap_pl_module_unload(pl_module *m)
{
    FUZZ_CHECK(m->handle == &fake && fake.open < 0, "unloaded with a file open");
}

/* ---- what is read ---- */

static pl_flight_files files = {.name = "flight-12"};
static pl_clouds_options options;
static char frames_path[PL_FILE_PATH_MAX];

static void begin(const uint8_t *data, size_t size)
{
    fake.at = data, fake.end = data + size;
    fake.open = -1, fake.times = 0;
    files.camera = path_of(0), files.lidar = path_of(1), files.navigation = path_of(2);
    snprintf(frames_path, sizeof frames_path, "%s/frames", fuzz_folder());
    options = (pl_clouds_options){.flight = &files, .flights = 1, .path = frames_path, .file_max = 1 << 20};
    const uint8_t wish = next(), clip = next();
    options.form = wish & 1 ? PL_FRAMES_F16 : PL_FRAMES_U8, options.flat_field = !(wish & 2);
    options.filter = pl_label_filter_find(wish & 4 ? "practical" : "basic");
    options.clip_limit = (double)clip / UINT8_MAX;
    options.window = next() % 8;
    options.swath_begin = next() % 32, options.swath_end = options.swath_begin + 16 - next() % 17;
    (void)next();
    memcpy(fake.set, good, sizeof good);
    draw_sizes();
    if (memcmp(&fake.set[AGAIN], &good[AGAIN], sizeof *good) == 0) fake.set[AGAIN].seen = fake.set[SIGNAL].seen;
}

static void check_records(const pl_flight *f)
{
    uint64_t labels = 0;
    for (uint64_t i = 0; i < f->frames; i++) {
        const pl_frames_record *r = &f->record[i];
        FUZZ_CHECK(isfinite(r->seconds) && (i == 0 || r->seconds > f->record[i - 1].seconds), "time of %d", (int)i);
        FUZZ_CHECK(isfinite(r->zenith) && r->azimuth >= 0 && r->azimuth < 360, "angles of frame %d", (int)i);
        FUZZ_CHECK(isnan(r->label_km) == (r->profile == PL_FRAMES_NONE), "half a label of frame %d", (int)i);
        if (isnan(r->label_km)) continue;
        FUZZ_CHECK(r->profile < fake.set[DAYS].seen.shape[0], "profile of frame %d", (int)i);
        FUZZ_CHECK(r->label_km >= options.filter->low_km && r->label_km <= options.filter->high_km, "%f km",
                   (double)r->label_km);
        labels++;
    }
    FUZZ_CHECK(labels == f->labels && labels >= 2 && f->rows && f->columns, "%d labels", (int)labels);
}

static void refused(pl_status status, const pl_error *err, const char *name)
{
    fuzz_refused(status, err, name, FUZZ_NAME);
    FUZZ_CHECK(status == PL_E_DATA || status == PL_E_STORAGE || status == PL_E_CONFIG, "%s", err->text);
}

static pl_status read_flight(const uint8_t *data, size_t size, pl_error *err)
{
    pl_flight f;
    begin(data, size);
    const pl_status status = pl_flight_read(&module, &files, options.filter, &f, err);
    FUZZ_CHECK(fake.open < 0, "a file is open still");
    if (status == PL_OK) check_records(&f);
    if (status == PL_OK) pl_flight_deinit(&f);
    return status;
}

static pl_status prepare(const uint8_t *data, size_t size, pl_error *err)
{
    pl_clouds_result result;
    begin(data, size);
    unlink(frames_path);
    const pl_status status = pl_clouds_prepare(&options, &result, err);
    FUZZ_CHECK(fake.open < 0, "a file is open still");
    FUZZ_CHECK(status == PL_OK || status == PL_E_NOMEM || access(frames_path, F_OK) != 0, "half a frame file is left");
    if (status != PL_OK) return status;
    FUZZ_CHECK(result.info.height == options.swath_end - options.swath_begin, "%u rows", result.info.height);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t before = pl_alloc_live_blocks();
    pl_error err = {0};
    pl_status status = read_flight(data, size, &err);
    if (status != PL_OK) refused(status, &err, strstr(err.text, files.name) ? files.name : fuzz_folder());
    status = prepare(data, size, &err);
    if (status != PL_OK) refused(status, &err, "");
    FUZZ_CHECK(size || status == PL_OK, "a good flight is refused: %s", err.text);
    fuzz_without_memory(read_flight, data, size);
    fuzz_without_memory(prepare, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
