/* Products with a weight as it is encoded, against two oracles: sums in double over the numbers that base/encoding.h
 * widens (at every level; |error| ≤ (k + 8)·u·(Σ|x·w| + |bias| + |residual|), u = 2⁻²⁴, doubled for baseline's separate
 * roundings), and the f32 product of the widened weight, of which a product must have the very bits. Random shapes, all
 * encodings, every level of this machine; bits must not depend on the team. Where x is rounded to blocks, too, whole
 * numbers are multiplied: the first oracle is the same, with what those blocks stand for, and so are the rest but for
 * the second one; instead every table of the level has the same bits, with VNNI or without (but with few rows, `dots`,
 * f32 is multiplied). */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/gemm_rounded.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t state, seed;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static int chance(int percent) { return below(100) < percent; }

typedef struct problem {
    pl_encoding encoding;
    int64_t m, n, k, columns; /* columns of W: 2n where gated */
    int gated, dots, has_act;
    int transposed; /* dx = dy W: x is dy, [m,k], W is [k,n] */
    const float *x, *wide, *bias, *residual;
    const uint8_t *w;
    const uint8_t *x_blocks; /* or NULL; x is what they stand for */
    const float
        *least; /* of each number of W, with x_blocks: what code 0 stands for where it is not a multiple of the scale */
} problem;

/* Where a block has numbers of f16, and how many of them: bytes there are made small and finite. */
static void tame_scales(pl_encoding e, uint8_t *block)
{
    static const int first[PL_ENCODING_COUNT] = {[PL_ENCODING_Q6_K] = 208};
    const int two = e == PL_ENCODING_Q4_1 || e == PL_ENCODING_Q5_1 || e == PL_ENCODING_Q4_K || e == PL_ENCODING_Q5_K;
    for (int i = 0; i < 1 + two; i++) { /* below 2^-3, subnormal ones among them */
        uint8_t *upper = block + first[e] + 2 * i + 1;
        *upper = (uint8_t)((*upper & 0x83) | (chance(3) ? 0 : 4 * below(12)));
    }
}

static int64_t rows_of_weight(const problem *p) { return p->transposed ? p->k : p->columns; }
static int64_t width_of_weight(const problem *p) { return p->transposed ? p->n : p->k; }

static void make_weight(problem *p)
{
    const int64_t count = rows_of_weight(p) * width_of_weight(p), bytes = pl_encoding_block_bytes(p->encoding);
    const int64_t all = rows_of_weight(p) * pl_encoding_row_bytes(p->encoding, width_of_weight(p));
    float *wide = guarded_normal(count, draw());
    uint8_t *w = guarded_bytes((uint64_t)all, pl_encoding_block(p->encoding) > 1 ? (uint64_t)(2 * below(32)) : 0);
    if (pl_encoding_block(p->encoding) == 1) {
        pl_encoding_narrow(p->encoding, wide, count, w);
    } else {
        for (int64_t i = 0; i < all; i++) w[i] = (uint8_t)draw();
        for (int64_t i = 0; i < all; i += bytes) tame_scales(p->encoding, w + i);
    }
    pl_encoding_widen(p->encoding, w, count, wide);
    p->w = w, p->wide = wide;
}

/* Products of whole numbers take scale and minimum apart: their error is that of both. */
static void find_least(problem *p)
{
    static const int codes[PL_ENCODING_COUNT] = {
        [PL_ENCODING_Q4_1] = 4, [PL_ENCODING_Q5_1] = 4, [PL_ENCODING_Q4_K] = 16, [PL_ENCODING_Q5_K] = 16};
    const int64_t count = p->n * p->k, block = pl_encoding_block_bytes(p->encoding),
                  bytes = p->n * pl_encoding_row_bytes(p->encoding, p->k), first = codes[p->encoding];
    float *least = guarded_f32(count);
    uint8_t *copy = guarded_bytes((uint64_t)bytes, 0);
    memcpy(copy, p->w, (size_t)bytes);
    for (int64_t i = 0; i < bytes && first; i += block) memset(copy + i + first, 0, (size_t)(block - first));
    pl_encoding_widen(p->encoding, copy, count, least);
    for (int64_t i = 0; i < count && !first; i++) least[i] = 0;
    p->least = least;
}

static problem draw_problem(pl_encoding encoding)
{
    const int64_t block = pl_encoding_block(encoding), blocks = block == 256 ? 6 : block == 32 ? 40 : 1000;
    problem p = {.encoding = encoding, .m = chance(50) ? 1 + below(9) : 1 + below(70), .n = 1 + below(150)};
    p.k = block * (1 + below(blocks));
    if (chance(40)) p.n = 16 * (1 + below(12)); /* whole vectors: wide tiles */
    p.gated = chance(20);
    p.dots = chance(p.m <= 12 ? 60 : 10);
    if (chance(30)) { /* and rows of blocks, few enough for the scalar reference */
        p.transposed = 1, p.gated = p.dots = 0, p.m = 1 + below(20);
        p.k = 1 + below(90), p.n = block * (1 + below(block == 1 ? 200 : block == 32 ? 9 : 2));
    }
    p.columns = p.gated ? 2 * p.n : p.n;
    p.has_act = !p.gated && chance(30);
    p.x = guarded_normal(p.m * p.k, draw());
    if (!p.gated && chance(40)) p.bias = guarded_normal(p.n, draw());
    if (!p.gated && chance(40)) p.residual = guarded_normal(p.m * p.n, draw());
    make_weight(&p);
    return p;
}

