/* The matrix product against sums in double, over random shapes, strides and epilogues, at every level of this machine
 * and several team sizes, whose bits must be equal, as must those of a product in parts. Outputs and workspace stand
 * between guard zones.
 *
 * Tolerance. Products are f32 exact in double; a chain of k fused steps errs by at most k·u·Σ|a·b| (u = 2⁻²⁴), blocks
 * and epilogue add a few roundings of the result: |error before the activation| ≤ (k + 8)·u·(Σ|a·b| + |bias| +
 * |residual| + |C|), here doubled for baseline's separate roundings. The derivatives are within 2e-6 of act',
 * activations within 4e-7·max(1, |x|) and have slopes below 1.2.
 *
 * Operands of 16 bits are given as they are, so only the end changes: what is written, and what a derivative is
 * multiplied with, is rounded once more, |error| ≤ v·|value| with v = 2⁻⁸ (bf16) or 2⁻¹¹ (f16, and 2⁻²⁵ where it is
 * subnormal). Pairs of bf16 (vdpbf16ps) add two products a link, in an order of their own: no more roundings than
 * above. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "support/program.h"

/* ---- random numbers ---- */

static uint64_t state;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static int chance(int percent) { return below(100) < percent; }

static float draw_real(float scale) { return scale * ((float)below(1 << 20) * 0x1p-19f - 1.0f); }

/* ---- matrices between guards ---- */

enum { GUARD = 64, GUARD_BYTE = 0xf1 };

typedef struct matrix {
    pl_real type;
    int64_t rows, columns, ld;
    unsigned char *block; /* NULL = absent */
    void *at;             /* GUARD elements into the block, aligned to 64 or not */
    int64_t bytes;
} matrix;

static float get(const matrix *m, int64_t i, int64_t j) { return pl_real_get(m->type, m->at, i * m->ld + j); }

static matrix matrix_create(pl_real type, int64_t rows, int64_t columns, float scale)
{
    const int64_t gap = chance(50) ? 0 : chance(70) ? below(20) : 320 + below(400); /* far rows are packed */
    matrix m = {.type = type, .rows = rows, .columns = columns, .ld = columns + gap};
    m.bytes = (rows * m.ld + 2 * GUARD) * pl_real_bytes(type);
    m.block = aligned_alloc(64, ((size_t)m.bytes + 127) / 64 * 64);
    assert_non_null(m.block);
    memset(m.block, GUARD_BYTE, (size_t)m.bytes);
    m.at = pl_real_at(type, m.block, GUARD - below(3));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) pl_real_put(type, m.at, i * m.ld + j, draw_real(scale));
    return m;
}

static matrix matrix_copy(const matrix *m)
{
    matrix copy = *m;
    copy.block = aligned_alloc(64, ((size_t)m->bytes + 127) / 64 * 64);
    assert_non_null(copy.block);
    memcpy(copy.block, m->block, (size_t)m->bytes);
    copy.at = copy.block + ((unsigned char *)m->at - m->block);
    return copy;
}

/* Everything outside the rows is as it was. */
static void check_guards(const matrix *m)
{
    const int64_t size = pl_real_bytes(m->type), first = ((unsigned char *)m->at - m->block) / size;
    for (int64_t i = 0; i < m->bytes / size; i++) {
        int64_t offset = i - first, row = offset < 0 ? -1 : offset / m->ld;
        if (row >= 0 && row < m->rows && offset % m->ld < m->columns) continue;
        for (int64_t b = 0; b < size; b++) assert_int_equal(m->block[i * size + b], GUARD_BYTE);
    }
}

/* How far rounding to the type may take a value. */
static double rounding(pl_real type, double x)
{
    return type == PL_REAL_F32 ? 0 : type == PL_REAL_BF16 ? 0x1p-8 * fabs(x) : fmax(0x1p-11 * fabs(x), 0x1p-25);
}

/* ---- a case ---- */

typedef struct problem {
    pl_gemm_call call;
    matrix a, b, c, bias, residual, grad_of, act_out, act_again; /* block NULL = absent */
    int residual_is_c, grad_is_c;
} problem;

/* All f32, or of 16 bits with sums of either kind, or A as the loss has it. */
static void types(pl_gemm_call *c)
{
    pl_real narrow = chance(50) ? PL_REAL_BF16 : PL_REAL_F16;
    if (chance(35)) return;
    c->b_type = narrow;
    if (chance(85)) c->a_type = narrow;
    if (chance(60)) c->type = narrow;
}

