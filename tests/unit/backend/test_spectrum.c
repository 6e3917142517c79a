/* Low Fourier modes there and back at every level against the double sum, term by term; an image that has no others
 * comes back; there and back are adjoint; the products of each mode against complex numbers. The same bits for any
 * team, in place, for a sample alone and, of what is added to weights, for samples in two calls. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/calls.h"
#include "base/philox.h"
#include "support/program.h"
#include "support/seed.h"

enum { SAMPLES = 3, ELEMS = SAMPLES * 17 * 16 * 18, THREADS = 4 };

typedef struct size {
    int64_t height, width, channels, modes;
} size;

/* Odd and even, the least, all modes there are, more channels than fill a vector. */
static const size sizes[] = {{2, 1, 1, 1},   {3, 2, 2, 1},    {8, 8, 5, 4},   {8, 6, 16, 4}, {9, 7, 18, 4},
                             {17, 16, 3, 8}, {13, 12, 17, 6}, {16, 15, 4, 7}, {5, 16, 18, 2}};
enum { SIZES = sizeof sizes / sizeof *sizes };
static const int threads[THREADS] = {1, 2, 3, 16};
static const double turn = 6.283185307179586476925;

static uint64_t seed;
static float image[ELEMS], back[ELEMS], spectrum[ELEMS], first[ELEMS];
static _Alignas(64) unsigned char workspace[1 << 18];

static void normals(uint64_t number, int64_t count, float *out)
{
    pl_philox p = pl_philox_init(seed, 2);
    assert_true(count <= ELEMS);
    pl_philox_normal_f32(&p, 0, number, 0, (uint64_t)count, out);
}

static pl_spectrum_call call_of(const size *s, int factors)
{
    return (pl_spectrum_call){SAMPLES, s->height, s->width, s->channels, s->modes,
                              factors, image,     NULL,     spectrum,    PL_REAL_F32};
}

static int64_t image_elems(const pl_spectrum_call *c) { return c->samples * c->height * c->width * c->channels; }
static int64_t spectrum_elems(const pl_spectrum_call *c) { return c->samples * 4 * c->modes * c->modes * c->channels; }

static void there(const pl_spectrum_call *c, pl_team team)
{
    assert_true(pl_spectrum_workspace_bytes(c, team) <= sizeof workspace);
    memset(workspace, 0xFF, sizeof workspace);
    pl_spectrum_exec(c, workspace, team);
}

static void back_again(const pl_spectrum_call *c, pl_team team)
{
    memset(workspace, 0xFF, sizeof workspace);
    pl_spectrum_back_exec(c, workspace, team);
}

/* exp(2πi(kh/H + lw/W)) of row r and column l. */
static double complex wave(const pl_spectrum_call *c, int64_t r, int64_t l, int64_t h, int64_t w)
{
    int64_t k = r < c->modes ? r : r - 2 * c->modes;
    return cexp(I * turn * ((double)(k * h) / (double)c->height + (double)(l * w) / (double)c->width));
}

static double factor(const pl_spectrum_call *c, int64_t l)
{
    if (!c->inverse_factors) return 1;
    return (l == 0 || 2 * l == c->width ? 1.0 : 2.0) / (double)(c->height * c->width);
}

static int64_t pixel(const pl_spectrum_call *c, int64_t s, int64_t h, int64_t w, int64_t ch)
{
    return ((s * c->height + h) * c->width + w) * c->channels + ch;
}

static int64_t mode(const pl_spectrum_call *c, int64_t s, int64_t r, int64_t l, int64_t ch)
{
    return ((s * 2 * c->modes + r) * c->modes + l) * 2 * c->channels + ch;
}

static void check_close(const pl_spectrum_call *c, double have, double want, double size_of_terms)
{
    if (fabs(have - want) > 3e-7 * size_of_terms)
        fail_msg("%d x %d, %d modes: %.9g, expected %.9g", (int)c->height, (int)c->width, (int)c->modes, have, want);
}

