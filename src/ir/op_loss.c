/* Linear + softmax + cross-entropy over chunks of rows: the logits of all rows never exist at once. h, W and dh have
 * one type, f32, bf16 or f16; logits are always f32, and so is the sum of the weight's gradient. Loss = Σ over counted
 * rows of (logsumexp − logit of the target), summed in f64; gradients are scaled by `scale`. */
#include "ir/op.h"

_Static_assert(offsetof(pl_linear_ce_args, loss) == offsetof(pl_linear_ce_bwd_args, loss), "one rule reads both");
_Static_assert(offsetof(pl_linear_ce_args, chunk_rows) == offsetof(pl_linear_ce_bwd_args, chunk_rows),
               "one rule reads both");

/* ---- linear_ce: h [...,D], weight [V,D], target [...] → row_loss f32 [...]; cap 0: none ---- */
static pl_status check(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_linear_ce_args *a = &n->linear_ce;
    const pl_shape *h = &g->value[a->h].shape, *w = &g->value[a->weight].shape, *target = &g->value[a->target].shape;
    if (h->rank < 1) return pl_fail_operand(g, n, &a->h, "[..., width]", err);
    if (a->chunk_rows < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)a->chunk_rows);
    if (w->rank != 2 || w->dim[1] != pl_shape_last(h))
        return pl_fail_operand(g, n, &a->weight, "[classes, width]", err);
    if ((int64_t)pl_shape_elems(target) != pl_shape_rows(h))
        return pl_fail_operand(g, n, &a->target, "i32, one target a row", err);
    return PL_OK;
}

static pl_status shape_linear_ce(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_ce_args *a = &n->linear_ce;
    PL_TRY(check(g, n, err));
    PL_TRY(pl_expect_rounded(g, n, &a->h, &g->value[a->weight], err));
    if (!(a->cap >= 0))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a cap is 0 (none) or more, not %g", pl_op_name(n->op), n->scope,
                       a->cap);
    out[PL_OUT_OF(linear_ce, row_loss)] = (pl_out){g->value[a->target].shape, PL_DTYPE_F32};
    return PL_OK;
}

/* The loss is the root: its backward node computes the loss too, and so replaces the forward node. */
static pl_status gradient_linear_ce(pl_gradient *g, const pl_node *n)
{
    const pl_linear_ce_args *a = &n->linear_ce;
    if (a->cap > 0 || a->row_loss != PL_NONE)
        return pl_fail(g->b->err, PL_E_UNSUPPORTED, "%s in %s: with a cap or the loss of each row it has no gradient",
                       pl_op_name(n->op), n->scope);
    pl_linear_ce_bwd_args b = pl_linear_ce_bwd_none;
    b.dweight = pl_gradient_accumulator(g, a->weight), b.dh = pl_gradient_output(g, a->h);
    if (b.dweight == PL_NONE && b.dh == PL_UNWANTED) return PL_OK;
    b.h = a->h, b.weight = a->weight, b.target = a->target, b.scale = a->scale, b.loss = a->loss;
    b.loss_new = a->loss_new, b.chunk_rows = a->chunk_rows;
    g->replaced = true;
    pl_build_linear_ce_bwd(g->b, &b);
    pl_gradient_add(g, a->h, b.dh);
    pl_gradient_accumulated(g, a->weight, b.dweight_new);
    return g->b->status;
}

/* One product or more, each of which reads all of h and the weight. */
static pl_cost cost_of(const pl_graph *g, const pl_linear_ce_args *a, double products)
{
    const pl_value *h = &g->value[a->h], *w = &g->value[a->weight];
    const double m = (double)pl_shape_rows(&h->shape), flops = 2 * m * pl_value_elems_f(w) * products;
    return (pl_cost){flops, products * (pl_value_bytes_f(h) + pl_value_bytes_f(w)), flops};
}

static pl_cost cost_linear_ce(const pl_graph *g, const pl_node *n) { return cost_of(g, &n->linear_ce, 1); }

const pl_op_rule pl_rule_LINEAR_CE = {shape_linear_ce,
                                      gradient_linear_ce,
                                      cost_linear_ce,
                                      .loss = true,
                                      .ids = PL_IN_OF(linear_ce, target),
                                      .ids_below = PL_IN_OF(linear_ce, weight)};

/* ---- linear_ce_bwd: as linear_ce, dweight [V,D] → dh [...,D]: both gradients times the loss scale ---- */
static pl_status shape_linear_ce_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_ce_bwd_args *a = &n->linear_ce_bwd;
    const pl_value *h = &g->value[a->h];
    PL_TRY(check(g, n, err));
    PL_TRY(pl_expect_operand(g, n, &a->dweight, &g->value[a->weight].shape, "the shape of the output matrix", err));
    out[PL_OUT_OF(linear_ce_bwd, dh)] = pl_out_like(h);
    return PL_OK;
}

static pl_cost cost_linear_ce_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_linear_ce_bwd_args *a = &n->linear_ce_bwd;
    return cost_of(g, &n->linear_ce, 1 + (a->dh != PL_NONE) + (a->dweight_new != PL_NONE));
}

const pl_op_rule pl_rule_LINEAR_CE_BWD = {shape_linear_ce_bwd,
                                          NULL,
                                          cost_linear_ce_bwd,
                                          .loss = true,
                                          .loss_scale = PL_IN_OF(linear_ce_bwd, loss_scale),
                                          .ids = PL_IN_OF(linear_ce_bwd, target),
                                          .ids_below = PL_IN_OF(linear_ce_bwd, weight)};
