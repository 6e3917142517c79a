/* Linear + softmax + cross-entropy against a double-precision oracle, whose gradient is checked by finite
 * differences. With h and W of 16 bits the oracle reads the same numbers; dh is then rounded once, and where pairs of
 * bf16 are multiplied so is each gradient of a logit before it is used: 2⁻⁸ of its share. */
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
enum { THREAD_COUNTS = 5 };

typedef struct problem {
    int64_t rows, width, vocab, chunk_rows;
    float *h, *weight, *dweight0, scale; /* numbers that the type can hold */
    int32_t *target;
    pl_real type;
    void *h_given, *weight_given; /* the same in that type */
} problem;

static void *given(pl_real type, float *x, int64_t count)
{
    if (type == PL_REAL_F32) return x;
    void *narrow = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, narrow, i, x[i]), x[i] = pl_real_get(type, narrow, i);
    return narrow;
}

static problem make_problem_of(pl_real type, int64_t rows, int64_t width, int64_t vocab, int64_t chunk_rows)
{
    problem p = {rows,
                 width,
                 vocab,
                 chunk_rows,
                 guarded_normal(rows * width, 1),
                 guarded_normal(vocab * width, 2),
                 guarded_normal(vocab * width, 3),
                 0.125f,
                 guarded_bytes((uint64_t)rows * sizeof(int32_t), 0),
                 type};
    p.h_given = given(type, p.h, rows * width);
    p.weight_given = given(type, p.weight, vocab * width);
    for (int64_t r = 0; r < rows; r++) p.target[r] = r % 5 == 4 ? -1 : (int32_t)(r * 7919 % vocab);
    return p;
}

static problem make_problem(int64_t rows, int64_t width, int64_t vocab, int64_t chunk_rows)
{
    return make_problem_of(PL_REAL_F32, rows, width, vocab, chunk_rows);
}

/* ---- the oracle: loss of one row, its gradient by logits ---- */

static double oracle_row(const problem *p, const double *h, int32_t target, double *dlogits)
{
    double max = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < p->vocab; j++) {
        dlogits[j] = 0;
        for (int64_t d = 0; d < p->width; d++) dlogits[j] += h[d] * p->weight[j * p->width + d];
        max = fmax(max, dlogits[j]);
    }
    for (int64_t j = 0; j < p->vocab; j++) sum += exp(dlogits[j] - max);
    double loss = log(sum) + max - dlogits[target];
    for (int64_t j = 0; j < p->vocab; j++) dlogits[j] = exp(dlogits[j] - max) / sum - (j == target);
    return loss;
}

static void test_oracle_gradient(void **state)
{
    (void)state;
    problem p = make_problem(1, 6, 11, 1);
    double h[6], dlogits[11], other[11];
    for (int d = 0; d < 6; d++) h[d] = p.h[d];
    oracle_row(&p, h, 3, dlogits);
    for (int d = 0; d < 6; d++) {
        double keep = h[d], step = 1e-5 * (1 + fabs(keep)), gradient = 0;
        for (int j = 0; j < 11; j++) gradient += dlogits[j] * p.weight[j * 6 + d];
        h[d] = keep + step;
        double up = oracle_row(&p, h, 3, other);
        h[d] = keep - step;
        double down = oracle_row(&p, h, 3, other);
        h[d] = keep;
        assert_true(fabs((up - down) / (2 * step) - gradient) < 1e-6 * (1 + fabs(gradient)));
    }
    guarded_free_all();
}

/* ---- the code ---- */

typedef struct results {
    double loss;
    void *dh;
    float *dweight;
} results;

/* The batch, `rows` rows a call. */
static results run_in_calls(const problem *p, int parts, pl_team team, int64_t rows, int64_t chunk_rows)
{
    results out = {0, guarded_bytes((uint64_t)(p->rows * p->width * pl_real_bytes(p->type)), 0),
                   guarded_copy(p->dweight0, p->vocab * p->width)};
    double *loss = guarded_bytes(sizeof *loss, 0);
    *loss = 10;
    for (int64_t first = 0; first < p->rows; first += rows) {
        pl_linear_ce_call call = {p->rows - first < rows ? p->rows - first : rows,
                                  p->width,
                                  p->vocab,
                                  chunk_rows,
                                  pl_real_at(p->type, p->h_given, first * p->width),
                                  p->weight_given,
                                  p->target + first,
                                  &p->scale,
                                  loss,
                                  parts & 1 ? pl_real_at(p->type, out.dh, first * p->width) : NULL,
                                  parts & 2 ? out.dweight : NULL,
                                  p->type};
        pl_linear_ce_exec(&call, guarded_bytes(pl_linear_ce_workspace_bytes(&call, team), 0), team);
    }
    out.loss = *loss;
    return out;
}

