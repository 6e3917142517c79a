/* Rotary position embedding (Su et al. 2021, "RoFormer"): queries and keys are rotated by angles that grow with their
 * position, so that the product of two depends only on their distance. */
#include <math.h>

#include "ir/op.h"

/* ---- rope: x [B,...,T,heads·2h] → y as x ----
 * For each of the first `rotated` heads of the row at position t, with a and b for its halves,
 *
 *   y = [a·cos − b·sin, b·cos + a·sin]   for the angles t·theta^(−i/h), i = 0 … h − 1
 *
 * and the other heads stay as they are: those of the values, where one product makes queries, keys and values. adjoint:
 * by the opposite angles, which is both the gradient and the inverse. */
static pl_status check_attributes(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_rope_args *a = &n->rope;
    const int64_t width = pl_shape_last(&g->value[a->x].shape), heads = a->heads, rotated = a->rotated;
    if (heads < 1 || width % heads || width / heads % 2)
        return pl_fail_operand(g, n, &a->x, "a width of whole heads, each of two halves", err);
    if (rotated < 1 || rotated > heads)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: of %lld heads %lld cannot be turned", pl_op_name(n->op), n->scope,
                       (long long)heads, (long long)rotated);
    if (!(a->theta >= 1 && isfinite(a->theta)))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: theta %g is not a finite number of at least 1", pl_op_name(n->op),
                       n->scope, a->theta);
    return PL_OK;
}

static pl_status shape_rope(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rope_args *a = &n->rope;
    const pl_value *x = &g->value[a->x];
    if (x->shape.rank < 3 || x->shape.symbolic & ~1u || pl_shape_elems(&x->shape) == 0)
        return pl_fail_operand(g, n, &a->x, "[samples, ..., positions, width]", err);
    PL_TRY(check_attributes(g, n, err));
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_rope(pl_gradient *g, const pl_node *n)
{
    const pl_rope_args *a = &n->rope;
    pl_rope_args b = pl_rope_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    b.heads = a->heads, b.rotated = a->rotated, b.theta = a->theta, b.adjoint = !a->adjoint;
    pl_gradient_add(g, a->x, pl_build_rope(g->b, &b));
    return g->b->status;
}

static pl_cost cost_rope(const pl_graph *g, const pl_node *n)
{
    const pl_rope_args *a = &n->rope;
    const pl_value *x = &g->value[a->x];
    double rotated = (double)a->rotated / (double)a->heads;
    return (pl_cost){3 * rotated * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

/* The two numbers of a rotation are both read before either is written. */
const pl_op_rule pl_rule_ROPE = {shape_rope, gradient_rope, cost_rope, .recompute = true};
