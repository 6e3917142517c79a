/* Rotary position embedding against the formula in double, at every level of this machine: f32, bf16 and f16, several
 * teams with equal bits, in place, sample by sample, guard zones. And what must hold of any rotation, whatever the
 * formula: norms stay, the adjoint is the inverse, <rope(x), y> = <x, adjoint(y)>, and the product of a query and a key
 * depends on their distance alone. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/tokens.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

static const pl_real types[] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};
enum { TYPES = 3, CASES = 40 };

static uint64_t seed;
static pl_philox generator;
static uint32_t drawn;

/* One of low … high. */
static int64_t draw(int64_t low, int64_t high)
{
    uint32_t bits[4];
    pl_philox_block(&generator, 0, 0, drawn++, bits);
    return low + (int64_t)(bits[0] % (uint64_t)(high - low + 1));
}

static int64_t elems_of(const pl_rope_call *c) { return c->rows * c->heads * c->head_width; }

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

/* As many numbers as the call turns. */
static void *numbers(const pl_rope_call *c, uint64_t stream)
{
    const float *from = guarded_normal(elems_of(c), seed * 8 + stream);
    void *to = guarded(c->type, elems_of(c));
    for (int64_t i = 0; i < elems_of(c); i++) pl_real_put(c->type, to, i, from[i]);
    return to;
}

static void run(pl_rope_call c, const void *x, void *y, pl_team team)
{
    c.x = x, c.y = y;
    pl_rope_exec(&c, guarded_bytes(pl_rope_workspace_bytes(&c, team), 0), team);
}

static void *turned(const pl_rope_call *c, const void *x, bool adjoint, pl_isa isa)
{
    pl_rope_call other = *c;
    void *y = guarded(c->type, elems_of(c));
    other.adjoint = adjoint;
    run(other, x, y, (pl_team){2, isa});
    return y;
}

static void fail_at(const pl_rope_call *c, pl_isa isa, const char *what, int64_t i, double got, double want)
{
    fail_msg("seed %" PRIu64 ", %s, type %d, %d rows, %d positions, %d of %d heads of %d, theta %g: %s[%d] is %.9g, "
             "expected %.9g",
             seed, pl_isa_name(isa), (int)c->type, (int)c->rows, (int)c->positions, (int)c->rotated, (int)c->heads,
             (int)c->head_width, c->theta, what, (int)i, got, want);
}

/* q' = q·cos + rot(q)·sin, rot([a, b]) = [−b, a]; what f32 may lose on the way is measured by the sizes of a and b. */
static void check_formula(const pl_rope_call *c, const void *x, const void *y, pl_isa isa)
{
    const double half_step = c->type == PL_REAL_F32 ? 0x1p-24 : c->type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11;
    const int64_t width = c->heads * c->head_width, half = c->head_width / 2;
    for (int64_t e = 0; e < elems_of(c); e++) {
        int64_t t = e / width % c->positions, i = e % c->head_width;
        double q = pl_real_get(c->type, x, e), got = pl_real_get(c->type, y, e);
        if (e % width / c->head_width >= c->rotated) {
            if (got != q) fail_at(c, isa, "a head that stays", e, got, q);
            continue;
        }
        double other = pl_real_get(c->type, x, i < half ? e + half : e - half);
        double angle = (double)t * pow(c->theta, -2 * (double)(i % half) / (double)c->head_width);
        double sine = c->adjoint ? -sin(angle) : sin(angle);
        double want = q * cos(angle) + (i < half ? -other : other) * sine;
        if (!(fabs(got - want) <=
              half_step * fabs(want) + 0x1p-23 * (fabs(q) + fabs(other)) + 0x1p-25 * (c->type != 0)))
            fail_at(c, isa, "y", e, got, want);
    }
}

static void assert_same(const pl_rope_call *c, const void *a, const void *b)
{
    assert_memory_equal(a, b, (size_t)(elems_of(c) * pl_real_bytes(c->type)));
}

/* In place, and sample by sample. */
static void check_ways(const pl_rope_call *c, const void *x, const void *y, pl_team team)
{
    void *place = memcpy(guarded(c->type, elems_of(c)), x, (size_t)(elems_of(c) * pl_real_bytes(c->type)));
    run(*c, place, place, team);
    assert_same(c, place, y);
    void *by_sample = guarded(c->type, elems_of(c));
    pl_rope_call one = *c;
    one.rows = c->positions;
    for (int64_t r = 0; r < c->rows; r += c->positions) {
        int64_t at = r * c->heads * c->head_width;
        run(one, pl_real_at(c->type, x, at), pl_real_at(c->type, by_sample, at), team);
    }
    assert_same(c, by_sample, y);
}

static double product(const pl_rope_call *c, const void *a, const void *b)
{
    double sum = 0;
    for (int64_t i = 0; i < elems_of(c); i++) sum += (double)pl_real_get(c->type, a, i) * pl_real_get(c->type, b, i);
    return sum;
}

