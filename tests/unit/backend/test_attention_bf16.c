/* Attention forward of bf16 at every level of this machine, random problems: sizes around every block, gaps between
 * rows, keys that no query sees and queries that see none, a cache longer than what is filled. The oracle is the
 * scalar level on the same numbers as f32, which sums in double and is itself held to a stored T×T matrix
 * (test_attention.c). A level may round P to bf16 before it meets V, so |error| ≤ 2⁻⁸·(Σ P|v| + |o|), one share for
 * P and one for the result. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "base/narrow.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

#if defined(PL_TEST_KERNELS_SANITIZED) /* the plain tree tries more */
enum { CASES = 10 };
#else
enum { CASES = 30 };
#endif
enum { Q = 0, K = 1, V = 2, INPUTS = 3 };
static uint64_t first_seed;

typedef struct dice {
    pl_philox philox;
    uint32_t rolls;
} dice;

static int64_t roll(dice *d, int64_t low, int64_t high) /* both included */
{
    uint32_t bits[4];
    pl_philox_block(&d->philox, 1, 0, d->rolls++, bits);
    return low + (int64_t)(bits[0] % (uint64_t)(high - low + 1));
}

typedef struct problem {
    pl_attention_call c; /* bf16; q, k, v, o and lse are those below */
    int64_t position, count[INPUTS], o_count;
    uint16_t *in[INPUTS], *o;
    float *lse;
} problem;

static const int64_t edges[] = {1, 4, 16, 17, 32, 33, 64, 96, 128, 196, 255, 256, 257, 288, 513};

static int64_t size(dice *d)
{
    return roll(d, 0, 1) ? roll(d, 1, 330) : edges[roll(d, 0, (int64_t)(sizeof edges / sizeof *edges) - 1)];
}

static pl_attention_strides strides_of(dice *d, int64_t tokens, int64_t columns)
{
    int64_t token = columns + roll(d, 0, 1) * roll(d, 1, 40);
    return (pl_attention_strides){tokens * token + roll(d, 0, 30), token};
}

static void fill(pl_philox *philox, uint64_t which, uint16_t *to, int64_t count)
{
    float *normal = guarded_f32(count);
    pl_philox_normal_f32(philox, 2, which, 0, (uint64_t)count, normal);
    for (int64_t i = 0; i < count; i++) to[i] = pl_bf16_of_f32(normal[i]);
}

static problem *problem_make(uint64_t seed)
{
    static problem p;
    dice d = {.philox = pl_philox_init(seed, 1)};
    pl_attention_call *c = &p.c;
    *c = (pl_attention_call){
        .batch = roll(&d, 1, 2), .heads = roll(&d, 1, 3), .type = PL_REAL_BF16, .key_type = PL_REAL_BF16};
    c->tq = size(&d), c->tk = roll(&d, 0, 1) ? c->tq : size(&d);
    c->causal = (int)roll(&d, 0, 1);
    c->head_width = roll(&d, 0, 1) ? 32 * roll(&d, 1, 4) : roll(&d, 1, 130);
    c->scale = (float)roll(&d, -2, 20) / 20 / sqrtf((float)c->head_width);
    if (c->tk > c->tq && roll(&d, 0, 1)) {
        p.position = roll(&d, 0, c->tk - c->tq);
        c->position = &p.position;
    }
    pl_attention_strides *s[] = {&c->sq, &c->sk, &c->sv};
    for (int i = 0; i < INPUTS; i++) {
        *s[i] = strides_of(&d, i == Q ? c->tq : c->tk, c->heads * c->head_width);
        p.count[i] = c->batch * s[i]->batch;
        p.in[i] = guarded_bytes((uint64_t)p.count[i] * 2, 0);
        fill(&d.philox, (uint64_t)i, p.in[i], p.count[i]);
    }
    c->so = strides_of(&d, c->tq, c->heads * c->head_width);
    p.o_count = c->batch * c->so.batch;
    p.o = guarded_bytes((uint64_t)p.o_count * 2, 0);
    p.lse = guarded_f32(c->batch * c->heads * c->tq);
    c->q = p.in[Q], c->k = p.in[K], c->v = p.in[V], c->o = p.o, c->lse = roll(&d, 0, 3) ? p.lse : NULL;
    return &p;
}

static void run(const pl_attention_call *c, pl_team team)
{
    pl_attention_exec(c, guarded_bytes(pl_attention_workspace_bytes(c, team), 0), team);
    guarded_check_all();
}

