/* CLAHE against a plain reference of its definition (a padded copy, masks), the flat field and the scores against
 * closed forms and sums in another order; damaged pixels. */
#include "unit/data/scratch.h"

#include <math.h>

#include "data/clouds/clahe.h"
#include "data/clouds/preprocess.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIDE_MAX = 96, PADDED_MAX = 2 * SIDE_MAX, PIXELS_MAX = SIDE_MAX * SIDE_MAX, BINS = 256 };

static uint64_t seed;
static scratch_random numbers;
static float image[PIXELS_MAX], out[PIXELS_MAX], expected[PIXELS_MAX];
static uint64_t room[1 << 15];

static float next_unit(void) { return (float)scratch_next(&numbers, 1 << 24) * 0x1p-24f; }

/* ---- the reference ---- */

static int padded[PADDED_MAX][PADDED_MAX], maps[32][32][BINS];

/* numpy.pad, mode "reflect", half a tile before and up to a whole number of tiles plus the other half behind. */
static int reflect(int i, int n)
{
    i = i < 0 ? -i : i;
    return n == 1 ? 0 : i < n ? i : 2 * (n - 1) - i;
}

static void pad(int height, int width, int tile_y, int tile_x, int rows, int columns)
{
    float low = 1, high = 0;
    for (int i = 0; i < height * width; i++) low = fminf(low, image[i]), high = fmaxf(high, image[i]);
    double least = rint((double)low * 65535), most = fmax(rint((double)high * 65535), least + 1);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            float v = image[reflect(y - tile_y / 2, height) * width + reflect(x - tile_x / 2, width)];
            padded[y][x] = (int)rint((rint((double)v * 65535) - least) / (most - least) * 16383) / 65;
        }
}

static int count_room(const int *h, int clip)
{
    int count = 0;
    for (int i = 0; i < BINS; i++) count += h[i] < clip;
    return count;
}

static void redistribute(int *h, int clip)
{
    int excess = 0, before;
    for (int i = 0; i < BINS; i++) excess += h[i] > clip ? h[i] - clip : 0;
    for (int i = 0; i < BINS; i++) h[i] = h[i] > clip ? clip : h[i];
    const int share = excess / BINS, upper = clip - share;
    for (int i = 0; i < BINS; i++)
        if (h[i] < upper) h[i] += share, excess -= share;
    for (int i = 0; i < BINS; i++)
        if (h[i] >= upper && h[i] < clip) excess += h[i] - clip, h[i] = clip;
    do {
        before = excess;
        for (int first = 0; first < BINS && excess > 0; first++) {
            int step = count_room(h, clip) / excess > 1 ? count_room(h, clip) / excess : 1, given = 0;
            for (int i = first; i < BINS; i += step)
                if (h[i] < clip) h[i]++, given++;
            excess -= given;
        }
    } while (excess > 0 && excess != before);
}

static void make_map(int *map, int top, int left, int tile_y, int tile_x, double limit)
{
    int h[BINS] = {0}, pixels = tile_y * tile_x, sum = 0;
    for (int y = 0; y < tile_y; y++)
        for (int x = 0; x < tile_x; x++) h[padded[top + y][left + x]]++;
    redistribute(h, limit > 0 ? (limit * pixels < 1 ? 1 : (int)(limit * pixels)) : pixels);
    for (int i = 0; i < BINS; i++) {
        sum += h[i];
        map[i] = (int)fmin(sum * (16383.0 / pixels), 16383);
    }
}

static int near_tile(int block, int tiles) { return block < 0 ? 0 : block >= tiles ? tiles - 1 : block; }

