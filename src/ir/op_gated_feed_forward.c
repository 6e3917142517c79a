/* A feed-forward layer whose activation gates a second product (SwiGLU where it is SiLU; Shazeer, "GLU Variants Improve
 * Transformer", 2020), in chunks of rows, as feed_forward is. gate_up holds the rows of the gate, then those of what it
 * gates. In the forward pass neither of the two ever exists: the product's epilogue multiplies them. The backward pass
 * recomputes both, for a chunk's rows at a time. No biases. */
#include "ir/op.h"

static pl_shape with_last(pl_shape s, int64_t last)
{
    s.dim[s.rank - 1] = last;
    return s;
}

_Static_assert(offsetof(pl_gated_feed_forward_args, rows) == offsetof(pl_gated_feed_forward_bwd_args, rows),
               "one rule reads both");

/* x [...,D], gate_up [2F,D], down [N,F] */
static pl_status check(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *gate_up, const pl_id *down,
                       pl_error *err)
{
    const pl_shape *in = &g->value[*x].shape, *first = &g->value[*gate_up].shape, *second = &g->value[*down].shape;
    const int64_t rows = n->gated_feed_forward.rows;
    if (in->rank < 1) return pl_fail_operand(g, n, x, "[..., in]", err);
    if (first->rank != 2 || first->dim[1] != pl_shape_last(in) || first->dim[0] % 2)
        return pl_fail_operand(g, n, gate_up, "[2·hidden, in] with in = the input's last dimension", err);
    if (second->rank != 2 || second->dim[1] != first->dim[0] / 2)
        return pl_fail_operand(g, n, down, "[out, hidden]", err);
    if (rows < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a chunk has at least 1 row, not %lld", pl_op_name(n->op),
                       n->scope, (long long)rows);
    return PL_OK;
}

/* ---- gated_feed_forward: x [...,D], gate_up [2F,D], down [N,F], residual [...,N] → y [...,N] ---- */
static pl_status shape_forward(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gated_feed_forward_args *a = &n->gated_feed_forward;
    PL_TRY(check(g, n, &a->x, &a->gate_up, &a->down, err));
    const pl_value *x = &g->value[a->x];
    const pl_shape y = with_last(x->shape, g->value[a->down].shape.dim[0]);
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    *out = (pl_out){y, x->dtype};
    return PL_OK;
}

/* The backward node, if any of its outputs is wanted. */
static void build_bwd(pl_gradient *g, const pl_gated_feed_forward_args *a, pl_id dy)
{
    pl_gated_feed_forward_bwd_args b = pl_gated_feed_forward_bwd_none;
    b.dy = dy, b.x = a->x, b.gate_up = a->gate_up, b.down = a->down;
    b.dgate_up = pl_gradient_accumulator(g, a->gate_up), b.ddown = pl_gradient_accumulator(g, a->down);
    b.partial = pl_gradient_take(g, a->x), b.dx = pl_gradient_output(g, a->x);
    b.act = a->act, b.rows = a->rows;
    if (b.dx == PL_UNWANTED && b.dgate_up == PL_NONE && b.ddown == PL_NONE) return;
    pl_build_gated_feed_forward_bwd(g->b, &b);
    pl_gradient_add(g, a->x, b.dx);
    pl_gradient_accumulated(g, a->gate_up, b.dgate_up_new);
    pl_gradient_accumulated(g, a->down, b.ddown_new);
}

static pl_status gradient(pl_gradient *g, const pl_node *n)
{
    const pl_gated_feed_forward_args *a = &n->gated_feed_forward;
    const pl_id dy = pl_gradient_of(g, a->y);
    if (dy == PL_NONE) return PL_OK;
    build_bwd(g, a, dy);
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dy);
    return g->b->status;
}

static pl_cost cost_forward(const pl_graph *g, const pl_node *n)
{
    const pl_gated_feed_forward_args *a = &n->gated_feed_forward;
    const pl_value *x = &g->value[a->x], *gate_up = &g->value[a->gate_up], *down = &g->value[a->down];
    double flops = 2 * (double)pl_shape_rows(&x->shape) * (pl_value_elems_f(gate_up) + pl_value_elems_f(down));
    double bytes = pl_value_bytes_f(x) + pl_value_bytes_f(gate_up) + pl_value_bytes_f(down);
    return (pl_cost){flops, bytes + pl_value_bytes_f(&g->value[a->y]) + pl_value_bytes_f(pl_value_at(g, a->residual)),
                     flops};
}

/* Rows are read before the same rows of y are written. */
const pl_op_rule pl_rule_GATED_FEED_FORWARD = {shape_forward, gradient, cost_forward};

