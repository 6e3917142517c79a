/* Attention against a naive implementation in double precision that stores the whole T×T matrix, at every level of this
 * machine: sizes around every block edge, odd head widths, strides of a fused QKV matrix, a key-value cache; the same
 * bits for any number of threads; nothing written outside the outputs and the workspace asked for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "base/philox.h"
#include "support/program.h"

#define GUARD       64
#define GUARD_VALUE 12345.0f

typedef struct problem {
    int64_t batch, tq, tk, heads, width;
    int causal, fused; /* fused: q, k, v interleaved in one matrix of 3·heads·width columns */
} problem;

/* A tensor with GUARD elements on both sides. */
typedef struct tensor {
    float *memory, *data;
    int64_t count;
    pl_attention_strides s;
} tensor;

static uint32_t next_stream;

static tensor tensor_make(int64_t batch, int64_t tokens, int64_t columns, int random)
{
    tensor t = {.count = batch * tokens * columns, .s = {tokens * columns, columns}};
    t.memory = pl_alloc((size_t)t.count + 2 * GUARD, sizeof(float));
    assert_non_null(t.memory);
    t.data = t.memory + GUARD;
    for (int64_t i = 0; i < t.count + 2 * GUARD; i++) t.memory[i] = GUARD_VALUE;
    pl_philox p = pl_philox_init(7, next_stream++);
    if (random) pl_philox_normal_f32(&p, 0, 0, 0, (uint64_t)t.count, t.data);
    return t;
}

static void tensor_free(tensor *t)
{
    for (int64_t i = 0; i < GUARD; i++) {
        assert_true(t->memory[i] == GUARD_VALUE);
        assert_true(t->data[t->count + i] == GUARD_VALUE);
    }
    pl_free(t->memory);
}

typedef struct fixture {
    tensor in[3], o, d_o, dq, dk, dv, lse;
    pl_attention_call call;
    pl_attention_bwd_call bwd;
    double *p; /* [batch, heads, tq, tk] of the oracle */
} fixture;

static fixture fixture_make(problem c)
{
    int64_t columns = c.heads * c.width;
    fixture f = {.o = tensor_make(c.batch, c.tq, columns, 0),
                 .d_o = tensor_make(c.batch, c.tq, columns, 1),
                 .dq = tensor_make(c.batch, c.tq, columns, 0),
                 .dk = tensor_make(c.batch, c.tk, columns, 0),
                 .dv = tensor_make(c.batch, c.tk, columns, 0),
                 .lse = tensor_make(c.batch, c.heads, c.tq, 0)};
    const float *in[3];
    for (int i = 0; i < 3; i++) {
        if (c.fused) {
            if (i == 0) f.in[0] = tensor_make(c.batch, c.tk, 3 * columns, 1);
            in[i] = f.in[0].data + i * columns;
            f.in[i].s = f.in[0].s;
        } else {
            f.in[i] = tensor_make(c.batch, i ? c.tk : c.tq, columns, 1);
            in[i] = f.in[i].data;
        }
    }
    float scale = 1 / sqrtf((float)c.width);
    f.call = (pl_attention_call){c.batch, c.tq,      c.tk,      c.heads,   c.width, c.causal, scale,      in[0], in[1],
                                 in[2],   f.in[0].s, f.in[1].s, f.in[2].s, f.o.s,   f.o.data, f.lse.data, NULL};
    f.bwd =
        (pl_attention_bwd_call){c.batch, c.tq,    c.tk,      c.heads,    c.width,    c.causal,  scale,     in[0],
                                in[1],   in[2],   f.o.data,  f.lse.data, f.d_o.data, f.in[0].s, f.in[1].s, f.in[2].s,
                                f.o.s,   f.d_o.s, f.dq.data, f.dk.data,  f.dv.data,  f.dq.s,    f.dk.s,    f.dv.s};
    f.p = pl_alloc((size_t)(c.batch * c.heads * c.tq * c.tk), sizeof(double));
    assert_non_null(f.p);
    return f;
}

static void fixture_free(fixture *f)
{
    tensor *all[] = {&f->in[0], &f->in[1], &f->in[2], &f->o, &f->d_o, &f->dq, &f->dk, &f->dv, &f->lse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i]->memory) tensor_free(all[i]);
    pl_free(f->p);
}

