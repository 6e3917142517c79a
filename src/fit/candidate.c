/* From a choice to a plan: the rewrites, in their order, then the real planner. Takes no decision. */
#include "fit/fit.h"
#include "rewrite/rewrite.h"

static pl_status rewrite(pl_graph *g, const pl_fit_options *o, const pl_choice *c, pl_error *err)
{
    static const char *const programs[] = {"train", "evaluate"};
    uint64_t trips = (uint64_t)((o->batch + c->micro_batch - 1) / c->micro_batch);
    pl_id train = pl_graph_find_program(g, "train");
    if (train != PL_NONE) PL_TRY(pl_rewrite_precision(g, train, c->precision, err));
    if (c->recompute == PL_CHOICE_RECOMPUTE_CHEAP && train != PL_NONE)
        PL_TRY(pl_rewrite_recompute_cheap(g, train, err));
    PL_TRY(pl_rewrite_fuse(g, err));
    for (int i = 0; i < 2; i++) {
        pl_id program = pl_graph_find_program(g, programs[i]);
        if (program != PL_NONE) PL_TRY(pl_rewrite_bind_batch(g, program, c->micro_batch, "micro", trips, err));
    }
    PL_TRY(pl_rewrite_in_place(g, err));
    return pl_rewrite_mark_saved(g, err);
}

/* A graph of another command has the region, but no nodes in it. */
static bool trains(const pl_graph *g)
{
    uint64_t first, last = 0;
    pl_id train = pl_graph_find_program(g, "train");
    if (train != PL_NONE) pl_plan_program_span(g, train, &first, &last);
    return last > 0;
}

pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_plan **plan,
                           pl_error *err)
{
    pl_status status = PL_OK;
    pl_plan_options how = o->plan;
    pl_graph *g = pl_graph_copy(graph);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    how.huge_pages = c->huge_pages;
    PL_TRY_DONE(rewrite(g, o, c, err));
    PL_TRY_DONE(o->stage(o->context, g, c->micro_batch, err));
    PL_TRY_DONE(pl_graph_check(g, PL_STAGE_BOUND, err));
    if (o->measure) PL_TRY_DONE(o->measure(o->context, g, err));
    PL_TRY_DONE(pl_plan_create(g, &how, plan, err));
    g = NULL;
    (*plan)->batch = trains((*plan)->graph) ? (uint64_t)o->batch : 0;
    status = o->settle(o->context, *plan, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
done:
    pl_graph_destroy(g);
    return status;
}
