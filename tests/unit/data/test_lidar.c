/* Labels of frames: the filter's corners, days of a year against the C library's calendar, matches against a search
 * through all frames, angles and windows by closed form. */
#include "unit/data/scratch.h"

#include <inttypes.h>
#include <float.h>
#include <math.h>
#include <time.h>

#include "data/clouds/lidar.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static scratch_random numbers;
static pl_error err;

static double next_unit(void) { return scratch_next(&numbers, 1u << 31) * 0x1p-31; }

static void test_filter(void **state)
{
    const pl_label_filter *basic = pl_label_filter_find("basic"), *practical = pl_label_filter_find("practical");
    (void)state;
    assert_non_null(basic);
    assert_non_null(practical);
    assert_null(pl_label_filter_find("Basic"));
    assert_true(pl_label_is_valid(basic, 0.1f, 0, 0) && pl_label_is_valid(basic, 2, 900, 0));
    assert_true(pl_label_is_valid(basic, 1, -900, -0.0f) && !pl_label_is_valid(basic, 1, -901, 0));
    assert_true(!pl_label_is_valid(basic, 0.0999f, 0, 0) && !pl_label_is_valid(basic, 2.0001f, 0, 0));
    assert_true(pl_label_is_valid(practical, 0.0999f, 0, 0) && pl_label_is_valid(practical, 2.5f, 0, 0));
    assert_true(!pl_label_is_valid(practical, 0.0499f, 0, 0) && !pl_label_is_valid(practical, 2.51f, 0, 0));
    assert_true(!pl_label_is_valid(basic, 1, 0, 1) && !pl_label_is_valid(basic, 1, 0, -9999));
    assert_true(!pl_label_is_valid(basic, 1, -9999, 0) && !pl_label_is_valid(basic, -9999, 0, 0));
    assert_true(!pl_label_is_valid(basic, NAN, 0, 0) && !pl_label_is_valid(basic, 1, NAN, 0));
    assert_true(!pl_label_is_valid(basic, 1, 0, NAN) && !pl_label_is_valid(basic, INFINITY, 0, 0));
}

static void test_years(void **state)
{
    int year = 0;
    (void)state;
    assert_true(pl_julian_year_of("10Feb25/CPL_L2_V1-02_01kmLay_259015_10feb25.hdf5", &year) && year == 2025);
    assert_true(pl_julian_year_of("30oct24.x.y", &year) && year == 2024);
    assert_true(pl_julian_year_of("a.b99/07", &year) && year == 2007);
    assert_false(pl_julian_year_of("a25/b.hdf5", &year));
    assert_false(pl_julian_year_of("a25/.hdf5", &year));
    assert_false(pl_julian_year_of("", &year));
}

/* Every day of these years, at a random time, is what the C library's calendar says. */
static void test_days(void **state)
{
    (void)state;
    for (int year = 1999; year < 2030; year++) {
        pl_julian_clock clock = pl_julian_begin(year);
        for (int day = 1; day <= 365; day++) {
            const int second = (int)scratch_next(&numbers, 86400);
            struct tm at = {.tm_year = year - 1900, .tm_mday = day, .tm_sec = second};
            const double want = (double)timegm(&at), got = pl_julian_seconds(&clock, day + second / 86400.0);
            if (!(fabs(got - want) < 1e-5)) fail_msg("%d, day %d, second %d: %.6f", year, day, second, got - want);
        }
    }
}

static void test_midnight(void **state)
{
    pl_julian_clock still = pl_julian_begin(2024), counted = pl_julian_begin(2024);
    const double first = pl_julian_seconds(&still, 304.75);
    (void)state;
    assert_true(pl_julian_seconds(&still, 304.875) - first == 10800);
    assert_true(pl_julian_seconds(&still, 304.75) - first == 0); /* back by less than 0.2: no new day */
    assert_true(isnan(pl_julian_seconds(&still, NAN)) && isnan(pl_julian_seconds(&still, -9999)));
    assert_true(pl_julian_seconds(&still, 304.125) - first == 0.375 * 86400);
    assert_true(pl_julian_seconds(&still, 304.875) - first == 1.125 * 86400); /* the day stays added */
    assert_true(pl_julian_seconds(&still, 304.25) - first == 1.5 * 86400);    /* another midnight */
    assert_true(pl_julian_seconds(&counted, 304.75) == first);
    assert_true(pl_julian_seconds(&counted, 305.125) - first == 0.375 * 86400); /* the file's own day: no other */
}

