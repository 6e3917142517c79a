/* Gated feed-forward layers in chunks against a double-precision oracle of the formulas, which rounds both factors,
 * their product and the gradients where 16 bits are stored; every type and level of this machine, optional arguments,
 * aliases, chunks of any size and several teams (whose bits must be equal), guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"
#include "support/program.h"

typedef struct sizes {
    int64_t rows, in, hidden, out;
} sizes;

typedef struct problem {
    sizes s;
    pl_real type;
    pl_activation act;
    int has_rest, dots; /* rest: residual, partial */
    void *x, *w1, *w2, *dy, *residual, *partial;
    float *dw1, *dw2;
} problem;

static void *numbers(pl_real type, int64_t count, uint64_t stream, float scale)
{
    const float *from = guarded_normal(count, stream);
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, scale * from[i]);
    return to;
}

static void *copy(pl_real type, const void *from, int64_t count)
{
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    return memcpy(to, from, (size_t)(count * pl_real_bytes(type)));
}

static problem make_problem(sizes s, pl_real type, pl_activation act, int has_rest, int dots)
{
    problem p = {.s = s, .type = type, .act = act, .has_rest = has_rest, .dots = dots};
    float in = 1 / sqrtf((float)s.in), hidden = 1 / sqrtf((float)s.hidden);
    p.x = numbers(type, s.rows * s.in, 1, 1), p.dy = numbers(type, s.rows * s.out, 2, 1);
    p.residual = numbers(type, s.rows * s.out, 3, 1), p.partial = numbers(type, s.rows * s.in, 4, 1);
    p.w1 = numbers(type, 2 * s.hidden * s.in, 5, in), p.w2 = numbers(type, s.out * s.hidden, 6, hidden);
    p.dw1 = guarded_normal(2 * s.hidden * s.in, 7), p.dw2 = guarded_normal(s.out * s.hidden, 8);
    return p;
}

static pl_feed_forward_layer layer_of(const problem *p, const void *x, int64_t chunk_rows)
{
    return (pl_feed_forward_layer){.gated = 1,
                                   .rows = p->s.rows,
                                   .in = p->s.in,
                                   .hidden = p->s.hidden,
                                   .out = p->s.out,
                                   .chunk_rows = chunk_rows,
                                   .dots = p->dots,
                                   .act = p->act,
                                   .x = x,
                                   .w1 = p->w1,
                                   .w2 = p->w2,
                                   .type = p->type};
}

typedef struct results {
    void *y, *dx;
    float *dw1, *dw2;
} results;

/* Into 1: y over the residual, dx over dy; 2: y over x, dx over x; where these have that shape. */
static results run(const problem *p, int64_t chunk_rows, int into, pl_team team)
{
    const sizes *s = &p->s;
    int square = s->in == s->out;
    void *x = copy(p->type, p->x, s->rows * s->in), *residual = copy(p->type, p->residual, s->rows * s->out);
    results r = {.y = numbers(p->type, s->rows * s->out, 9, 1), .dx = numbers(p->type, s->rows * s->in, 9, 1)};
    if (into == 1) r.y = residual;
    if (into == 2 && square) r.y = x;
    pl_feed_forward_call forward = {.layer = layer_of(p, x, chunk_rows), .y = r.y};
    if (p->has_rest) forward.residual = residual;
    pl_feed_forward_exec(&forward, guarded_bytes(pl_feed_forward_workspace_bytes(&forward, team), 0), team);
    void *dy = copy(p->type, p->dy, s->rows * s->out), *again = copy(p->type, p->x, s->rows * s->in);
    if (into == 1 && square) r.dx = dy;
    if (into == 2) r.dx = again;
    r.dw1 = guarded_copy(p->dw1, 2 * s->hidden * s->in), r.dw2 = guarded_copy(p->dw2, s->out * s->hidden);
    pl_feed_forward_bwd_call c = {.layer = layer_of(p, again, chunk_rows), .dy = dy, .dx = r.dx};
    c.dw1 = r.dw1, c.dw2 = r.dw2;
    if (p->has_rest) c.partial = p->partial;
    pl_feed_forward_bwd_exec(&c, guarded_bytes(pl_feed_forward_bwd_workspace_bytes(&c, team), 0), team);
    return r;
}

/* ---- the oracle ---- */

typedef struct expected {
    double *y, *dx, *dw1, *dw2;
} expected;

