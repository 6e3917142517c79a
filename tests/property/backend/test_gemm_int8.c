/* The int8 product against sums in int64 and an epilogue of single f32 steps, whose bits are the result: over random
 * shapes, strides and epilogues, at every level of this machine with and without VNNI, and for 1 to 4 threads.
 * Extremes: sums that 16 bits cannot hold anywhere on their way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "property/backend/words_cases.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t first_seed;

typedef struct problem {
    pl_int8_call call;
    rows_of x, x_real, bias, residual, c, act_out, q_out;
    const int8_t *w; /* [n, k] */
    const float *scale;
    int residual_is_c, activation_in_c;
} problem;

static int8_t draw_weight(int extreme) { return (int8_t)(extreme ? (chance(50) ? -128 : 127) : below(256) - 128); }

static int64_t rows_of_w(const problem *p) { return p->call.gated ? 2 * p->call.n : p->call.n; }

static void pack(problem *p, int extreme)
{
    const int64_t n = rows_of_w(p), k = p->call.k, ld = k + below(5);
    int8_t *w = guarded_bytes((uint64_t)(n * ld), 0);
    float *scale = guarded_f32(n);
    for (int64_t i = 0; i < n * ld; i++) w[i] = draw_weight(extreme);
    for (int64_t j = 0; j < n; j++) scale[j] = 0.001f + fabsf(draw_real(0.01f));
    void *packed = guarded_bytes(pl_int8_packed_bytes(n, k), 0);
    pl_int8_pack(n, k, w, ld, scale, packed);
    int8_t *dense = guarded_bytes((uint64_t)(n * k), 0);
    for (int64_t j = 0; j < n; j++) memcpy(dense + j * k, w + j * ld, (size_t)k);
    p->w = dense, p->scale = scale, p->call.packed = packed;
}

static void operands(problem *p, int extreme)
{
    const int64_t m = p->call.m, k = p->call.k;
    if (!extreme && chance(30)) {
        p->x_real = rows_of_reals(m, k, 3);
        p->call.x_real = p->x_real.at, p->call.ld_x = p->x_real.ld;
    } else {
        p->x = rows_create(m, k, 1);
        for (int64_t i = 0; i < m * p->x.ld; i++) ((uint8_t *)p->x.at)[i] = (uint8_t)(extreme ? 255 : below(256));
        p->call.x = p->x.at, p->call.ld_x = p->x.ld;
    }
    p->call.x_scale = 0.01f + fabsf(draw_real(0.02f));
    p->call.x_zero = (int32_t)(chance(20) ? 0 : chance(20) ? 255 : below(256));
    pack(p, extreme);
}

static void epilogue(problem *p)
{
    const int64_t m = p->call.m, n = p->call.n;
    p->call.act = (pl_activation)below(PL_ACT_COUNT);
    if (chance(60)) p->bias = rows_of_reals(1, rows_of_w(p), 1);
    p->residual_is_c = chance(20);
    if (!p->residual_is_c && chance(40)) p->residual = rows_of_reals(m, n, 1);
    if (chance(60)) p->act_out = rows_create(m, n, sizeof(float));
    p->activation_in_c = !p->act_out.at && chance(30);
    p->call.q_scale = 0.02f, p->call.q_zero = (int32_t)below(256);
    if (chance(40)) p->q_out = rows_create(m, n, 1);
}

static problem problem_create(int64_t m, int64_t n, int64_t k, int extreme, int with_epilogue)
{
    problem p = {.call = {.m = m, .n = n, .k = k}};
    operands(&p, extreme);
    if (with_epilogue) epilogue(&p);
    p.c = rows_of_reals(m, n, 1);
    return p;
}

/* Either what comes out is read as it is, or rounded, or both. */
static problem gated_create(int64_t m, int64_t n, int64_t k)
{
    problem p = {.call = {.m = m, .n = n, .k = k, .gated = 1, .act = (pl_activation)below(PL_ACT_COUNT)}};
    const int64_t kind = below(3);
    operands(&p, 0);
    if (chance(40)) p.bias = rows_of_reals(1, rows_of_w(&p), 1);
    if (kind != 0) p.act_out = rows_create(m, n, sizeof(float));
    p.call.q_scale = 0.02f, p.call.q_zero = (int32_t)below(256);
    if (kind != 1) p.q_out = rows_create(m, n, 1);
    return p;
}

