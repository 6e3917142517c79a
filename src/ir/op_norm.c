/* Layer norm and RMS norm over the last dimension; the backward formulas are the textbooks'. RMS
 * norm may be without a gain. */
#include "ir/op.h"

static pl_status check(const pl_graph *g, const pl_node *n, int x, int gamma, pl_error *err)
{
    const pl_value *vx = pl_in(g, n, x), *vg = pl_in(g, n, gamma);
    if (vx->shape.rank < 1) return pl_fail_input(g, n, x, "f32 [..., width]", err);
    if (vg && (vg->shape.rank != 1 || vg->shape.dim[0] != pl_shape_last(&vx->shape)))
        return pl_fail_input(g, n, gamma, "f32 [width of the input]", err);
    return PL_OK;
}

static pl_shape rows_of(pl_shape s)
{
    s.rank--;
    return s;
}

/* layer_norm: x, gamma, [beta] → y, mean, rstd */
static pl_status shape_layer_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 0, 1, err));
    pl_shape s = pl_in(g, n, 0)->shape;
    if (n->op == PL_OP_LAYER_NORM)
        PL_TRY(pl_expect_shape(g, n, 2, &pl_in(g, n, 1)->shape, "the shape of the gain", err));
    out[0] = (pl_out){s, pl_in(g, n, 0)->dtype};
    out[1] = out[2] = (pl_out){rows_of(s), PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_layer_norm(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]);
    if (dy == PL_NONE) return PL_OK;
    pl_id x = n->in[0], gamma = n->in[1], beta = n->in[2], out[3] = {pl_gradient_output(g, x), PL_NONE, PL_NONE};
    pl_id in[8] = {dy,
                   x,
                   gamma,
                   n->out[1],
                   n->out[2],
                   pl_gradient_accumulator(g, gamma),
                   pl_gradient_accumulator(g, beta),
                   pl_gradient_take(g, x)};
    pl_build_node(g->b, PL_OP_LAYER_NORM_BWD, n->attr, 8, in, 3, out);
    pl_gradient_add(g, x, out[0]);
    pl_gradient_accumulated(g, gamma, out[1]);
    pl_gradient_accumulated(g, beta, out[2]);
    return g->b->status;
}

static pl_cost cost_forward(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){8 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

const pl_op_rule pl_rule_LAYER_NORM = {shape_layer_norm, gradient_layer_norm, cost_forward, .recompute = true};

/* layer_norm_bwd: dy, x, gamma, mean, rstd, [dgamma], [dbeta], [add] → [dx], [dgamma'], [dbeta'] */
static pl_status shape_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, 1, 2, err));
    const pl_value *x = pl_in(g, n, 1), *gamma = pl_in(g, n, 2);
    pl_shape rows = rows_of(x->shape);
    bool rms = n->op == PL_OP_RMS_NORM_BWD;
    if (!pl_in(g, n, 3)) return pl_fail_input(g, n, 3, "one number a row", err);
    if (!gamma && pl_in(g, n, 4)) return pl_fail_input(g, n, 4, "nothing, since there is no gain", err);
    PL_TRY(pl_expect_shape(g, n, 0, &x->shape, "the shape of the norm's input", err));
    PL_TRY(pl_expect_shape(g, n, rms ? 5 : 7, &x->shape, "the shape of the norm's input", err));
    for (int k = 3; k <= (rms ? 3 : 4); k++) PL_TRY(pl_expect_shape(g, n, k, &rows, "one number a row", err));
    for (int k = rms ? 4 : 5; k <= (rms ? 4 : 6); k++)
        if (gamma) PL_TRY(pl_expect_shape(g, n, k, &gamma->shape, "the shape of the gain", err));
    out[0] = (pl_out){x->shape, x->dtype};
    if (gamma) out[1] = out[2] = (pl_out){gamma->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 1);
    return (pl_cost){14 * pl_value_elems_f(x), 4 * pl_value_bytes_f(x)};
}

const pl_op_rule pl_rule_LAYER_NORM_BWD = {shape_bwd, NULL, cost_bwd};

/* rms_norm: x, [gamma] → y, rstd */
static pl_status gradient_rms_norm(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out[2] = {pl_gradient_output(g, n->in[0]), PL_NONE};
    if (dy == PL_NONE) return PL_OK;
    pl_id in[6] = {
        dy, n->in[0], n->in[1], n->out[1], pl_gradient_accumulator(g, n->in[1]), pl_gradient_take(g, n->in[0])};
    pl_build_node(g->b, PL_OP_RMS_NORM_BWD, n->attr, 6, in, 2, out);
    pl_gradient_add(g, n->in[0], out[0]);
    pl_gradient_accumulated(g, n->in[1], out[1]);
    return g->b->status;
}

const pl_op_rule pl_rule_RMS_NORM = {shape_layer_norm, gradient_rms_norm, cost_forward, .recompute = true};

/* rms_norm_bwd: dy, x, [gamma], rstd, [dgamma], [add] → [dx], [dgamma'] */
const pl_op_rule pl_rule_RMS_NORM_BWD = {shape_bwd, NULL, cost_bwd};
