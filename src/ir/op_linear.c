/* y = x Wᵀ + b with W [out,in] as everywhere in the field; dx = dy W; dW += dyᵀ x; db += Σ dy.
 * What flows (x, W, y, their gradients) is of one type in a node, f32, bf16 or f16; biases and sums of gradients are
 * f32, and so may y be that a model gives out.
 * This is the file to read before adding an operator: each family file has this shape. */
#include "ir/op.h"

/* y where it is there already as f32, else of the type of x; what is made or added beside it is as it is. */
static pl_dtype dtype_of_linear(const pl_graph *g, const pl_node *n)
{
    const bool alone = n->out[0] != PL_NONE && n->out[1] == PL_NONE && n->in[3] == PL_NONE;
    return alone && g->value[n->out[0]].dtype == PL_DTYPE_F32 ? PL_DTYPE_F32 : pl_in(g, n, 0)->dtype;
}

/* ---- linear: x [...,K], W [N,K], [bias N], [residual ...,N] → y [...,N], [act(y)] ----
 * With act, y is the pre-activation and the second output is act(y). */
static pl_status shape_linear(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1), *bias = pl_in(g, n, 2);
    PL_TRY(pl_expect_inputs(g, n, "rrfr", err));
    if (x->shape.rank < 1) return pl_fail_input(g, n, 0, "[..., in]", err);
    if (w->shape.rank != 2 || w->shape.dim[1] != pl_shape_last(&x->shape))
        return pl_fail_input(g, n, 1, "[out, in] with in = the input's last dimension", err);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != w->shape.dim[0]))
        return pl_fail_input(g, n, 2, "f32 [out]", err);
    pl_shape y = x->shape;
    y.dim[y.rank - 1] = w->shape.dim[0];
    PL_TRY(pl_expect_shape(g, n, 3, &y, "the shape of the output", err));
    out[0] = out[1] = (pl_out){y, dtype_of_linear(g, n)};
    return PL_OK;
}

/* dW comes before dx: its operand x is then dead when dx is born. */
static pl_status gradient_linear(pl_gradient *g, const pl_node *n)
{
    pl_id da = n->out[1] == PL_NONE ? PL_NONE : pl_gradient_of(g, n->out[1]), du = PL_NONE;
    if (da != PL_NONE)
        pl_gradient_add(g, n->out[0],
                        pl_build_node(g->b, PL_OP_ACTIVATION_BWD, n->attr, 2, (pl_id[]){n->out[0], da}, 1, &du));
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], w = n->in[1];
    if (dy == PL_NONE) return PL_OK;
    pl_id acc = pl_gradient_accumulator(g, w), out = PL_NONE;
    pl_gradient_add_bias(g, n->in[2], dy);
    if (acc != PL_NONE)
        pl_gradient_accumulated(g, w, pl_build_node(g->b, PL_OP_LINEAR_DW, NULL, 3, (pl_id[]){dy, x, acc}, 1, &out));
    if (pl_gradient_is_wanted(g, x)) {
        pl_id dx_in[4] = {dy, w, pl_gradient_take(g, x), PL_NONE}, dx = PL_NONE;
        pl_build_node(g->b, PL_OP_LINEAR_DX, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 4, dx_in, 1, &dx);
        pl_gradient_add(g, x, dx);
    }
    if (n->in[3] != PL_NONE) pl_gradient_add(g, n->in[3], dy);
    return g->b->status;
}

static pl_cost cost_linear(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    double m = (double)pl_shape_rows(&x->shape), nk = pl_value_elems_f(w), outputs = n->out[1] == PL_NONE ? 1 : 2;
    double y = m * (double)w->shape.dim[0] * (double)pl_dtype_bytes(g->value[n->out[0]].dtype);
    return (pl_cost){2 * m * nk,
                     pl_value_bytes_f(x) + pl_value_bytes_f(w) + y * outputs + pl_value_bytes_f(pl_in(g, n, 3)),
                     2 * m * nk};
}

static pl_alias alias_linear(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = -1, .may = out == 0 ? 1u << 3 : 0}; /* the residual stream, added element by element */
}

const pl_op_rule pl_rule_LINEAR = {shape_linear, gradient_linear, cost_linear, alias_linear};

/* ---- linear_dx: dy [...,N], W [N,K], [partial ...,K], [u ...,K] → dx [...,K], [act(u)] ----
 * dx = dy W (+ partial) (· act'(u)); with u the second output, if wanted, computes act(u) once more. */
