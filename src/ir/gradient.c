#include "ir/op.h"

bool pl_gradient_is_wanted(const pl_gradient *g, pl_id value)
{
    return value < g->count && g->wanted[pl_value_root(g->b->graph, value)];
}

pl_id pl_gradient_of(const pl_gradient *g, pl_id value) { return value < g->count ? g->of[value] : PL_NONE; }

/* What a rule cannot pass on must not get lost in silence: a weight has a gradient only where the operator accumulates
 * one, and a window, unless it is all of its base, only where the operator (attention) writes into a window of its
 * base's gradient. */
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

/* Is it all of another value, in its order, in another shape? */
static bool is_reshaped(const pl_graph *graph, const pl_value *v)
{
    if (v->view_of == PL_NONE || v->view_offset != 0 || !pl_value_is_contiguous(v)) return false;
    const pl_value *base = &graph->value[v->view_of];
    return pl_value_is_contiguous(base) && !base->shape.symbolic == !v->shape.symbolic &&
           pl_shape_elems(&base->shape) == pl_shape_elems(&v->shape);
}

/* What reaches a value in another shape reaches the value. */
static void add_reshaped(pl_gradient *g, pl_id value, pl_id contribution)
{
    const pl_graph *graph = g->b->graph;
    if (is_reshaped(graph, &graph->value[contribution])) contribution = graph->value[contribution].view_of;
    const pl_id base = graph->value[value].view_of;
    const pl_shape shape = graph->value[base].shape;
    if (!pl_shape_equal(&shape, &graph->value[contribution].shape))
        contribution = pl_build_view(g->b, contribution, shape, 0, NULL);
    pl_gradient_add(g, base, contribution);
}

void pl_gradient_add(pl_gradient *g, pl_id value, pl_id contribution)
{
    if (g->b->status == PL_OK && contribution != PL_NONE && value < g->count &&
        is_reshaped(g->b->graph, &g->b->graph->value[value])) {
        add_reshaped(g, value, contribution);
        return;
    }
    if (!pl_gradient_is_wanted(g, value) || contribution == PL_NONE || g->b->status != PL_OK || !passes(g, value))
        return;
    if (g->of[value] == PL_NONE) {
        g->of[value] = contribution;
        return;
    }
    pl_add_args sum = pl_add_none;
    sum.a = g->of[value], sum.b = contribution;
    g->of[value] = pl_build_add(g->b, &sum);
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

void pl_gradient_accumulated_for(pl_gradient *g, pl_id weight, pl_id version, pl_gradient_finish finish)
{
    if (weight >= g->count || version == PL_NONE || g->b->status != PL_OK) return;
    if (g->finish[weight] && g->finish[weight] != finish)
        g->b->status = pl_fail(g->b->err, PL_E_UNSUPPORTED,
                               "%s: the weight %s is read as numbers and as signs, and its gradient cannot be both",
                               g->b->scope, g->b->graph->value[weight].name);
    g->finish[weight] = finish;
    g->accumulator[weight] = version;
}

static void is_finished(pl_builder *b, pl_id sum, pl_id weight) { (void)b, (void)sum, (void)weight; }

void pl_gradient_accumulated(pl_gradient *g, pl_id weight, pl_id version)
{
    pl_gradient_accumulated_for(g, weight, version, is_finished);
}

void pl_gradient_add_bias(pl_gradient *g, pl_id bias, pl_id dy)
{
    if (bias == PL_NONE || pl_gradient_accumulator(g, bias) == PL_NONE) return;
    pl_column_sum_args a = pl_column_sum_none;
    a.x = dy, a.sum = pl_gradient_accumulator(g, bias);
    pl_gradient_accumulated(g, bias, pl_build_column_sum(g->b, &a));
}
