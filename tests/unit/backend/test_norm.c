/* Norms against a naive double-precision oracle, whose own gradient is checked by finite differences; every level of
 * this machine, thread counts, aliases, optional arguments, batches in one call or several, guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"
#include "support/program.h"

static const int thread_counts[] = {1, 2, 8, 16, 64};
enum { THREAD_COUNTS = 5, MAX_WIDTH = 4096 };

typedef struct problem {
    int64_t rows, tokens, width;
    int rms, has_beta, has_add;
    float *x, *gamma, *beta, *dy, *add, *dgamma0, *dbeta0; /* gamma NULL: there is none */
} problem;

static problem make_problem(int64_t rows, int64_t tokens, int64_t width, int rms, int has_beta, int has_add)
{
    problem p = {rows, tokens, width, rms, has_beta && !rms, has_add, 0};
    p.x = guarded_normal(rows * width, 1);
    for (int64_t i = 0; i < rows * width; i++) p.x[i] = p.x[i] * 2 + 3;
    p.gamma = guarded_normal(width, 2);
    p.beta = guarded_normal(width, 3);
    p.dy = guarded_normal(rows * width, 4);
    p.add = guarded_normal(rows * width, 5);
    p.dgamma0 = guarded_normal(width, 6);
    p.dbeta0 = guarded_normal(width, 7);
    return p;
}

/* ---- the oracle ---- */

static const double eps = (double)1e-5f;

static void oracle_stats(int64_t width, int rms, const double *x, double *mean, double *rstd)
{
    double sum = 0, square = 0;
    if (!rms)
        for (int64_t j = 0; j < width; j++) sum += x[j];
    *mean = sum / (double)width;
    for (int64_t j = 0; j < width; j++) square += (x[j] - *mean) * (x[j] - *mean);
    *rstd = 1 / sqrt(square / (double)width + eps);
}

static void oracle_forward(int64_t width, int rms, const double *x, const float *gamma, const float *beta, double *y)
{
    double mean, rstd;
    oracle_stats(width, rms, x, &mean, &rstd);
    for (int64_t j = 0; j < width; j++) y[j] = (x[j] - mean) * rstd * (gamma ? gamma[j] : 1) + (beta ? beta[j] : 0);
}

/* dx, and the row's share of dgamma */
static void oracle_backward(int64_t width, int rms, const double *x, const float *gamma, const float *dy, double *dx,
                            double *dgamma)
{
    double mean, rstd, mean_g = 0, mean_gx = 0;
    oracle_stats(width, rms, x, &mean, &rstd);
    for (int64_t j = 0; j < width; j++) {
        double g = (double)dy[j] * (gamma ? gamma[j] : 1), normal = (x[j] - mean) * rstd;
        mean_g += rms ? 0 : g / (double)width;
        mean_gx += g * normal / (double)width;
        if (gamma) dgamma[j] += dy[j] * normal;
    }
    for (int64_t j = 0; j < width; j++)
        dx[j] = rstd * ((double)dy[j] * (gamma ? gamma[j] : 1) - mean_g - (x[j] - mean) * rstd * mean_gx);
}

static double oracle_objective(int64_t width, int rms, const double *x, const float *gamma, const float *dy)
{
    double y[64], sum = 0;
    oracle_forward(width, rms, x, gamma, NULL, y);
    for (int64_t j = 0; j < width; j++) sum += y[j] * dy[j];
    return sum;
}

static void test_oracle_gradient(void **state)
{
    (void)state;
    for (int rms = 0; rms < 2; rms++) {
        problem p = make_problem(1, 1, 13, rms, 0, 0);
        double x[13], dx[13], dgamma[13] = {0};
        for (int j = 0; j < 13; j++) x[j] = p.x[j];
        oracle_backward(13, rms, x, p.gamma, p.dy, dx, dgamma);
        for (int j = 0; j < 13; j++) {
            double keep = x[j], step = 1e-5 * (1 + fabs(keep));
            x[j] = keep + step;
            double up = oracle_objective(13, rms, x, p.gamma, p.dy);
            x[j] = keep - step;
            double down = oracle_objective(13, rms, x, p.gamma, p.dy);
            x[j] = keep;
            assert_true(fabs((up - down) / (2 * step) - dx[j]) < 1e-6 * (1 + fabs(dx[j])));
        }
        guarded_free_all();
    }
}

/* ---- the code ---- */

static void assert_near(const float *got, const double *expected, int64_t count, double tolerance, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]))))
            fail_msg("%s[%lld] is %.9g, expected %.9g", what, (long long)i, (double)got[i], expected[i]);
}

