/* Nodes without inputs: they write into a value that exists already (a weight, an accumulator, a staging target). */
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

/* ---- load: → tokens i32 [B,T], targets i32 [B,T], [first sample i64 [1]]: the staging ring's next micro-batch, and
 * the global number of its first sequence for regions that come back to it ---- */
static pl_status shape_load(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(given(g, n, n->out[2] == PL_NONE ? 2 : 3, out, err));
    bool fine =
        out[0].dtype == PL_DTYPE_I32 && out[1].dtype == PL_DTYPE_I32 && pl_shape_equal(&out[0].shape, &out[1].shape);
    if (!fine) return pl_fail(err, PL_E_INTERNAL, "load in %s: tokens and targets are i32 of one shape", n->scope);
    bool number = n->out[2] == PL_NONE || (out[2].dtype == PL_DTYPE_I64 && pl_shape_elems(&out[2].shape) == 1);
    return number ? PL_OK : pl_fail(err, PL_E_INTERNAL, "load in %s: the first sample is one i64", n->scope);
}

const pl_op_rule pl_rule_LOAD = {shape_load, NULL, cost_source, pl_alias_none, .out_min = 2};

/* ---- fill: → every element = value (f32), or zero bytes for other dtypes ---- */
static pl_status shape_fill(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    if (out[0].dtype != PL_DTYPE_F32 && n->attr[0].f != 0)
        return pl_fail(err, PL_E_INTERNAL, "fill in %s: only f32 can be filled with other than 0", n->scope);
    return PL_OK;
}

const pl_op_rule pl_rule_FILL = {shape_fill, NULL, cost_source, pl_alias_none};

/* ---- normal: → N(0, std²) from Philox(seed, stream), a function of the element's index alone ---- */
static pl_status shape_normal(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    return out[0].dtype == PL_DTYPE_F32 ? PL_OK : pl_fail(err, PL_E_INTERNAL, "normal in %s: f32 only", n->scope);
}

static pl_cost cost_normal(const pl_graph *g, const pl_node *n)
{
    double e = pl_value_elems_f(&g->value[n->out[0]]);
    return (pl_cost){60 * e, 4 * e};
}

const pl_op_rule pl_rule_NORMAL = {shape_normal, NULL, cost_normal, pl_alias_none};
