/* From flights to a frame file: pictures and records against the scenes that they were made of; used again, made again;
 * damage found; what is wrong with a flight's files refused with its sentence. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/narrow.h"
#include "base/philox.h"
#include "data/clouds/preprocess.h"
#include "data/clouds/scene.h"
#include "plimsoll/synth.h"
#include "store/hdf5_load.h"
#include "support/folder.h"
#include "support/program.h"
#include "support/seed.h"
#include "systems/clouds_prepare.h"

enum { HEIGHT = 24, WIDTH = 33, MARGIN = 2, LABELS = 7, FRAMES = LABELS + LABELS / 2 + 2, PIXELS = HEIGHT * WIDTH };

static uint64_t seed, turn;
static pl_error err;
static pl_module hdf5;
static const pl_hdf5_module *module;
static char folder[] = "/tmp/plimsoll-prepare-XXXXXX";
static pl_clouds_result result;
static pl_frames frames;

static uint32_t next_below(uint32_t below)
{
    const pl_philox p = pl_philox_init(seed, 18);
    uint32_t out[4];
    pl_philox_block(&p, 0, turn++, 0, out);
    return out[0] % below;
}

static const pl_flight_files synthetic[] = {
    {"10Feb25", "a/10Feb25/SYNTHETIC_IRAI_L1B_Rev-_20250210.h5", "a/10Feb25/SYNTHETIC_CPL_L2_01kmLay_10feb25.hdf5",
     "a/10Feb25/SYNTHETIC_CRS_20250210_nav.hdf"},
    {"30Oct24", "a/30Oct24/SYNTHETIC_IRAI_L1B_Rev-_20241030.h5", "a/30Oct24/SYNTHETIC_CPL_L2_01kmLay_30oct24.hdf5",
     "a/30Oct24/SYNTHETIC_CRS_20241030_nav.hdf"}};

static pl_clouds_options options_of(const pl_flight_files *flight, uint32_t flights)
{
    return (pl_clouds_options){.flight = flight,
                               .flights = flights,
                               .swath_begin = MARGIN,
                               .swath_end = MARGIN + HEIGHT,
                               .clip_limit = 0.01,
                               .flat_field = true,
                               .filter = pl_label_filter_find("basic"),
                               .form = PL_FRAMES_U8,
                               .file_max = 1 << 30,
                               .path = "frames"};
}

static void prepare(const pl_clouds_options *o)
{
    if (pl_clouds_prepare(o, &result, &err) != PL_OK) fail_msg("%s", err.text);
}

/* ---- what comes out ---- */

static void check_picture(const pl_clouds_options *o, uint64_t picture, const float *want)
{
    static uint8_t bytes[4 * PIXELS];
    static float got[PIXELS];
    assert_true(pl_frames_picture_bytes(&frames.info) <= sizeof bytes);
    if (pl_frames_read_picture(&frames, picture, bytes, got, &err) != PL_OK) fail_msg("%s", err.text);
    for (int i = 0; i < PIXELS; i++) {
        const float rounded =
            o->form == PL_FRAMES_U8 ? rintf(want[i] * 255) / 255 : pl_f32_of_f16(pl_f16_of_f32(want[i]));
        if (got[i] != rounded) fail_msg("picture %" PRIu64 ", pixel %d; seed %" PRIu64, picture, i, seed);
    }
}

static bool in_a_window(const pl_clouds_options *o, const pl_scene_flight *f, uint64_t frame)
{
    pl_scene_at at = pl_scene_begin(f);
    bool inside = o->window == 0;
    for (uint64_t i = 0; i < FRAMES; i++) {
        for (uint32_t place = 0; place < o->window && at.has_label; place++)
            inside |= pl_window_frame(i, FRAMES, o->window, place) == frame;
        if (i + 1 < FRAMES) pl_scene_next(f, &at);
    }
    return inside;
}