/* Of f32: there the roundings are small. */
static void check_rotation(const pl_rope_call *c, const void *x, const void *y, pl_isa isa)
{
    const void *back = turned(c, y, !c->adjoint, isa), *z = numbers(c, 2), *z_back = turned(c, z, !c->adjoint, isa);
    for (int64_t head = 0; head < elems_of(c); head += c->head_width) {
        double before = 0, after = 0;
        for (int64_t e = head; e < head + c->head_width; e++) {
            before += pow(pl_real_get(c->type, x, e), 2), after += pow(pl_real_get(c->type, y, e), 2);
            double error = fabs((double)pl_real_get(c->type, back, e) - pl_real_get(c->type, x, e));
            if (!(error <= 4e-6))
                fail_at(c, isa, "there and back", e, pl_real_get(c->type, back, e), pl_real_get(c->type, x, e));
        }
        if (!(fabs(after - before) <= 1e-6 * before)) fail_at(c, isa, "the norm", head, after, before);
    }
    double there = product(c, y, z), and_back = product(c, x, z_back);
    if (!(fabs(there - and_back) <= 4e-7 * sqrt(product(c, x, x) * product(c, z, z))))
        fail_at(c, isa, "<rope(x), y>", 0, there, and_back);
}

static void check(const pl_rope_call *c)
{
    static const int teams[] = {1, 2, 5, 8};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        const void *x = numbers(c, 1);
        void *first = guarded(c->type, elems_of(c));
        run(*c, x, first, (pl_team){1, isa});
        check_formula(c, x, first, isa);
        if (c->type == PL_REAL_F32) check_rotation(c, x, first, isa);
        for (int t = 0; t < 4; t++) {
            void *y = guarded(c->type, elems_of(c));
            run(*c, x, y, (pl_team){teams[t], isa});
            assert_same(c, y, first);
            check_ways(c, x, first, (pl_team){teams[t], isa});
        }
        guarded_check_all();
        guarded_free_all();
    }
}

static void random_shapes(void **state)
{
    (void)state;
    static const double thetas[] = {10000, 1, 500, 1e6};
    for (int i = 0; i < CASES; i++) {
        pl_rope_call c = {.positions = draw(1, 70)};
        c.rows = c.positions * draw(1, 4), c.heads = draw(1, 5), c.rotated = draw(1, c.heads);
        c.head_width = 2 * draw(1, 40), c.theta = thetas[draw(0, 3)];
        c.adjoint = (int)draw(0, 1), c.type = types[draw(0, TYPES - 1)];
        check(&c);
    }
}

/* Sizes of models: capsules of a reasoner; fused queries, keys and values; more positions than a block of the table. */
static void sizes_of_models(void **state)
{
    (void)state;
    for (int t = 0; t < TYPES; t++) {
        check(&(pl_rope_call){48, 12, 12, 12, 64, 10000, 0, NULL, NULL, types[t]});
        check(&(pl_rope_call){130, 65, 9, 6, 32, 10000, 1, NULL, NULL, types[t]});
        check(&(pl_rope_call){3000, 3000, 1, 1, 20, 10000, 0, NULL, NULL, types[t]});
    }
}

/* One pair, theta of no account: the vector (1, 0) at position t is (cos t, sin t), whatever t is. */
static void far_positions(void **state)
{
    (void)state;
    enum { FAR = 100000 };
    static float x[2 * FAR], y[2 * FAR];
    for (int t = 0; t < FAR; t++) x[2 * t] = 1;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        run((pl_rope_call){FAR, FAR, 1, 1, 2, 10000, 0, NULL, NULL, PL_REAL_F32}, x, y, (pl_team){3, isa});
        for (int t = 0; t < FAR; t++)
            assert_true(fabs((double)y[2 * t] - cos(t)) <= 0x1p-24 && fabs((double)y[2 * t + 1] - sin(t)) <= 0x1p-24);
        guarded_check_all();
        guarded_free_all();
    }
}

/* The same query and the same key at every position. */
static void products_know_distances(void **state)
{
    (void)state;
    enum { T = 40, WIDTH = 48 };
    pl_rope_call c = {T, T, 1, 1, WIDTH, 10000, 0, NULL, NULL, PL_REAL_F32};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float *q = numbers(&c, 3), *k = numbers(&c, 4);
        for (int i = WIDTH; i < T * WIDTH; i++) q[i] = q[i % WIDTH], k[i] = k[i % WIDTH];
        const float *a = turned(&c, q, false, isa), *b = turned(&c, k, false, isa);
        double of_distance[2 * T - 1] = {0};
        for (int t = 0; t < T; t++)
            for (int u = 0; u < T; u++) {
                double sum = 0, *first = &of_distance[t - u + T - 1];
                for (int i = 0; i < WIDTH; i++) sum += (double)a[t * WIDTH + i] * b[u * WIDTH + i];
                if (t == 0 || u == 0) *first = sum;
                if (!(fabs(sum - *first) <= 5e-5)) fail_at(&c, isa, "q·k", t * T + u, sum, *first);
            }
        assert_true(fabs(of_distance[T - 1] - of_distance[T]) > 1e-6 ||
                    fabs(of_distance[T] - of_distance[T + 1]) > 1e-6);
        guarded_check_all();
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_shapes), cmocka_unit_test(sizes_of_models),
                                       cmocka_unit_test(far_positions), cmocka_unit_test(products_know_distances)};
    seed = test_seed_said(argc, argv);
    generator = pl_philox_init(seed, 17);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