static double look_up(int y, int x, int tile_y, int tile_x, int tiles_y, int tiles_x)
{
    const int at_y = y + tile_y / 2, at_x = x + tile_x / 2, bin = padded[at_y][at_x];
    double sum = 0;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            double fy = (double)(at_y % tile_y) / tile_y, fx = (double)(at_x % tile_x) / tile_x;
            sum += (i ? fy : 1 - fy) * (j ? fx : 1 - fx) *
                   maps[near_tile(at_y / tile_y - 1 + i, tiles_y)][near_tile(at_x / tile_x - 1 + j, tiles_x)][bin];
        }
    return floor(sum + 1e-7);
}

static void reference(int height, int width, double limit)
{
    const int tile_y = height / 8 > 1 ? height / 8 : 1, tile_x = width / 8 > 1 ? width / 8 : 1;
    const int tiles_y = (height + tile_y - 1) / tile_y, tiles_x = (width + tile_x - 1) / tile_x;
    double low = INFINITY, high = 0;
    pad(height, width, tile_y, tile_x, (tiles_y + 1) * tile_y, (tiles_x + 1) * tile_x);
    for (int y = 0; y < tiles_y; y++)
        for (int x = 0; x < tiles_x; x++)
            make_map(maps[y][x], tile_y / 2 + y * tile_y, tile_x / 2 + x * tile_x, tile_y, tile_x, limit);
    for (int i = 0; i < height * width; i++) {
        double v = look_up(i / width, i % width, tile_y, tile_x, tiles_y, tiles_x);
        expected[i] = (float)v;
        low = fmin(low, v), high = fmax(high, v);
    }
    for (int i = 0; i < height * width; i++)
        expected[i] = high > low ? (float)(((double)expected[i] - low) / (high - low)) : 0;
}

/* Noise, five levels, a slope with noise, or nearly all of one value. */
static void draw(int height, int width)
{
    const uint32_t kind = scratch_next(&numbers, 4);
    for (int i = 0; i < height * width; i++) {
        const float u = next_unit(), slope = (float)(i % width) / (float)width;
        image[i] = kind == 0   ? u
                   : kind == 1 ? floorf(u * 5) / 4
                   : kind == 2 ? 0.9f * slope + 0.1f * u
                               : (u < 0.02f ? u * 40 : 0.5f);
        image[i] = fminf(image[i], 1);
    }
}

static void test_clahe(void **state)
{
    static const double limits[] = {0.01, 0.01, 0, 0.003, 0.1, 0.5, 1, 7};
    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        const int height = turn ? 1 + (int)scratch_next(&numbers, SIDE_MAX) : 48;
        const int width = turn ? 2 + (int)scratch_next(&numbers, SIDE_MAX - 1) : 64;
        const double limit = limits[scratch_next(&numbers, 8)];
        draw(height, width);
        reference(height, width, limit);
        assert_true(pl_clahe_scratch_bytes((uint32_t)height, (uint32_t)width) <= sizeof room);
        memset(room, (int)scratch_next(&numbers, 256), sizeof room);
        pl_clahe((uint32_t)height, (uint32_t)width, limit, image, room, out);
        for (int i = 0; i < height * width; i++) /* a level is 6e-5: a sum that is a whole number may end below it */
            if (!(fabsf(out[i] - expected[i]) < 1e-3f))
                fail_msg("%d x %d, limit %g, pixel %d: %.9g, expected %.9g; seed %" PRIu64, height, width, limit, i,
                         (double)out[i], (double)expected[i], seed);
    }
}

/* Without a limit and with one tile's worth of equal values the map is the share of pixels at or below a value. */
static void test_clahe_closed_form(void **state)
{
    (void)state;
    memset(image, 0, sizeof image);
    pl_clahe(8, 8, 0.01, image, room, out);
    for (int i = 0; i < 64; i++) assert_true(out[i] == 0); /* one value */
    pl_clahe(1, 1, 0.01, image, room, out);
    assert_true(out[0] == 0);
    for (int i = 0; i < 32 * 32; i++) image[i] = (float)(i % 4 / 2); /* each tile of 4 x 4 has as many of each */
    pl_clahe(32, 32, 0, image, room, out);
    for (int i = 0; i < 32 * 32; i++) assert_true(out[i] == image[i]);
}

