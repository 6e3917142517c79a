/* What a calibration sees of random numbers, by any team and in any pieces, against counting one by one; and products
 * of 8 bits as graphs have them. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/quantize.h"
#include "support/guarded.h"
#include "support/program.h"

static const int teams[] = {1, 2, 5};
enum { TEAMS = 3 };

static void observe(const float *x, int64_t count, pl_extremes *e, int64_t *bin, int threads)
{
    const pl_team team = {threads, pl_isa_of_machine()};
    const pl_observe_call call = {count, x, e, bin};
    pl_observe_exec(&call, guarded_bytes(pl_observe_workspace_bytes(&call, team), 0), team);
}

static float at(const float *x, int64_t i, bool odd)
{
    return !odd ? x[i] : i % 97 == 0 ? NAN : i % 89 ? x[i] : -INFINITY;
}

static void check(int64_t count, bool odd)
{
    static int64_t expected[PL_SPREAD_BINS], bin[PL_SPREAD_BINS];
    const float *drawn = guarded_normal(count, (uint64_t)count);
    float *x = guarded_f32(count);
    pl_extremes e = {0};
    for (int64_t i = 0; i < count; i++) {
        x[i] = at(drawn, i, odd);
        if (!isfinite(x[i])) e.not_finite++;
        if (isfinite(x[i]) && x[i] < e.least) e.least = x[i];
        if (isfinite(x[i]) && x[i] > e.largest) e.largest = x[i];
    }
    const float limit = e.largest > -e.least ? e.largest : -e.least;
    memset(expected, 0, sizeof expected);
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(x[i])) continue;
        const int place = (int)(x[i] * (PL_SPREAD_HALF / limit) + PL_SPREAD_HALF);
        expected[place < PL_SPREAD_BINS ? place : PL_SPREAD_BINS - 1]++;
    }
    for (int t = 0; t < TEAMS; t++) {
        pl_extremes seen = {0};
        const int64_t cut = count / 3;
        observe(x, cut, &seen, NULL, teams[t]);
        observe(x + cut, count - cut, &seen, NULL, teams[t]);
        assert_memory_equal(&seen, &e, sizeof e);
        memset(bin, 0, sizeof bin);
        observe(x + cut, count - cut, &seen, bin, teams[t]);
        observe(x, cut, &seen, bin, teams[t]);
        assert_memory_equal(bin, expected, sizeof bin);
        assert_memory_equal(&seen, &e, sizeof e);
    }
    guarded_check_all();
    guarded_free_all();
}

static void seen(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++)
        for (int64_t count = 3; count < 200000; count = count * 7 + 1) check(count, odd);
}

/* 0 alone, and what is next to it. */
static void nothing_to_see(void **state)
{
    (void)state;
    static int64_t bin[PL_SPREAD_BINS];
    const float none[] = {0, 0, -0.0f}, small[] = {1e-42f, -1e-42f, 0};
    pl_extremes e = {0};
    observe(none, 3, &e, NULL, 1);
    assert_true(e.least == 0 && e.largest == 0 && e.not_finite == 0);
    observe(none, 3, &e, bin, 1);
    assert_int_equal(bin[PL_SPREAD_HALF], 3);
    observe(small, 3, &e, NULL, 1);
    observe(small, 3, &e, bin, 1);
    assert_int_equal(bin[PL_SPREAD_HALF], 6);
    guarded_free_all();
}

/* ---- differences ---- */

static void differences(void **state)
{
    (void)state;
    for (int64_t count = 1; count < 50000; count = count * 11 + 2) {
        const float *x = guarded_normal(count, 1), *drawn = guarded_normal(count, 2);
        float *y = guarded_copy(drawn, count);
        double error = 0, all = 0, first[2] = {0};
        for (int64_t i = 0; i < count; i++) {
            const double d = (double)x[i] - (double)y[i];
            error += d * d, all += (double)x[i] * (double)x[i];
        }
        for (int t = 0; t < TEAMS; t++) {
            double sums[2] = {3, 5};
            const pl_difference_call call = {count, x, y, sums};
            pl_difference_exec(&call, guarded_bytes(pl_difference_workspace_bytes(&call), 0),
                               (pl_team){teams[t], pl_isa_of_machine()});
            assert_true(fabs(sums[0] - 3 - error) <= 1e-9 * error && fabs(sums[1] - 5 - all) <= 1e-9 * all);
            if (t == 0) memcpy(first, sums, sizeof first);
            assert_memory_equal(first, sums, sizeof first);
        }
        double sums[2] = {0};
        y[count / 2] = INFINITY; /* is not passed over */
        const pl_difference_call call = {count, x, y, sums};
        pl_difference_exec(&call, guarded_bytes(pl_difference_workspace_bytes(&call), 0),
                           (pl_team){teams[0], pl_isa_of_machine()});
        assert_false(isfinite(sums[0]));
        guarded_check_all();
        guarded_free_all();
    }
}

