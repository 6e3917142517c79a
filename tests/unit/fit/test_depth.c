/* Planning costs as much as the graph is long: four times the layers must not take sixteen times as long. Processor
 * time, the least of three tries; the bound lies between linear (4) and quadratic (16). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "config/config.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "models/model.h"
#include "support/program.h"

static pl_status no_staging(void *c, pl_graph *g, int64_t m, pl_error *e)
{
    return (void)c, (void)g, (void)m, (void)e, PL_OK;
}
static pl_status settled(void *c, pl_plan *p, pl_error *e) { return (void)c, (void)p, (void)e, PL_OK; }

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Model, gradient, update, rewrites, lives, placement, text, text read, judge. */
static void plan_once(int64_t layers)
{
    static pl_config c;
    pl_error err = {0};
    pl_graph *g;
    pl_plan *p, *again;
    pl_str text = {0};
    pl_config_default(&c);
    c.model.width = 8, c.model.layers = layers, c.model.heads = 2, c.model.feed_forward = 16, c.model.sequence = 8;
    assert_int_equal(pl_model_build(&c, PL_FACT("vocab", 20), &g, &err), PL_OK);
    pl_id train = pl_graph_find_program(g, "train");
    assert_int_equal(pl_grad_differentiate(g, train, &err), PL_OK);
    pl_grad_update u = {
        0.9, 0.95, 1e-8, 0.1, 1, pl_graph_find_value(g, "input.lr"), pl_graph_find_value(g, "input.step")};
    assert_int_equal(pl_grad_add_update(g, train, &u, &err), PL_OK);
    pl_fit_options o = {.plan = {.team = {1, PL_ISA_BASELINE}, .process = pl_process_options_default()},
                        .batch = 2,
                        .given = {.micro_batch = 1, .recompute = PL_RECOMPUTE_CHEAP},
                        .budget_bytes = PL_FIT_NO_BUDGET,
                        .stage = no_staging,
                        .settle = settled};
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    pl_plan_print(p, &text);
    assert_int_equal(pl_plan_parse("text", text.data, text.bytes, &again, &err), PL_OK);
    assert_int_equal(pl_plan_check(again, &err), PL_OK);
    assert_int_equal(again->batch, 2);
    pl_str_deinit(&text);
    pl_plan_destroy(again);
    pl_plan_destroy(p);
    pl_graph_destroy(g);
}

static double least_seconds(int64_t layers)
{
    double least = 1e9;
    for (int i = 0; i < 3; i++) {
        double begin = processor_seconds();
        plan_once(layers);
        double took = processor_seconds() - begin;
        if (took < least) least = took;
    }
    return least;
}

static void test_time_grows_with_depth_not_with_its_square(void **state)
{
    (void)state;
    double few = least_seconds(100), many = least_seconds(400);
    if (many > 9 * few) fail_msg("100 layers took %.3f s, 400 layers %.3f s", few, many);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_time_grows_with_depth_not_with_its_square)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
