/* From a choice to a plan: the rewrites, then the real planner. Takes no decision, and no time: what a
 * plan holds is known before any kernel is measured (time.c says how long it takes). */
#include "fit/fit.h"
#include "ir/properties.h"
#include "rewrite/passes.h"

static bool trains(const pl_graph *g) { return pl_graph_find_trained(g) != PL_NONE; }

static uint64_t trips_of(const pl_fit_options *o, const pl_choice *c)
{
    return (uint64_t)((o->batch + c->micro_batch - 1) / c->micro_batch);
}

static pl_rewrites rewrites_of(const pl_fit_options *o, const pl_choice *c)
{
#define OF_PASS(name) .name = c->name,
#define OF_PLAN(name) /* pl_fit_plan_options */
    return (pl_rewrites){
#define PL_AXIS_FIELD(by, type, name, form, kernels) OF_##by(name)
#include "fit/axes.def"
        .trips = trips_of(o, c)};
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
                       "%s: %lld is not possible: %s in %s mixes the samples of a batch of %lld, so it "
                       "must see all at once; set it to auto",
                       (o->words ? o->words : &pl_words_plain)->at_once_key, (long long)c->micro_batch,
                       pl_op_name(g->node[mixer].op), g->node[mixer].scope, (long long)o->batch);
    if (c->layer_major && !pl_rewrite_layer_major_possible(g, train, &why))
        return pl_fail(err, PL_E_CONFIG, "train.layer_major is not possible: %s; set it to auto", why);
    if (c->update_early && !c->layer_major && !pl_rewrite_update_early_possible(g, train, trips_of(o, c), &why))
        return pl_fail(err, PL_E_CONFIG, "train.update_in_backward: on is not possible: %s; set it to auto", why);
    return PL_OK;
}

/* 16 bits may make impossible what comes behind them. */
static pl_status rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_pass end, pl_error *err)
{
    pl_rewrites r = rewrites_of(o, c);
    PL_TRY(pl_rewrite_passes(g, &r, 0, PL_PASS_LAYER_MAJOR, err));
    PL_TRY(check_possible(g, o, c, err));
    return pl_rewrite_passes(g, &r, PL_PASS_LAYER_MAJOR, end, err);
}

pl_status pl_fit_prepare(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    return rewrite(g, o, c, PL_PASS_RECOMPUTE, err);
}

/* The batch becomes a number, and then the order and what may share memory are settled. */
static pl_status bind(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    pl_rewrites r = rewrites_of(o, c);
    return pl_rewrite_passes(g, &r, PL_PASS_BIND_BATCH, PL_PASS_COUNT, err);
}

pl_status pl_fit_rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    PL_TRY(rewrite(g, o, c, PL_PASS_BIND_BATCH, err));
    return bind(g, o, c, err);
}

pl_plan_options pl_fit_plan_options(const pl_fit_options *o, const pl_choice *c)
{
    pl_plan_options how = o->plan;
    how.cost = (pl_cost_model){0};
    how.huge_pages = c->huge_pages;
    if (c->threads > 0 && c->threads < how.team.threads) how.team.threads = c->threads;
    return how;
}

/* A plan has its graph. */
static pl_status plan(pl_graph **g, const pl_fit_options *o, const pl_choice *c, pl_plan **made, pl_error *err)
{
    pl_plan_options how = pl_fit_plan_options(o, c);
    uint64_t batch = trains(*g) ? (uint64_t)o->batch : 0;
    PL_TRY(pl_plan_create(*g, &how, made, err));
    *g = NULL;
    (*made)->batch = batch;
    return PL_OK;
}

/* The road of one choice; made NULL: no further than the bound graph. */
static pl_status carry_out(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_graph **bound,
                           pl_plan **made, pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *g = pl_graph_copy(graph);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    PL_TRY_DONE(rewrite(g, o, c, PL_PASS_BIND_BATCH, err));
    PL_TRY_DONE(bind(g, o, c, err));
    PL_TRY_DONE(o->stage(o->context, g, c->micro_batch, err));
    PL_TRY_DONE(pl_graph_check(g, PL_STAGE_BOUND, err));
    if (made) PL_TRY_DONE(plan(&g, o, c, made, err));
    if (made) PL_TRY_DONE(o->settle(o->context, *made, err));
    if (bound) *bound = g, g = NULL;
done:
    if (status != PL_OK && made) pl_plan_destroy(*made), *made = NULL;
    pl_graph_destroy(g);
    return status;
}

pl_status pl_fit_bind(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_graph **bound,
                      pl_error *err)
{
    *bound = NULL;
    return carry_out(graph, o, c, bound, NULL, err);
}

pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_plan **made,
                           pl_error *err)
{
    *made = NULL;
    return carry_out(graph, o, c, NULL, made, err);
}
