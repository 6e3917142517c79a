/* Feed-forward layers in chunks against a double-precision oracle of the formulas, which rounds hidden values and their
 * gradient where 16 bits are stored; every type and level of this machine, optional arguments, aliases, chunks of any
 * size and several teams (whose bits must be equal), guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"
#include "support/program.h"

enum { IN = 11, HIDDEN = 37, OUT = 11, ROWS = 21 };

typedef struct problem {
    pl_real type;
    int has_bias, has_rest; /* rest: residual, partial */
    void *x, *w1, *w2, *dy, *rest;
    float *b1, *b2, *dw1, *dw2, *db1;
} problem;

static void *normal(pl_real type, int64_t count, uint64_t stream)
{
    const float *from = guarded_normal(count, stream);
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, from[i]);
    return to;
}

static void *copy(pl_real type, const void *from, int64_t count)
{
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    return memcpy(to, from, (size_t)(count * pl_real_bytes(type)));
}

static problem make_problem(pl_real type, int options)
{
    problem p = {.type = type, .has_bias = options & 1, .has_rest = options >> 1 & 1};
    p.x = normal(type, ROWS * IN, 1), p.dy = normal(type, ROWS * OUT, 2), p.rest = normal(type, ROWS * IN, 3);
    p.w1 = normal(type, HIDDEN * IN, 4), p.w2 = normal(type, OUT * HIDDEN, 5);
    p.b1 = guarded_normal(HIDDEN, 6), p.b2 = guarded_normal(OUT, 7);
    p.dw1 = guarded_normal(HIDDEN * IN, 8), p.dw2 = guarded_normal(OUT * HIDDEN, 9), p.db1 = guarded_normal(HIDDEN, 10);
    return p;
}

typedef struct results {
    pl_real type;
    void *y, *dx;
    float *dw1, *dw2, *db1;
} results;

static pl_feed_forward_layer layer_of(const problem *p, int64_t chunk_rows)
{
    return (pl_feed_forward_layer){.rows = ROWS,
                                   .in = IN,
                                   .hidden = HIDDEN,
                                   .out = OUT,
                                   .chunk_rows = chunk_rows,
                                   .act = PL_ACT_GELU,
                                   .x = p->x,
                                   .w1 = p->w1,
                                   .w2 = p->w2,
                                   .b1 = p->has_bias ? p->b1 : NULL,
                                   .type = p->type};
}

/* in_place: y over the residual, dx over dy. */
static results run(const problem *p, int64_t chunk_rows, int in_place, pl_team team)
{
    void *dy = copy(p->type, p->dy, ROWS * OUT), *rest = copy(p->type, p->rest, ROWS * OUT);
    void *y = normal(p->type, ROWS * OUT, 11), *dx = normal(p->type, ROWS * IN, 12); /* overwritten */
    results r = {.type = p->type, .y = in_place ? rest : y, .dx = in_place ? dy : dx};
    r.dw1 = guarded_copy(p->dw1, HIDDEN * IN), r.dw2 = guarded_copy(p->dw2, OUT * HIDDEN);
    r.db1 = guarded_copy(p->db1, HIDDEN);
    pl_feed_forward_call forward = {.layer = layer_of(p, chunk_rows), .y = r.y};
    if (p->has_bias) forward.b2 = p->b2;
    if (p->has_rest) forward.residual = rest;
    pl_feed_forward_exec(&forward, guarded_bytes(pl_feed_forward_workspace_bytes(&forward, team), 0), team);
    pl_feed_forward_bwd_call c = {.layer = layer_of(p, chunk_rows), .dy = dy};
    c.dx = r.dx, c.dw1 = r.dw1, c.dw2 = r.dw2;
    if (p->has_bias) c.db1 = r.db1;
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

static void widen(double *to, pl_real type, const void *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = pl_real_get(type, from, i);
}

static double get(const problem *p, const void *from, int64_t i) { return pl_real_get(p->type, from, i); }

static double rounded(pl_real type, double x)
{
    float kept = 0;
    if (type == PL_REAL_F32) return x;
    pl_real_put(type, &kept, 0, (float)x);
    return pl_real_get(type, &kept, 0);
}

static void add_hidden(const problem *p, expected *e, int64_t i, int64_t j)
{
    double u = p->has_bias ? p->b1[j] : 0, da = 0;
    for (int64_t k = 0; k < IN; k++) u += get(p, p->x, i * IN + k) * get(p, p->w1, j * IN + k);
    u = rounded(p->type, u);
    double a = rounded(p->type, gelu(u));
    for (int64_t n = 0; n < OUT; n++) {
        e->y[i * OUT + n] += a * get(p, p->w2, n * HIDDEN + j);
        e->dw2[n * HIDDEN + j] += get(p, p->dy, i * OUT + n) * a;
        da += get(p, p->dy, i * OUT + n) * get(p, p->w2, n * HIDDEN + j);
    }
    double du = rounded(p->type, rounded(p->type, da) * slope(u));
    if (p->has_bias) e->db1[j] += du;
    for (int64_t k = 0; k < IN; k++) {
        e->dx[i * IN + k] += du * get(p, p->w1, j * IN + k);
        e->dw1[j * IN + k] += du * get(p, p->x, i * IN + k);
    }
}

static void oracle(const problem *p, expected *e)
{
    memset(e, 0, sizeof *e);
    widen(e->dw1, PL_REAL_F32, p->dw1, HIDDEN * IN), widen(e->dw2, PL_REAL_F32, p->dw2, OUT * HIDDEN);
    widen(e->db1, PL_REAL_F32, p->db1, HIDDEN);
    if (p->has_rest) widen(e->y, p->type, p->rest, ROWS * OUT), widen(e->dx, p->type, p->rest, ROWS * IN);
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t n = 0; n < OUT && p->has_bias; n++) e->y[i * OUT + n] += p->b2[n];
        for (int64_t j = 0; j < HIDDEN; j++) add_hidden(p, e, i, j);
    }
}