static void check_forward(const problem *p, pl_isa isa)
{
    int64_t n = p->rows * p->width;
    static double expected[40000], row[MAX_WIDTH], mean[4096], rstd[4096];
    for (int64_t r = 0; r < p->rows; r++) {
        for (int64_t j = 0; j < p->width; j++) row[j] = p->x[r * p->width + j];
        oracle_forward(p->width, p->rms, row, p->gamma, p->has_beta ? p->beta : NULL, expected + r * p->width);
        oracle_stats(p->width, p->rms, row, &mean[r], &rstd[r]);
    }
    float *first = NULL;
    for (int t = 0; t < THREAD_COUNTS; t++)
        for (int in_place = 0; in_place < 2; in_place++) {
            float *x = guarded_copy(p->x, n), *y = in_place ? x : guarded_f32(n);
            float *m = guarded_f32(p->rows), *s = guarded_f32(p->rows);
            pl_norm_call call = {p->rows,
                                 p->width,
                                 p->rms,
                                 1e-5f,
                                 x,
                                 p->gamma,
                                 p->has_beta ? p->beta : NULL,
                                 y,
                                 p->rms || in_place ? NULL : m,
                                 in_place ? NULL : s};
            pl_norm_exec(&call, (pl_team){thread_counts[t], isa});
            if (!first) {
                first = y;
                assert_near(y, expected, n, 4e-6, "y");
                assert_near(s, rstd, p->rows, 2e-6, "rstd");
                if (!p->rms) assert_near(m, mean, p->rows, 2e-6, "mean");
            }
            assert_memory_equal(y, first, (size_t)n * sizeof *y);
        }
}

typedef enum alias { ALIAS_NONE, ALIAS_DY, ALIAS_X, ALIAS_ADD, ALIAS_COUNT } alias;

/* Runs the code over the batch, `rows` rows a call; the results are dx, dgamma, dbeta behind each other. */
static float *run_backward(const problem *p, const float *mean, const float *rstd, pl_team team, alias into,
                           int64_t rows)
{
    int64_t n = p->rows * p->width;
    float *out = guarded_f32(n + 2 * p->width), *dy = guarded_copy(p->dy, n), *add = guarded_copy(p->add, n);
    float *x = guarded_copy(p->x, n);
    float *dx = into == ALIAS_DY ? dy : into == ALIAS_X ? x : into == ALIAS_ADD ? add : guarded_f32(n);
    float *dgamma = guarded_copy(p->dgamma0, p->width), *dbeta = guarded_copy(p->dbeta0, p->width);
    for (int64_t first = 0; first < p->rows; first += rows) {
        int64_t at = first * p->width;
        pl_norm_bwd_call call = {p->rows - first < rows ? p->rows - first : rows,
                                 p->tokens,
                                 p->width,
                                 p->rms,
                                 dy + at,
                                 x + at,
                                 p->gamma,
                                 p->rms ? NULL : mean + first,
                                 rstd + first,
                                 p->has_add ? add + at : NULL,
                                 dx + at,
                                 p->gamma ? dgamma : NULL,
                                 p->has_beta ? dbeta : NULL};
        pl_norm_bwd_exec(&call, guarded_bytes(pl_norm_bwd_workspace_bytes(&call, team), 0), team);
    }
    memcpy(out, dx, (size_t)n * sizeof *out);
    memcpy(out + n, dgamma, (size_t)p->width * sizeof *out);
    memcpy(out + n + p->width, dbeta, (size_t)p->width * sizeof *out);
    return out;
}

static void check_backward(const problem *p, pl_isa isa)
{
    int64_t n = p->rows * p->width, w = p->width;
    static double expected[40000], row[MAX_WIDTH], dgamma[MAX_WIDTH], dbeta[MAX_WIDTH];
    float *mean = guarded_f32(p->rows), *rstd = guarded_f32(p->rows);
    for (int64_t j = 0; j < w; j++) dgamma[j] = p->dgamma0[j], dbeta[j] = p->dbeta0[j];
    for (int64_t r = 0; r < p->rows; r++) {
        double m, s;
        for (int64_t j = 0; j < w; j++) row[j] = p->x[r * w + j];
        oracle_stats(w, p->rms, row, &m, &s);
        mean[r] = (float)m, rstd[r] = (float)s;
        oracle_backward(w, p->rms, row, p->gamma, p->dy + r * w, expected + r * w, dgamma);
        for (int64_t j = 0; j < w; j++) {
            if (p->has_beta) dbeta[j] += p->dy[r * w + j];
            if (p->has_add) expected[r * w + j] += p->add[r * w + j];
        }
    }
    float *first = run_backward(p, mean, rstd, (pl_team){1, isa}, ALIAS_NONE, p->rows);
    assert_near(first, expected, n, 1e-5, "dx");
    assert_near(first + n, dgamma, w, 4e-6 * sqrt((double)p->rows), "dgamma");
    assert_near(first + n + w, dbeta, w, 4e-6 * sqrt((double)p->rows), "dbeta");
    for (int t = 0; t < THREAD_COUNTS; t++)
        for (alias into = ALIAS_NONE; into < ALIAS_COUNT; into++) {
            if (into == ALIAS_ADD && !p->has_add) continue;
            int64_t sequences = 1 + (t + into) % 4, rows = t == 0 ? p->rows : sequences * p->tokens;
            float *out = run_backward(p, mean, rstd, (pl_team){thread_counts[t], isa}, into, rows);
            assert_memory_equal(out, first, (size_t)(n + 2 * w) * sizeof *out);
        }
}

