/* Layers of signs, of random shapes, at each level of this machine: weights packed, the product, and the backward pass,
 * against what comes of the definition one scalar after the other, in double; the same bits with any team, and of the
 * gradient of a weight with samples cut into calls anyhow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/binary.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

static uint64_t seed;
static const int teams[] = {1, 2, 5};
enum { TEAMS = 3, CASES = 60 };

typedef struct layer {
    int64_t samples, tokens, n, k;
    float *x, *w, *dy;
    void *packed;
    double *alpha, *beta; /* by the definition */
} layer;

static uint64_t drawn;

static int64_t below(int64_t n)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((drawn >> 33) % (uint64_t)n);
}

static int64_t rows_of(const layer *l) { return l->samples * l->tokens; }

/* Some numbers are 0, some beyond 1. */
static float *numbers(int64_t count, float scale, uint64_t stream)
{
    float *x = guarded_normal(count, stream + 8 * seed);
    for (int64_t i = 0; i < count; i++) x[i] = below(19) == 0 ? (below(2) ? 0.0f : -0.0f) : x[i] * scale;
    return x;
}

static double *means_of(int64_t rows, int64_t k, const float *x)
{
    double *mean = guarded_bytes((uint64_t)rows * sizeof *mean, 0);
    for (int64_t i = 0; i < rows; i++) {
        mean[i] = 0;
        for (int64_t p = 0; p < k; p++) mean[i] += fabs((double)x[i * k + p]) / (double)k;
    }
    return mean;
}

static layer layer_create(int64_t samples, int64_t tokens, int64_t n, int64_t k)
{
    layer l = {.samples = samples, .tokens = tokens, .n = n, .k = k};
    l.x = numbers(rows_of(&l) * l.k, 1, 1);
    l.w = numbers(l.n * l.k, 0.7f, 2);
    l.dy = guarded_normal(rows_of(&l) * l.n, 3 + 8 * seed);
    l.alpha = means_of(l.n, l.k, l.w);
    l.beta = means_of(rows_of(&l), l.k, l.x);
    l.packed = guarded_bytes(pl_binary_packed_bytes(l.n, l.k), 0);
    memset(l.packed, 0xff, pl_binary_packed_bytes(l.n, l.k));
    return l;
}

static void *workspace(uint64_t bytes)
{
    void *at = guarded_bytes(bytes, 0);
    memset(at, 0xff, bytes);
    return at;
}

/* ---- the definition ---- */

static double sign_of(double x) { return x < 0 ? -1 : 1; }

static void expect_near(const char *what, const layer *l, double got, double want, double largest)
{
    if (fabs(got - want) <= 2e-5 * largest) return;
    fail_msg("seed %llu: %s of %lld × %lld tokens, %lld from %lld: %.9g is not %.9g", (unsigned long long)seed, what,
             (long long)l->samples, (long long)l->tokens, (long long)l->n, (long long)l->k, got, want);
}

/* ---- each by itself ---- */

static void pack(const layer *l, pl_team team)
{
    const pl_pack_signs_call call = {l->n, l->k, l->w, l->packed};
    pl_pack_signs_exec(&call, workspace(pl_pack_signs_workspace_bytes(&call, team)), team);
}

static void check_packed(const layer *l, pl_isa isa)
{
    const uint64_t bytes = pl_binary_packed_bytes(l->n, l->k);
    void *first = workspace(bytes);
    for (int t = 0; t < TEAMS; t++) {
        pack(l, (pl_team){teams[t], isa});
        if (t == 0) memcpy(first, l->packed, bytes);
        assert_memory_equal(l->packed, first, bytes);
    }
    for (int64_t j = 0; j < pl_binary_rows(l->n); j++) {
        const double alpha = j < l->n ? l->alpha[j] : 0;
        expect_near("alpha", l, (double)((const float *)l->packed)[j], alpha, alpha);
        for (int64_t p = 0; p < 32 * pl_binary_words(l->k); p++) {
            uint32_t word;
            memcpy(&word, (char *)l->packed + pl_binary_word_at(l->n, l->k, j, p / 32), sizeof word);
            const bool negative = j < l->n && p < l->k && l->w[j * l->k + p] < 0;
            assert_int_equal(word >> p % 32 & 1, negative);
        }
    }
}

static void check_product(const layer *l, pl_isa isa)
{
    float *y = guarded_f32(rows_of(l) * l->n);
    const pl_binary_call call = {.m = rows_of(l),
                                 .n = l->n,
                                 .k = l->k,
                                 .x_real = l->x,
                                 .ld_x = l->k,
                                 .packed = l->packed,
                                 .c = y,
                                 .ldc = l->n,
                                 .act = PL_ACT_NONE};
    pl_binary_exec(&call, workspace(pl_binary_workspace_bytes(&call, (pl_team){2, isa})), (pl_team){2, isa});
    for (int64_t i = 0; i < rows_of(l); i++)
        for (int64_t j = 0; j < l->n; j++) {
            const float *x = l->x + i * l->k, *w = l->w + j * l->k;
            double sum = 0;
            for (int64_t p = 0; p < l->k; p++) sum += sign_of((double)x[p]) * sign_of((double)w[p]);
            const double scale = l->beta[i] * l->alpha[j];
            expect_near("y", l, (double)y[i * l->n + j], scale * sum, scale * fmax(fabs(sum), 1));
        }
}

