/* Layer norm and RMS norm over the last dimension; the backward formulas are the textbooks'. RMS norm may lack a
 * gain. */
#include "ir/op.h"

static pl_status check(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *gamma, pl_error *err)
{
    const pl_shape *s = &g->value[*x].shape;
    const pl_value *gain = pl_value_at(g, *gamma);
    if (s->rank < 1) return pl_fail_operand(g, n, x, "f32 [..., width]", err);
    if (gain && (gain->shape.rank != 1 || gain->shape.dim[0] != pl_shape_last(s)))
        return pl_fail_operand(g, n, gamma, "f32 [width of the input]", err);
    return PL_OK;
}

static pl_shape rows_of(pl_shape s)
{
    s.rank--;
    return s;
}

static pl_out number_a_row(const pl_value *x) { return (pl_out){rows_of(x->shape), PL_DTYPE_F32}; }

static pl_cost cost_of_forward(const pl_value *x)
{
    return (pl_cost){8 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

static pl_cost cost_of_bwd(const pl_value *x) { return (pl_cost){14 * pl_value_elems_f(x), 4 * pl_value_bytes_f(x)}; }

/* ---- layer_norm: x [...,width], gamma [width], beta [width] → y [...,width], mean [...], rstd [...] ---- */
static pl_status shape_layer_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_layer_norm_args *a = &n->layer_norm;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check(g, n, &a->x, &a->gamma, err));
    PL_TRY(pl_expect_operand(g, n, &a->beta, &g->value[a->gamma].shape, "the shape of the gain", err));
    out[PL_OUT_OF(layer_norm, y)] = pl_out_like(x);
    out[PL_OUT_OF(layer_norm, mean)] = out[PL_OUT_OF(layer_norm, rstd)] = number_a_row(x);
    return PL_OK;
}

static pl_status gradient_layer_norm(pl_gradient *g, const pl_node *n)
{
    const pl_layer_norm_args *a = &n->layer_norm;
    pl_layer_norm_bwd_args b = pl_layer_norm_bwd_none;
    b.dy = pl_gradient_of(g, a->y);
    if (b.dy == PL_NONE) return PL_OK;
    b.x = a->x, b.gamma = a->gamma, b.mean = a->mean, b.rstd = a->rstd, b.eps = a->eps;
    b.dgamma = pl_gradient_accumulator(g, a->gamma), b.dbeta = pl_gradient_accumulator(g, a->beta);
    b.add = pl_gradient_take(g, a->x), b.dx = pl_gradient_output(g, a->x);
    pl_build_layer_norm_bwd(g->b, &b);
    pl_gradient_add(g, a->x, b.dx);
    pl_gradient_accumulated(g, a->gamma, b.dgamma_new);
    pl_gradient_accumulated(g, a->beta, b.dbeta_new);
    return g->b->status;
}

static pl_cost cost_layer_norm(const pl_graph *g, const pl_node *n)
{
    return cost_of_forward(&g->value[n->layer_norm.x]);
}

const pl_op_rule pl_rule_LAYER_NORM = {shape_layer_norm, gradient_layer_norm, cost_layer_norm, .recompute = true};

/* ---- layer_norm_bwd: dy, x, add [...,width], gamma, dgamma, dbeta [width], mean, rstd [...] → dx ---- */
static pl_status shape_layer_norm_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_layer_norm_bwd_args *a = &n->layer_norm_bwd;
    const pl_value *x = &g->value[a->x];
    const pl_shape *gamma = &g->value[a->gamma].shape;
    PL_TRY(check(g, n, &a->x, &a->gamma, err));
    const pl_shape rows = rows_of(x->shape);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &x->shape, "the shape of the norm's input", err));
    PL_TRY(pl_expect_operand(g, n, &a->add, &x->shape, "the shape of the norm's input", err));
    PL_TRY(pl_expect_operand(g, n, &a->mean, &rows, "one number a row", err));
    PL_TRY(pl_expect_operand(g, n, &a->rstd, &rows, "one number a row", err));
    PL_TRY(pl_expect_operand(g, n, &a->dgamma, gamma, "the shape of the gain", err));
    PL_TRY(pl_expect_operand(g, n, &a->dbeta, gamma, "the shape of the gain", err));
    out[PL_OUT_OF(layer_norm_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

static pl_cost cost_layer_norm_bwd(const pl_graph *g, const pl_node *n)
{
    return cost_of_bwd(&g->value[n->layer_norm_bwd.x]);
}

const pl_op_rule pl_rule_LAYER_NORM_BWD = {shape_layer_norm_bwd, NULL, cost_layer_norm_bwd};

/* ---- rms_norm: x [...,width], gamma [width] → y [...,width], rstd [...] ---- */
static pl_status shape_rms_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rms_norm_args *a = &n->rms_norm;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check(g, n, &a->x, &a->gamma, err));
    out[PL_OUT_OF(rms_norm, y)] = pl_out_like(x);
    out[PL_OUT_OF(rms_norm, rstd)] = number_a_row(x);
    return PL_OK;
}

static pl_status gradient_rms_norm(pl_gradient *g, const pl_node *n)
{
    const pl_rms_norm_args *a = &n->rms_norm;
    pl_rms_norm_bwd_args b = pl_rms_norm_bwd_none;
    b.dy = pl_gradient_of(g, a->y);
    if (b.dy == PL_NONE) return PL_OK;
    b.x = a->x, b.gamma = a->gamma, b.rstd = a->rstd, b.eps = a->eps;
    b.dgamma = pl_gradient_accumulator(g, a->gamma);
    b.add = pl_gradient_take(g, a->x), b.dx = pl_gradient_output(g, a->x);
    pl_build_rms_norm_bwd(g->b, &b);
    pl_gradient_add(g, a->x, b.dx);
    pl_gradient_accumulated(g, a->gamma, b.dgamma_new);
    return g->b->status;
}

static pl_cost cost_rms_norm(const pl_graph *g, const pl_node *n) { return cost_of_forward(&g->value[n->rms_norm.x]); }

const pl_op_rule pl_rule_RMS_NORM = {shape_rms_norm, gradient_rms_norm, cost_rms_norm, .recompute = true};

/* ---- rms_norm_bwd: dy, x, add [...,width], gamma, dgamma [width], rstd [...] → dx ---- */
static pl_status shape_rms_norm_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rms_norm_bwd_args *a = &n->rms_norm_bwd;
    const pl_value *x = &g->value[a->x], *gamma = pl_value_at(g, a->gamma);
    PL_TRY(check(g, n, &a->x, &a->gamma, err));
    const pl_shape rows = rows_of(x->shape);
    if (!gamma && a->dgamma != PL_NONE)
        return pl_fail_operand(g, n, &a->dgamma, "nothing, since there is no gain", err);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &x->shape, "the shape of the norm's input", err));
    PL_TRY(pl_expect_operand(g, n, &a->add, &x->shape, "the shape of the norm's input", err));
    PL_TRY(pl_expect_operand(g, n, &a->rstd, &rows, "one number a row", err));
    if (gamma) PL_TRY(pl_expect_operand(g, n, &a->dgamma, &gamma->shape, "the shape of the gain", err));
    out[PL_OUT_OF(rms_norm_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

static pl_cost cost_rms_norm_bwd(const pl_graph *g, const pl_node *n)
{
    return cost_of_bwd(&g->value[n->rms_norm_bwd.x]);
}

const pl_op_rule pl_rule_RMS_NORM_BWD = {shape_rms_norm_bwd, NULL, cost_rms_norm_bwd};
