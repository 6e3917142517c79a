/* Pictures as a model sees them against plain arithmetic in f64, pixel by pixel; what is drawn, over many draws; codes
 * that are no picture. */
#include "unit/data/frame_file.h"

#include "data/clouds/augment.h"
#include "support/program.h"
#include "support/seed.h"

enum { PIXELS_MAX = 40 * 40, DRAWS = 20000 };

static scratch_random dice;

/* ---- pictures ---- */

static uint16_t random_code(pl_frames_form form)
{
    return (uint16_t)scratch_next(&dice, form == PL_FRAMES_F16 ? 0x3c01 : 256);
}

static double value_of(pl_frames_form form, uint16_t code)
{
    return form == PL_FRAMES_F16 ? (double)pl_f32_of_f16(code) : (double)code / 255;
}

static double mean_of(const double *x, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += x[i];
    return sum / n;
}

/* Contrast, brightness and clip; scores; flip; erasing: each by itself, as augment.h says it. */
static void reference(const pl_picture_rules *r, const pl_variation *v, const double *picture, double *out)
{
    const uint32_t n = r->height * r->width;
    double x[PIXELS_MAX], squares = 0;
    const double mean = mean_of(picture, n);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = picture[i];
        if (v->varies) x[i] = fmin(1, fmax(0, v->brightness * (mean + v->contrast * (picture[i] - mean))));
    }
    const double after = mean_of(x, n);
    for (uint32_t i = 0; i < n; i++) squares += (x[i] - after) * (x[i] - after) / n;
    for (uint32_t row = 0; row < r->height; row++)
        for (uint32_t column = 0; column < r->width; column++) {
            const uint32_t from = v->varies && v->flips ? r->width - 1 - column : column;
            const bool erased = v->varies && v->erases && row >= v->top && row < v->top + v->height &&
                                column >= v->left && column < v->left + v->width;
            const double y = x[row * r->width + from];
            out[row * r->width + column] = erased ? 0 : r->zscore ? (y - after) / (sqrt(squares) + 1e-8) : y;
        }
}

static void check_picture(pl_frames_form form, bool zscore, pl_variation v, uint32_t height, uint32_t width)
{
    const pl_picture_rules rules = {height, width, form, zscore};
    const uint32_t n = height * width, few = 1 + scratch_next(&dice, 40);
    static uint16_t code[PIXELS_MAX], kinds[40];
    static uint8_t narrow[PIXELS_MAX];
    static double picture[PIXELS_MAX], want[PIXELS_MAX];
    static float got[PIXELS_MAX + 1];
    void *scratch = malloc(pl_picture_scratch_bytes(form));
    memset(scratch, 0x5a, pl_picture_scratch_bytes(form));
    for (uint32_t i = 0; i < 40; i++) kinds[i] = random_code(form);
    for (uint32_t i = 0; i < n; i++) {
        code[i] = few > 30 ? random_code(form) : kinds[scratch_next(&dice, few)];
        narrow[i] = (uint8_t)code[i];
        picture[i] = value_of(form, code[i]);
    }
    got[n] = 12345;
    assert_true(pl_picture_make(&rules, &v, form == PL_FRAMES_F16 ? (void *)code : narrow, scratch, got));
    assert_true(got[n] == 12345); /* no further than the picture */
    reference(&rules, &v, picture, want);
    for (uint32_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= 3e-6 * (1 + fabs(want[i]))))
            fail_msg("pixel %u of %u x %u: %g, not %g", i, height, width, (double)got[i], want[i]);
    free(scratch);
}

static void pictures_are_as_said(void **state)
{
    (void)state;
    const pl_philox random = pl_philox_init(scratch_next(&dice, 1 << 30), 3);
    for (uint32_t k = 0; k < 400; k++) {
        const uint32_t height = 1 + scratch_next(&dice, 40), width = 1 + scratch_next(&dice, 40);
        const pl_frames_form form = k & 1 ? PL_FRAMES_F16 : PL_FRAMES_U8;
        const pl_variation none = {.varies = false, .flips = true, .erases = true, .height = 1, .width = 1};
        check_picture(form, k & 2, k & 4 ? pl_variation_draw(&random, k, height, width) : none, height, width);
    }
}

/* Even frames, whatever is done to them: scores of 0, never a number that is not finite. */
static void an_even_frame_has_no_scores(void **state)
{
    (void)state;
    uint8_t picture[12];
    float out[12];
    uint64_t scratch[2048];
    const pl_picture_rules rules = {3, 4, PL_FRAMES_U8, true};
    assert_true(pl_picture_scratch_bytes(PL_FRAMES_U8) <= sizeof scratch);
    for (uint32_t level = 0; level < 256; level++) {
        const pl_variation v = {.varies = level & 1, .contrast = 1.1, .brightness = 0.9};
        memset(picture, (int)level, sizeof picture);
        assert_true(pl_picture_make(&rules, &v, picture, scratch, out));
        for (uint32_t i = 0; i < 12; i++) assert_true(fabsf(out[i]) < 1e-5f);
    }
}

