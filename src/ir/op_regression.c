/* Regression losses (base/regression.h) of predictions and as many f32 targets per sample, each element an item. Loss =
 * Σ over counted items, in f64; gradients are scaled by `scale`, one over the number of counted items of the step. An
 * item whose target is NaN has none: it does not count, and its gradient is 0.
 *
 * Which items are hard depends on all that a call sees: the mined loss mixes the samples of a batch, and so is an
 * operator of its own. */
#include <math.h>

#include "base/regression.h"
#include "ir/op.h"

/* All four rows begin alike, in inputs, outputs and attributes: they are read as the longest, which is safe because a
 * node's operands beyond its row are PL_NONE. */
#define READ_ALIKE(op, member)                                                                                         \
    _Static_assert(offsetof(pl_##op##_args, member) == offsetof(pl_mined_regression_loss_bwd_args, member),            \
                   "one rule reads all")
READ_ALIKE(regression_loss, loss);
READ_ALIKE(regression_loss, loss_new);
READ_ALIKE(regression_loss, under_weight);
READ_ALIKE(mined_regression_loss, loss);
READ_ALIKE(mined_regression_loss, loss_new);
READ_ALIKE(mined_regression_loss, factor);
READ_ALIKE(regression_loss_bwd, loss_scale);
READ_ALIKE(regression_loss_bwd, dprediction);
READ_ALIKE(regression_loss_bwd, under_weight);

static bool is_mined(const pl_node *n)
{
    return n->op == PL_OP_MINED_REGRESSION_LOSS || n->op == PL_OP_MINED_REGRESSION_LOSS_BWD;
}

static bool within(double x, double low, double high) { return x >= low && x <= high && isfinite(x); }

static pl_status check_numbers(const pl_node *n, pl_error *err)
{
    const pl_mined_regression_loss_bwd_args *a = &n->mined_regression_loss_bwd;
    const char *wrong = NULL;
    if (a->kind < 0 || a->kind >= PL_REGRESSION_COUNT) wrong = "there is no such kind of loss";
    if (!within(a->delta, 0, INFINITY) || a->delta == 0) wrong = "its delta is not above 0";
    if (!within(a->alpha, 0, 1)) wrong = "its alpha is not in [0, 1]";
    if (!within(a->gamma, 1, INFINITY)) wrong = "its gamma is below 1";
    if (!within(a->under_weight, 0, INFINITY)) wrong = "its weight of predictions too low is below 0";
    if (is_mined(n) && !within(a->share, 0, 1)) wrong = "its share of hard items is not in [0, 1]";
    if (is_mined(n) && !within(a->factor, 0, INFINITY)) wrong = "its factor of hard items is below 0";
    return wrong ? pl_fail(err, PL_E_INTERNAL, "%s in %s: %s", pl_op_name(n->op), n->scope, wrong) : PL_OK;
}

/* ---- …regression_loss: prediction, target [samples, ...] ---- */
static pl_status shape_loss(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_mined_regression_loss_bwd_args *a = &n->mined_regression_loss_bwd;
    const pl_shape *p = &g->value[a->prediction].shape, *t = &g->value[a->target].shape;
    (void)out;
    PL_TRY(check_numbers(n, err));
    if (p->rank < 1 || p->symbolic & ~1u) return pl_fail_operand(g, n, &a->prediction, "[samples, ...]", err);
    if (t->rank < 1 || t->symbolic != p->symbolic || t->dim[0] != p->dim[0] || pl_shape_elems(t) != pl_shape_elems(p))
        return pl_fail_operand(g, n, &a->target, "f32 [samples, ...], a target for each prediction", err);
    return PL_OK;
}

/* The loss is the root: its backward node has all that the forward node has and computes the loss too, and so replaces
 * it. */
static pl_status gradient_loss(pl_gradient *g, const pl_node *n)
{
    const pl_op bwd = is_mined(n) ? PL_OP_MINED_REGRESSION_LOSS_BWD : PL_OP_REGRESSION_LOSS_BWD;
    const pl_signature *s = pl_signature_of(bwd);
    pl_mined_regression_loss_bwd_args b = n->mined_regression_loss_bwd;
    b.dprediction = pl_gradient_output(g, b.prediction);
    if (b.dprediction == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_node(g->b, bwd, b.attr, s->ins, b.in, s->outs, b.out);
    pl_gradient_add(g, b.prediction, b.dprediction);
    return g->b->status;
}

static pl_cost cost_loss(const pl_graph *g, const pl_node *n)
{
    const pl_mined_regression_loss_bwd_args *a = &n->mined_regression_loss_bwd;
    const pl_value *prediction = &g->value[a->prediction];
    double bytes = pl_value_bytes_f(prediction) + pl_value_bytes_f(&g->value[a->target]);
    if (a->dprediction != PL_NONE) bytes += pl_value_bytes_f(prediction);
    return (pl_cost){16 * pl_value_elems_f(prediction), bytes};
}

/* The gradient may be written over the prediction. */
const pl_op_rule pl_rule_REGRESSION_LOSS = {shape_loss, gradient_loss, cost_loss, .loss = true};
const pl_op_rule pl_rule_MINED_REGRESSION_LOSS = {shape_loss, gradient_loss, cost_loss, .loss = true,
                                                  .mixes_samples = true};

/* ---- …regression_loss_bwd: as …regression_loss → dprediction [samples, ...], times the loss scale ---- */
static pl_status shape_loss_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *prediction = &g->value[n->mined_regression_loss_bwd.prediction];
    PL_TRY(shape_loss(g, n, out, err));
    out[PL_OUT_OF(mined_regression_loss_bwd, dprediction)] = pl_out_like(prediction);
    return PL_OK;
}

const pl_op_rule pl_rule_REGRESSION_LOSS_BWD = {shape_loss_bwd, NULL, cost_loss, .loss = true,
                                                .loss_scale = PL_IN_OF(regression_loss_bwd, loss_scale)};
const pl_op_rule pl_rule_MINED_REGRESSION_LOSS_BWD = {
    shape_loss_bwd,
    NULL,
    cost_loss,
    .loss = true,
    .mixes_samples = true,
    .loss_scale = PL_IN_OF(mined_regression_loss_bwd, loss_scale),
};