static float *widened(const uint16_t *from, int64_t count)
{
    float *to = guarded_f32(count);
    for (int64_t i = 0; i < count; i++) to[i] = pl_f32_of_bf16(from[i]);
    return to;
}

static pl_attention_call oracle_of(const problem *p, float *o, float *lse)
{
    pl_attention_call c = p->c;
    c.type = c.key_type = PL_REAL_F32, c.o = o, c.lse = lse;
    c.q = widened(p->in[Q], p->count[Q]), c.k = widened(p->in[K], p->count[K]), c.v = widened(p->in[V], p->count[V]);
    run(&c, (pl_team){1, PL_ISA_REF});
    return c;
}

/* Σ P|v| where Σ Pv is. */
static void oracle_of_sizes(const problem *p, pl_attention_call c, float *sizes)
{
    float *v = widened(p->in[V], p->count[V]);
    for (int64_t i = 0; i < p->count[V]; i++) v[i] = fabsf(v[i]);
    c.v = v, c.o = sizes, c.lse = NULL;
    run(&c, (pl_team){1, PL_ISA_REF});
}

static int is_gap(const problem *p, int64_t i)
{
    int64_t inside = i % p->c.so.batch;
    return inside >= p->c.tq * p->c.so.token || inside % p->c.so.token >= p->c.heads * p->c.head_width;
}

static void check_o(const problem *p, const uint16_t *o, const float *wanted, const float *sizes)
{
    for (int64_t i = 0; i < p->o_count; i++) {
        double got = pl_f32_of_bf16(o[i]), want = wanted[i];
        if (is_gap(p, i))
            assert_int_equal(o[i], p->o[i]);
        else if (!(fabs(got - want) <= 0x1p-8 * ((double)sizes[i] + fabs(want)) * 1.01 + 1e-5))
            fail_msg("o[%lld] is %g, %g was expected, of terms of %g", (long long)i, got, want, (double)sizes[i]);
    }
}

static void check_lse(const problem *p, const float *lse, const float *wanted)
{
    for (int64_t i = 0; i < p->c.batch * p->c.heads * p->c.tq && p->c.lse; i++)
        if (lse[i] != wanted[i] && !(fabsf(lse[i] - wanted[i]) <= 1e-5f * fmaxf(1, fabsf(wanted[i]))))
            fail_msg("lse[%lld] is %g, %g was expected", (long long)i, (double)lse[i], (double)wanted[i]);
}

/* A copy of o as it was before, run into. */
static uint16_t *result_of(const problem *p, pl_attention_call c, pl_team team)
{
    uint16_t *o = guarded_bytes((uint64_t)p->o_count * 2, 0);
    memcpy(o, p->o, (size_t)p->o_count * 2);
    c.o = o;
    run(&c, team);
    return o;
}

/* Neither the team nor the rest of the batch is to be seen. */
static void check_alone(const problem *p, const uint16_t *o, pl_isa isa)
{
    static const int threads[] = {2, 7, 64};
    for (int i = 0; i < 3; i++)
        assert_memory_equal(o, result_of(p, p->c, (pl_team){threads[i], isa}), (size_t)p->o_count * 2);
    pl_attention_call last = p->c;
    int64_t b = last.batch - 1;
    last.batch = 1;
    last.q = p->in[Q] + b * last.sq.batch, last.k = p->in[K] + b * last.sk.batch, last.v = p->in[V] + b * last.sv.batch;
    last.o = guarded_bytes((uint64_t)last.so.batch * 2, 0);
    memcpy(last.o, p->o + b * last.so.batch, (size_t)last.so.batch * 2);
    run(&last, (pl_team){1, isa});
    assert_memory_equal(o + b * last.so.batch, last.o, (size_t)last.so.batch * 2);
}

static void check_seed(uint64_t seed)
{
    print_message("repeat with: unit_backend test_attention_bf16 %llu\n", (unsigned long long)seed);
    problem *p = problem_make(seed);
    int64_t rows = p->c.batch * p->c.heads * p->c.tq;
    float *wanted = guarded_f32(p->o_count), *sizes = guarded_f32(p->o_count), *lse = guarded_f32(rows);
    oracle_of_sizes(p, oracle_of(p, wanted, lse), sizes);
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        for (int64_t i = 0; i < rows; i++) p->lse[i] = NAN;
        const uint16_t *o = result_of(p, p->c, (pl_team){1, (pl_isa)isa});
        check_o(p, o, wanted, sizes);
        check_lse(p, p->lse, lse);
        if (isa > PL_ISA_REF) check_alone(p, o, (pl_isa)isa);
    }
    guarded_free_all();
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < CASES; i++) check_seed(first_seed + i);
}

