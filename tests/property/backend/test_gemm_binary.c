/* The binary product against signs multiplied one by one and an epilogue of single f32 steps, whose bits are the
 * result: over random shapes, strides and epilogues, at every level of this machine with and without VPOPCNTDQ, and for
 * 1 to 4 threads. */
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
    pl_binary_call call;
    rows_of x, w, bias, residual, c, act_out;
    rows_of signs; /* of x, where they are given */
    int residual_is_c;
} problem;

static rows_of draw_numbers(int64_t rows, int64_t k)
{
    rows_of x = rows_of_reals(rows, k, 2);
    for (int64_t i = 0; i < rows * x.ld; i++)
        if (chance(10)) ((float *)x.at)[i] = chance(50) ? 0.0f : -0.0f;
    return x;
}

/* The order of kernels.def, written once more. */
static float mean_magnitude(const rows_of *x, int64_t i)
{
    float sums[16] = {0};
    for (int64_t p = 0; p < x->columns; p++) sums[p % 16] += fabsf(real_at(x, i, p));
    for (int s = 0; s < 8; s++) sums[s] += sums[s + 8];
    for (int s = 0; s < 4; s++) sums[s] += sums[s + 4];
    return ((sums[0] + sums[2]) + (sums[1] + sums[3])) / (float)x->columns;
}

static uint32_t *signs_of(const rows_of *x, float *mean, pl_team team)
{
    uint32_t *signs = guarded_bytes((uint64_t)(x->rows * pl_binary_words(x->columns) * 4), 0);
    const pl_signs_call call = {
        .rows = x->rows, .k = x->columns, .ld_x = x->ld, .x = x->at, .signs = signs, .mean = mean};
    pl_signs_exec(&call, team);
    guarded_check_all();
    return signs;
}

static void operands(problem *p)
{
    const int64_t m = p->call.m, n = p->call.n, k = p->call.k, words = pl_binary_words(k);
    const pl_team ref = {.threads = 1, .isa = PL_ISA_REF};
    p->x = draw_numbers(m, k), p->w = draw_numbers(n, k);
    float *alpha = guarded_f32(n), *beta = guarded_f32(m);
    void *packed = guarded_bytes(pl_binary_packed_bytes(n, k), 0);
    pl_binary_pack(n, k, signs_of(&p->w, alpha, ref), alpha, packed);
    p->call.packed = packed;
    if (chance(50)) {
        p->call.x_real = p->x.at, p->call.ld_x = p->x.ld;
        return;
    }
    const uint32_t *dense = signs_of(&p->x, beta, ref);
    p->signs = rows_create(m, words, 4);
    for (int64_t i = 0; i < m; i++)
        memcpy((uint32_t *)p->signs.at + i * p->signs.ld, dense + i * words, (size_t)words * 4);
    p->call.x = p->signs.at, p->call.ld_x = p->signs.ld, p->call.beta = beta;
}

static problem problem_create(int64_t m, int64_t n, int64_t k)
{
    problem p = {.call = {.m = m, .n = n, .k = k, .act = (pl_activation)below(PL_ACT_COUNT)}};
    operands(&p);
    if (chance(50)) p.bias = rows_of_reals(1, n, 1);
    p.residual_is_c = chance(20);
    if (!p.residual_is_c && chance(30)) p.residual = rows_of_reals(m, n, 1);
    if (chance(50)) p.act_out = rows_create(m, n, sizeof(float));
    p.c = rows_of_reals(m, n, 1);
    return p;
}

typedef struct result {
    rows_of c, act_out;
} result;

static result run(const problem *p, const pl_words_kernels *kernels, pl_team team)
{
    result r = {rows_copy(&p->c), rows_copy(&p->act_out)};
    pl_binary_call call = p->call;
    call.c = r.c.at, call.ldc = r.c.ld;
    call.bias = p->bias.at;
    call.residual = p->residual_is_c ? r.c.at : p->residual.at;
    call.ld_residual = p->residual_is_c ? r.c.ld : p->residual.ld;
    call.act_out = r.act_out.at, call.ld_act_out = r.act_out.ld;
    const uint64_t bytes = pl_binary_workspace_bytes_with(kernels, &call, team);
    pl_binary_exec_with(kernels, &call, guarded_bytes(bytes, 0), team);
    guarded_check_all();
    assert_true(gaps_untouched(&r.c, &p->c) && gaps_untouched(&r.act_out, &p->act_out));
    return r;
}

static int sign(float x) { return x < 0 ? -1 : 1; }

