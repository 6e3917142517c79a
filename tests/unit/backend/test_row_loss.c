/* Losses of rows: values worked out by hand, rows without a label, logits that are large or no
 * numbers, vectors of no length, columns as targets, several losses that add to one value, how many rows are right. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/row_loss.h"
#include "support/guarded.h"
#include "support/program.h"

static const pl_team team = {3, PL_ISA_REF};
static const float one = 1;

static double run(const pl_row_loss_call *from, double loss)
{
    pl_row_loss_call c = *from;
    c.loss = &loss;
    if (!c.scale) c.scale = &one;
    uint64_t bytes = pl_row_loss_workspace_bytes(&c, team);
    pl_row_loss_exec(&c, bytes ? guarded_bytes(bytes, 0) : NULL, team);
    guarded_check_all();
    return loss;
}

static void assert_near(double got, double want, double within)
{
    if (!(fabs(got - want) <= within)) fail_msg("%.12g is not %.12g", got, want);
}

static double cross_entropy(pl_row_loss_kind kind, int64_t rows, int64_t width, const float *logits,
                            const int32_t *target, float *dlogits)
{
    pl_row_loss_call c = {kind, rows, width, logits, .target = target, .da = dlogits, .type = PL_REAL_F32};
    return run(&c, 0);
}

/* stablemax([1, 0, −1]) = [4/7, 2/7, 1/7]; softmax of the logarithms of 1, 2 and 5 is [1/8, 2/8, 5/8]. */
static void golden_values(void **state)
{
    (void)state;
    const float logits[3] = {1, 0, -1}, logs[3] = {0, (float)M_LN2, (float)log(5)};
    const double p[3] = {4.0 / 7, 2.0 / 7, 1.0 / 7}, q[3] = {0.125, 0.25, 0.625}, slope[3] = {1, 1, 0.25},
                 s[3] = {2, 1, 0.5};
    for (int32_t label = 0; label < 3; label++) {
        float d[3];
        assert_near(cross_entropy(PL_ROW_LOSS_STABLEMAX, 1, 3, logits, &label, d), -log(p[label]), 1e-10);
        for (int v = 0; v < 3; v++) assert_near((double)d[v], slope[v] * (1 / 3.5 - (v == label) / s[v]), 1e-7);
        assert_near(cross_entropy(PL_ROW_LOSS_SOFTMAX, 1, 3, logs, &label, d), -log(q[label]), 1e-7);
        for (int v = 0; v < 3; v++) assert_near((double)d[v], q[v] - (v == label), 1e-7);
    }
    assert_near(cross_entropy(PL_ROW_LOSS_STABLEMAX, 1, 3, logits, &(int32_t){0}, NULL), 0.5596158, 1e-7);
    guarded_free_all();
}

/* Such a row may hold anything. */
static void rows_without_a_label(void **state)
{
    (void)state;
    const float logits[9] = {1, 0, -1, NAN, INFINITY, 3, 1, 0, -1};
    const int32_t some[3] = {0, -1, 2}, none[3] = {-100, -1, INT32_MIN};
    for (pl_row_loss_kind kind = PL_ROW_LOSS_SOFTMAX; kind <= PL_ROW_LOSS_STABLEMAX; kind++) {
        float d[9], alone[3];
        double loss = cross_entropy(kind, 3, 3, logits, some, d);
        assert_true(loss == cross_entropy(kind, 1, 3, logits, some, alone) +
                                cross_entropy(kind, 1, 3, logits + 6, some + 2, NULL));
        assert_memory_equal(d, alone, sizeof alone);
        for (int v = 3; v < 6; v++) assert_true(d[v] == 0);
        memset(d, 0xff, sizeof d);
        assert_true(cross_entropy(kind, 3, 3, logits, none, d) == 0);
        for (int v = 0; v < 9; v++) assert_true(d[v] == 0);
    }
    guarded_free_all();
}

