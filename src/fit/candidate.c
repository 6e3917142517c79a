/* From a choice to a plan: the rewrites, in their order, then the real planner. Takes no decision, and no time: what a
 * plan holds is known before any kernel is measured (time.c says how long it takes). */
#include "fit/fit.h"
#include "rewrite/rewrite.h"

/* A graph of another command has the region, but no nodes in it. */
static bool trains(const pl_graph *g)
{
    uint64_t first, last = 0;
    pl_id train = pl_graph_find_program(g, "train");
    if (train != PL_NONE) pl_plan_program_span(g, train, &first, &last);
    return last > 0;
}

static pl_status update_early(pl_graph *g, pl_id train, uint64_t trips, pl_error *err)
{
    const char *why;
    if (pl_rewrite_update_early_possible(g, train, trips, &why)) return pl_rewrite_update_order(g, train, err);
    return pl_fail(err, PL_E_CONFIG, "train.update_in_backward: on is not possible: %s; set it to auto", why);
}

static pl_status recompute(pl_graph *g, pl_id train, const pl_choice *c, pl_error *err)
{
    switch (c->recompute) {
    case PL_CHOICE_STORE_ALL:
        return PL_OK;
    case PL_CHOICE_RECOMPUTE_CHEAP:
        return pl_rewrite_recompute_cheap(g, train, err);
    case PL_CHOICE_RECOMPUTE_FULL:
        return pl_rewrite_recompute_full(g, train, err);
    case PL_CHOICE_RECOMPUTE_PLANNED:
        return pl_rewrite_recompute(g, c->decision, err);
    }
    return PL_OK;
}

static pl_status layer_major(pl_graph *g, pl_id train, uint64_t trips, const pl_choice *c, pl_error *err)
{
    const char *why;
    pl_layer_major how = {.blocks = c->layer_major, .keep_every = c->layer_major_keep, .trips = trips};
    if (pl_rewrite_layer_major_possible(g, train, &why)) return pl_rewrite_layer_major(g, train, &how, err);
    return pl_fail(err, PL_E_CONFIG, "train.layer_major is not possible: %s; set it to auto", why);
}

static uint64_t trips_of(const pl_fit_options *o, const pl_choice *c)
{
    return (uint64_t)((o->batch + c->micro_batch - 1) / c->micro_batch);
}

pl_status pl_fit_prepare(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    pl_id train = pl_graph_find_program(g, "train"), evaluate = pl_graph_find_program(g, "evaluate");
    if (c->feed_forward_rows && train != PL_NONE)
        PL_TRY(pl_rewrite_chunk_feed_forward(g, train, c->feed_forward_rows, err));
    if (c->feed_forward_rows && evaluate != PL_NONE)
        PL_TRY(pl_rewrite_chunk_feed_forward(g, evaluate, c->feed_forward_rows, err));
    return c->layer_major && trains(g) ? layer_major(g, train, trips_of(o, c), c, err) : PL_OK;
}

pl_status pl_fit_rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    static const char *const programs[] = {"train", "evaluate"};
    static const pl_dtype moment_dtypes[] = {[PL_CHOICE_STATE_F32] = PL_DTYPE_F32,
                                             [PL_CHOICE_STATE_BF16] = PL_DTYPE_BF16,
                                             [PL_CHOICE_STATE_8BIT] = PL_DTYPE_U8};
    uint64_t trips = trips_of(o, c);
    pl_id train = pl_graph_find_program(g, "train");
    PL_TRY(pl_fit_prepare(g, o, c, err));
    if (train != PL_NONE) PL_TRY(recompute(g, train, c, err));
    PL_TRY(pl_rewrite_optimizer_state(g, moment_dtypes[c->optimizer_state], err));
    if (c->layer_major && trains(g)) PL_TRY(pl_rewrite_drop_unread(g, train, err));
    PL_TRY(pl_rewrite_fuse(g, err));
    for (int i = 0; i < 2; i++) {
        pl_id program = pl_graph_find_program(g, programs[i]);
        if (program != PL_NONE) PL_TRY(pl_rewrite_bind_batch(g, program, c->micro_batch, "micro", trips, err));
    }
    if (c->layer_major && trains(g))
        PL_TRY(pl_rewrite_update_order(g, train, err));
    else if (c->update_early && trains(g))
        PL_TRY(update_early(g, train, trips, err));
    PL_TRY(pl_rewrite_in_place(g, err));
    return pl_rewrite_mark_saved(g, err);
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