static void operands(problem *p, int64_t m, int64_t n, int64_t k)
{
    int a_columns = chance(40), b_columns = chance(50);
    p->call = (pl_gemm_call){.m = m, .n = n, .k = k};
    types(&p->call);
    p->a = a_columns ? matrix_create(p->call.a_type, k, m, 1) : matrix_create(p->call.a_type, m, k, 1);
    p->b = b_columns ? matrix_create(p->call.b_type, n, k, 1) : matrix_create(p->call.b_type, k, n, 1);
    p->c = matrix_create(p->call.type, m, n, 2);
    p->call.a = p->a.at, p->call.b = p->b.at;
    p->call.a_row = a_columns ? 1 : p->a.ld, p->call.a_col = a_columns ? p->a.ld : 1;
    p->call.b_row = b_columns ? 1 : p->b.ld, p->call.b_col = b_columns ? p->b.ld : 1;
    p->call.accumulate = chance(40);
    p->call.dots = m <= 12 && chance(50);
}

static void epilogue(problem *p)
{
    int64_t m = p->call.m, n = p->call.n;
    pl_real type = p->call.type;
    p->call.act = (pl_activation)below(PL_ACT_COUNT);
    if (chance(50)) p->bias = matrix_create(PL_REAL_F32, 1, n, 1);
    if (chance(40)) {
        p->residual_is_c = chance(50);
        if (!p->residual_is_c) p->residual = matrix_create(type, m, n, 1);
    }
    if (chance(40)) {
        p->grad_is_c = chance(50);
        if (!p->grad_is_c) p->grad_of = matrix_create(type, m, n, 3);
        if (chance(50)) p->act_again = matrix_create(type, m, n, 0);
    }
    if (chance(40)) p->act_out = matrix_create(type, m, n, 0);
}

static problem problem_create(int64_t m, int64_t n, int64_t k, int with_epilogue)
{
    problem p = {0};
    operands(&p, m, n, k);
    if (with_epilogue) epilogue(&p);
    return p;
}

static void problem_destroy(problem *p)
{
    matrix *all[] = {&p->a, &p->b, &p->c, &p->bias, &p->residual, &p->grad_of, &p->act_out, &p->act_again};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->block);
}

/* Outputs of one run. */
typedef struct result {
    matrix c, act_out, act_again;
} result;

static void result_destroy(result *r) { free(r->c.block), free(r->act_out.block), free(r->act_again.block); }

static result run(const problem *p, pl_team team)
{
    result r = {.c = matrix_copy(&p->c)};
    pl_gemm_call call = p->call;
    call.c = r.c.at, call.ldc = r.c.ld;
    if (p->bias.block) call.bias = p->bias.at;
    if (p->residual.block) call.residual = p->residual.at, call.ld_residual = p->residual.ld;
    if (p->residual_is_c) call.residual = r.c.at, call.ld_residual = r.c.ld;
    if (p->grad_of.block) call.grad_of = p->grad_of.at, call.ld_grad_of = p->grad_of.ld;
    if (p->grad_is_c) call.grad_of = r.c.at, call.ld_grad_of = r.c.ld;
    if (p->act_out.block) r.act_out = matrix_copy(&p->act_out), call.act_out = r.act_out.at;
    call.ld_act_out = r.act_out.ld;
    if (p->act_again.block) r.act_again = matrix_copy(&p->act_again), call.act_again = r.act_again.at;
    call.ld_act_again = r.act_again.ld;

    size_t bytes = (size_t)pl_gemm_workspace_bytes(&call, team);
    unsigned char *workspace = aligned_alloc(64, (bytes + 64 + 63) / 64 * 64);
    assert_non_null(workspace);
    memset(workspace, 0xff, bytes + 64); /* NaN: nothing may be taken for granted */
    pl_gemm_exec(&call, workspace, team);
    for (int i = 0; i < 64; i++) assert_int_equal(workspace[bytes + (size_t)i], 0xff);
    free(workspace);
    check_guards(&r.c);
    if (r.act_out.block) check_guards(&r.act_out);
    if (r.act_again.block) check_guards(&r.act_again);
    return r;
}

static int same_bits(const matrix *a, const matrix *b)
{
    return !a->block || memcmp(a->block, b->block, (size_t)a->bytes) == 0;
}

