/* Layers of signs (Rastegari et al., "XNOR-Net", 2016; docs/binary.md): row j of a weight is represented by its signs
 * and alpha_j = mean|w_j|, row i of the input by its signs and beta_i = mean|x_i|, and
 *
 *      y_ij = alpha_j·beta_i·(K − 2·#{k: the signs of x_ik and w_jk differ}) + b_j + residual_ij          sign(0) = +
 *
 * The weight is latent: f32, and updated as such. Its signs are packed once a step (pack_signs), and the same product
 * runs in training and after it. Backward, with S = sign(x), T = sign(w), X~ = beta·S, W~ = alpha·T:
 *
 *      dX~ = dy W~       dx_ik = beta_i·[|x_ik| ≤ 1]·dX~_ik + |x_ik|'/K·Σ_m S_im dX~_im          |0|' = 0
 *      dW~ = dyᵀ X~      dw_jk = (1/K + alpha_j·[|w_jk| ≤ 1])·dW~_jk
 *
 * dx is the derivative of beta·S, taking the derivative of a sign as 1 within ±1 and 0 beyond (straight-through); beta
 * has its true derivative. dw is the paper's: of alpha's derivative it keeps only the part from the number itself. A
 * weight's gradient is a sum of dW~ until all are in; then latent_gradient turns it into dw. */
#include "base/binary.h"
#include "ir/op.h"

/* f32 [..., width] */
static pl_status expect_rows(const pl_graph *g, const pl_node *n, const pl_id *rows, pl_error *err)
{
    const pl_shape *s = &g->value[*rows].shape;
    if (s->rank < 1 || s->symbolic >> (s->rank - 1) & 1 || pl_shape_last(s) < 1 || pl_shape_last(s) > PL_BINARY_K_MAX)
        return pl_fail_operand(g, n, rows, "f32 [..., width], of at most 2^24 numbers", err);
    return PL_OK;
}

static pl_status expect_matrix(const pl_graph *g, const pl_node *n, const pl_id *matrix, pl_error *err)
{
    const pl_shape *s = &g->value[*matrix].shape;
    if (s->rank != 2 || s->symbolic || s->dim[0] < 1 || s->dim[1] < 1 || s->dim[1] > PL_BINARY_K_MAX)
        return pl_fail_operand(g, n, matrix, "f32 [out, in] with in at most 2^24", err);
    return PL_OK;
}

static pl_shape with_last(pl_shape s, int64_t last)
{
    s.dim[s.rank - 1] = last;
    return s;
}

/* ---- pack_signs: weight f32 [N,K] → packed, the same as signs ---- */
static pl_status shape_pack_signs(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_id *weight = &n->pack_signs.weight;
    PL_TRY(expect_matrix(g, n, weight, err));
    *out = (pl_out){g->value[*weight].shape, PL_DTYPE_F32, PL_ENCODING_SIGNS};
    return PL_OK;
}

static pl_cost cost_pack_signs(const pl_graph *g, const pl_node *n)
{
    const pl_value *w = &g->value[n->pack_signs.weight], *packed = &g->value[n->pack_signs.packed];
    return (pl_cost){2 * pl_value_elems_f(w), pl_value_bytes_f(w) + pl_value_bytes_f(packed)};
}

const pl_op_rule pl_rule_PACK_SIGNS = {shape_pack_signs, NULL, cost_pack_signs};

/* ---- linear_binary: x f32 [...,K], packed [N,K] as signs, bias [N], residual [...,N], latent [N,K] → y [...,N] ----
 * The latent weight, if it is trained, is what the gradient is for; its numbers are not read. */
static pl_status shape_linear_binary(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_binary_args *a = &n->linear_binary;
    const pl_shape *x = &g->value[a->x].shape, *w = &g->value[a->packed].shape;
    PL_TRY(expect_rows(g, n, &a->x, err));
    PL_TRY(pl_expect_stored(g, n, &a->packed, PL_ENCODING_SIGNS, pl_shape_last(x), err));
    const pl_shape y = with_last(*x, w->dim[0]), bias = {.rank = 1, .dim = {w->dim[0]}};
    PL_TRY(pl_expect_operand(g, n, &a->bias, &bias, "a number for each column", err));
    PL_TRY(pl_expect_operand(g, n, &a->residual, &y, "the shape of the output", err));
    PL_TRY(pl_expect_operand(g, n, &a->latent, w, "the shape of its signs", err));
    *out = (pl_out){y, PL_DTYPE_F32};
    return PL_OK;
}

static void finish(pl_builder *b, pl_id sum, pl_id weight)
{
    pl_latent_gradient_args a = pl_latent_gradient_none;
    a.sum = sum, a.weight = weight;
    pl_build_latent_gradient(b, &a);
}

