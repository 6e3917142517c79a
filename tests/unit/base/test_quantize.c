/* Eight bits for a number against ONNX's own example, and ranges against the numbers themselves and a divergence that
 * is written down the long way, as ONNX Runtime's calibrator has it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/quantize.h"
#include "support/program.h"

enum { MOST = 20000, LEVELS = 128 };
static float numbers[MOST];
static int64_t spread[PL_SPREAD_BINS];
static float limit;
static double scratch[PL_SPAN_SCRATCH];

/* ---- a number ---- */

/* The example of QuantizeLinear in ONNX's list of operators. */
static void as_onnx(void **state)
{
    (void)state;
    const float x[] = {0, 2, 3, 1000, -254, -1000};
    const uint8_t y[] = {128, 129, 130, 255, 1, 0};
    const pl_quantization q = {2, 128};
    for (size_t i = 0; i < sizeof y; i++) assert_int_equal(pl_quantize(q, x[i]), y[i]);
    assert_int_equal(pl_quantize(q, 1), 128); /* halves to even: 0.5, 2.5 */
    assert_int_equal(pl_quantize(q, 5), 130);
    assert_int_equal(pl_quantize(q, NAN), 0);
    assert_float_equal(pl_dequantize(q, 1), -254, 0);
}

static void of_a_range(void **state)
{
    (void)state;
    const pl_quantization q = pl_quantization_of(-1, 3), positive = pl_quantization_of(2, 5.1f);
    const pl_quantization negative = pl_quantization_of(-5.1f, -2), none = pl_quantization_of(0, 0);
    assert_float_equal(q.scale, 4.0 / 255, 1e-9);
    assert_int_equal(q.zero, 64); /* 63.75 */
    assert_int_equal(positive.zero, 0);
    assert_float_equal(positive.scale, 0.02, 1e-8);
    assert_int_equal(negative.zero, 255);
    assert_float_equal(none.scale, 1, 0);
    for (int i = 0; i < 256; i++) /* every one of the 256 comes back */
        assert_int_equal(pl_quantize(q, pl_dequantize(q, (uint8_t)i)), i);
    for (float x = -1; x <= 3; x += 0.001f)
        assert_true(fabsf(pl_dequantize(q, pl_quantize(q, x)) - x) <= 0.5001f * q.scale);
    const pl_quantization huge = pl_quantization_of(-3e38f, 3e38f);
    assert_true(isfinite(huge.scale) && huge.zero == 128);
}

/* ---- ranges ---- */

static double next(uint32_t *state) { return ((*state = *state * 1664525u + 1013904223u) + 0.5) / 4294967296.0; }
static double normal(uint32_t *state) { return sqrt(-2 * log(next(state))) * cos(6.283185307179586 * next(state)); }

typedef enum kind { UNIFORM, NORMAL, LAPLACE, RELU, OUTLIER, KINDS } kind;

static float draw(kind k, uint32_t *seed)
{
    const double u = next(seed) - 0.5;
    if (k == UNIFORM) return (float)u;
    if (k == LAPLACE) return (float)(u < 0 ? log(1 + 2 * u) : -log(1 - 2 * u));
    const double x = normal(seed);
    return (float)(k == RELU ? fmax(x, 0) : x);
}

static pl_extremes make(kind k, size_t count, uint32_t seed)
{
    pl_extremes e = {0};
    for (size_t i = 0; i < count; i++) numbers[i] = draw(k, &seed);
    if (k == OUTLIER) numbers[count / 2] = 60;
    pl_extremes_add(&e, numbers, count);
    memset(spread, 0, sizeof spread);
    limit = pl_extremes_limit(&e);
    pl_spread_add(spread, limit, numbers, count);
    return e;
}

static void in_pieces(void **state)
{
    (void)state;
    static int64_t a[PL_SPREAD_BINS], b[PL_SPREAD_BINS];
    const size_t count = 5000, cut = 1234;
    const pl_extremes whole = make(NORMAL, count, 5);
    pl_extremes first = {0}, rest = {0};
    pl_extremes_add(&first, numbers, cut);
    pl_extremes_add(&rest, numbers + cut, count - cut);
    pl_extremes_join(&rest, &first);
    assert_memory_equal(&rest, &whole, sizeof rest);
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    pl_spread_add(a, limit, numbers, cut);
    pl_spread_add(b, limit, numbers + cut, count - cut);
    pl_spread_join(b, a);
    assert_memory_equal(b, spread, sizeof b);
    int64_t all = 0;
    for (int i = 0; i < PL_SPREAD_BINS; i++) all += b[i];
    assert_int_equal(all, count);
}

