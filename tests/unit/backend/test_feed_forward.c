/* Feed-forward layers in chunks against a double-precision oracle of the formulas; every level of this machine, optional
 * arguments, aliases, chunks of any size and several teams (whose bits must be equal), guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"

enum { IN = 11, HIDDEN = 37, OUT = 11, ROWS = 21 };

typedef struct problem {
    int has_bias, has_rest; /* rest: residual, partial */
    float *x, *w1, *b1, *w2, *b2, *dy, *rest, *dw1, *dw2, *db1;
} problem;

static problem make_problem(int options)
{
    problem p = {.has_bias = options & 1, .has_rest = options >> 1 & 1};
    p.x = guarded_normal(ROWS * IN, 1), p.dy = guarded_normal(ROWS * OUT, 2), p.rest = guarded_normal(ROWS * IN, 3);
    p.w1 = guarded_normal(HIDDEN * IN, 4), p.w2 = guarded_normal(OUT * HIDDEN, 5);
    p.b1 = guarded_normal(HIDDEN, 6), p.b2 = guarded_normal(OUT, 7);
    p.dw1 = guarded_normal(HIDDEN * IN, 8), p.dw2 = guarded_normal(OUT * HIDDEN, 9), p.db1 = guarded_normal(HIDDEN, 10);
    return p;
}

typedef struct results {
    float *y, *dx, *dw1, *dw2, *db1;
} results;

/* in_place: y over the residual, dx over dy. */
static results run(const problem *p, int64_t chunk_rows, int in_place, pl_team team)
{
    float *dy = guarded_copy(p->dy, ROWS * OUT), *rest = guarded_copy(p->rest, ROWS * OUT);
    results r = {in_place ? rest : guarded_f32(ROWS * OUT), in_place ? dy : guarded_f32(ROWS * IN),
                 guarded_copy(p->dw1, HIDDEN * IN), guarded_copy(p->dw2, OUT * HIDDEN), guarded_copy(p->db1, HIDDEN)};
    pl_feed_forward_call forward = {.rows = ROWS, .in = IN, .hidden = HIDDEN, .out = OUT, .chunk_rows = chunk_rows};
    forward.act = PL_ACT_GELU, forward.x = p->x, forward.w1 = p->w1, forward.w2 = p->w2, forward.y = r.y;
    if (p->has_bias) forward.b1 = p->b1, forward.b2 = p->b2;
    if (p->has_rest) forward.residual = rest;
    pl_feed_forward_exec(&forward, guarded_bytes(pl_feed_forward_workspace_bytes(&forward, team), 0), team);
    pl_feed_forward_bwd_call c = {.rows = ROWS, .in = IN, .hidden = HIDDEN, .out = OUT, .chunk_rows = chunk_rows};
    c.act = PL_ACT_GELU, c.dy = dy, c.x = p->x, c.w1 = p->w1, c.w2 = p->w2;
    c.dx = r.dx, c.dw1 = r.dw1, c.dw2 = r.dw2;
    if (p->has_bias) c.b1 = p->b1, c.db1 = r.db1;
    if (p->has_rest) c.partial = p->rest;
    pl_feed_forward_bwd_exec(&c, guarded_bytes(pl_feed_forward_bwd_workspace_bytes(&c, team), 0), team);
    return r;
}

/* ---- the oracle ---- */

typedef struct expected {
    double y[ROWS * OUT], dx[ROWS * IN], dw1[HIDDEN * IN], dw2[OUT * HIDDEN], db1[HIDDEN];
} expected;

static double gelu(double u) { return u * 0.5 * (1 + erf(u / sqrt(2))); }
static double slope(double u) { return 0.5 * (1 + erf(u / sqrt(2))) + u * exp(-u * u / 2) / sqrt(2 * acos(-1)); }

static void widen(double *to, const float *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = from[i];
}

