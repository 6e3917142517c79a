/* Synthetic flights through the HDF5 module, written and read: shapes, types, times, what the scenes say; what is
 * refused, and memory that is. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "data/clouds/lidar.h"
#include "data/clouds/scene.h"
#include "plimsoll/synth.h"
#include "store/hdf5_load.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/seed.h"

enum { HEIGHT = 24, WIDTH = 17, MARGIN = 2, ROWS = HEIGHT + 2 * MARGIN, LABELS = 6, FRAMES = LABELS + LABELS / 2 + 2 };

static uint64_t seed;
static pl_error err;
static pl_module hdf5;
static const pl_hdf5_module *module;
static char folder[] = "/tmp/plimsoll-synth-XXXXXX";

static pl_synth_clouds_options small(void)
{
    pl_synth_clouds_options o = pl_synth_clouds_default();
    o.flights = 2, o.labels = LABELS, o.height = HEIGHT, o.width = WIDTH, o.seed = seed;
    return o;
}

static void make(const char *where, const pl_synth_clouds_options *o)
{
    char *text;
    size_t bytes;
    if (pl_synth_clouds(where, o, &text, &bytes, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(strlen(text), bytes);
    assert_non_null(strstr(text, "swath_slice: [2, 26]\nflights:\n  - name: \"10Feb25\"\n"));
    pl_free(text);
}

/* The whole of a dataset of this rank and shape. */
static void read_all(const char *path, const char *name, const char *dtype, void *to, uint32_t rank, uint64_t a,
                     uint64_t b, uint64_t c)
{
    const uint64_t zero[3] = {0}, shape[3] = {a, b, c};
    char why[256];
    pl_hdf5_seen seen;
    pl_hdf5_missing missing;
    void *file;
    if (module->open(path, &file, why, sizeof why) != 0) fail_msg("%s: %s", path, why);
    assert_int_equal(module->look(file, name, &seen, why, sizeof why), 0);
    assert_true(seen.is_there && seen.is_number);
    assert_int_equal(seen.rank, rank);
    for (uint32_t i = 0; i < rank; i++) assert_int_equal(seen.shape[i], shape[i]);
    if (module->read(file, name, zero, shape, dtype, to, &missing, why, sizeof why) != 0) fail_msg("%s: %s", name, why);
    assert_true(missing.unwritten == 0 && missing.filled == 0);
    module->close(file);
}

static const char camera_path[] = "a/30Oct24/SYNTHETIC_IRAI_L1B_Rev-_20241030.h5";
static const char lidar_path[] = "a/30Oct24/SYNTHETIC_CPL_L2_01kmLay_30oct24.hdf5";
static const char nav_path[] = "a/30Oct24/SYNTHETIC_CRS_20241030_nav.hdf";

/* NAN is the same as NAN. */
static bool same(float a, float b) { return a == b || (isnan(a) && isnan(b)); }

static void test_frames(void **state)
{
    static float signal[FRAMES][ROWS][WIDTH], want[HEIGHT][WIDTH];
    static double heights[FRAMES], zenith[FRAMES], latitude[FRAMES];
    const pl_synth_clouds_options o = small();
    const pl_scene s = {HEIGHT, WIDTH, o.gsd_metres, PL_CUE_SHADOW, seed};
    const pl_scene_flight f = pl_scene_flight_of(&s, 1, FRAMES, LABELS);
    void *scratch = pl_alloc(pl_scene_scratch_bytes(&s), 1);
    (void)state;
    make("a", &o);
    read_all(camera_path, "Product/Signal", "f32", signal, 3, FRAMES, ROWS, WIDTH);
    read_all(camera_path, "synthetic/height", "f64", heights, 1, FRAMES, 0, 0);
    read_all(nav_path, "nav/solarZenith", "f64", zenith, 1, FRAMES, 0, 0);
    read_all(nav_path, "nav/IWG_lat", "f64", latitude, 1, FRAMES, 0, 0);
    pl_scene_at at = pl_scene_begin(&f);
    for (int i = 0; i < FRAMES; i++) {
        pl_scene_fill(&f, &at, scratch, want[0]);
        for (int y = 0; y < ROWS; y++)
            for (int x = 0; x < WIDTH; x++) {
                const bool inside = y >= MARGIN && y < MARGIN + HEIGHT;
                assert_true(same(signal[i][y][x], inside ? want[y - MARGIN][x] : 0));
            }
        assert_true(heights[i] == at.height_km && (isnan(zenith[i]) || zenith[i] == at.zenith));
        assert_true(i == 0 || latitude[i] < latitude[i - 1]);
        if (i + 1 < FRAMES) pl_scene_next(&f, &at);
    }
    pl_free(scratch);
}

