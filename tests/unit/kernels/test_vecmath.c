/* The vector functions at every level of this machine against the C library in double precision, over all magnitudes
 * and at the edges: ±0, subnormal, ±inf, NaN. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "kernels/kernels.h"
#include "support/program.h"

enum { COUNT = 400003 };

static float x[COUNT], y[COUNT], dy[COUNT];

/* Dense on [−limit, limit], then both signs of every magnitude from the smallest subnormal to 3e38. */
static void fill_inputs(double limit)
{
    for (int i = 0; i < COUNT / 2; i++) x[i] = (float)(limit * (4.0 * i / COUNT - 1));
    uint32_t step = 0x7f7fffffu / (COUNT / 4);
    for (int i = COUNT / 2; i < COUNT; i++) {
        uint32_t bits = (uint32_t)(i - COUNT / 2) / 2 * step | (i & 1 ? 0x80000000u : 0);
        memcpy(&x[i], &bits, 4);
    }
}

static double ulp_of(double value)
{
    double a = fabs(value);
    return a < FLT_MIN ? 0x1p-149 : ldexp(1, ilogb(a) - 23);
}

static void for_each_level(void (*check)(const pl_kernels *, const char *))
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        check(pl_kernels_get((pl_isa)isa), pl_isa_name((pl_isa)isa));
}

static void check_exp(const pl_kernels *kernels, const char *level)
{
    double worst = 0;
    fill_inputs(105);
    kernels->vecmath(PL_VECMATH_EXP, COUNT, x, y);
    for (int i = 0; i < COUNT; i++) {
        double e = exp(x[i]);
        if (e > FLT_MAX) {
            assert_true(y[i] == INFINITY || y[i] > 3.402e38f);
            continue;
        }
        worst = fmax(worst, fabs(e - (double)y[i]) / ulp_of(e));
    }
    print_message("exp %s: %.2f ulp\n", level, worst);
    assert_true(worst <= 2);
}

static void check_exp2(const pl_kernels *kernels, const char *level)
{
    double worst = 0;
    fill_inputs(127);
    for (int i = 0; i < COUNT; i++) x[i] = x[i] <= 127 ? x[i] : -x[i];
    kernels->vecmath(PL_VECMATH_EXP2, COUNT, x, y);
    for (int i = 0; i < COUNT; i++) {
        double e = exp2(x[i]);
        if (e < 0x1p-125)
            assert_true(y[i] >= 0 && y[i] <= 0x1p-124f);
        else
            worst = fmax(worst, fabs(e - (double)y[i]) / ulp_of(e));
    }
    print_message("exp2 %s: %.2f ulp\n", level, worst);
    assert_true(worst <= 4);
    const float edge[4] = {0, -INFINITY, -3e38f, NAN};
    kernels->vecmath(PL_VECMATH_EXP2, 4, edge, y);
    assert_true(y[0] == 1 && y[1] == 0 && y[2] == 0 && isnan(y[3]));
}

static void check_log(const pl_kernels *kernels, const char *level)
{
    double worst = 0;
    fill_inputs(2000);
    for (int i = 0; i < COUNT; i++) x[i] = fabsf(x[i]) < FLT_MIN ? 1 : fabsf(x[i]);
    kernels->vecmath(PL_VECMATH_LOG, COUNT, x, y);
    for (int i = 0; i < COUNT; i++) worst = fmax(worst, fabs(log(x[i]) - (double)y[i]) / fmax(1, fabs(log(x[i]))));
    print_message("log %s: %.2e\n", level, worst);
    assert_true(worst <= 1.3e-7);
}

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }
static double gelu(double v) { return v < -50 ? 0 : 0.5 * v * erfc(-v * M_SQRT1_2); }
static double silu(double v) { return v < -500 ? 0 : v * sigmoid(v); }
static double relu(double v) { return v > 0 ? v : 0; }
static double gelu_grad(double v)
{
    return 0.5 * erfc(-v * M_SQRT1_2) + (fabs(v) > 50 ? 0 : v * exp(-0.5 * v * v) / sqrt(2 * M_PI));
}
static double silu_grad(double v) { return fabs(v) > 500 ? v > 0 : sigmoid(v) * (1 + v * sigmoid(-v)); }
static double tanh_grad(double v) { return 1 - tanh(v) * tanh(v); }
static double relu_grad(double v) { return v > 0; }
static double leaky_relu(double v) { return v > 0 ? v : 0.01 * v; }
static double leaky_relu_grad(double v) { return v > 0 ? 1 : 0.01; }
static double sigmoid_grad(double v) { return sigmoid(v) * sigmoid(-v); }
static double quick_gelu(double v) { return v < -400 ? 0 : v * sigmoid(1.702 * v); }
static double quick_gelu_grad(double v)
{
    return fabs(v) > 400 ? v > 0 : sigmoid(1.702 * v) + 1.702 * v * sigmoid_grad(1.702 * v);
}
static double gelu_tanh(double v)
{
    const double t = tanh(sqrt(M_2_PI) * (v + 0.044715 * v * v * v));
    return v < -40 ? 0 : 0.5 * v * (1 + t);
}
static double gelu_tanh_grad(double v)
{
    const double u = sqrt(M_2_PI) * (v + 0.044715 * v * v * v), slope = sqrt(M_2_PI) * (1 + 3 * 0.044715 * v * v);
    return fabs(v) > 40 ? v > 0 : 0.5 * (1 + tanh(u)) + 0.5 * v * slope / (cosh(u) * cosh(u));
}
static double one(double v) { return (void)v, 1; }
static double same(double v) { return v; }