/* Of one sample and channel: others are the same arithmetic in other places, which the adjoint holds together. */
static void check_there(const pl_spectrum_call *c, int64_t s, int64_t ch)
{
    for (int64_t r = 0; r < 2 * c->modes; r++)
        for (int64_t l = 0; l < c->modes; l++) {
            double complex sum = 0;
            double terms = 0;
            for (int64_t h = 0; h < c->height; h++)
                for (int64_t w = 0; w < c->width; w++) {
                    double x = pl_real_get(c->type, c->image, pixel(c, s, h, w, ch)) * factor(c, l);
                    sum += x * conj(wave(c, r, l, h, w)), terms += fabs(x);
                }
            check_close(c, c->spectrum[mode(c, s, r, l, ch)], creal(sum), terms);
            check_close(c, c->spectrum[mode(c, s, r, l, ch) + c->channels], cimag(sum), terms);
        }
}

static void check_back(const pl_spectrum_call *c, int64_t s, int64_t ch, double rounding)
{
    for (int64_t h = 0; h < c->height; h++)
        for (int64_t w = 0; w < c->width; w++) {
            double sum = c->add ? pl_real_get(c->type, c->add, pixel(c, s, h, w, ch)) : 0, terms = fabs(sum);
            for (int64_t r = 0; r < 2 * c->modes; r++)
                for (int64_t l = 0; l < c->modes; l++) {
                    const float *x = &c->spectrum[mode(c, s, r, l, ch)];
                    double complex value = (x[0] + I * (double)x[c->channels]) * factor(c, l);
                    sum += creal(value * wave(c, r, l, h, w)), terms += cabs(value);
                }
            check_close(c, pl_real_get(c->type, c->image, pixel(c, s, h, w, ch)), sum, terms + rounding * fabs(sum));
        }
}

static void for_each_case(void (*check)(const pl_spectrum_call *, int t, pl_team))
{
    for (int i = 0; i < SIZES; i++)
        for (int factors = 0; factors < 2; factors++)
            for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
                for (int t = 0; t < THREADS; t++) {
                    pl_spectrum_call c = call_of(&sizes[i], factors);
                    check(&c, t, (pl_team){threads[t], (pl_isa)isa});
                }
}

static void modes_of_case(const pl_spectrum_call *c, int t, pl_team team)
{
    normals(0, image_elems(c), image);
    spectrum[spectrum_elems(c)] = 99;
    there(c, team);
    assert_true(spectrum[spectrum_elems(c)] == 99);
    if (t == 0) {
        check_there(c, SAMPLES - 1, c->channels - 1), check_there(c, 0, 0);
        memcpy(first, spectrum, sizeof first);
    }
    assert_memory_equal(first, spectrum, (size_t)spectrum_elems(c) * sizeof(float));
}

static void image_of_case(const pl_spectrum_call *c, int t, pl_team team)
{
    pl_spectrum_call alone = *c;
    normals(1, spectrum_elems(c), spectrum);
    image[image_elems(c)] = 99;
    back_again(c, team);
    assert_true(image[image_elems(c)] == 99);
    if (t == 0) {
        check_back(c, SAMPLES - 1, c->channels - 1, 0), check_back(c, 0, 0, 0);
        memcpy(first, image, sizeof first);
    }
    assert_memory_equal(first, image, (size_t)image_elems(c) * sizeof(float));
    alone.samples = 1, alone.spectrum += spectrum_elems(c) / SAMPLES, alone.image = back;
    back_again(&alone, team);
    assert_memory_equal(first + image_elems(&alone), back, (size_t)image_elems(&alone) * sizeof(float));
}

static void modes_are_those_of_the_sum(void **state) { (void)state, for_each_case(modes_of_case); }
static void images_are_those_of_the_sum(void **state) { (void)state, for_each_case(image_of_case); }

