/* Random attention problems: every level agrees with the scalar reference (itself held to a stored-T×T oracle in
 * tests/unit/backend/test_attention.c), whatever the sizes, the strides and the gaps between rows, and writes nothing
 * into the gaps. A failure prints the seed; `property_backend test_attention SEED` repeats that case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "base/philox.h"
#include "support/program.h"

enum { CASES = 60, TENSORS = 8 }; /* q k v o do dq dk dv */
static uint64_t only_seed;

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
    int64_t batch, heads, tq, tk, width, token[TENSORS], batches[TENSORS], elems[TENSORS];
    int causal;
    float scale;
    float *data[TENSORS], *lse;
} problem;

static int64_t rows_of(const problem *p, int tensor)
{
    return tensor == 1 || tensor == 2 || tensor > 5 ? p->tk : p->tq;
}

static problem problem_make(uint64_t seed)
{
    dice d = {.philox = pl_philox_init(seed, 1)};
    problem p = {.batch = roll(&d, 1, 2), .heads = roll(&d, 1, 3), .causal = (int)roll(&d, 0, 3) > 0};
    p.tk = roll(&d, 1, roll(&d, 0, 1) ? 140 : 20), p.tq = roll(&d, 0, 3) ? p.tk : roll(&d, 1, 140);
    p.width = roll(&d, 1, 4) == 1 ? roll(&d, 1, 70) : 8 * roll(&d, 1, 8);
    p.scale = 0.02f * (float)roll(&d, 1, 20);
    for (int i = 0; i < TENSORS; i++) {
        p.token[i] = p.heads * p.width + roll(&d, 0, 1) * roll(&d, 1, 40);
        p.batches[i] = rows_of(&p, i) * p.token[i] + roll(&d, 0, 30);
        p.elems[i] = p.batch * p.batches[i];
        p.data[i] = pl_alloc((size_t)p.elems[i], sizeof(float));
        assert_non_null(p.data[i]);
        pl_philox_normal_f32(&d.philox, 2, (uint64_t)i, 0, (uint64_t)p.elems[i], p.data[i]);
    }
    p.lse = pl_alloc((size_t)(p.batch * p.heads * p.tq), sizeof(float));
    assert_non_null(p.lse);
    return p;
}

static void problem_free(problem *p)
{
    for (int i = 0; i < TENSORS; i++) pl_free(p->data[i]);
    pl_free(p->lse);
}

static void run(const problem *p, pl_team team)
{
    pl_attention_strides s[TENSORS];
    for (int i = 0; i < TENSORS; i++) s[i] = (pl_attention_strides){p->batches[i], p->token[i]};
    float *const *t = p->data;
    pl_attention_call f = {p->batch, p->tq, p->tk, p->heads, p->width, p->causal, p->scale, t[0], t[1],
                           t[2],     s[0],  s[1],  s[2],     s[3],     t[3],      p->lse,   NULL};
    pl_attention_bwd_call b = {p->batch, p->tq, p->tk, p->heads, p->width, p->causal, p->scale, t[0],
                               t[1],     t[2],  t[3],  p->lse,   t[4],     s[0],      s[1],     s[2],
                               s[3],     s[4],  t[5],  t[6],     t[7],     s[5],      s[6],     s[7]};
    uint64_t one = pl_attention_workspace_bytes(&f, team), two = pl_attention_bwd_workspace_bytes(&b, team);
    char *memory = pl_alloc((size_t)(one > two ? one : two) + 64, 1);
    assert_non_null(memory);
    void *workspace = (void *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    pl_attention_exec(&f, workspace, team);
    pl_attention_bwd_exec(&b, workspace, team);
    pl_free(memory);
}

/* Gaps (never written, so the same random numbers in both) must agree to the bit, elements within rounding. */
static void compare(const problem *a, const problem *b, int tensor)
{
    double norm = 0, worst = 0;
    int64_t used = a->heads * a->width, span = rows_of(a, tensor) * a->token[tensor];
    for (int64_t i = 0; i < a->elems[tensor]; i++) {
        float x = a->data[tensor][i], y = b->data[tensor][i];
        int64_t inside = i % a->batches[tensor];
        if (inside >= span || inside % a->token[tensor] >= used) assert_memory_equal(&x, &y, sizeof x);
        assert_true(isfinite(x) && isfinite(y));
        norm = fmax(norm, fabs((double)x)), worst = fmax(worst, fabs((double)x - (double)y));
    }
    if (worst > 5e-6 * fmax(1, norm)) fail_msg("tensor %d: difference %g, largest element %g", tensor, worst, norm);
}

static void check_seed(uint64_t seed)
{
    print_message("seed %lu\n", (unsigned long)seed);
    problem reference = problem_make(seed);
    run(&reference, (pl_team){1, PL_ISA_REF});
    for (int isa = PL_ISA_BASELINE; isa <= (int)pl_isa_of_machine(); isa++) {
        problem p = problem_make(seed);
        run(&p, (pl_team){1 + (int)(seed % 5), (pl_isa)isa});
        for (int i = 0; i < TENSORS; i++) compare(&reference, &p, i);
        problem_free(&p);
    }
    problem_free(&reference);
}

static void test_random(void **state)
{
    (void)state;
    if (only_seed)
        check_seed(only_seed);
    else
        for (uint64_t seed = 1; seed <= CASES; seed++) check_seed(seed);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
