/* From a choice to a plan: the rewrites, then the real planner. Takes no decision, and no time: what a
 * plan holds is known before any kernel is measured (time.c says how long it takes). */
#include "fit/fit.h"
#include "ir/facts.h"
#include "rewrite/passes.h"

static bool trains(const pl_graph *g) { return pl_graph_find_trained(g) != PL_NONE; }

static uint64_t trips_of(const pl_fit_options *o, const pl_choice *c)
{
    return (uint64_t)((o->batch + c->micro_batch - 1) / c->micro_batch);
}

static pl_rewrites rewrites_of(const pl_fit_options *o, const pl_choice *c)
{
    static const pl_recompute_rule rules[] = {[PL_CHOICE_STORE_ALL] = PL_RECOMPUTE_NOTHING,
                                              [PL_CHOICE_RECOMPUTE_CHEAP] = PL_RECOMPUTE_CHEAP,
                                              [PL_CHOICE_RECOMPUTE_FULL] = PL_RECOMPUTE_FULL,
                                              [PL_CHOICE_RECOMPUTE_PLANNED] = PL_RECOMPUTE_LISTED};
    static const pl_dtype moments[] = {[PL_CHOICE_STATE_F32] = PL_DTYPE_F32,
                                       [PL_CHOICE_STATE_BF16] = PL_DTYPE_BF16,
                                       [PL_CHOICE_STATE_8BIT] = PL_DTYPE_U8};
    return (pl_rewrites){.micro_batch = c->micro_batch,
                         .trips = trips_of(o, c),
                         .precision = c->precision,
                         .feed_forward_rows = c->feed_forward_rows,
                         .layer_major = c->layer_major,
                         .layer_major_keep = c->layer_major_keep,
                         .recompute = rules[c->recompute],
                         .decision = c->decision,
                         .moments = moments[c->optimizer_state],
                         .update_early = c->update_early};
}

/* What a key asks for and this model, or this batch, cannot have. */
static pl_status check_possible(const pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    const char *why;
    pl_id train = pl_graph_find_trained(g);
    if (!trains(g)) return PL_OK;
    pl_id mixer = pl_graph_find_mixer(g, train);
    if (mixer != PL_NONE && c->micro_batch != o->batch)
        return pl_fail(err, PL_E_CONFIG,
                       "train.micro_batch: %lld is not possible: %s in %s mixes the samples of a batch of %lld, so it "
                       "must see all at once; set it to auto",
                       (long long)c->micro_batch, pl_op_name(g->node[mixer].op), g->node[mixer].scope,
                       (long long)o->batch);
    if (c->layer_major && !pl_rewrite_layer_major_possible(g, train, &why))
        return pl_fail(err, PL_E_CONFIG, "train.layer_major is not possible: %s; set it to auto", why);
    if (c->update_early && !c->layer_major && !pl_rewrite_update_early_possible(g, train, trips_of(o, c), &why))
        return pl_fail(err, PL_E_CONFIG, "train.update_in_backward: on is not possible: %s; set it to auto", why);
    return PL_OK;
}

static pl_status rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_pass end, pl_error *err)
{
    pl_rewrites r = rewrites_of(o, c);
    PL_TRY(pl_rewrite_passes(g, &r, PL_PASS_PRECISION, PL_PASS_LAYER_MAJOR, err));
    PL_TRY(check_possible(g, o, c, err)); /* 16 bits may make it impossible */
    return pl_rewrite_passes(g, &r, PL_PASS_LAYER_MAJOR, end, err);
}

pl_status pl_fit_prepare(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    return rewrite(g, o, c, PL_PASS_RECOMPUTE, err);
}

pl_status pl_fit_rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    return rewrite(g, o, c, PL_PASS_COUNT, err);
}

pl_status pl_fit_bind(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_graph **bound,
                      pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *g = pl_graph_copy(graph);
    *bound = NULL;
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    PL_TRY_DONE(pl_fit_rewrite(g, o, c, err));
    PL_TRY_DONE(o->stage(o->context, g, c->micro_batch, err));
    PL_TRY_DONE(pl_graph_check(g, PL_STAGE_BOUND, err));
    *bound = g;
    return PL_OK;
done:
    pl_graph_destroy(g);
    return status;
}

pl_plan_options pl_fit_plan_options(const pl_fit_options *o, const pl_choice *c)
{
    pl_plan_options how = o->plan;
    how.cost = (pl_cost_model){0};
    how.huge_pages = c->huge_pages;
    if (c->threads > 0 && c->threads < how.team.threads) how.team.threads = c->threads;
    return how;
}

pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_plan **plan,
                           pl_error *err)
{
    pl_plan_options how = pl_fit_plan_options(o, c);
    pl_graph *g;
    *plan = NULL;
    PL_TRY(pl_fit_bind(graph, o, c, &g, err));
    pl_status status = pl_plan_create(g, &how, plan, err);
    if (status != PL_OK) {
        pl_graph_destroy(g);
        return status;
    }
    (*plan)->batch = trains((*plan)->graph) ? (uint64_t)o->batch : 0;
    status = o->settle(o->context, *plan, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    return status;
}
