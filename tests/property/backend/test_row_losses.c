/* Losses of rows on random shapes, f32, bf16 and f16: the loss against the formula in double, gradients against central
 * differences of it; then with other teams, cut into micro-batches, in place and with outputs left out: the same bits.
 * Counts of right rows against a search for the largest logit. A failure prints the seed of its case:
 * `property_backend test_row_losses SEED` begins with it. */
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
#include "support/seed.h"

enum { CASES = 120, RUNS = 5, ELEMENTS = 40, WIDTH_MAX = 90 };

static const double FIRST_LOSS = 0.5;
static uint64_t first_seed, state;

/* SplitMix64 */
static uint64_t next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool chance(unsigned percent) { return next() % 100 < percent; }
static int64_t between(int64_t low, int64_t high) { return low + (int64_t)(next() % (uint64_t)(high - low + 1)); }
static float uniform(float limit) { return limit * ((float)(next() >> 40) * 0x1p-23f - 1); }

/* Near zero angles, norms and stablemax bend too sharply for difference quotients. */
static float away_from_zero(void)
{
    float x = uniform(3);
    return x < 0 ? x - 0.25f : x + 0.25f;
}

typedef struct problem {
    uint64_t seed;
    pl_row_loss_kind kind;
    int64_t samples, rows, width, y_stride; /* rows of a sample */
    pl_real type;
    void *a, *b;
    int32_t *target;
    float *y, scale, loss_scale;
} problem;

static int64_t elems_of(const problem *p) { return p->samples * p->rows * p->width; }
static uint64_t bytes_of(const problem *p) { return (uint64_t)(elems_of(p) * pl_real_bytes(p->type)); }
static void *room(const problem *p) { return guarded_bytes(bytes_of(p), 0); }
static void *copy_of(const problem *p, const void *from) { return memcpy(room(p), from, bytes_of(p)); }
static double at(const problem *p, const void *x, int64_t i) { return (double)pl_real_get(p->type, x, i); }

static bool is_cross_entropy(const problem *p)
{
    return p->kind == PL_ROW_LOSS_SOFTMAX || p->kind == PL_ROW_LOSS_STABLEMAX;
}

static bool has_two(const problem *p) { return p->kind == PL_ROW_LOSS_COSINE || p->kind == PL_ROW_LOSS_SQUARED_ERROR; }

/* A quarter of the rows has no label; of a tenth of the cases none has. */
static problem problem_of(uint64_t seed)
{
    state = seed;
    problem p = {.seed = seed, .type = (pl_real[]){PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16}[next() % 3]};
    p.kind = (pl_row_loss_kind)(next() % 6);
    p.samples = between(1, 40), p.rows = chance(30) ? 1 : between(1, 12), p.width = between(1, WIDTH_MAX);
    if (p.kind == PL_ROW_LOSS_BCE) p.rows = p.width = 1;
    p.y_stride = between(1, 4);
    p.a = room(&p), p.b = room(&p), p.y = guarded_f32(p.samples * p.y_stride);
    p.target = guarded_bytes((uint64_t)(p.samples * p.rows) * sizeof *p.target, 0);
    p.scale = chance(20) ? 0 : uniform(2), p.loss_scale = chance(50) ? 0 : 64;
    for (int64_t i = 0; i < elems_of(&p); i++) {
        pl_real_put(p.type, p.a, i, away_from_zero());
        pl_real_put(p.type, p.b, i, away_from_zero());
    }
    unsigned unlabelled = chance(10) ? 100 : 25;
    for (int64_t r = 0; r < p.samples * p.rows; r++)
        p.target[r] = (int32_t)(chance(unlabelled) ? -between(1, 100) : between(0, p.width - 1));
    for (int64_t s = 0; s < p.samples; s++) p.y[s * p.y_stride] = chance(30) ? 1 : (uniform(1) + 1) / 2;
    return p;
}

typedef struct results {
    double loss;
    void *da, *db; /* NULL: not wanted */
} results;

static void *at_or_null(const problem *p, void *x, int64_t i) { return x ? pl_real_at(p->type, x, i) : NULL; }

