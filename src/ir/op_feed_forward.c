/* Two linears with an activation between them, done in chunks of rows: the hidden values of all rows, which are wider
 * than what goes in and out, never exist at once, and none is kept for the backward pass, which makes each chunk's
 * again. Built by rewrite/chunk.c from the nodes that they replace; the same numbers to the last bit. As with linear,
 * what flows is of one type in a node, f32, bf16 or f16; biases and sums of gradients are f32. */
#include "ir/op.h"

/* Whose input `x` is [..., D]; W1 [F,D], W2 [N,F], [b1 F]. */
static pl_status check(const pl_graph *g, const pl_node *n, int x, int w1, int w2, int bias, pl_error *err)
{
    const pl_value *in = pl_in(g, n, x), *first = pl_in(g, n, w1), *second = pl_in(g, n, w2), *b = pl_in(g, n, bias);
    if (in->shape.rank < 1) return pl_fail_input(g, n, x, "[..., in]", err);
    if (first->shape.rank != 2 || first->shape.dim[1] != pl_shape_last(&in->shape))
        return pl_fail_input(g, n, w1, "[hidden, in] with in = the input's last dimension", err);
    if (second->shape.rank != 2 || second->shape.dim[1] != first->shape.dim[0])
        return pl_fail_input(g, n, w2, "[out, hidden]", err);
    if (b && (b->shape.rank != 1 || b->shape.dim[0] != first->shape.dim[0]))
        return pl_fail_input(g, n, bias, "f32 [hidden]", err);
    if (n->attr[1].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)n->attr[1].i);
    return PL_OK;
}

static pl_shape with_last(pl_shape s, int64_t last)
{
    s.dim[s.rank - 1] = last;
    return s;
}

/* ---- feed_forward: x [...,D], W1 [F,D], W2 [N,F], [b1 F], [b2 N], [residual ...,N] → y [...,N] ---- */
static pl_status shape_feed_forward(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 0, 1, 2, 3, err));
    const pl_value *bias = pl_in(g, n, 4);
    int64_t width = pl_in(g, n, 2)->shape.dim[0];
    pl_shape y = with_last(pl_in(g, n, 0)->shape, width);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != width)) return pl_fail_input(g, n, 4, "f32 [out]", err);
    PL_TRY(pl_expect_shape(g, n, 5, &y, "the shape of the output", err));
    out[0] = (pl_out){y, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient_feed_forward(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], w1 = n->in[1], w2 = n->in[2], b1 = n->in[3], b2 = n->in[4],
          db2 = PL_NONE, out[4] = {pl_gradient_output(g, x), PL_NONE, PL_NONE, PL_NONE};
    if (dy == PL_NONE) return PL_OK;
    if (pl_gradient_accumulator(g, b2) != PL_NONE)
        pl_gradient_accumulated(
            g, b2,
            pl_build_node(g->b, PL_OP_COLUMN_SUM, NULL, 2, (pl_id[]){dy, pl_gradient_accumulator(g, b2)}, 1, &db2));
    pl_id in[9] = {dy,
                   x,
                   w1,
                   w2,
                   pl_gradient_accumulator(g, w1),
                   pl_gradient_accumulator(g, w2),
                   b1,
                   pl_gradient_accumulator(g, b1),
                   pl_gradient_take(g, x)};
    bool needed = out[0] != PL_UNWANTED || in[4] != PL_NONE || in[5] != PL_NONE || in[7] != PL_NONE;
    if (needed) pl_build_node(g->b, PL_OP_FEED_FORWARD_BWD, n->attr, 9, in, 4, out);
    if (needed) pl_gradient_add(g, x, out[0]);
    pl_gradient_accumulated(g, w1, out[1]);
    pl_gradient_accumulated(g, w2, out[2]);
    pl_gradient_accumulated(g, b1, out[3]);
    if (n->in[5] != PL_NONE) pl_gradient_add(g, n->in[5], dy);
    return g->b->status;
}

static pl_cost cost_feed_forward(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w1 = pl_in(g, n, 1), *w2 = pl_in(g, n, 2);
    double flops = 2 * (double)pl_shape_rows(&x->shape) * (pl_value_elems_f(w1) + pl_value_elems_f(w2));
    double bytes = pl_value_bytes_f(x) + pl_value_bytes_f(w1) + pl_value_bytes_f(w2);
    return (pl_cost){flops, bytes + pl_value_bytes_f(&g->value[n->out[0]]) + pl_value_bytes_f(pl_in(g, n, 5)), flops};
}

/* Rows are read before the same rows of y are written. */
const pl_op_rule pl_rule_FEED_FORWARD = {shape_feed_forward, gradient_feed_forward, cost_feed_forward};

/* ---- feed_forward_bwd: dy [...,N], x, W1, W2, [dW1], [dW2], [b1], [db1], [partial ...,D] → [dx], [dW1'], [dW2'],
 * [db1'] ---- */
static pl_status shape_feed_forward_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 1, 2, 3, 6, err));
    const pl_value *x = pl_in(g, n, 1), *w1 = pl_in(g, n, 2), *w2 = pl_in(g, n, 3), *db1 = pl_in(g, n, 7);
    pl_shape y = with_last(x->shape, w2->shape.dim[0]), hidden = pl_shape_of(1, w1->shape.dim[0]);
    PL_TRY(pl_expect_shape(g, n, 0, &y, "[..., out], a row for each of the input", err));
    PL_TRY(pl_expect_shape(g, n, 4, &w1->shape, "the shape of the first matrix", err));
    PL_TRY(pl_expect_shape(g, n, 5, &w2->shape, "the shape of the second matrix", err));
    PL_TRY(pl_expect_shape(g, n, 7, &hidden, "f32 [hidden]", err));
    PL_TRY(pl_expect_shape(g, n, 8, &x->shape, "the shape of the input", err));
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = (pl_out){w1->shape, PL_DTYPE_F32};
    out[2] = (pl_out){w2->shape, PL_DTYPE_F32};
    if (db1) out[3] = (pl_out){hidden, PL_DTYPE_F32};
    return PL_OK;
}

/* At most five products: the hidden values again, their gradient, both weights', the input's. */
static pl_cost cost_feed_forward_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 1), *w1 = pl_in(g, n, 2), *w2 = pl_in(g, n, 3);
    double first = 1 + (n->out[0] != PL_NONE) + (n->out[1] != PL_NONE), second = 1 + (n->out[2] != PL_NONE);
    double flops =
        2 * (double)pl_shape_rows(&x->shape) * (first * pl_value_elems_f(w1) + second * pl_value_elems_f(w2));
    double read = pl_value_bytes_f(pl_in(g, n, 0)) + pl_value_bytes_f(x) + pl_value_bytes_f(w1) + pl_value_bytes_f(w2);
    double sums = 2 * (pl_value_bytes_f(pl_in(g, n, 4)) + pl_value_bytes_f(pl_in(g, n, 5)));
    return (pl_cost){flops, read + sums + pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 8)), flops};
}

const pl_op_rule pl_rule_FEED_FORWARD_BWD = {shape_feed_forward_bwd, NULL, cost_feed_forward_bwd};