static double activated(pl_activation act, double u)
{
    if (act == PL_ACT_QUICK_GELU) return u / (1 + exp(-1.702 * u));
    return act == PL_ACT_SILU ? u / (1 + exp(-u)) : u * 0.5 * (1 + erf(u / sqrt(2)));
}
static double slope(pl_activation act, double u)
{
    double s = 1 / (1 + exp(-u)), quick = 1 / (1 + exp(-1.702 * u));
    if (act == PL_ACT_QUICK_GELU) return quick * (1 + 1.702 * u * (1 - quick));
    if (act == PL_ACT_SILU) return s * (1 + u * (1 - s));
    return 0.5 * (1 + erf(u / sqrt(2))) + u * exp(-u * u / 2) / sqrt(2 * acos(-1));
}

static double get(const problem *p, const void *from, int64_t i) { return pl_real_get(p->type, from, i); }

static double rounded(pl_real type, double x)
{
    float kept = 0;
    if (type == PL_REAL_F32) return x;
    pl_real_put(type, &kept, 0, (float)x);
    return pl_real_get(type, &kept, 0);
}

static double *widened(pl_real type, const void *from, int64_t count)
{
    double *to = calloc((size_t)count, sizeof *to);
    assert_non_null(to);
    for (int64_t i = 0; i < count && from; i++) to[i] = pl_real_get(type, from, i);
    return to;
}

static double factor_of(const problem *p, int64_t i, int64_t j)
{
    double u = 0;
    for (int64_t k = 0; k < p->s.in; k++) u += get(p, p->x, i * p->s.in + k) * get(p, p->w1, j * p->s.in + k);
    return rounded(p->type, u);
}

static void pass_on(const problem *p, expected *e, double gradient, int64_t i, int64_t j)
{
    for (int64_t k = 0; k < p->s.in; k++) {
        e->dx[i * p->s.in + k] += gradient * get(p, p->w1, j * p->s.in + k);
        e->dw1[j * p->s.in + k] += gradient * get(p, p->x, i * p->s.in + k);
    }
}

static void add_hidden(const problem *p, expected *e, int64_t i, int64_t j)
{
    double gate = factor_of(p, i, j), up = factor_of(p, i, p->s.hidden + j), dh = 0;
    double h = rounded(p->type, activated(p->act, gate) * up);
    for (int64_t n = 0; n < p->s.out; n++) {
        e->y[i * p->s.out + n] += h * get(p, p->w2, n * p->s.hidden + j);
        e->dw2[n * p->s.hidden + j] += get(p, p->dy, i * p->s.out + n) * h;
        dh += get(p, p->dy, i * p->s.out + n) * get(p, p->w2, n * p->s.hidden + j);
    }
    dh = rounded(p->type, dh);
    pass_on(p, e, rounded(p->type, dh * up * slope(p->act, gate)), i, j);
    pass_on(p, e, rounded(p->type, dh * activated(p->act, gate)), i, p->s.hidden + j);
}

static expected oracle(const problem *p)
{
    const sizes *s = &p->s;
    expected e = {widened(p->type, p->has_rest ? p->residual : NULL, s->rows * s->out),
                  widened(p->type, p->has_rest ? p->partial : NULL, s->rows * s->in),
                  widened(PL_REAL_F32, p->dw1, 2 * s->hidden * s->in),
                  widened(PL_REAL_F32, p->dw2, s->out * s->hidden)};
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t j = 0; j < s->hidden; j++) add_hidden(p, &e, i, j);
    return e;
}

/* ---- tests ---- */

/* A few steps of the type: what is rounded twice, and a number that is nearly a tie. */
static double bound_of(pl_real type) { return type == PL_REAL_F32 ? 2e-5 : type == PL_REAL_BF16 ? 0x1p-7 : 0x1p-10; }

static void assert_near(pl_real layer, pl_real type, const void *got, const double *want, int64_t count,
                        const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(pl_real_get(type, got, i) - want[i]) <= bound_of(layer) * (4 + fabs(want[i]))))
            fail_msg("type %d: %s[%lld] is %.9g, expected %.9g", (int)layer, what, (long long)i,
                     (double)pl_real_get(type, got, i), want[i]);
}

static void assert_right(const problem *p, const results *r, const expected *e)
{
    const sizes *s = &p->s;
    assert_near(p->type, p->type, r->y, e->y, s->rows * s->out, "y");
    assert_near(p->type, p->type, r->dx, e->dx, s->rows * s->in, "dx");
    assert_near(p->type, PL_REAL_F32, r->dw1, e->dw1, 2 * s->hidden * s->in, "dw1");
    assert_near(p->type, PL_REAL_F32, r->dw2, e->dw2, s->out * s->hidden, "dw2");
}

