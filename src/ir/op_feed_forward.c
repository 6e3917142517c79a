/* Two linears with an activation between them, done in chunks of rows: the hidden values of all rows, which are wider
 * than input and output, never exist at once, and none is kept for the backward pass, which recomputes each chunk's.
 * Built by rewrite/chunk.c from the nodes that they replace; the same numbers to the last bit. As in linear, a node's
 * activations have one type, f32, bf16 or f16; biases and sums of gradients are f32. */
#include "ir/op.h"

_Static_assert(offsetof(pl_feed_forward_args, rows) == offsetof(pl_feed_forward_bwd_args, rows), "one rule reads both");

/* x [...,D], up [F,D], down [N,F], up_bias [F] */
static pl_status check(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *up, const pl_id *down,
                       const pl_id *up_bias, pl_error *err)
{
    const pl_shape *in = &g->value[*x].shape, *first = &g->value[*up].shape, *second = &g->value[*down].shape;
    const pl_value *bias = pl_value_at(g, *up_bias);
    const int64_t rows = n->feed_forward.rows;
    if (in->rank < 1) return pl_fail_operand(g, n, x, "[..., in]", err);
    if (first->rank != 2 || first->dim[1] != pl_shape_last(in))
        return pl_fail_operand(g, n, up, "[hidden, in] with in = the input's last dimension", err);
    if (second->rank != 2 || second->dim[1] != first->dim[0]) return pl_fail_operand(g, n, down, "[out, hidden]", err);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != first->dim[0]))
        return pl_fail_operand(g, n, up_bias, "f32 [hidden]", err);
    if (rows < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)rows);
    return PL_OK;
}

static pl_shape with_last(pl_shape s, int64_t last)
{
    s.dim[s.rank - 1] = last;
    return s;
}

/* ---- feed_forward: x [...,D], up [F,D], down [N,F], up_bias [F], down_bias [N], residual [...,N] → y [...,N] ---- */
static pl_status shape_feed_forward(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_feed_forward_args *a = &n->feed_forward;
    PL_TRY(check(g, n, &a->x, &a->up, &a->down, &a->up_bias, err));
    const pl_value *x = &g->value[a->x], *bias = pl_value_at(g, a->down_bias);
    const int64_t width = g->value[a->down].shape.dim[0];
    const pl_shape y = with_last(x->shape, width);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != width))
        return pl_fail_operand(g, n, &a->down_bias, "f32 [out]", err);
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    *out = (pl_out){y, x->dtype};
    return PL_OK;
}

/* The backward node, if any of its outputs is wanted. */
static void build_bwd(pl_gradient *g, const pl_feed_forward_args *a, pl_id dy)
{
    pl_feed_forward_bwd_args b = pl_feed_forward_bwd_none;
    b.dy = dy, b.x = a->x, b.up = a->up, b.down = a->down, b.up_bias = a->up_bias;
    b.dup = pl_gradient_accumulator(g, a->up), b.ddown = pl_gradient_accumulator(g, a->down);
    b.dup_bias = pl_gradient_accumulator(g, a->up_bias);
    b.partial = pl_gradient_take(g, a->x), b.dx = pl_gradient_output(g, a->x);
    b.act = a->act, b.rows = a->rows;
    if (b.dx == PL_UNWANTED && b.dup == PL_NONE && b.ddown == PL_NONE && b.dup_bias == PL_NONE) return;
    pl_build_feed_forward_bwd(g->b, &b);
    pl_gradient_add(g, a->x, b.dx);
    pl_gradient_accumulated(g, a->up, b.dup_new);
    pl_gradient_accumulated(g, a->down, b.ddown_new);
    pl_gradient_accumulated(g, a->up_bias, b.dup_bias_new);
}

static pl_status gradient_feed_forward(pl_gradient *g, const pl_node *n)
{
    const pl_feed_forward_args *a = &n->feed_forward;
    const pl_id dy = pl_gradient_of(g, a->y);
    if (dy == PL_NONE) return PL_OK;
    pl_gradient_add_bias(g, a->down_bias, dy);
    build_bwd(g, a, dy);
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dy);
    return g->b->status;
}

static pl_cost cost_feed_forward(const pl_graph *g, const pl_node *n)
{
    const pl_feed_forward_args *a = &n->feed_forward;
    const pl_value *x = &g->value[a->x], *up = &g->value[a->up], *down = &g->value[a->down];
    double flops = 2 * (double)pl_shape_rows(&x->shape) * (pl_value_elems_f(up) + pl_value_elems_f(down));
    double bytes = pl_value_bytes_f(x) + pl_value_bytes_f(up) + pl_value_bytes_f(down);
    return (pl_cost){flops, bytes + pl_value_bytes_f(&g->value[a->y]) + pl_value_bytes_f(pl_value_at(g, a->residual)),
                     flops};
}

/* Rows are read before the same rows of y are written. */
const pl_op_rule pl_rule_FEED_FORWARD = {shape_feed_forward, gradient_feed_forward, cost_feed_forward};

/* ---- feed_forward_bwd: dy [...,N], x [...,D], up [F,D], down [N,F], up_bias [F], partial [...,D] → dx [...,D] ---- */
static pl_status shape_feed_forward_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_feed_forward_bwd_args *a = &n->feed_forward_bwd;
    PL_TRY(check(g, n, &a->x, &a->up, &a->down, &a->up_bias, err));
    const pl_value *x = &g->value[a->x], *up = &g->value[a->up], *down = &g->value[a->down];
    const pl_shape y = with_last(x->shape, down->shape.dim[0]), hidden = pl_shape_of(1, up->shape.dim[0]);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "[..., out], a row for each of the input", err));
    PL_TRY(pl_expect_operand(g, n, &a->dup, &up->shape, "the shape of the first matrix", err));
    PL_TRY(pl_expect_operand(g, n, &a->ddown, &down->shape, "the shape of the second matrix", err));
    PL_TRY(pl_expect_operand(g, n, &a->dup_bias, &hidden, "f32 [hidden]", err));
    PL_TRY(pl_expect_operand(g, n, &a->partial, &x->shape, "the shape of the input", err));
    out[PL_OUT_OF(feed_forward_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

/* At most five products: the hidden values again and the gradients of these, of both weights and of the input. */
static pl_cost cost_feed_forward_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_feed_forward_bwd_args *a = &n->feed_forward_bwd;
    const pl_value *x = &g->value[a->x], *up = &g->value[a->up], *down = &g->value[a->down];
    double first = 1 + (a->dx != PL_NONE) + (a->dup_new != PL_NONE), second = 1 + (a->ddown_new != PL_NONE);
    double flops =
        2 * (double)pl_shape_rows(&x->shape) * (first * pl_value_elems_f(up) + second * pl_value_elems_f(down));
    double read =
        pl_value_bytes_f(&g->value[a->dy]) + pl_value_bytes_f(x) + pl_value_bytes_f(up) + pl_value_bytes_f(down);
    double sums = 2 * (pl_value_bytes_f(pl_value_at(g, a->dup)) + pl_value_bytes_f(pl_value_at(g, a->ddown)));
    return (pl_cost){flops, read + sums + pl_value_bytes_f(x) + pl_value_bytes_f(pl_value_at(g, a->partial)), flops};
}

const pl_op_rule pl_rule_FEED_FORWARD_BWD = {shape_feed_forward_bwd, NULL, cost_feed_forward_bwd};
