/* What is read off the predictions of arch hybrid, against the numbers that they were made from: gates one by one,
 * shares one by one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/told.h"
#include "data/pages/reading.h"
#include "support/program.h"
#include "systems/hybrid_measure.h"

enum { PAGES = 5, GATES = 7, PADDING = 2 };

static double value_of(const pl_loss_metric *m, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(m[i].key, key) == 0) return m[i].value;
    return NAN;
}

static double gate_at(int page, int k) { return 0.5 + 0.4 * sin(1.7 * page + 0.9 * k); }

/* Rows past the last page say nonsense, which nobody reads. */
static void fill(float row[PAGES + PADDING][PL_TOLD_COLUMNS], int ways)
{
    for (int p = 0; p < PAGES + PADDING; p++) {
        double mean = 0, squares = 0;
        for (int k = 0; k < GATES; k++) mean += gate_at(p, k) / GATES;
        for (int k = 0; k < GATES; k++) squares += pow(gate_at(p, k) - mean, 2);
        float *r = row[p];
        r[PL_TOLD_WORDS] = 3, r[PL_TOLD_RIGHT] = (float)(p % 4), r[PL_TOLD_ALL_RIGHT] = p % 4 == 3;
        r[PL_TOLD_HALT] = p < 2 ? 1 : -1;
        r[PL_TOLD_FUSION] = (float)(squares / (GATES - 1)), r[PL_TOLD_FUSION + 1] = (float)mean;
        r[PL_TOLD_ADAPTER] = r[PL_TOLD_ADAPTER + 1] = (float)PL_TOLD_ABSENT;
        r[PL_TOLD_PLANNER] = (float)gate_at(p, 0);
        for (int k = 0; k < PL_TOLD_WAYS_MAX; k++)
            r[PL_TOLD_WAYS + k] = k < ways ? (float)(p * 0.3 * k) : (float)PL_TOLD_NO_WAY;
    }
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Sorted; how many they are is odd. */
static void order(int gates, double *least, double *median, double *largest)
{
    float all[PAGES * GATES];
    const size_t count = (size_t)(PAGES * gates);
    for (int p = 0; p < PAGES; p++)
        for (int k = 0; k < gates; k++) all[p * gates + k] = (float)gate_at(p, k);
    qsort(all, count, sizeof *all, by_size);
    *least = (double)all[0], *median = (double)all[count / 2], *largest = (double)all[count - 1];
}

static void moments(int gates, double *mean, double *deviation)
{
    double sum = 0, squares = 0;
    for (int p = 0; p < PAGES; p++)
        for (int k = 0; k < gates; k++) sum += gate_at(p, k), squares += pow(gate_at(p, k), 2);
    *mean = sum / (PAGES * gates);
    *deviation = sqrt(squares / (PAGES * gates) - *mean * *mean);
}

static double entropy(int ways)
{
    double all = 0;
    for (int p = 0; p < PAGES; p++) {
        double total = 0;
        for (int k = 0; k < ways; k++) total += exp(p * 0.3 * k);
        for (int k = 0; k < ways; k++) all -= exp(p * 0.3 * k) / total * log(exp(p * 0.3 * k) / total) / PAGES;
    }
    return all;
}

static size_t measure(int ways, pl_loss_metric *to)
{
    float row[PAGES + PADDING][PL_TOLD_COLUMNS];
    pl_reading r = {.setup.gates = GATES};
    r.count[PL_PART_VALIDATION] = PAGES;
    fill(row, ways);
    pl_histogram h[2] = {{0}, {0}}; /* fusion and planner: there is no adapter */
    for (int p = 0; p < PAGES; p++)
        for (int k = 0; k < GATES; k++) {
            const float gate = (float)gate_at(p, k);
            pl_histogram_add(&h[0], &gate, 1);
            if (k == 0) pl_histogram_add(&h[1], &gate, 1);
        }
    return pl_hybrid_measure(&r.data, &(pl_predicted){row[0], sizeof row / sizeof(float), h}, to);
}

static void check_order(const pl_loss_metric *m, size_t count, const char *name, int gates)
{
    double least, median, largest;
    char key[64];
    order(gates, &least, &median, &largest);
    snprintf(key, sizeof key, "%s_gate_min", name);
    assert_float_equal(value_of(m, count, key), least, 0);
    snprintf(key, sizeof key, "%s_gate_max", name);
    assert_float_equal(value_of(m, count, key), largest, 0);
    snprintf(key, sizeof key, "%s_gate_median", name);
    assert_float_equal(value_of(m, count, key), median, 0.5 / PL_HISTOGRAM_BINS + 1e-9);
}

static void every_number(void **state)
{
    (void)state;
    pl_loss_metric m[PL_LOSS_METRICS_MAX];
    double mean, deviation;
    const size_t count = measure(3, m);
    assert_float_equal(value_of(m, count, "token_accuracy"), (0 + 1 + 2 + 3 + 0) / 15.0, 1e-12);
    assert_float_equal(value_of(m, count, "exact_accuracy"), 1 / 5.0, 1e-12);
    assert_float_equal(value_of(m, count, "q_halt_accuracy"), 2 / 5.0, 1e-12); /* pages 2 and 4 */
    moments(GATES, &mean, &deviation);
    assert_float_equal(value_of(m, count, "fusion_gate_mean"), mean, 1e-6);
    assert_float_equal(value_of(m, count, "fusion_gate_std"), deviation, 1e-6);
    moments(1, &mean, &deviation);
    assert_float_equal(value_of(m, count, "planner_gate_mean"), mean, 1e-6);
    assert_float_equal(value_of(m, count, "planner_gate_std"), deviation, 1e-6);
    assert_true(isnan(value_of(m, count, "adapter_gate_mean")));
    assert_true(isnan(value_of(m, count, "adapter_gate_median")));
    check_order(m, count, "fusion", GATES);
    check_order(m, count, "planner", 1);
    assert_float_equal(value_of(m, count, "path_entropy"), entropy(3), 1e-6);
}

static void as_many_ways_as_there_are(void **state)
{
    (void)state;
    pl_loss_metric m[PL_LOSS_METRICS_MAX];
    assert_true(isnan(value_of(m, measure(0, m), "path_entropy")));
    assert_float_equal(value_of(m, measure(1, m), "path_entropy"), 0, 1e-12);
    assert_float_equal(value_of(m, measure(PL_TOLD_WAYS_MAX, m), "path_entropy"), entropy(PL_TOLD_WAYS_MAX), 1e-6);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_number), cmocka_unit_test(as_many_ways_as_there_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