static int same_results(const result *a, const result *b)
{
    return same_bits(&a->c, &b->c) && same_bits(&a->act_out, &b->act_out) && same_bits(&a->act_again, &b->act_again);
}

/* ---- the oracle ---- */

static double activate(pl_activation act, double x)
{
    switch (act) {
    case PL_ACT_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2)));
    case PL_ACT_SILU:
        return x / (1 + exp(-x));
    case PL_ACT_TANH:
        return tanh(x);
    case PL_ACT_RELU:
        return x > 0 ? x : 0;
    case PL_ACT_LEAKY_RELU:
        return x > 0 ? x : 0.01 * x;
    case PL_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case PL_ACT_QUICK_GELU:
        return x / (1 + exp(-1.702 * x));
    case PL_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    default:
        return x;
    }
}

static double slope(pl_activation act, double x)
{
    const double h = 1e-5;
    if (act == PL_ACT_RELU) return x > 0;
    if (act == PL_ACT_LEAKY_RELU) return x > 0 ? 1 : 0.01;
    return (activate(act, x + h) - activate(act, x - h)) / (2 * h);
}

static int close_to(double got, double wanted, double bound, const char *what, int64_t i, int64_t j)
{
    if (fabs(got - wanted) <= bound) return 1;
    print_error("%s[%ld,%ld] = %.9g, wanted %.9g within %.3g\n", what, (long)i, (long)j, got, wanted, bound);
    return 0;
}

static int check_element(const problem *p, const result *r, int64_t i, int64_t j)
{
    const pl_gemm_call *c = &p->call;
    double s = 0, size = 0, old = get(&p->c, i, j);
    for (int64_t q = 0; q < c->k; q++) {
        double x = (double)pl_real_get(c->a_type, c->a, i * c->a_row + q * c->a_col) *
                   pl_real_get(c->b_type, c->b, q * c->b_row + j * c->b_col);
        s += x, size += fabs(x);
    }
    double bias = p->bias.block ? get(&p->bias, 0, j) : 0, beta = c->accumulate ? old : 0;
    double residual = p->residual_is_c ? old : p->residual.block ? get(&p->residual, i, j) : 0;
    s += bias + residual + beta, size += fabs(bias) + fabs(residual) + fabs(beta);
    double bound = 2 * (double)(c->k + 8) * 0x1p-24 * size;
    double x = p->grad_is_c ? old : p->grad_of.block ? get(&p->grad_of, i, j) : 0;
    if (p->grad_is_c || p->grad_of.block) {
        bound += rounding(c->type, fabs(s) + bound);
        bound = 1.2 * bound + 2e-6 * fabs(s), s *= slope(c->act, x);
    }
    double got = get(&r->c, i, j);
    int good = close_to(got, s, bound + rounding(c->type, fabs(s) + bound), "c", i, j);
    if (r->act_out.block) {
        double wanted = activate(c->act, got), close = 4e-7 * fmax(1, fabs(got));
        good &=
            close_to(get(&r->act_out, i, j), wanted, close + rounding(c->type, fabs(wanted) + close), "act_out", i, j);
    }
    if (r->act_again.block) {
        double wanted = activate(c->act, x), close = 4e-7 * fmax(1, fabs(x));
        good &= close_to(get(&r->act_again, i, j), wanted, close + rounding(c->type, fabs(wanted) + close), "act_again",
                         i, j);
    }
    return good;
}

/* Every element of small products; of large ones the borders and a sample. */
static int check_values(const problem *p, const result *r)
{
    int64_t m = p->call.m, n = p->call.n;
    int good = 1;
    if (m * n * p->call.k < 300000) {
        for (int64_t i = 0; i < m && good; i++)
            for (int64_t j = 0; j < n && good; j++) good = check_element(p, r, i, j);
        return good;
    }
    for (int64_t s = 0; s < 300 && good; s++) {
        int64_t i = s % 3 == 0 ? m - 1 : below(m), j = s % 3 == 1 ? n - 1 : below(n);
        good = check_element(p, r, i, j);
    }
    return good;
}

/* ---- tests ---- */

static void run_part(const problem *p, pl_team team)
{
    pl_gemm_call call = p->call;
    call.c = p->c.at, call.ldc = p->c.ld;
    void *workspace = aligned_alloc(64, ((size_t)pl_gemm_workspace_bytes(&call, team) + 63) / 64 * 64);
    assert_non_null(workspace);
    pl_gemm_exec(&call, workspace, team);
    free(workspace);
}

