/* y = x Wᵀ + b with W [out,in] as everywhere in the field; dx = dy W; dW += dyᵀ x; db += Σ dy. x, W, y and their
 * gradients have one type in a node, f32, bf16 or f16; biases and sums of gradients are f32, and so may be a y that the
 * model outputs. This is the file to read before adding an operator: each family file has this shape. */
#include "ir/op.h"

/* f32 if y already exists as f32 and nothing else is made or added with it, else the type of x. */
static pl_dtype dtype_of_linear(const pl_graph *g, const pl_linear_args *a)
{
    const bool alone = a->y != PL_NONE && a->act_y == PL_NONE && a->residual == PL_NONE;
    return alone && g->value[a->y].dtype == PL_DTYPE_F32 ? PL_DTYPE_F32 : g->value[a->x].dtype;
}

/* ---- linear: x [...,K], weight [N,K], bias [N], residual [...,N] → y [...,N], act(y) ----
 * With act, y is the pre-activation and the second output is act(y). */
static pl_status shape_linear(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_args *a = &n->linear;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight], *bias = pl_value_at(g, a->bias);
    if (x->shape.rank < 1) return pl_fail_operand(g, n, &a->x, "[..., in]", err);
    if (w->shape.rank != 2 || w->shape.dim[1] != pl_shape_last(&x->shape))
        return pl_fail_operand(g, n, &a->weight, "[out, in] with in = the input's last dimension", err);
    if (bias && (bias->shape.rank != 1 || bias->shape.dim[0] != w->shape.dim[0]))
        return pl_fail_operand(g, n, &a->bias, "f32 [out]", err);
    PL_TRY(pl_expect_rounded(g, n, &a->x, w, err));
    pl_shape y = x->shape;
    y.dim[y.rank - 1] = w->shape.dim[0];
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    out[PL_OUT_OF(linear, y)] = out[PL_OUT_OF(linear, act_y)] = (pl_out){y, dtype_of_linear(g, a)};
    return PL_OK;
}

/* dW comes before dx, so that its operand x is dead when dx is born. */
static pl_status gradient_linear(pl_gradient *g, const pl_node *n)
{
    const pl_linear_args *a = &n->linear;
    pl_activation_bwd_args pass = pl_activation_bwd_none;
    pl_linear_dw_args dw = pl_linear_dw_none;
    pl_linear_dx_args dx = pl_linear_dx_none;
    pass.x = a->y, pass.dy = pl_gradient_of(g, a->act_y), pass.act = a->act;
    if (pass.dy != PL_NONE) pl_gradient_add(g, a->y, pl_build_activation_bwd(g->b, &pass));
    dw.dy = dx.dy = pl_gradient_of(g, a->y);
    if (dw.dy == PL_NONE) return PL_OK;
    pl_gradient_add_bias(g, a->bias, dw.dy);
    dw.x = a->x, dw.dweight = pl_gradient_accumulator(g, a->weight);
    if (dw.dweight != PL_NONE) pl_gradient_accumulated(g, a->weight, pl_build_linear_dw(g->b, &dw));
    if (pl_gradient_is_wanted(g, a->x)) {
        dx.weight = a->weight, dx.partial = pl_gradient_take(g, a->x);
        pl_gradient_add(g, a->x, pl_build_linear_dx(g->b, &dx));
    }
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dx.dy);
    return g->b->status;
}

static pl_cost cost_linear(const pl_graph *g, const pl_node *n)
{
    const pl_linear_args *a = &n->linear;
    const pl_value *x = &g->value[a->x], *w = &g->value[a->weight];
    double m = (double)pl_shape_rows(&x->shape), nk = pl_value_elems_f(w), outputs = a->act_y == PL_NONE ? 1 : 2;
    double y = m * (double)w->shape.dim[0] * (double)pl_dtype_bytes(g->value[a->y].dtype);
    return (pl_cost){2 * m * nk,
                     pl_value_bytes_f(x) + pl_value_bytes_f(w) + y * outputs +
                         pl_value_bytes_f(pl_value_at(g, a->residual)),
                     2 * m * nk};
}

const pl_op_rule pl_rule_LINEAR = {shape_linear, gradient_linear, cost_linear};

/* ---- linear_dx: dy [...,N], weight [N,K], partial [...,K], u [...,K] → dx [...,K], act(u) ----
 * dx = dy W (+ partial) (· act'(u)); with u the second output, if wanted, is act(u), recomputed. */
