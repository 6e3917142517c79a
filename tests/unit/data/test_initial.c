/* Initial fields: random ones against the definition by their spectrum (a discrete Fourier transform of all of it), and
 * their covariance against its closed form; stripes and blobs number by number; the same whatever was made before; the
 * shares of the kinds; what is refused. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "data/fields/initial.h"
#include "support/program.h"
#include "support/seed.h"

enum { SIDE_MAX = 64, CHANNELS = 3, ELEMS_MAX = SIDE_MAX * SIDE_MAX * CHANNELS };

static uint64_t seed;
static float field[ELEMS_MAX + 1], again[ELEMS_MAX];
static double scratch[4 * SIDE_MAX * SIDE_MAX];
static const double turn = 6.283185307179586476925;

static pl_initial fields_of(int64_t height, int64_t width)
{
    pl_initial f = {height, width, CHANNELS, seed, PL_INITIAL_DOCUMENTED};
    memcpy(f.choice, pl_initial_documented, sizeof pl_initial_documented);
    return f;
}

/* That one choice alone. */
static pl_initial only(int64_t height, int64_t width, const char *name)
{
    pl_initial f = fields_of(height, width);
    for (uint32_t i = 0; i < f.choices; i++)
        if (strcmp(f.choice[i].name, name) == 0) f.choice[0] = f.choice[i];
    assert_string_equal(f.choice[0].name, name);
    f.choices = 1, f.choice[0].weight = 1;
    return f;
}

static void fill(const pl_initial *f, uint32_t operator_number, uint32_t realisation, float *out)
{
    pl_error err = {0};
    if (pl_initial_check(f, &err) != PL_OK) fail_msg("%s", err.text);
    assert_true(pl_initial_scratch_bytes(f) <= sizeof scratch);
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++) scratch[i] = NAN;
    pl_initial_fill(f, operator_number, realisation, scratch, out);
}

/* ---- random fields ---- */

static void transform(double complex *plane, int64_t n, int64_t apart, int64_t lines, int64_t between, int sign)
{
    double complex line[SIDE_MAX], root[SIDE_MAX];
    for (int64_t k = 0; k < n; k++) root[k] = cexp(sign * I * turn * (double)k / (double)n);
    for (int64_t l = 0; l < lines; l++) {
        for (int64_t i = 0; i < n; i++) line[i] = plane[l * between + i * apart];
        for (int64_t k = 0; k < n; k++) {
            double complex sum = 0;
            for (int64_t i = 0; i < n; i++) sum += line[i] * root[k * i % n];
            plane[l * between + k * apart] = sum;
        }
    }
}

/* k² of mode i, in radians a height. */
static double wave_number_squared(const pl_initial *f, int64_t i)
{
    int64_t ky = i / f->width, kx = i % f->width;
    if (2 * ky >= f->height) ky -= f->height;
    if (2 * kx >= f->width) kx -= f->width;
    double y = turn * (double)ky, x = turn * (double)kx * (double)f->height / (double)f->width;
    return x * x + y * y;
}

static void scale_to(double *x, int64_t n, double variance)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += x[i] * x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) x[i] *= sqrt(variance / squares);
}

/* White numbers, their modes times √power without that of frequency 0, back, scaled; summed over the lengths. */
static void expected_random(const pl_initial *f, uint64_t sample, int64_t channel, double *out)
{
    enum { N = 16 * 12 };
    double complex plane[N];
    double one[N];
    float normal;
    int64_t n = f->height * f->width;
    pl_philox p = pl_philox_init(f->seed, pl_stream_id("initial_field"));
    memset(out, 0, (size_t)n * sizeof *out);
    for (uint32_t s = 0; s < f->choice[0].lengths; s++) {
        for (int64_t i = 0; i < n; i++) {
            uint64_t e = (uint64_t)(channel * n + i);
            pl_philox_normal_f32(&p, 1 + s, sample, e, e + 1, &normal);
            plane[i] = normal;
        }
        transform(plane, f->width, 1, f->height, f->width, -1);
        transform(plane, f->height, f->width, f->width, 1, -1);
        double l = f->choice[0].length[s];
        for (int64_t i = 0; i < n; i++) plane[i] *= sqrt(exp(-wave_number_squared(f, i) * l * l / 2));
        plane[0] = 0;
        transform(plane, f->width, 1, f->height, f->width, 1);
        transform(plane, f->height, f->width, f->width, 1, 1);
        for (int64_t i = 0; i < n; i++) one[i] = creal(plane[i]);
        scale_to(one, n, 1);
        for (int64_t i = 0; i < n; i++) out[i] += one[i];
    }
    scale_to(out, n, f->choice[0].variance);
}

