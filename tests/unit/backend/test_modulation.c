/* Gates, feature-wise affine maps and softmax pools against loops in double straight from the definition: every level
 * of this machine, f32, bf16 and f16, several teams, sample by sample, in place, outputs left out, guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/modulation.h"
#include "support/guarded.h"
#include "support/program.h"

/* How a result is made: all of these must give the same bits. */
enum { WAYS = 4, TYPES = 3 };
static const struct {
    int threads;
    bool by_sample;
    int into; /* 0: nowhere else; 1: dx over dy, y over x; 2: dx over x */
} ways[WAYS] = {{1, false, 0}, {1, true, 1}, {3, false, 2}, {3, true, 0}};
static const pl_real types[TYPES] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};

/* samples, rows of a sample, positions of a row, channels; some are large enough to be shared out */
typedef struct shape {
    int64_t b, h, w, c;
} shape;

static const shape shapes[] = {{1, 1, 1, 1},    {2, 3, 5, 3},   {3, 4, 7, 17},
                               {1, 130, 2, 33}, {2, 66, 3, 64}, {5, 1, 1, 200}};
enum { SHAPES = sizeof shapes / sizeof *shapes, ELEMS_MAX = 1 << 15 };

static int64_t elems_of(const shape *s) { return s->b * s->h * s->w * s->c; }

/* An exact array of numbers of this type, and the same numbers in double. */
typedef struct array {
    void *at;
    double number[ELEMS_MAX];
} array;

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

static void fill(array *a, pl_real type, int64_t count, uint64_t stream)
{
    const float *from = guarded_normal(count, stream);
    a->at = guarded(type, count);
    for (int64_t i = 0; i < count; i++) {
        pl_real_put(type, a->at, i, from[i]);
        a->number[i] = pl_real_get(type, a->at, i);
    }
}

static void *copy_of(pl_real type, const void *from, int64_t count)
{
    return memcpy(guarded(type, count), from, (size_t)(count * pl_real_bytes(type)));
}

/* Half a unit in the last place of the type, and what sums of `terms` numbers in f32 may lose. */
static void assert_near(pl_real type, const void *got, const double *want, int64_t count, int64_t terms,
                        const char *what)
{
    double rounding = type == PL_REAL_BF16 ? 0x1p-8 : type == PL_REAL_F16 ? 0x1p-11 : 0x1p-23;
    for (int64_t i = 0; i < count; i++) {
        double bound = rounding * fabs(want[i]) + 1e-6 + 3e-7 * (double)terms;
        if (!(fabs(pl_real_get(type, got, i) - want[i]) <= bound))
            fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, (double)pl_real_get(type, got, i), want[i]);
    }
}

/* The first result of a level stays, all later ones are the same. */
static void assert_same(void **kept, pl_real type, void *got, int64_t count)
{
    if (!*kept) *kept = got;
    assert_memory_equal(*kept, got, (size_t)(count * pl_real_bytes(type)));
}

typedef void (*trial)(const shape *, pl_real, pl_isa);

static void try_all(trial run)
{
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < SHAPES * TYPES; i++) {
            run(&shapes[i / TYPES], types[i % TYPES], isa);
            guarded_check_all();
            guarded_free_all();
        }
}

static array x, dy, other;
static double want[3][ELEMS_MAX];

/* Where dx goes. */
static void *target(pl_real type, int way, void *over_dy, void *over_x, int64_t count)
{
    return ways[way].into == 1 ? over_dy : ways[way].into == 2 ? over_x : guarded(type, count);
}

/* ---- gates ---- */

static void oracle_gate(const shape *s, int64_t gates)
{
    memset(want, 0, sizeof want);
    for (int64_t e = 0; e < elems_of(s); e++) {
        int64_t k = gates == s->c ? e : e / s->c;
        double open = 1 / (1 + exp(-other.number[k]));
        want[0][e] = x.number[e] * open;
        want[1][e] = dy.number[e] * open;
        want[2][k] += dy.number[e] * x.number[e] * open * (1 - open);
    }
}