static void large_logits(void **state)
{
    (void)state;
    const float logits[3] = {3e38f, -3e38f, 0}, nan[3] = {0, NAN, 0};
    float d[3];
    assert_true(cross_entropy(PL_ROW_LOSS_SOFTMAX, 1, 3, logits, &(int32_t){0}, d) == 0);
    for (int v = 0; v < 3; v++) assert_true(d[v] == 0);
    assert_true(cross_entropy(PL_ROW_LOSS_SOFTMAX, 1, 3, logits, &(int32_t){2}, d) == (double)3e38f);
    assert_true(d[0] == 1 && d[1] == 0 && d[2] == -1);
    assert_near(cross_entropy(PL_ROW_LOSS_STABLEMAX, 1, 3, logits, &(int32_t){1}, d), 2 * log(3e38), 1e-6);
    for (int v = 0; v < 3; v++) assert_true(isfinite(d[v]));
    assert_true(isnan(cross_entropy(PL_ROW_LOSS_SOFTMAX, 1, 3, nan, &(int32_t){0}, d)) && isnan(d[0]));
    assert_true(isnan(cross_entropy(PL_ROW_LOSS_STABLEMAX, 1, 3, nan, &(int32_t){0}, d)) && isnan(d[0]));
    guarded_free_all();
}

/* The targets are a column of what count_right writes. */
static void logits_of_a_column(void **state)
{
    (void)state;
    const float q[4] = {0, 2, -3, 1e4f}, y[12] = {9, 9, 1, 9, 9, 0, 9, 9, 0.5f, 9, 9, 1};
    const double want[4] = {log(2), 2 + log1p(exp(-2)), 1.5 + log1p(exp(-3)), 0};
    const double slope[4] = {-0.5, 1 / (1 + exp(-2)), 1 / (1 + exp(3)) - 0.5, 0};
    for (int i = 0; i < 4; i++) {
        float d;
        pl_row_loss_call c = {PL_ROW_LOSS_BCE, 1, 1, &q[i], .y = &y[3 * i + 2], .da = &d, .type = PL_REAL_F32};
        assert_near(run(&c, 0), want[i], 1e-10);
        assert_near((double)d, slope[i], 1e-7);
    }
    pl_row_loss_call all = {PL_ROW_LOSS_BCE, 4, 1, q, .y = y + 2, .y_stride = 3, .type = PL_REAL_F32};
    assert_near(run(&all, 1), 1 + want[0] + want[1] + want[2] + want[3], 1e-10);
    guarded_free_all();
}

/* [3, 4] has length 5; its angle to [4, 3] has a cosine of 24/25. */
static void vectors(void **state)
{
    (void)state;
    const float x[6] = {3, 4, 0, 0, 0.6f, 0.8f}, y[6] = {4, 3, 3, 4, -0.6f, -0.8f}, scale = 0.5f, loss_scale = 8;
    float dx[6], dy[6];
    pl_row_loss_call c = {.rows = 3,
                          .width = 2,
                          .a = x,
                          .b = y,
                          .scale = &scale,
                          .da = dx,
                          .db = dy,
                          .loss_scale = &loss_scale,
                          .type = PL_REAL_F32};
    c.kind = PL_ROW_LOSS_COSINE;
    assert_near(run(&c, 0), 0.5 * (1.0 / 25 + 1 + 2), 1e-10);
    for (int i = 0; i < 2; i++) {
        assert_near((double)dx[i], 4 * (0.96 * (double)x[i] / 25 - (double)y[i] / 25), 1e-7);
        assert_near((double)dy[i], 4 * (0.96 * (double)y[i] / 25 - (double)x[i] / 25), 1e-7);
        assert_near((double)dx[2 + i], -4 * (double)y[2 + i] / PL_COSINE_EPS, 100); /* no length: the bound counts */
        assert_true(dy[2 + i] == 0);
        assert_near((double)dx[4 + i], 0, 1e-6);
    }
    c.kind = PL_ROW_LOSS_SQUARED_ERROR;
    assert_near(run(&c, 0), 0.5 * (1 + 1 + 25 + 4), 1e-6);
    for (int i = 0; i < 6; i++) {
        assert_near((double)dx[i], 8 * (double)(x[i] - y[i]), 1e-5);
        assert_true(dy[i] == -dx[i]);
    }
    c.kind = PL_ROW_LOSS_NORM_PENALTY, c.b = NULL, c.db = NULL;
    assert_near(run(&c, 0), 0.5 * (16 + 1), 1e-6);
    for (int i = 0; i < 2; i++) {
        assert_near((double)dx[i], 4 * 8 * (double)x[i] / 5, 1e-5);
        assert_true(dx[2 + i] == 0);
        assert_near((double)dx[4 + i], 0, 1e-6);
    }
    guarded_free_all();
}

