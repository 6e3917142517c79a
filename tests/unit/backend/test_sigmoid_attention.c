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

enum { SHAPES = 5, ELEMS_MAX = 1 << 14, INPUTS = 5, RESULTS = 5 };

typedef struct shape {
    int64_t samples, tokens, width;
} shape;

static const shape shapes[SHAPES] = {{1, 1, 1}, {2, 3, 5}, {3, 17, 16}, {1, 65, 40}, {2, 33, 96}};
static const char *const names[RESULTS] = {"o", "dq", "dk", "dv", "du"};

static double number[INPUTS][ELEMS_MAX], want[RESULTS][ELEMS_MAX];
enum { Q, K, V, U, D_O };

static void *guarded(pl_real type, int64_t count) { return guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0); }

static void *fill(pl_real type, int64_t count, int input)
{
    const float *from = guarded_normal(count, (uint64_t)input + 1);
    void *at = guarded(type, count);
    for (int64_t i = 0; i < count; i++) {
        pl_real_put(type, at, i, from[i]);
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

/* Samples [first, first + samples); `without`: a gradient that is not wanted, 0 for none. A workspace that is NULL is
 * asked for. */
static void run(const shape *s, pl_real type, pl_team team, void *const in[INPUTS], void *const out[RESULTS],
                int64_t first, int64_t samples, int without, void *workspace[2])
{
    const int64_t at = first * s->tokens * s->width;
    const float scale = 1 / sqrtf((float)s->width);
    void *to[RESULTS];
    for (int i = 0; i < RESULTS; i++) to[i] = i && i == without ? NULL : pl_real_at(type, out[i], at);
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
    if (!workspace[0]) workspace[0] = guarded_bytes(pl_sigmoid_attention_workspace_bytes(&call, team), 0);
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
    if (!workspace[1]) workspace[1] = guarded_bytes(pl_sigmoid_attention_bwd_workspace_bytes(&bwd, team), 0);
    pl_sigmoid_attention_bwd_exec(&bwd, workspace[1], team);
}

static void check(const shape *s, pl_real type, pl_isa isa)
{
    const int64_t count = s->samples * s->tokens * s->width;
    void *in[INPUTS], *whole[RESULTS], *parts[RESULTS], *of_whole[2] = {NULL, NULL}, *of_parts[2] = {NULL, NULL};
    for (int i = 0; i < INPUTS; i++) in[i] = fill(type, count, i);
    oracle(s, 1 / sqrt((double)s->width));
    for (int i = 0; i < RESULTS; i++) whole[i] = guarded(type, count), parts[i] = guarded(type, count);
    run(s, type, (pl_team){1, isa}, in, whole, 0, s->samples, 0, of_whole);
    for (int i = 0; i < RESULTS; i++) assert_near(type, whole[i], i, count, s);
    for (int without = 0; without < RESULTS; without++) {
        for (int64_t b = 0; b < s->samples; b++) run(s, type, (pl_team){3, isa}, in, parts, b, 1, without, of_parts);
        for (int i = 0; i < RESULTS; i++)
            if (i == 0 || i != without) assert_memory_equal(whole[i], parts[i], (size_t)(count * pl_real_bytes(type)));
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
            for (int i = 0; i < SHAPES; i++) check(&shapes[i], types[t], isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_shapes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