static void run_gate(const shape *s, pl_real type, pl_isa isa, int64_t gates)
{
    int64_t n = elems_of(s), k = n / s->c * gates, parts = 0;
    void *first[3] = {NULL, NULL, NULL};
    fill(&x, type, n, 1), fill(&dy, type, n, 2), fill(&other, type, k, 3);
    oracle_gate(s, gates);
    for (int way = 0; way < WAYS; way++) {
        void *from = copy_of(type, x.at, n), *above = copy_of(type, dy.at, n), *dg = guarded(type, k);
        void *dx = target(type, way, above, from, n), *y = ways[way].into ? copy_of(type, x.at, n) : guarded(type, n);
        void *in = ways[way].into ? y : x.at;
        parts = ways[way].by_sample ? s->b : 1;
        for (int64_t b = 0; b < parts; b++) {
            int64_t at = b * n / parts, gate = b * k / parts;
            pl_gate_exec(&(pl_gate_call){n / s->c / parts, s->c, gates, pl_real_at(type, in, at),
                                         pl_real_at(type, other.at, gate), pl_real_at(type, y, at), type},
                         (pl_team){ways[way].threads, isa});
            pl_gate_bwd_call bwd = {n / s->c / parts,
                                    s->c,
                                    gates,
                                    pl_real_at(type, above, at),
                                    pl_real_at(type, from, at),
                                    pl_real_at(type, other.at, gate),
                                    NULL,
                                    pl_real_at(type, dg, gate),
                                    type};
            pl_gate_bwd_exec(&bwd, (pl_team){ways[way].threads, isa});
            bwd.dx = pl_real_at(type, dx, at);
            if (way % 2) bwd.dg = NULL;
            pl_gate_bwd_exec(&bwd, (pl_team){ways[way].threads, isa});
        }
        assert_near(type, y, want[0], n, 1, "y"), assert_near(type, dx, want[1], n, 1, "dx");
        assert_near(type, dg, want[2], k, s->c, "dg");
        assert_same(&first[0], type, y, n), assert_same(&first[1], type, dx, n), assert_same(&first[2], type, dg, k);
    }
}

static void gate_each(const shape *s, pl_real type, pl_isa isa) { run_gate(s, type, isa, s->c); }
static void gate_all(const shape *s, pl_real type, pl_isa isa) { run_gate(s, type, isa, 1); }

static void gates(void **state)
{
    (void)state;
    try_all(gate_each);
    try_all(gate_all);
}

/* ---- feature-wise affine maps ---- */

static void oracle_film(const shape *s)
{
    int64_t of_sample = s->h * s->w * s->c;
    memset(want, 0, sizeof want);
    for (int64_t e = 0; e < elems_of(s); e++) {
        int64_t both = e / of_sample * 2 * s->c, c = e % s->c;
        want[0][e] = other.number[both + c] * x.number[e] + other.number[both + s->c + c];
        want[1][e] = other.number[both + c] * dy.number[e];
        want[2][both + c] += dy.number[e] * x.number[e];
        want[2][both + s->c + c] += dy.number[e];
    }
}

static void run_film(const shape *s, pl_real type, pl_real s_type, pl_isa isa, int way, void *y, void *dx, void *ds,
                     void *from, void *above)
{
    int64_t parts = ways[way].by_sample ? s->b : 1, n = elems_of(s), k = 2 * s->b * s->c;
    pl_team team = {ways[way].threads, isa};
    for (int64_t b = 0; b < parts; b++) {
        int64_t at = b * n / parts, both = b * k / parts;
        pl_film_call call = {s->b / parts,
                             s->h * s->w,
                             s->c,
                             pl_real_at(type, ways[way].into ? y : x.at, at),
                             pl_real_at(s_type, other.at, both),
                             pl_real_at(type, y, at),
                             type,
                             s_type};
        pl_film_exec(&call, guarded_bytes(pl_film_workspace_bytes(&call, team), 0), team);
        pl_film_bwd_call bwd = {s->b / parts,
                                s->h,
                                s->w,
                                s->c,
                                pl_real_at(type, above, at),
                                pl_real_at(type, from, at),
                                call.s,
                                NULL,
                                pl_real_at(s_type, ds, both),
                                type,
                                s_type};
        pl_film_bwd_exec(&bwd, guarded_bytes(pl_film_bwd_workspace_bytes(&bwd, team), 0), team);
        bwd.dx = pl_real_at(type, dx, at);
        if (way % 2) bwd.ds = NULL;
        pl_film_bwd_exec(&bwd, guarded_bytes(pl_film_bwd_workspace_bytes(&bwd, team), 0), team);
    }
}

