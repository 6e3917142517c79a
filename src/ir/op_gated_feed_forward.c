/* A feed-forward layer whose activation gates a second product (SwiGLU where it is SiLU; Shazeer, "GLU Variants Improve
 * Transformer", 2020), in chunks of rows, as feed_forward is. Wgu holds the rows of the gate, then those
 * of what it gates. Forward neither of the two ever exists: the product's epilogue multiplies them. Backward both are
 * made again, for a chunk's rows at a time. No biases. */
#include "ir/op.h"

static pl_shape with_last(pl_shape s, int64_t last)
{
    s.dim[s.rank - 1] = last;
    return s;
}

/* Whose input `x` is [..., D]; Wgu [2F,D], Wd [N,F]. */
static pl_status check(const pl_graph *g, const pl_node *n, int x, int wgu, int wd, pl_error *err)
{
    const pl_value *in = pl_in(g, n, x), *first = pl_in(g, n, wgu), *second = pl_in(g, n, wd);
    if (in->shape.rank < 1) return pl_fail_input(g, n, x, "[..., in]", err);
    if (first->shape.rank != 2 || first->shape.dim[1] != pl_shape_last(&in->shape) || first->shape.dim[0] % 2)
        return pl_fail_input(g, n, wgu, "[2·hidden, in] with in = the input's last dimension", err);
    if (second->shape.rank != 2 || second->shape.dim[1] != first->shape.dim[0] / 2)
        return pl_fail_input(g, n, wd, "[out, hidden]", err);
    if (n->attr[1].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)n->attr[1].i);
    return PL_OK;
}

/* ---- gated_feed_forward: x [...,D], Wgu [2F,D], Wd [N,F], [residual ...,N] → y [...,N] ---- */
static pl_status shape_forward(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 0, 1, 2, err));
    pl_shape y = with_last(pl_in(g, n, 0)->shape, pl_in(g, n, 2)->shape.dim[0]);
    PL_TRY(pl_expect_shape(g, n, 3, &y, "the shape of the output", err));
    out[0] = (pl_out){y, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], wgu = n->in[1], wd = n->in[2],
          out[3] = {pl_gradient_output(g, x), PL_NONE, PL_NONE};
    if (dy == PL_NONE) return PL_OK;
    pl_id in[7] = {dy, x, wgu, wd, pl_gradient_accumulator(g, wgu), pl_gradient_accumulator(g, wd), PL_NONE};
    bool needed = out[0] != PL_UNWANTED || in[4] != PL_NONE || in[5] != PL_NONE;
    in[6] = pl_gradient_take(g, x);
    if (needed) pl_build_node(g->b, PL_OP_GATED_FEED_FORWARD_BWD, n->attr, 7, in, 3, out);
    if (needed) pl_gradient_add(g, x, out[0]);
    pl_gradient_accumulated(g, wgu, out[1]);
    pl_gradient_accumulated(g, wd, out[2]);
    if (n->in[3] != PL_NONE) pl_gradient_add(g, n->in[3], dy);
    return g->b->status;
}

static pl_cost cost_forward(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *wgu = pl_in(g, n, 1), *wd = pl_in(g, n, 2);
    double flops = 2 * (double)pl_shape_rows(&x->shape) * (pl_value_elems_f(wgu) + pl_value_elems_f(wd));
    double bytes = pl_value_bytes_f(x) + pl_value_bytes_f(wgu) + pl_value_bytes_f(wd);
    return (pl_cost){flops, bytes + pl_value_bytes_f(&g->value[n->out[0]]) + pl_value_bytes_f(pl_in(g, n, 3)), flops};
}

/* Rows are read before the same rows of y are written. */
const pl_op_rule pl_rule_GATED_FEED_FORWARD = {shape_forward, gradient, cost_forward};