static double worst_error(double (*f)(double))
{
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        double e = f(x[i]), error = fabs(e - (double)y[i]) / fmax(1, fabs(e));
        assert_false(isnan(error));
        worst = fmax(worst, error);
    }
    return worst;
}

static void check_functions(const pl_kernels *kernels, const char *level)
{
    static double (*const value[PL_ACT_COUNT])(double) = {same,       gelu,    silu,       tanh,     relu,
                                                          leaky_relu, sigmoid, quick_gelu, gelu_tanh};
    static double (*const slope[PL_ACT_COUNT])(double) = {one,          gelu_grad,       silu_grad,
                                                          tanh_grad,    relu_grad,       leaky_relu_grad,
                                                          sigmoid_grad, quick_gelu_grad, gelu_tanh_grad};
    fill_inputs(12);
    for (int i = 0; i < COUNT; i++) dy[i] = 1;
    kernels->vecmath(PL_VECMATH_ERF, COUNT, x, y);
    double e = worst_error(erf);
    kernels->vecmath(PL_VECMATH_SIGMOID, COUNT, x, y);
    double s = worst_error(sigmoid);
    print_message("%s: erf %.2e, sigmoid %.2e\n", level, e, s);
    assert_true(e <= 2e-7 && s <= 2e-7);
    for (int act = 0; act < PL_ACT_COUNT; act++) {
        kernels->activation((pl_activation)act, COUNT, PL_REAL_F32, x, y);
        double v = worst_error(value[act]);
        kernels->activation_bwd((pl_activation)act, COUNT, PL_REAL_F32, x, dy, y);
        double g = worst_error(slope[act]);
        print_message("%s %s: value %.2e, derivative %.2e\n", level, pl_activation_name((pl_activation)act), v, g);
        assert_true(v <= 2e-7 && g <= 1e-6);
    }
}

static void check_edges(const pl_kernels *kernels, const char *level)
{
    const float edge[5] = {0, -0.0f, INFINITY, -INFINITY, NAN}, ones[5] = {1, 1, 1, 1, 1};
    const float exp_at[4] = {1, 1, INFINITY, 0}, erf_at[4] = {0, 0, 1, -1}, sigmoid_at[4] = {0.5f, 0.5f, 1, 0};
    const float *const functions[] = {
        [PL_VECMATH_EXP] = exp_at, [PL_VECMATH_ERF] = erf_at, [PL_VECMATH_SIGMOID] = sigmoid_at};
    const float value[PL_ACT_COUNT][4] = {
        {0, 0, INFINITY, -INFINITY}, {0, 0, INFINITY, 0}, {0, 0, INFINITY, 0}, {0, 0, 1, -1},      {0, 0, INFINITY, 0},
        {0, 0, INFINITY, -INFINITY}, {0.5f, 0.5f, 1, 0},  {0, 0, INFINITY, 0}, {0, 0, INFINITY, 0}};
    const float slope[PL_ACT_COUNT][4] = {{1, 1, 1, 1},         {0.5f, 0.5f, 1, 0}, {0.5f, 0.5f, 1, 0},
                                          {1, 1, 0, 0},         {0, 0, 1, 0},       {0.01f, 0.01f, 1, 0.01f},
                                          {0.25f, 0.25f, 0, 0}, {0.5f, 0.5f, 1, 0}, {0.5f, 0.5f, 1, 0}};
    float out[5];
    for (int f = 0; f < PL_VECMATH_COUNT; f++) {
        if (f == PL_VECMATH_EXP2 || f == PL_VECMATH_LOG) continue;
        kernels->vecmath((pl_vecmath)f, 5, edge, out);
        for (int i = 0; i < 4; i++) assert_true(fabsf(out[i] - functions[f][i]) < 1e-7f || out[i] == functions[f][i]);
        assert_true(isnan(out[4]));
    }
    for (int act = 0; act < PL_ACT_COUNT; act++) {
        kernels->activation((pl_activation)act, 5, PL_REAL_F32, edge, out);
        for (int i = 0; i < 4; i++)
            if (out[i] != value[act][i]) fail_msg("%s act %d case %d: %g", level, act, i, (double)out[i]);
        assert_true(isnan(out[4]));
        kernels->activation_bwd((pl_activation)act, 5, PL_REAL_F32, edge, ones, out);
        for (int i = 0; i < 4; i++) assert_true(fabsf(out[i] - slope[act][i]) < 1e-7f);
        assert_true(act == PL_ACT_NONE || isnan(out[4]));
    }
}

