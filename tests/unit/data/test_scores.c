/* Scores against sums and a sort in the plainest way, and the file of predictions, there and back. */
#include "unit/data/scratch.h"

#include <math.h>
#include <unistd.h>

#include "data/clouds/predictions.h"
#include "data/clouds/scores.h"
#include "support/comma.h"
#include "support/program.h"
#include "support/seed.h"

enum { MOST = 200 };
static uint64_t seed;
static scratch_random numbers;
static pl_error err;
static double truth[MOST], predicted[MOST];

static double next_unit(void) { return scratch_next(&numbers, 1u << 31) * 0x1p-31; }
static pl_scored at(const void *context, uint64_t i)
{
    (void)context;
    return (pl_scored){truth[i], predicted[i]};
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void near(const char *what, double got, double want)
{
    if (isnan(got) && isnan(want)) return;
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static void check_quantiles(const pl_scores *s, uint64_t n)
{
    static const double shares[] = {0.25, 0.5, 0.75, 0.9, 0.95};
    double e[MOST];
    for (uint64_t i = 0; i < n; i++) e[i] = fabs(predicted[i] - truth[i]);
    qsort(e, n, sizeof *e, ascending);
    for (int k = 0; k < 5; k++) {
        uint64_t rank = (uint64_t)ceil(shares[k] * (double)n);
        assert_true(s->quantile[k] == e[rank - 1]); /* one of them, to the bit */
    }
    const uint64_t rank = (uint64_t)ceil((double)(n + 1) * 0.9 - 1e-9);
    if (rank > n)
        assert_true(isnan(s->conformal));
    else
        assert_true(s->conformal == e[rank - 1]);
}

static void check_sums(const pl_scores *s, uint64_t n)
{
    double mean = 0, absolute = 0, squares = 0, error = 0, spread = 0, varies = 0, shares = 0;
    for (uint64_t i = 0; i < n; i++) mean += truth[i] / (double)n, error += (predicted[i] - truth[i]) / (double)n;
    for (uint64_t i = 0; i < n; i++) {
        const double e = predicted[i] - truth[i];
        absolute += fabs(e), squares += e * e, spread += (truth[i] - mean) * (truth[i] - mean);
        varies += (e - error) * (e - error), shares += fabs(e / truth[i]);
    }
    near("mae", s->mae, absolute / (double)n);
    near("mse", s->mse, squares / (double)n);
    near("rmse", s->rmse, sqrt(squares / (double)n));
    near("mape", s->mape, shares / (double)n);
    near("mean error", s->mean_error, error);
    near("std", s->std_error, sqrt(varies / (double)n));
    if (spread > 0) near("r2", s->r2, 1 - squares / spread);
}

static void test_random(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        const uint64_t n = 1 + scratch_next(&numbers, MOST);
        for (uint64_t i = 0; i < n; i++) {
            truth[i] = 0.1 + 2 * next_unit();
            predicted[i] = scratch_next(&numbers, 4) ? truth[i] + 0.5 * (next_unit() - 0.5) : truth[i];
        }
        const pl_scores s = pl_score(at, NULL, n);
        assert_true(s.count == n);
        check_sums(&s, n);
        check_quantiles(&s, n);
    }
}

static void test_degenerate(void **state)
{
    (void)state;
    pl_scores s = pl_score(at, NULL, 0);
    assert_true(s.count == 0 && isnan(s.mae) && isnan(s.r2) && isnan(s.quantile[0]) && isnan(s.conformal));
    truth[0] = truth[1] = 0, predicted[0] = 1, predicted[1] = -1;
    s = pl_score(at, NULL, 2);
    assert_true(s.mae == 1 && s.mean_error == 0 && isnan(s.mape) && isnan(s.r2) && isnan(s.conformal));
}

static void line_at(const void *context, uint64_t i, pl_prediction *p)
{
    const pl_prediction *all = context;
    *p = all[i];
}

static void test_file(void **state)
{
    pl_prediction all[MOST], *back = NULL;
    uint64_t count = 0;
    const char *path = scratch_path("predictions.csv");
    (void)state;
    for (int i = 0; i < MOST; i++) {
        all[i] = (pl_prediction){.frame = scratch_next(&numbers, 1u << 30), .seconds = 1.7e9 + 1e6 * next_unit()};
        snprintf(all[i].flight, sizeof all[i].flight, "flight-%d", i % 7);
        all[i].truth = (float)next_unit(), all[i].predicted = (float)next_unit(), all[i].mean = (float)next_unit();
    }
    assert_int_equal(pl_predictions_write(path, true, line_at, all, MOST, &err), PL_OK);
    if (pl_predictions_read(path, &back, &count, &err) != PL_OK) fail_msg("%s", err.text);
    assert_int_equal(count, MOST);
    for (int i = 0; i < MOST; i++) {
        assert_string_equal(back[i].flight, all[i].flight);
        assert_true(back[i].frame == all[i].frame && back[i].seconds == all[i].seconds);
        /* nine digits bring an f32 back */
        assert_true((float)back[i].truth == (float)all[i].truth && (float)back[i].predicted == (float)all[i].predicted);
        assert_true((float)back[i].mean == (float)all[i].mean);
    }
    pl_free(back);
}

static void refuse(const char *text, const char *words)
{
    pl_prediction *back;
    uint64_t count;
    const char *path = scratch_file("damaged.csv", text, strlen(text));
    assert_int_equal(pl_predictions_read(path, &back, &count, &err), PL_E_DATA);
    if (!strstr(err.text, words)) fail_msg("%s", err.text);
    assert_null(back);
}

static void test_damaged(void **state)
{
#define HEAD "flight,frame,seconds,true_km,predicted_km,mean_km\n"
    (void)state;
    refuse("", ":1: the first line of such a file is \"flight,frame");
    refuse("flight,frame\n", ":1: the first line of such a file is \"flight,frame");
    refuse(HEAD "a,1,2,3,4,5\na,1,2,3,4\n", ":3: is no prediction");
    refuse(HEAD "a,1,2,3,4,5,6\n", ":2: is no prediction");
    refuse(HEAD "a,-1,2,3,4,5\n", ":2: is no prediction");
    refuse(HEAD "a,1,2,x,4,5\n", ":2: is no prediction");
    refuse(HEAD ",1,2,3,4,5\n", ":2: is no prediction");
    refuse(HEAD "a,1,2,3,4,5", ":2: is no prediction"); /* cut off */
    refuse(HEAD "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,1,2,3,4,5\n", ":2: is no prediction");
}

/* A host program may have a locale that writes 0,5. */
static void test_comma(void **state)
{
    if (!comma_begin(scratch_path("."))) skip();
    test_file(state);
    comma_end();
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_degenerate),
                                       cmocka_unit_test(test_file), cmocka_unit_test(test_damaged),
                                       cmocka_unit_test(test_comma)};
    seed = test_seed_said(argc, argv);
    numbers = (scratch_random){.key = pl_philox_init(seed, 17)};
    return cmocka_run_group_tests(tests, scratch_make, scratch_remove);
}
