/* Elementwise calls with a team: values, in-place use, the same bits for any team, nothing written outside;
 * dropout against base/philox.h one element at a time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "base/philox.h"
#include "support/program.h"

enum { COUNT = 40009, GUARD = 32 };

static float a[COUNT], b[COUNT], y[COUNT + 2 * GUARD], first[COUNT];
static const int threads[] = {1, 2, 8, 16, 64};

static void prepare(void)
{
    pl_philox p = pl_philox_init(3, 4);
    pl_philox_normal_f32(&p, 0, 0, 0, COUNT, a);
    pl_philox_normal_f32(&p, 0, 1, 0, COUNT, b);
    for (int i = 0; i < COUNT + 2 * GUARD; i++) y[i] = 99;
}

/* The guards are whole, and the result equals that of the first team of this level. */
static void check_same(int t, int count)
{
    for (int i = 0; i < GUARD; i++) assert_true(y[i] == 99 && y[GUARD + count + i] == 99);
    if (t == 0) memcpy(first, y + GUARD, (size_t)count * sizeof(float));
    assert_memory_equal(first, y + GUARD, (size_t)count * sizeof(float));
}

static void for_each_team(void (*check)(int, pl_team))
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int t = 0; t < 5; t++) {
            prepare();
            check(t, (pl_team){threads[t], (pl_isa)isa});
        }
}

static void check_activation(int t, pl_team team)
{
    pl_activation_exec(&(pl_activation_call){COUNT, PL_ACT_SILU, a, y + GUARD}, team);
    for (int i = 0; i < COUNT; i++) assert_true(fabs(a[i] / (1 + exp(-(double)a[i])) - (double)y[GUARD + i]) < 4e-7);
    check_same(t, COUNT);
    memcpy(y + GUARD, b, sizeof b);
    pl_activation_bwd_exec(&(pl_activation_bwd_call){COUNT, PL_ACT_TANH, a, y + GUARD, y + GUARD}, team);
    for (int i = 0; i < COUNT; i++) {
        double th = tanh(a[i]);
        assert_true(fabs(b[i] * (1 - th * th) - (double)y[GUARD + i]) < 4e-6);
    }
}

enum { GATED_WIDTH = 1001, GATED_ROWS = COUNT / 2 / GATED_WIDTH };

static void check_gated_activation(int t, pl_team team)
{
    pl_gated_activation_exec(&(pl_gated_activation_call){GATED_ROWS, GATED_WIDTH, PL_ACT_SILU, a, y + GUARD}, team);
    for (int i = 0; i < GATED_ROWS * GATED_WIDTH; i++) {
        const int at = i / GATED_WIDTH * 2 * GATED_WIDTH + i % GATED_WIDTH;
        const double gate = a[at], up = a[at + GATED_WIDTH];
        assert_true(fabs(gate / (1 + exp(-gate)) * up - (double)y[GUARD + i]) < 4e-7 * (1 + fabs(up)));
    }
    check_same(t, GATED_ROWS * GATED_WIDTH);
}

static void check_add(int t, pl_team team)
{
    pl_add_exec(&(pl_add_call){COUNT, a, b, y + GUARD}, team);
    for (int i = 0; i < COUNT; i++) assert_true(y[GUARD + i] == a[i] + b[i]);
    check_same(t, COUNT);
    pl_add_exec(&(pl_add_call){COUNT, a, b, a}, team);
    assert_memory_equal(a, y + GUARD, sizeof a);
}

static void check_fill(int t, pl_team team)
{
    (void)t;
    pl_fill_exec(&(pl_fill_call){COUNT * sizeof(float) - 3, y + GUARD}, team);
    const unsigned char *bytes = (const unsigned char *)(y + GUARD);
    for (size_t i = 0; i < COUNT * sizeof(float) - 3; i++) assert_int_equal(bytes[i], 0);
    const float ninety_nine = 99;
    assert_memory_equal(bytes + COUNT * sizeof(float) - 3, (const unsigned char *)&ninety_nine + 1, 3);
    assert_true(y[GUARD - 1] == 99 && y[GUARD + COUNT] == 99);
}

/* Put back through erf, each is the uniform number that it was made of; and the deviation is the one asked for. */
static void check_truncated_normal(int t, pl_team team)
{
    const pl_philox p = pl_philox_init(5, 6);
    const double std = 0.25, within = erf(sqrt(2)), left = sqrt(1 - 4 * exp(-2) / sqrt(2 * acos(-1)) / within);
    double squares = 0;
    pl_truncated_normal_exec(&(pl_normal_call){COUNT, (float)std, 5, 6, y + GUARD}, team);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits[4];
        pl_philox_block(&p, 0, 0, (uint32_t)i / 4, bits);
        const double share = (double)(bits[i % 4] >> 8) / 0x1p23 - 1, x = (double)y[GUARD + i] * left / std;
        assert_true(fabs(x) <= 2 + 1e-6 && fabs(erf(x / sqrt(2)) / within - share) < 1e-6);
        squares += (double)y[GUARD + i] * y[GUARD + i];
    }
    assert_true(fabs(squares / COUNT - std * std) < 8 * std * std / sqrt(COUNT)); /* 8 deviations and more */
    check_same(t, COUNT);
}