/* With x in blocks, some of which hold zeros alone. */
static problem draw_rounded_problem(pl_encoding encoding)
{
    const int64_t block = pl_encoding_block(encoding);
    problem p = {.encoding = encoding, .m = chance(50) ? 1 + below(9) : chance(90) ? 1 + below(40) : 150 + below(90)};
    p.n = p.columns = 1 + below(150), p.k = block * (1 + below(block == 256 ? 3 : 30)), p.has_act = chance(30);
    p.dots = p.m <= 9 && chance(50);
    float *x = guarded_normal(p.m * p.k, draw());
    for (int64_t i = 0; i < p.m * p.k; i += 32)
        if (chance(5)) memset(x + i, 0, 32 * sizeof *x);
    uint8_t *blocks =
        guarded_bytes((uint64_t)(p.m * pl_encoding_row_bytes(PL_ENCODING_Q8_0, p.k)), (uint64_t)(2 * below(32)));
    pl_encoding_narrow(PL_ENCODING_Q8_0, x, p.m * p.k, blocks);
    pl_encoding_widen(PL_ENCODING_Q8_0, blocks, p.m * p.k, x);
    p.x = x, p.x_blocks = blocks;
    if (chance(40)) p.bias = guarded_normal(p.n, draw());
    if (chance(40)) p.residual = guarded_normal(p.m * p.n, draw());
    make_weight(&p);
    find_least(&p);
    return p;
}

/* y and, behind it, the activation's values; kernels NULL: those of the level. */
static float *run_with(const pl_rounded_kernels *kernels, const problem *p, pl_encoding encoding, const void *w,
                       pl_team team)
{
    float *y = guarded_f32(p->m * p->n * 2);
    pl_gemm_call c = (p->transposed ? pl_gemm_linear_dx : pl_gemm_linear)(PL_REAL_F32, p->m, p->n, p->k, p->x, w, y);
    pl_gemm_encode(&c, encoding);
    c.bias = p->bias, c.residual = p->residual, c.ld_residual = p->n;
    c.gated = p->gated, c.dots = p->dots;
    c.act = p->gated ? PL_ACT_SILU : PL_ACT_GELU;
    if (p->has_act) c.act_out = y + p->m * p->n, c.ld_act_out = p->n;
    if (p->x_blocks) c.a = p->x_blocks, c.a_encoding = PL_ENCODING_Q8_0;
    if (kernels)
        pl_gemm_rounded_exec(kernels, &c, guarded_bytes(pl_gemm_rounded_workspace_bytes(kernels, &c, team), 0), team);
    else
        pl_gemm_exec(&c, guarded_bytes(pl_gemm_workspace_bytes(&c, team), 0), team);
    return y;
}

static float *run(const problem *p, pl_encoding encoding, const void *w, pl_team team)
{
    return run_with(NULL, p, encoding, w, team);
}

static void check_element(const problem *p, int64_t i, int64_t j, float got, pl_team team)
{
    double s[2] = {0}, all[2] = {0};
    for (int side = 0; side < 1 + p->gated; side++)
        for (int64_t q = 0; q < p->k; q++) {
            const int64_t at = p->transposed ? q * p->n + j : (j + side * p->n) * p->k + q;
            const double term = (double)p->x[i * p->k + q] * (double)p->wide[at];
            s[side] += term, all[side] += fabs(term);
            if (p->least) all[side] += 2 * fabs((double)p->x[i * p->k + q] * (double)p->least[at]);
        }
    if (p->bias) s[0] += (double)p->bias[j], all[0] += fabs((double)p->bias[j]);
    if (p->residual) {
        const double r = (double)p->residual[i * p->n + j];
        s[0] += r, all[0] += fabs(r);
    }
    const double unit = (double)(p->k + 8) * 0x1p-24 * (team.isa == PL_ISA_BASELINE ? 2 : 1);
    double wanted = s[0], error = unit * all[0];
    if (p->gated) {
        wanted = s[0] / (1 + exp(-s[0])) * s[1];
        error =
            1.2 * unit * all[0] * (fabs(s[1]) + unit * all[1]) + (fabs(s[0]) + 1) * (unit * all[1] + 4e-7 * fabs(s[1]));
    }
    if (!(fabs((double)got - wanted) <= error + 0x1p-23 * fabs(wanted) + 1e-37))
        fail_msg("y[%lld,%lld] of [%lld,%lld,%lld] is %.9g, %.9g was expected, within %.2g (%s, %s, %d threads, seed "
                 "%" PRIu64 ")",
                 (long long)i, (long long)j, (long long)p->m, (long long)p->n, (long long)p->k, (double)got, wanted,
                 error, pl_encoding_name(p->encoding), pl_isa_name(team.isa), team.threads, seed);
}

