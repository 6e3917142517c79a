/* Synthetic scenes: pixels against sums in double precision over the strip's noise, heights and labels by their shares,
 * places by their sums; that scratch may hold anything and nothing is written beside what is wanted. */
#include "unit/data/scratch.h"

#include <math.h>

#include "data/clouds/lidar.h"
#include "data/clouds/scene.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIDE_MAX = 64, GUARD = 64 };

static uint64_t seed;
static scratch_random numbers;
static pl_error err;
static float frame[SIDE_MAX * SIDE_MAX + GUARD];
static uint64_t room[1 << 14];

/* ---- the reference ---- */

/* The strip's field at a point between its points: each of the four filtered by a double sum over its neighbourhood. */
static double point(const pl_scene_flight *f, const char *stream, double deviation, int64_t y, int64_t x)
{
    const pl_philox p = pl_philox_init(f->of->seed, pl_stream_id(stream));
    const int radius = (int)ceil(3 * deviation);
    double sum = 0, squares = 0;
    for (int i = -radius; i <= radius; i++) squares += exp(-i * i / (deviation * deviation));
    for (int i = -radius; i <= radius; i++)
        for (int j = -radius; j <= radius; j++) {
            const uint64_t column = (uint64_t)(x + j + (1 << 28));
            float z;
            pl_philox_normal_f32(&p, f->number, (uint64_t)(y + i + (1 << 28)), column, column + 1, &z);
            sum += (double)z * exp(-(i * i + j * j) / (2 * deviation * deviation));
        }
    return sum / squares;
}

static double field(const pl_scene_flight *f, const char *stream, double deviation, double y, double x)
{
    const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    const double v = y - floor(y), u = x - floor(x);
    return (1 - v) *
               ((1 - u) * point(f, stream, deviation, top, left) + u * point(f, stream, deviation, top, left + 1)) +
           v * ((1 - u) * point(f, stream, deviation, top + 1, left) +
                u * point(f, stream, deviation, top + 1, left + 1));
}

/* Clouds are cut off at 0 and 1 on the frame's own grid of pixels. */
static double cloud(const pl_scene_flight *f, const pl_scene_at *at, double y, double x)
{
    const double c = (field(f, "clouds/cloud", 1.5, at->cloud_y + y, at->cloud_x + x) - f->threshold) / 0.3;
    return c < 0 ? 0 : c > 1 ? 1 : c;
}

/* How much of a cloud stands `length` pixels towards the sun, between four pixels. */
static double shade(const pl_scene_flight *f, const pl_scene_at *at, int y, int x)
{
    const double length = at->height_km * 1000 / f->of->gsd_metres * tan(at->zenith * M_PI / 180);
    const double from_y = y - length * cos(at->azimuth * M_PI / 180),
                 from_x = x + length * sin(at->azimuth * M_PI / 180);
    const double v = from_y - floor(from_y), u = from_x - floor(from_x);
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            sum += (i ? v : 1 - v) * (j ? u : 1 - u) * cloud(f, at, floor(from_y) + i, floor(from_x) + j);
    return sum;
}

static double pixel(const pl_scene_flight *f, const pl_scene_at *at, int y, int x)
{
    const int64_t i = (int64_t)y * f->of->width + x;
    const pl_philox p = pl_philox_init(f->of->seed, pl_stream_id("clouds/noise"));
    const double m = cloud(f, at, y, x), v = 2 * (y + 0.5) / f->of->height - 1, u = 2 * (x + 0.5) / f->of->width - 1;
    double ocean = f->ocean + field(f, "clouds/ocean", f->texture_pixels, at->ground_y + y, x);
    float z;
    if (f->of->cue == PL_CUE_SHADOW) ocean -= 10 * shade(f, at, y, x);
    pl_philox_normal_f32(&p, f->number, at->frame, (uint64_t)i, (uint64_t)i + 1, &z);
    if ((double)z > 4.26) return NAN;
    return ((1 - m) * ocean + m * (f->ocean + f->cloud)) * (1 - f->vignette * (u * u + v * v) / 2) +
           f->noise * (double)z;
}