static void halves_outside_are_refused(void **state)
{
    (void)state;
    static const uint16_t bad[] = {0x3c01, 0x7c00, 0x7e00, 0x8000, 0xbc00, 0xffff};
    const pl_picture_rules rules = {2, 3, PL_FRAMES_F16, true};
    const pl_variation none = {.varies = false};
    float out[6];
    void *scratch = malloc(pl_picture_scratch_bytes(PL_FRAMES_F16));
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint16_t picture[6] = {0, 0x3c00, 0x3800, 1, 0x0400, 0x2000};
        assert_true(pl_picture_make(&rules, &none, picture, scratch, out));
        picture[i] = bad[i];
        assert_false(pl_picture_make(&rules, &none, picture, scratch, out));
    }
    free(scratch);
}

/* ---- what is drawn ---- */

static void is_inside(double x, double low, double high)
{
    if (!(x >= low && x <= high)) fail_msg("%g is not in [%g, %g]", x, low, high);
}

/* Sides are rounded, so a rectangle may be a little larger or smaller, and stand higher, than was drawn. */
static void check_rectangle(const pl_variation *v)
{
    const double area = (double)v->height * v->width, aspect = (double)v->height / v->width;
    is_inside(area, 0.02 * 440 * 640 * 0.98, 0.1 * 440 * 640 * 1.02);
    is_inside(aspect, 0.29, 3.4);
    assert_true(v->top + v->height <= 440 && v->left + v->width <= 640);
}

/* Means of so many draws stay within 8 of their deviations with any seed that will ever be tried. */
static void drawn_as_said(void **state)
{
    (void)state;
    const pl_philox random = pl_philox_init(scratch_next(&dice, 1 << 30), 4);
    double contrast = 0, brightness = 0, flips = 0, erases = 0, both = 0, log_aspect = 0, area = 0, low = 9, high = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const pl_variation v = pl_variation_draw(&random, i << 20, 440, 640);
        assert_true(v.varies);
        is_inside(v.contrast, 0.8, 1.2), is_inside(v.brightness, 0.8, 1.2);
        check_rectangle(&v);
        low = fmin(low, v.contrast), high = fmax(high, v.contrast);
        contrast += v.contrast / DRAWS, brightness += v.brightness / DRAWS;
        flips += (double)v.flips / DRAWS, erases += (double)v.erases / DRAWS,
            both += (double)(v.flips && v.erases) / DRAWS;
        log_aspect += log((double)v.height / v.width) / DRAWS, area += (double)v.height * v.width / DRAWS;
    }
    const double root = sqrt(DRAWS);
    is_inside(contrast, 1 - 8 * 0.1155 / root, 1 + 8 * 0.1155 / root);
    is_inside(brightness, 1 - 8 * 0.1155 / root, 1 + 8 * 0.1155 / root);
    is_inside(flips, 0.5 - 4 / root, 0.5 + 4 / root);
    is_inside(erases, 0.5 - 4 / root, 0.5 + 4 / root);
    is_inside(both, 0.25 - 3.5 / root, 0.25 + 3.5 / root);
    is_inside(log_aspect, (log(0.3) + log(3.3)) / 2 - 6 / root, (log(0.3) + log(3.3)) / 2 + 6 / root);
    is_inside(area, 0.06 * 440 * 640 * (1 - 4 / root), 0.06 * 440 * 640 * (1 + 4 / root));
    assert_true(low < 0.81 && high > 1.19);
}

static void rectangles_fit_any_frame(void **state)
{
    (void)state;
    const pl_philox random = pl_philox_init(scratch_next(&dice, 1 << 30), 5);
    for (uint64_t i = 0; i < 2000; i++) {
        const uint32_t height = 1 + scratch_next(&dice, 9), width = 1 + scratch_next(&dice, 200);
        const pl_variation v = pl_variation_draw(&random, i, height, width);
        assert_true(v.height >= 1 && v.width >= 1 && v.top + v.height <= height && v.left + v.width <= width);
    }
}

static void the_sun_is_flipped_too(void **state)
{
    (void)state;
    const pl_variation flipped = {.varies = true, .flips = true}, plain = {.varies = true},
                       off = {.varies = false, .flips = true};
    for (uint32_t i = 0; i < 3600; i++) {
        const double azimuth = i * 0.1, other = pl_variation_azimuth(&flipped, azimuth);
        assert_true(other >= 0 && other < 360);
        /* In degrees to the east and to the north: the mirror image. */
        assert_true(fabs(sin(azimuth * M_PI / 180) + sin(other * M_PI / 180)) < 1e-12);
        assert_true(fabs(cos(azimuth * M_PI / 180) - cos(other * M_PI / 180)) < 1e-12);
        assert_true(pl_variation_azimuth(&plain, azimuth) == azimuth && pl_variation_azimuth(&off, azimuth) == azimuth);
    }
    assert_true(pl_variation_azimuth(&flipped, 0) == 0 && pl_variation_azimuth(&flipped, 180) == 180);
}

PL_TEST_PROGRAM(argc, argv)
{
    dice.key = pl_philox_init(test_seed_said(argc, argv), 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_as_said),       cmocka_unit_test(an_even_frame_has_no_scores),
        cmocka_unit_test(halves_outside_are_refused), cmocka_unit_test(drawn_as_said),
        cmocka_unit_test(rectangles_fit_any_frame),   cmocka_unit_test(the_sun_is_flipped_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