static void check_dx_row(const layer *l, int64_t i, const float *dx)
{
    static double d[4096];
    const float *x = l->x + i * l->k;
    double of_beta = 0, largest = 0;
    for (int64_t p = 0; p < l->k; p++) {
        d[p] = 0;
        for (int64_t j = 0; j < l->n; j++)
            d[p] += (double)l->dy[i * l->n + j] * l->alpha[j] * sign_of((double)l->w[j * l->k + p]);
        of_beta += d[p] * sign_of((double)x[p]);
        largest = fmax(largest, fabs(d[p]));
    }
    for (int64_t p = 0; p < l->k; p++) {
        const double pass = fabs((double)x[p]) <= 1 ? l->beta[i] * d[p] : 0;
        const double size = x[p] == 0 ? 0 : of_beta * sign_of((double)x[p]) / (double)l->k;
        expect_near("dx", l, (double)dx[p], pass + size, 1 + largest);
    }
}

static void check_dx(const layer *l, pl_isa isa)
{
    float *dx = guarded_f32(rows_of(l) * l->k), *first = NULL;
    const pl_linear_binary_dx_call call = {rows_of(l), l->n, l->k, l->dy, l->x, l->packed, dx};
    for (int t = 0; t < TEAMS; t++) {
        const pl_team team = {teams[t], isa};
        pl_linear_binary_dx_exec(&call, workspace(pl_linear_binary_dx_workspace_bytes(&call, team)), team);
        if (t == 0) first = guarded_copy(dx, rows_of(l) * l->k);
        assert_memory_equal(dx, first, (size_t)(rows_of(l) * l->k) * sizeof *dx);
    }
    for (int64_t i = 0; i < rows_of(l); i += 1 + below(3)) check_dx_row(l, i, dx + i * l->k);
}

/* `cut` samples in a first call, the rest in a second. */
static void add_dw(const layer *l, int64_t cut, float *dw, pl_team team)
{
    const int64_t part[] = {0, cut, l->samples};
    for (int i = 0; i < 2; i++) {
        if (part[i] == part[i + 1]) continue;
        const pl_linear_binary_dw_call call = {.m = (part[i + 1] - part[i]) * l->tokens,
                                               .n = l->n,
                                               .k = l->k,
                                               .tokens = l->tokens,
                                               .dy = l->dy + part[i] * l->tokens * l->n,
                                               .x = l->x + part[i] * l->tokens * l->k,
                                               .dw = dw};
        pl_linear_binary_dw_exec(&call, workspace(pl_linear_binary_dw_workspace_bytes(&call, team)), team);
    }
}

static void finish(const layer *l, float *dw, pl_team team)
{
    const pl_latent_gradient_call call = {l->n, l->k, l->w, dw};
    pl_latent_gradient_exec(&call, workspace(pl_latent_gradient_workspace_bytes(&call, team)), team);
}

static void check_dw(const layer *l, pl_isa isa)
{
    const float *before = guarded_normal(l->n * l->k, 4 + 8 * seed);
    float *dw = NULL, *first = NULL;
    for (int t = 0; t < TEAMS; t++) {
        dw = guarded_copy(before, l->n * l->k);
        add_dw(l, t == 0 ? 0 : below(l->samples + 1), dw, (pl_team){teams[t], isa});
        finish(l, dw, (pl_team){teams[t], isa});
        if (t == 0) first = dw;
        assert_memory_equal(dw, first, (size_t)(l->n * l->k) * sizeof *dw);
    }
    for (int64_t e = 0; e < l->n * l->k; e += 1 + below(5)) {
        const int64_t j = e / l->k, p = e % l->k;
        double sum = (double)before[e], largest = fabs(sum);
        for (int64_t i = 0; i < rows_of(l); i++) {
            const double term = (double)l->dy[i * l->n + j] * l->beta[i];
            sum += term * sign_of((double)l->x[i * l->k + p]);
            largest += fabs(term);
        }
        const double pass = fabs((double)l->w[e]) <= 1 ? l->alpha[j] : 0;
        const double factor = 1 / (double)l->k + pass;
        expect_near("dw", l, (double)dw[e], factor * sum, factor * largest);
    }
}

static void test_layers(void **state)
{
    (void)state;
    drawn = seed;
    for (int i = 0; i < CASES; i++)
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
            static const int64_t widths[] = {1, 31, 32, 33, 64, 100, 255, 257, 300, 600};
            const layer l = layer_create(1 + below(4), 1 + below(40), 1 + below(90), widths[i % 10]);
            check_packed(&l, isa);
            check_product(&l, isa);
            check_dx(&l, isa);
            check_dw(&l, isa);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Layers so large that a part of their numbers is made at a time. */
static void test_pieces(void **state)
{
    (void)state;
    drawn = seed;
    const pl_isa isa = pl_isa_of_machine();
    const layer tall = layer_create(3, 2000, 3, 520), wide = layer_create(2, 3, 9000, 300);
    check_dw(&tall, isa);
    pack(&wide, (pl_team){2, isa});
    check_dx(&wide, isa);
    guarded_check_all();
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