static void check_without_gain(const int64_t shape[3], int has_add, pl_isa isa)
{
    problem p = make_problem(shape[0], shape[1], shape[2], 1, 0, has_add);
    p.gamma = NULL;
    check_forward(&p, isa);
    check_backward(&p, isa);
    guarded_check_all();
    guarded_free_all();
}

static void test_all_options(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},       {3, 1, 5},    {7, 7, 16},     {9, 3, 31},
                                        {129, 129, 256}, {30, 5, 788}, {2100, 300, 5}, {12, 6, 1536}};
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int options = 0; options < 8; options++) {
                problem p =
                    make_problem(shapes[s][0], shapes[s][1], shapes[s][2], options & 1, options >> 1 & 1, options >> 2);
                check_forward(&p, isa);
                check_backward(&p, isa);
                guarded_check_all();
                guarded_free_all();
                if ((options & 3) == 1) check_without_gain(shapes[s], options >> 2, isa);
            }
}

/* A large common offset must not cost the variance its digits: the reason for two passes. */
static void test_large_offset(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float *x = guarded_normal(300, 1), *gamma = guarded_f32(300), *y = guarded_f32(300);
        double wide[300], expected[300];
        for (int j = 0; j < 300; j++) gamma[j] = 1, x[j] += 10000, wide[j] = x[j];
        oracle_forward(300, 0, wide, gamma, NULL, expected);
        pl_norm_call call = {1, 300, 0, 1e-5f, x, gamma, NULL, y, NULL, NULL};
        pl_norm_exec(&call, (pl_team){1, isa});
        assert_near(y, expected, 300, 2e-3, "y");
        guarded_free_all();
    }
}

/* Views may start anywhere: the bits do not depend on alignment. */
static void test_unaligned(void **state)
{
    (void)state;
    enum { ROWS = 5, WIDTH = 117, COUNT = ROWS * WIDTH };
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        float *x = guarded_normal(COUNT, 1), *gamma = guarded_normal(WIDTH, 2), *y = guarded_f32(COUNT);
        float *x1 = memcpy(guarded_bytes(COUNT * 4, 4), x, COUNT * 4), *y1 = guarded_bytes(COUNT * 4, 12);
        pl_norm_call call = {ROWS, WIDTH, 0, 1e-5f, x, gamma, NULL, y, NULL, NULL};
        pl_norm_exec(&call, (pl_team){1, isa});
        call.x = x1, call.y = y1;
        pl_norm_exec(&call, (pl_team){1, isa});
        assert_memory_equal(y, y1, COUNT * sizeof *y);
        guarded_check_all();
        guarded_free_all();
    }
}

static void test_workspace_is_bounded(void **state)
{
    (void)state;
    pl_norm_bwd_call call = {.rows = 1 << 20, .width = 256}; /* RMS norm without a gain: nothing to sum up */
    for (call.tokens = 1; call.tokens <= call.rows; call.tokens *= 2)
        assert_true(pl_norm_bwd_workspace_bytes(&call, (pl_team){64, PL_ISA_BASELINE}) == 0);
    float gain = 1;
    call.gamma = &gain;
    for (call.tokens = 1; call.tokens <= call.rows; call.tokens *= 2)
        assert_true(pl_norm_bwd_workspace_bytes(&call, (pl_team){64, PL_ISA_BASELINE}) <= 64 * 2 * 256 * 4);
    call.rows = 0;
    assert_true(pl_norm_bwd_workspace_bytes(&call, (pl_team){1, PL_ISA_REF}) == 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle_gradient), cmocka_unit_test(test_all_options),
                                       cmocka_unit_test(test_large_offset), cmocka_unit_test(test_unaligned),
                                       cmocka_unit_test(test_workspace_is_bounded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