/* ---- what takes the place of something else ---- */

static void overwritten(void **state)
{
    (void)state;
    for (int64_t count = 1; count < 50000; count = count * 11 + 2)
        for (int t = 0; t < TEAMS; t++) {
            const float *z = guarded_normal(count, 1);
            float *y = guarded_f32(count);
            pl_overwrite_exec(&(pl_overwrite_call){count, y, z}, (pl_team){teams[t], pl_isa_of_machine()});
            assert_memory_equal(y, z, (size_t)count * sizeof *y);
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- products ---- */

/* Against the product of what the 8 bits mean, in double: rounded once more at each of a few steps. */
static void check_product(int64_t m, int64_t n, int64_t k, const float range[2], pl_team team)
{
    const float *x = guarded_normal(m * k, 1), *w = guarded_normal(n * k, 2), *bias = guarded_normal(n, 3);
    const float *residual = guarded_normal(m * n, 4);
    int8_t *q = guarded_bytes((uint64_t)(n * k), 0);
    float *scale = guarded_f32(n), *y = guarded_f32(m * n), *act = guarded_f32(m * n);
    void *packed = guarded_bytes(pl_int8_packed_bytes(n, k), 0);
    for (int64_t j = 0; j < n; j++) scale[j] = pl_int8_quantize_channel(k, w + j * k, q + j * k);
    pl_int8_pack(n, k, q, k, scale, packed);
    int8_t *turned = guarded_bytes((uint64_t)(n * k), 1);
    pl_int8_unpack(n, k, packed, turned);
    for (int64_t i = 0; i < n * k; i++) assert_int_equal(turned[i % k * n + i / k], q[i]);
    const pl_linear_int8_call call = {{.m = m,
                                       .n = n,
                                       .k = k,
                                       .x_real = x,
                                       .ld_x = k,
                                       .packed = packed,
                                       .bias = bias,
                                       .residual = residual,
                                       .ld_residual = n,
                                       .c = y,
                                       .ldc = n,
                                       .act = PL_ACT_RELU,
                                       .act_out = act,
                                       .ld_act_out = n},
                                      range};
    pl_linear_int8_exec(&call, guarded_bytes(pl_int8_workspace_bytes(&call.product, team), 0), team);
    const pl_quantization of = pl_quantization_of(range[0], range[1]);
    for (int64_t i = 0; i < m * n; i++) {
        double sum = 0, size = 0;
        for (int64_t p = 0; p < k; p++) {
            const double a = (double)pl_dequantize(of, pl_quantize(of, x[i / n * k + p]));
            const double b = (double)q[i % n * k + p] * (double)scale[i % n];
            sum += a * b;
            size += fabs(a * b);
        }
        const double expected = sum + (double)bias[i % n] + (double)residual[i];
        assert_true(fabs(expected - (double)y[i]) <= 1e-6 * (size + 4));
        assert_true(act[i] == (y[i] > 0 ? y[i] : 0));
    }
    guarded_check_all();
    guarded_free_all();
}

static void products(void **state)
{
    (void)state;
    static const float ranges[][2] = {{-3, 4}, {0, 2}, {-1, 0}, {0, 0}};
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int r = 0; r < 4; r++) {
            const pl_team team = {teams[r % TEAMS], (pl_isa)isa};
            check_product(5, 33, 70, ranges[r], team);
            check_product(1, 16, 4, ranges[r], team);
            check_product(40, 7, 129, ranges[r], team);
        }
}

/* What quantizing cannot have made. */
static void scales_that_cannot_be(void **state)
{
    (void)state;
    const float w[] = {FLT_MAX, -1, 0, 3}, bad[] = {NAN, INFINITY, -1, 0, -0.0f, 2.7e36f, FLT_MAX};
    int8_t q[4];
    char packed[1024];
    float scale = pl_int8_quantize_channel(4, w, q);
    assert_true(pl_int8_packed_bytes(1, 4) <= sizeof packed);
    pl_int8_pack(1, 4, q, 4, &scale, packed);
    assert_int_equal(pl_int8_check(1, 4, packed), -1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(packed, &bad[i], sizeof bad[i]);
        assert_int_equal(pl_int8_check(1, 4, packed), 0);
    }
}

/* ---- hidden layers: the bits of the product, the activation or the gate and the rounding one after the other ---- */

typedef struct hidden {
    int64_t m, n, k; /* n: of h */
    bool gated;
    pl_activation act;
    const float *x;
    const void *packed;
    const float *bias;
} hidden;

static hidden hidden_create(int64_t m, int64_t n, int64_t k, bool gated, pl_activation act)
{
    const int64_t rows = gated ? 2 * n : n;
    const float *w = guarded_normal(rows * k, 2);
    int8_t *q = guarded_bytes((uint64_t)(rows * k), 0);
    float *scale = guarded_f32(rows);
    void *packed = guarded_bytes(pl_int8_packed_bytes(rows, k), 0);
    for (int64_t j = 0; j < rows; j++) scale[j] = pl_int8_quantize_channel(k, w + j * k, q + j * k);
    pl_int8_pack(rows, k, q, k, scale, packed);
    return (hidden){m, n, k, gated, act, guarded_normal(m * k, 1), packed, guarded_normal(rows, 3)};
}

static const float hidden_range[] = {-3, 3}, next_range[] = {-2, 6};

static pl_linear_int8_call product_of(const hidden *h)
{
    return (pl_linear_int8_call){
        .product =
            {.m = h->m, .n = h->n, .k = h->k, .x_real = h->x, .ld_x = h->k, .packed = h->packed, .bias = h->bias},
        .range = hidden_range};
}

static void exec(const pl_linear_int8_call *c, pl_team team)
{
    pl_linear_int8_exec(c, guarded_bytes(pl_int8_workspace_bytes(&c->product, team), 0), team);
}

static void one_by_one(const hidden *h, float *y, uint8_t *q, pl_team team)
{
    const int64_t wide = h->gated ? 2 * h->n : h->n;
    const pl_quantization of = pl_quantization_of(next_range[0], next_range[1]);
    float *u = guarded_f32(h->m * wide);
    pl_linear_int8_call c = product_of(h);
    c.product.n = c.product.ldc = wide, c.product.c = u;
    exec(&c, team);
    if (h->gated)
        pl_gated_activation_exec(&(pl_gated_activation_call){h->m, h->n, h->act, u, y}, team);
    else
        pl_activation_exec(&(pl_activation_call){.count = h->m * h->n, .act = h->act, .x = u, .y = y}, team);
    pl_quantize_exec(&(pl_quantize_call){h->m, h->n, h->n, h->n, y, of.scale, of.zero, q}, team);
}

static void check_hidden(const hidden *h, pl_team team)
{
    float *y = guarded_f32(h->m * h->n), *fused = guarded_f32(h->m * h->n);
    uint8_t *q = guarded_bytes((uint64_t)(h->m * h->n), 0), *rounded = guarded_bytes((uint64_t)(h->m * h->n), 0);
    one_by_one(h, y, q, team);
    pl_linear_int8_call c = product_of(h);
    c.product.gated = h->gated, c.product.act = h->act;
    c.product.act_out = fused, c.product.ld_act_out = h->n;
    exec(&c, team);
    assert_memory_equal(y, fused, (size_t)(h->m * h->n) * sizeof *y);
    c.product.act_out = NULL;
    c.product.q_out = rounded, c.product.ld_q_out = h->n, c.out_range = next_range;
    exec(&c, team);
    assert_memory_equal(q, rounded, (size_t)(h->m * h->n));
    guarded_check_all();
}

static void hidden_layers(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int t = 0; t < TEAMS; t++) {
            const pl_team team = {teams[t], (pl_isa)isa};
            const hidden each[] = {hidden_create(29, 48, 70, true, PL_ACT_SILU),
                                   hidden_create(1, 16, 9, true, PL_ACT_GELU),
                                   hidden_create(14, 37, 64, false, PL_ACT_GELU)};
            for (int i = 0; i < 3; i++) check_hidden(&each[i], team);
            guarded_free_all();
        }
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(seen),         cmocka_unit_test(nothing_to_see),
                                       cmocka_unit_test(differences),  cmocka_unit_test(overwritten),
                                       cmocka_unit_test(products),     cmocka_unit_test(scales_that_cannot_be),
                                       cmocka_unit_test(hidden_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
