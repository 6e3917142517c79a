/* Blends of two values by a gate, and their gradients, on random shapes: at each level of this machine, f32, bf16 and
 * f16, against the formula in double; then with other teams, gate by gate, in place and with outputs left out: the same
 * bits. What is the same in both values, and what stands behind a gate that is open or shut, comes through as it is.
 * A failure prints the seed of its case: `property_backend test_blend SEED` begins with it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/modulation.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 40, RUNS = 5 };

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

typedef struct problem {
    uint64_t seed;
    int64_t gates, shared, width;
    pl_real type;
    void *a, *b, *dy, *z;
} problem;

static int64_t elems_of(const problem *p) { return p->gates * p->shared * p->width; }
static uint64_t bytes_of(const problem *p, int64_t count) { return (uint64_t)(count * pl_real_bytes(p->type)); }
static void *room(const problem *p, int64_t count) { return guarded_bytes(bytes_of(p, count), 0); }

static void *copy_of(const problem *p, const void *from, int64_t count)
{
    return memcpy(room(p, count), from, bytes_of(p, count));
}

static double at(const problem *p, const void *x, int64_t i) { return pl_real_get(p->type, x, i); }

/* A third of the places are the same in both, a tenth of the gates are open or shut. */
static problem problem_of(uint64_t seed)
{
    static const float ends[] = {-200, 200, -1e4f, 1e4f};
    state = seed;
    problem p = {.seed = seed, .type = (pl_real[]){PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16}[next() % 3]};
    p.gates = between(1, 30), p.shared = chance(50) ? 1 : between(1, 20), p.width = between(1, 200);
    p.a = room(&p, elems_of(&p)), p.b = room(&p, elems_of(&p)), p.dy = room(&p, elems_of(&p));
    p.z = room(&p, p.gates);
    for (int64_t i = 0; i < elems_of(&p); i++) {
        float a = uniform(4);
        pl_real_put(p.type, p.a, i, a);
        pl_real_put(p.type, p.b, i, chance(33) ? a : uniform(4));
        pl_real_put(p.type, p.dy, i, uniform(2));
    }
    for (int64_t k = 0; k < p.gates; k++) pl_real_put(p.type, p.z, k, chance(10) ? ends[next() % 4] : uniform(9));
    return p;
}

typedef struct results {
    void *y, *da, *db, *dz; /* NULL: not wanted */
    float *g;
} results;

/* Calls for `gates` gates each. */
static void forward(const problem *p, const void *a, const void *b, const results *r, int64_t gates, pl_team team)
{
    for (int64_t k = 0; k < p->gates; k += gates) {
        int64_t from = k * p->shared * p->width;
        pl_blend_call c = {.rows = gates * p->shared,
                           .shared = p->shared,
                           .width = p->width,
                           .a = pl_real_at(p->type, a, from),
                           .b = pl_real_at(p->type, b, from),
                           .z = pl_real_at(p->type, p->z, k),
                           .y = pl_real_at(p->type, r->y, from),
                           .g = r->g ? r->g + k : NULL,
                           .type = p->type};
        pl_blend_exec(&c, team);
    }
}

static void *at_or_null(const problem *p, void *x, int64_t i) { return x ? pl_real_at(p->type, x, i) : NULL; }

static void backward(const problem *of, const results *r, int64_t gates, pl_team team)
{
    for (int64_t k = 0; k < of->gates; k += gates) {
        int64_t from = k * of->shared * of->width;
        pl_blend_bwd_call c = {.rows = gates * of->shared,
                               .shared = of->shared,
                               .width = of->width,
                               .dy = pl_real_at(of->type, of->dy, from),
                               .a = pl_real_at(of->type, of->a, from),
                               .b = pl_real_at(of->type, of->b, from),
                               .z = pl_real_at(of->type, of->z, k),
                               .da = at_or_null(of, r->da, from),
                               .db = at_or_null(of, r->db, from),
                               .dz = at_or_null(of, r->dz, k),
                               .type = of->type};
        pl_blend_bwd_exec(&c, team);
    }
}