static pl_status shape_linear_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *dy = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    PL_TRY(pl_expect_inputs(g, n, "rrrr", err));
    if (dy->shape.rank < 1) return pl_fail_input(g, n, 0, "[..., out]", err);
    if (w->shape.rank != 2 || w->shape.dim[0] != pl_shape_last(&dy->shape))
        return pl_fail_input(g, n, 1, "[out, in] with out = the gradient's last dimension", err);
    pl_shape x = dy->shape;
    x.dim[x.rank - 1] = w->shape.dim[1];
    for (int k = 2; k <= 3; k++) PL_TRY(pl_expect_shape(g, n, k, &x, "the shape of the output", err));
    out[0] = out[1] = (pl_out){x, dy->dtype};
    return PL_OK;
}

static pl_cost cost_linear_dx(const pl_graph *g, const pl_node *n)
{
    const pl_value *dy = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    double m = (double)pl_shape_rows(&dy->shape), nk = pl_value_elems_f(w);
    double x = m * (double)w->shape.dim[1] * (double)pl_dtype_bytes(dy->dtype);
    return (pl_cost){2 * m * nk,
                     pl_value_bytes_f(dy) + pl_value_bytes_f(w) + x + pl_value_bytes_f(pl_in(g, n, 2)) +
                         pl_value_bytes_f(pl_in(g, n, 3)),
                     2 * m * nk};
}

static pl_alias alias_linear_dx(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = -1, .may = out == 0 ? 1u << 2 | 1u << 3 : 0};
}

const pl_op_rule pl_rule_LINEAR_DX = {shape_linear_dx, NULL, cost_linear_dx, alias_linear_dx};

/* ---- linear_dw: dy [...,N], x [...,K], dW [N,K] → dW' ---- */
static pl_status shape_linear_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *dy = pl_in(g, n, 0), *x = pl_in(g, n, 1), *acc = pl_in(g, n, 2);
    PL_TRY(pl_expect_inputs(g, n, "rrf", err));
    if (dy->shape.rank < 1 || x->shape.rank < 1 || pl_shape_rows(&dy->shape) != pl_shape_rows(&x->shape))
        return pl_fail_input(g, n, 1, "as many rows as the gradient", err);
    pl_shape want = pl_shape_of(2, pl_shape_last(&dy->shape), pl_shape_last(&x->shape));
    if (!pl_shape_equal(&acc->shape, &want)) return pl_fail_input(g, n, 2, "f32 [out, in]", err);
    out[0] = (pl_out){want, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_linear_dw(const pl_graph *g, const pl_node *n)
{
    const pl_value *dy = pl_in(g, n, 0), *x = pl_in(g, n, 1), *acc = pl_in(g, n, 2);
    double m = (double)pl_shape_rows(&dy->shape), nk = pl_value_elems_f(acc);
    return (pl_cost){2 * m * nk, pl_value_bytes_f(dy) + pl_value_bytes_f(x) + 2 * pl_value_bytes_f(acc), 2 * m * nk};
}

static pl_alias alias_linear_dw(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 2};
}

const pl_op_rule pl_rule_LINEAR_DW = {shape_linear_dw, NULL, cost_linear_dw, alias_linear_dw};

/* ---- column_sum: x [...,N], sum [N] → sum'; the sum may also keep more of x's last dimensions ---- */
static bool are_last(const pl_shape *last, const pl_shape *of)
{
    bool fine = last->rank >= 1 && last->rank <= of->rank;
    for (uint32_t i = 1; fine && i <= last->rank; i++)
        fine = last->dim[last->rank - i] == of->dim[of->rank - i] && !(of->symbolic >> (of->rank - i) & 1);
    return fine && !last->symbolic;
}

static pl_status shape_column_sum(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *acc = pl_in(g, n, 1);
    PL_TRY(pl_expect_inputs(g, n, "rf", err));
    if (!are_last(&acc->shape, &x->shape)) return pl_fail_input(g, n, 1, "f32 [last dimensions of the input]", err);
    out[0] = (pl_out){acc->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_column_sum(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){pl_value_elems_f(x), pl_value_bytes_f(x)};
}

static pl_alias alias_column_sum(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 1};
}

const pl_op_rule pl_rule_COLUMN_SUM = {shape_column_sum, NULL, cost_column_sum, alias_column_sum};
