/* Losses of regression (base/regression.h): of predictions and as many f32 targets a sample, each element an item.
 * Loss = Σ over counted items, in f64; gradients are scaled by `scale`, one over the number of counted items of the
 * step. An item whose target is not a number has none: it counts nothing, and its gradient is 0.
 *
 * Which items are hard is a matter of all that a call sees: the mined loss mixes the samples of a batch, and is an
 * operator of its own. */
#include <math.h>

#include "base/regression.h"
#include "ir/op.h"

enum { KIND, DELTA, ALPHA, GAMMA, UNDER_WEIGHT, SHARE, FACTOR };

static bool is_mined(const pl_node *n)
{
    return n->op == PL_OP_MINED_REGRESSION_LOSS || n->op == PL_OP_MINED_REGRESSION_LOSS_BWD;
}

static bool within(double x, double low, double high) { return x >= low && x <= high && isfinite(x); }

static pl_status check_numbers(const pl_node *n, pl_error *err)
{
    const char *wrong = NULL;
    if (n->attr[KIND].i < 0 || n->attr[KIND].i >= PL_REGRESSION_COUNT) wrong = "there is no such kind of loss";
    if (!within(n->attr[DELTA].f, 0, INFINITY) || n->attr[DELTA].f == 0) wrong = "its delta is not above 0";
    if (!within(n->attr[ALPHA].f, 0, 1)) wrong = "its alpha is not in [0, 1]";
    if (!within(n->attr[GAMMA].f, 1, INFINITY)) wrong = "its gamma is below 1";
    if (!within(n->attr[UNDER_WEIGHT].f, 0, INFINITY)) wrong = "its weight of predictions too low is below 0";
    if (is_mined(n) && !within(n->attr[SHARE].f, 0, 1)) wrong = "its share of hard items is not in [0, 1]";
    if (is_mined(n) && !within(n->attr[FACTOR].f, 0, INFINITY)) wrong = "its factor of hard items is below 0";
    return wrong ? pl_fail(err, PL_E_INTERNAL, "%s in %s: %s", pl_op_name(n->op), n->scope, wrong) : PL_OK;
}

static pl_status check(const pl_graph *g, const pl_node *n, pl_error *err)
{
    PL_TRY(check_numbers(n, err));
    const pl_shape *p = &pl_in(g, n, 0)->shape, *t = &pl_in(g, n, 1)->shape;
    if (p->rank < 1 || p->symbolic & ~1u) return pl_fail_input(g, n, 0, "[samples, ...]", err);
    if (t->rank < 1 || t->symbolic != p->symbolic || t->dim[0] != p->dim[0] || pl_shape_elems(t) != pl_shape_elems(p))
        return pl_fail_input(g, n, 1, "f32 [samples, ...], a target for each prediction", err);
    return PL_OK;
}

/* …regression_loss: prediction, target, scale, loss → loss' */
static pl_status shape_loss(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check(g, n, err));
    out[0] = (pl_out){pl_in(g, n, 3)->shape, PL_DTYPE_F64};
    return PL_OK;
}

/* The loss is the root: its backward node computes the loss too, so the forward node is replaced by it. */
static pl_status gradient_loss(pl_gradient *g, const pl_node *n)
{
    pl_id dprediction = pl_gradient_output(g, n->in[0]), out[2] = {n->out[0], dprediction};
    if (dprediction == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_node(g->b, is_mined(n) ? PL_OP_MINED_REGRESSION_LOSS_BWD : PL_OP_REGRESSION_LOSS_BWD, n->attr, 4, n->in, 2,
                  out);
    pl_gradient_add(g, n->in[0], out[1]);
    return g->b->status;
}

static pl_cost cost_loss(const pl_graph *g, const pl_node *n)
{
    const pl_value *prediction = pl_in(g, n, 0);
    double bytes = pl_value_bytes_f(prediction) + pl_value_bytes_f(pl_in(g, n, 1));
    if (n->out[1] != PL_NONE) bytes += pl_value_bytes_f(prediction);
    return (pl_cost){16 * pl_value_elems_f(prediction), bytes};
}

/* The gradient may be written over the prediction. */
const pl_op_rule pl_rule_REGRESSION_LOSS = {shape_loss, gradient_loss, cost_loss, .loss = true};
const pl_op_rule pl_rule_MINED_REGRESSION_LOSS = {shape_loss, gradient_loss, cost_loss, .loss = true,
                                                  .mixes_samples = true};

/* …regression_loss_bwd: prediction, target, scale, loss, [loss scale] → loss', [dprediction], times the loss scale */
static pl_status shape_loss_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_loss(g, n, out, err));
    out[1] = (pl_out){pl_in(g, n, 0)->shape, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_REGRESSION_LOSS_BWD = {shape_loss_bwd, NULL, cost_loss, .loss = true, .loss_scale = 4};
const pl_op_rule pl_rule_MINED_REGRESSION_LOSS_BWD = {shape_loss_bwd,        NULL,           cost_loss, .loss = true,
                                                      .mixes_samples = true, .loss_scale = 4};