/* ---- the flat field ---- */

static void test_median(void **state)
{
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        const int n = 1 + (int)scratch_next(&numbers, 50);
        for (int i = 0; i < n; i++) image[i] = out[i] = (next_unit() - 0.5f) * (float)(1 << scratch_next(&numbers, 20));
        for (int i = 1; i < n; i++) /* sorted by insertion */
            for (int j = i; j && out[j - 1] > out[j]; j--) {
                const float larger = out[j - 1];
                out[j - 1] = out[j], out[j] = larger;
            }
        assert_true(pl_median_f32(image, (uint64_t)n) == ((double)out[(n - 1) / 2] + (double)out[n / 2]) / 2);
    }
}

static void test_flat_field(void **state)
{
    enum { N = 6 };
    const float vignette[N] = {1, 2, 4, 8, 16, 1e-4f};
    float frame[N], gain[N];
    pl_flat_field f;
    pl_error err = {0};
    (void)state;
    assert_true(pl_flat_field_bytes(N) <= sizeof room);
    pl_flat_field_begin(&f, N, room);
    for (int i = 0; i < 130; i++) { /* the frames behind the hundredth would change it */
        for (int k = 0; k < N; k++) frame[k] = i < 100 ? vignette[k] * (i % 2 ? 0.5f : 1.5f) : 1e6f;
        if (i == 7) frame[1] = NAN, frame[2] = INFINITY;
        if (i < 100) frame[4] = NAN;
        if (i == 8) frame[1] *= 1 / 1.5f, frame[2] *= 1 / 1.5f; /* the mean of the 99 others is again the vignette */
        pl_flat_field_add(&f, frame);
    }
    assert_int_equal(pl_flat_field_finish(&f, gain, &err), PL_OK);
    const float want[N] = {2, 1, .5f, .25f, 1, 2000}; /* median 2 of 1, 2, 4, 8, 1e-4; none; 2 / 1e-3 */
    for (int k = 0; k < N; k++) assert_true(fabsf(gain[k] - want[k]) < 1e-2f * want[k]);
    pl_flat_field_begin(&f, N, room);
    for (int k = 0; k < N; k++) frame[k] = NAN;
    pl_flat_field_add(&f, frame);
    assert_int_equal(pl_flat_field_finish(&f, gain, &err), PL_OK);
    for (int k = 0; k < N; k++) assert_true(gain[k] == 1);
    for (int k = 0; k < N; k++) frame[k] = -3;
    pl_flat_field_begin(&f, N, room);
    pl_flat_field_add(&f, frame);
    assert_int_equal(pl_flat_field_finish(&f, gain, &err), PL_E_DATA);
    assert_says(&err, "the first 1 frames have a median of -3");
}

/* ---- frames ---- */

static pl_preprocess rules(int height, int width, bool zscore)
{
    return (pl_preprocess){(uint32_t)height, (uint32_t)width, 0.01, zscore};
}

/* The statistics from the end to the beginning. */
static void check_scores(int n, const float *unit, const float *scores, const uint8_t *damaged)
{
    double sum = 0, squares = 0;
    int whole = 0;
    for (int i = n; i-- > 0;)
        if (!damaged[i]) sum += (double)unit[i], whole++;
    for (int i = n; i-- > 0;)
        if (!damaged[i]) squares += pow((double)unit[i] - sum / whole, 2);
    const double deviation = sqrt(squares / whole) + 1e-8;
    for (int i = 0; i < n; i++) {
        const double want = damaged[i] ? 0 : ((double)unit[i] - sum / whole) / deviation;
        if (!(fabs((double)scores[i] - want) < 1e-5 * (1 + fabs(want)))) fail_msg("score %d, seed %" PRIu64, i, seed);
        if (damaged[i]) assert_true(fabs((double)unit[i] - sum / whole) < 1e-6);
    }
}