static void check_flight(const pl_clouds_options *o, uint32_t number, uint64_t *picture)
{
    static float raw[FRAMES][PIXELS], gain[PIXELS], want[PIXELS];
    static uint64_t room[1 << 14];
    const pl_scene s = {HEIGHT, WIDTH, PL_SCENE_GSD_METRES, PL_CUE_SHADOW, seed};
    const pl_scene_flight f = pl_scene_flight_of(&s, number, FRAMES, LABELS);
    const pl_preprocess rules = {HEIGHT, WIDTH, o->clip_limit, false};
    pl_scene_at at[FRAMES] = {pl_scene_begin(&f)};
    pl_frames_record record[FRAMES];
    pl_flat_field flat;
    for (int i = 1; i < FRAMES; i++) at[i] = at[i - 1], pl_scene_next(&f, &at[i]);
    for (int i = 0; i < FRAMES; i++) pl_scene_fill(&f, &at[i], room, raw[i]);
    pl_flat_field_begin(&flat, PIXELS, room);
    for (int i = 0; i < FRAMES; i++) pl_flat_field_add(&flat, raw[i]);
    assert_int_equal(pl_flat_field_finish(&flat, gain, &err), PL_OK);
    assert_int_equal(pl_frames_read_records(&frames, number * FRAMES, (number + 1) * FRAMES, record, &err), PL_OK);
    for (uint64_t i = 0; i < FRAMES; i++) {
        const pl_frames_record *r = &record[i];
        double zenith, azimuth;
        pl_scene_angles(&f, &at[i], &zenith, &azimuth);
        assert_true(isnan(zenith) ? r->zenith > PL_SCENE_ZENITH_LOW && r->zenith < PL_SCENE_ZENITH_HIGH
                                  : r->zenith == zenith);
        assert_true(isnan(azimuth) ? r->azimuth == 0 : r->azimuth == azimuth);
        assert_true(i == 0 || r->seconds - record[i - 1].seconds == PL_SCENE_FRAME_SECONDS);
        assert_int_equal(r->profile != PL_FRAMES_NONE, at[i].has_label);
        if (at[i].has_label) assert_true(r->profile == 3 * i + 1 && fabs((double)r->label_km - at[i].height_km) < 0.2);
        assert_int_equal(r->picture != PL_FRAMES_NONE, in_a_window(o, &f, i));
        if (r->picture == PL_FRAMES_NONE) continue;
        assert_int_equal(r->picture, (*picture)++);
        assert_int_equal(r->damaged_pixels,
                         pl_preprocess_frame(&rules, raw[i], o->flat_field ? gain : NULL, room, want));
        check_picture(o, r->picture, want);
    }
}

static void test_pictures(void **state)
{
    pl_clouds_options o = options_of(synthetic, 2);
    (void)state;
    for (int i = 0; i < 4; i++) {
        pl_frames_flight flight[2];
        uint64_t pictures = 0;
        o.form = i % 2 ? PL_FRAMES_F16 : PL_FRAMES_U8, o.window = i < 2 ? 0 : 3, o.flat_field = i != 1;
        o.in_child = i == 3;
        prepare(&o);
        assert_false(result.reused);
        assert_int_equal(pl_frames_open(&frames, o.path, &err), PL_OK);
        assert_true(frames.info.height == HEIGHT && frames.info.width == WIDTH && frames.info.frames == 2 * FRAMES);
        assert_int_equal(pl_frames_read_flights(&frames, flight, &err), PL_OK);
        for (uint32_t k = 0; k < 2; k++) {
            assert_string_equal(flight[k].name, synthetic[k].name);
            assert_true(flight[k].first == k * FRAMES && flight[k].frames == FRAMES && flight[k].labels == LABELS);
            check_flight(&o, k, &pictures);
        }
        assert_int_equal(pictures, frames.info.pictures);
        assert_int_equal(pl_frames_read_picture(&frames, pictures, NULL, NULL, &err), PL_E_INTERNAL);
        assert_int_equal(pl_frames_read_records(&frames, 0, 2 * FRAMES + 1, NULL, &err), PL_E_INTERNAL);
        pl_frames_close(&frames);
    }
}

static pl_status count_call(void *context, pl_error *e)
{
    (void)e;
    ++*(int *)context;
    return PL_OK;
}