/* Plainly the first time, in a way that is drawn from then on. */
static results run(const problem *p, pl_team team, bool plainly)
{
    unsigned wanted = plainly ? 3 : (unsigned)between(0, 3);
    int64_t samples = plainly ? p->samples : between(1, p->samples);
    void *a = copy_of(p, p->a), *b = copy_of(p, p->b);
    results r = {.loss = FIRST_LOSS};
    if (wanted & 1) r.da = !plainly && chance(50) ? a : room(p);
    if (wanted & 2 && has_two(p)) r.db = !plainly && chance(50) ? b : room(p);
    for (int64_t s = 0; s < p->samples; s += samples) {
        int64_t count = s + samples < p->samples ? samples : p->samples - s, from = s * p->rows * p->width;
        pl_row_loss_call c = {.kind = p->kind,
                              .rows = count * p->rows,
                              .width = p->width,
                              .a = pl_real_at(p->type, a, from),
                              .b = pl_real_at(p->type, b, from),
                              .target = p->target + s * p->rows,
                              .y = p->y + s * p->y_stride,
                              .y_stride = p->y_stride,
                              .scale = &p->scale,
                              .loss = &r.loss,
                              .da = at_or_null(p, r.da, from),
                              .db = at_or_null(p, r.db, from),
                              .loss_scale = p->loss_scale > 0 ? &p->loss_scale : NULL,
                              .type = p->type};
        pl_row_loss_exec(&c, guarded_bytes(pl_row_loss_workspace_bytes(&c, team), 0), team);
    }
    return r;
}

/* ---- the formulas, of one row ---- */

static double stable(double z) { return z < 0 ? 1 / (1 - z) : z + 1; }

static double cross_entropy(const problem *p, const double *z, int32_t label)
{
    double sum = 0, own;
    if (label < 0) return 0;
    for (int64_t v = 0; v < p->width; v++) sum += p->kind == PL_ROW_LOSS_SOFTMAX ? exp(z[v]) : stable(z[v]);
    own = p->kind == PL_ROW_LOSS_SOFTMAX ? exp(z[label]) : stable(z[label]);
    return -log(own / sum);
}

static double pair(const problem *p, const double *a, const double *b)
{
    double dot = 0, aa = 0, bb = 0, squares = 0;
    for (int64_t i = 0; i < p->width; i++) {
        dot += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
        squares += (a[i] - b[i]) * (a[i] - b[i]);
    }
    if (p->kind == PL_ROW_LOSS_SQUARED_ERROR) return squares;
    return p->kind == PL_ROW_LOSS_COSINE ? 1 - dot / fmax(sqrt(aa * bb), 1e-8) : (sqrt(aa) - 1) * (sqrt(aa) - 1);
}

static double term(const problem *p, int64_t row, const double *a, const double *b)
{
    if (is_cross_entropy(p)) return cross_entropy(p, a, p->target[row]);
    if (p->kind != PL_ROW_LOSS_BCE) return pair(p, a, b);
    double y = (double)p->y[row * p->y_stride];
    return y * log(1 + exp(-a[0])) + (1 - y) * log(1 + exp(a[0]));
}

/* ---- against them ---- */

static double slope(const problem *p, int64_t row, double *a, double *b, double *moved)
{
    const double step = 1e-5, old = *moved;
    *moved = old + step;
    double above = term(p, row, a, b);
    *moved = old - step;
    double below = term(p, row, a, b);
    *moved = old;
    return (above - below) / (2 * step);
}

/* One rounding to the type, the smallest number of f16, and what difference quotients lose. */
static void expect_slope(const problem *p, const void *got, int64_t i, double slope)
{
    const double step = p->type == PL_REAL_F32 ? 0x1p-23 : p->type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11;
    const double by = (double)(p->scale * (p->loss_scale > 0 ? p->loss_scale : 1)), want = slope * by;
    if (fabs(at(p, got, i) - want) <= step * fabs(want) + 2e-6 * fabs(by) + 0x1p-24) return;
    fail_msg("seed %llu: kind %d: gradient %lld is %.9g, expected %.9g", (unsigned long long)p->seed, p->kind,
             (long long)i, at(p, got, i), want);
}