static void check_problem(const problem *p, const int *threads, int count, uint64_t seed)
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        if (isa == PL_ISA_REF && p->call.m * p->call.n * p->call.k > 3000000) continue;
        result first = run(p, (pl_team){.threads = 1, .isa = (pl_isa)isa});
        int good = check_values(p, &first);
        for (int t = 0; t < count && good; t++) {
            result more = run(p, (pl_team){.threads = threads[t], .isa = (pl_isa)isa});
            good = same_results(&first, &more);
            if (!good) print_error("bits differ with %d threads\n", threads[t]);
            result_destroy(&more);
        }
        if (!good)
            print_error("level %s, types %d %d %d, m %ld n %ld k %ld, seed %lu\n", pl_isa_name((pl_isa)isa),
                        (int)p->call.a_type, (int)p->call.b_type, (int)p->call.type, (long)p->call.m, (long)p->call.n,
                        (long)p->call.k, (unsigned long)seed);
        result_destroy(&first);
        assert_true(good);
    }
}

static int64_t random_size(int64_t limit)
{
    switch (below(4)) {
    case 0:
        return 1 + below(8);
    case 1:
        return 1 + below(40);
    default:
        return 1 + below(limit);
    }
}

static void test_random_products(void **unused)
{
    (void)unused;
    static const int threads[] = {2, 5};
    for (uint64_t seed = 1; seed <= 240; seed++) {
        state = seed;
        problem p = problem_create(random_size(150), random_size(150), random_size(700), chance(70));
        check_problem(&p, threads, 2, seed);
        problem_destroy(&p);
    }
}

/* Real widths, several passes of columns and k, sums that wait apart. */
static void test_any_team_gives_the_same_bits(void **unused)
{
    (void)unused;
    static const int threads[] = {2, 8, 16, 64};
    static const int64_t sizes[][3] = {{128, 256, 2048}, {97, 300, 4096}, {600, 130, 2048}, {256, 788, 256},
                                       {12, 3072, 768},  {3, 788, 256},   {1, 1024, 4096},  {40, 33, 16384},
                                       {97, 208, 1600},  {500, 48, 769},  {20, 240, 1024},  {1600, 48, 1024}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int with = 0; with < 3; with++) {
            uint64_t seed = 1000 + i * 3 + (uint64_t)with;
            state = seed;
            problem p = problem_create(sizes[i][0], sizes[i][1], sizes[i][2], with > 0);
            if (with == 2) { /* C's old content is needed at the end */
                p.grad_is_c = 1;
                free(p.grad_of.block), p.grad_of.block = NULL;
            }
            check_problem(&p, threads, 4, seed);
            problem_destroy(&p);
        }
}

/* Widths of wide tiles with every pair of types and either form of B, where random sizes seldom come: a product of f32
 * and 16 bits is in the derivative of the loss. */
static void test_widths_of_whole_vectors(void **unused)
{
    (void)unused;
    static const int threads[] = {2};
    static const int64_t widths[] = {16, 32, 48, 96, 192, 208};
    const int types = PL_REAL_F16 + 1, forms = 4;
    for (int i = 0; i < types * types * forms; i++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
            const uint64_t seed = 5000 + (uint64_t)i * 10 + w;
            state = seed;
            const int64_t m = 1 + below(40), n = widths[w], k = 1 + below(60);
            problem p = {.call = {.m = m, .n = n, .k = k, .a_type = (pl_real)(i % types)}};
            p.call.b_type = (pl_real)(i / types % types), p.call.type = (pl_real)below(types);
            const int a_columns = i / types / types % 2, b_columns = i / types / types / 2;
            p.a = a_columns ? matrix_create(p.call.a_type, k, m, 1) : matrix_create(p.call.a_type, m, k, 1);
            p.b = b_columns ? matrix_create(p.call.b_type, n, k, 1) : matrix_create(p.call.b_type, k, n, 1);
            p.c = matrix_create(p.call.type, m, n, 2);
            p.call.a = p.a.at, p.call.a_row = a_columns ? 1 : p.a.ld, p.call.a_col = a_columns ? p.a.ld : 1;
            p.call.b = p.b.at, p.call.b_row = b_columns ? 1 : p.b.ld, p.call.b_col = b_columns ? p.b.ld : 1;
            if (chance(60)) epilogue(&p);
            check_problem(&p, threads, 1, seed);
            problem_destroy(&p);
        }
}