static void random_fields_have_their_spectrum(void **state)
{
    (void)state;
    double want[16 * 12];
    for (int k = 0; k < 8; k++)
        for (int shape = 0; shape < 3; shape++) {
            pl_initial f = only(shape == 1 ? 12 : 16,
                                shape == 2   ? 12
                                : shape == 1 ? 16
                                             : 11,
                                pl_initial_documented[k].name);
            field[f.height * f.width * CHANNELS] = 99;
            fill(&f, 3, UINT32_MAX, field);
            assert_true(field[f.height * f.width * CHANNELS] == 99);
            for (int64_t c = 0; c < CHANNELS; c++) {
                expected_random(&f, 3ull << 32 | UINT32_MAX, c, want);
                for (int64_t i = 0; i < f.height * f.width; i++)
                    if (fabs(want[i] - (double)field[i * CHANNELS + c]) > 3e-6)
                        fail_msg("%s at %d: %.9g, expected %.9g", f.choice[0].name, (int)i,
                                 (double)field[i * CHANNELS + c], want[i]);
            }
        }
}

static void random_fields_have_their_variance(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        pl_initial f = only(SIDE_MAX, SIDE_MAX, pl_initial_documented[k].name);
        fill(&f, (uint32_t)k, 0, field);
        for (int c = 0; c < CHANNELS; c++) {
            double mean = 0, squares = 0, n = SIDE_MAX * SIDE_MAX;
            for (int i = 0; i < SIDE_MAX * SIDE_MAX; i++) mean += field[i * CHANNELS + c] / n;
            for (int i = 0; i < SIDE_MAX * SIDE_MAX; i++) squares += pow(field[i * CHANNELS + c] - mean, 2) / n;
            assert_true(fabs(mean) < 1e-6 && fabs(squares / f.choice[0].variance - 1) < 1e-6);
        }
    }
}

/* The covariance at distance r of many fields: exp(−r²/2l²) less what the missing mean takes, 2π·l² or so. */
static void random_fields_have_their_length(void **state)
{
    (void)state;
    enum { FIELDS = 24 };
    pl_initial f = only(SIDE_MAX, SIDE_MAX, "gaussian_random_field_v2");
    double l = f.choice[0].length[0], mean = turn * l * l, sum[9] = {0};
    for (uint32_t k = 0; k < FIELDS; k++) {
        fill(&f, k, 1, field);
        for (int r = 0; r < 9; r++)
            for (int i = 0; i < SIDE_MAX * SIDE_MAX; i++)
                for (int c = 0; c < CHANNELS; c++) {
                    int x = (i % SIDE_MAX + r) % SIDE_MAX, y = i / SIDE_MAX;
                    sum[r] += (double)field[i * CHANNELS + c] * field[(y * SIDE_MAX + x) * CHANNELS + c];
                }
    }
    for (int r = 0; r < 9; r++) {
        double distance = (double)r / SIDE_MAX, want = exp(-distance * distance / (2 * l * l));
        want = (want - mean) / (1 - mean);
        assert_true(fabs(sum[r] / (FIELDS * SIDE_MAX * SIDE_MAX * CHANNELS) - want) < 0.2);
    }
}

/* ---- stripes and blobs ---- */

static void uniforms(const pl_initial *f, uint64_t sample, uint32_t block, double u[3])
{
    uint32_t bits[4];
    pl_philox p = pl_philox_init(f->seed, pl_stream_id("initial_field"));
    pl_philox_block(&p, 1, sample, block, bits);
    for (int i = 0; i < 3; i++) u[i] = bits[i] / 0x1p32;
}

static void check_pixels(const pl_initial *f, const double *want)
{
    for (int64_t i = 0; i < f->height * f->width * CHANNELS; i++) assert_true(fabs(want[i] - (double)field[i]) < 4e-6);
}

static void stripes(void **state)
{
    (void)state;
    static double want[48 * 40 * CHANNELS];
    pl_initial f = only(48, 40, "structured");
    for (uint32_t k = 0; k < 10; k++) {
        fill(&f, k, 2, field);
        memset(want, 0, sizeof want);
        for (uint32_t i = 0; i < 3; i++) {
            double u[3];
            uniforms(&f, (uint64_t)k << 32 | 2, i, u);
            double frequency = 1 + 5 * u[0], angle = turn * u[1];
            int channel = u[2] < 1.0 / 3 ? 0 : u[2] < 2.0 / 3 ? 1 : 2;
            for (int p = 0; p < 48 * 40; p++)
                want[p * CHANNELS + channel] +=
                    sin(turn * frequency * (p % 40 * cos(angle) + p / 40 * sin(angle)) / 48);
        }
        check_pixels(&f, want);
    }
}