static void film_of(const shape *s, pl_real type, pl_isa isa, pl_real s_type)
{
    int64_t n = elems_of(s), k = 2 * s->b * s->c;
    void *first[3] = {NULL, NULL, NULL};
    fill(&x, type, n, 1), fill(&dy, type, n, 2), fill(&other, s_type, k, 3);
    oracle_film(s);
    for (int way = 0; way < WAYS; way++) {
        void *from = copy_of(type, x.at, n), *above = copy_of(type, dy.at, n), *ds = guarded(s_type, k);
        void *dx = target(type, way, above, from, n), *y = ways[way].into ? copy_of(type, x.at, n) : guarded(type, n);
        run_film(s, type, s_type, isa, way, y, dx, ds, from, above);
        assert_near(type, y, want[0], n, 1, "y"), assert_near(type, dx, want[1], n, 1, "dx");
        assert_near(s_type, ds, want[2], k, s->h * s->w, "ds");
        assert_same(&first[0], type, y, n), assert_same(&first[1], type, dx, n), assert_same(&first[2], s_type, ds, k);
    }
}

static void film_of_own_type(const shape *s, pl_real type, pl_isa isa) { film_of(s, type, isa, type); }
static void film_of_f32(const shape *s, pl_real type, pl_isa isa) { film_of(s, type, isa, PL_REAL_F32); }

static void feature_wise_affine_maps(void **state)
{
    (void)state;
    try_all(film_of_own_type);
    try_all(film_of_f32);
}

/* ---- softmax pools: w times, h·c channels ---- */

static void oracle_pool(int64_t samples, int64_t times, int64_t channels)
{
    memset(want, 0, sizeof want);
    for (int64_t b = 0; b < samples; b++) {
        const double *e = other.number + b * times;
        double sum = 0, mean = 0;
        for (int64_t t = 0; t < times; t++) sum += exp(e[t]);
        for (int64_t i = 0; i < times * channels; i++) {
            int64_t at = b * times * channels + i, c = b * channels + i % channels;
            double share = exp(e[i / channels]) / sum;
            want[0][c] += share * x.number[at];
            want[1][at] = share * dy.number[c];
            want[2][b * times + i / channels] += share * dy.number[c] * x.number[at];
            mean += share * dy.number[c] * x.number[at];
        }
        for (int64_t t = 0; t < times; t++) want[2][b * times + t] -= exp(e[t]) / sum * mean;
    }
}

