/* A plan as the command would make it, for tests: default config, changed by "section.key=value" words. */
#ifndef PL_TESTS_REPORT_PIPELINE_H
#define PL_TESTS_REPORT_PIPELINE_H

#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "grad/differentiate.h"
#include "models/model.h"
#include "plan/plan.h"
#include "rewrite/passes.h"

typedef struct pipeline_request {
    const char *const *set; /* "section.key", "value", …, NULL */
    int64_t vocab, micro_batch;
    uint64_t accumulation;
    int threads;
    bool huge_pages;
    bool timed; /* a made-up cost model: one second per 100 GFLOP/s */
} pipeline_request;

static double pipeline_seconds(void *context, const pl_graph *g, const pl_node *n)
{
    (void)context;
    pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    return cost.flops / 100e9 + cost.bytes / 20e9;
}

static pl_status pipeline_rewrite(pl_graph *g, const pipeline_request *r, const pl_config *c, pl_error *err)
{
    pl_id train = pl_graph_find_program(g, "train");
    pl_grad_update update = {.beta1 = 0.9,
                             .beta2 = 0.95,
                             .epsilon = 1e-8,
                             .weight_decay = 0.1,
                             .clip = c->train.grad_clip,
                             .lr = pl_graph_find_value(g, "input.lr"),
                             .step = pl_graph_find_value(g, "input.step")};
    PL_TRY(pl_grad_differentiate(g, train, err));
    PL_TRY(pl_grad_add_update(g, train, &update, err));
    PL_TRY(pl_graph_group_programs(g, err));
    pl_rewrites rewrites = {.micro_batch = r->micro_batch, .trips = r->accumulation, .recompute = PL_RECOMPUTE_CHEAP};
    PL_TRY(pl_rewrite_passes(g, &rewrites, 0, PL_PASS_COUNT, err));
    return pl_graph_check(g, PL_STAGE_BOUND, err);
}

static inline pl_status pipeline_plan(const pipeline_request *r, pl_plan **plan, pl_error *err)
{
    pl_config *config = malloc(sizeof *config); /* 30 kB, and none of the library's memory */
    pl_graph *g = NULL;
    pl_status status = PL_OK;
    pl_plan_options options = {.team = {.threads = r->threads, .isa = PL_ISA_BASELINE},
                               .huge_pages = r->huge_pages,
                               .helper_threads = 1,
                               .process = pl_process_options_default()};
    if (r->timed) options.cost.seconds = pipeline_seconds;
    pl_config_default(config);
    for (size_t i = 0; r->set && r->set[i]; i += 2)
        PL_TRY_DONE(pl_config_set(config, r->set[i], r->set[i + 1], "--set", err));
    PL_TRY_DONE(pl_model_build(config, PL_FACT("vocab", r->vocab), &g, err));
    PL_TRY_DONE(pipeline_rewrite(g, r, config, err));
    PL_TRY_DONE(pl_process_start(err));
    PL_TRY_DONE(pl_plan_create(g, &options, plan, err));
    g = NULL;
    (*plan)->batch = (uint64_t)r->micro_batch * r->accumulation;
    (*plan)->arena->place_seconds = 0; /* not the same twice */
done:
    pl_graph_destroy(g);
    free(config);
    return status;
}

#endif