/* Cuts of k that go unnoticed: between pairs of bf16 as memory has them (A by rows) only even ones, and where tiles of
 * such pairs are multiplied (amx) those between tiles. */
static int64_t grain_of(const pl_gemm_call *c, pl_isa isa)
{
    if (c->a_type != PL_REAL_BF16 || c->a_col != 1) return 1;
    return isa >= PL_ISA_AMX && c->b_type == PL_REAL_BF16 ? 32 : 2;
}

/* C in one call, and rows of it, or stretches of k that add up, in several. */
static void test_any_cut_gives_the_same_bits(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        state = seed;
        int64_t m = random_size(100), n = random_size(100), k = random_size(900), at = 0;
        problem p = problem_create(m, n, k, 0);
        if (p.call.dots || p.call.type != PL_REAL_F32) p.call.accumulate = 0;
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            pl_team team = {.threads = 1 + (int)below(3), .isa = (pl_isa)isa};
            const int64_t grain = grain_of(&p.call, team.isa);
            result whole = run(&p, team);
            problem part = p;
            part.c = matrix_copy(&p.c);
            for (at = 0; at < (p.call.accumulate ? k : m);) {
                int64_t *size = p.call.accumulate ? &part.call.k : &part.call.m,
                        left = (p.call.accumulate ? k : m) - at;
                *size = (1 + below(left) + grain - 1) / grain * grain;
                if (*size > left) *size = left;
                part.call.a =
                    pl_real_at(p.call.a_type, p.call.a, at * (p.call.accumulate ? p.call.a_col : p.call.a_row));
                if (p.call.accumulate)
                    part.call.b = pl_real_at(p.call.b_type, p.call.b, at * p.call.b_row);
                else
                    part.c.at =
                        part.c.block + ((unsigned char *)p.c.at - p.c.block) + at * p.c.ld * pl_real_bytes(p.call.type);
                run_part(&part, team);
                at += *size;
            }
            if (!same_bits(&whole.c, &part.c))
                fail_msg("level %s, m %ld n %ld k %ld, seed %lu: other bits in parts", pl_isa_name((pl_isa)isa),
                         (long)m, (long)n, (long)k, (unsigned long)seed);
            free(part.c.block);
            result_destroy(&whole);
        }
        problem_destroy(&p);
    }
}

/* The gradient of a weight over some tokens and then over the rest has the bits of one call over all, wherever the cut
 * is; and where pairs are multiplied (vdpbf16ps adds one product, then the other), those of single multiply-adds. With
 * one number a token both strides of dy are 1. */
static void test_a_weight_gradient_may_be_cut(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        state = seed;
        int64_t out = seed % 4 ? random_size(100) : 1, in = seed % 8 ? random_size(100) : 1, tokens = 1 + below(900),
                cut = below(tokens + 1);
        pl_real type = (pl_real)below(PL_REAL_F16 + 1);
        matrix dy = matrix_create(type, tokens, out, 1), x = matrix_create(type, tokens, in, 1);
        matrix c = matrix_create(PL_REAL_F32, out, in, 1), avx512 = {0};
        problem p = {.a = dy, .b = x, .c = c};
        p.call = (pl_gemm_call){.m = out, .n = in, .k = tokens, .a_type = type, .b_type = type, .accumulate = 1};
        p.call.a = dy.at, p.call.a_row = 1, p.call.a_col = dy.ld;
        p.call.b = x.at, p.call.b_row = x.ld, p.call.b_col = 1;
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            problem first = p, second = p;
            first.call.k = cut, second.call.k = tokens - cut;
            second.call.a = pl_real_at(type, dy.at, cut * dy.ld), second.call.b = pl_real_at(type, x.at, cut * x.ld);
            result whole = run(&p, (pl_team){1, (pl_isa)isa}), begun = {.c = c};
            if (cut > 0) begun = run(&first, (pl_team){2, (pl_isa)isa});
            second.c = begun.c;
            result ended =
                cut < tokens ? run(&second, (pl_team){2, (pl_isa)isa}) : (result){.c = matrix_copy(&begun.c)};
            int good = same_bits(&whole.c, &ended.c) && (!avx512.block || same_bits(&whole.c, &avx512));
            if (!good)
                print_error("level %s, type %d, out %ld in %ld, %ld of %ld tokens, seed %lu\n",
                            pl_isa_name((pl_isa)isa), (int)type, (long)out, (long)in, (long)cut, (long)tokens,
                            (unsigned long)seed);
            assert_true(good);
            if (isa == PL_ISA_AVX512) avx512 = matrix_copy(&whole.c);
            if (cut > 0) result_destroy(&begun);
            result_destroy(&whole), result_destroy(&ended);
        }
        free(avx512.block), problem_destroy(&p);
    }
}

