/* Invariant 5: a smaller budget never gives a higher peak, a larger one is never predicted slower; and what does not
 * fit is refused with the bytes that are missing. The cost table is made up, so the right choice can be named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
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

/* A fixed part per call and a part per row: small micro-batches are slower by a known amount. */
static double seconds(void *context, const pl_graph *g, const pl_node *n)
{
    const pl_value *v = &g->value[n->out[0]];
    return *(double *)context + (v->shape.rank >= 3 ? 1e-9 * (double)pl_shape_elems(&v->shape) : 0);
}

static pl_graph *graph_of(int64_t layers, int64_t sequence)
{
    static pl_config c;
    pl_error err = {0};
    pl_graph *g;
    pl_config_default(&c);
    c.model.width = 32, c.model.layers = layers, c.model.heads = 2, c.model.feed_forward = 64;
    c.model.sequence = sequence;
    assert_int_equal(pl_model_build(&c, PL_FACT("vocab", 50), &g, &err), PL_OK);
    pl_id train = pl_graph_find_program(g, "train");
    assert_int_equal(pl_grad_differentiate(g, train, &err), PL_OK);
    pl_grad_update u = {
        0.9, 0.95, 1e-8, 0.1, 0, pl_graph_find_value(g, "input.lr"), pl_graph_find_value(g, "input.step")};
    assert_int_equal(pl_grad_add_update(g, train, &u, &err), PL_OK);
    return g;
}

static pl_graph *training_graph(void) { return graph_of(2, 16); }

static pl_fit_options options(double *overhead)
{
    return (pl_fit_options){.plan = {.team = {1, PL_ISA_BASELINE},
                                     .process = pl_process_options_default(),
                                     .cost = {seconds, NULL, overhead}},
                            .batch = 16,
                            .given = {.recompute = PL_RECOMPUTE_CHEAP},
                            .budget_bytes = PL_FIT_NO_BUDGET,
                            .stage = no_staging,
                            .settle = settled,
                            .context = overhead};
}

static double step_seconds(const pl_plan *p)
{
    return pl_plan_program_seconds(p, pl_graph_find_program(p->graph, "train"));
}

static void test_budgets_are_monotone(void **state)
{
    (void)state;
    double overhead = 1e-6, last_time = 0;
    uint64_t last_peak = UINT64_MAX;
    pl_error err = {0};
    pl_graph *g = training_graph();
    pl_fit_options o = options(&overhead);
    pl_plan *p;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    uint64_t most = pl_plan_charged_bytes(p);
    pl_plan_destroy(p);
    int fits = 0;
    for (uint64_t budget = most + 100000; budget > most / 2; budget -= 20011) {
        o.budget_bytes = budget;
        pl_status status = pl_fit(g, &o, &p, &err);
        if (status == PL_E_BUDGET) break;
        assert_int_equal(status, PL_OK);
        assert_true(pl_plan_charged_bytes(p) <= budget && pl_plan_charged_bytes(p) <= last_peak);
        assert_true(step_seconds(p) >= last_time * (1 - 1e-12));
        last_peak = pl_plan_charged_bytes(p);
        last_time = step_seconds(p);
        fits++;
        pl_plan_destroy(p);
    }
    assert_true(fits > 5);
    pl_graph_destroy(g);
}

static void test_what_does_not_fit_is_refused_with_a_sentence(void **state)
{
    (void)state;
    double overhead = 1e-6;
    pl_error err = {0};
    pl_graph *g = training_graph();
    pl_fit_options o = options(&overhead);
    pl_plan *p = NULL;
    o.budget_bytes = 1000;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_E_BUDGET);
    assert_non_null(strstr(err.text, "more than the budget of 1000"));
    assert_non_null(strstr(err.text, "largest at its peak"));
    assert_null(p);
    pl_graph_destroy(g);
}

/* Sums of floating point numbers depend on their order by a last bit; which of two such plans is better may not. */
static void test_the_same_nodes_in_another_order_take_the_same_time(void **state)
{
    (void)state;
    double overhead = 1e-6 / 3;
    pl_error err = {0};
    pl_graph *g = training_graph(), *bound;
    pl_fit_options o = options(&overhead);
    pl_fit_point point[2] = {0};
    for (int early = 0; early < 2; early++) {
        point[early].choice =
            (pl_choice){.micro_batch = 16, .threads = 1, .recompute = PL_RECOMPUTE_CHEAP, .update_early = early};
        assert_int_equal(pl_fit_bind(g, &o, &point[early].choice, &bound, &err), PL_OK);
        pl_fit_predict(&o, bound, &point[early]);
        pl_graph_destroy(bound);
    }
    assert_true(point[0].seconds > 0 && point[0].seconds == point[1].seconds);
    assert_true(point[0].work > 0 && point[0].work == point[1].work);
    pl_graph_destroy(g);
}

static int64_t micro_batch_of(const pl_plan *p)
{
    return p->graph->region[pl_graph_find_program(p->graph, "train")].batch;
}