static float wanted(const problem *p, int64_t i, int64_t j)
{
    int64_t sum = 0;
    for (int64_t q = 0; q < p->call.k; q++) sum += sign(real_at(&p->x, i, q)) * sign(real_at(&p->w, j, q));
    volatile float scale = mean_magnitude(&p->w, j) * mean_magnitude(&p->x, i), v = (float)sum * scale;
    if (p->bias.at) v = v + real_at(&p->bias, 0, j);
    if (p->residual_is_c) v = v + real_at(&p->c, i, j);
    if (p->residual.at) v = v + real_at(&p->residual, i, j);
    return v;
}

static int check_element(const problem *p, const result *r, int64_t i, int64_t j)
{
    const float v = wanted(p, i, j), c = real_at(&r->c, i, j);
    int good = same_float(c, v);
    if (r->act_out.at) good &= is_activation(p->call.act, v, real_at(&r->act_out, i, j));
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
        good = rows_equal(&first.c, &more.c) && rows_equal(&first.act_out, &more.act_out);
        if (!good) print_error("bits differ with %d threads\n", threads);
    }
    if (!good)
        fail_msg("table %s at level %s, m %ld n %ld k %ld, seed %lu", kernels->name, pl_isa_name(isa), (long)p->call.m,
                 (long)p->call.n, (long)p->call.k, (unsigned long)seed);
}

static void check_problem(const problem *p, uint64_t seed)
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        const int extras = pl_isa_extras((pl_isa)isa);
        check_table(p, pl_binary_kernels((pl_isa)isa, extras), (pl_isa)isa, seed);
        if (extras & PL_ISA_VPOPCNTDQ) check_table(p, pl_binary_kernels((pl_isa)isa, 0), (pl_isa)isa, seed);
    }
    guarded_free_all();
}

static void test_random_products(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + 150; seed++) {
        draw_state = seed;
        const problem p = problem_create(random_size(100), random_size(150), random_size(1500));
        check_problem(&p, seed);
    }
}

static void test_large_products(void **unused)
{
    (void)unused;
    static const int64_t sizes[][3] = {{196, 768, 768}, {1, 768, 3072}, {197, 99, 3071}, {3, 17, 32 * 31 * 4 + 1}};
    for (uint64_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        draw_state = first_seed + i;
        const problem p = problem_create(sizes[i][0], sizes[i][1], sizes[i][2]);
        check_problem(&p, first_seed + i);
    }
}

/* All signs differ: every count is as large as it can be, which is where bytes would overflow. */
static void test_opposite_signs(void **unused)
{
    (void)unused;
    for (int64_t k = 1; k <= 32 * 100; k += 1 + k / 3) {
        draw_state = first_seed;
        problem p = problem_create(13, 35, k);
        for (int64_t i = 0; i < p.x.rows * p.x.ld; i++) ((float *)p.x.at)[i] = -1;
        for (int64_t i = 0; i < p.w.rows * p.w.ld; i++) ((float *)p.w.at)[i] = 1;
        float *alpha = guarded_f32(35);
        pl_binary_pack(35, k, signs_of(&p.w, alpha, (pl_team){.threads = 1}), alpha, (void *)(uintptr_t)p.call.packed);
        p.call.x_real = p.x.at, p.call.ld_x = p.x.ld, p.call.x = NULL;
        check_problem(&p, first_seed);
    }
}

/* Every level packs the same words and the same means; bits behind the last number are 0; NaN counts as positive. */
static void test_signs(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + 60; seed++) {
        draw_state = seed;
        const int64_t rows = 1 + below(5), k = random_size(300), words = pl_binary_words(k);
        rows_of x = draw_numbers(rows, k);
        if (chance(30)) ((float *)x.at)[below(k)] = chance(50) ? NAN : -INFINITY;
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            float *mean = guarded_f32(rows);
            const uint32_t *signs = signs_of(&x, mean, (pl_team){.threads = 1 + (int)below(3), .isa = (pl_isa)isa});
            int good = 1;
            for (int64_t i = 0; i < rows; i++) {
                const float m = mean_magnitude(&x, i);
                good &= same_float(mean[i], m) || (isnan(m) && isnan(mean[i]));
                for (int64_t q = 0; q < 32 * words; q++)
                    good &= (signs[i * words + q / 32] >> q % 32 & 1) == (q < k && real_at(&x, i, q) < 0);
            }
            if (!good) fail_msg("level %s, k %ld, seed %lu", pl_isa_name((pl_isa)isa), (long)k, (unsigned long)seed);
        }
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_products),
        cmocka_unit_test(test_large_products),
        cmocka_unit_test(test_opposite_signs),
        cmocka_unit_test(test_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