/* ---- gated_feed_forward_bwd: dy [...,N], x, Wgu, Wd, [dWgu], [dWd], [partial ...,D] → [dx], [dWgu'], [dWd'] ---- */
static pl_status shape_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 1, 2, 3, err));
    const pl_value *x = pl_in(g, n, 1), *wgu = pl_in(g, n, 2), *wd = pl_in(g, n, 3);
    pl_shape y = with_last(x->shape, wd->shape.dim[0]);
    PL_TRY(pl_expect_shape(g, n, 0, &y, "[..., out], a row for each of the input", err));
    PL_TRY(pl_expect_shape(g, n, 4, &wgu->shape, "the shape of the first matrix", err));
    PL_TRY(pl_expect_shape(g, n, 5, &wd->shape, "the shape of the second matrix", err));
    PL_TRY(pl_expect_shape(g, n, 6, &x->shape, "the shape of the input", err));
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = (pl_out){wgu->shape, PL_DTYPE_F32};
    out[2] = (pl_out){wd->shape, PL_DTYPE_F32};
    return PL_OK;
}

/* At most five products: both factors again, the gradient of their product, both weights', the input's. */
static pl_cost cost_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 1), *wgu = pl_in(g, n, 2), *wd = pl_in(g, n, 3);
    double first = 1 + (n->out[0] != PL_NONE) + (n->out[1] != PL_NONE), second = 1 + (n->out[2] != PL_NONE);
    double flops =
        2 * (double)pl_shape_rows(&x->shape) * (first * pl_value_elems_f(wgu) + second * pl_value_elems_f(wd));
    double read = pl_value_bytes_f(pl_in(g, n, 0)) + pl_value_bytes_f(x) + pl_value_bytes_f(wgu) + pl_value_bytes_f(wd);
    double sums = 2 * (pl_value_bytes_f(pl_in(g, n, 4)) + pl_value_bytes_f(pl_in(g, n, 5)));
    return (pl_cost){flops, read + sums + pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 6)), flops};
}

const pl_op_rule pl_rule_GATED_FEED_FORWARD_BWD = {shape_bwd, NULL, cost_bwd};

/* ---- gated_activation: f32 [...,2F] → [...,F] ----
 * What gated_feed_forward does between its two products, for who needs the hidden values whole (rewrite/unfold.c,
 * layers of signs). */
static pl_status shape_activation(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    if (x->rank < 2 || pl_shape_last(x) % 2 || pl_shape_last(x) < 2 || x->symbolic >> (x->rank - 1))
        return pl_fail_input(g, n, 0, "f32 [..., 2·hidden]", err);
    out[0] = (pl_out){with_last(*x, pl_shape_last(x) / 2), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_activation(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){10 * pl_value_elems_f(x), 1.5 * pl_value_bytes_f(x)};
}

static pl_status gradient_activation(pl_gradient *g, const pl_node *n)
{
    pl_id in[2] = {pl_gradient_of(g, n->out[0]), n->in[0]}, out = PL_NONE;
    if (in[0] == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_GATED_ACTIVATION_BWD, n->attr, 2, in, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_GATED_ACTIVATION = {shape_activation, gradient_activation, cost_activation, .recompute = true};

/* ---- gated_activation_bwd: dy f32 [...,F], x [...,2F] → dx ---- */
static pl_status shape_activation_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 1)->shape;
    if (x->rank < 2 || pl_shape_last(x) % 2 || pl_shape_last(x) < 2 || x->symbolic >> (x->rank - 1))
        return pl_fail_input(g, n, 1, "f32 [..., 2·hidden]", err);
    const pl_shape y = with_last(*x, pl_shape_last(x) / 2);
    PL_TRY(pl_expect_shape(g, n, 0, &y, "f32 [..., hidden]", err));
    out[0] = (pl_out){*x, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_activation_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 1);
    return (pl_cost){20 * pl_value_elems_f(x), 2.5 * pl_value_bytes_f(x)};
}

/* A row is read before it is written. */
const pl_op_rule pl_rule_GATED_ACTIVATION_BWD = {shape_activation_bwd, NULL, cost_activation_bwd};
