/* Memory refused at the n-th request, for every n, on the whole road: model, gradient, update, rewrites, plan, print,
 * parse, check, program. Each time: PL_E_NOMEM with a sentence, and nothing leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grad/differentiate.h"
#include "models/model.h"
#include "reference/tiny.h"
#include "rewrite/passes.h"
#include "support/program.h"

static pl_status rewrite(const tiny *t, pl_graph *g, pl_error *err)
{
    pl_id train = pl_graph_find_program(g, "train");
    pl_grad_update u = {
        0.9, 0.95, 1e-8, 0.1, 1, pl_graph_find_value(g, "input.lr"), pl_graph_find_value(g, "input.step")};
    PL_TRY(pl_grad_differentiate(g, train, err));
    PL_TRY(pl_grad_add_update(g, train, &u, err));
    pl_rewrites r = {.micro_batch = t->micro, .trips = t->trips, .recompute = PL_RECOMPUTE_CHEAP};
    PL_TRY(pl_rewrite_passes(g, &r, 0, PL_PASS_COUNT, err));
    return pl_graph_check(g, PL_STAGE_BOUND, err);
}

static pl_status print_and_read(const pl_plan *plan, pl_plan **again, pl_error *err)
{
    pl_str text = {0};
    pl_plan_print(plan, &text);
    pl_status status = text.failed ? pl_fail(err, PL_E_NOMEM, "no memory to print the plan")
                                   : pl_plan_parse("plan", pl_str_text(&text), text.bytes, again, err);
    pl_str_deinit(&text);
    return status;
}

static pl_status whole_road(const tiny *t, pl_error *err)
{
    static _Alignas(64) unsigned char memory[1 << 18];
    pl_status status;
    pl_graph *g = NULL, *copy = NULL;
    pl_plan *plan = NULL, *again = NULL;
    pl_program *program = NULL;
    pl_plan_options options = {.team = {2, PL_ISA_BASELINE}, .process = pl_process_options_default()};
    PL_TRY_DONE(pl_model_build(&t->config, PL_FACT("vocab", t->vocab), &g, err));
    PL_TRY_DONE(rewrite(t, g, err));
    copy = pl_graph_copy(g);
    if (!copy) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for a copy"));
    PL_TRY_DONE(pl_plan_create(g, &options, &plan, err));
    g = NULL;
    PL_TRY_DONE(print_and_read(plan, &again, err));
    PL_TRY_DONE(pl_plan_check(again, err));
    PL_TRY_DONE(pl_program_create(again, memory, sizeof memory, &program, err));
done:
    pl_program_destroy(program);
    pl_plan_destroy(again);
    pl_plan_destroy(plan);
    pl_graph_destroy(copy);
    pl_graph_destroy(g);
    return status;
}

static void try_model(pl_config_arch arch, int forever)
{
    static tiny t;
    pl_error err = {0};
    tiny_random(&t, 5);
    t.config.model.arch = arch;
    t.config.model.layers = 1;
    uint64_t live = pl_alloc_live_blocks(), requests = pl_alloc_request_count(), errors = 0;
    assert_int_equal(whole_road(&t, &err), PL_OK);
    requests = pl_alloc_request_count() - requests;
    for (uint64_t n = 1; n <= requests; n++) {
        err = (pl_error){0};
        pl_alloc_fail_at(n, forever);
        pl_status status = whole_road(&t, &err);
        pl_alloc_fail_at(0, 0);
        if (pl_alloc_live_blocks() != live)
            fail_msg("request %llu refused: %llu blocks leaked", (unsigned long long)n,
                     (unsigned long long)(pl_alloc_live_blocks() - live));
        errors += status != PL_OK; /* the placer's search goes on without what it was refused */
        if (status == PL_OK) continue;
        if (status != PL_E_NOMEM || !err.text[0])
            fail_msg("request %llu refused: %s \"%s\"", (unsigned long long)n, pl_status_name(status), err.text);
    }
    assert_true(errors > 100 && errors > requests / 2);
}

static void every_refusal_is_an_error_and_nothing_leaks(void **state)
{
    (void)state;
    try_model(PL_ARCH_GPT, 0);
    try_model(PL_ARCH_MLP, 1);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_refusal_is_an_error_and_nothing_leaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
