/* Linear + softmax + cross-entropy over chunks of rows: the logits of all tokens never exist at once.
 * h, W and dh are of one type, f32, bf16 or f16; logits are f32 always, and so is the sum of the weight's gradient.
 * Loss = Σ over counted rows of (logsumexp − logit of the target), summed in f64; gradients are scaled by `scale`. */
#include "ir/op.h"

static pl_status check(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_value *h = pl_in(g, n, 0), *w = pl_in(g, n, 1), *target = pl_in(g, n, 2);
    if (h->shape.rank < 1) return pl_fail_input(g, n, 0, "[..., width]", err);
    if (n->attr[0].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)n->attr[0].i);
    if (w->shape.rank != 2 || w->shape.dim[1] != pl_shape_last(&h->shape))
        return pl_fail_input(g, n, 1, "[vocabulary, width]", err);
    if ((int64_t)pl_shape_elems(&target->shape) != pl_shape_rows(&h->shape))
        return pl_fail_input(g, n, 2, "i32, one target a row", err);
    return pl_expect_shape(g, n, 5, &w->shape, "the shape of the output matrix", err);
}

/* linear_ce: h [...,D], W [V,D], target, scale, loss → loss' */
static pl_status shape_linear_ce(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, err));
    out[0] = (pl_out){pl_in(g, n, 4)->shape, PL_DTYPE_F64};
    return PL_OK;
}

/* The loss is the root: its backward node computes the loss too, so the forward node is replaced by it. */
static pl_status gradient_linear_ce(pl_gradient *g, const pl_node *n)
{
    pl_id acc = pl_gradient_accumulator(g, n->in[1]), dh = pl_gradient_output(g, n->in[0]);
    if (acc == PL_NONE && dh == PL_UNWANTED) return PL_OK;
    pl_id in[6] = {n->in[0], n->in[1], n->in[2], n->in[3], n->in[4], acc}, out[3] = {n->out[0], dh, PL_NONE};
    g->replaced = true;
    pl_build_node(g->b, PL_OP_LINEAR_CE_BWD, n->attr, 6, in, 3, out);
    pl_gradient_add(g, n->in[0], out[1]);
    pl_gradient_accumulated(g, n->in[1], out[2]);
    return g->b->status;
}

static pl_cost cost_linear_ce(const pl_graph *g, const pl_node *n)
{
    const pl_value *h = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    double m = (double)pl_shape_rows(&h->shape), products = 1 + (n->out[1] != PL_NONE) + (n->out[2] != PL_NONE);
    const double flops = 2 * m * pl_value_elems_f(w) * products;
    return (pl_cost){flops, products * (pl_value_bytes_f(h) + pl_value_bytes_f(w)), flops};
}

const pl_op_rule pl_rule_LINEAR_CE = {shape_linear_ce, gradient_linear_ce, cost_linear_ce,
                                      .loss = true,    .ids = 2,           .ids_below = 1};

/* linear_ce_bwd: h, W, target, scale, loss, [dW], [loss scale] → loss', [dh], [dW']: both gradients times the loss
 * scale */
static pl_status shape_linear_ce_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, err));
    out[0] = (pl_out){pl_in(g, n, 4)->shape, PL_DTYPE_F64};
    out[1] = (pl_out){pl_in(g, n, 0)->shape, pl_in(g, n, 0)->dtype};
    out[2] = (pl_out){pl_in(g, n, 1)->shape, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_LINEAR_CE_BWD = {shape_linear_ce_bwd, NULL,     cost_linear_ce, .loss = true,
                                          .loss_scale = 6,     .ids = 2, .ids_below = 1};
