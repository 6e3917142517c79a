/* Which sample comes when: each once an epoch in an order of its own, or weighted; scalers against sums in f80; both
 * with any seed. */
#include "unit/data/scratch.h"

#include <math.h>

#include "data/clouds/draw.h"
#include "base/scaler.h"
#include "support/program.h"
#include "support/seed.h"

enum { DRAWS = 100000, SAMPLES_MAX = 200 };

static scratch_random dice;

static void each_once_an_epoch(void **state)
{
    (void)state;
    for (uint32_t samples = 1; samples < SAMPLES_MAX; samples += 1 + samples / 4) {
        const pl_draw d = pl_draw_each_once(samples, scratch_next(&dice, 1 << 30));
        uint32_t same = 0;
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            uint8_t seen[SAMPLES_MAX] = {0};
            for (uint64_t i = 0; i < samples; i++) {
                const uint64_t at = pl_draw_at(&d, epoch * samples + i);
                assert_true(at < samples && !seen[at]++);
                same += at == pl_draw_at(&d, i);
            }
        }
        /* The epochs behind the first meet it at about one place each. */
        if (samples > 100 && same - samples > 60)
            fail_msg("%u of %u places are those of the first epoch", same, samples);
    }
}

/* Deviations of a share of DRAWS draws. */
static void check_share(double got, double want)
{
    const double deviation = sqrt(want * (1 - want) / DRAWS);
    if (!(fabs(got - want) <= 8 * deviation + 1e-12)) fail_msg("a share of %g, where %g is due", got, want);
}

static void check_weights(uint64_t samples, uint64_t begin, uint64_t end, double factor)
{
    const pl_draw d = pl_draw_weighted(samples, begin, end, factor, scratch_next(&dice, 1 << 30));
    static uint32_t count[SAMPLES_MAX];
    double whole = 0;
    memset(count, 0, sizeof count);
    for (uint64_t i = 0; i < DRAWS; i++) {
        const uint64_t at = pl_draw_at(&d, i * 7 + (i << 33));
        assert_true(at < samples);
        count[at]++;
    }
    for (uint64_t i = 0; i < samples; i++) whole += i >= begin && i < end ? factor : 1;
    for (uint64_t i = 0; i < samples; i++)
        check_share((double)count[i] / DRAWS, (i >= begin && i < end ? factor : 1) / whole);
    assert_true(fabs(d.share - (double)(end - begin) * factor / whole) < 1e-12);
}

static void weighted_as_said(void **state)
{
    (void)state;
    check_weights(150, 0, 0, 3.5);
    check_weights(150, 20, 55, 3.5);
    check_weights(150, 0, 10, 40);
    check_weights(150, 149, 150, 0.25);
    for (int k = 0; k < 4; k++) {
        const uint32_t samples = 2 + scratch_next(&dice, 150), begin = scratch_next(&dice, samples);
        const uint32_t end = begin + 1 + scratch_next(&dice, samples - begin);
        check_weights(samples, begin, end, 0.1 + scratch_next(&dice, 100) * 0.1);
    }
}

/* Where only one kind is left, or a kind cannot be met, chance has no part. */
static void closed_cases(void **state)
{
    (void)state;
    const pl_draw none = pl_draw_weighted(9, 4, 4, 3.5, 1), all = pl_draw_weighted(9, 0, 9, 3.5, 1),
                  even = pl_draw_weighted(20, 5, 15, 1, 1), three = pl_draw_weighted(4, 1, 2, 3, 1);
    assert_true(none.share == 0 && all.share == 1 && even.share == 0.5 && three.share == 0.5);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_true(pl_draw_at(&none, i) < 9 && pl_draw_at(&all, i) < 9);
        assert_int_equal(pl_draw_at(&three, i), pl_draw_at(&three, i));
    }
}

/* ---- scalers ---- */

static void check_scaler(const double *x, uint32_t n)
{
    pl_scaler_sum sum = {0};
    long double mean = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) pl_scaler_add(&sum, x[i]), mean += x[i];
    mean /= n;
    for (uint32_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    const double deviation = n > 1 ? (double)sqrtl(squares / n) : 1, large = fabs((double)mean) + deviation;
    const pl_scaler s = pl_scaler_finish(&sum);
    assert_int_equal(sum.count, n);
    assert_true(fabs(s.mean - (double)mean) <= 1e-13 * large);
    assert_true(fabs(s.deviation - deviation) <= 1e-10 * deviation);
    for (uint32_t i = 0; i < n; i++)
        assert_true(fabs(pl_unscale(&s, pl_scale(&s, x[i])) - x[i]) <= 1e-12 * (large + fabs(x[i])));
}

static void scalers_are_means_and_deviations(void **state)
{
    (void)state;
    double x[500];
    for (int k = 0; k < 50; k++) {
        const uint32_t n = 1 + scratch_next(&dice, 500);
        const double at = scratch_next(&dice, 400), spread = 0.01 + scratch_next(&dice, 100);
        for (uint32_t i = 0; i < n; i++) x[i] = at + spread * scratch_next(&dice, 1 << 20) * 0x1p-20;
        check_scaler(x, n);
    }
    pl_scaler_sum even = {0};
    for (int i = 0; i < 500; i++) pl_scaler_add(&even, 0.1);
    assert_true(even.mean == 0.1 && even.squares == 0 && pl_scaler_finish(&even).deviation == 1);
    const pl_scaler nothing = pl_scaler_finish(&(pl_scaler_sum){0});
    assert_true(nothing.mean == 0 && nothing.deviation == 1);
}

PL_TEST_PROGRAM(argc, argv)
{
    dice.key = pl_philox_init(test_seed_said(argc, argv), 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_once_an_epoch),
        cmocka_unit_test(weighted_as_said),
        cmocka_unit_test(closed_cases),
        cmocka_unit_test(scalers_are_means_and_deviations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