/* The micro-batch orders sums: neither the clock nor the number of threads may have a say in it. */
static void test_the_batch_and_the_budget_alone_decide(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, sequence, micro_batch;
    } cases[] = {{16, 16, 16}, {64, 16, 32}, {96, 16, 32}, {33, 16, 11}, {37, 16, 1}, {8, 600, 1}, {8, 256, 2}};
    pl_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_graph *g = graph_of(2, cases[i].sequence);
        for (int threads = 1; threads <= 16; threads *= 4)
            for (double overhead = 0; overhead <= 1; overhead++) {
                pl_fit_options o = options(&overhead);
                pl_plan *p;
                o.batch = cases[i].batch, o.plan.team.threads = threads;
                assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
                assert_int_equal(micro_batch_of(p), cases[i].micro_batch);
                pl_plan_destroy(p);
            }
        pl_graph_destroy(g);
    }
}

/* Where huge pages are what a budget has no room for, pages of 4 KiB are taken, not a smaller micro-batch. */
static void test_a_tight_budget_takes_small_pages(void **state)
{
    (void)state;
    double overhead = 0;
    pl_error err = {0};
    pl_graph *g = training_graph();
    pl_fit_options o = options(&overhead);
    pl_plan *p;
    o.given.micro_batch = 4096, o.batch = 4096; /* an arena of many huge pages */
    o.given.huge_pages = true;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    assert_true(p->huge_pages);
    uint64_t charged = pl_plan_charged_bytes(p);
    pl_plan_destroy(p);
    o.budget_bytes = charged - 1;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    assert_false(p->huge_pages);
    assert_true(pl_plan_charged_bytes(p) < charged && micro_batch_of(p) == 4096);
    pl_plan_destroy(p);
    pl_graph_destroy(g);
}

/* Above eight sequences a node has no cost (its operands are too large to be measured): what is left of the
 * sum is no prediction. */
static double partly_known(void *context, const pl_graph *g, const pl_node *n)
{
    bool large = n->op == PL_OP_LINEAR && g->value[n->out[0]].shape.dim[0] >= 8;
    return large ? -1 : seconds(context, g, n);
}

static void test_a_sum_with_an_unknown_part_is_unknown(void **state)
{
    (void)state;
    double large = 1;
    pl_error err = {0};
    pl_graph *g = training_graph();
    pl_plan *p;
    pl_fit_options o = options(&large);
    o.plan.cost.seconds = partly_known;
    o.given.micro_batch = 4;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    assert_true(step_seconds(p) > 0);
    assert_int_equal(p->batch, 16);
    pl_plan_destroy(p);
    o.given.micro_batch = 16;
    assert_int_equal(pl_fit(g, &o, &p, &err), PL_OK);
    assert_true(step_seconds(p) < 0);
    pl_plan_destroy(p);
    pl_graph_destroy(g);
}

static void test_memory_refused_anywhere(void **state)
{
    (void)state;
    double overhead = 1e-6;
    pl_error err = {0};
    pl_graph *g = training_graph();
    pl_fit_options o = options(&overhead);
    uint64_t live = pl_alloc_live_blocks();
    for (uint64_t n = 1;; n = n < 50 ? n + 1 : n + n / 7) {
        pl_plan *p = NULL;
        pl_alloc_fail_at(n, 1);
        pl_status status = pl_fit(g, &o, &p, &err);
        pl_alloc_fail_at(0, 0);
        if (status == PL_OK) {
            pl_plan_destroy(p);
            break;
        }
        assert_int_equal(status, PL_E_NOMEM);
        assert_int_equal(pl_alloc_live_blocks(), live);
    }
    assert_int_equal(pl_alloc_live_blocks(), live);
    pl_graph_destroy(g);
}

/* Micro-batches of a few tokens have no chunks: what was planned for a graph with chunks is not meant for them. */
static void test_a_decision_stays_with_its_form(void **state)
{
    (void)state;
    double overhead = 1e-6;
    pl_error err = {0};
    pl_graph *g = graph_of(4, 2);
    pl_fit_options o = options(&overhead);
    pl_fit_result r = {0};
    pl_plan *p = NULL;
    o.batch = 1024, o.everything = true;
    o.open = 1u << PL_CHOICE_RECOMPUTE | 1u << PL_CHOICE_UPDATE | 1u << PL_CHOICE_CHUNKS | 1u << PL_CHOICE_LAYER_MAJOR;
    assert_int_equal(pl_fit_find(g, &o, &r, &p, &err), PL_OK);
    size_t chunked = 0, planned = 0;
    for (size_t i = 0; i < r.count; i++) {
        const pl_choice *c = &r.point[i].choice;
        chunked += c->feed_forward_rows && c->recompute == PL_RECOMPUTE_LISTED && c->layer_major;
        planned += c->micro_batch == 1 && c->recompute == PL_RECOMPUTE_LISTED;
    }
    assert_true(chunked && planned);
    pl_plan_destroy(p);
    pl_fit_result_deinit(&r);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_budgets_are_monotone),
                                       cmocka_unit_test(test_what_does_not_fit_is_refused_with_a_sentence),
                                       cmocka_unit_test(test_the_batch_and_the_budget_alone_decide),
                                       cmocka_unit_test(test_a_tight_budget_takes_small_pages),
                                       cmocka_unit_test(test_the_same_nodes_in_another_order_take_the_same_time),
                                       cmocka_unit_test(test_a_sum_with_an_unknown_part_is_unknown),
                                       cmocka_unit_test(test_a_decision_stays_with_its_form),
                                       cmocka_unit_test(test_memory_refused_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