/* From 0 on: none below, none above. */
static void check_uniform_from_zero(int t, pl_team team)
{
    const pl_philox p = pl_philox_init(5, 6);
    const float high = 0.3f;
    pl_uniform_exec(&(pl_uniform_call){COUNT, high / 2, high / 2, 5, 6, NULL, y + GUARD}, team);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits[4];
        pl_philox_block(&p, 0, 0, (uint32_t)i / 4, bits);
        const double wanted = (double)(bits[i % 4] >> 8) / 0x1p24 * (double)high;
        assert_true(y[GUARD + i] >= 0 && y[GUARD + i] <= high && fabs(y[GUARD + i] - wanted) < 0x1p-23 * (double)high);
    }
    check_same(t, COUNT);
}

/* A closed form of each element, of the item's number and of its own; the moments of U(−bound, bound) follow. */
static void check_uniform(int t, pl_team team)
{
    static const int64_t item = INT64_C(1) << 33 | 7;
    const pl_philox p = pl_philox_init(5, 6);
    double sum = 0, squares = 0;
    for (int k = 0; k < 2; k++) {
        pl_uniform_exec(&(pl_uniform_call){COUNT, 0, 0.25f, 5, 6, k ? &item : NULL, y + GUARD}, team);
        for (int i = 0; i < COUNT; i++) {
            uint32_t bits[4];
            pl_philox_block(&p, 0, k ? (uint64_t)item : 0, (uint32_t)i / 4, bits);
            assert_true(y[GUARD + i] == (float)(((double)(bits[i % 4] >> 8) / 0x1p23 - 1) * 0.25));
            sum += y[GUARD + i];
            squares += (double)y[GUARD + i] * y[GUARD + i];
        }
    }
    assert_true(fabs(sum / (2 * COUNT)) < 0.004 &&
                fabs(squares / (2 * COUNT) - 0.0625 / 3) < 0.0006); /* 8 deviations */
    check_same(t, COUNT);
}

/* Element e of global sample s, as base/philox.h defines it. */
static float expected_factor(const pl_dropout_call *c, int64_t sample, int64_t e)
{
    uint32_t bits[4];
    pl_philox p = pl_philox_init(c->seed, c->stream);
    pl_philox_block(&p, (uint32_t)*c->step, (uint64_t)(*c->first_sample + sample), (uint32_t)(e / 4), bits);
    return pl_uniform_f32(bits[e % 4]) >= c->probability ? 1 / (1 - c->probability) : 0;
}

static void check_dropout(int t, pl_team team)
{
    int64_t step = 17, first_sample = (int64_t)1 << 33, elems = 4099 + 7, samples = 9, kept = 0;
    pl_dropout_call c = {samples, elems, 0.25f, 5, 6, &step, &first_sample, a, NULL, y + GUARD};
    pl_dropout_exec(&c, team);
    for (int64_t i = 0; i < samples * elems; i++) {
        float factor = expected_factor(&c, i / elems, i % elems);
        kept += factor > 0;
        assert_true(y[GUARD + i] == a[i] * factor);
    }
    assert_true(llabs(kept - (int64_t)(0.75 * (double)(samples * elems))) < 400);
    check_same(t, (int)(samples * elems));
}

static void check_dropout_residual(int t, pl_team team)
{
    (void)t;
    int64_t step = 1, first_sample = 3, elems = 101, samples = 3;
    pl_dropout_call c = {samples, elems, 0.5f, 5, 6, &step, &first_sample, a, b, y + GUARD};
    a[5] = INFINITY, a[6] = NAN; /* a dropped element is gone, whatever it was */
    pl_dropout_exec(&c, team);
    for (int64_t i = 0; i < samples * elems; i++) {
        float factor = expected_factor(&c, i / elems, i % elems);
        double expected = b[i] + (factor > 0 ? (double)a[i] * factor : 0);
        if (isfinite(expected))
            assert_true(fabs(expected - (double)y[GUARD + i]) < 1e-6);
        else
            assert_true(factor > 0 && !isfinite(y[GUARD + i]));
    }
    float before[303];
    memcpy(before, y + GUARD, sizeof before);
    c.y = b; /* y may be the residual */
    pl_dropout_exec(&c, team);
    assert_memory_equal(before, b, sizeof before);
    c.residual = NULL, c.probability = 0, c.y = a; /* nothing dropped; y may be x */
    a[5] = a[6] = 1;
    memcpy(before, a, sizeof before);
    pl_dropout_exec(&c, team);
    assert_memory_equal(before, a, sizeof before);
}

static void test_activation(void **state) { (void)state, for_each_team(check_activation); }
static void test_gated_activation(void **state) { (void)state, for_each_team(check_gated_activation); }
static void test_add(void **state) { (void)state, for_each_team(check_add); }
static void test_fill(void **state) { (void)state, for_each_team(check_fill); }
static void test_truncated_normal(void **state) { (void)state, for_each_team(check_truncated_normal); }
static void test_uniform(void **state) { (void)state, for_each_team(check_uniform); }
static void test_uniform_from_zero(void **state) { (void)state, for_each_team(check_uniform_from_zero); }
static void test_dropout(void **state) { (void)state, for_each_team(check_dropout); }
static void test_dropout_residual(void **state) { (void)state, for_each_team(check_dropout_residual); }

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_gated_activation),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_truncated_normal),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_uniform_from_zero),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_dropout_residual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
