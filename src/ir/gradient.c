#include "ir/op.h"

bool pl_gradient_is_wanted(const pl_gradient *g, pl_id value)
{
    return value < g->count && g->wanted[pl_value_root(g->b->graph, value)];
}

pl_id pl_gradient_of(const pl_gradient *g, pl_id value) { return value < g->count ? g->of[value] : PL_NONE; }

/* What a rule cannot pass on must not get lost in silence: a weight has a gradient only where the operator accumulates
 * one, and a window only where the operator (attention) writes into a window of its base's gradient. */
static bool passes(pl_gradient *g, pl_id value)
{
    const pl_graph *graph = g->b->graph;
    const pl_value *v = &graph->value[value];
    const pl_value *root = &graph->value[pl_value_root(graph, value)];
    if (root->program == PL_NONE)
        g->b->status = pl_fail(g->b->err, PL_E_UNSUPPORTED,
                               "%s: the weight %s is read like an activation, which has no gradient rule", g->b->scope,
                               root->name);
    else if (v->view_of != PL_NONE)
        g->b->status =
            pl_fail(g->b->err, PL_E_UNSUPPORTED,
                    "%s: the gradient of a window on %s has no rule here; only attention reads windows while training",
                    g->b->scope, root->name);
    return g->b->status == PL_OK;
}

void pl_gradient_add(pl_gradient *g, pl_id value, pl_id contribution)
{
    if (!pl_gradient_is_wanted(g, value) || contribution == PL_NONE || g->b->status != PL_OK || !passes(g, value))
        return;
    if (g->of[value] == PL_NONE) {
        g->of[value] = contribution;
        return;
    }
    pl_id in[2] = {g->of[value], contribution}, out = PL_NONE;
    g->of[value] = pl_build_node(g->b, PL_OP_ADD, NULL, 2, in, 1, &out);
}

pl_id pl_gradient_take(pl_gradient *g, pl_id value)
{
    pl_id partial = pl_gradient_of(g, value);
    if (partial != PL_NONE) g->of[value] = PL_NONE;
    return partial;
}

pl_id pl_gradient_accumulator(const pl_gradient *g, pl_id weight)
{
    return weight < g->count ? g->accumulator[weight] : PL_NONE;
}

void pl_gradient_accumulated(pl_gradient *g, pl_id weight, pl_id version)
{
    if (weight < g->count && version != PL_NONE) g->accumulator[weight] = version;
}