/* To an image, in another's place or its own, in 16 bits too. */
static void images_are_added_to(void **state)
{
    (void)state;
    static uint16_t narrow[ELEMS], sum[ELEMS];
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
            pl_spectrum_call c = call_of(&sizes[4], 1);
            pl_team team = {2, (pl_isa)isa};
            void *to = type == PL_REAL_F32 ? (void *)image : sum, *from = type == PL_REAL_F32 ? (void *)back : narrow;
            size_t bytes = (size_t)(image_elems(&c) * pl_real_bytes((pl_real)type));
            normals(1, spectrum_elems(&c), spectrum);
            normals(2, image_elems(&c), image);
            for (int64_t i = 0; i < image_elems(&c); i++) pl_real_put((pl_real)type, from, i, image[i]);
            c.type = (pl_real)type, c.image = to, c.add = from;
            back_again(&c, team);
            check_back(&c, 1, 2, type == PL_REAL_F32 ? 0 : type == PL_REAL_BF16 ? 0x1p-8 / 3e-7 : 0x1p-11 / 3e-7);
            c.image = from;
            back_again(&c, team);
            assert_memory_equal(to, from, bytes);
            c.image = from, there(&c, team);
            check_there(&c, 1, 2);
        }
}

/* An image of few modes is what its modes make; of any other image, what lies in them. */
static void what_has_no_other_modes_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            pl_team team = {2, (pl_isa)isa};
            pl_spectrum_call c = call_of(&sizes[i], 0), inverse = call_of(&sizes[i], 1);
            normals(3, image_elems(&c), image);
            /* row −m of column 0 has its other half among the rows that are not kept */
            there(&c, team);
            for (int64_t s = 0; s < SAMPLES; s++)
                for (int64_t l = 0; l < c.modes; l++)
                    for (int64_t ch = 0; ch < 2 * c.channels; ch++) spectrum[mode(&c, s, c.modes, l, ch)] = 0;
            back_again(&inverse, team);
            memcpy(back, image, sizeof back);
            there(&c, team), back_again(&inverse, team);
            for (int64_t e = 0; e < image_elems(&c); e++) assert_true(fabs((double)image[e] - (double)back[e]) < 5e-6);
        }
}

static double product_of(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)a[i] * b[i];
    return sum;
}

static void there_and_back_are_adjoint(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int factors = 0; factors < 2; factors++)
            for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
                pl_spectrum_call c = call_of(&sizes[i], factors);
                normals(4, image_elems(&c), image), normals(5, spectrum_elems(&c), first);
                there(&c, (pl_team){2, (pl_isa)isa});
                double one = product_of(spectrum, first, spectrum_elems(&c));
                double size_of_terms = sqrt(product_of(spectrum, spectrum, spectrum_elems(&c)) *
                                            product_of(first, first, spectrum_elems(&c)));
                c.image = back, c.spectrum = first;
                back_again(&c, (pl_team){3, (pl_isa)isa});
                assert_true(fabs(one - product_of(image, back, image_elems(&c))) < 1e-6 * size_of_terms);
            }
}

/* ---- a matrix a mode ---- */

enum { MODES = 5, PRODUCT_MAX = 1 << 13 };
static float x[PRODUCT_MAX], weight[PRODUCT_MAX], y[PRODUCT_MAX], before[PRODUCT_MAX];

static double complex number_at(const float *v, int64_t row, int64_t channels, int64_t c)
{
    return v[row * 2 * channels + c] + I * (double)v[(row * 2 + 1) * channels + c];
}

/* What pass `which` makes at (row, channel): row a sample's mode, or of the weights a mode's channel in. */
static double complex expected(const pl_spectral_linear *p, pl_spectral_pass which, int64_t row, int64_t c)
{
    double complex sum = which == PL_SPECTRAL_DW ? number_at(before, row, p->out, c) : 0;
    for (int64_t i = 0; i < (which == PL_SPECTRAL_DW ? p->samples : which == PL_SPECTRAL_DX ? p->out : p->in); i++)
        if (which == PL_SPECTRAL_FORWARD)
            sum += number_at(x, row, p->in, i) * number_at(weight, row % MODES * p->in + i, p->out, c);
        else if (which == PL_SPECTRAL_DX)
            sum += number_at(y, row, p->out, i) * conj(number_at(weight, row % MODES * p->in + c, p->out, i));
        else
            sum += conj(number_at(x, i * MODES + row / p->in, p->in, row % p->in)) *
                   number_at(y, i * MODES + row / p->in, p->out, c);
    return sum;
}

