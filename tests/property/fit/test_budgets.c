/* Random small models with made-up kernel times, asked with a row of budgets: a smaller budget never plans a higher
 * peak, a larger one is never predicted slower, no kernel is measured when nothing fits, and the front says the same as
 * the answers. The judge plans every choice that the search listed and takes the fastest that fits, without bounds,
 * order or front. `property_fit test_budgets SEED` repeats one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "config/config.h"
#include "fit/fit.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "models/model.h"
#include "reference/tiny.h"
#include "support/program.h"
#include "support/seed.h"

#if defined(__SANITIZE_ADDRESS__)
enum { CASES = 2, BUDGETS = 4 }; /* the same code for each budget; the plain tree asks more of them */
#else
enum { CASES = 2, BUDGETS = 8 };
#endif
static uint64_t first_seed;
static bool one_case;

typedef struct world {
    tiny t;
    pl_graph *graph;
    pl_fit_options o;
    int measured;
    double call_seconds, byte_seconds;
} world;

static pl_status no_staging(void *c, pl_graph *g, int64_t m, pl_error *e)
{
    return (void)c, (void)g, (void)m, (void)e, PL_OK;
}

static pl_status settled(void *c, pl_plan *p, pl_error *e) { return (void)c, (void)p, (void)e, PL_OK; }

static pl_status measure(void *context, const pl_graph *g, pl_error *e)
{
    return (void)g, (void)e, ((world *)context)->measured++, PL_OK;
}

/* Anything but smooth: a kernel's time depends on its shape as if by chance. */
static double seconds(void *context, const pl_graph *g, const pl_node *n)
{
    const world *w = context;
    pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    double luck = tiny_uniform(w->t.seed, (uint64_t)n->op, (uint64_t)cost.bytes);
    return w->call_seconds + (0.7 + 0.6 * luck) * (w->byte_seconds * cost.bytes + 1e-10 * cost.flops);
}

static uint32_t open_to(uint64_t seed)
{
    uint32_t open = 1u << PL_CHOICE_RECOMPUTE | 1u << PL_CHOICE_UPDATE | 1u << PL_CHOICE_PRECISION;
    if (seed % 2 == 0) open |= 1u << PL_CHOICE_LAYER_MAJOR | 1u << PL_CHOICE_CHUNKS;
    if (seed % 3 != 0) open |= 1u << PL_CHOICE_LAYER_MAJOR_KEEP;
    return open;
}

static void begin(world *w, uint64_t seed)
{
    pl_error err = {0};
    memset(w, 0, sizeof *w);
    tiny_random(&w->t, seed);
    pl_config *c = &w->t.config;
    static const uint32_t leaves[] = {0, PL_FIT_ALLOW_BF16, PL_FIT_ALLOW_FP16};
    int64_t batch = (int64_t[]){1, 4, 6, 12, 16}[tiny_roll(&w->t, 0, 4)];
    w->call_seconds = 1e-5 * (double)tiny_roll(&w->t, 0, 5);
    w->byte_seconds = 1e-10 * (double)tiny_roll(&w->t, 1, 20);
    assert_int_equal(pl_model_build(c, PL_FACT("vocab", w->t.vocab), &w->graph, &err), PL_OK);
    pl_id train = pl_graph_find_program(w->graph, "train");
    assert_int_equal(pl_grad_differentiate(w->graph, train, &err), PL_OK);
    pl_grad_update u = {.beta1 = 0.9,
                        .beta2 = 0.95,
                        .epsilon = 1e-8,
                        .clip = (double)tiny_roll(&w->t, 0, 1),
                        .lr = pl_graph_find_value(w->graph, "input.lr"),
                        .step = pl_graph_find_value(w->graph, "input.step")};
    assert_int_equal(pl_grad_add_update(w->graph, train, &u, &err), PL_OK);
    int threads = (int)tiny_roll(&w->t, 1, 4);
    w->o = (pl_fit_options){.plan = {.team = {threads, PL_ISA_BASELINE},
                                     .process = pl_process_options_default(),
                                     .cost = {seconds, NULL, w}},
                            .batch = batch,
                            .given = {.recompute = PL_RECOMPUTE_CHEAP},
                            .open = open_to(seed),
                            .allow = leaves[tiny_roll(&w->t, 0, sizeof leaves / sizeof *leaves - 1)],
                            .budget_bytes = PL_FIT_NO_BUDGET,
                            .stage = no_staging,
                            .settle = settled,
                            .measure = measure,
                            .context = w};
}

typedef struct answer {
    bool fits;
    uint64_t charged;
    double seconds;
    uint32_t rank;
} answer;

