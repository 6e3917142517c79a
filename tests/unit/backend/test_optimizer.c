/* AdamW and Adam-atan2 against their formulas in double over several steps; averages of weights, sum of squares and
 * clipping against theirs. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static const int thread_counts[] = {1, 2, 8, 16, 64};
static const int64_t counts[] = {0, 1, 15, 16, 17, 1023, 1025, 8191, 8192, 20000, 300007};
enum { THREAD_COUNTS = 5, COUNTS = sizeof counts / sizeof *counts, STEPS = 4 };

typedef struct settings {
    float beta1, beta2, eps, decay, lr;
    const float *grad_scale;
    int64_t first_step;
    bool angle;
} settings;

typedef struct arrays {
    float *w, *m, *v, *g;
} arrays;

static arrays make_arrays(int64_t count)
{
    arrays a = {guarded_normal(count, 1), guarded_normal(count, 2), guarded_normal(count, 3), guarded_normal(count, 4)};
    for (int64_t i = 0; i < count; i++) a.m[i] *= 0.01f, a.v[i] *= a.v[i] * 0.01f, a.g[i] *= 0.1f;
    return a;
}

static arrays run_steps(const settings *s, int64_t count, pl_team team)
{
    arrays a = make_arrays(count);
    for (int64_t step = s->first_step; step < s->first_step + STEPS; step++) {
        pl_adamw_call call = {count,  a.w,      a.m,    a.v,   a.g,           s->beta1,         s->beta2,
                              s->eps, s->decay, &s->lr, &step, s->grad_scale, .angle = s->angle};
        pl_adamw_exec(&call, team);
    }
    return a;
}

/* The update rules (Loshchilov and Hutter 2019; Everett et al. 2024 for atan2), written down. */
static double oracle_weight(const settings *s, double w, double m, double v, double g, double *m_out, double *v_out)
{
    double b1 = s->beta1, b2 = s->beta2, lr = s->lr;
    g *= s->grad_scale ? *s->grad_scale : 1;
    for (int64_t step = s->first_step; step < s->first_step + STEPS; step++) {
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        double m_hat = m / (1 - pow(b1, (double)step)), v_hat = v / (1 - pow(b2, (double)step));
        w -= lr * s->decay * w;
        w -= lr * (s->angle ? atan2(m_hat, sqrt(v_hat)) : m_hat / (sqrt(v_hat) + s->eps));
    }
    *m_out = m, *v_out = v;
    return w;
}

static void check_adamw(const settings *s, int64_t count, pl_isa isa)
{
    arrays start = make_arrays(count), first = run_steps(s, count, (pl_team){1, isa});
    for (int64_t i = 0; i < count; i++) {
        double m, v, w = oracle_weight(s, start.w[i], start.m[i], start.v[i], start.g[i], &m, &v);
        double moved = fabs(w - start.w[i]);
        assert_true(fabs(first.w[i] - w) <= 4e-6 * moved + 4 * (double)FLT_EPSILON * fabs(w));
        assert_true(fabs(first.m[i] - m) <= 1e-6 * (fabs(m) + 0.01) && fabs(first.v[i] - v) <= 1e-6 * v);
        assert_true(first.g[i] == start.g[i]);
    }
    for (int t = 0; t < THREAD_COUNTS; t++) {
        arrays a = run_steps(s, count, (pl_team){thread_counts[t], isa});
        assert_memory_equal(a.w, first.w, (size_t)count * 4);
        assert_memory_equal(a.m, first.m, (size_t)count * 4);
        assert_memory_equal(a.v, first.v, (size_t)count * 4);
    }
}

static void test_adamw(void **state)
{
    (void)state;
    float scale = 0.37f;
    const settings all[] = {
        {0.9f, 0.95f, 1e-8f, 0.1f, 1e-3f, NULL, 1},        {0.9f, 0.999f, 1e-8f, 0, 3e-4f, &scale, 1},
        {0.9f, 0.999f, 1e-5f, 0.01f, 1e-2f, NULL, 100000}, {0, 0.99f, 1e-8f, 0.1f, 1e-3f, NULL, 7},
        {0.9f, 0.95f, 0, 0.1f, 1e-3f, NULL, 1, true},      {0.9f, 0.999f, 0, 0, 3e-4f, &scale, 1, true},
        {0.5f, 0.9f, 0, 0.01f, 1e-2f, NULL, 100000, true}, {0, 0.99f, 0, 0.1f, 1e-3f, NULL, 7, true}};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (size_t s = 0; s < sizeof all / sizeof *all; s++)
            for (int c = 0; c < COUNTS; c++) {
                if (counts[c] > 20000 && s > 0 && s != 4) continue;
                check_adamw(&all[s], counts[c], isa);
                guarded_check_all();
                guarded_free_all();
            }
}

