/* Which point of the frontier: peaks of real plans follow those of the problem closely enough to halve by. Between the
 * first point that fits and the one before it the planner is asked again, thoroughly, for the bytes that seem to be
 * left; how much the real plan has more than the problem is known from the plans made so far. */
#include "fit/recompute.h"

enum { REFINEMENTS = 3 };

typedef struct search {
    const pl_graph *graph;
    const pl_fit_options *o;
    pl_choice choice;
    pl_recompute_frontier *frontier;
    pl_plan *best, **smallest;
    double best_seconds;
    uint64_t best_excess; /* charged bytes of the best plan beyond the problem's peak */
} search;

static double seconds_of(const pl_plan *p, const pl_recompute_point *point)
{
    double seconds = pl_plan_program_seconds(p, pl_graph_find_program(p->graph, "train"));
    return seconds >= 0 ? seconds : point->added_seconds;
}

/* over: by how many bytes the plan is too large, 0 when it fits. */
static pl_status try_point(search *s, const pl_recompute_point *point, uint64_t *over, pl_error *err)
{
    pl_plan *plan = NULL, *too_large = NULL;
    s->choice.decision = point->decision;
    PL_TRY(pl_fit_try(s->graph, s->o, &s->choice, &plan, &too_large, err));
    *over = plan ? 0 : pl_plan_charged_bytes(too_large) - s->o->budget_bytes;
    bool faster = plan && (!s->best || seconds_of(plan, point) < s->best_seconds);
    if (faster) {
        pl_plan_destroy(s->best);
        s->best = plan;
        s->best_seconds = seconds_of(plan, point);
        s->best_excess = pl_plan_charged_bytes(plan) - point->peak_bytes;
    } else {
        pl_plan_destroy(plan);
    }
    bool smaller = !plan && (!*s->smallest || pl_plan_charged_bytes(too_large) < pl_plan_charged_bytes(*s->smallest));
    pl_plan_destroy(smaller ? *s->smallest : too_large);
    if (smaller) *s->smallest = too_large;
    return PL_OK;
}

/* begin: too large; end: the least memory. Leaves at `end` the first point that fits, by halves. */
static pl_status halve(search *s, size_t begin, size_t *end, pl_error *err)
{
    while (begin + 1 < *end) {
        uint64_t over;
        size_t middle = begin + (*end - begin) / 2;
        PL_TRY(try_point(s, pl_recompute_frontier_point(s->frontier, middle), &over, err));
        if (over)
            begin = middle;
        else
            *end = middle;
    }
    return PL_OK;
}

static pl_status refine(search *s, uint64_t most, pl_error *err)
{
    const pl_recompute_point *point, *last = NULL;
    uint64_t bytes = s->o->budget_bytes > s->best_excess ? s->o->budget_bytes - s->best_excess : 0, over = 1;
    if (bytes >= most) bytes = most - 1;
    for (int i = 0; i < REFINEMENTS && over; i++) {
        PL_TRY(pl_recompute_frontier_within(s->frontier, bytes, true, &point, err));
        if (!point || point == last) return PL_OK;
        last = point;
        PL_TRY(try_point(s, point, &over, err));
        bytes = point->peak_bytes > over ? point->peak_bytes - over : 0;
    }
    return PL_OK;
}

static pl_status find(search *s, pl_error *err)
{
    size_t end = pl_recompute_frontier_count(s->frontier);
    uint64_t over;
    if (end < 2) return PL_OK;
    PL_TRY(try_point(s, pl_recompute_frontier_point(s->frontier, --end), &over, err));
    if (over) return PL_OK;
    PL_TRY(halve(s, 0, &end, err));
    return refine(s, pl_recompute_frontier_point(s->frontier, end - 1)->peak_bytes, err);
}

pl_status pl_recompute_search(const pl_graph *graph, const pl_fit_options *o, int64_t micro_batch, pl_plan **plan,
                              pl_plan **smallest, pl_error *err)
{
    search s = {.graph = graph, .o = o, .choice = o->given, .smallest = smallest};
    s.choice.micro_batch = micro_batch;
    s.choice.recompute = PL_CHOICE_RECOMPUTE_PLANNED;
    PL_TRY(pl_recompute_frontier_create(graph, o, micro_batch, &s.frontier, err));
    pl_status status = find(&s, err);
    pl_recompute_frontier_destroy(s.frontier);
    if (status == PL_OK)
        *plan = s.best;
    else
        pl_plan_destroy(s.best);
    return status;
}
