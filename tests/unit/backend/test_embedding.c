/* Embedding forward and backward, also with tokens that are none yet (−1), against naive loops; forward is exact,
 * backward sums are compared with double. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"
#include "support/program.h"

static const int thread_counts[] = {1, 2, 8, 16, 64};
enum { THREAD_COUNTS = 5, FIRST_POSITION = 3 };

typedef struct problem {
    int64_t batch, tokens, vocab, width, window;
    int32_t *token;
    float *table, *positions; /* positions [tokens + FIRST_POSITION, width], NULL with a window */
} problem;

static const int64_t shapes[][5] = {{1, 1, 1, 1, 1},     {2, 9, 7, 33, 1}, {4, 128, 788, 256, 1}, {3, 50, 20, 24, 1},
                                    {1, 300, 5, 100, 1}, {2, 9, 7, 33, 3}, {3, 2, 11, 16, 5},     {2, 60, 300, 64, 4}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* gaps: every third token or so is −1 */
static problem make_problem(const int64_t *s, int gaps)
{
    problem p = {s[0], s[1], s[2], s[3], s[4], 0};
    int64_t rows = p.batch * p.tokens;
    p.token = guarded_bytes((uint64_t)rows * sizeof *p.token, 0);
    uint32_t state = 12345;
    for (int64_t r = 0; r < rows; r++) {
        state = state * 1664525u + 1013904223u;
        p.token[r] = (int32_t)((state >> 8) % (uint32_t)p.vocab);
        if (r % 3 == 0) p.token[r] = (int32_t)(p.vocab / 2); /* one token is frequent, as in text */
        if (gaps && (state >> 16) % 3 == 0) p.token[r] = -1;
    }
    p.table = guarded_normal(p.vocab * p.width, 1);
    p.positions = p.window == 1 ? guarded_normal((p.tokens + FIRST_POSITION) * p.width, 2) : NULL;
    return p;
}

static void check_forward(const problem *p, pl_team team, int with_positions, const int64_t *position)
{
    int64_t slot = p->width, row = p->window * slot, rows = p->batch * p->tokens, first = position ? *position : 0;
    float *y = guarded_f32(rows * row);
    pl_embedding_call call = {p->batch,  p->tokens, p->vocab, p->width,
                              p->window, p->token,  p->table, with_positions ? p->positions : NULL,
                              position,  y};
    pl_embedding_exec(&call, team);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < p->window; j++)
            for (int64_t d = 0; d < slot; d++) {
                int64_t t = r % p->tokens;
                float expected = j <= t && p->token[r - j] >= 0 ? p->table[p->token[r - j] * slot + d] : 0;
                if (with_positions) expected += p->positions[(first + t) * slot + d];
                assert_true(y[r * row + j * slot + d] == expected);
            }
}

static void test_forward(void **state)
{
    (void)state;
    int64_t position = FIRST_POSITION;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int s = 0; s < 2 * SHAPES; s++) {
            problem p = make_problem(shapes[s % SHAPES], s >= SHAPES);
            for (int t = 0; t < THREAD_COUNTS; t++) {
                pl_team team = {thread_counts[t], isa};
                check_forward(&p, team, 0, NULL);
                if (p.positions) check_forward(&p, team, 1, NULL);
                if (p.positions) check_forward(&p, team, 1, &position);
            }
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- backward ---- */

typedef struct gradients {
    float *table, *positions;
} gradients;

static gradients run_backward(const problem *p, const float *dy, pl_team team, int parts)
{
    gradients g = {guarded_normal(p->vocab * p->width, 3), guarded_normal(p->tokens * p->width, 4)};
    pl_embedding_bwd_call call = {p->batch,
                                  p->tokens,
                                  p->vocab,
                                  p->width,
                                  p->window,
                                  p->token,
                                  dy,
                                  parts & 1 ? g.table : NULL,
                                  parts & 2 ? g.positions : NULL};
    pl_embedding_bwd_exec(&call, team);
    return g;
}

static void assert_near(const float *got, const double *expected, int64_t count)
{
    for (int64_t i = 0; i < count; i++) assert_true(fabs(got[i] - expected[i]) <= 1e-5 * (1 + fabs(expected[i])));
}

/* The gradient of Σ dy·y, from the definition of y: each (row, slot) gives its dy to what it copied. */
static void check_backward(const problem *p, pl_isa isa)
{
    static double table[788 * 256], positions[300 * 256];
    int64_t row = p->window * p->width, rows = p->batch * p->tokens;
    float *dy = guarded_normal(rows * row, 5);
    int parts = p->positions ? 3 : 1;
    gradients start = {guarded_normal(p->vocab * p->width, 3), guarded_normal(p->tokens * p->width, 4)};
    for (int64_t i = 0; i < p->vocab * p->width; i++) table[i] = start.table[i];
    for (int64_t i = 0; i < p->tokens * p->width; i++) positions[i] = start.positions[i];
    for (int64_t i = 0; i < rows * row; i++) {
        int64_t r = i / row, slot = i % row / p->width, d = i % p->width, t = r % p->tokens;
        if (slot <= t && p->token[r - slot] >= 0) table[p->token[r - slot] * p->width + d] += dy[i];
        if (parts & 2) positions[t * p->width + d] += dy[i];
    }
    gradients first = run_backward(p, dy, (pl_team){1, isa}, parts);
    assert_near(first.table, table, p->vocab * p->width);
    assert_near(first.positions, positions, p->tokens * p->width);
    for (int t = 0; t < THREAD_COUNTS; t++)
        for (int some = 0; some <= parts; some++) {
            gradients g = run_backward(p, dy, (pl_team){thread_counts[t], isa}, some);
            assert_memory_equal(g.table, some & 1 ? first.table : start.table, (size_t)(p->vocab * p->width) * 4);
            assert_memory_equal(g.positions, some & 2 ? first.positions : start.positions,
                                (size_t)(p->tokens * p->width) * 4);
        }
}

static void test_backward(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int s = 0; s < 2 * SHAPES; s++) {
            problem p = make_problem(shapes[s % SHAPES], s >= SHAPES);
            check_backward(&p, isa);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Forward and backward are transposes of each other: ⟨y(E), dy⟩ = ⟨E, dE(dy)⟩. */
static void test_adjoint(void **state)
{
    (void)state;
    for (int s = 0; s < 2 * SHAPES; s++) {
        problem p = make_problem(shapes[s % SHAPES], s >= SHAPES);
        pl_team team = {2, pl_isa_of_machine()};
        int64_t count = p.batch * p.tokens * p.window * p.width, size = p.vocab * p.width;
        float *dy = guarded_normal(count, 5), *y = guarded_f32(count), *dtable = guarded_f32(size);
        memset(dtable, 0, (size_t)size * sizeof(float));
        pl_embedding_call forward = {p.batch, p.tokens, p.vocab, p.width, p.window, p.token, p.table, NULL, NULL, y};
        pl_embedding_exec(&forward, team);
        pl_embedding_bwd_call backward = {p.batch, p.tokens, p.vocab, p.width, p.window, p.token, dy, dtable, NULL};
        pl_embedding_bwd_exec(&backward, team);
        double left = 0, right = 0, size_of_terms = 1;
        for (int64_t i = 0; i < count; i++) left += (double)y[i] * dy[i], size_of_terms += fabs((double)y[i] * dy[i]);
        for (int64_t i = 0; i < size; i++) right += (double)p.table[i] * dtable[i];
        assert_true(fabs(left - right) <= 1e-6 * size_of_terms);
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_backward),
                                       cmocka_unit_test(test_adjoint)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
