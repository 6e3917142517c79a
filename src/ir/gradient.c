#include "ir/op.h"

pl_id pl_gradient_of(const pl_gradient *g, pl_id value) { return value < g->count ? g->of[value] : PL_NONE; }

void pl_gradient_add(pl_gradient *g, pl_id value, pl_id contribution)
{
    if (value >= g->count || contribution == PL_NONE) return;
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

pl_id pl_gradient_accumulator(const pl_gradient *g, pl_id weight) { return weight < g->count ? g->accumulator[weight] : PL_NONE; }

void pl_gradient_accumulated(pl_gradient *g, pl_id weight, pl_id version)
{
    if (weight < g->count) g->accumulator[weight] = version;
}