/* Three losses of eight samples add to one value: in any order, and with any micro-batch, it gets the same bits. */
static void losses_take_turns(void **state)
{
    (void)state;
    enum { SAMPLES = 8, ROWS = 3, WIDTH = 5, LOSSES = 3 };
    const float *x = guarded_normal((int64_t)SAMPLES * ROWS * WIDTH, 1),
                *z = guarded_normal((int64_t)SAMPLES * ROWS * WIDTH, 2);
    const float scales[LOSSES] = {1.0f / 24, 0.3f, 7};
    double want = 0;
    int32_t target[SAMPLES * ROWS];
    for (int i = 0; i < SAMPLES * ROWS; i++) target[i] = i * 7 % 6 - 1;
    for (int way = 0; way < 2; way++)
        for (int64_t micro = 1; micro <= SAMPLES; micro *= 2) {
            double loss = 0;
            for (int64_t at = 0; at < SAMPLES; at += micro)
                for (int k = 0; k < LOSSES; k++) {
                    int l = way ? LOSSES - 1 - k : k;
                    pl_row_loss_call c = {.kind = (pl_row_loss_kind[]){PL_ROW_LOSS_STABLEMAX, PL_ROW_LOSS_COSINE,
                                                                       PL_ROW_LOSS_NORM_PENALTY}[l],
                                          .rows = micro * ROWS,
                                          .width = WIDTH,
                                          .a = x + at * ROWS * WIDTH,
                                          .b = z + at * ROWS * WIDTH,
                                          .target = target + at * ROWS,
                                          .scale = &scales[l],
                                          .type = PL_REAL_F32};
                    loss = run(&c, loss);
                }
            if (!way && micro == 1) want = loss;
            assert_true(loss == want && isfinite(loss) && loss > 0);
        }
    guarded_free_all();
}

static void how_many_are_right(void **state)
{
    (void)state;
    const float logits[5][6] = {{0, 1, 2, 5, 4, 3},      /* both right */
                                {1, 1, 0, 0, 2, 2},      /* of equal ones the first */
                                {1, 1, 0, 0, 2, 2},      /* and not the second */
                                {NAN, 1, 0, 1, NAN, -3}, /* what is no number is never right */
                                {-INFINITY, -7, -8, 1, 0, 0}};
    const int32_t target[5][2] = {{2, 0}, {0, 1}, {1, 2}, {1, 0}, {-1, -100}};
    const float want[5][3] = {{2, 2, 1}, {2, 2, 1}, {2, 0, 0}, {2, 0, 0}, {0, 0, 1}};
    for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
        void *z = guarded_bytes((uint64_t)(30 * pl_real_bytes(type)), 0);
        float *y = guarded_f32(15);
        for (int i = 0; i < 30; i++) pl_real_put(type, z, i, logits[i / 6][i % 6]);
        pl_count_right_call c = {5, 2, 3, z, &target[0][0], y, type};
        pl_count_right_exec(&c, team);
        guarded_check_all();
        assert_memory_equal(y, want, sizeof want);
    }
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_values),     cmocka_unit_test(rows_without_a_label),
                                       cmocka_unit_test(large_logits),      cmocka_unit_test(logits_of_a_column),
                                       cmocka_unit_test(vectors),           cmocka_unit_test(losses_take_turns),
                                       cmocka_unit_test(how_many_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