typedef struct result {
    rows_of c, act_out, q_out;
} result;

static result run(const problem *p, const pl_words_kernels *kernels, pl_team team)
{
    result r = {rows_copy(&p->c), rows_copy(&p->act_out), rows_copy(&p->q_out)};
    pl_int8_call call = p->call;
    if (!call.gated) call.c = r.c.at, call.ldc = r.c.ld;
    call.bias = p->bias.at;
    call.residual = p->residual_is_c ? r.c.at : p->residual.at;
    call.ld_residual = p->residual_is_c ? r.c.ld : p->residual.ld;
    call.act_out = p->activation_in_c ? r.c.at : r.act_out.at;
    call.ld_act_out = p->activation_in_c ? r.c.ld : r.act_out.ld;
    call.q_out = r.q_out.at, call.ld_q_out = r.q_out.ld;
    const uint64_t bytes = pl_int8_workspace_bytes_with(kernels, &call, team);
    pl_int8_exec_with(kernels, &call, guarded_bytes(bytes, 0), team);
    guarded_check_all();
    assert_true(gaps_untouched(&r.c, &p->c) && gaps_untouched(&r.act_out, &p->act_out));
    assert_true(gaps_untouched(&r.q_out, &p->q_out));
    return r;
}

static int x_of(const problem *p, int64_t i, int64_t q)
{
    if (p->x.at) return ((const uint8_t *)p->x.at)[i * p->x.ld + q];
    return quantized(real_at(&p->x_real, i, q), p->call.x_scale, p->call.x_zero);
}

static float wanted(const problem *p, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t q = 0; q < p->call.k; q++) sum += (int64_t)(x_of(p, i, q) - p->call.x_zero) * p->w[j * p->call.k + q];
    volatile float scale = p->scale[j] * p->call.x_scale, v = (float)sum * scale;
    if (p->bias.at) v = v + real_at(&p->bias, 0, j);
    if (p->residual_is_c) v = v + real_at(&p->c, i, j);
    if (p->residual.at) v = v + real_at(&p->residual, i, j);
    return v;
}

/* What is rounded is what is given out beside it, or within a step of it. */
static int check_gated(const problem *p, const result *r, int64_t i, int64_t j)
{
    const float gate = wanted(p, i, j), passed = wanted(p, i, p->call.n + j);
    const double y = activate(p->call.act, gate) * (double)passed;
    const double near = (is_exact(p->call.act) ? 1e-7 : 5e-7) * fmax(1, fabs((double)gate)) * fabs((double)passed);
    float out = (float)y;
    if (r->act_out.at) out = real_at(&r->act_out, i, j);
    int good = fabs((double)out - y) <= near + 1e-30;
    if (r->q_out.at) {
        const int q = ((const uint8_t *)r->q_out.at)[i * r->q_out.ld + j];
        good &= abs(q - quantized(out, p->call.q_scale, p->call.q_zero)) <= !r->act_out.at;
    }
    if (!good) print_error("[%ld,%ld]: %.9g, wanted %.9g\n", (long)i, (long)j, (double)out, y);
    return good;
}

static int check_element(const problem *p, const result *r, int64_t i, int64_t j)
{
    if (p->call.gated) return check_gated(p, r, i, j);
    const pl_activation act = p->call.act;
    const float v = wanted(p, i, j), c = real_at(&r->c, i, j);
    int good = p->activation_in_c ? is_activation(act, v, c) : same_float(c, v);
    if (r->act_out.at) good &= is_activation(act, v, real_at(&r->act_out, i, j));
    if (r->q_out.at) {
        const float y = r->act_out.at ? real_at(&r->act_out, i, j) : p->activation_in_c ? c : (float)activate(act, v);
        const int q = ((const uint8_t *)r->q_out.at)[i * r->q_out.ld + j];
        const int known = r->act_out.at || p->activation_in_c || is_exact(act);
        good &= abs(q - quantized(y, p->call.q_scale, p->call.q_zero)) <= !known;
    }
    if (!good) print_error("[%ld,%ld]: %.9g, wanted %.9g\n", (long)i, (long)j, (double)c, (double)v);
    return good;
}

