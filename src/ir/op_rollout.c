/* What makes a trajectory of an operator's outputs: noise, the next state, the metrics of a state. Images are
 * [samples, H, W, C]; a sample is a realisation, with a row of parameters and of ids (base/rollout.h). There is nothing
 * to learn here, so no gradient. */
#include "base/rollout.h"
#include "ir/op.h"

static bool is_image(const pl_value *v) { return v->shape.rank == 4 && pl_shape_elems(&v->shape) > 0; }

/* [samples, columns] */
static pl_shape rows_for(const pl_value *image, int64_t columns)
{
    return (pl_shape){.rank = 2, .symbolic = image->shape.symbolic & 1, .dim = {image->shape.dim[0], columns}};
}

static pl_status expect_parameters(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    pl_shape rows = rows_for(pl_in(g, n, 0), PL_ROLLOUT_COLUMNS);
    return pl_expect_shape(g, n, k, &rows, "a row of parameters for each sample (base/rollout.h)", err);
}

/* ---- noise: x, parameters, ids, step → x with the noise of that step ----
 * A function of (seed, stream; operator, realisation, step, element). correlated: some row may ask for noise with a
 * spatial correlation, for which there is a workspace; without it every number is for itself, whatever the row says.
 * dropout: not the row's noise, but whole channels are dropped, by its dropout rate. */
static pl_status shape_noise(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "[samples, H, W, C]", err);
    pl_shape ids = rows_for(x, PL_ROLLOUT_IDS);
    PL_TRY(expect_parameters(g, n, 1, err));
    PL_TRY(pl_expect_shape(g, n, 2, &ids, "the numbers of operator and realisation for each sample", err));
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_cost cost_noise(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    /* correlated: sums over some 40 neighbours in both directions, usually */
    double operations = n->attr[3].i ? 1 : n->attr[2].i ? 240 : 80;
    return (pl_cost){operations * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

const pl_op_rule pl_rule_NOISE = {shape_noise, NULL, cost_noise};

/* ---- evolve: x, y, parameters, [previous] → the next state in the place of x, [x in that of previous] ---- */
static pl_status shape_evolve(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "f32 [samples, H, W, C]", err);
    PL_TRY(pl_expect_shape(g, n, 1, &x->shape, "the shape of the state", err));
    PL_TRY(expect_parameters(g, n, 2, err));
    PL_TRY(pl_expect_shape(g, n, 3, &x->shape, "the shape of the state", err));
    out[0] = out[1] = (pl_out){x->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_evolve(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    double bytes = 2 * pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1)) + pl_value_bytes_f(pl_in(g, n, 3));
    return (pl_cost){8 * pl_value_elems_f(x), bytes};
}

const pl_op_rule pl_rule_EVOLVE = {shape_evolve, NULL, cost_evolve};

/* ---- field_metrics: x, [the state before] → f32 [samples, PL_FIELD_METRICS] ---- */
static pl_status shape_field_metrics(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    if (!is_image(x)) return pl_fail_input(g, n, 0, "f32 [samples, H, W, C]", err);
    PL_TRY(pl_expect_shape(g, n, 1, &x->shape, "the shape of the state", err));
    out[0] = (pl_out){rows_for(x, PL_FIELD_METRICS), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_field_metrics(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){24 * pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1))};
}

const pl_op_rule pl_rule_FIELD_METRICS = {shape_field_metrics, NULL, cost_field_metrics};