static void blobs(void **state)
{
    (void)state;
    static double want[48 * 40 * CHANNELS];
    pl_initial f = only(48, 40, "localized");
    pl_philox p = pl_philox_init(f.seed, pl_stream_id("initial_field"));
    for (uint32_t k = 0; k < 10; k++) {
        float amplitude[5 * CHANNELS];
        fill(&f, 1, k, field);
        memset(want, 0, sizeof want);
        pl_philox_normal_f32(&p, 2, 1ull << 32 | k, 0, 5 * CHANNELS, amplitude);
        for (uint32_t i = 0; i < 5; i++) {
            double u[3];
            uniforms(&f, 1ull << 32 | k, i, u);
            double w = (5 + 10 * u[2]) * 48 / 128;
            for (int e = 0; e < 48 * 40 * CHANNELS; e++) {
                double dx = e / CHANNELS % 40 - 40 * u[0], dy = e / CHANNELS / 40 - 48 * u[1];
                want[e] += 2 * (double)amplitude[i * CHANNELS + (uint32_t)(e % CHANNELS)] *
                           exp(-0.5 * (dx * dx + dy * dy) / (w * w));
            }
        }
        check_pixels(&f, want);
    }
}

/* ---- all ---- */

static void fields_do_not_know_each_other(void **state)
{
    (void)state;
    pl_initial f = fields_of(20, 20);
    size_t bytes = 20 * 20 * CHANNELS * sizeof(float);
    for (uint32_t k = 0; k < 30; k++) {
        fill(&f, k, 5, again);
        fill(&f, k + 1, 5, field);
        assert_memory_not_equal(again, field, bytes);
        fill(&f, k, 6, field);
        assert_memory_not_equal(again, field, bytes);
        fill(&f, k, 5, field);
        assert_memory_equal(again, field, bytes);
        f.seed++;
        fill(&f, k, 5, field);
        f.seed--;
        assert_memory_not_equal(again, field, bytes);
    }
}

/* Each kind's share lies within seven standard deviations of its weight; one without weight never comes. */
static void kinds_have_their_shares(void **state)
{
    (void)state;
    enum { DRAWS = 40000 };
    int count[PL_INITIAL_CHOICES] = {0};
    pl_initial f = fields_of(8, 8);
    f.choice[2].weight = 0, f.choice[9].weight += 0.05;
    for (uint32_t i = 0; i < DRAWS; i++) count[pl_initial_pick(&f, i / 4, i % 4)]++;
    for (uint32_t k = 0; k < f.choices; k++) {
        double w = f.choice[k].weight;
        assert_true(fabs(count[k] - DRAWS * w) <= 7 * sqrt(DRAWS * w * (1 - w)));
    }
}

static void refused(pl_initial f, const char *words)
{
    pl_error err = {0};
    assert_int_equal(pl_initial_check(&f, &err), PL_E_CONFIG);
    if (!strstr(err.text, words)) fail_msg("\"%s\" lacks \"%s\"", err.text, words);
}

static void what_makes_no_field_is_refused(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_initial f = fields_of(8, 8), g = f;
    assert_int_equal(pl_initial_check(&f, &err), PL_OK);
    g.choice[8].weight = 0.2, refused(g, "sum to 0.95");
    g.choices = 0, refused(g, "sum to 0");
    g = f, g.choice[1].weight = -0.05, refused(g, "gaussian_random_field_v1: its weight is -0.05");
    g = f, g.choice[1].weight = NAN, refused(g, "its weight is nan");
    g = f, g.choice[1].variance = 0, refused(g, "its variance is 0");
    g = f, g.choice[5].length[1] = 1.5, refused(g, "multiscale_grf_low: a length scale is 1.5");
    g = f, g.choice[5].length[2] = 0, refused(g, "a length scale is 0");
    g = f, g.choice[5].lengths = 9, refused(g, "has 9 length scales");
    g = f, g.choice[8].count = 0, refused(g, "structured has nothing in it");
    g = f, g.choice[9].low = 16, refused(g, "localized: widths from 16 to 15");
    g = f, g.choice[8].low = 0, refused(g, "structured: frequencies from 0 to 6");
    g = f, g.width = 1, refused(g, "8 by 1 pixels");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_fields_have_their_spectrum),
        cmocka_unit_test(random_fields_have_their_variance),
        cmocka_unit_test(random_fields_have_their_length),
        cmocka_unit_test(stripes),
        cmocka_unit_test(blobs),
        cmocka_unit_test(fields_do_not_know_each_other),
        cmocka_unit_test(kinds_have_their_shares),
        cmocka_unit_test(what_makes_no_field_is_refused),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