/* Where a NaN in a query or a key is to be seen, and nowhere else: [i] of 300 queries. */
static void check_nan(int which, int64_t at, int causal, pl_isa isa)
{
    enum { TOKENS = 300, WIDTH = 40 };
    pl_philox philox = pl_philox_init(first_seed, 3);
    uint16_t *in[INPUTS], *o = guarded_bytes(TOKENS * WIDTH * 2, 0), *before = guarded_bytes(TOKENS * WIDTH * 2, 0);
    float *lse = guarded_f32(TOKENS);
    for (int i = 0; i < INPUTS; i++) {
        in[i] = guarded_bytes(TOKENS * WIDTH * 2, 0);
        fill(&philox, (uint64_t)i, in[i], TOKENS * WIDTH);
    }
    pl_attention_strides s = {TOKENS * WIDTH, WIDTH};
    pl_attention_call c = {1,
                           TOKENS,
                           TOKENS,
                           1,
                           WIDTH,
                           causal,
                           0.1f,
                           in[Q],
                           in[K],
                           in[V],
                           s,
                           s,
                           s,
                           s,
                           before,
                           lse,
                           .type = PL_REAL_BF16,
                           .key_type = PL_REAL_BF16};
    run(&c, (pl_team){1, isa});
    in[which][at * WIDTH + 7] = 0x7fc1;
    c.o = o;
    run(&c, (pl_team){2, isa});
    for (int64_t i = 0; i < TOKENS; i++) {
        int spoilt = which == Q ? i == at : !causal || i >= at;
        assert_int_equal(isnan(lse[i]), spoilt);
        for (int64_t j = i * WIDTH; j < (i + 1) * WIDTH; j++)
            if (spoilt)
                assert_true(isnan(pl_f32_of_bf16(o[j])));
            else
                assert_int_equal(o[j], before[j]);
    }
    guarded_free_all();
}

static void test_nan(void **state)
{
    (void)state;
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++)
        for (int causal = 0; causal < 2; causal++)
            for (int64_t at = 3; at < 300; at += 89) {
                check_nan(Q, at, causal, (pl_isa)isa);
                check_nan(K, at, causal, (pl_isa)isa);
            }
}

/* Scores of 2⁸⁰: the softmax is a hard maximum, and each o the v of some key. */
static void check_large(pl_isa isa)
{
    enum { TOKENS = 290, WIDTH = 33 };
    pl_philox philox = pl_philox_init(first_seed, 4);
    uint16_t *in[INPUTS], *o = guarded_bytes(TOKENS * WIDTH * 2, 0);
    for (int i = 0; i < INPUTS; i++) {
        in[i] = guarded_bytes(TOKENS * WIDTH * 2, 0);
        fill(&philox, (uint64_t)i, in[i], TOKENS * WIDTH);
        for (int64_t j = 0; i != V && j < TOKENS * WIDTH; j++)
            in[i][j] = pl_bf16_of_f32(0x1p40f * pl_f32_of_bf16(in[i][j]));
    }
    pl_attention_strides s = {TOKENS * WIDTH, WIDTH};
    pl_attention_call c = {1,
                           TOKENS,
                           TOKENS,
                           1,
                           WIDTH,
                           0,
                           0.3f,
                           in[Q],
                           in[K],
                           in[V],
                           s,
                           s,
                           s,
                           s,
                           o,
                           NULL,
                           .type = PL_REAL_BF16,
                           .key_type = PL_REAL_BF16};
    run(&c, (pl_team){1, isa});
    for (int64_t i = 0; i < TOKENS; i++) {
        int found = 0;
        for (int64_t j = 0; j < TOKENS && !found; j++)
            found = memcmp(o + i * WIDTH, in[V] + j * WIDTH, WIDTH * sizeof *o) == 0;
        if (!found) fail_msg("%s: o of query %lld is the v of no key", pl_isa_name(isa), (long long)i);
    }
    guarded_free_all();
}

static void test_large(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) check_large((pl_isa)isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_nan),
                                       cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