static pl_status shape_linear_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_dx_args *a = &n->linear_dx;
    const pl_value *dy = &g->value[a->dy], *w = &g->value[a->weight];
    if (dy->shape.rank < 1) return pl_fail_operand(g, n, &a->dy, "[..., out]", err);
    if (w->shape.rank != 2 || w->shape.dim[0] != pl_shape_last(&dy->shape))
        return pl_fail_operand(g, n, &a->weight, "[out, in] with out = the gradient's last dimension", err);
    pl_shape x = dy->shape;
    x.dim[x.rank - 1] = w->shape.dim[1];
    PL_TRY(pl_expect_operand(g, n, &a->partial, &x, "the shape of the output", err));
    PL_TRY(pl_expect_operand(g, n, &a->u, &x, "the shape of the output", err));
    out[PL_OUT_OF(linear_dx, dx)] = out[PL_OUT_OF(linear_dx, act_u)] = (pl_out){x, dy->dtype};
    return PL_OK;
}

static pl_cost cost_linear_dx(const pl_graph *g, const pl_node *n)
{
    const pl_linear_dx_args *a = &n->linear_dx;
    const pl_value *dy = &g->value[a->dy], *w = &g->value[a->weight];
    double m = (double)pl_shape_rows(&dy->shape), nk = pl_value_elems_f(w);
    double x = m * (double)w->shape.dim[1] * (double)pl_dtype_bytes(dy->dtype);
    return (pl_cost){2 * m * nk,
                     pl_value_bytes_f(dy) + pl_value_bytes_f(w) + x + pl_value_bytes_f(pl_value_at(g, a->partial)) +
                         pl_value_bytes_f(pl_value_at(g, a->u)),
                     2 * m * nk};
}

const pl_op_rule pl_rule_LINEAR_DX = {shape_linear_dx, NULL, cost_linear_dx};

/* ---- linear_dw: dy [...,N], x [...,K], dweight [N,K] ---- */
static pl_status shape_linear_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_dw_args *a = &n->linear_dw;
    const pl_shape *dy = &g->value[a->dy].shape, *x = &g->value[a->x].shape;
    (void)out;
    if (dy->rank < 1 || x->rank < 1 || pl_shape_rows(dy) != pl_shape_rows(x))
        return pl_fail_operand(g, n, &a->x, "as many rows as the gradient", err);
    const pl_shape want = pl_shape_of(2, pl_shape_last(dy), pl_shape_last(x));
    return pl_expect_operand(g, n, &a->dweight, &want, "f32 [out, in]", err);
}

static pl_cost cost_linear_dw(const pl_graph *g, const pl_node *n)
{
    const pl_linear_dw_args *a = &n->linear_dw;
    const pl_value *dy = &g->value[a->dy], *x = &g->value[a->x], *sum = &g->value[a->dweight];
    double m = (double)pl_shape_rows(&dy->shape), nk = pl_value_elems_f(sum);
    return (pl_cost){2 * m * nk, pl_value_bytes_f(dy) + pl_value_bytes_f(x) + 2 * pl_value_bytes_f(sum), 2 * m * nk};
}

const pl_op_rule pl_rule_LINEAR_DW = {shape_linear_dw, NULL, cost_linear_dw};

/* ---- column_sum: x [...,N], sum [N]; the sum may also keep more of x's last dimensions ---- */
static bool are_last(const pl_shape *last, const pl_shape *of)
{
    bool fine = last->rank >= 1 && last->rank <= of->rank;
    for (uint32_t i = 1; fine && i <= last->rank; i++)
        fine = last->dim[last->rank - i] == of->dim[of->rank - i] && !(of->symbolic >> (of->rank - i) & 1);
    return fine && !last->symbolic;
}

static pl_status shape_column_sum(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_column_sum_args *a = &n->column_sum;
    (void)out;
    if (are_last(&g->value[a->sum].shape, &g->value[a->x].shape)) return PL_OK;
    return pl_fail_operand(g, n, &a->sum, "f32 [last dimensions of the input]", err);
}

static pl_cost cost_column_sum(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->column_sum.x];
    return (pl_cost){pl_value_elems_f(x), pl_value_bytes_f(x)};
}

const pl_op_rule pl_rule_COLUMN_SUM = {shape_column_sum, NULL, cost_column_sum};