static void pool_of(const shape *s, pl_real type, pl_isa isa)
{
    int64_t n = elems_of(s), times = s->w, channels = s->h * s->c, k = s->b * times, m = s->b * channels;
    void *first[3] = {NULL, NULL, NULL};
    fill(&x, type, n, 1), fill(&dy, type, m, 2), fill(&other, type, k, 3);
    oracle_pool(s->b, times, channels);
    for (int way = 0; way < WAYS; way++) {
        pl_team team = {ways[way].threads, isa};
        void *from = copy_of(type, x.at, n), *de = guarded(type, k), *y = guarded(type, m);
        void *dx = ways[way].into ? from : guarded(type, n);
        int64_t parts = ways[way].by_sample ? s->b : 1;
        for (int64_t b = 0; b < parts; b++) {
            pl_softmax_pool_call call = {s->b / parts,
                                         times,
                                         channels,
                                         pl_real_at(type, x.at, b * n / parts),
                                         pl_real_at(type, other.at, b * k / parts),
                                         pl_real_at(type, y, b * m / parts),
                                         type};
            pl_softmax_pool_exec(&call, guarded_bytes(pl_softmax_pool_workspace_bytes(&call, team), 0), team);
            pl_softmax_pool_bwd_call bwd = {s->b / parts,
                                            times,
                                            channels,
                                            pl_real_at(type, dy.at, b * m / parts),
                                            pl_real_at(type, from, b * n / parts),
                                            call.e,
                                            NULL,
                                            pl_real_at(type, de, b * k / parts),
                                            type};
            pl_softmax_pool_bwd_exec(&bwd, guarded_bytes(pl_softmax_pool_bwd_workspace_bytes(&bwd, team), 0), team);
            bwd.dx = pl_real_at(type, dx, b * n / parts);
            if (way % 2) bwd.de = NULL;
            pl_softmax_pool_bwd_exec(&bwd, guarded_bytes(pl_softmax_pool_bwd_workspace_bytes(&bwd, team), 0), team);
        }
        assert_near(type, y, want[0], m, times, "y"), assert_near(type, dx, want[1], n, 1, "dx");
        assert_near(type, de, want[2], k, channels, "de");
        assert_same(&first[0], type, y, m), assert_same(&first[1], type, dx, n), assert_same(&first[2], type, de, k);
    }
}

static void softmax_pools(void **state)
{
    (void)state;
    try_all(pool_of);
}

/* Scores of any size; equal times have equal shares and scales 1 with shifts 0 change nothing; a gate is
 * shut or open at its ends, and a blend is the one or the other. */
static void at_the_edges(void **state)
{
    (void)state;
    const float scores[3] = {3e38f, -3e38f, 3e38f}, values[3] = {1, 5, 2}, equal[3] = {-7, -7, -7};
    const float ends[3] = {-INFINITY, 0, INFINITY}, identity[6] = {1, 1, 1, 0, 0, 0};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float share[3], y[3];
        pl_team team = {1, isa};
        pl_softmax_pool_exec(&(pl_softmax_pool_call){1, 3, 1, values, scores, y, PL_REAL_F32}, share, team);
        assert_true(fabsf(y[0] - 1.5f) < 1e-6f);
        pl_softmax_pool_exec(&(pl_softmax_pool_call){1, 3, 1, values, equal, y, PL_REAL_F32}, share, team);
        assert_true(fabsf(y[0] - 8.0f / 3) < 1e-6f);
        pl_gate_exec(&(pl_gate_call){3, 1, 1, values, ends, y, PL_REAL_F32}, team);
        assert_true(y[0] == 0 && fabsf(y[1] - 2.5f) < 1e-6f && y[2] == 2);
        float room[16];
        pl_film_exec(&(pl_film_call){1, 1, 3, values, identity, y, PL_REAL_F32, PL_REAL_F32}, room, team);
        assert_memory_equal(y, values, sizeof y);
        const float others[3] = {-3, 1e30f, 7}, means[3] = {-3, 5e29f, 2};
        pl_blend_exec(&(pl_blend_call){3, 1, 1, values, others, ends, y, share, PL_REAL_F32}, team);
        assert_memory_equal(y, means, sizeof y);
        assert_true(share[0] == 0 && share[1] == 0.5f && share[2] == 1);
        for (int z = -120; z <= 120; z++) {
            pl_blend_exec(&(pl_blend_call){1, 1, 3, values, values, &(float){(float)z}, y, NULL, PL_REAL_F32}, team);
            assert_memory_equal(y, values, sizeof y);
        }
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gates), cmocka_unit_test(feature_wise_affine_maps),
                                       cmocka_unit_test(softmax_pools), cmocka_unit_test(at_the_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