static void test_order(void **state)
{
    const double good[] = {1, 2, 2.5}, equal[] = {1, 2, 2}, back[] = {1, 2, 1.5}, none[] = {1, NAN, 3};
    (void)state;
    assert_int_equal(pl_times_check(good, 3, &err), PL_OK);
    assert_int_equal(pl_times_check(good, 0, &err), PL_OK);
    assert_int_equal(pl_times_check(equal, 3, &err), PL_E_DATA);
    assert_int_equal(pl_times_check(back, 3, &err), PL_E_DATA);
    assert_says(&err, "the time of frame 2, 1.500, is not behind that of the frame before it, 2.000");
    assert_int_equal(pl_times_check(none, 3, &err), PL_E_DATA);
    assert_says(&err, "the time of frame 1 is not a finite number");
}

/* As numpy.argmin would: the first of the nearest. */
static uint64_t search(const double *times, uint64_t count, double seconds)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < count; i++)
        if (fabs(times[i] - seconds) < fabs(times[best] - seconds)) best = i;
    return count && fabs(times[best] - seconds) <= 0.5 ? best : PL_NO_FRAME;
}

static void test_match(void **state)
{
    const double whole[] = {10, 11, 13};
    double times[200];
    (void)state;
    assert_true(pl_match_frame(whole, 3, 10.5) == 0 && pl_match_frame(whole, 3, 13.5) == 2);
    assert_true(pl_match_frame(whole, 3, 9.5) == 0 && pl_match_frame(whole, 3, 9.4) == PL_NO_FRAME);
    assert_true(pl_match_frame(whole, 3, 12) == PL_NO_FRAME && pl_match_frame(whole, 0, 10) == PL_NO_FRAME);
    assert_true(pl_match_frame(whole, 3, NAN) == PL_NO_FRAME && pl_match_frame(whole, 3, INFINITY) == PL_NO_FRAME);
    for (int turn = 0; turn < 2000; turn++) {
        const uint64_t count = scratch_next(&numbers, 200);
        double at = 1.7e9, seconds;
        for (uint64_t i = 0; i < count; i++) times[i] = at += (1 + scratch_next(&numbers, 16)) / 8.0;
        seconds = 1.7e9 + next_unit() * (at - 1.7e9 + 2);
        if (turn % 2) seconds = floor(seconds * 16) / 16; /* ties */
        if (pl_match_frame(times, count, seconds) != search(times, count, seconds))
            fail_msg("%" PRIu64 " frames, %.4f; seed %" PRIu64, count, seconds, seed);
    }
}

static void test_angles(void **state)
{
    double zenith[] = {20, NAN, 40, INFINITY, 60, -9999, DBL_MAX, DBL_MAX}, none[] = {NAN, DBL_MAX};
    double azimuth[] = {-10, NAN, 360, 725, -INFINITY, 359.5, -1e-20};
    const double want[] = {350, 0, 0, 5, 0, 359.5, 0};
    (void)state;
    assert_int_equal(pl_zenith_mend(zenith, 8, &err), PL_OK);
    assert_true(zenith[0] == 20 && zenith[1] == 40 && zenith[3] == 40 && zenith[4] == 60);
    assert_true(zenith[5] == 40 && zenith[6] == 40 && zenith[7] == 40);
    assert_int_equal(pl_zenith_mend(none, 2, &err), PL_E_DATA);
    assert_says(&err, "none of the 2 zenith angles");
    pl_azimuth_mend(azimuth, 7);
    for (int i = 0; i < 7; i++) assert_true(azimuth[i] == want[i]);
}

static void test_windows(void **state)
{
    (void)state;
    for (int64_t frames = 1; frames < 9; frames++)
        for (int64_t frame = 0; frame < frames; frame++)
            for (int64_t window = 1; window < 8; window++)
                for (int64_t place = 0; place < window; place++) {
                    const int64_t at = frame - window / 2 + place, want = at < 0 ? 0 : at < frames ? at : frames - 1;
                    assert_int_equal(
                        pl_window_frame((uint64_t)frame, (uint64_t)frames, (uint32_t)window, (uint32_t)place), want);
                }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter),   cmocka_unit_test(test_years),   cmocka_unit_test(test_days),
        cmocka_unit_test(test_midnight), cmocka_unit_test(test_order),   cmocka_unit_test(test_match),
        cmocka_unit_test(test_angles),   cmocka_unit_test(test_windows),
    };
    seed = test_seed_said(argc, argv);
    numbers = (scratch_random){.key = pl_philox_init(seed, 16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