static void add_hidden(const problem *p, expected *e, int64_t i, int64_t j)
{
    double u = p->has_bias ? p->b1[j] : 0, da = 0;
    for (int64_t k = 0; k < IN; k++) u += (double)p->x[i * IN + k] * p->w1[j * IN + k];
    for (int64_t n = 0; n < OUT; n++) {
        e->y[i * OUT + n] += gelu(u) * p->w2[n * HIDDEN + j];
        e->dw2[n * HIDDEN + j] += p->dy[i * OUT + n] * gelu(u);
        da += (double)p->dy[i * OUT + n] * p->w2[n * HIDDEN + j];
    }
    if (p->has_bias) e->db1[j] += da * slope(u);
    for (int64_t k = 0; k < IN; k++) {
        e->dx[i * IN + k] += da * slope(u) * p->w1[j * IN + k];
        e->dw1[j * IN + k] += da * slope(u) * p->x[i * IN + k];
    }
}

static void oracle(const problem *p, expected *e)
{
    memset(e, 0, sizeof *e);
    widen(e->dw1, p->dw1, HIDDEN * IN), widen(e->dw2, p->dw2, OUT * HIDDEN), widen(e->db1, p->db1, HIDDEN);
    if (p->has_rest) widen(e->y, p->rest, ROWS * OUT), widen(e->dx, p->rest, ROWS * IN);
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t n = 0; n < OUT && p->has_bias; n++) e->y[i * OUT + n] += p->b2[n];
        for (int64_t j = 0; j < HIDDEN; j++) add_hidden(p, e, i, j);
    }
}

/* ---- tests ---- */

static void assert_near(const float *got, const double *want, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= 2e-5 * (4 + fabs(want[i]))))
            fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, (double)got[i], want[i]);
}

static void assert_same(const results *a, const results *b)
{
    assert_memory_equal(a->y, b->y, ROWS * OUT * sizeof(float));
    assert_memory_equal(a->dx, b->dx, ROWS * IN * sizeof(float));
    assert_memory_equal(a->dw1, b->dw1, HIDDEN * IN * sizeof(float));
    assert_memory_equal(a->dw2, b->dw2, OUT * HIDDEN * sizeof(float));
    assert_memory_equal(a->db1, b->db1, HIDDEN * sizeof(float));
}

static void test_all(void **state)
{
    (void)state;
    static const int64_t chunks[] = {ROWS, 1, 4, 20, 1000};
    static expected e;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int options = 0; options < 4; options++) {
            problem p = make_problem(options);
            oracle(&p, &e);
            results first = run(&p, ROWS, 0, (pl_team){1, isa});
            assert_near(first.y, e.y, ROWS * OUT, "y");
            assert_near(first.dx, e.dx, ROWS * IN, "dx");
            assert_near(first.dw1, e.dw1, HIDDEN * IN, "dw1");
            assert_near(first.dw2, e.dw2, OUT * HIDDEN, "dw2");
            assert_near(first.db1, e.db1, HIDDEN, "db1");
            for (int i = 0; i < 10; i++) {
                results more = run(&p, chunks[i % 5], i >= 5, (pl_team){1 + i % 3, isa});
                assert_same(&first, &more);
            }
            guarded_check_all();
            guarded_free_all();
        }
}

/* The hidden values of one chunk, not of the call. */
static void test_workspace_follows_chunk(void **state)
{
    (void)state;
    pl_team team = {2, PL_ISA_BASELINE};
    pl_feed_forward_bwd_call c = {.rows = 4096, .in = 256, .hidden = 4096, .out = 256, .chunk_rows = 64};
    uint64_t bytes = pl_feed_forward_bwd_workspace_bytes(&c, team);
    c.rows = 64 * 1000;
    assert_true(pl_feed_forward_bwd_workspace_bytes(&c, team) == bytes && bytes < 2 * 64 * 4096 * 4 + 300000);
    c.rows = 0;
    assert_true(pl_feed_forward_bwd_workspace_bytes(&c, team) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_workspace_follows_chunk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