static void touch(const char *path)
{
    const struct timespec then[2] = {{1000000000, 0}, {1000000000 + (time_t)next_below(1 << 20), 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

static void source_of(uint32_t number, pl_origin *o)
{
    assert_int_equal(pl_frames_open(&frames, "frames", &err), PL_OK);
    assert_true(pl_frames_read_source(&frames, number, o));
    pl_frames_close(&frames);
}

static void flip(const char *path, long at)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    fputc(byte ^ (1 << next_below(8)), f);
    fclose(f);
}

static void make_version_1(const char *path)
{
    uint8_t header[PL_FRAMES_HEADER_BYTES];
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fread(header, sizeof header, 1, f), 1);
    header[8] = 1;
    const uint64_t sum = XXH64(header, 120, 0);
    memcpy(header + 120, &sum, sizeof sum);
    rewind(f);
    assert_int_equal(fwrite(header, sizeof header, 1, f), 1);
    fclose(f);
    assert_int_equal(truncate(path, (off_t)pl_frames_sources_offset(&result.info)), 0);
}

static void test_used_again(void **state)
{
    pl_clouds_options o = options_of(synthetic, 2);
    int writes = 0;
    (void)state;
    o.before_writing = count_call, o.writing = &writes;
    unlink(o.path);
    prepare(&o);
    assert_true(!result.reused && !result.reason[0] && writes == 1);
    prepare(&o);
    assert_true(result.reused && writes == 1 && result.info.pictures == 2 * FRAMES);
    o.clip_limit = 0.02;
    prepare(&o);
    assert_true(!result.reused && strstr(result.reason, "another way") && writes == 2);
    for (int k = 0; k < 3; k++) { /* what they hold decides, and that is noted */
        const char *const path[] = {synthetic[0].camera, synthetic[1].lidar, synthetic[0].navigation};
        pl_origin before, after;
        touch(path[k]);
        source_of(k == 0 ? 0 : k == 1 ? 4 : 2, &before);
        prepare(&o);
        assert_true(result.reused && writes == 2);
        source_of(k == 0 ? 0 : k == 1 ? 4 : 2, &after);
        assert_true(after.content == before.content && after.mtime_ns != before.mtime_ns);
    }
}

/* Another file of the same length, with the same time: nothing but what it holds, and what cannot be set, differs. */
static void test_replaced(void **state)
{
    const char *const path = synthetic[1].navigation;
    pl_clouds_options o = options_of(synthetic, 2);
    struct stat st;
    char command[512];
    (void)state;
    prepare(&o);
    const pl_frames_info whole = result.info;
    snprintf(command, sizeof command, "cp -p %s kept && cp -p %s other", path, path);
    assert_int_equal(system(command), 0);
    assert_int_equal(stat(path, &st), 0);
    const struct timespec then[2] = {st.st_atim, st.st_mtim};
    flip("other", (long)st.st_size - 9);
    assert_int_equal(utimensat(AT_FDCWD, "other", then, 0), 0);
    assert_int_equal(rename("other", path), 0);
    prepare(&o);
    assert_true(!result.reused && strstr(result.reason, "other flights"));
    flip(path, (long)st.st_size - 9); /* in its place */
    assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
    prepare(&o);
    assert_false(result.reused);
    assert_int_equal(rename("kept", path), 0);
    prepare(&o);
    prepare(&o);
    assert_true(result.reused && pl_frames_identity(&result.info) == pl_frames_identity(&whole));
}

/* A run that goes on has the frames that it was trained on, or is refused before anything is written over. */
static void test_identity(void **state)
{
    pl_clouds_options o = options_of(synthetic, 1);
    struct stat before, after;
    (void)state;
    prepare(&o);
    o.identity = pl_frames_identity(&result.info), o.run = "runs/x";
    o.flat_field = false;
    assert_int_equal(stat(o.path, &before), 0);
    assert_int_equal(pl_clouds_prepare(&o, &result, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "other frames than those that the run in runs/x was trained on"));
    assert_int_equal(stat(o.path, &after), 0);
    assert_true(before.st_ino == after.st_ino && access("frames.plimsoll.tmp", F_OK) == -1);
    o.flat_field = true;
    unlink(o.path);
    prepare(&o);
}

/* A file of an earlier version does not say of what it was made: it is read, and made again where that is asked. */
static void test_earlier_version(void **state)
{
    pl_clouds_options o = options_of(synthetic, 1);
    (void)state;
    prepare(&o);
    const pl_frames_info now = result.info;
    make_version_1(o.path);
    assert_int_equal(pl_frames_open(&frames, o.path, &err), PL_OK);
    assert_true(frames.info.version == 1 && pl_frames_identity(&frames.info) == pl_frames_identity(&now));
    pl_frames_close(&frames);
    prepare(&o);
    assert_true(!result.reused && result.info.version == 2);
    assert_true(pl_frames_identity(&result.info) == pl_frames_identity(&now));
}

/* As the real ones are kept: in chunks, compressed. */
static void test_compressed(void **state)
{
    const pl_flight_files packed[] = {{"10Feb25", "packed.h5", synthetic[0].lidar, synthetic[0].navigation}};
    pl_clouds_options o = options_of(synthetic, 1), same = options_of(packed, 1);
    char command[256];
    (void)state;
    snprintf(command, sizeof command, "h5repack -l Product/Signal:CHUNK=2x7x9 -f Product/Signal:GZIP=4 %s packed.h5",
             synthetic[0].camera);
    if (system("h5repack --version >/dev/null 2>&1") != 0) {
        printf("no h5repack here (Debian: hdf5-tools)\n");
        skip();
    }
    assert_int_equal(system(command), 0);
    prepare(&o);
    const pl_frames_info plain = result.info;
    prepare(&same);
    assert_false(result.reused);
    assert_true(result.info.records_hash == plain.records_hash && result.info.table_hash == plain.table_hash);
}

static bool change(void *context, const char *flight, uint64_t done, uint64_t all)
{
    assert_string_equal(flight, "10Feb25");
    assert_true(done >= 1 && done <= all && all == FRAMES);
    if (done == 3) touch(context);
    return true;
}

/* What changes while it is read makes no frame file. */
static void test_changed(void **state)
{
    pl_clouds_options o = options_of(synthetic, 1);
    (void)state;
    unlink(o.path);
    o.progress = change, o.context = (void *)synthetic[0].navigation;
    assert_int_equal(pl_clouds_prepare(&o, &result, &err), PL_E_DATA);
    assert_non_null(strstr(err.text, "changed while it was read"));
    assert_int_equal(access(o.path, F_OK), -1);
    assert_int_equal(access("frames.plimsoll.tmp", F_OK), -1);
}

static bool stop(void *context, const char *flight, uint64_t done, uint64_t all)
{
    (void)context, (void)flight, (void)all;
    return done < 4;
}

/* Who is told may say that it is enough: nothing is left of it. */
static void test_stopped(void **state)
{
    pl_clouds_options o = options_of(synthetic, 2);
    (void)state;
    o.progress = stop;
    for (int child = 0; child < 2; child++) {
        unlink(o.path);
        o.in_child = child;
        assert_int_equal(pl_clouds_prepare(&o, &result, &err), PL_E_STOPPED);
        assert_non_null(strstr(err.text, "stopped at picture 4 of "));
        assert_int_equal(access(o.path, F_OK), -1);
        assert_int_equal(access("frames.plimsoll.tmp", F_OK), -1);
    }
}

/* ---- damage to the frame file ---- */

static void test_damage(void **state)
{
    pl_clouds_options o = options_of(synthetic, 1);
    static uint8_t bytes[4 * PIXELS];
    struct stat st;
    (void)state;
    prepare(&o);
    assert_int_equal(stat(o.path, &st), 0);
    for (int i = 0; i < 150; i++) {
        const uint64_t records = pl_frames_records_offset(&result.info), of = pl_frames_picture_bytes(&result.info);
        const long at =
            i < 40   ? (long)next_below(PL_FRAMES_HEADER_BYTES)
            : i < 80 ? (long)(4096 + next_below((uint32_t)records - 4096))
                     : (long)records + (long)next_below((uint32_t)(pl_frames_sources_offset(&result.info) - records));
        flip(o.path, at);
        if (i >= 40 && i < 80) {
            const uint64_t picture = ((uint64_t)at - 4096) / of;
            assert_int_equal(pl_frames_open(&frames, o.path, &err), PL_OK);
            assert_int_equal(pl_frames_read_picture(&frames, picture, bytes, NULL, &err), PL_E_DATA);
            assert_non_null(strstr(err.text, "damaged (checksum of picture"));
            pl_frames_close(&frames);
        } else {
            assert_int_equal(pl_frames_open(&frames, o.path, &err), PL_E_DATA);
            assert_non_null(strstr(err.text, "frame"));
        }
        if (i % 50 == 7 && (i < 40 || i >= 80)) { /* what does not open is made again */
            prepare(&o);
            assert_true(!result.reused && result.reason[0]);
            continue;
        }
        unlink(o.path);
        prepare(&o);
    }
    prepare(&o);
    flip(o.path, (long)pl_frames_sources_offset(&result.info) + (long)next_below(3 * PL_FRAMES_SOURCE_BYTES));
    prepare(&o); /* what it was made of is not known then */
    assert_true(!result.reused && result.reason[0]);
    for (int i = 0; i < 10; i++) {
        prepare(&o);
        assert_int_equal(truncate(o.path, (off_t)next_below((uint32_t)st.st_size)), 0);
        assert_int_equal(pl_frames_open(&frames, o.path, &err), PL_E_DATA);
    }
    unlink(o.path);
}

/* ---- flights that are refused ---- */

/* A small flight, made to be wrong in one way. */
typedef struct crafted {
    uint64_t frames, rows, columns, times, angles, profiles, bases;
    uint32_t signal_rank, day_rank;
    const char *left_out, *as_text; /* datasets */
    double second[8], zenith[8], day[8];
    float base[8], dem[8], value;
} crafted;

static crafted good(void)
{
    crafted c = {.frames = 4, .rows = 30, .columns = 20, .times = 4, .angles = 4, .profiles = 4, .bases = 4};
    c.signal_rank = 3, c.day_rank = 2, c.value = 280;
    for (int i = 0; i < 8; i++) {
        c.second[i] = 1738368000 + i; /* the first of February 2025 */
        c.zenith[i] = 30 + i, c.day[i] = 32 + i / 86400.0, c.base[i] = 0.5f + 0.1f * (float)i;
    }
    return c;
}

static const pl_flight_files bad[] = {{"bad", "camera.h5", "lidar25.h5", "nav.h5"}};

typedef struct written {
    pl_hdf5_array array;
    const void *data; /* NULL: stays zeros */
    size_t bytes;
} written;

static void craft_file(const crafted *c, const char *path, const written *w, size_t count)
{
    pl_hdf5_array array[4];
    size_t n = 0;
    char why[256];
    const written *of[4];
    for (size_t i = 0; i < count; i++) {
        if (c->left_out && strcmp(c->left_out, w[i].array.name) == 0) continue;
        array[n] = w[i].array;
        if (c->as_text && strcmp(c->as_text, w[i].array.name) == 0) array[n].text_bytes = 8;
        of[n++] = &w[i];
    }
    if (module->create(path, array, n, NULL, 0, why, sizeof why) != 0) fail_msg("%s: %s", path, why);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        if (of[i]->bytes) {
            assert_int_equal(fseek(f, (long)array[i].offset, SEEK_SET), 0);
            assert_int_equal(fwrite(of[i]->data, 1, of[i]->bytes, f), of[i]->bytes);
        }
    fclose(f);
}

static void craft(const crafted *c)
{
    static float signal[8 * 30 * 40];
    for (size_t i = 0; i < sizeof signal / sizeof *signal; i++) signal[i] = c->value + (float)(i % 7) * (c->value > 0);
    const written camera[] = {
        {{"Product/Signal", "f32", .rank = c->signal_rank, .shape = {c->frames, c->rows, c->columns}},
         signal,
         (c->signal_rank == 3) * (size_t)(c->frames * c->rows * c->columns) * sizeof *signal},
        {{"Time/TimeUTC", "f64", .rank = 1, .shape = {c->times}}, c->second, (size_t)c->times * 8}};
    const written lidar[] = {
        {{"layer_descriptor/Profile_Decimal_Julian_Day", "f64", .rank = c->day_rank, .shape = {c->profiles, 1, 1}},
         c->day,
         (size_t)c->profiles * 8},
        {{"layer_descriptor/Layer_Base_Altitude", "f32", .rank = 2, .shape = {c->bases, 1}},
         c->base,
         (size_t)c->bases * 4},
        {{"layer_descriptor/Lidar_Surface_Altitude", "f32", .rank = 1, .shape = {c->profiles}}, NULL, 0},
        {{"layer_descriptor/DEM_Surface_Altitude", "f32", .rank = 1, .shape = {c->profiles}},
         c->dem,
         (size_t)c->profiles * 4}};
    const written nav[] = {
        {{"nav/solarZenith", "f64", .rank = 1, .shape = {c->angles}}, c->zenith, (size_t)c->angles * 8},
        {{"nav/sunAzGrd", "f64", .rank = 1, .shape = {c->angles}}, c->zenith, (size_t)c->angles * 8}};
    craft_file(c, bad->camera, camera, 2);
    craft_file(c, bad->lidar, lidar, 4);
    craft_file(c, bad->navigation, nav, 2);
}

static void refuse(const pl_clouds_options *o, pl_status status, const char *says)
{
    const uint64_t held = pl_alloc_live_blocks();
    const pl_status got = pl_clouds_prepare(o, &result, &err);
    if (!strstr(err.text, says)) fail_msg("\"%s\" was expected in: %s", says, err.text);
    assert_int_equal(got, status);
    assert_int_equal(pl_alloc_live_blocks(), held);
    assert_int_equal(access(o->path, F_OK), -1);
    assert_int_equal(access("crafted-frames.plimsoll.tmp", F_OK), -1);
}

static pl_clouds_options crafted_options(void)
{
    pl_clouds_options o = options_of(bad, 1);
    o.path = "crafted-frames";
    return o;
}

static void refuse_crafted(const crafted *c, pl_status status, const char *says)
{
    const pl_clouds_options o = crafted_options();
    craft(c);
    refuse(&o, status, says);
}

#define BAD(change, status, says)                                                                                      \
    do {                                                                                                               \
        crafted c = good();                                                                                            \
        change;                                                                                                        \
        refuse_crafted(&c, status, says);                                                                              \
    } while (0)

static void test_wrong_fields(void **state)
{
    (void)state;
    BAD(c.left_out = "Product/Signal", PL_E_DATA, "camera.h5: there is no dataset Product/Signal; [frames, rows, col");
    BAD(c.left_out = "Time/TimeUTC", PL_E_DATA, "camera.h5: there is no dataset Time/TimeUTC");
    BAD(c.left_out = "nav/sunAzGrd", PL_E_DATA, "nav.h5: there is no dataset nav/sunAzGrd");
    BAD(c.left_out = "layer_descriptor/Layer_Base_Altitude", PL_E_DATA, "lidar25.h5: there is no dataset layer_desc");
    BAD(c.as_text = "Time/TimeUTC", PL_E_DATA, "Time/TimeUTC does not hold numbers; a number for each frame");
    BAD(c.signal_rank = 2, PL_E_DATA, "Product/Signal has 2 dimensions; [frames, rows, columns] is expected");
    BAD(c.day_rank = 3, PL_E_DATA, "Profile_Decimal_Julian_Day has 3 dimensions");
    BAD(c.times = 3, PL_E_DATA, "Time/TimeUTC has 3 numbers, but there are 4 frames");
    BAD(c.angles = 2, PL_E_DATA, "nav/solarZenith has 2 numbers, but there are 4 frames");
    BAD(c.bases = 3, PL_E_DATA, "Layer_Base_Altitude has 3 profiles, but layer_descriptor/Profile_Decimal_Julian_Day");
    BAD(c.rows = 20, PL_E_CONFIG, "its frames have 20 rows; the swath [2, 26] goes beyond them");
}

static void test_wrong_values(void **state)
{
    (void)state;
    BAD(c.second[2] = c.second[1], PL_E_DATA, "camera.h5: Time/TimeUTC: the time of frame 2,");
    BAD(c.second[1] = NAN, PL_E_DATA, "the time of frame 1 is not a finite number");
    BAD(for (int i = 0; i < 8; i++) c.zenith[i] = NAN, PL_E_DATA, "nav.h5: nav/solarZenith: none of the 4 zenith");
    BAD(for (int i = 0; i < 8; i++) c.base[i] = 5, PL_E_DATA, "flight bad has 0 labels");
    BAD(for (int i = 1; i < 8; i++) c.dem[i] = 9, PL_E_DATA,
        "flight bad has 1 label, and two or more are needed: profiles of its");
    BAD(for (int i = 1; i < 8; i++) c.day[i] += 1, PL_E_DATA,
        "flight bad has 1 label, and two or more are needed: profiles of its");
    BAD(for (int i = 0; i < 8; i++) c.base[i] = 1, PL_E_DATA, "its 4 labels are all 1 km; with no variance");
    BAD(c.value = -3, PL_E_DATA, "camera.h5: the first 4 frames have a median of -3; a flat field needs radiances");
}

/* As nothing is wrong with it, it is taken: the refusals above are about what each changed. */
static void test_good(void **state)
{
    pl_clouds_options o = crafted_options();
    crafted c = good();
    (void)state;
    craft(&c);
    prepare(&o);
    assert_true(result.info.frames == 4 && result.info.width == 20);
    unlink(o.path);
    c.profiles = c.bases = 6, c.times = c.angles = 7; /* more than there are frames */
    craft(&c);
    prepare(&o);
    unlink(o.path);
    c.value = -3, o.flat_field = false;
    craft(&c);
    prepare(&o);
    unlink(o.path);
}

static void test_wrong_wish(void **state)
{
    const pl_flight_files twice[] = {synthetic[0], synthetic[0]}, mixed[] = {synthetic[0], bad[0]},
                          unnamed[] = {{"", "x", "x", "x"}}, gone[] = {{"gone", "nowhere.h5", "x25.h5", "x"}};
    const crafted c = good();
    pl_clouds_options o = crafted_options();
    (void)state;
    craft(&c);
    o.flight = twice, o.flights = 2;
    refuse(&o, PL_E_CONFIG, "flights 1 and 2 are both named 10Feb25; give each its own name");
    o.flight = mixed;
    refuse(&o, PL_E_DATA, "camera.h5: its frames have 20 columns, those of flight 10Feb25 have 33");
    o.flight = unnamed, o.flights = 1;
    refuse(&o, PL_E_CONFIG, "the name of flight 1 has 0 bytes");
    o.flight = gone;
    refuse(&o, PL_E_DATA, "nowhere.h5");
    o.flights = 0;
    refuse(&o, PL_E_CONFIG, "there are 0 flights");
    o = crafted_options(), o.swath_end = o.swath_begin;
    refuse(&o, PL_E_CONFIG, "the swath [2, 2] has no rows");
    o = crafted_options(), o.file_max = 5000;
    refuse(&o, PL_E_CONFIG, "more than the 5000 that it may have");
}

static void test_broken_files(void **state)
{
    const pl_clouds_options o = crafted_options();
    const crafted c = good();
    const char *const path[] = {bad->camera, bad->lidar, bad->navigation};
    struct stat st;
    (void)state;
    for (int i = 0; i < 12; i++) { /* cut anywhere: libhdf5 knows how long a file must be */
        craft(&c);
        assert_int_equal(stat(path[i % 3], &st), 0);
        assert_int_equal(truncate(path[i % 3], (off_t)next_below((uint32_t)st.st_size)), 0);
        refuse(&o, PL_E_DATA, "truncated");
    }
    craft(&c);
    const int fd = open(bad->camera, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    refuse(&o, PL_E_STORAGE, "camera.h5: another process has it locked");
    close(fd);
    write_file(bad->navigation, "no HDF5\n", 100);
    refuse(&o, PL_E_DATA, "nav.h5: is no HDF5 file");
}

static void test_no_memory(void **state)
{
    pl_clouds_options o = crafted_options();
    const crafted c = good();
    const uint64_t held = pl_alloc_live_blocks();
    pl_status status = PL_E_NOMEM;
    (void)state;
    craft(&c);
    for (uint64_t n = 1; status != PL_OK; n++) {
        o.in_child = n % 2;
        assert_true(n < 500);
        pl_alloc_fail_at(n, 0);
        status = pl_clouds_prepare(&o, &result, &err);
        pl_alloc_fail_at(0, 0);
        assert_int_equal(pl_alloc_live_blocks(), held);
        if (status == PL_OK) break;
        assert_int_equal(status, PL_E_NOMEM);
        assert_non_null(strstr(err.text, "no memory"));
        unlink(o.path); /* complete, where it was the look at it that had no memory */
    }
    unlink(o.path);
}

static int begin(void **state)
{
    pl_synth_clouds_options o = pl_synth_clouds_default();
    char *text;
    size_t bytes;
    (void)state;
    o.flights = 2, o.labels = LABELS, o.height = HEIGHT, o.width = WIDTH, o.seed = seed;
    if (enter_folder(folder) != 0 || pl_synth_clouds("a", &o, &text, &bytes, &err) != PL_OK) return -1;
    pl_free(text);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    return leave_folder(folder);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pictures),     cmocka_unit_test(test_used_again),      cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_identity),     cmocka_unit_test(test_earlier_version), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_compressed),   cmocka_unit_test(test_changed),         cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_wrong_fields), cmocka_unit_test(test_wrong_values),    cmocka_unit_test(test_good),
        cmocka_unit_test(test_wrong_wish),   cmocka_unit_test(test_broken_files),    cmocka_unit_test(test_no_memory)};
    seed = test_seed_said(argc, argv);
    if (pl_hdf5_load("this test", "", &hdf5, &err) != PL_OK) return printf("not without libhdf5: %s\n", err.text), 0;
    module = hdf5.functions;
    const int failed = cmocka_run_group_tests(tests, begin, finish);
    pl_module_unload(&hdf5);
    return failed;
}
