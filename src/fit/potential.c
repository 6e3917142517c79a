/* What a training's step would take with activations of 16 bits: for the report, no choice depends on it. Where bf16 is
 * allowed it was looked at; else the chosen plan is rewritten so, and its time is known where its kernels were measured
 * before. A decision of the recompute planner names nodes of the f32 graph: what is computed again follows the rule
 * then. */
#include "fit/fit.h"

static void take_fastest(const pl_fit_result *r, pl_fit_point *best)
{
    for (size_t i = 0; i < r->count; i++) {
        const pl_fit_point *p = &r->point[i];
        uint64_t least = p->charged_bytes ? p->charged_bytes : p->least_bytes;
        bool counts = p->choice.precision == PL_DTYPE_BF16 && p->seconds >= 0 && least <= r->budget_bytes;
        if (counts && (best->least_bytes == 0 || p->seconds < best->seconds)) *best = *p, best->least_bytes = least;
    }
}

static pl_status rewrite_chosen(const pl_fit_search *s, pl_fit_point *made, pl_error *err)
{
    pl_graph *g;
    made->choice = s->result->point[s->result->chosen].choice;
    made->choice.precision = PL_DTYPE_BF16;
    if (made->choice.recompute == PL_RECOMPUTE_LISTED) {
        made->choice.recompute = s->options->given.recompute;
        made->choice.decision = NULL;
    }
    pl_plan_options how = pl_fit_plan_options(s->options, &made->choice);
    PL_TRY(pl_fit_bind(s->graph, s->options, &made->choice, &g, err));
    pl_status status = pl_plan_find_least(g, &how, &made->least_bytes, err);
    pl_fit_predict(s->options, g, made);
    pl_graph_destroy(g);
    return status;
}

pl_status pl_fit_find_potential(const pl_fit_search *s, pl_error *err)
{
    pl_fit_result *r = s->result;
    bool whole = r->trained && s->options->everything && r->point[r->chosen].choice.precision == PL_DTYPE_F32;
    if (!whole || r->point[r->chosen].seconds < 0) return PL_OK;
    if (!(pl_fit_leave(s->options, PL_CHOICE_PRECISION) & PL_FIT_ALLOW_BF16)) return rewrite_chosen(s, &r->narrow, err);
    take_fastest(r, &r->narrow);
    return PL_OK;
}