static void check_product(const pl_spectral_linear *p, pl_spectral_pass which)
{
    const float *made = which == PL_SPECTRAL_FORWARD ? y : which == PL_SPECTRAL_DX ? x : weight;
    int64_t rows = which == PL_SPECTRAL_DW ? MODES * p->in : p->samples * MODES;
    int64_t channels = which == PL_SPECTRAL_DX ? p->in : p->out;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < channels; c++)
            assert_true(cabs(number_at(made, r, channels, c) - expected(p, which, r, c)) < 2e-5);
    assert_true(made[rows * 2 * channels] == 99);
}

static void prepare_product(const pl_spectral_linear *p)
{
    int64_t xs = p->samples * MODES * 2 * p->in, ys = p->samples * MODES * 2 * p->out, ws = MODES * p->in * 2 * p->out;
    assert_true(xs < PRODUCT_MAX && ys < PRODUCT_MAX && ws < PRODUCT_MAX);
    normals(6, xs, x), normals(7, ys, y), normals(8, ws, weight);
    x[xs] = y[ys] = weight[ws] = 99;
    memcpy(before, weight, sizeof before);
}

static void products_at_every_level(void **state)
{
    (void)state;
    static const int64_t cases[][3] = {{1, 1, 1}, {6, 5, 18}, {4, 18, 5}, {9, 16, 16}, {3, 33, 2}};
    for (int i = 0; i < 5; i++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
            for (int pass = PL_SPECTRAL_FORWARD; pass <= PL_SPECTRAL_DW; pass++)
                for (int t = 0; t < THREADS; t++) {
                    pl_spectral_linear p = {cases[i][0], MODES, cases[i][1], cases[i][2], x, weight, y};
                    float *made = pass == PL_SPECTRAL_FORWARD ? y : pass == PL_SPECTRAL_DX ? x : weight;
                    prepare_product(&p);
                    pl_spectral_linear_exec(&p, (pl_spectral_pass)pass, (pl_team){threads[t], (pl_isa)isa});
                    if (t == 0) check_product(&p, (pl_spectral_pass)pass), memcpy(first, made, sizeof x);
                    assert_memory_equal(first, made, sizeof x);
                }
}

/* Samples in two calls: the same sums for the weights, each sample the same. */
static void products_do_not_know_the_batch(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int pass = PL_SPECTRAL_FORWARD; pass <= PL_SPECTRAL_DW; pass++) {
            pl_team team = {2, (pl_isa)isa};
            pl_spectral_linear p = {7, MODES, 6, 17, x, weight, y}, part = p;
            float *made = pass == PL_SPECTRAL_FORWARD ? y : pass == PL_SPECTRAL_DX ? x : weight;
            prepare_product(&p);
            pl_spectral_linear_exec(&p, (pl_spectral_pass)pass, team);
            memcpy(first, made, sizeof x);
            prepare_product(&p);
            part.samples = 2;
            pl_spectral_linear_exec(&part, (pl_spectral_pass)pass, team);
            part.samples = 5, part.x += 2 * MODES * 2 * 6, part.y += 2 * MODES * 2 * 17;
            pl_spectral_linear_exec(&part, (pl_spectral_pass)pass, team);
            assert_memory_equal(first, made, sizeof x);
        }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_those_of_the_sum),
        cmocka_unit_test(images_are_those_of_the_sum),
        cmocka_unit_test(images_are_added_to),
        cmocka_unit_test(what_has_no_other_modes_comes_back),
        cmocka_unit_test(there_and_back_are_adjoint),
        cmocka_unit_test(products_at_every_level),
        cmocka_unit_test(products_do_not_know_the_batch),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