static pl_status gradient_linear_binary(pl_gradient *g, const pl_node *n)
{
    const pl_linear_binary_args *a = &n->linear_binary;
    pl_linear_binary_dw_args dw = pl_linear_binary_dw_none;
    pl_linear_binary_dx_args dx = pl_linear_binary_dx_none;
    dw.dy = dx.dy = pl_gradient_of(g, a->y), dw.x = dx.x = a->x;
    if (dw.dy == PL_NONE) return PL_OK;
    pl_gradient_add_bias(g, a->bias, dw.dy);
    dw.dweight = pl_gradient_accumulator(g, a->latent);
    if (dw.dweight != PL_NONE) pl_gradient_accumulated_for(g, a->latent, pl_build_linear_binary_dw(g->b, &dw), finish);
    dx.packed = a->packed;
    if (pl_gradient_is_wanted(g, a->x)) pl_gradient_add(g, a->x, pl_build_linear_binary_dx(g->b, &dx));
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, dw.dy);
    return g->b->status;
}

static double product_flops(const pl_value *x, int64_t columns) { return 2 * pl_value_elems_f(x) * (double)columns; }

static pl_cost cost_linear_binary(const pl_graph *g, const pl_node *n)
{
    const pl_linear_binary_args *a = &n->linear_binary;
    const pl_value *x = &g->value[a->x];
    const double flops = product_flops(x, g->value[a->packed].shape.dim[0]);
    return (pl_cost){flops,
                     pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[a->packed]) + pl_value_bytes_f(&g->value[a->y]) +
                         pl_value_bytes_f(pl_value_at(g, a->residual)),
                     flops};
}

const pl_op_rule pl_rule_LINEAR_BINARY = {shape_linear_binary, gradient_linear_binary, cost_linear_binary};

/* ---- linear_binary_dx: dy f32 [...,N], packed [N,K] as signs, x f32 [...,K] → dx [...,K] ---- */
static pl_status shape_dx(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_binary_dx_args *a = &n->linear_binary_dx;
    PL_TRY(expect_rows(g, n, &a->dy, err));
    PL_TRY(expect_rows(g, n, &a->x, err));
    const pl_shape *x = &g->value[a->x].shape;
    PL_TRY(pl_expect_stored(g, n, &a->packed, PL_ENCODING_SIGNS, pl_shape_last(x), err));
    const pl_shape dy = with_last(*x, g->value[a->packed].shape.dim[0]);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &dy, "[..., out], a row for each of the input", err));
    *out = (pl_out){*x, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_dx(const pl_graph *g, const pl_node *n)
{
    const pl_linear_binary_dx_args *a = &n->linear_binary_dx;
    const pl_value *dy = &g->value[a->dy], *x = &g->value[a->x];
    return (pl_cost){product_flops(x, pl_shape_last(&dy->shape)),
                     pl_value_bytes_f(dy) + 4 * pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[a->packed])};
}

const pl_op_rule pl_rule_LINEAR_BINARY_DX = {shape_dx, NULL, cost_dx};

/* ---- linear_binary_dw: dy f32 [...,N], x f32 [...,K], dweight, which is dW~, f32 [N,K] ---- */
static pl_status shape_dw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_linear_binary_dw_args *a = &n->linear_binary_dw;
    (void)out;
    PL_TRY(expect_rows(g, n, &a->dy, err));
    PL_TRY(expect_rows(g, n, &a->x, err));
    const pl_shape *dy = &g->value[a->dy].shape, *x = &g->value[a->x].shape;
    if (pl_shape_rows(dy) != pl_shape_rows(x)) return pl_fail_operand(g, n, &a->x, "as many rows as the gradient", err);
    const pl_shape w = pl_shape_of(2, pl_shape_last(dy), pl_shape_last(x));
    return pl_expect_operand(g, n, &a->dweight, &w, "[out, in]", err);
}

static pl_cost cost_dw(const pl_graph *g, const pl_node *n)
{
    const pl_linear_binary_dw_args *a = &n->linear_binary_dw;
    const pl_value *dy = &g->value[a->dy], *x = &g->value[a->x], *sum = &g->value[a->dweight];
    return (pl_cost){product_flops(x, pl_shape_last(&dy->shape)),
                     pl_value_bytes_f(dy) + 2 * pl_value_bytes_f(x) + 2 * pl_value_bytes_f(sum)};
}

const pl_op_rule pl_rule_LINEAR_BINARY_DW = {shape_dw, NULL, cost_dw};

/* ---- latent_gradient: sum, dW~ that becomes dw, f32 [N,K], weight f32 [N,K] ---- */
static pl_status shape_latent_gradient(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_latent_gradient_args *a = &n->latent_gradient;
    (void)out;
    PL_TRY(expect_matrix(g, n, &a->weight, err));
    return pl_expect_operand(g, n, &a->sum, &g->value[a->weight].shape, "the shape of the weight", err);
}

static pl_cost cost_latent_gradient(const pl_graph *g, const pl_node *n)
{
    const pl_value *w = &g->value[n->latent_gradient.weight];
    return (pl_cost){4 * pl_value_elems_f(w), 3 * pl_value_bytes_f(w)};
}

const pl_op_rule pl_rule_LATENT_GRADIENT = {shape_latent_gradient, NULL, cost_latent_gradient};
