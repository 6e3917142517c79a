/* Attention with sigmoids against loops in double straight from the definition: every level of this machine, f32, bf16
 * and f16, several teams, all samples together and one by one, outputs left out, guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/sigmoid_attention.h"
#include "support/guarded.h"
#include "support/program.h"

enum { SHAPES = 7, ELEMS_MAX = 1 << 16, INPUTS = 5, RESULTS = 5, TEAMS = 3 };

typedef struct shape {
    int64_t samples, tokens, width;
} shape;

static const shape shapes[SHAPES] = {
    {1, 1, 1},   {2, 3, 5},    {3, 17, 16}, {1, 65, 40},
    {2, 33, 96}, {2, 128, 40}, {1, 97, 352} /* large enough for threads to share them */};
static const int teams[TEAMS] = {2, 3, 5};
static const char *const names[RESULTS] = {"o", "dq", "dk", "dv", "du"};

static double number[INPUTS][ELEMS_MAX], want[RESULTS][ELEMS_MAX];
enum { Q, K, V, U, D_O };

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

static void *fill(pl_real type, int64_t count, int input, float times)
{
    const float *from = guarded_normal(count, (uint64_t)input + 1);
    void *at = guarded(type, count);
    for (int64_t i = 0; i < count; i++) {
        pl_real_put(type, at, i, times * from[i]);
        number[input][i] = pl_real_get(type, at, i);
    }
    return at;
}

static void oracle(const shape *s, double scale)
{
    const int64_t t = s->tokens, d = s->width;
    memset(want, 0, sizeof want);
    for (int64_t pair = 0; pair < s->samples * t * t; pair++) {
        const int64_t i = pair / t * d, j = (pair / t / t * t + pair % t) * d;
        double score = 0, da = 0;
        for (int64_t c = 0; c < d; c++) {
            score += number[Q][i + c] * number[K][j + c];
            da += number[D_O][i + c] * number[V][j + c];
        }
        const double a = 1 / (1 + exp(-scale * score)), ds = da * a * (1 - a) * scale;
        for (int64_t c = 0; c < d; c++) {
            want[0][i + c] += a * number[V][j + c] + number[U][j + c];
            want[1][i + c] += ds * number[K][j + c];
            want[2][j + c] += ds * number[Q][i + c];
            want[3][j + c] += a * number[D_O][i + c];
            want[4][j + c] += number[D_O][i + c];
        }
    }
}

/* What the type rounds, and what sums over tokens and width in f32 may lose. */
static void assert_near(pl_real type, const void *got, int result, int64_t count, const shape *s)
{
    const double rounding = type == PL_REAL_BF16 ? 0x1p-8 : type == PL_REAL_F16 ? 0x1p-11 : 0x1p-23;
    const double terms = (double)(s->tokens + s->width) * sqrt((double)s->tokens);
    for (int64_t i = 0; i < count; i++) {
        const double value = pl_real_get(type, got, i), wanted = want[result][i];
        if (!(fabs(value - wanted) <= rounding * fabs(wanted) + 1e-6 * terms))
            fail_msg("%s[%lld] is %.9g, expected %.9g", names[result], (long long)i, value, wanted);
    }
}

/* Samples [first, first + samples); `without`: gradients that are not wanted, a bit each. A workspace that is NULL is
 * asked for; what an earlier pass left there must not matter. */
static void run(const shape *s, pl_real type, pl_team team, void *const in[INPUTS], void *const out[RESULTS],
                int64_t first, int64_t samples, int without, void *workspace[2])
{
    const int64_t at = first * s->tokens * s->width;
    const float scale = 1 / sqrtf((float)s->width);
    void *to[RESULTS];
    for (int i = 0; i < RESULTS; i++) to[i] = without >> i & 1 ? NULL : pl_real_at(type, out[i], at);
    pl_sigmoid_attention_call call = {.samples = samples,
                                      .tokens = s->tokens,
                                      .width = s->width,
                                      .scale = scale,
                                      .type = type,
                                      .q = pl_real_at(type, in[Q], at),
                                      .k = pl_real_at(type, in[K], at),
                                      .v = pl_real_at(type, in[V], at),
                                      .u = pl_real_at(type, in[U], at),
                                      .o = to[0]};
    const uint64_t bytes = pl_sigmoid_attention_workspace_bytes(&call, team);
    if (!workspace[0]) workspace[0] = guarded_bytes(bytes, 0);
    memset(workspace[0], 0xff, bytes);
    pl_sigmoid_attention_exec(&call, workspace[0], team);
    pl_sigmoid_attention_bwd_call bwd = {.samples = samples,
                                         .tokens = s->tokens,
                                         .width = s->width,
                                         .scale = scale,
                                         .type = type,
                                         .d_o = pl_real_at(type, in[D_O], at),
                                         .q = call.q,
                                         .k = call.k,
                                         .v = call.v,
                                         .dq = to[1],
                                         .dk = to[2],
                                         .dv = to[3],
                                         .du = to[4]};
    const uint64_t bwd_bytes = pl_sigmoid_attention_bwd_workspace_bytes(&bwd, team);
    if (!workspace[1]) workspace[1] = guarded_bytes(bwd_bytes, 0);
    memset(workspace[1], 0xff, bwd_bytes);
    pl_sigmoid_attention_bwd_exec(&bwd, workspace[1], team);
}

