/* What turns an operator's outputs into a trajectory: noise, the next state, the metrics of a state. Images are
 * [samples, H, W, C]; a sample is a realisation, with a row of parameters and of ids (base/rollout.h). Nothing here is
 * learned, so there is no gradient. */
#include "base/rollout.h"
#include "ir/op.h"

static bool is_image(const pl_value *v) { return v->shape.rank == 4 && pl_shape_elems(&v->shape) > 0; }

/* [samples, columns] */
static pl_shape rows_for(const pl_value *image, int64_t columns)
{
    return (pl_shape){.rank = 2, .symbolic = image->shape.symbolic & 1, .dim = {image->shape.dim[0], columns}};
}

static pl_status expect_parameters(const pl_graph *g, const pl_node *n, const pl_id *parameters, const pl_value *image,
                                   pl_error *err)
{
    const pl_shape rows = rows_for(image, PL_ROLLOUT_COLUMNS);
    return pl_expect_operand(g, n, parameters, &rows, "a row of parameters for each sample (base/rollout.h)", err);
}

/* ---- noise: x, parameters, ids, step → y, x with the noise of that step ----
 * A function of (seed, stream; operator, realisation, step, element). correlated: some row may ask for spatially
 * correlated noise, for which there is a workspace; else all numbers are independent, whatever the row says. dropout:
 * instead of the row's noise, whole channels are dropped, at its dropout rate. */
static pl_status shape_noise(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_noise_args *a = &n->noise;
    const pl_value *x = &g->value[a->x];
    if (!is_image(x)) return pl_fail_operand(g, n, &a->x, "[samples, H, W, C]", err);
    const pl_shape ids = rows_for(x, PL_ROLLOUT_IDS);
    PL_TRY(expect_parameters(g, n, &a->parameters, x, err));
    PL_TRY(pl_expect_operand(g, n, &a->ids, &ids, "the numbers of operator and realisation for each sample", err));
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_cost cost_noise(const pl_graph *g, const pl_node *n)
{
    const pl_noise_args *a = &n->noise;
    const pl_value *x = &g->value[a->x];
    /* correlated: usually sums over some 40 neighbours in both directions */
    double operations = a->dropout ? 1 : a->correlated ? 240 : 80;
    return (pl_cost){operations * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

const pl_op_rule pl_rule_NOISE = {shape_noise, NULL, cost_noise};

/* ---- evolve: x, y, parameters, previous: the next state replaces x, and x replaces previous ---- */
static pl_status shape_evolve(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_evolve_args *a = &n->evolve;
    const pl_value *x = &g->value[a->x];
    (void)out;
    if (!is_image(x)) return pl_fail_operand(g, n, &a->x, "f32 [samples, H, W, C]", err);
    PL_TRY(pl_expect_operand(g, n, &a->y, &x->shape, "the shape of the state", err));
    PL_TRY(expect_parameters(g, n, &a->parameters, x, err));
    return pl_expect_operand(g, n, &a->previous, &x->shape, "the shape of the state", err);
}

static pl_cost cost_evolve(const pl_graph *g, const pl_node *n)
{
    const pl_evolve_args *a = &n->evolve;
    const pl_value *x = &g->value[a->x], *y = &g->value[a->y], *previous = pl_value_at(g, a->previous);
    double bytes = 2 * pl_value_bytes_f(x) + pl_value_bytes_f(y) + pl_value_bytes_f(previous);
    return (pl_cost){8 * pl_value_elems_f(x), bytes};
}

const pl_op_rule pl_rule_EVOLVE = {shape_evolve, NULL, cost_evolve};

/* ---- field_metrics: x, the state before → metrics f32 [samples, PL_FIELD_METRICS] ---- */
static pl_status shape_field_metrics(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_field_metrics_args *a = &n->field_metrics;
    const pl_value *x = &g->value[a->x];
    if (!is_image(x)) return pl_fail_operand(g, n, &a->x, "f32 [samples, H, W, C]", err);
    PL_TRY(pl_expect_operand(g, n, &a->before, &x->shape, "the shape of the state", err));
    *out = (pl_out){rows_for(x, PL_FIELD_METRICS), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_field_metrics(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->field_metrics.x], *before = pl_value_at(g, n->field_metrics.before);
    return (pl_cost){24 * pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_bytes_f(before)};
}

const pl_op_rule pl_rule_FIELD_METRICS = {shape_field_metrics, NULL, cost_field_metrics};
