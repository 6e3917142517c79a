/* Predicted time of a step: for each node of the program that is trained the seconds that the cost model knows, as
 * often as it runs. One part that is not known leaves the sum unknown.
 *
 * A team that is smaller than the one that was measured does the same work in at most as many times the seconds as it
 * has fewer threads (Brent); that bound is what is predicted. */
#include <math.h>

#include "fit/fit.h"
#include "ir/properties.h"
#include "ir/op.h"

/* Of the made-up machine: it orders choices where no kernel was measured, and nothing else. */
#define WORK_FLOPS_PER_SECOND 5e10
#define WORK_BYTES_PER_SECOND 1e10
#define WORK_CALL_SECONDS     2e-6

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

static double work_of(const pl_graph *g, const pl_node *n)
{
    pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
    return cost.flops / WORK_FLOPS_PER_SECOND + cost.bytes / WORK_BYTES_PER_SECOND + WORK_CALL_SECONDS;
}

/* To 36 bits, a part in 10^10. Choices run the same nodes in other orders, and a sum's last bits depend on the order:
 * by them no choice may beat another that needs fewer bytes. */
static double without_last_bits(double sum)
{
    int exponent;
    double part = frexp(sum, &exponent);
    return ldexp(rint(ldexp(part, 36)), exponent - 36);
}

void pl_fit_predict(const pl_fit_options *o, const pl_graph *g, pl_fit_point *point)
{
    pl_id train = pl_graph_find_trained(g);
    slower s = slower_of(o, &point->choice);
    point->seconds = point->spread = point->work = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != train) continue;
        double trips = (double)pl_node_trips(g, n), seconds = slowed(&s, g, n);
        double spread = o->plan.cost.spread ? o->plan.cost.spread(o->plan.cost.context, g, n) : 0;
        point->work += trips * s.times * work_of(g, n);
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