static int check_values(const problem *p, const result *r)
{
    const int64_t m = p->call.m, n = p->call.n, all = m * n * p->call.k < 400000;
    for (int64_t s = 0; s < (all ? m * n : 300); s++) {
        const int64_t i = all ? s / n : s % 3 == 0 ? m - 1 : below(m), j = all ? s % n : s % 3 == 1 ? n - 1 : below(n);
        if (!check_element(p, r, i, j)) return 0;
    }
    return 1;
}

static void check_table(const problem *p, const pl_words_kernels *kernels, pl_isa isa, uint64_t seed)
{
    const result first = run(p, kernels, (pl_team){.threads = 1, .isa = isa});
    int good = check_values(p, &first);
    for (int threads = 2; threads <= 4 && good; threads++) {
        const result more = run(p, kernels, (pl_team){.threads = threads, .isa = isa});
        good = rows_equal(&first.c, &more.c) && rows_equal(&first.act_out, &more.act_out) &&
               rows_equal(&first.q_out, &more.q_out);
        if (!good) print_error("bits differ with %d threads\n", threads);
    }
    if (!good)
        fail_msg("table %s at level %s, m %ld n %ld k %ld, seed %lu", kernels->name, pl_isa_name(isa), (long)p->call.m,
                 (long)p->call.n, (long)p->call.k, (unsigned long)seed);
}

static void check_problem(const problem *p, uint64_t seed)
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        if (isa == PL_ISA_REF && p->call.m * p->call.n * p->call.k > 3000000) continue;
        static const int kinds[] = {0, PL_ISA_VNNI, PL_ISA_AMX_INT8};
        const int extras = pl_isa_extras((pl_isa)isa);
        for (int i = 0; i < 3; i++)
            if ((kinds[i] & extras) == kinds[i])
                check_table(p, pl_int8_kernels((pl_isa)isa, kinds[i]), (pl_isa)isa, seed);
    }
    guarded_free_all();
}

static void test_random_products(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + 150; seed++) {
        draw_state = seed;
        const problem p = problem_create(random_size(100), random_size(150), random_size(600), 0, chance(80));
        check_problem(&p, seed);
    }
}

/* Units of several panels and tiles; the widths of the models. */
static void test_large_products(void **unused)
{
    (void)unused;
    static const int64_t sizes[][3] = {
        {196, 768, 768}, {1, 768, 3072}, {197, 99, 3071}, {12, 3072, 768}, {400, 33, 64}};
    for (uint64_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        draw_state = first_seed + i;
        const problem p = problem_create(sizes[i][0], sizes[i][1], sizes[i][2], 0, 1);
        check_problem(&p, first_seed + i);
    }
}

/* Whole tiles of the most panels, of every number of rows. */
static void test_wide_products(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 40; i++) {
        draw_state = first_seed + i;
        const int64_t rows = i < 20 ? (int64_t)i + 1 : random_size(100);
        const problem p = problem_create(rows, PL_WORDS_TILE_COLUMNS * (1 + below(3)), random_size(300), 0, chance(80));
        check_problem(&p, first_seed + i);
    }
}

static void test_gated_products(void **unused)
{
    (void)unused;
    static const int64_t large[][3] = {{196, 2048, 768}, {1, 512, 768}, {25, 32, 3071}};
    for (uint64_t i = 0; i < 40; i++) {
        draw_state = first_seed + i;
        const problem p = i < 3 ? gated_create(large[i][0], large[i][1], large[i][2])
                                : gated_create(random_size(100), 16 * (1 + below(6)), random_size(300));
        check_problem(&p, first_seed + i);
    }
}

/* x of 255 and w of −128 and 127 alone: pairs of products leave 16 bits at once, and at the greatest k sums come near
 * to the end of 32. */