/* Closed forms, in more digits than an f32 has. */
static void check_quick_gelu(const pl_kernels *kernels, const char *level)
{
    const float at[4] = {1, -1, 0, 0.5f}, ones[4] = {1, 1, 1, 1};
    const double value[4] = {0.8457957659328212, -0.1542042340671787, 0, 0.3503884366063801};
    const double slope[4] = {1.0677796065563341, -0.0677796065563341, 0.5, 0.8792219119654143};
    float out[4];
    kernels->activation(PL_ACT_QUICK_GELU, 4, PL_REAL_F32, at, out);
    for (int i = 0; i < 4; i++)
        if (fabs((double)out[i] - value[i]) > 1.5e-7) fail_msg("%s: %.9g at %g", level, (double)out[i], (double)at[i]);
    kernels->activation_bwd(PL_ACT_QUICK_GELU, 4, PL_REAL_F32, at, ones, out);
    for (int i = 0; i < 4; i++)
        if (fabs((double)out[i] - slope[i]) > 3e-7)
            fail_msg("%s: slope %.9g at %g", level, (double)out[i], (double)at[i]);
}

/* Whatever the length, exactly `count` elements are written, and each as in a long run. */
static void check_lengths(const pl_kernels *kernels, const char *level)
{
    (void)level;
    float all[100], part[100];
    fill_inputs(5);
    kernels->activation(PL_ACT_GELU, 100, PL_REAL_F32, x + 70000, all);
    for (int n = 0; n < 70; n++) {
        for (int i = 0; i < 100; i++) part[i] = 77;
        kernels->activation(PL_ACT_GELU, n, PL_REAL_F32, x + 70000, part);
        assert_memory_equal(all, part, (size_t)n * sizeof(float));
        for (int i = n; i < 100; i++) assert_true(part[i] == 77);
    }
}

static void test_exp(void **state) { (void)state, for_each_level(check_exp); }
static void test_exp2(void **state) { (void)state, for_each_level(check_exp2); }
static void test_log(void **state) { (void)state, for_each_level(check_log); }
static void test_functions(void **state) { (void)state, for_each_level(check_functions); }
static void test_edges(void **state) { (void)state, for_each_level(check_edges); }
static void test_quick_gelu(void **state) { (void)state, for_each_level(check_quick_gelu); }
static void test_lengths(void **state) { (void)state, for_each_level(check_lengths); }

/* Asking for a level that the machine lacks gives the best below it. */
static void test_fallback(void **state)
{
    (void)state;
    const pl_kernels *best = pl_kernels_get(pl_isa_of_machine());
    assert_ptr_equal(pl_kernels_get((pl_isa)(PL_ISA_COUNT - 1)), best);
    assert_ptr_not_equal(pl_kernels_get(PL_ISA_REF), pl_kernels_get(PL_ISA_BASELINE));
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),        cmocka_unit_test(test_exp2),     cmocka_unit_test(test_log),
        cmocka_unit_test(test_functions),  cmocka_unit_test(test_edges),    cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_quick_gelu), cmocka_unit_test(test_fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
