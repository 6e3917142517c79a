/* Nodes without inputs, which write into a value that exists already (a weight, an accumulator, a port); and what takes
 * data out again. */
#include <math.h>

#include "ir/op.h"

static pl_status given(const pl_graph *g, const pl_node *n, int outs, pl_out out[], pl_error *err)
{
    for (int k = 0; k < outs; k++) {
        if (n->out[k] == PL_NONE)
            return pl_fail(err, PL_E_INTERNAL, "%s in %s: output %d must exist before the node", pl_op_name(n->op),
                           n->scope, k);
        out[k] = (pl_out){g->value[n->out[k]].shape, g->value[n->out[k]].dtype};
    }
    return PL_OK;
}

static pl_status shape_source(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return given(g, n, 1, out, err);
}

static pl_cost cost_source(const pl_graph *g, const pl_node *n)
{
    const pl_value *v = &g->value[n->out[0]];
    return (pl_cost){0, (double)pl_dtype_bytes(v->dtype) * pl_value_elems_f(v)};
}

static pl_cost cost_load(const pl_graph *g, const pl_node *n)
{
    pl_cost c = {0};
    for (int k = 0; k < PL_NODE_OUT_MAX && n->out[k] != PL_NONE; k++) c.bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return c;
}

/* ---- load: → the ports of the next micro-batch, of any dtype and shape; behind them, for regions that come back to
 * it, the global number of its first sample: the one i64 [1] ---- */
bool pl_is_sample_number(const pl_value *v)
{
    return v->dtype == PL_DTYPE_I64 && !v->shape.symbolic && pl_shape_elems(&v->shape) == 1;
}

static pl_status shape_load(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    int outs = 0;
    while (outs < PL_NODE_OUT_MAX && n->out[outs] != PL_NONE) outs++;
    PL_TRY(given(g, n, outs, out, err));
    for (int k = 0; k < outs; k++)
        if (pl_is_sample_number(&g->value[n->out[k]]) && (k == 0 || k + 1 < outs))
            return pl_fail(err, PL_E_INTERNAL, "load in %s: the number of the first sample comes after the ports",
                           n->scope);
    return PL_OK;
}

const pl_op_rule pl_rule_LOAD = {shape_load, NULL, cost_load, .outside = true};

/* ---- store: ports of any dtype and shape, whole values → the sink ---- */
static pl_status shape_store(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    (void)out;
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && (!pl_value_is_contiguous(pl_in(g, n, k)) || (k && n->in[k - 1] == PL_NONE)))
            return pl_fail_input(g, n, k, "a value without gaps, and none missing before it", err);
    return PL_OK;
}

static pl_cost cost_store(const pl_graph *g, const pl_node *n)
{
    pl_cost c = {0};
    for (int k = 0; k < PL_NODE_IN_MAX; k++) c.bytes += pl_value_bytes_f(pl_in(g, n, k));
    return c;
}

const pl_op_rule pl_rule_STORE = {shape_store, NULL, cost_store, .outside = true};

/* ---- fill: → every element = value (f32, or a whole number, i32), or zero bytes for other dtypes ---- */
static pl_status shape_fill(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    const double value = n->attr[0].f;
    const bool whole = value >= INT32_MIN && value <= INT32_MAX && value == floor(value);
    if (out[0].dtype != PL_DTYPE_F32 && value != 0 && !(out[0].dtype == PL_DTYPE_I32 && whole))
        return pl_fail(err, PL_E_INTERNAL,
                       "fill in %s: only f32 can be filled with other than 0, and i32 with whole numbers", n->scope);
    return PL_OK;
}

const pl_op_rule pl_rule_FILL = {shape_fill, NULL, cost_source};

/* ---- normal: → N(0, std²) from Philox(seed, stream), a function of the element's index alone ---- */
static pl_status shape_normal(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    if (pl_dtype_is_real(out[0].dtype)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: f32, bf16 or f16 only", pl_op_name(n->op), n->scope);
}

static pl_cost cost_normal(const pl_graph *g, const pl_node *n)
{
    double e = pl_value_elems_f(&g->value[n->out[0]]);
    return (pl_cost){60 * e, pl_value_bytes_f(&g->value[n->out[0]])};
}

const pl_op_rule pl_rule_NORMAL = {shape_normal, NULL, cost_normal};

/* ---- truncated_normal: → normal numbers cut at two deviations, std² the variance of what is left: from Philox(seed,
 * stream), a function of the element's index alone ---- */
const pl_op_rule pl_rule_TRUNCATED_NORMAL = {shape_normal, NULL, cost_normal};

/* ---- uniform: [number of an item] → U(low, high) from Philox(seed, stream), a function of the item's number (0
 * where none is given) and of the element's index alone ---- */
static pl_status shape_uniform(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    return shape_normal(g, n, out, err);
}

static pl_cost cost_uniform(const pl_graph *g, const pl_node *n)
{
    double e = pl_value_elems_f(&g->value[n->out[0]]);
    return (pl_cost){25 * e, pl_value_bytes_f(&g->value[n->out[0]])};
}

const pl_op_rule pl_rule_UNIFORM = {shape_uniform, NULL, cost_uniform};