static void load_row(const problem *p, int64_t row, double *a, double *b)
{
    for (int64_t i = 0; i < p->width; i++)
        a[i] = at(p, p->a, row * p->width + i), b[i] = at(p, p->b, row * p->width + i);
}

static void check(const problem *p, const results *r)
{
    double a[WIDTH_MAX], b[WIDTH_MAX], sum = 0;
    for (int64_t row = 0; row < p->samples * p->rows; row++) {
        load_row(p, row, a, b);
        sum += term(p, row, a, b);
    }
    const double want = FIRST_LOSS + (double)p->scale * sum;
    if (!(fabs(r->loss - want) <= 1e-10 * (double)(p->samples * p->rows) + 1e-12 * fabs(want)))
        fail_msg("seed %llu: kind %d: the loss is %.15g, expected %.15g", (unsigned long long)p->seed, p->kind, r->loss,
                 want);
    for (int k = 0; k < ELEMENTS; k++) {
        int64_t i = between(0, elems_of(p) - 1), row = i / p->width;
        load_row(p, row, a, b);
        expect_slope(p, r->da, i, slope(p, row, a, b, &a[i % p->width]));
        if (has_two(p)) expect_slope(p, r->db, i, slope(p, row, a, b, &b[i % p->width]));
    }
}

static void same(const problem *p, const void *first, const void *got, const char *what)
{
    if (got && memcmp(first, got, bytes_of(p)) != 0)
        fail_msg("seed %llu: kind %d: other bits of %s", (unsigned long long)p->seed, p->kind, what);
}

static void losses_are_their_formula(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < CASES; i++) {
        problem p = problem_of(first_seed + i);
        results first = run(&p, (pl_team){1, PL_ISA_REF}, true);
        check(&p, &first);
        for (int k = 0; k < RUNS; k++) {
            results r = run(&p, (pl_team){(int)between(1, 5), pl_isa_of_machine()}, false);
            if (r.loss != first.loss) fail_msg("seed %llu: other bits of the loss", (unsigned long long)p.seed);
            same(&p, first.da, r.da, "da");
            same(&p, first.db, r.db, "db");
        }
        guarded_check_all();
        guarded_free_all();
    }
}

/* Few different logits, so that many are equal; a label is the largest more often than not. */
static void counts_are_those_of_a_search(void **unused)
{
    (void)unused;
    for (uint64_t n = 0; n < CASES; n++) {
        problem p = problem_of(first_seed + n);
        float *y = guarded_f32(3 * p.samples);
        for (int64_t i = 0; i < elems_of(&p); i++) pl_real_put(p.type, p.a, i, rintf(uniform(2)));
        for (int64_t s = 0; s < p.samples; s++) y[3 * s] = y[3 * s + 1] = 0;
        for (int64_t row = 0; row < p.samples * p.rows; row++) {
            int64_t best = 0;
            for (int64_t v = p.width; v-- > 0;)
                if (at(&p, p.a, row * p.width + v) >= at(&p, p.a, row * p.width + best)) best = v;
            if (p.target[row] >= 0 && chance(60)) p.target[row] = (int32_t)best;
            y[row / p.rows * 3] += p.target[row] >= 0;
            y[row / p.rows * 3 + 1] += p.target[row] == best;
        }
        for (int64_t s = 0; s < p.samples; s++) y[3 * s + 2] = y[3 * s] == y[3 * s + 1];
        float *got = guarded_f32(3 * p.samples);
        pl_count_right_call c = {p.samples, p.rows, p.width, p.a, p.target, got, p.type};
        pl_count_right_exec(&c, (pl_team){(int)between(1, 5), pl_isa_of_machine()});
        if (memcmp(got, y, (size_t)p.samples * 3 * sizeof *y) != 0)
            fail_msg("seed %llu: other counts", (unsigned long long)p.seed);
        guarded_check_all();
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(losses_are_their_formula),
                                       cmocka_unit_test(counts_are_those_of_a_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