static void *workspace_make(uint64_t bytes, unsigned char **memory)
{
    *memory = pl_alloc((size_t)bytes + 192, 1);
    assert_non_null(*memory);
    unsigned char *at = (unsigned char *)(((uintptr_t)*memory + 127) & ~(uintptr_t)63);
    memset(*memory, 0xff, (size_t)bytes + 192); /* NaN: nothing may be read before it is written */
    return at;
}

static void workspace_free(unsigned char *memory, const void *workspace, uint64_t bytes)
{
    for (const unsigned char *at = memory; at < memory + bytes + 192; at++)
        if (at < (const unsigned char *)workspace || at >= (const unsigned char *)workspace + bytes)
            assert_int_equal(*at, 0xff);
    pl_free(memory);
}

static void run_forward(const pl_attention_call *c, pl_team team)
{
    unsigned char *memory;
    uint64_t bytes = pl_attention_workspace_bytes(c, team);
    void *workspace = workspace_make(bytes, &memory);
    pl_attention_exec(c, workspace, team);
    workspace_free(memory, workspace, bytes);
}

static void run_backward(const pl_attention_bwd_call *c, pl_team team)
{
    unsigned char *memory;
    uint64_t bytes = pl_attention_bwd_workspace_bytes(c, team);
    void *workspace = workspace_make(bytes, &memory);
    pl_attention_bwd_exec(c, workspace, team);
    workspace_free(memory, workspace, bytes);
}

static const float *row(const float *p, pl_attention_strides s, int64_t b, int64_t t, int64_t h, int64_t width)
{
    return p + b * s.batch + t * s.token + h * width;
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * b[i];
    return sum;
}

static double worst; /* of the comparison in progress */

static void compare(double expected, float got, double tolerance)
{
    double error = fabs(expected - (double)got);
    if (!(error <= tolerance * fmax(1, fabs(expected)))) {
        if (isinf(expected) && got == (float)expected) return;
        fail_msg("expected %.9g, got %.9g", expected, (double)got);
    }
    if (error > worst) worst = error;
}

/* Fills f->p for one (batch, head), compares o and lse. */
static void check_forward(const fixture *f, int64_t b, int64_t h)
{
    const pl_attention_call *c = &f->call;
    double *p = f->p + (b * c->heads + h) * c->tq * c->tk;
    for (int64_t i = 0; i < c->tq; i++, p += c->tk) {
        int64_t seen = c->causal ? c->tk - c->tq + i + 1 : c->tk;
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < c->tk; j++) {
            p[j] = j < seen ? c->scale * dot(row(c->q, c->sq, b, i, h, c->head_width),
                                             row(c->k, c->sk, b, j, h, c->head_width), c->head_width)
                            : -INFINITY;
            top = fmax(top, p[j]);
        }
        for (int64_t j = 0; j < c->tk; j++) sum += p[j] = j < seen ? exp(p[j] - top) : 0;
        for (int64_t j = 0; j < c->tk; j++) p[j] = sum > 0 ? p[j] / sum : 0;
        if (c->lse) compare(sum > 0 ? top + log(sum) : -INFINITY, c->lse[(b * c->heads + h) * c->tq + i], 2e-6);
        for (int64_t d = 0; d < c->head_width; d++) {
            double o = 0;
            for (int64_t j = 0; j < seen && j < c->tk; j++) o += p[j] * row(c->v, c->sv, b, j, h, c->head_width)[d];
            compare(o, row(c->o, c->so, b, i, h, c->head_width)[d], 2e-6);
        }
    }
}

