/* The model of cloud heights in less than the classic recompute of a frame at a time takes: between two layers of a
 * frame what the first has read goes before the second reads other things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "config/config.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "ir/inputs.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

enum { BATCH = 4, HEIGHT = 96, WIDTH = 128 };

static pl_status no_staging(void *c, pl_graph *g, int64_t m, pl_error *e)
{
    return (void)c, (void)g, (void)m, (void)e, PL_OK;
}
static pl_status settled(void *c, pl_plan *p, pl_error *e) { return (void)c, (void)p, (void)e, PL_OK; }

static double seconds(void *context, const pl_graph *g, const pl_node *n)
{
    (void)context;
    return pl_node_work(g, n);
}

static void must(pl_status status, const pl_error *err)
{
    if (status != PL_OK) fail_msg("%s", err->text);
}

static pl_graph *training_graph(void)
{
    static pl_config c;
    pl_error err = {0};
    pl_facts e = {0};
    pl_graph *g = NULL;
    pl_config_default(&c);
    c.model.arch = PL_ARCH_CLOUDS;
    must(pl_config_set(&c, "channels", "[16,32,64]", "the test", &err), &err);
    pl_facts_add(&e, "height", HEIGHT);
    pl_facts_add(&e, "width", WIDTH);
    must(pl_model_build(&c, &e, &g, &err), &err);
    pl_id train = pl_graph_find_program(g, "train");
    must(pl_grad_differentiate(g, train, &err), &err);
    pl_grad_update u = {0.9, 0.999, 1e-8, 0, 1, pl_input_find(g, PL_INPUT_LR), pl_input_find(g, PL_INPUT_STEP), 1};
    must(pl_grad_add_update(g, train, &u, &err), &err);
    must(pl_rewrite_keep_programs(g, (const char *[]){"init", "train"}, 2, &err), &err);
    return g;
}

/* Bytes of the arena; what is charged beyond them is the same for all. */
static uint64_t fit(const pl_graph *g, pl_recompute_rule rule, uint64_t budget, uint64_t *charged)
{
    pl_error err = {0};
    pl_plan *p = NULL;
    pl_fit_result r = {0};
    pl_fit_options o = {
        .plan = {.team = {1, PL_ISA_BASELINE}, .process = pl_process_options_default(), .cost = {seconds, NULL, NULL}},
        .batch = BATCH,
        .given = {.recompute = rule},
        .open = budget == PL_FIT_NO_BUDGET ? 0 : 1u << PL_CHOICE_RECOMPUTE,
        .budget_bytes = budget,
        .stage = no_staging,
        .settle = settled};
    must(pl_fit_find(g, &o, &r, &p, &err), &err);
    const uint64_t bytes = p->arena->bytes;
    *charged = r.point[r.chosen].charged_bytes;
    pl_plan_destroy(p);
    pl_fit_result_deinit(&r);
    return bytes;
}

static void a_frame_fits_in_less_than_itself(void **state)
{
    (void)state;
    uint64_t charged, less;
    pl_graph *g = training_graph();
    const uint64_t full = fit(g, PL_RECOMPUTE_FULL, PL_FIT_NO_BUDGET, &charged);
    const uint64_t frame = sizeof(float) * BATCH * HEIGHT * WIDTH * 16; /* what the first convolution makes of one */
    assert_true(full < 3 * frame); /* whose pixels are four times what is left behind the pool */
    assert_true(fit(g, PL_RECOMPUTE_CHEAP, charged - frame / 2, &less) < full - frame / 3);
    assert_true(less <= charged - frame / 2);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_frame_fits_in_less_than_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