/* ---- rows of B that are far apart, and so packed ---- */

static matrix matrix_of(pl_real type, int64_t rows, int64_t columns, int64_t ld)
{
    matrix m = {.type = type, .rows = rows, .columns = columns, .ld = ld};
    m.bytes = (rows * ld + 2 * GUARD) * pl_real_bytes(type);
    m.block = aligned_alloc(64, ((size_t)m.bytes + 127) / 64 * 64);
    assert_non_null(m.block);
    memset(m.block, GUARD_BYTE, (size_t)m.bytes);
    m.at = pl_real_at(type, m.block, GUARD);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) pl_real_put(type, m.at, i * ld + j, draw_real(1));
    return m;
}

/* With rows of B `ld` apart; the same numbers each time. */
static problem far_problem(int64_t m, int64_t n, int64_t k, int64_t ld, int kind)
{
    problem p = {0};
    state = (uint64_t)(m * 1000003 + n * 1009 + k);
    p.a = matrix_of(PL_REAL_F32, m, k, k), p.b = matrix_of(PL_REAL_F32, k, n, ld);
    p.c = matrix_of(PL_REAL_F32, m, n, n + 3);
    p.call = (pl_gemm_call){.m = m, .n = n, .k = k, .a = p.a.at, .b = p.b.at, .a_row = k, .a_col = 1, .b_row = ld};
    p.call.b_col = 1;
    p.call.accumulate = kind == 1;
    p.grad_is_c = kind == 2;
    if (kind == 2) p.call.act = PL_ACT_GELU;
    return p;
}

/* Rows [first, first + count) of the whole, into its own rows of C. */
static void run_rows(const problem *p, const matrix *c, int64_t first, int64_t count, pl_team team)
{
    problem part = *p;
    part.call.m = count, part.c = *c;
    part.call.a = pl_real_at(PL_REAL_F32, p->a.at, first * p->a.ld);
    part.c.at = pl_real_at(PL_REAL_F32, c->at, first * c->ld);
    if (p->grad_is_c) part.call.grad_of = part.c.at, part.call.ld_grad_of = c->ld;
    run_part(&part, team);
}

/* Steps [first, first + count) of k, added to C unless they are the first of a fresh sum. */
static void run_steps(const problem *p, const matrix *c, int64_t first, int64_t count, pl_team team)
{
    problem part = *p;
    part.call.k = count, part.c = *c;
    part.call.accumulate |= first > 0;
    part.call.a = pl_real_at(PL_REAL_F32, p->a.at, first);
    part.call.b = pl_real_at(PL_REAL_F32, p->b.at, first * p->b.ld);
    run_part(&part, team);
}

static void check_far_cuts(const problem *p, const result *whole, pl_team team)
{
    const int64_t rows = p->call.m / 2, steps = p->call.k / 3;
    matrix by_rows = matrix_copy(&p->c), by_steps = matrix_copy(&p->c);
    if (rows) run_rows(p, &by_rows, 0, rows, team);
    run_rows(p, &by_rows, rows, p->call.m - rows, team);
    assert_true(same_bits(&by_rows, &whole->c));
    if (!p->grad_is_c) { /* the derivative is of the whole sum */
        run_steps(p, &by_steps, 0, steps, team);
        run_steps(p, &by_steps, steps, p->call.k - steps, team);
        assert_true(same_bits(&by_steps, &whole->c));
    }
    free(by_rows.block), free(by_steps.block);
}

static void check_far(int64_t m, int64_t n, int64_t k, int kind, pl_isa isa)
{
    problem near = far_problem(m, n, k, n, kind), far = far_problem(m, n, k, 512 + n, kind);
    result as_it_lies = run(&near, (pl_team){1, isa});
    for (int threads = 1; threads <= 3; threads += 2) {
        result packed = run(&far, (pl_team){threads, isa});
        assert_true(same_bits(&as_it_lies.c, &packed.c));
        if (threads == 3) check_far_cuts(&far, &packed, (pl_team){2, isa});
        for (int i = 0; i < 10; i++) assert_true(check_element(&far, &packed, below(m), below(n)));
        result_destroy(&packed);
    }
    result_destroy(&as_it_lies);
    problem_destroy(&near), problem_destroy(&far);
}

