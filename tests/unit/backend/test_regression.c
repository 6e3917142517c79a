/* Losses of regression: values worked out by hand, derivatives against difference quotients, hard items against a sort,
 * any cut of a batch without them, 16-bit predictions, items without a target. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/regression.h"
#include "support/guarded.h"
#include "support/program.h"

static const pl_team team = {3, PL_ISA_REF};
static const float one = 1;

static pl_regression of_kind(pl_regression_kind kind)
{
    return (pl_regression){kind,       .delta = 0.75, .alpha = 0.25, .gamma = 1.5, .under_weight = 3,
                           .share = 0, .factor = 1};
}

static double run(const pl_regression_loss_call *from, double loss)
{
    pl_regression_loss_call c = *from;
    c.loss = &loss;
    if (!c.scale) c.scale = &one;
    uint64_t bytes = pl_regression_loss_workspace_bytes(&c, team);
    pl_regression_loss_exec(&c, bytes ? guarded_bytes(bytes, 0) : NULL, team);
    guarded_check_all();
    return loss;
}

/* Of one item: the loss and its derivative by the prediction. */
static double item(const pl_regression *r, float target, float prediction, float *slope)
{
    pl_regression_loss_call c = {1, *r, &prediction, &target, .dprediction = slope, .type = PL_REAL_F32};
    return run(&c, 0);
}

/* Errors target − prediction of ½, −½, 2 and −2, with the numbers of of_kind; 2^1.5 = 2.828…, 0.5^1.5 = 0.3535… */
static void by_hand(void **state)
{
    (void)state;
    static const struct {
        pl_regression_kind kind;
        double loss[4];
    } rows[] = {
        {PL_REGRESSION_MSE, {0.25, 0.25, 4, 4}},
        {PL_REGRESSION_MAE, {0.5, 0.5, 2, 2}},
        {PL_REGRESSION_HUBER, {0.125, 0.125, 1.21875, 1.21875}},
        {PL_REGRESSION_MSE_MAE, {0.4375, 0.4375, 2.5, 2.5}},
        {PL_REGRESSION_HUBER_MAE, {0.296415042945, 0.296415042945, 2.426007843560, 2.426007843560}},
        {PL_REGRESSION_WEIGHTED_HUBER, {0.375, 0.125, 3.65625, 1.21875}},
        {PL_REGRESSION_WEIGHTED_HUBER_MAE, {0.358915042945, 0.296415042945, 3.035382843560, 2.426007843560}},
    };
    static const float error[4] = {0.5f, -0.5f, 2, -2};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 4; k++) {
            pl_regression r = of_kind(rows[i].kind);
            float slope;
            double loss = item(&r, 1 + error[k], 1, &slope);
            if (!(fabs(loss - rows[i].loss[k]) < 1e-11))
                fail_msg("kind %d of %g is %.12g", rows[i].kind, (double)error[k], loss);
        }
    guarded_free_all();
}

static void derivatives(void **state)
{
    (void)state;
    for (int kind = 0; kind < PL_REGRESSION_COUNT; kind++)
        for (float e = -2.03f; e < 2.1f; e += 0.37f) {
            pl_regression r = of_kind((pl_regression_kind)kind);
            float slope, ignored, step = 1.0f / 1024;
            item(&r, e, 0.25f, &slope);
            double d = (item(&r, e, 0.25f + step, &ignored) - item(&r, e, 0.25f - step, &ignored)) / (2 * (double)step);
            if (!(fabs(d - (double)slope) < 2e-3))
                fail_msg("kind %d at %g: %g, not %g", kind, (double)e, (double)slope, d);
            item(&r, 0.25f, 0.25f, &slope);
            assert_true(slope == 0);
        }
    guarded_free_all();
}

/* ---- hard items ---- */

enum { COUNT = 203 };

typedef struct ranked {
    double loss;
    int64_t item;
} ranked;

static int by_loss(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->loss != y->loss) return x->loss < y->loss ? 1 : -1;
    return x->item < y->item ? -1 : 1;
}

/* Many are equal, one has no target. */
static void hard_items(void **state)
{
    (void)state;
    for (int64_t n = 1; n < COUNT; n += 1 + n / 3) {
        float prediction[COUNT], target[COUNT], d[COUNT], plain[COUNT];
        ranked order[COUNT];
        const float *noise = guarded_normal(n, (uint64_t)n);
        int64_t counted = 0;
        double want = 0;
        for (int64_t i = 0; i < n; i++) {
            prediction[i] = 0.25f, target[i] = rintf(4 * noise[i]) / 4;
            if (n > 4 && i == n / 2) target[i] = NAN;
        }
        pl_regression_loss_call c = {n,      of_kind(PL_REGRESSION_HUBER), prediction,
                                     target, .dprediction = plain,         .type = PL_REAL_F32};
        run(&c, 0);
        for (int64_t i = 0; i < n; i++) {
            float slope;
            if (isnan(target[i])) continue;
            order[counted++] = (ranked){item(&c.loss_of, target[i], prediction[i], &slope), i};
        }
        qsort(order, (size_t)counted, sizeof *order, by_loss);
        for (int64_t k = 0; k < counted; k++) {
            bool hard = k < (int64_t)(0.35 * (double)counted);
            want += order[k].loss * (hard ? 1.5 : 1);
            if (hard) plain[order[k].item] *= 1.5f;
        }
        c.loss_of.share = 0.35, c.loss_of.factor = 1.5, c.dprediction = d;
        assert_true(fabs(run(&c, 2) - 2 - want) < 1e-9 * (1 + want));
        assert_memory_equal(d, plain, (size_t)n * sizeof(float));
        guarded_free_all();
    }
}