/* ---- tests ---- */

/* A few steps of the type: what is rounded twice, and a hidden value that is nearly a tie. */
static double bound_of(pl_real type) { return type == PL_REAL_F32 ? 2e-5 : type == PL_REAL_BF16 ? 0x1p-7 : 0x1p-10; }

static void assert_near(pl_real layer, pl_real type, const void *got, const double *want, int64_t count,
                        const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(pl_real_get(type, got, i) - want[i]) <= bound_of(layer) * (4 + fabs(want[i]))))
            fail_msg("type %d: %s[%lld] is %.9g, expected %.9g", (int)layer, what, (long long)i,
                     (double)pl_real_get(type, got, i), want[i]);
}

static void assert_right(const results *r, const expected *e)
{
    assert_near(r->type, r->type, r->y, e->y, ROWS * OUT, "y");
    assert_near(r->type, r->type, r->dx, e->dx, ROWS * IN, "dx");
    assert_near(r->type, PL_REAL_F32, r->dw1, e->dw1, HIDDEN * IN, "dw1");
    assert_near(r->type, PL_REAL_F32, r->dw2, e->dw2, OUT * HIDDEN, "dw2");
    assert_near(r->type, PL_REAL_F32, r->db1, e->db1, HIDDEN, "db1");
}

static void assert_same(const results *a, const results *b)
{
    assert_memory_equal(a->y, b->y, (size_t)(ROWS * OUT * pl_real_bytes(a->type)));
    assert_memory_equal(a->dx, b->dx, (size_t)(ROWS * IN * pl_real_bytes(a->type)));
    assert_memory_equal(a->dw1, b->dw1, HIDDEN * IN * sizeof(float));
    assert_memory_equal(a->dw2, b->dw2, OUT * HIDDEN * sizeof(float));
    assert_memory_equal(a->db1, b->db1, HIDDEN * sizeof(float));
}

static void check_problem(pl_real type, int options, pl_isa isa)
{
    static const int64_t chunks[] = {ROWS, 1, 4, 7, 20, 1000};
    static expected e;
    problem p = make_problem(type, options);
    oracle(&p, &e);
    results first = run(&p, ROWS, 0, (pl_team){1, isa});
    assert_right(&first, &e);
    for (int i = 0; i < 12; i++) {
        results more = run(&p, chunks[i % 6], i >= 6, (pl_team){1 + i % 3, isa});
        assert_same(&first, &more);
    }
    guarded_check_all();
    guarded_free_all();
}

static void test_all(void **state)
{
    (void)state;
    for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++)
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
            for (int options = 0; options < 4; options++) check_problem(type, options, isa);
}

/* The hidden values of one chunk, not of the call; half of them in 16 bits. */
static void test_workspace_follows_chunk(void **state)
{
    (void)state;
    pl_team team = {2, PL_ISA_BASELINE};
    pl_feed_forward_bwd_call c = {.layer = {.rows = 4096, .in = 256, .hidden = 4096, .out = 256, .chunk_rows = 64}};
    uint64_t bytes = pl_feed_forward_bwd_workspace_bytes(&c, team);
    c.layer.rows = 64 * 1000;
    assert_true(pl_feed_forward_bwd_workspace_bytes(&c, team) == bytes && bytes < 2 * 64 * 4096 * 4 + 300000);
    c.layer.type = PL_REAL_BF16; /* whose products take 128 KiB more a thread */
    assert_true(pl_feed_forward_bwd_workspace_bytes(&c, team) < 2 * 64 * 4096 * 2 + 550000);
    c.layer.rows = 0;
    assert_true(pl_feed_forward_bwd_workspace_bytes(&c, team) == 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_workspace_follows_chunk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