static void test_far_rows_have_the_same_bits(void **unused)
{
    static const int64_t n[] = {32, 48, 96, 107, 208, 788}, k[] = {60, 769, 1600}, m[] = {1, 8, 40, 100};
    (void)unused;
    for (int isa = PL_ISA_REF + 1; isa <= (int)pl_isa_of_machine(); isa++)
        for (int i = 0; i < 6 * 3 * 4; i++)
            for (int kind = 0; kind < 3; kind++) check_far(m[i % 4], n[i / 12], k[i / 4 % 3], kind, (pl_isa)isa);
}

static void test_column_sums(void **unused)
{
    (void)unused;
    static const int threads[] = {1, 2, 8, 64};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        state = seed;
        int64_t rows = 1 + below(2000), columns = chance(20) ? 1 + below(3000) : 1 + below(400);
        int accumulate = chance(50);
        pl_real type = (pl_real)below(PL_REAL_F16 + 1);
        matrix x = matrix_create(type, rows, columns, 1), start = matrix_create(PL_REAL_F32, 1, columns, 1);
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            matrix first = {0};
            for (int t = 0; t < 4; t++) {
                matrix out = matrix_copy(&start);
                pl_column_sum_call call = {rows, columns, x.ld, x.at, out.at, accumulate, type};
                pl_team team = {.threads = threads[t], .isa = (pl_isa)isa};
                call.rows = t ? below(rows + 1) : rows; /* in two calls, the second goes on */
                pl_column_sum_exec(&call, team);
                pl_column_sum_call rest = call;
                rest.rows = rows - call.rows, rest.accumulate |= call.rows > 0;
                rest.x = pl_real_at(type, x.at, call.rows * call.ld);
                if (rest.rows) pl_column_sum_exec(&rest, team);
                check_guards(&out);
                if (t == 0) first = out;
                assert_true(same_bits(&first, &out));
                if (t > 0) free(out.block);
            }
            for (int64_t j = 0; j < columns; j++) {
                double s = accumulate ? get(&start, 0, j) : 0, size = fabs(s);
                for (int64_t i = 0; i < rows; i++) s += get(&x, i, j), size += fabs(get(&x, i, j));
                assert_true(
                    close_to(get(&first, 0, j), s, (double)(rows + 2) * 0x1p-24 * size, "sum", (int64_t)seed, j));
            }
            free(first.block);
        }
        free(x.block), free(start.block);
    }
}

static void test_workspace_is_bounded(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        state = seed;
        pl_gemm_call call = {.m = 1 + below(100000), .n = 1 + below(100000), .k = 1 + below(100000)};
        int a = chance(50), b = chance(50), threads = 1 + (int)below(64);
        types(&call);
        call.a_row = a ? 1 : call.k, call.a_col = a ? call.m : 1;
        call.b_row = b ? 1 : call.n, call.b_col = b ? call.k : 1;
        for (int isa = PL_ISA_REF; isa < PL_ISA_COUNT; isa++) {
            uint64_t bytes = pl_gemm_workspace_bytes(&call, (pl_team){.threads = threads, .isa = (pl_isa)isa});
            const int wide = isa >= PL_ISA_AVX512 && call.a_col == 1 && call.a_type == PL_REAL_F32;
            const int pairs = isa > PL_ISA_AVX512 && call.a_type == PL_REAL_BF16 && call.b_type == PL_REAL_BF16;
            const int widened = isa >= PL_ISA_AVX512 && call.a_col == 1 && call.a_type != PL_REAL_F32 && !pairs;
            const uint64_t most = widened ? 524288 : call.b_type == PL_REAL_F32 && !wide ? 131072 : 262144;
            assert_true(bytes <= 64 + (uint64_t)threads * most);
        }
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_products),
        cmocka_unit_test(test_any_team_gives_the_same_bits),
        cmocka_unit_test(test_a_weight_gradient_may_be_cut),
        cmocka_unit_test(test_widths_of_whole_vectors),
        cmocka_unit_test(test_any_cut_gives_the_same_bits),
        cmocka_unit_test(test_far_rows_have_the_same_bits),
        cmocka_unit_test(test_column_sums),
        cmocka_unit_test(test_workspace_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