static void test_extremes_do_not_saturate(void **unused)
{
    (void)unused;
    static const int64_t sizes[][3] = {{1, 1, 2}, {13, 35, 4096}, {2, 3, PL_INT8_K_MAX}};
    for (uint64_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        draw_state = first_seed + i;
        problem p = problem_create(sizes[i][0], sizes[i][1], sizes[i][2], 1, 0);
        check_problem(&p, first_seed + i);
        p = problem_create(sizes[i][0], sizes[i][1], sizes[i][2], 1, 0);
        int8_t *all = guarded_bytes((uint64_t)(p.call.n * p.call.k), 0);
        memset(all, -128, (size_t)(p.call.n * p.call.k));
        pl_int8_pack(p.call.n, p.call.k, all, p.call.k, p.scale, (void *)(uintptr_t)p.call.packed);
        p.w = all;
        p.call.x_zero = 0;
        check_problem(&p, first_seed + i);
    }
}

/* Whether the extremes would tell: vpmaddubsw's sums of pairs, which saturate at 16 bits, give another result. */
static void test_the_extremes_would_show_saturation(void **unused)
{
    (void)unused;
    draw_state = first_seed;
    const problem p = problem_create(2, 16, 64, 1, 0);
    int differ = 0;
    for (int64_t j = 0; j < 16; j++) {
        int32_t exact = 0, saturated = 0;
        for (int64_t q = 0; q < 64; q += 2) {
            const int32_t pair = x_of(&p, 0, q) * p.w[j * 64 + q] + x_of(&p, 0, q + 1) * p.w[j * 64 + q + 1];
            exact += pair;
            saturated += pair < INT16_MIN ? INT16_MIN : pair > INT16_MAX ? INT16_MAX : pair;
        }
        differ += exact != saturated;
    }
    assert_true(differ > 0);
    guarded_free_all();
}

/* Rows of f32 to u8: ties, both ends, infinities and NaN, in rows of any length. */
static void test_quantize(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + 60; seed++) {
        draw_state = seed;
        const int64_t rows = 1 + below(5), k = random_size(200);
        rows_of x = rows_of_reals(rows, k, 4);
        const float scale = chance(50) ? 0.03125f : 0.01f + fabsf(draw_real(0.05f));
        const int zero = (int)below(256);
        for (int64_t i = 0; i < rows * x.ld; i++) {
            float *at = (float *)x.at + i;
            if (chance(20)) *at = ((float)below(600) - 300.5f) * scale;
            if (chance(5)) *at = chance(50) ? INFINITY : chance(50) ? -INFINITY : chance(50) ? NAN : 1e30f;
        }
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            const rows_of before = rows_create(rows, k, 1), q = rows_copy(&before);
            const pl_quantize_call call = {
                .rows = rows, .k = k, .ld_x = x.ld, .ld_q = q.ld, .x = x.at, .scale = scale, .zero = zero, .q = q.at};
            pl_quantize_exec(&call, (pl_team){.threads = 1 + (int)below(3), .isa = (pl_isa)isa});
            guarded_check_all();
            assert_true(gaps_untouched(&q, &before));
            for (int64_t i = 0; i < rows * k; i++)
                if (((uint8_t *)q.at)[i / k * q.ld + i % k] != quantized(real_at(&x, i / k, i % k), scale, zero))
                    fail_msg("level %s, element %ld, seed %lu", pl_isa_name((pl_isa)isa), (long)i, (unsigned long)seed);
        }
        guarded_free_all();
    }
}

static void test_weights_are_symmetric(void **unused)
{
    (void)unused;
    static const float w[] = {0.5f, -2.0f, 0, 1.0f, 2.0f * 0.5f / 127};
    static const int8_t wanted_q[] = {32, -127, 0, 64, 0}; /* 31.75, −127, 0, 63.5 and 0.5, ties to even */
    int8_t q[5];
    assert_true(same_float(pl_int8_quantize_channel(5, w, q), 2.0f / 127));
    assert_memory_equal(q, wanted_q, sizeof q);
    static const float zeros[3] = {0};
    assert_true(same_float(pl_int8_quantize_channel(3, zeros, q), 1));
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_products),
        cmocka_unit_test(test_large_products),
        cmocka_unit_test(test_wide_products),
        cmocka_unit_test(test_gated_products),
        cmocka_unit_test(test_extremes_do_not_saturate),
        cmocka_unit_test(test_the_extremes_would_show_saturation),
        cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_weights_are_symmetric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