/* The gradients from the oracle's own P; dS overwrites P. */
static void check_backward(const fixture *f, int64_t b, int64_t h)
{
    const pl_attention_bwd_call *c = &f->bwd;
    int64_t n = c->head_width;
    double *p = f->p + (b * c->heads + h) * c->tq * c->tk;
    for (int64_t j = 0; j < c->tk; j++)
        for (int64_t d = 0; d < n; d++) {
            double dv = 0;
            for (int64_t i = 0; i < c->tq; i++) dv += p[i * c->tk + j] * row(c->d_o, c->sdo, b, i, h, n)[d];
            compare(dv, row(c->dv, c->sdv, b, j, h, n)[d], 1e-5);
        }
    for (int64_t i = 0; i < c->tq; i++) {
        double delta = 0, *pi = p + i * c->tk;
        const float *d_o = row(c->d_o, c->sdo, b, i, h, n);
        for (int64_t j = 0; j < c->tk; j++) delta += pi[j] * dot(d_o, row(c->v, c->sv, b, j, h, n), n);
        for (int64_t j = 0; j < c->tk; j++) pi[j] *= dot(d_o, row(c->v, c->sv, b, j, h, n), n) - delta;
        for (int64_t d = 0; d < n; d++) {
            double dq = 0;
            for (int64_t j = 0; j < c->tk; j++) dq += c->scale * pi[j] * row(c->k, c->sk, b, j, h, n)[d];
            compare(dq, row(c->dq, c->sdq, b, i, h, n)[d], 1e-5);
        }
    }
    for (int64_t j = 0; j < c->tk; j++)
        for (int64_t d = 0; d < n; d++) {
            double dk = 0;
            for (int64_t i = 0; i < c->tq; i++) dk += c->scale * p[i * c->tk + j] * row(c->q, c->sq, b, i, h, n)[d];
            compare(dk, row(c->dk, c->sdk, b, j, h, n)[d], 1e-5);
        }
}

static void check_problem(problem c, pl_team team)
{
    fixture f = fixture_make(c);
    run_forward(&f.call, team);
    run_backward(&f.bwd, team);
    for (int64_t b = 0; b < c.batch; b++)
        for (int64_t h = 0; h < c.heads; h++) {
            check_forward(&f, b, h);
            check_backward(&f, b, h);
        }
    fixture_free(&f);
}

static const problem problems[] = {
    {1, 1, 1, 1, 1, 1, 0},       {1, 2, 2, 1, 3, 1, 0},     {1, 5, 5, 2, 4, 0, 0},      {2, 7, 7, 3, 5, 1, 1},
    {1, 16, 16, 1, 16, 1, 0},    {1, 17, 17, 1, 8, 1, 0},   {1, 24, 24, 1, 7, 1, 0},    {1, 33, 33, 2, 17, 1, 1},
    {1, 48, 48, 1, 32, 1, 0},    {1, 49, 49, 1, 32, 0, 0},  {1, 63, 63, 1, 33, 1, 0},   {1, 64, 64, 2, 64, 1, 1},
    {1, 65, 65, 1, 48, 1, 0},    {2, 97, 97, 2, 32, 1, 1},  {1, 128, 128, 2, 32, 1, 1}, {1, 130, 130, 1, 40, 0, 0},
    {1, 100, 150, 1, 20, 1, 0},  {1, 5, 150, 2, 20, 1, 0},  {1, 3, 70, 2, 20, 1, 0},    {1, 1, 200, 2, 32, 1, 0},
    {1, 4, 64, 1, 100, 0, 0},    {1, 70, 20, 1, 12, 0, 0},  {1, 70, 20, 1, 12, 1, 0},   {1, 4, 2, 1, 6, 1, 0},
    {1, 200, 200, 1, 128, 1, 0}, {1, 60, 60, 1, 130, 1, 0}, {1, 257, 257, 1, 16, 1, 0},
};

static void for_each_level(void (*check)(pl_team))
{
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
        worst = 0;
        check((pl_team){1, (pl_isa)isa});
        print_message("%s: largest error %.2e\n", pl_isa_name((pl_isa)isa), worst);
    }
}

static void check_all(pl_team team)
{
    size_t count = sizeof problems / sizeof *problems;
    for (size_t i = 0; i < count; i++) {
        if (team.isa == PL_ISA_REF && problems[i].tq > 70) continue; /* quadratic twice over: slow */
        next_stream = (uint32_t)(100 * i);
        check_problem(problems[i], team);
    }
}

static void test_oracle(void **state) { (void)state, for_each_level(check_all); }

/* Generation: tk comes from *position when the call runs; the cache is longer than what is filled. */
static void check_position(pl_team team)
{
    for (int64_t tq = 1; tq <= 20; tq += 19) {
        fixture f = fixture_make((problem){2, tq, 96, 2, 24, 1, 0});
        int64_t position = 77 - tq;
        f.call.position = &position;
        f.call.lse = NULL;
        run_forward(&f.call, team);
        f.call.tk = 77; /* the oracle's view; keys past it are not looked at */
        for (int64_t b = 0; b < 2; b++)
            for (int64_t h = 0; h < 2; h++) check_forward(&f, b, h);
        fixture_free(&f);
    }
}

