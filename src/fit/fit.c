#include "fit/fit.h"

#include <stdio.h>
#include <string.h>

#include "rewrite/rewrite.h"

enum { CANDIDATES_MAX = 16, TOKENS_ENOUGH = 512 }; /* beyond that many rows a GEMM gains nothing (bench_gemm) */

static pl_status rewrite(pl_graph *g, const pl_fit_options *o, int64_t micro_batch, pl_error *err)
{
    static const char *const programs[] = {"train", "evaluate"};
    uint64_t trips = (uint64_t)((o->batch + micro_batch - 1) / micro_batch);
    pl_id train = pl_graph_find_program(g, "train");
    if (o->recompute && train != PL_NONE) PL_TRY(pl_rewrite_recompute_cheap(g, train, err));
    PL_TRY(pl_rewrite_fuse(g, err));
    for (int i = 0; i < 2; i++) {
        pl_id program = pl_graph_find_program(g, programs[i]);
        if (program != PL_NONE) PL_TRY(pl_rewrite_bind_batch(g, program, micro_batch, "micro", trips, err));
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

pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *o, int64_t micro_batch, pl_plan **plan,
                           pl_error *err)
{
    pl_status status = PL_OK;
    pl_graph *g = pl_graph_copy(graph);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the graph");
    PL_TRY_DONE(rewrite(g, o, micro_batch, err));
    PL_TRY_DONE(o->stage(o->context, g, micro_batch, err));
    PL_TRY_DONE(pl_graph_check(g, PL_STAGE_BOUND, err));
    if (o->measure) PL_TRY_DONE(o->measure(o->context, g, err));
    PL_TRY_DONE(pl_plan_create(g, &o->plan, plan, err));
    g = NULL;
    (*plan)->batch = trains((*plan)->graph) ? (uint64_t)o->batch : 0;
    status = o->settle(o->context, *plan, err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
done:
    pl_graph_destroy(g);
    return status;
}

/* Divisors of the batch, up to the size at which larger ones gain nothing; at least 1 and the smallest above it. */
static int find_candidates(const pl_fit_options *o, int64_t candidate[CANDIDATES_MAX])
{
    int count = 0;
    if (o->micro_batch) {
        candidate[0] = o->micro_batch;
        return 1;
    }
    for (int64_t m = 1; m <= o->batch && count < CANDIDATES_MAX; m++)
        if (o->batch % m == 0 && (m == 1 || m * o->sequence <= TOKENS_ENOUGH)) candidate[count++] = m;
    return count;
}

/* The largest values alive at the plan's peak, in words. */
static void describe_peak(const pl_plan *p, char *text, size_t room)
{
    size_t used = 0;
    uint64_t below = UINT64_MAX;
    text[0] = 0;
    for (int rank = 0; rank < 3; rank++) {
        pl_id best = PL_NONE;
        for (size_t i = 0; i < p->graph->value_count; i++) {
            const pl_block *b = &p->value[i];
            bool alive = b->bytes && b->first <= p->peak_position && p->peak_position < b->last && b->bytes < below;
            if (alive && (best == PL_NONE || b->bytes > p->value[best].bytes)) best = (pl_id)i;
        }
        if (best == PL_NONE || used >= room) return;
        below = p->value[best].bytes;
        used += (size_t)snprintf(text + used, room - used, "%s%s (%llu bytes)", rank ? ", " : "",
                                 p->graph->value[best].name, (unsigned long long)below);
    }
}

static pl_status refuse(const pl_plan *smallest, const pl_fit_options *o, pl_error *err)
{
    char alive[400], change[200];
    uint64_t need = pl_plan_charged_bytes(smallest), by_role[PL_ROLE_COUNT] = {0};
    describe_peak(smallest, alive, sizeof alive);
    for (size_t i = 0; i < smallest->graph->value_count; i++)
        by_role[smallest->graph->value[i].role] += smallest->value[i].bytes;
    uint64_t state = by_role[PL_ROLE_WEIGHT] + by_role[PL_ROLE_GRADIENT] + by_role[PL_ROLE_OPTIMIZER];
    if (o->micro_batch > 1)
        snprintf(change, sizeof change, "set train.micro_batch to auto");
    else if (state > o->budget_bytes)
        snprintf(change, sizeof change,
                 "weights, gradients and optimizer state alone are %llu bytes: a smaller model.width or model.layers "
                 "is needed",
                 (unsigned long long)state);
    else
        snprintf(change, sizeof change, "raise the budget to %llu bytes, or make model.sequence or model.width smaller",
                 (unsigned long long)need);
    return pl_fail(err, PL_E_BUDGET,
                   "the smallest plan needs %llu bytes charged (resident, page tables, kernel, files being written), "
                   "%llu more than the budget of %llu; largest at its peak: %s; %s",
                   (unsigned long long)need, (unsigned long long)(need - o->budget_bytes),
                   (unsigned long long)o->budget_bytes, alive, change);
}

/* Not above 0: not known. Such a plan does not take part in the choice by time. */
static double step_seconds(const pl_plan *p)
{
    pl_id train = pl_graph_find_program(p->graph, "train");
    return train == PL_NONE ? 0 : pl_plan_program_seconds(p, train);
}

/* Without predictions: the smallest that gives a GEMM 256 rows. */
static size_t choose_untimed(const pl_fit_options *o, pl_plan *const *plan, const int64_t *candidate, int count)
{
    size_t chosen = 0;
    for (int i = 0; i < count; i++) {
        if (pl_plan_charged_bytes(plan[i]) > o->budget_bytes) break;
        chosen = (size_t)i;
        if (candidate[i] * o->sequence >= 256) break;
    }
    return chosen;
}

static size_t choose(const pl_fit_options *o, pl_plan *const *plan, const int64_t *candidate, int count)
{
    double fastest = 0;
    for (int i = 0; i < count; i++) {
        double s = step_seconds(plan[i]);
        if (s > 0 && pl_plan_charged_bytes(plan[i]) <= o->budget_bytes && (fastest == 0 || s < fastest)) fastest = s;
    }
    if (fastest == 0) return choose_untimed(o, plan, candidate, count);
    size_t best = SIZE_MAX;
    for (int i = 0; i < count; i++) {
        double s = step_seconds(plan[i]);
        bool fits = pl_plan_charged_bytes(plan[i]) <= o->budget_bytes && s > 0 && s <= 1.02 * fastest;
        if (fits && (best == SIZE_MAX || pl_plan_charged_bytes(plan[i]) < pl_plan_charged_bytes(plan[best])))
            best = (size_t)i;
    }
    return best;
}

pl_status pl_fit(const pl_graph *graph, const pl_fit_options *o, pl_plan **plan, pl_error *err)
{
    int64_t candidate[CANDIDATES_MAX];
    pl_plan *tried[CANDIDATES_MAX] = {0};
    pl_status status = PL_OK;
    int count = find_candidates(o, candidate);
    size_t smallest = 0, chosen;
    for (int i = 0; i < count; i++) {
        PL_TRY_DONE(pl_fit_candidate(graph, o, candidate[i], &tried[i], err));
        if (pl_plan_charged_bytes(tried[i]) < pl_plan_charged_bytes(tried[smallest])) smallest = (size_t)i;
    }
    if (pl_plan_charged_bytes(tried[smallest]) > o->budget_bytes) PL_TRY_DONE(refuse(tried[smallest], o, err));
    chosen = choose(o, tried, candidate, count);
    *plan = tried[chosen];
    tried[chosen] = NULL;
done:
    for (int i = 0; i < count; i++) pl_plan_destroy(tried[i]);
    return status;
}