/* The flight crosses midnight, where its file's day stands still; its profiles are where they belong in time. */
static void test_lidar(void **state)
{
    static double days[3 * FRAMES][3], times[FRAMES];
    static float base[3 * FRAMES][4], surface[3 * FRAMES], dem[3 * FRAMES];
    int year, fell = 0, labelled = 0;
    bool has[FRAMES] = {false};
    (void)state;
    read_all(camera_path, "Time/TimeUTC", "f64", times, 1, FRAMES, 0, 0);
    read_all(lidar_path, "layer_descriptor/Profile_Decimal_Julian_Day", "f64", days, 2, 3 * FRAMES, 3, 0);
    read_all(lidar_path, "layer_descriptor/Layer_Base_Altitude", "f32", base, 2, 3 * FRAMES, 4, 0);
    read_all(lidar_path, "layer_descriptor/Lidar_Surface_Altitude", "f32", surface, 1, 3 * FRAMES, 0, 0);
    read_all(lidar_path, "layer_descriptor/DEM_Surface_Altitude", "f32", dem, 1, 3 * FRAMES, 0, 0);
    assert_int_equal(pl_times_check(times, FRAMES, &err), PL_OK);
    assert_true(pl_julian_year_of(lidar_path, &year) && year == 2024);
    pl_julian_clock clock = pl_julian_begin(year);
    for (int i = 0; i < 3 * FRAMES; i++) {
        const double seconds = pl_julian_seconds(&clock, days[i][0]);
        fell += i && days[i][0] < days[i - 1][0];
        assert_true(fabs(seconds - times[i / 3]) < PL_SCENE_FRAME_SECONDS / 2 + 0.1);
        if (!pl_label_is_valid(pl_label_filter_find("basic"), base[i][0], surface[i], dem[i])) continue;
        const uint64_t frame = pl_match_frame(times, FRAMES, seconds);
        if (frame == PL_NO_FRAME) continue;
        labelled += !has[frame];
        has[frame] = true;
    }
    assert_int_equal(fell, 1);
    assert_int_equal(labelled, LABELS);
}

static void *read_bytes(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    char *data = malloc((size_t)st.st_size);
    assert_int_equal(fread(data, 1, (size_t)st.st_size, f), st.st_size);
    fclose(f);
    *bytes = (size_t)st.st_size;
    return data;
}

static void test_same_bytes(void **state)
{
    static const char *const names[] = {camera_path, lidar_path, nav_path};
    const pl_synth_clouds_options o = small();
    (void)state;
    make("b", &o);
    make("b", &o); /* over the first ones */
    for (int i = 0; i < 3; i++) {
        char other[128];
        size_t bytes, other_bytes;
        snprintf(other, sizeof other, "b%s", names[i] + 1);
        void *x = read_bytes(names[i], &bytes), *y = read_bytes(other, &other_bytes);
        assert_int_equal(bytes, other_bytes);
        assert_memory_equal(x, y, bytes);
        free(x), free(y);
    }
}