/* Gradients of zero move nothing but the decay, and nothing turns into NaN. */
static void test_adamw_zero_gradient(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float w[33], m[33] = {0}, v[33] = {0}, g[33] = {0}, lr = 0.5f;
        int64_t step = 1;
        for (int i = 0; i < 33; i++) w[i] = (float)i;
        pl_adamw_call call = {33, w, m, v, g, 0.9f, 0.999f, 1e-8f, 0.5f, &lr, &step, NULL};
        pl_adamw_exec(&call, (pl_team){1, isa});
        for (int i = 0; i < 33; i++) assert_true(w[i] == 0.75f * (float)i && m[i] == 0 && v[i] == 0);
        call.angle = true;
        pl_adamw_exec(&call, (pl_team){1, isa});
        for (int i = 0; i < 33; i++) assert_true(w[i] == 0.75f * 0.75f * (float)i && m[i] == 0 && v[i] == 0);
    }
}

/* With a limit a weight is where it would be, but never beyond; what is not a number shows. */
static void test_limit(void **state)
{
    (void)state;
    enum { COUNT = 3001 };
    const float lr = 0.3f;
    const int64_t step = 2;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int angle = 0; angle < 2; angle++) {
            arrays free = make_arrays(COUNT), bound = make_arrays(COUNT);
            bound.g[7] = free.g[7] = NAN;
            pl_adamw_call call = {COUNT, free.w, free.m, free.v, free.g, 0.9f,
                                  0.99f, 1e-8f,  0.1f,   &lr,    &step,  .angle = angle};
            pl_adamw_exec(&call, (pl_team){2, isa});
            call.w = bound.w, call.m = bound.m, call.v = bound.v, call.g = bound.g, call.limit = 0.75f;
            pl_adamw_exec(&call, (pl_team){3, isa});
            int cut = 0;
            for (int64_t i = 0; i < COUNT; i++) {
                const float w = free.w[i], want = w > 0.75f ? 0.75f : w < -0.75f ? -0.75f : w;
                assert_true(i == 7 ? isnan(bound.w[i]) : bound.w[i] == want);
                cut += want != w;
            }
            assert_true(cut > 100);
            assert_memory_equal(free.v + 8, bound.v + 8, (COUNT - 8) * sizeof(float));
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- the angle alone: of every size and sign, moments that a step leaves nearly as they are ---- */

static double random_size(uint64_t i)
{
    pl_philox philox = pl_philox_init(seed, 1);
    uint32_t word[4];
    pl_philox_block(&philox, 0, 0, (uint32_t)i, word);
    return ldexp(1 + word[0] * 0x1p-32, (int)(word[1] % 60) - 40) * (word[2] % 2 ? -1 : 1);
}

static void test_angle(void **state)
{
    (void)state;
    enum { COUNT = 100000 };
    const float lr = 1;
    const int64_t step = 1;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float *w = guarded_normal(COUNT, 1), *m = guarded_normal(COUNT, 2), *v = guarded_normal(COUNT, 3),
              *g = guarded_normal(COUNT, 4);
        for (int64_t i = 0; i < COUNT; i++) {
            double wide = random_size(2 * (uint64_t)i), near = i % 2 ? wide * (1 + random_size(7) * 0x1p-40) : wide;
            double root = fabs(i % 4 < 2 ? near : random_size(2 * (uint64_t)i + 1));
            m[i] = (float)wide, v[i] = (float)(root * root), w[i] = g[i] = 0;
        }
        m[0] = 0, v[1] = 0, m[2] = v[2] = 0; /* 0 over something, something over 0, both */
        float *before = guarded_copy(m, COUNT), *squares = guarded_copy(v, COUNT);
        pl_adamw_call call = {COUNT, w, m, v, g, 0.5f, 0.5f, 0, 0, &lr, &step, .angle = true};
        pl_adamw_exec(&call, (pl_team){1, isa});
        for (int64_t i = 0; i < COUNT; i++) { /* both corrections are 1/2, and so is what is left of both */
            double want = -atan2((double)before[i], sqrt((double)squares[i]));
            if (!(fabs(w[i] - want) <= 6e-7 * fabs(want)))
                fail_msg("seed %llu: atan2(%g, sqrt(%g)) moved the weight by %.9g, not %.9g", (unsigned long long)seed,
                         (double)before[i], (double)squares[i], (double)w[i], want);
        }
        guarded_check_all();
        guarded_free_all();
    }
}

