/* Pictures made as large as a model wants them, against the definition, pixel by pixel in double precision. */
#include "unit/data/scratch.h"

#include <math.h>

#include "base/philox.h"
#include "data/infer/picture_fit.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIDE_MAX = 90, MADE_MAX = 24 };

static uint64_t seed;

static double triangle(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }

/* Where the pixel of the result lies in a picture `from` long of which the shorter side is `shorter`, and how wide the
 * triangle around it is. */
static double place_of(uint32_t to, uint32_t from, uint32_t shorter, uint32_t size, double *width)
{
    const double grown = floor((double)size * from / shorter), scale = from / grown;
    *width = scale > 1 ? scale : 1;
    return ((double)to + rint((grown - size) / 2) + 0.5) * scale;
}

static double plain(const uint8_t *rgb, uint32_t w, uint32_t h, uint32_t size, uint32_t x, uint32_t y, int c)
{
    const uint32_t shorter = w < h ? w : h;
    double wide, high, sum = 0, all = 0;
    const double cx = place_of(x, w, shorter, size, &wide), cy = place_of(y, h, shorter, size, &high);
    for (uint32_t j = 0; j < h; j++)
        for (uint32_t i = 0; i < w; i++) {
            const double by = triangle((j + 0.5 - cy) / high) * triangle((i + 0.5 - cx) / wide);
            sum += by * rgb[3 * (j * w + i) + (uint32_t)c];
            all += by;
        }
    return sum / all;
}

/* The file's rows, w wide and h of them. */
static void fit_turned(const uint8_t *rgb, uint32_t w, uint32_t h, uint32_t orientation, uint32_t size,
                       uint32_t channels, uint8_t *to)
{
    pl_picture_fit f;
    pl_error err = {0};
    assert_int_equal(pl_picture_fit_begin(&f, w, h, orientation, size, channels, &err), PL_OK);
    for (uint32_t y = 0; y < h; y++) pl_picture_fit_row(&f, rgb + (size_t)3 * y * w);
    pl_picture_fit_take(&f, to);
    pl_picture_fit_end(&f);
}

static void fit(const uint8_t *rgb, uint32_t w, uint32_t h, uint32_t size, uint32_t channels, uint8_t *to)
{
    fit_turned(rgb, w, h, 1, size, channels, to);
}

static uint32_t chosen(uint32_t k, uint32_t below)
{
    const pl_philox p = pl_philox_init(seed, 7);
    uint32_t four[4];
    pl_philox_block(&p, 0, k, 0, four);
    return four[0] % below;
}

static void test_random(void **state)
{
    static uint8_t rgb[3 * SIDE_MAX * SIDE_MAX], got[3 * MADE_MAX * MADE_MAX], grey[MADE_MAX * MADE_MAX];
    (void)state;
    for (uint32_t k = 0; k < 40; k++) {
        const uint32_t w = 1 + chosen(4 * k, SIDE_MAX), h = 1 + chosen(4 * k + 1, SIDE_MAX);
        const uint32_t size = 1 + chosen(4 * k + 2, MADE_MAX);
        for (uint32_t i = 0; i < 3 * w * h; i++) rgb[i] = (uint8_t)chosen(1000 + i, 256);
        fit(rgb, w, h, size, 3, got);
        fit(rgb, w, h, size, 1, grey);
        for (uint32_t y = 0; y < size; y++)
            for (uint32_t x = 0; x < size; x++) {
                double of[3];
                for (int c = 0; c < 3; c++) {
                    of[c] = plain(rgb, w, h, size, x, y, c);
                    assert_true(fabs(got[((uint32_t)c * size + y) * size + x] - of[c]) < 0.51);
                }
                assert_true(fabs(grey[y * size + x] - (0.299 * of[0] + 0.587 * of[1] + 0.114 * of[2])) < 0.51);
            }
    }
}

/* The file of a picture that is seen w × h: where its rows and columns begin is Exif's definition of Orientation. */
static void lay_down(const uint8_t *seen, uint32_t w, uint32_t h, uint32_t orientation, uint8_t *file)
{
    static const char row_0[] = " TTBBLRRL", column_0[] = " LRRLTTBB";
    const bool rows_are_columns = orientation >= 5;
    const uint32_t rows = rows_are_columns ? w : h, columns = rows_are_columns ? h : w;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            const uint32_t down = strchr("TL", row_0[orientation]) ? r : rows - 1 - r;
            const uint32_t along = strchr("TL", column_0[orientation]) ? c : columns - 1 - c;
            const uint32_t x = rows_are_columns ? down : along, y = rows_are_columns ? along : down;
            memcpy(file + (size_t)3 * (r * columns + c), seen + (size_t)3 * (y * w + x), 3);
        }
}

static void test_orientations(void **state)
{
    static uint8_t seen[3 * SIDE_MAX * SIDE_MAX], file[sizeof seen], got[3 * MADE_MAX * MADE_MAX];
    (void)state;
    for (uint32_t k = 0; k < 24; k++) {
        const uint32_t w = 1 + chosen(4 * k, SIDE_MAX), h = 1 + chosen(4 * k + 1, SIDE_MAX), orientation = 1 + k % 8;
        const uint32_t size = 1 + chosen(4 * k + 2, MADE_MAX);
        for (uint32_t i = 0; i < 3 * w * h; i++) seen[i] = (uint8_t)chosen(1000 + i, 256);
        lay_down(seen, w, h, orientation, file);
        fit_turned(file, orientation >= 5 ? h : w, orientation >= 5 ? w : h, orientation, size, 3, got);
        for (uint32_t i = 0; i < size * size; i++)
            for (int c = 0; c < 3; c++)
                assert_true(fabs(got[(uint32_t)c * size * size + i] - plain(seen, w, h, size, i % size, i / size, c)) <
                            0.51);
    }
}

static void test_same_size(void **state)
{
    uint8_t rgb[3 * 5 * 5], got[3 * 5 * 5];
    (void)state;
    for (uint32_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)chosen(i, 256);
    fit(rgb, 5, 5, 5, 3, got);
    for (uint32_t i = 0; i < 25; i++)
        for (uint32_t c = 0; c < 3; c++) assert_int_equal(got[c * 25 + i], rgb[3 * i + c]);
}

static void test_no_pixels(void **state)
{
    pl_picture_fit f;
    pl_error err = {0};
    (void)state;
    assert_int_equal(pl_picture_fit_begin(&f, 0, 3, 1, 8, 3, &err), PL_E_DATA);
    pl_picture_fit_end(&f);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_orientations),
                                       cmocka_unit_test(test_same_size), cmocka_unit_test(test_no_pixels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