static void check_pixels(const pl_scene_flight *f, const pl_scene_at *at)
{
    const uint32_t pixels = f->of->height * f->of->width;
    assert_true(pl_scene_scratch_bytes(f->of) + GUARD <= sizeof room);
    memset(room, (int)scratch_next(&numbers, 256), sizeof room);
    memset(frame, 0x5A, sizeof frame);
    const unsigned char *behind = (const unsigned char *)room + pl_scene_scratch_bytes(f->of), guard = behind[0];
    pl_scene_fill(f, at, room, frame);
    for (int i = 0; i < GUARD; i++) assert_int_equal(behind[i], guard);
    for (uint32_t i = pixels; i < pixels + GUARD; i++) assert_memory_equal(frame + i, "ZZZZ", 4);
    for (int i = 0; i < 12; i++) {
        const uint32_t k = scratch_next(&numbers, pixels);
        const double want = pixel(f, at, (int)(k / f->of->width), (int)(k % f->of->width));
        if (!(fabs((double)frame[k] - want) < 1e-3) && !(isnan(frame[k]) && isnan(want)))
            fail_msg("frame %" PRIu64 ", pixel %u: %.7g, expected %.7g; seed %" PRIu64, at->frame, k, (double)frame[k],
                     want, seed);
    }
}

static void test_frames(void **state)
{
    (void)state;
    for (int turn = 0; turn < 6; turn++) {
        const pl_scene s = {16 + scratch_next(&numbers, 33), 16 + scratch_next(&numbers, 49), 125 + turn * 300,
                            turn % 3 == 2 ? PL_CUE_PARALLAX : PL_CUE_SHADOW, seed + (uint64_t)turn};
        assert_int_equal(pl_scene_check(&s, &err), PL_OK);
        const pl_scene_flight f = pl_scene_flight_of(&s, scratch_next(&numbers, 31), 9, 3);
        pl_scene_at at = pl_scene_begin(&f);
        for (int i = 0; i < 9; i++) {
            if (i % 4 == 0) check_pixels(&f, &at);
            if (i < 8) pl_scene_next(&f, &at);
        }
    }
}

/* ---- heights, places, labels ---- */

/* Uniform: 1000 heights, every 40th frame, are independent; each tenth has 100, six deviations are 57. */
static void test_heights(void **state)
{
    const pl_scene s = {16, 16, 125, PL_CUE_SHADOW, seed};
    const pl_scene_flight f = pl_scene_flight_of(&s, 5, 40000, 7);
    int tenth[10] = {0}, close = 0;
    (void)state;
    pl_scene_at at = pl_scene_begin(&f);
    for (uint64_t i = 0; i < 40000; i++) {
        const double before = at.height_km;
        assert_true(at.height_km >= 0.1 && at.height_km <= 2);
        if (i % 40 == 0) tenth[(int)fmin((at.height_km - 0.1) / 0.19, 9)]++;
        if (i + 1 == 40000) break;
        pl_scene_next(&f, &at);
        close += fabs(at.height_km - before) < 0.4;
    }
    for (int i = 0; i < 10; i++)
        if (abs(tenth[i] - 100) > 57) fail_msg("tenth %d has %d heights; seed %" PRIu64, i, tenth[i], seed);
    assert_true(close > 39500); /* from frame to frame it hardly changes */
}

static void test_places(void **state)
{
    const pl_scene shadow = {16, 16, 125, PL_CUE_SHADOW, seed}, parallax = {16, 16, 2000, PL_CUE_PARALLAX, seed};
    const pl_scene_flight one = pl_scene_flight_of(&shadow, 1, 50, 20),
                          other = pl_scene_flight_of(&parallax, 1, 50, 20);
    pl_scene_at a = pl_scene_begin(&one), b = pl_scene_begin(&other);
    double cloud_a = 0, cloud_b = 0;
    (void)state;
    assert_true(a.zenith == one.zenith[0] && a.azimuth == one.azimuth[0]);
    for (int i = 1; i < 50; i++) {
        cloud_a += 2000 / 125.0 * 20 / (20 - a.height_km) + one.wind_y;
        cloud_b += 5 / (5 - b.height_km); /* h = A (1 - s_g / s_c) */
        pl_scene_next(&one, &a), pl_scene_next(&other, &b);
        assert_true(fabs(a.ground_y - i * 2000 / 125.0) < 1e-9 && fabs(b.ground_y - i) < 1e-9);
        assert_true(fabs(a.cloud_y - cloud_a) < 1e-9 && fabs(b.cloud_y - cloud_b) < 1e-9);
        assert_true(fabs(a.cloud_x - i * one.wind_x) < 1e-9 && b.cloud_x == 0);
        assert_true(a.zenith >= 25 && a.zenith <= 45 && a.azimuth >= 150 && a.azimuth <= 210);
    }
    assert_true(fabs(a.zenith - one.zenith[1]) < 1e-9 && fabs(a.azimuth - one.azimuth[1]) < 1e-9);
}