/* The whole road with damage in the frame and in the gain, against CLAHE of what a plain loop makes of it. */
static void test_frames(void **state)
{
    static float raw[PIXELS_MAX], gain[PIXELS_MAX], unit[PIXELS_MAX];
    static uint8_t damaged[PIXELS_MAX];
    (void)state;
    for (int turn = 0; turn < 30; turn++) {
        const int height = 8 + (int)scratch_next(&numbers, 60), width = 8 + (int)scratch_next(&numbers, 60);
        const int n = height * width, with_gain = (int)scratch_next(&numbers, 2);
        double sum = 0, low = INFINITY, high = -INFINITY;
        uint64_t bad = 0;
        for (int i = 0; i < n; i++) {
            gain[i] = 0.5f + next_unit(), raw[i] = 250 + 50 * next_unit();
            if (scratch_next(&numbers, 20) == 0) raw[i] = scratch_next(&numbers, 2) ? NAN : -INFINITY;
            if (scratch_next(&numbers, 50) == 0) raw[i] = 3e38f, gain[i] = with_gain ? 2 : 1;
            const float v = with_gain ? raw[i] * gain[i] : raw[i];
            damaged[i] = !isfinite(v);
            if (!with_gain && raw[i] > 1e30f) raw[i] = NAN, damaged[i] = 1;
            bad += damaged[i];
            if (damaged[i]) continue;
            sum += (double)v, low = fmin(low, (double)v), high = fmax(high, (double)v);
        }
        for (int i = 0; i < n; i++) {
            const float v = with_gain ? raw[i] * gain[i] : raw[i];
            image[i] = (float)((damaged[i] ? (double)(float)(sum / (double)(n - (int)bad)) - low : (double)v - low) /
                               (high - low + 1e-8));
        }
        pl_clahe((uint32_t)height, (uint32_t)width, 0.01, image, room, expected);
        const pl_preprocess to_unit = rules(height, width, false), to_scores = rules(height, width, true);
        assert_true(pl_preprocess_scratch_bytes(&to_unit) <= sizeof room);
        assert_int_equal(pl_preprocess_frame(&to_unit, raw, with_gain ? gain : NULL, room, unit), bad);
        for (int i = 0; i < n; i++)
            if (!damaged[i] && !(fabsf(unit[i] - expected[i]) < 1e-6f)) fail_msg("pixel %d, seed %" PRIu64, i, seed);
        memcpy(out, raw, sizeof out); /* in place */
        assert_int_equal(pl_preprocess_frame(&to_scores, out, with_gain ? gain : NULL, room, out), bad);
        check_scores(n, unit, out, damaged);
    }
}

static void test_useless_frames(void **state)
{
    const pl_preprocess both[] = {rules(16, 16, false), rules(16, 16, true)};
    (void)state;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 256; i++) image[i] = NAN;
        assert_int_equal(pl_preprocess_frame(&both[k], image, NULL, room, out), 256);
        for (int i = 0; i < 256; i++) assert_true(out[i] == 0);
        for (int i = 0; i < 256; i++) image[i] = 7;
        assert_int_equal(pl_preprocess_frame(&both[k], image, NULL, room, out), 0);
        for (int i = 0; i < 256; i++) assert_true(out[i] == 0);
        for (int i = 0; i < 255; i++) image[i] = INFINITY; /* one pixel is left */
        assert_int_equal(pl_preprocess_frame(&both[k], image, NULL, room, out), 255);
        for (int i = 0; i < 256; i++) assert_true(out[i] == 0);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clahe),  cmocka_unit_test(test_clahe_closed_form),
        cmocka_unit_test(test_median), cmocka_unit_test(test_flat_field),
        cmocka_unit_test(test_frames), cmocka_unit_test(test_useless_frames),
    };
    seed = test_seed_said(argc, argv);
    numbers = (scratch_random){.key = pl_philox_init(seed, 15)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