/* A gradient that is not finite is not hidden behind an angle. */
static void test_angle_not_finite(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY, -INFINITY}, lr = 1;
    const int64_t step = 1;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int b = 0; b < 3; b++) {
            float w[20] = {0}, m[20] = {0}, v[20] = {0}, g[20] = {0};
            g[5] = g[18] = bad[b];
            pl_adamw_call call = {20, w, m, v, g, 0.9f, 0.99f, 0, 0, &lr, &step, .angle = true};
            pl_adamw_exec(&call, (pl_team){1, isa});
            for (int i = 0; i < 20; i++) assert_true(isnan(w[i]) == (i == 5 || i == 18));
        }
}

/* ---- averages of weights ---- */

static void check_ema(int64_t count, float rate, pl_isa isa)
{
    float *start = guarded_normal(count, 11), *w = guarded_normal(count, 12), *first = guarded_copy(start, count);
    for (int step = 0; step < STEPS; step++) pl_ema_exec(&(pl_ema_call){count, rate, first, w}, (pl_team){1, isa});
    for (int64_t i = 0; i < count; i++) {
        double want = start[i];
        for (int step = 0; step < STEPS; step++) want = (double)rate * want + (1 - (double)rate) * w[i];
        assert_true(fabs(first[i] - want) <= 4 * (double)FLT_EPSILON * (fabs((double)start[i]) + fabs((double)w[i])));
    }
    for (int t = 0; t < THREAD_COUNTS; t++) {
        float *a = guarded_copy(start, count);
        for (int step = 0; step < STEPS; step++)
            pl_ema_exec(&(pl_ema_call){count, rate, a, w}, (pl_team){thread_counts[t], isa});
        assert_memory_equal(a, first, (size_t)count * 4);
    }
    float *same = guarded_copy(w, count); /* what equals its weight stays, at any rate, however often */
    for (int step = 0; step < 100; step++) pl_ema_exec(&(pl_ema_call){count, rate, same, w}, (pl_team){2, isa});
    assert_memory_equal(same, w, (size_t)count * 4);
}

static void test_ema(void **state)
{
    (void)state;
    const float rates[] = {0, 0.5f, 0.9f, 0.999f, 0.999999f};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int r = 0; r < 5; r++)
            for (int c = 0; c < COUNTS; c++) {
                if (counts[c] > 20000 && r > 0) continue;
                check_ema(counts[c], rates[r], isa);
                guarded_check_all();
                guarded_free_all();
            }
}

/* ---- sum of squares ---- */

static double run_sum(const float *x, int64_t count, double before, pl_team team)
{
    double *sum = guarded_bytes(sizeof *sum, 0);
    *sum = before;
    pl_sum_squares_call call = {count, x, sum};
    pl_sum_squares_exec(&call, guarded_bytes(pl_sum_squares_workspace_bytes(&call, team), 0), team);
    return *sum;
}

static void test_sum_squares(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int c = 0; c < COUNTS; c++) {
            float *x = guarded_normal(counts[c], 1);
            long double expected = 2.5L;
            for (int64_t i = 0; i < counts[c]; i++) expected += (long double)x[i] * x[i];
            double first = run_sum(x, counts[c], 2.5, (pl_team){1, isa});
            assert_true(fabsl(first - expected) <= 1e-13L * expected);
            for (int t = 0; t < THREAD_COUNTS; t++)
                assert_true(run_sum(x, counts[c], 2.5, (pl_team){thread_counts[t], isa}) == first);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Squares that f32 could not hold: a finite gradient is never called infinite, a tiny one never lost. */
static void test_sum_squares_range(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int where = 0; where < 70; where += 23) {
            float x[70] = {0};
            x[where] = 1e30f;
            assert_true(fabs(run_sum(x, 70, 0, (pl_team){1, isa}) / 1e60 - 1) < 1e-6);
            x[where] = 1e-30f;
            assert_true(fabs(run_sum(x, 70, 0, (pl_team){1, isa}) / 1e-60 - 1) < 1e-6);
            x[where] = INFINITY;
            assert_true(isinf(run_sum(x, 70, 0, (pl_team){1, isa})));
            x[where] = NAN;
            assert_true(isnan(run_sum(x, 70, 0, (pl_team){1, isa})));
            guarded_free_all();
        }
}