/* Through the filter and the match exactly the frames with a label get one, with the noise that is said. */
static void test_labels(void **state)
{
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        const uint64_t frames = 1 + scratch_next(&numbers, 400), labels = 1 + scratch_next(&numbers, (uint32_t)frames);
        const pl_scene s = {16, 16, 125, PL_CUE_SHADOW, seed + (uint64_t)turn};
        const pl_scene_flight f = pl_scene_flight_of(&s, 3, frames, labels);
        double times[400], want[400], got[400];
        uint64_t count = 0, lacking = 0;
        for (uint64_t i = 0; i < frames; i++) times[i] = PL_SCENE_FRAME_SECONDS * (double)i, got[i] = NAN;
        pl_scene_at at = pl_scene_begin(&f);
        for (uint64_t i = 0; i < frames; i++) {
            pl_scene_profile p[PL_SCENE_PROFILES];
            double zenith, azimuth;
            pl_scene_profiles(&f, &at, p);
            pl_scene_angles(&f, &at, &zenith, &azimuth);
            lacking += isnan(zenith) || isnan(azimuth);
            assert_true(!at.has_label || (zenith == at.zenith && azimuth == at.azimuth));
            for (int k = 0; k < PL_SCENE_PROFILES; k++) {
                assert_true(k == 0 || p[k].seconds > p[k - 1].seconds);
                if (!pl_label_is_valid(pl_label_filter_find("basic"), p[k].base_km, p[k].lidar_surface_m,
                                       p[k].dem_surface_m))
                    continue;
                const uint64_t matched = pl_match_frame(times, frames, times[i] + p[k].seconds);
                if (matched != PL_NO_FRAME) got[matched] = (double)p[k].base_km;
            }
            want[i] = at.has_label ? at.height_km : NAN;
            count += at.has_label;
            if (i + 1 < frames) pl_scene_next(&f, &at);
        }
        assert_int_equal(count, labels);
        assert_true(!isnan(want[0]));
        assert_true(lacking > 0 || frames - labels < 40);
        for (uint64_t i = 0; i < frames; i++) {
            assert_int_equal(isnan(want[i]), isnan(got[i]));
            assert_true(isnan(want[i]) || fabs(want[i] - got[i]) < 0.03 * 6);
        }
    }
}

static void test_refused(void **state)
{
    pl_scene s = {440, 640, 125, PL_CUE_SHADOW, 1};
    (void)state;
    assert_int_equal(pl_scene_check(&s, &err), PL_OK);
    s.height = 7;
    assert_int_equal(pl_scene_check(&s, &err), PL_E_USAGE);
    assert_says(&err, "frames of 7 by 640 pixels");
    s.height = 8;
    assert_int_equal(pl_scene_check(&s, &err), PL_E_USAGE);
    assert_says(&err, "shadows are up to 16 pixels long, more than the 8");
    assert_says(&err, "give pixels of 250 metres");
    s.gsd_metres = 250;
    assert_int_equal(pl_scene_check(&s, &err), PL_OK);
    s.gsd_metres = 1, s.cue = PL_CUE_PARALLAX; /* no shadows */
    assert_int_equal(pl_scene_check(&s, &err), PL_OK);
    s.gsd_metres = NAN;
    assert_int_equal(pl_scene_check(&s, &err), PL_E_USAGE);
    s.gsd_metres = 0;
    assert_int_equal(pl_scene_check(&s, &err), PL_E_USAGE);
    s.gsd_metres = 100, s.width = 5000;
    assert_int_equal(pl_scene_check(&s, &err), PL_E_USAGE);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames), cmocka_unit_test(test_heights),
                                       cmocka_unit_test(test_places), cmocka_unit_test(test_labels),
                                       cmocka_unit_test(test_refused)};
    seed = test_seed_said(argc, argv);
    numbers = (scratch_random){.key = pl_philox_init(seed, 17)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