static void least_and_largest(void **state)
{
    (void)state;
    const pl_extremes e = make(OUTLIER, 1000, 9);
    const pl_span r = pl_span_of(PL_SPAN_MINMAX, 0, &e, NULL, NULL);
    assert_true(r.largest == 60 && r.least == e.least && r.clipped == 0);
    const float odd[] = {1, NAN, INFINITY, -2};
    pl_extremes o = {0};
    pl_extremes_add(&o, odd, 4);
    assert_true(o.not_finite == 2 && o.least == -2 && o.largest == 1);
    memset(spread, 0, sizeof spread);
    pl_spread_add(spread, 2, odd, 4);
    assert_true(spread[0] == 1 && spread[PL_SPREAD_HALF + PL_SPREAD_HALF / 2] == 1);
    const pl_extremes none = {0};
    const pl_span nothing = pl_span_of(PL_SPAN_ENTROPY, 0, &none, spread, scratch);
    assert_true(nothing.least == 0 && nothing.largest == 0);
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* In the bin of the number at that place of the sorted ones, or of the next: the place itself may be rounded. */
static int is_near(float edge, size_t count, double place)
{
    const double width = (double)limit / PL_SPREAD_HALF;
    const size_t at = (size_t)fmax(ceil(place - 1e-6), 1) - 1, behind = at + 1 < count ? at + 1 : at;
    return fabs((double)(edge - numbers[at])) <= width * 1.001 ||
           fabs((double)(edge - numbers[behind])) <= width * 1.001;
}

static void percentiles(void **state)
{
    (void)state;
    static const double percentile[] = {50, 90, 99, 99.9, 99.999};
    for (int k = 0; k < KINDS; k++)
        for (size_t p = 0; p < sizeof percentile / sizeof *percentile; p++) {
            const size_t count = MOST;
            const pl_extremes e = make((kind)k, count, 17 + (uint32_t)k);
            const pl_span r = pl_span_of(PL_SPAN_PERCENTILE, percentile[p], &e, spread, scratch);
            qsort(numbers, count, sizeof *numbers, by_size);
            const double cut = (1 - percentile[p] / 100) / 2 * (double)count;
            assert_true(is_near(r.least, count, cut) && is_near(r.largest, count, (double)count - cut));
            size_t outside = 0, on_edge = 0;
            for (size_t i = 0; i < count; i++) {
                outside += numbers[i] < r.least || numbers[i] > r.largest;
                on_edge += fabsf(numbers[i] - r.least) < 1e-5f * limit || fabsf(numbers[i] - r.largest) < 1e-5f * limit;
            }
            assert_true(r.clipped <= outside + on_edge && outside <= r.clipped + on_edge);
        }
}

/* p and q in full, normed, and Σ p·ln(p/q). */
static double divergence(const double *size, int bins)
{
    static double p[PL_SPREAD_HALF], q[PL_SPREAD_HALF];
    double p_sum = 0, q_sum = 0, result = 0;
    int p_empty = 0, q_empty = 0;
    for (int i = 0; i < bins; i++) p[i] = size[i];
    for (int i = bins; i < PL_SPREAD_HALF; i++) p[bins - 1] += size[i];
    for (int i = 0; i < bins; i++) q[i] = 0;
    for (int level = 0; level < LEVELS; level++) {
        int filled = 0;
        double sum = 0;
        for (int i = 0; i < bins; i++) {
            const int of = i / (bins / LEVELS) < LEVELS - 1 ? i / (bins / LEVELS) : LEVELS - 1;
            if (of == level) sum += size[i], filled += p[i] != 0;
        }
        for (int i = 0; i < bins; i++) {
            const int of = i / (bins / LEVELS) < LEVELS - 1 ? i / (bins / LEVELS) : LEVELS - 1;
            if (of == level && p[i] != 0) q[i] = sum / filled;
        }
    }
    for (int i = 0; i < bins; i++) p_empty += p[i] == 0, q_empty += q[i] == 0;
    const double p_less = 1e-4 * p_empty / (bins - p_empty), q_less = 1e-4 * q_empty / (bins - q_empty);
    for (int i = 0; i < bins; i++) {
        p[i] = p[i] == 0 ? 1e-4 : p[i] - p_less;
        q[i] = q[i] == 0 ? 1e-4 : q[i] - q_less;
        p_sum += p[i], q_sum += q[i];
    }
    for (int i = 0; i < bins; i++) result += p[i] / p_sum * log(p[i] / p_sum / (q[i] / q_sum));
    return result;
}

static void least_divergence(void **state)
{
    (void)state;
    static double size[PL_SPREAD_HALF];
    for (int k = 0; k < KINDS; k++) {
        const pl_extremes e = make((kind)k, MOST, 31 + (uint32_t)k);
        const pl_span r = pl_span_of(PL_SPAN_ENTROPY, 0, &e, spread, scratch);
        for (int i = 0; i < PL_SPREAD_HALF; i++)
            size[i] = (double)(spread[PL_SPREAD_HALF + i] + spread[PL_SPREAD_HALF - 1 - i]);
        const float size_found = fmaxf(-r.least, r.largest);
        const int found = (int)lround((double)size_found / (double)limit * PL_SPREAD_HALF);
        const double of_found = divergence(size, found);
        for (int bins = LEVELS; bins <= PL_SPREAD_HALF; bins += 13) /* every 13th: each costs */
            assert_true(divergence(size, bins) >= of_found - 1e-9);
        if (k == OUTLIER) assert_true(size_found < 8 && r.clipped >= 1);
        if (k == RELU) assert_true(r.least == 0);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_onnx),           cmocka_unit_test(of_a_range),  cmocka_unit_test(in_pieces),
        cmocka_unit_test(least_and_largest), cmocka_unit_test(percentiles), cmocka_unit_test(least_divergence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
