/* What holds a step up, and what would make it faster. Both are read off the plan's predicted seconds; nothing is
 * guessed here: what was not measured is estimated there, and marked.
 *
 * The rates that this machine reaches are the best of the plan's own operators, all nodes of one together: the most
 * operations a second, no more than the machine does at all, and the most bytes a second of one that goes over more
 * than caches hold. A node whose operations alone would take most of its time at that rate is bound by computing, one
 * whose bytes would by memory; the rest are calls that are too small for either, or wait for threads. */
#include "ir/op.h"
#include "ir/properties.h"
#include "report/account.h"
#include "report/fit.h"

#define LARGE_BYTES 1e6 /* of one run: about what a core keeps near it */
#define BOUND_SHARE 0.5 /* of a node's time */

typedef struct rates {
    double flops, bytes;
} rates;

static void learn(const pl_plan *p, pl_id train, rates *best)
{
    pl_report_kind kind[PL_OP_COUNT];
    size_t count = pl_report_kinds(p, train, kind);
    for (size_t i = 0; i < count; i++) {
        const pl_report_kind *k = &kind[i];
        if (!(k->seconds > 0) || k->runs == 0) continue;
        if (k->flops / k->seconds > best->flops) best->flops = k->flops / k->seconds;
        bool large = k->bytes / (double)k->runs >= LARGE_BYTES;
        if (large && k->bytes / k->seconds > best->bytes) best->bytes = k->bytes / k->seconds;
    }
    double peak = 0;
    for (int k = 0; k < PL_ARITHMETIC_COUNT; k++)
        if (p->rates.operations[k] > peak) peak = p->rates.operations[k];
    if (peak > 0 && best->flops > peak) best->flops = peak;
}

static void add(const pl_plan *p, size_t i, const rates *best, pl_report_step *step)
{
    const pl_node *n = &p->graph->node[i];
    pl_cost cost = pl_op_rule_of(n->op)->cost(p->graph, n);
    double trips = (double)pl_node_trips(p->graph, n), seconds = trips * p->seconds[i];
    double computing = best->flops > 0 ? trips * cost.flops / best->flops : 0;
    double moving = best->bytes > 0 ? trips * cost.bytes / best->bytes : 0;
    bool computes = computing >= moving && computing >= BOUND_SHARE * seconds;
    bool moves = !computes && moving >= BOUND_SHARE * seconds;
    step->seconds += seconds;
    if (trips <= 1) step->once_seconds += seconds;
    *(computes ? &step->computing_seconds : moves ? &step->moving_seconds : &step->small_seconds) += seconds;
}

bool pl_report_time_step(const pl_plan *p, pl_report_step *step)
{
    rates best = {0};
    pl_id train = pl_graph_find_trained(p->graph);
    *step = (pl_report_step){0};
    if (train == PL_NONE || !(pl_plan_program_seconds(p, train) > 0)) return false;
    learn(p, train, &best);
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (pl_region_program(p->graph, p->graph->node[i].region) == train) add(p, i, &best, step);
    step->flops_per_second = best.flops;
    step->bytes_per_second = best.bytes;
    step->bottleneck = step->computing_seconds >= step->moving_seconds && step->computing_seconds >= step->small_seconds
                           ? "computing"
                       : step->moving_seconds >= step->small_seconds ? "memory bandwidth"
                                                                     : "small calls";
    return true;
}

const pl_fit_point *pl_report_larger_budget(const pl_fit_result *r)
{
    const pl_fit_point *best = NULL, *chosen = &r->point[r->chosen];
    for (size_t i = 0; i < r->count; i++) {
        const pl_fit_point *p = &r->point[i];
        bool better = p->front && p->charged_bytes > r->budget_bytes && p->seconds >= 0 && p->seconds < chosen->seconds;
        if (better && (!best || p->seconds < best->seconds)) best = p;
    }
    return best;
}

/* What is done once a step (updates, gradients set to zero) is done half as often for each item. */
double pl_report_larger_batch_gain(const pl_report_step *s)
{
    double one = s->seconds, two = 2 * s->seconds - s->once_seconds;
    return 2 * one / two - 1;
}