static answer ask(world *w, uint64_t budget)
{
    pl_error err = {0};
    pl_fit_result r;
    pl_plan *plan;
    answer a = {0};
    w->o.budget_bytes = budget;
    w->measured = 0;
    pl_status status = pl_fit_find(w->graph, &w->o, &r, &plan, &err);
    if (status == PL_E_BUDGET) {
        assert_int_equal(w->measured, 0);
        assert_null(plan);
        a.charged = r.point[r.least].charged_bytes;
        pl_fit_result_deinit(&r);
        return a;
    }
    if (status != PL_OK) fail_msg("%s", err.text);
    a = (answer){true, pl_plan_charged_bytes(plan), r.point[r.chosen].seconds, r.point[r.chosen].rank};
    double again = pl_plan_program_seconds(plan, pl_graph_find_program(plan->graph, "train"));
    assert_true(again > a.seconds * (1 - 1e-9) && again < a.seconds * (1 + 1e-9));
    assert_true(a.charged <= budget);
    assert_int_equal(a.charged, r.point[r.chosen].charged_bytes);
    pl_plan_destroy(plan);
    pl_fit_result_deinit(&r);
    return a;
}

/* Every choice, planned and timed. */
static pl_fit_result list_all(world *w, uint64_t **charged)
{
    pl_error err = {0};
    pl_fit_result r;
    pl_plan *plan;
    w->o.budget_bytes = PL_FIT_NO_BUDGET;
    w->o.everything = true;
    assert_int_equal(pl_fit_find(w->graph, &w->o, &r, &plan, &err), PL_OK);
    pl_plan_destroy(plan);
    w->o.everything = false;
    *charged = calloc(r.count, sizeof **charged);
    for (size_t i = 0; i < r.count; i++) {
        assert_int_equal(pl_fit_candidate(w->graph, &w->o, &r.point[i].choice, &plan, &err), PL_OK);
        assert_int_equal(pl_fit_predict_plan(&w->o, &r.point[i].choice, plan, NULL), PL_OK);
        double s = pl_plan_program_seconds(plan, pl_graph_find_program(plan->graph, "train"));
        assert_true(s > r.point[i].seconds * (1 - 1e-9) && s < r.point[i].seconds * (1 + 1e-9));
        (*charged)[i] = pl_plan_charged_bytes(plan);
        assert_true((*charged)[i] >= r.point[i].least_bytes);
        if (r.point[i].charged_bytes) assert_int_equal(r.point[i].charged_bytes, (*charged)[i]);
        pl_plan_destroy(plan);
    }
    return r;
}

/* Each precision that is allowed was looked at, and no other; with fp16 no weight changes before all gradients were
 * seen to be finite. */
static void check_precisions(const world *w, const pl_fit_result *r)
{
    size_t of[2] = {0};
    for (size_t i = 0; i < r->count; i++) {
        const pl_choice *c = &r->point[i].choice;
        of[0] += c->precision == PL_DTYPE_BF16;
        of[1] += c->precision == PL_DTYPE_F16;
        if (c->precision == PL_DTYPE_F16) assert_true(!c->update_early && c->layer_major == 0);
    }
    assert_int_equal(of[0] > 0, (w->o.allow & PL_FIT_ALLOW_BF16) != 0);
    assert_int_equal(of[1] > 0, (w->o.allow & PL_FIT_ALLOW_FP16) != 0);
}

static void judge(const pl_fit_result *r, const uint64_t *charged, uint64_t budget, answer a)
{
    uint64_t least = UINT64_MAX;
    double best = -1;
    for (size_t i = 0; i < r->count; i++) {
        if (charged[i] < least) least = charged[i];
        if (charged[i] <= budget && (best < 0 || r->point[i].seconds < best)) best = r->point[i].seconds;
    }
    assert_int_equal(a.fits, least <= budget);
    if (!a.fits) assert_int_equal(a.charged, least);
    if (a.fits) assert_true(a.seconds <= (1 + PL_FIT_WORTH) * best);
}

static void try_case(uint64_t seed)
{
    world w;
    uint64_t *charged;
    answer before = {0};
    begin(&w, seed);
    pl_fit_result r = list_all(&w, &charged);
    check_precisions(&w, &r);
    uint64_t least = UINT64_MAX, most = 0;
    for (size_t i = 0; i < r.count; i++) {
        if (charged[i] < least) least = charged[i];
        if (charged[i] > most) most = charged[i];
    }
    for (int i = 0; i < BUDGETS; i++) {
        uint64_t budget = i == 0 ? least - 1 : least + (most - least) * (uint64_t)(i - 1) / (BUDGETS - 2);
        answer a = ask(&w, budget);
        judge(&r, charged, budget, a);
        bool slower = a.seconds > before.seconds * (1 + 1e-12);
        if (before.fits && (a.charged < before.charged || slower))
            fail_msg("budget %llu: %llu bytes, %g s; the smaller one before: %llu bytes, %g s",
                     (unsigned long long)budget, (unsigned long long)a.charged, a.seconds,
                     (unsigned long long)before.charged, before.seconds);
        before = a;
    }
    free(charged);
    pl_fit_result_deinit(&r);
    pl_graph_destroy(w.graph);
}

static void test_budgets(void **state)
{
    (void)state;
    for (int i = 0; i < (one_case ? 1 : CASES); i++) {
        printf("seed %llu\n", (unsigned long long)first_seed + (uint64_t)i);
        fflush(stdout);
        try_case(first_seed + (uint64_t)i);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed(argc, argv);
    one_case = argc > 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_budgets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