/* ---- gated_feed_forward_bwd: dy [...,N], x [...,D], gate_up [2F,D], down [N,F], partial [...,D] → dx [...,D] ---- */
static pl_status shape_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gated_feed_forward_bwd_args *a = &n->gated_feed_forward_bwd;
    PL_TRY(check(g, n, &a->x, &a->gate_up, &a->down, err));
    const pl_value *x = &g->value[a->x], *gate_up = &g->value[a->gate_up], *down = &g->value[a->down];
    const pl_shape y = with_last(x->shape, down->shape.dim[0]);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "[..., out], a row for each of the input", err));
    PL_TRY(pl_expect_operand(g, n, &a->dgate_up, &gate_up->shape, "the shape of the first matrix", err));
    PL_TRY(pl_expect_operand(g, n, &a->ddown, &down->shape, "the shape of the second matrix", err));
    PL_TRY(pl_expect_operand(g, n, &a->partial, &x->shape, "the shape of the input", err));
    out[PL_OUT_OF(gated_feed_forward_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

/* At most five products: both factors again, and the gradients of their product, of both weights and of the input. */
static pl_cost cost_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_gated_feed_forward_bwd_args *a = &n->gated_feed_forward_bwd;
    const pl_value *x = &g->value[a->x], *gate_up = &g->value[a->gate_up], *down = &g->value[a->down];
    double first = 1 + (a->dx != PL_NONE) + (a->dgate_up_new != PL_NONE), second = 1 + (a->ddown_new != PL_NONE);
    double flops =
        2 * (double)pl_shape_rows(&x->shape) * (first * pl_value_elems_f(gate_up) + second * pl_value_elems_f(down));
    double read =
        pl_value_bytes_f(&g->value[a->dy]) + pl_value_bytes_f(x) + pl_value_bytes_f(gate_up) + pl_value_bytes_f(down);
    double sums = 2 * (pl_value_bytes_f(pl_value_at(g, a->dgate_up)) + pl_value_bytes_f(pl_value_at(g, a->ddown)));
    return (pl_cost){flops, read + sums + pl_value_bytes_f(x) + pl_value_bytes_f(pl_value_at(g, a->partial)), flops};
}

const pl_op_rule pl_rule_GATED_FEED_FORWARD_BWD = {shape_bwd, NULL, cost_bwd};

/* ---- gated_activation: x f32 [...,2F] → y [...,F], or gate x and up [...,F] of any type → y = act(x)·up ----
 * What gated_feed_forward does between its two products, where the hidden values are needed whole (rewrite/unfold.c,
 * layers of signs). */
static pl_status check_factors(const pl_graph *g, const pl_node *n, const pl_id *factors, pl_error *err)
{
    const pl_shape *x = &g->value[*factors].shape;
    if (x->rank < 2 || pl_shape_last(x) % 2 || pl_shape_last(x) < 2 || x->symbolic >> (x->rank - 1))
        return pl_fail_operand(g, n, factors, "f32 [..., 2·hidden]", err);
    return PL_OK;
}

static pl_status shape_activation(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gated_activation_args *a = &n->gated_activation;
    const pl_shape *x = &g->value[a->x].shape;
    if (a->up != PL_NONE) {
        *out = pl_out_like(&g->value[a->x]);
        return pl_expect_operand(g, n, &a->up, x, "the shape of the gate", err);
    }
    if (g->value[a->x].dtype != PL_DTYPE_F32) return pl_fail_operand(g, n, &a->x, "f32 where it makes both", err);
    PL_TRY(check_factors(g, n, &a->x, err));
    *out = (pl_out){with_last(*x, pl_shape_last(x) / 2), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_activation(const pl_graph *g, const pl_node *n)
{
    const pl_gated_activation_args *a = &n->gated_activation;
    const double both = a->up == PL_NONE ? 1 : 2;
    return (pl_cost){10 * both * pl_value_elems_f(&g->value[a->x]), 1.5 * both * pl_value_bytes_f(&g->value[a->x])};
}

static pl_status gradient_activation(pl_gradient *g, const pl_node *n)
{
    const pl_gated_activation_args *a = &n->gated_activation;
    pl_gated_activation_bwd_args b = pl_gated_activation_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.x = a->x, b.act = a->act;
    if (b.dy == PL_NONE) return PL_OK;
    if (a->up != PL_NONE)
        return pl_fail(g->b->err, PL_E_UNSUPPORTED, "gated_activation in %s: of two values it cannot be trained",
                       n->scope);
    if (!pl_gradient_is_wanted(g, a->x)) return PL_OK;
    pl_gradient_add(g, a->x, pl_build_gated_activation_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_GATED_ACTIVATION = {shape_activation, gradient_activation, cost_activation, .recompute = true};

/* ---- gated_activation_bwd: dy f32 [...,F], x [...,2F] → dx ---- */
static pl_status shape_activation_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gated_activation_bwd_args *a = &n->gated_activation_bwd;
    const pl_shape *x = &g->value[a->x].shape;
    PL_TRY(check_factors(g, n, &a->x, err));
    const pl_shape y = with_last(*x, pl_shape_last(x) / 2);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "f32 [..., hidden]", err));
    *out = (pl_out){*x, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_activation_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->gated_activation_bwd.x];
    return (pl_cost){20 * pl_value_elems_f(x), 2.5 * pl_value_bytes_f(x)};
}

/* A row is read before it is written. */
const pl_op_rule pl_rule_GATED_ACTIVATION_BWD = {shape_activation_bwd, NULL, cost_activation_bwd};