static void test_sum_squares_workspace(void **state)
{
    (void)state;
    pl_sum_squares_call call = {.count = (int64_t)1 << 40};
    assert_true(pl_sum_squares_workspace_bytes(&call, (pl_team){64, PL_ISA_REF}) <= 2048);
}

static void check_clip(double sum, float max_norm, float expected, int32_t expected_finite)
{
    float scale = -1;
    int32_t finite = -1;
    int32_t skipped = 7;
    pl_clip_scale_call call = {&sum, max_norm, &scale, &finite, .skipped_steps = &skipped};
    pl_clip_scale_exec(&call, (pl_team){2, PL_ISA_BASELINE});
    assert_true(fabsf(scale - expected) <= 1e-6f && finite == expected_finite);
    assert_int_equal(skipped, expected_finite ? 7 : 8);
}

static void test_clip_scale(void **state)
{
    (void)state;
    check_clip(0, 1, 1, 1);
    check_clip(0.25, 1, 1, 1);
    check_clip(16, 1, 0.25f, 1);
    check_clip(1e60, 1, 0, 1);
    check_clip((double)INFINITY, 1, 0, 0);
    check_clip((double)NAN, 1, 0, 0);
}

/* Gradients that were multiplied with a loss scale: their norm is that of the gradients themselves, and the scale takes
 * it back. max_norm 0 clips nothing. */
static void test_clip_scale_of_scaled(void **state)
{
    (void)state;
    const float loss_scale = 1024, limits[] = {0, 0.5f, 100};
    const double norm = 3, sum = norm * norm * 1024 * 1024;
    for (int i = 0; i < 3; i++) {
        float scale = 9;
        int32_t finite = 9;
        pl_clip_scale_exec(&(pl_clip_scale_call){&sum, limits[i], &scale, &finite, &loss_scale},
                           (pl_team){1, PL_ISA_REF});
        double clipped = limits[i] > 0 && limits[i] < norm ? limits[i] / (norm + 1e-6) : 1;
        assert_int_equal(finite, 1);
        assert_true(fabs(scale * 1024 / clipped - 1) < 1e-6);
    }
}

static void check_loss_scale(int32_t finite, float *scale, int32_t *good, double want, int want_good)
{
    pl_loss_scale_exec(&(pl_loss_scale_call){3, &finite, scale, good}, (pl_team){1, PL_ISA_REF});
    assert_true(*scale == want);
    assert_int_equal(*good, want_good);
}

/* Halved by each overflow but never below 1; doubled by three good steps in a row but never above 2^24. */
static void test_loss_scale(void **state)
{
    (void)state;
    float scale = 4;
    int32_t good = 0;
    check_loss_scale(1, &scale, &good, 4, 1);
    check_loss_scale(1, &scale, &good, 4, 2);
    check_loss_scale(0, &scale, &good, 2, 0);
    check_loss_scale(0, &scale, &good, 1, 0);
    check_loss_scale(0, &scale, &good, 1, 0);
    for (int round = 0; round < 30; round++) {
        double before = scale;
        check_loss_scale(1, &scale, &good, before, 1);
        check_loss_scale(1, &scale, &good, before, 2);
        check_loss_scale(1, &scale, &good, before < 0x1p24 ? 2 * before : before, 0);
    }
    assert_true(scale == 0x1p24f);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_clip_scale_of_scaled),
                                       cmocka_unit_test(test_loss_scale),
                                       cmocka_unit_test(test_adamw),
                                       cmocka_unit_test(test_adamw_zero_gradient),
                                       cmocka_unit_test(test_limit),
                                       cmocka_unit_test(test_angle),
                                       cmocka_unit_test(test_angle_not_finite),
                                       cmocka_unit_test(test_ema),
                                       cmocka_unit_test(test_sum_squares),
                                       cmocka_unit_test(test_sum_squares_range),
                                       cmocka_unit_test(test_sum_squares_workspace),
                                       cmocka_unit_test(test_clip_scale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