static void assert_same(const problem *p, const results *a, const results *b)
{
    const sizes *s = &p->s;
    assert_memory_equal(a->y, b->y, (size_t)(s->rows * s->out * pl_real_bytes(p->type)));
    assert_memory_equal(a->dx, b->dx, (size_t)(s->rows * s->in * pl_real_bytes(p->type)));
    assert_memory_equal(a->dw1, b->dw1, (size_t)(2 * s->hidden * s->in) * sizeof(float));
    assert_memory_equal(a->dw2, b->dw2, (size_t)(s->out * s->hidden) * sizeof(float));
}

static void check(sizes s, pl_real type, pl_activation act, int has_rest, int dots, pl_isa first_isa, int count)
{
    const int64_t chunks[] = {s.rows, 1, 4, 7, s.rows - 1, 1000};
    problem p = make_problem(s, type, act, has_rest, dots);
    expected e = oracle(&p);
    for (pl_isa isa = first_isa; isa <= pl_isa_of_machine(); isa++) {
        guarded_free_all();
        p = make_problem(s, type, act, has_rest, dots); /* the same numbers */
        results first = run(&p, s.rows, 0, (pl_team){1, isa});
        assert_right(&p, &first, &e);
        for (int i = 0; i < count; i++) {
            results more = run(&p, chunks[i % 6], i % 3, (pl_team){1 + i % 3, isa});
            assert_same(&p, &first, &more);
        }
        guarded_check_all();
    }
    free(e.y), free(e.dx), free(e.dw1), free(e.dw2);
    guarded_free_all();
}

static void test_all(void **state)
{
    (void)state;
    const sizes square = {21, 11, 37, 11}, other = {21, 12, 32, 9}, one = {2, 1, 1, 1};
    for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
        check(square, type, PL_ACT_SILU, 1, 0, PL_ISA_REF, 7);
        check(square, type, PL_ACT_GELU, 0, 0, PL_ISA_REF, 7);
        check(other, type, PL_ACT_SILU, 0, 1, PL_ISA_REF, 7);
        check(other, type, PL_ACT_GELU, 1, 1, PL_ISA_REF, 7);
        check(other, type, PL_ACT_QUICK_GELU, 1, 0, PL_ISA_REF, 7);
        check(one, type, PL_ACT_SILU, 1, 0, PL_ISA_REF, 3);
    }
}

/* The sum of an element takes several blocks; there are rows and columns for all threads; rows are 4 or 2 KiB long;
 * wide tiles have a pair of vectors too few at the end (48, 80), one and two blocks of k. */
static void test_large(void **state)
{
    (void)state;
    const sizes deep = {40, 1601, 70, 50}, wide = {100, 24, 300, 40}, crowded = {30, 24, 1024, 24},
                long_block = {30, 701, 40, 30}, odd_pairs = {29, 96, 48, 48}, blocks = {31, 784, 80, 96};
    for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
        check(deep, type, PL_ACT_SILU, 1, 0, PL_ISA_BASELINE, 3);
        check(wide, type, PL_ACT_SILU, 1, 0, PL_ISA_BASELINE, 3);
        check(crowded, type, PL_ACT_SILU, 1, 0, PL_ISA_BASELINE, 3);
        check(long_block, type, PL_ACT_SILU, 1, 0, PL_ISA_BASELINE, 3);
        check(odd_pairs, type, PL_ACT_GELU, 1, 0, PL_ISA_BASELINE, 3);
        check(blocks, type, PL_ACT_SILU, 1, 0, PL_ISA_BASELINE, 3);
    }
}

/* One factor's worth of a chunk, not of the call and not of both factors; half as much in 16 bits. */
static void test_workspace_follows_chunk(void **state)
{
    (void)state;
    pl_team team = {2, PL_ISA_BASELINE};
    pl_feed_forward_call c = {
        .layer = {.gated = 1, .rows = 4096, .in = 256, .hidden = 4096, .out = 256, .chunk_rows = 64}};
    uint64_t bytes = pl_feed_forward_workspace_bytes(&c, team);
    c.layer.rows = 64 * 1000;
    assert_true(pl_feed_forward_workspace_bytes(&c, team) == bytes && bytes < 64 * 4096 * 4 + 300000);
    pl_feed_forward_bwd_call b = {.layer = c.layer};
    assert_true(pl_feed_forward_bwd_workspace_bytes(&b, team) < 3 * 64 * 4096 * 4 + 300000);
    c.layer.type = PL_REAL_BF16; /* whose products take 128 KiB more a thread */
    assert_true(pl_feed_forward_workspace_bytes(&c, team) < 64 * 4096 * 2 + 550000);
    c.layer.rows = b.layer.rows = 0;
    assert_true(pl_feed_forward_workspace_bytes(&c, team) == 0 && pl_feed_forward_bwd_workspace_bytes(&b, team) == 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all), cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_workspace_follows_chunk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
