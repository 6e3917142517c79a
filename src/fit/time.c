/* Predicted time of a step: for each node of the program that is trained, or repeated for each micro-batch, the seconds
 * that the cost model knows, as often as it runs. One part that is not known leaves the sum unknown.
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

static double slowed(void *context, const pl_graph *g, const pl_node *n)
{
    const slower *s = context;
    double seconds = s->model->seconds ? s->model->seconds(s->model->context, g, n) : -1;
    return seconds < 0 ? -1 : seconds * s->times;
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

void pl_fit_predict(const pl_fit_options *o, const pl_graph *g, pl_fit_point *point)
{
    const pl_id searched = pl_fit_find_searched(g, o);
    const double runs = runs_of(g, o, &point->choice);
    slower s = slower_of(o, &point->choice);
    point->seconds = point->spread = point->work = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != searched) continue;
        double trips = runs * (double)pl_node_trips(g, n), seconds = slowed(&s, g, n);
        double spread = o->plan.cost.spread ? o->plan.cost.spread(o->plan.cost.context, g, n) : 0;
        point->work += trips * s.times * pl_node_work(g, n);
        point->seconds = point->seconds < 0 || seconds < 0 ? -1 : point->seconds + trips * seconds;
        point->spread = point->spread < 0 || spread < 0 ? -1 : point->spread + trips * s.times * spread;
    }
    point->seconds = without_last_bits(point->seconds);
    point->work = without_last_bits(point->work);
    if (point->seconds < 0) point->spread = -1;
}

void pl_fit_predict_plan(const pl_fit_options *o, const pl_choice *c, pl_plan *plan)
{
    slower s = slower_of(o, c);
    pl_plan_predict(plan, &(pl_cost_model){.seconds = slowed, .context = &s});
}