static void test_position(void **state) { (void)state, for_each_level(check_position); }

/* Large scores: a softmax that is a hard maximum must not overflow; lse stays near the largest score. */
static void check_large(pl_team team)
{
    fixture f = fixture_make((problem){1, 40, 40, 1, 16, 1, 0});
    for (int64_t i = 0; i < f.in[0].count; i++) f.in[0].data[i] *= 300;
    run_forward(&f.call, team);
    for (int64_t i = 0; i < 40; i++) {
        double top = -INFINITY;
        for (int64_t j = 0; j <= i; j++)
            top = fmax(top, f.call.scale * dot(f.in[0].data + 16 * i, f.in[1].data + 16 * j, 16));
        assert_true(fabs(f.lse.data[i] - top) <= 1e-5 * fabs(top) + 1);
        for (int64_t d = 0; d < 16; d++) assert_true(isfinite(f.o.data[i * 16 + d]));
    }
    fixture_free(&f);
}

static void test_large(void **state) { (void)state, for_each_level(check_large); }

/* A NaN in one query spoils that query's row alone; one in a key spoils every query that sees it, and no other. */
static void check_nan(pl_team team)
{
    fixture f = fixture_make((problem){1, 50, 50, 1, 16, 1, 0});
    f.in[0].data[10 * 16 + 3] = NAN;
    f.in[1].data[30 * 16 + 3] = NAN;
    run_forward(&f.call, team);
    for (int64_t i = 0; i < 50; i++) assert_int_equal(isnan(f.o.data[i * 16]), i == 10 || i >= 30);
    fixture_free(&f);
}

static void test_nan(void **state) { (void)state, for_each_level(check_nan); }

/* The future is not read into the past: changing later tokens changes no earlier bit. */
static void check_causal(pl_team team)
{
    fixture f = fixture_make((problem){1, 90, 90, 1, 32, 1, 0});
    float before[60 * 32];
    run_forward(&f.call, team);
    memcpy(before, f.o.data, sizeof before);
    for (int i = 1; i < 3; i++)
        for (int64_t at = 60 * 32; at < 90 * 32; at++) f.in[i].data[at] = 1e30f;
    run_forward(&f.call, team);
    assert_memory_equal(before, f.o.data, sizeof before);
    fixture_free(&f);
}

static void test_causal(void **state) { (void)state, for_each_level(check_causal); }

static void check_threads(pl_team team)
{
    static const int threads[] = {1, 2, 8, 16, 64};
    fixture f = fixture_make((problem){2, 450, 450, 3, 20, 1, 1});
    tensor *out[] = {&f.o, &f.lse, &f.dq, &f.dk, &f.dv};
    float *first[5];
    for (int t = 0; t < 5; t++) {
        team.threads = threads[t];
        run_forward(&f.call, team);
        run_backward(&f.bwd, team);
        for (int i = 0; i < 5; i++) {
            size_t bytes = (size_t)out[i]->count * sizeof(float);
            if (t == 0) {
                first[i] = pl_alloc(bytes, 1);
                memcpy(first[i], out[i]->data, bytes);
            }
            assert_memory_equal(first[i], out[i]->data, bytes);
        }
    }
    for (int i = 0; i < 5; i++) pl_free(first[i]);
    fixture_free(&f);
}

static void test_threads(void **state) { (void)state, for_each_level(check_threads); }

static void test_workspace_is_small(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa < PL_ISA_COUNT; isa++)
        for (int64_t width = 1; width <= 128; width++) {
            pl_attention_call c = {.batch = 4, .heads = 8, .tq = 1024, .tk = 1024, .head_width = width};
            pl_attention_bwd_call b = {.batch = 4, .heads = 8, .tq = 1024, .tk = 1024, .head_width = width};
            pl_team one = {1, (pl_isa)isa}, many = {9, (pl_isa)isa};
            uint64_t forward = pl_attention_workspace_bytes(&c, one);
            uint64_t backward = pl_attention_bwd_workspace_bytes(&b, one);
            assert_true(forward <= 205000 && backward <= 240000);
            assert_int_equal(pl_attention_workspace_bytes(&c, many) - 64, 9 * (forward - 64));
            assert_int_equal(pl_attention_bwd_workspace_bytes(&b, many) - 64, 9 * (backward - 64));
        }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_position),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_causal),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_workspace_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