static void refuse(const char *where, pl_synth_clouds_options o, pl_status status, const char *says)
{
    char *text;
    size_t bytes;
    assert_int_equal(pl_synth_clouds(where, &o, &text, &bytes, &err), status);
    if (!strstr(err.text, says)) fail_msg("\"%s\" was expected in: %s", says, err.text);
}

static void test_refused(void **state)
{
    pl_synth_clouds_options o = small();
    (void)state;
    o.flights = 32;
    refuse("c", o, PL_E_USAGE, "32 flights were asked for; there can be 1 to 31");
    o = small(), o.labels = 2000000;
    refuse("c", o, PL_E_USAGE, "there can be 1 to 1000000");
    o = small(), o.height = 3;
    refuse("c", o, PL_E_USAGE, "frames of 3 by 17 pixels");
    assert_int_equal(access("c", F_OK), -1); /* nothing was begun */
    write_file("taken", "x", 1);
    refuse("taken", small(), PL_E_STORAGE, "taken");
}

/* Each request refused in turn: a sentence, nothing left over in the folder but whole files, nothing in the heap. */
static void test_no_memory(void **state)
{
    pl_synth_clouds_options o = small();
    const uint64_t held = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    char *text;
    size_t bytes;
    (void)state;
    o.flights = 1;
    for (uint64_t n = 1; status != PL_OK; n++) {
        assert_true(n < 200);
        pl_alloc_fail_at(n, 0);
        status = pl_synth_clouds("d", &o, &text, &bytes, &err);
        pl_alloc_fail_at(0, 0);
        if (status == PL_OK) break;
        assert_int_equal(status, PL_E_NOMEM);
        assert_non_null(strstr(err.text, "no memory"));
        assert_int_equal(pl_alloc_live_blocks(), held);
        assert_int_equal(access("d/10Feb25/SYNTHETIC_IRAI_L1B_Rev-_20250210.h5.tmp", F_OK), -1);
    }
    pl_free(text);
    assert_int_equal(pl_alloc_live_blocks(), held);
}

/* What reading tells of what is not there, is no dataset, and lies beyond. */
static void test_looking(void **state)
{
    static const char *const none[] = {"Product", "Product/Nothing", "Nothing/Signal", "Product/Signal/x", "", "/"};
    char why[256];
    void *file;
    pl_hdf5_seen seen;
    pl_hdf5_missing missing;
    double x[4];
    (void)state;
    write_file("text", "no HDF5\n", 9);
    assert_int_equal(module->open("text", &file, why, sizeof why), -1);
    assert_true(why[0]);
    assert_int_equal(module->open("nowhere", &file, why, sizeof why), -1);
    assert_int_equal(module->open(camera_path, &file, why, sizeof why), 0);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(module->look(file, none[i], &seen, why, sizeof why), 0);
        assert_false(seen.is_there);
    }
    const uint64_t first[] = {FRAMES - 1}, count[] = {2};
    assert_int_equal(module->read(file, "Time/TimeUTC", first, count, "f64", x, &missing, why, sizeof why), -1);
    assert_true(why[0]);
    module->close(file);
}

static int begin(void **state)
{
    (void)state;
    return enter_folder(folder);
}

static int finish(void **state)
{
    (void)state;
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames),     cmocka_unit_test(test_lidar),
                                       cmocka_unit_test(test_same_bytes), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_looking)};
    seed = test_seed_said(argc, argv);
    if (pl_hdf5_load("this test", "", &hdf5, &err) != PL_OK) {
        char *text;
        size_t bytes;
        const pl_synth_clouds_options o = small();
        printf("skipped: %s\n", err.text);
        return pl_synth_clouds("nowhere", &o, &text, &bytes, &err) == PL_E_UNSUPPORTED ? 0 : 1;
    }
    module = hdf5.functions;
    const int failed = cmocka_run_group_tests(tests, begin, finish);
    pl_module_unload(&hdf5);
    return failed;
}