/* Plainly the first time, in a way that is drawn from then on. */
static results run(const problem *p, pl_team team, bool plainly)
{
    int64_t n = elems_of(p), gates = !plainly && chance(40) ? 1 : p->gates;
    unsigned wanted = plainly ? 7 : (unsigned)between(1, 7);
    bool in_place = !plainly && chance(50);
    void *a = copy_of(p, p->a, n), *b = copy_of(p, p->b, n);
    results r = {.y = !in_place ? room(p, n) : chance(50) ? a : b};
    r.g = plainly || chance(50) ? guarded_f32(p->gates) : NULL;
    forward(p, a, b, &r, gates, team);
    problem own = *p;
    own.a = copy_of(p, p->a, n), own.b = copy_of(p, p->b, n), own.dy = copy_of(p, p->dy, n);
    own.z = copy_of(p, p->z, p->gates);
    if (wanted & 1) r.da = !in_place ? room(p, n) : chance(50) ? own.a : own.dy;
    if (wanted & 2) r.db = !in_place ? room(p, n) : !r.da && chance(50) ? own.dy : own.b;
    if (wanted & 4) r.dz = in_place ? own.z : room(p, p->gates);
    backward(&own, &r, gates, team);
    return r;
}

/* One rounding to the type, and what numbers in f32 may lose. */
static void expect(const problem *p, const void *got, int64_t i, double want, double lost, const char *what)
{
    double step = p->type == PL_REAL_F32 ? 0x1p-23 : p->type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11;
    if (fabs(at(p, got, i) - want) <= step * fabs(want) + lost + 0x1p-24) return;
    fail_msg("seed %llu: %s[%lld] is %.9g, expected %.9g", (unsigned long long)p->seed, what, (long long)i,
             at(p, got, i), want);
}

static void expect_exactly(const problem *p, const results *r, int64_t i, const void *from)
{
    if (at(p, r->y, i) != at(p, from, i))
        fail_msg("seed %llu: y[%lld] is not exactly what it is made of", (unsigned long long)p->seed, (long long)i);
}

static void check(const problem *p, const results *r)
{
    int64_t own = p->shared * p->width;
    for (int64_t k = 0; k < p->gates; k++) {
        double z = at(p, p->z, k), open = 1 / (1 + exp(-z)), sum = 0, size = 0;
        if (!(fabs(r->g[k] - open) <= 3e-7))
            fail_msg("seed %llu: gate %lld", (unsigned long long)p->seed, (long long)k);
        for (int64_t i = k * own; i < (k + 1) * own; i++) {
            double a = at(p, p->a, i), b = at(p, p->b, i), dy = at(p, p->dy, i);
            sum += dy * (a - b), size += fabs(dy) * (fabs(a) + fabs(b));
            expect(p, r->y, i, open * a + (1 - open) * b, 1e-6 * (fabs(a) + fabs(b)), "y");
            expect(p, r->da, i, open * dy, 1e-6 * fabs(dy), "da");
            expect(p, r->db, i, (1 - open) * dy, 1e-6 * fabs(dy), "db");
            if (a == b || z > 100) expect_exactly(p, r, i, p->a);
            if (z < -100) expect_exactly(p, r, i, p->b);
        }
        expect(p, r->dz, k, open * (1 - open) * sum, (2e-6 + 6e-8 * (double)own) * size, "dz");
    }
}

static void same(const problem *p, const void *first, const void *got, uint64_t bytes, const char *what)
{
    if (got && memcmp(first, got, bytes) != 0)
        fail_msg("seed %llu: other bits of %s", (unsigned long long)p->seed, what);
}

static void one_level(uint64_t seed, pl_isa isa)
{
    problem p = problem_of(seed);
    results first = run(&p, (pl_team){1, isa}, true);
    check(&p, &first);
    for (int i = 0; i < RUNS; i++) {
        results r = run(&p, (pl_team){(int)between(1, 5), isa}, false);
        same(&p, first.y, r.y, bytes_of(&p, elems_of(&p)), "y");
        same(&p, first.g, r.g, (uint64_t)p.gates * sizeof *r.g, "g");
        same(&p, first.da, r.da, bytes_of(&p, elems_of(&p)), "da");
        same(&p, first.db, r.db, bytes_of(&p, elems_of(&p)), "db");
        same(&p, first.dz, r.dz, bytes_of(&p, p.gates), "dz");
    }
    guarded_check_all();
    guarded_free_all();
}

static void blends_are_their_formula(void **unused)
{
    (void)unused;
    for (uint64_t i = 0; i < CASES; i++)
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) one_level(first_seed + i, isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(blends_are_their_formula)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