static results run(const problem *p, int parts, pl_team team)
{
    return run_in_calls(p, parts, team, p->rows, p->chunk_rows);
}

/* terms: the sum of what was added, without signs */
static void assert_near(pl_real type, const void *got, const double *expected, const double *terms, int64_t count,
                        double term_unit)
{
    double unit = type == PL_REAL_F32 ? 0 : type == PL_REAL_BF16 ? 0x1p-8 : 0x1p-11;
    for (int64_t i = 0; i < count; i++) {
        double bound = 1e-5 * (1 + fabs(expected[i])) + unit * fabs(expected[i]) + term_unit * terms[i];
        assert_true(fabs(pl_real_get(type, got, i) - expected[i]) <= bound);
    }
}

static void check_against_oracle(const problem *p, const results *got, double term_unit)
{
    static double dh[200000], dweight[200000], dh_terms[200000], dweight_terms[200000];
    static double dlogits[4096], h[4096];
    double loss = 10;
    memset(dh, 0, sizeof dh), memset(dh_terms, 0, sizeof dh_terms), memset(dweight_terms, 0, sizeof dweight_terms);
    for (int64_t i = 0; i < p->vocab * p->width; i++) dweight[i] = p->dweight0[i];
    for (int64_t r = 0; r < p->rows; r++) {
        if (p->target[r] < 0) continue;
        for (int64_t d = 0; d < p->width; d++) h[d] = p->h[r * p->width + d];
        loss += oracle_row(p, h, p->target[r], dlogits);
        for (int64_t j = 0; j < p->vocab; j++)
            for (int64_t d = 0; d < p->width; d++) {
                double to_h = dlogits[j] * p->scale * p->weight[j * p->width + d], to_w = dlogits[j] * p->scale * h[d];
                dh[r * p->width + d] += to_h, dh_terms[r * p->width + d] += fabs(to_h);
                dweight[j * p->width + d] += to_w, dweight_terms[j * p->width + d] += fabs(to_w);
            }
    }
    assert_true(fabs(got->loss - loss) <= 1e-6 * loss);
    assert_near(p->type, got->dh, dh, dh_terms, p->rows * p->width, 1.01 * term_unit);
    assert_near(PL_REAL_F32, got->dweight, dweight, dweight_terms, p->vocab * p->width, term_unit);
}

static void check(const problem *p, pl_isa isa)
{
    results first = run(p, 3, (pl_team){1, isa});
    check_against_oracle(p, &first, p->type == PL_REAL_BF16 && isa > PL_ISA_AVX512 ? 0x1p-8 : 0);
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t d = 0; d < p->width && p->target[r] < 0; d++)
            assert_true(pl_real_get(p->type, first.dh, r * p->width + d) == 0);
    for (int t = 0; t < THREAD_COUNTS; t++)
        for (int parts = 0; parts < 4; parts++) {
            results got = run(p, parts, (pl_team){thread_counts[t], isa});
            assert_memory_equal(&got.loss, &first.loss, sizeof got.loss);
            if (parts & 1) assert_memory_equal(got.dh, first.dh, (size_t)(p->rows * p->width * pl_real_bytes(p->type)));
            const float *dweight = parts & 2 ? first.dweight : p->dweight0;
            assert_memory_equal(got.dweight, dweight, (size_t)(p->vocab * p->width) * 4);
        }
}

static void test_all(void **state)
{
    (void)state;
    static const int64_t shapes[][4] = {{1, 1, 1, 1},      {7, 5, 3, 2},      {13, 16, 33, 13}, {10, 8, 17, 100},
                                        {70, 24, 788, 32}, {30, 32, 1000, 7}, {0, 4, 4, 4}};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            for (pl_real type = PL_REAL_F32; type <= PL_REAL_F16; type++) {
                problem p = make_problem_of(type, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3]);
                check(&p, isa);
                guarded_check_all();
                guarded_free_all();
            }
        }
}

