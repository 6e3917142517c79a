/* Predicted time of a step: for each node of the program that is trained, or repeated for each micro-batch, the seconds
 * that the cost model tells, as often as it runs, and between which times that may lie. One part that is not known
 * leaves the sum unknown.
 *
 * A team that is smaller than the one that was measured does the same work in at most as many times the seconds as it
 * has fewer threads (Brent); that bound is what is predicted. */
#include <math.h>

#include "fit/fit.h"
#include "ir/properties.h"
#include "ir/op.h"

typedef struct slower {
    const pl_cost_model *model;
    double times;
} slower;

static pl_duration slowed(void *context, const pl_graph *g, const pl_node *n)
{
    const slower *s = context;
    pl_duration p = pl_cost_predict(s->model, g, n);
    if (p.seconds < 0 || s->times == 1) return p;
    return (pl_duration){p.seconds * s->times, p.low, p.high * s->times, p.busy, true};
}

static slower slower_of(const pl_fit_options *o, const pl_choice *c)
{
    int whole = o->plan.team.threads, team = c->threads > 0 && c->threads < whole ? c->threads : whole;
    return (slower){&o->plan.cost, (double)whole / team};
}

/* To 36 bits, a part in 10^10. Choices run the same nodes in other orders, and a sum's last bits depend on the order:
 * by them no choice may beat another that needs fewer bytes. */
static double without_last_bits(double sum)
{
    int exponent;
    double part = frexp(sum, &exponent);
    return ldexp(rint(ldexp(part, 36)), exponent - 36);
}

pl_id pl_fit_find_searched(const pl_graph *g, const pl_fit_options *o)
{
    const pl_id trained = pl_graph_find_trained(g);
    return trained != PL_NONE || !o->repeated ? trained : pl_graph_find_program(g, o->repeated);
}

/* A trained program has its micro-batches inside. */
static double runs_of(const pl_graph *g, const pl_fit_options *o, const pl_choice *c)
{
    if (pl_graph_find_trained(g) != PL_NONE) return 1;
    return (double)((o->batch + c->micro_batch - 1) / c->micro_batch);
}

static const pl_fit_point unknown = {.seconds = -1, .low = -1, .high = -1, .estimated_seconds = -1};

static void add(pl_fit_point *point, const pl_duration *p, double trips)
{
    if (point->seconds < 0 || p->seconds < 0) {
        pl_fit_take_time(point, &unknown);
        return;
    }
    point->seconds += trips * p->seconds;
    point->low += trips * p->low;
    point->high += trips * p->high;
    if (p->estimated) point->estimated_seconds += trips * p->seconds;
}

void pl_fit_take_time(pl_fit_point *p, const pl_fit_point *from)
{
    p->seconds = from->seconds;
    p->low = from->low;
    p->high = from->high;
    p->estimated_seconds = from->estimated_seconds;
}

void pl_fit_predict(const pl_fit_options *o, const pl_graph *g, pl_fit_point *point)
{
    const pl_id searched = pl_fit_find_searched(g, o);
    const double runs = runs_of(g, o, &point->choice);
    slower s = slower_of(o, &point->choice);
    point->work = 0;
    pl_fit_take_time(point, &(const pl_fit_point){.seconds = 0});
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != searched) continue;
        const double trips = runs * (double)pl_node_trips(g, n);
        const pl_duration p = slowed(&s, g, n);
        point->work += trips * s.times * pl_node_work(g, n);
        add(point, &p, trips);
    }
    point->seconds = without_last_bits(point->seconds);
    point->work = without_last_bits(point->work);
}

pl_status pl_fit_predict_plan(const pl_fit_options *o, const pl_choice *c, pl_plan *plan, pl_error *err)
{
    slower s = slower_of(o, c);
    pl_fit_point point = {.choice = *c};
    PL_TRY(pl_plan_predict(plan, &(pl_cost_model){.predict = slowed, .context = &s}, err));
    pl_fit_predict(o, plan->graph, &point);
    plan->estimated_share = point.seconds > 0 ? point.estimated_seconds / point.seconds : 0;
    return PL_OK;
}