/* Those that are wanted are the same bits, the others are not touched. */
static void assert_same(void *const whole[RESULTS], void *const parts[RESULTS], int64_t bytes, int without)
{
    for (int i = 0; i < RESULTS; i++) {
        if (!(without >> i & 1)) {
            assert_memory_equal(whole[i], parts[i], (size_t)bytes);
            continue;
        }
        for (int64_t b = 0; b < bytes; b++) assert_int_equal(((const unsigned char *)parts[i])[b], 0xff);
    }
}

static void check(const shape *s, pl_real type, pl_isa isa, float times)
{
    const int64_t count = s->samples * s->tokens * s->width, bytes = count * pl_real_bytes(type);
    const bool large = count > 8192;
    void *in[INPUTS], *whole[RESULTS], *parts[RESULTS], *of_whole[2] = {NULL, NULL};
    for (int i = 0; i < INPUTS; i++) in[i] = fill(type, count, i, i == Q ? times : 1);
    oracle(s, 1 / sqrt((double)s->width));
    for (int i = 0; i < RESULTS; i++) whole[i] = guarded(type, count), parts[i] = guarded(type, count);
    run(s, type, (pl_team){1, isa}, in, whole, 0, s->samples, 0, of_whole);
    for (int i = 0; i < RESULTS; i++) assert_near(type, whole[i], i, count, s);
    for (int t = 0; t < TEAMS; t++) {
        void *of_parts[2] = {NULL, NULL};
        for (int without = 0; without < 1 << RESULTS; without += large ? 10 : 2) { /* o is always wanted */
            for (int i = 0; i < RESULTS; i++) memset(parts[i], 0xff, (size_t)bytes);
            for (int64_t b = 0; b < s->samples; b++)
                run(s, type, (pl_team){teams[t], isa}, in, parts, b, 1, without, of_parts);
            assert_same(whole, parts, bytes, without);
        }
    }
    guarded_check_all();
    guarded_free_all();
}

static void all_shapes(void **state)
{
    static const pl_real types[] = {PL_REAL_F32, PL_REAL_BF16, PL_REAL_F16};
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int t = 0; t < 3; t++)
            for (int i = 0; i < SHAPES; i++) check(&shapes[i], types[t], isa, 1);
}

/* Of a score of 15 the weight is 3e-7 off 1: A·(1 − A) would be half as large again. One key, so that the gradient of
 * the query is the slope's alone. */
static void slopes_of_large_scores(void **state)
{
    static const float score[] = {-40, -17, -15, -10, -1, 0, 1, 10, 12, 15, 17, 20, 40};
    enum { COUNT = sizeof score / sizeof *score };
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < COUNT; i++) {
            float one = 1, q = score[i], dq = 0;
            pl_sigmoid_attention_bwd_call bwd = {.samples = 1,
                                                 .tokens = 1,
                                                 .width = 1,
                                                 .scale = 1,
                                                 .type = PL_REAL_F32,
                                                 .d_o = &one,
                                                 .q = &q,
                                                 .k = &one,
                                                 .v = &one,
                                                 .dq = &dq};
            const pl_team team = {1, isa};
            pl_sigmoid_attention_bwd_exec(&bwd, guarded_bytes(pl_sigmoid_attention_bwd_workspace_bytes(&bwd, team), 0),
                                          team);
            const double e = exp(-fabs((double)q)), wanted = e / ((1 + e) * (1 + e));
            if (!(fabs(dq - wanted) <= 2e-5 * wanted))
                fail_msg("slope at %g is %.9g, expected %.9g", (double)q, (double)dq, wanted);
        }
    guarded_free_all();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes), cmocka_unit_test(slopes_of_large_scores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
