/* An operator that mixes the samples of a micro-batch (batch norm in training) needs the whole batch at once. None that
 * is built so far does, so one of them is said to: everything asks pl_op_rule_of for an operator's rule, and this
 * program's answer has the flag set for layer norm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "config/config.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "models/model.h"
#include "support/program.h"

enum { BATCH = 16 };
static bool norm_mixes;

const pl_op_rule *__real_pl_op_rule_of(pl_op);
const pl_op_rule *__wrap_pl_op_rule_of(pl_op);
const pl_op_rule *__wrap_pl_op_rule_of(pl_op op)
{
    static pl_op_rule mixing;
    const pl_op_rule *rule = __real_pl_op_rule_of(op);
    if (!norm_mixes || op != PL_OP_LAYER_NORM) return rule;
    mixing = *rule;
    mixing.mixes_samples = true;
    return &mixing;
}

static pl_status no_staging(void *c, pl_graph *g, int64_t m, pl_error *e)
{
    return (void)c, (void)g, (void)m, (void)e, PL_OK;
}
static pl_status settled(void *c, pl_plan *p, pl_error *e) { return (void)c, (void)p, (void)e, PL_OK; }

static pl_fit_options options(int64_t micro_batch)
{
    return (pl_fit_options){.plan = {.team = {1, PL_ISA_BASELINE}, .process = pl_process_options_default()},
                            .batch = BATCH,
                            .given = {.micro_batch = micro_batch, .recompute = PL_RECOMPUTE_CHEAP},
                            .budget_bytes = PL_FIT_NO_BUDGET,
                            .everything = true,
                            .stage = no_staging,
                            .settle = settled};
}

static pl_graph *training_graph(void)
{
    static pl_config c;
    pl_error err = {0};
    pl_graph *g;
    pl_config_default(&c);
    c.model.width = 16, c.model.layers = 1, c.model.heads = 2, c.model.feed_forward = 16, c.model.sequence = 8;
    assert_int_equal(pl_model_build(&c, PL_FACT("vocab", 50), &g, &err), PL_OK);
    pl_id train = pl_graph_find_program(g, "train");
    assert_int_equal(pl_grad_differentiate(g, train, &err), PL_OK);
    pl_grad_update u = {0.9, 0.95, 1e-8, 0.1, 0, pl_input_find(g, PL_INPUT_LR), pl_input_find(g, PL_INPUT_STEP)};
    assert_int_equal(pl_grad_add_update(g, train, &u, &err), PL_OK);
    return g;
}

/* How many choices with less than the whole batch fit lists, and how many there are at all. */
static size_t count_smaller(const pl_graph *g, size_t *all)
{
    pl_error err = {0};
    pl_fit_options o = options(0);
    pl_fit_result r = {.batch = BATCH};
    size_t smaller = 0;
    assert_int_equal(pl_fit_list(g, &o, NULL, &r, &err), PL_OK);
    for (size_t i = 0; i < r.count; i++) smaller += r.point[i].choice.micro_batch != BATCH;
    *all = r.count;
    pl_free(r.point);
    return smaller;
}

static pl_status fit(const pl_graph *g, int64_t given, int64_t *took, pl_error *err)
{
    pl_fit_options o = options(given);
    pl_plan *p = NULL;
    o.everything = false;
    PL_TRY(pl_fit(g, &o, &p, err));
    *took = p->graph->region[pl_graph_find_trained(p->graph)].batch;
    pl_plan_destroy(p);
    return PL_OK;
}

static void what_mixes_samples_sees_the_whole_batch(void **state)
{
    (void)state;
    pl_error err = {0};
    int64_t took = 0;
    size_t all;
    pl_graph *g = training_graph();
    pl_id train = pl_graph_find_trained(g);
    norm_mixes = false;
    assert_int_equal(pl_graph_find_mixer(g, train), PL_NONE);
    assert_true(count_smaller(g, &all) > 0);
    assert_int_equal(fit(g, 4, &took, &err), PL_OK);
    assert_int_equal(took, 4);
    norm_mixes = true;
    pl_id mixer = pl_graph_find_mixer(g, train);
    assert_int_not_equal(mixer, PL_NONE);
    assert_int_equal(g->node[mixer].op, PL_OP_LAYER_NORM);
    assert_int_equal(count_smaller(g, &all), 0);
    assert_true(all > 0);
    assert_int_equal(fit(g, 0, &took, &err), PL_OK);
    assert_int_equal(took, BATCH);
    assert_int_equal(fit(g, BATCH, &took, &err), PL_OK);
    assert_int_equal(fit(g, 4, &took, &err), PL_E_CONFIG);
    assert_string_equal(err.text,
                        "train.micro_batch: 4 is not possible: layer_norm in block.0/attention mixes the samples of a "
                        "batch of 16, so it must see all at once; set it to auto");
    norm_mixes = false;
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    (void)argc, (void)argv;
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_mixes_samples_sees_the_whole_batch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