/* Sums go on over chunks and calls: where these end is not to be seen in a bit. */
static void test_any_cut_gives_the_same_bits(void **state)
{
    (void)state;
    static const int64_t cuts[][2] = {{70, 70}, {70, 9}, {70, 69}, {1, 4}, {33, 16}, {8, 8}, {62, 100}};
    for (int setting = 0; setting < 3 * ((int)pl_isa_of_machine() + 1); setting++) {
        pl_isa isa = (pl_isa)(setting / 3);
        problem p = make_problem_of((pl_real)(setting % 3), 70, 24, 97, 32);
        results first = run(&p, 3, (pl_team){2, isa});
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            results got = run_in_calls(&p, 3, (pl_team){1 + (int)i % 3, isa}, cuts[i][0], cuts[i][1]);
            assert_memory_equal(&got.loss, &first.loss, sizeof got.loss);
            assert_memory_equal(got.dh, first.dh, (size_t)(p.rows * p.width * pl_real_bytes(p.type)));
            assert_memory_equal(got.dweight, first.dweight, (size_t)(p.vocab * p.width) * 4);
        }
        guarded_check_all();
        guarded_free_all();
    }
}

/* Logits far beyond what exp can hold. */
static void test_large_logits(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        problem p = make_problem(9, 4, 50, 4);
        for (int i = 0; i < 9 * 4; i++) p.h[i] *= 300;
        results got = run(&p, 3, (pl_team){1, isa});
        double h[4], dlogits[50], loss = 10;
        for (int r = 0; r < 9; r++) {
            for (int d = 0; d < 4; d++) h[d] = p.h[r * 4 + d];
            if (p.target[r] >= 0) loss += oracle_row(&p, h, p.target[r], dlogits);
        }
        assert_true(fabs(got.loss - loss) <= 1e-6 * loss);
        for (int i = 0; i < 9 * 4; i++) assert_true(isfinite(((float *)got.dh)[i]));
        guarded_check_all();
        guarded_free_all();
    }
}

/* The loss of each row, whatever chunks they come in; with a cap, too, whose tanh is the oracle's. */
static void check_rows(pl_isa isa, float cap)
{
    problem p = make_problem(70, 24, 97, 32);
    double loss = 0, sum = 0, z[97];
    float *row = guarded_bytes(70 * sizeof *row, 0);
    double *total = guarded_bytes(sizeof *total, 0);
    pl_linear_ce_call call = {.rows = 70, .width = 24, .vocab = 97, .chunk_rows = 32, .h = p.h_given};
    call.weight = p.weight_given, call.target = p.target, call.scale = &p.scale, call.loss = total;
    call.row_loss = row, call.cap = cap;
    *total = 0;
    const pl_team team = {3, isa};
    pl_linear_ce_exec(&call, guarded_bytes(pl_linear_ce_workspace_bytes(&call, team), 0), team);
    for (int r = 0; r < 70; r++, sum += loss) {
        loss = 0;
        for (int j = 0; j < 97; j++) {
            z[j] = 0;
            for (int d = 0; d < 24; d++) z[j] += (double)p.h[r * 24 + d] * (double)p.weight[j * 24 + d];
            if (cap > 0) z[j] = cap * tanh(z[j] / cap);
        }
        for (int j = 0; j < 97 && p.target[r] >= 0; j++) loss += exp(z[j] - z[p.target[r]]);
        loss = p.target[r] >= 0 ? log(loss) : 0;
        assert_true(fabs((double)row[r] - loss) <= 1e-5 * (1 + loss));
    }
    assert_true(fabs(*total - sum) <= 1e-5 * sum);
    guarded_check_all();
    guarded_free_all();
}

static void test_rows_and_cap(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        check_rows(isa, 0);
        check_rows(isa, 3);
        check_rows(isa, 0.5f);
    }
}

/* A NaN among the logits must show in the loss, wherever it stands: it is how a run that has broken is noticed. */
static void test_nan_shows(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int where = 0; where < 37; where++) {
            problem p = make_problem(1, 1, 37, 1);
            p.weight[where] = NAN;
            assert_true(isnan(run(&p, 0, (pl_team){1, isa}).loss));
            guarded_free_all();
        }
}

/* The logits of one chunk are the workspace; their number of rows, not of the call, counts. */
static void test_workspace_follows_chunk(void **state)
{
    (void)state;
    pl_team team = {2, PL_ISA_BASELINE};
    pl_linear_ce_call call = {.rows = 4096, .width = 256, .vocab = 788, .chunk_rows = 128};
    uint64_t bytes = pl_linear_ce_workspace_bytes(&call, team);
    call.rows = 128 * 1000;
    assert_true(pl_linear_ce_workspace_bytes(&call, team) == bytes);
    assert_true(bytes >= 128 * 788 * 4);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle_gradient),
                                       cmocka_unit_test(test_all),
                                       cmocka_unit_test(test_any_cut_gives_the_same_bits),
                                       cmocka_unit_test(test_large_logits),
                                       cmocka_unit_test(test_rows_and_cap),
                                       cmocka_unit_test(test_nan_shows),
                                       cmocka_unit_test(test_workspace_follows_chunk)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