/* int(0.35·20) is 7, as in Python: exactly seven of twenty equal items count more, the first ones. */
static void equal_items(void **state)
{
    (void)state;
    float prediction[20] = {0}, target[20], d[20];
    for (int i = 0; i < 20; i++) target[i] = 1;
    pl_regression r = of_kind(PL_REGRESSION_MSE);
    r.share = 0.35, r.factor = 1.5;
    pl_regression_loss_call c = {20, r, prediction, target, .dprediction = d, .type = PL_REAL_F32};
    assert_true(run(&c, 0) == 23.5);
    for (int i = 0; i < 20; i++) assert_true(d[i] == (i < 7 ? -3 : -2));
    guarded_free_all();
}

/* ---- batches, types, what is not a number ---- */

static void cuts_and_scales(void **state)
{
    (void)state;
    float *prediction = guarded_normal(COUNT, 1), *target = guarded_normal(COUNT, 2), *whole = guarded_f32(COUNT);
    float *cut = guarded_f32(COUNT), scale = 0.125f, loss_scale = 1024;
    pl_regression_loss_call c = {COUNT, of_kind(PL_REGRESSION_HUBER_MAE), prediction, target, .type = PL_REAL_F32};
    double all = run(&c, 0.5), sum = 0.5;
    c.dprediction = whole, c.scale = &scale, c.loss_scale = &loss_scale;
    assert_true(run(&c, 0.5) == all);
    for (int64_t at = 0, count; at < COUNT; at += count) {
        count = at + 64 < COUNT ? 64 : COUNT - at;
        c.count = count, c.prediction = prediction + at, c.target = target + at, c.dprediction = cut + at;
        sum = run(&c, sum);
    }
    assert_true(sum == all);
    assert_memory_equal(whole, cut, COUNT * sizeof(float));
    for (int i = 0; i < COUNT; i++) {
        float slope;
        item(&c.loss_of, target[i], prediction[i], &slope);
        assert_true(fabsf(slope * 128 - whole[i]) <= 1e-5f * fabsf(whole[i]));
    }
    guarded_free_all();
}

static void types_and_places(void **state)
{
    (void)state;
    for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
        const float *noise = guarded_normal(9, 3);
        float target[9], slope;
        void *both = guarded_bytes((uint64_t)(9 * pl_real_bytes(type)), 0);
        pl_regression_loss_call c = {
            9, of_kind(PL_REGRESSION_WEIGHTED_HUBER), both, target, .dprediction = both, .type = type};
        float expected[9];
        for (int i = 0; i < 9; i++) {
            pl_real_put(type, both, i, noise[i]);
            target[i] = i == 4 ? NAN : -noise[8 - i];
            slope = 0;
            if (i != 4) item(&c.loss_of, target[i], pl_real_get(type, both, i), &slope);
            expected[i] = slope;
        }
        assert_true(isfinite(run(&c, 0)));
        for (int i = 0; i < 9; i++)
            assert_true(fabsf(pl_real_get(type, both, i) - expected[i]) <= fabsf(expected[i]) / 256);
        guarded_free_all();
    }
}

/* A prediction that is not a number shows in the loss; among hard ones it comes first. */
static void not_a_number(void **state)
{
    (void)state;
    float prediction[4] = {0, NAN, 0, 0}, target[4] = {1, 1, 5, 1}, d[4];
    pl_regression r = of_kind(PL_REGRESSION_MSE);
    r.share = 0.25, r.factor = 2;
    pl_regression_loss_call c = {4, r, prediction, target, .dprediction = d, .type = PL_REAL_F32};
    assert_true(isnan(run(&c, 0)));
    assert_true(isnan(d[1]) && d[0] == -2 && d[2] == -10 && d[3] == -2);
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_hand),         cmocka_unit_test(derivatives),
                                       cmocka_unit_test(hard_items),      cmocka_unit_test(equal_items),
                                       cmocka_unit_test(cuts_and_scales), cmocka_unit_test(types_and_places),
                                       cmocka_unit_test(not_a_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
