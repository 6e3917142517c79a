/* Rotary position embedding (Su et al. 2021, "RoFormer"): queries and keys are turned by angles that grow with their
 * position, so that the product of two depends on their distance alone. */
#include <math.h>

#include "ir/op.h"

enum { HEADS, ROTATED, THETA, ADJOINT };

/* ---- rope: x [B,...,T,heads·2h] → y as x ----
 * Of each of the first `rotated` heads of the token at position t, with a and b for its halves,
 *
 *   y = [a·cos − b·sin, b·cos + a·sin]   of the angles t·theta^(−i/h), i = 0 … h − 1
 *
 * and the other heads as they are: those of the values, where one product makes queries, keys and values. adjoint: by
 * the opposite angles, which is the gradient, and the inverse. */
static pl_status check_attributes(const pl_graph *g, const pl_node *n, pl_error *err)
{
    int64_t width = pl_shape_last(&pl_in(g, n, 0)->shape), heads = n->attr[HEADS].i, rotated = n->attr[ROTATED].i;
    double theta = n->attr[THETA].f;
    if (heads < 1 || width % heads || width / heads % 2)
        return pl_fail_input(g, n, 0, "a width of whole heads, each of two halves", err);
    if (rotated < 1 || rotated > heads)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: of %lld heads %lld cannot be turned", pl_op_name(n->op), n->scope,
                       (long long)heads, (long long)rotated);
    if (!(theta >= 1 && isfinite(theta)))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: theta %g is not a finite number of at least 1", pl_op_name(n->op),
                       n->scope, theta);
    return PL_OK;
}

static pl_status shape_rope(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    if (x->shape.rank < 3 || x->shape.symbolic & ~1u || pl_shape_elems(&x->shape) == 0)
        return pl_fail_input(g, n, 0, "[samples, ..., positions, width]", err);
    PL_TRY(check_attributes(g, n, err));
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_rope(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), dx = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_attr attr[] = {n->attr[HEADS], n->attr[ROTATED], n->attr[THETA], pl_attr_i(!n->attr[ADJOINT].i)};
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_ROPE, attr, 1, &dy, 1, &dx));
    return g->b->status;
}

static pl_cost cost_rope(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    double rotated = (double)n->attr[ROTATED].i / (double)n->attr[HEADS].i;
    return (pl_cost){3 * rotated * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

/* The two numbers that are turned together are both read before either is written. */
const pl_op_rule pl_rule_ROPE = {shape_rope, gradient_rope, cost_rope, .recompute = true};