static void check_bits(const problem *p, const float *got, const float *wanted, const char *what, pl_team team)
{
    const int64_t count = p->m * p->n * (1 + p->has_act);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(got + i, wanted + i, sizeof *got) != 0)
            fail_msg("y[%lld] of [%lld,%lld,%lld] is %.9g, %.9g %s (%s, %s, %d threads, seed %" PRIu64 ")",
                     (long long)i, (long long)p->m, (long long)p->n, (long long)p->k, (double)got[i], (double)wanted[i],
                     what, pl_encoding_name(p->encoding), pl_isa_name(team.isa), team.threads, seed);
}

static void check_level(const problem *p, pl_isa isa)
{
    const float *first = run(p, p->encoding, p->w, (pl_team){1, isa});
    if (!p->x_blocks)
        check_bits(p, first, run(p, PL_ENCODING_F32, p->wide, (pl_team){1, isa}), "with the widened weight",
                   (pl_team){1, isa});
    else if (isa != PL_ISA_REF && !p->dots)
        check_bits(p, first, run_with(pl_rounded_kernels_of(isa, 0), p, p->encoding, p->w, (pl_team){1, isa}),
                   "without VNNI", (pl_team){1, isa});
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) check_element(p, i, j, first[i * p->n + j], (pl_team){1, isa});
    for (int threads = 2; threads <= 4; threads++)
        check_bits(p, run(p, p->encoding, p->w, (pl_team){threads, isa}), first, "with one thread",
                   (pl_team){threads, isa});
}

/* A row's sums are the same, however many rows there are. */
static void check_rows(const problem *p, pl_isa isa)
{
    const float *all = run(p, p->encoding, p->w, (pl_team){2, isa});
    problem one = *p;
    const int64_t row = below(p->m);
    one.m = 1, one.x += row * p->k, one.has_act = 0;
    if (p->x_blocks) one.x_blocks += row * pl_encoding_row_bytes(PL_ENCODING_Q8_0, p->k);
    if (one.residual) one.residual += row * p->n;
    check_bits(&one, run(&one, p->encoding, p->w, (pl_team){1, isa}), all + row * p->n, "among all rows",
               (pl_team){1, isa});
}

static void check_problem(problem p, pl_isa isa)
{
    check_level(&p, isa);
    check_rows(&p, isa);
    guarded_check_all();
    guarded_free_all();
}

static void test_products(void **unused)
{
    (void)unused;
    for (int round = 0; round < 6; round++)
        for (int e = 0; e < PL_ENCODING_COUNT; e++)
            for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
                check_problem(draw_problem((pl_encoding)e), isa);
}

static void test_rounded_products(void **unused)
{
    (void)unused;
    for (int round = 0; round < 6; round++)
        for (int e = PL_ENCODING_Q4_0; e < PL_ENCODING_COUNT; e++)
            for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
                check_problem(draw_rounded_problem((pl_encoding)e), isa);
}

/* Blocks of every level, byte for byte as base/encoding.h makes them; of halves of codes and of NaN, too. */
static void test_rounding(void **unused)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 0x1p-149f, 3e38f, 127, 63.5f, -0.5f, 1.5f};
    (void)unused;
    for (int round = 0; round < 40; round++) {
        const int64_t count = 32 * (1 + below(700)), bytes = pl_encoding_row_bytes(PL_ENCODING_Q8_0, count);
        float *x = guarded_normal(count, draw());
        for (int64_t i = 0; i < count; i++) {
            if (round % 4 == 1) x[i] = (float)(below(255) - 127) * 0.5f;
            if (round % 4 == 2 && chance(2)) x[i] = odd[below(sizeof odd / sizeof *odd)];
        }
        if (round % 4 == 1)
            for (int64_t i = 0; i < count; i += 32) x[i] = 127; /* a scale of 1 */
        uint8_t *wanted = guarded_bytes((uint64_t)bytes, 0);
        pl_encoding_narrow(PL_ENCODING_Q8_0, x, count, wanted);
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
            uint8_t *got = guarded_bytes((uint64_t)bytes, (uint64_t)(2 * below(32)));
            const pl_cast_call c = {.count = count, .encoding = PL_ENCODING_Q8_0, .x = x, .y = got};
            pl_cast_exec(&c, (pl_team){1 + (int)below(3), isa});
            for (int64_t i = 0; i < bytes; i++)
                if (got[i] != wanted[i])
                    fail_msg("byte %lld of %lld numbers is %d, not %d (%s, seed %" PRIu64 ")", (long long)i,
                             (long long)count, got[i], wanted[i], pl_isa_name(isa), seed);
        }
        guarded_check_all();
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    state = seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_products), cmocka_unit_test(test_rounded_products),
                                       cmocka_unit_test(test_rounding)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
