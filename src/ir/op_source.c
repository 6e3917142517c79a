/* Nodes without inputs, which write into an existing value (a weight, an accumulator, a port), and the one that takes
 * data out again. */
#include <math.h>

#include "ir/op.h"

static pl_out as_it_is(const pl_graph *g, pl_id value) { return pl_out_like(&g->value[value]); }

/* These write one value: fill, normal, truncated_normal and uniform. */
_Static_assert(offsetof(pl_fill_args, y) == offsetof(pl_normal_args, y), "one rule reads both");
_Static_assert(offsetof(pl_fill_args, y) == offsetof(pl_truncated_normal_args, y), "one rule reads both");
_Static_assert(offsetof(pl_fill_args, y) == offsetof(pl_uniform_args, y), "one rule reads both");

static pl_status shape_source(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_id y = n->fill.y;
    if (y == PL_NONE)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: output y must exist before the node", pl_op_name(n->op),
                       n->scope);
    *out = as_it_is(g, y);
    if (n->op == PL_OP_FILL && n->fill.value == 0)
        out->encoding = g->value[y].encoding; /* zero bytes are zeros in all */
    return PL_OK;
}

static pl_cost cost_source(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->fill.y];
    return (pl_cost){0, pl_value_bytes_f(y)};
}

/* ---- load: → the ports of the next micro-batch, of any dtype and shape; after them, for regions that return to it,
 * the global number of its first sample: the one i64 [1] ---- */
bool pl_is_sample_number(const pl_value *v)
{
    return v->dtype == PL_DTYPE_I64 && !v->shape.symbolic && pl_shape_elems(&v->shape) == 1;
}

static int ports_of(const pl_load_args *a)
{
    int ports = 0;
    while (ports < PL_OUTS_OF_LOAD && a->port[ports] != PL_NONE) ports++;
    return ports;
}

static pl_status shape_load(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_load_args *a = &n->load;
    const int ports = ports_of(a);
    for (int k = ports; k < PL_OUTS_OF_LOAD; k++)
        if (ports == 0 || a->port[k] != PL_NONE)
            return pl_fail(err, PL_E_INTERNAL, "load in %s: its ports come one after the other, from the first on",
                           n->scope);
    for (int k = 0; k < ports; k++) {
        out[k] = as_it_is(g, a->port[k]);
        if (pl_is_sample_number(&g->value[a->port[k]]) && (k == 0 || k + 1 < ports))
            return pl_fail(err, PL_E_INTERNAL, "load in %s: the number of the first sample comes after the ports",
                           n->scope);
    }
    return PL_OK;
}

static pl_cost cost_load(const pl_graph *g, const pl_node *n)
{
    pl_cost c = {0};
    for (int k = 0, ports = ports_of(&n->load); k < ports; k++) c.bytes += pl_value_bytes_f(&g->value[n->load.port[k]]);
    return c;
}

const pl_op_rule pl_rule_LOAD = {shape_load, NULL, cost_load, .outside = true};

/* ---- store: ports of any dtype and shape, whole values → the sink ---- */
static pl_status shape_store(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_id *port = n->store.port;
    (void)out;
    for (int k = 0; k < PL_INS_OF_STORE; k++)
        if (port[k] != PL_NONE && (!pl_value_is_contiguous(&g->value[port[k]]) || (k && port[k - 1] == PL_NONE)))
            return pl_fail_operand(g, n, &port[k], "a value without gaps, and none missing before it", err);
    return PL_OK;
}

static pl_cost cost_store(const pl_graph *g, const pl_node *n)
{
    pl_cost c = {0};
    for (int k = 0; k < PL_INS_OF_STORE; k++) c.bytes += pl_value_bytes_f(pl_value_at(g, n->store.port[k]));
    return c;
}

const pl_op_rule pl_rule_STORE = {shape_store, NULL, cost_store, .outside = true};

/* ---- fill: → every element = value (f32, or a whole number, i32), or zero bytes for other dtypes ---- */
static pl_status shape_fill(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    const double value = n->fill.value;
    const bool whole = value >= INT32_MIN && value <= INT32_MAX && value == floor(value);
    if (out->dtype != PL_DTYPE_F32 && value != 0 && !(out->dtype == PL_DTYPE_I32 && whole))
        return pl_fail(err, PL_E_INTERNAL,
                       "fill in %s: only f32 can be filled with other than 0, and i32 with whole numbers", n->scope);
    return PL_OK;
}

const pl_op_rule pl_rule_FILL = {shape_fill, NULL, cost_source};

/* ---- normal: → N(0, std²) from Philox(seed, stream), a function of the element's index alone ---- */
static pl_status shape_normal(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_source(g, n, out, err));
    if (pl_dtype_is_real(out->dtype)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: f32, bf16 or f16 only", pl_op_name(n->op), n->scope);
}

static pl_cost cost_normal(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->normal.y];
    return (pl_cost){60 * pl_value_elems_f(y), pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_NORMAL = {shape_normal, NULL, cost_normal};

/* ---- truncated_normal: → normal numbers truncated at two deviations, whose variance after that is std²: from
 * Philox(seed, stream), a function of the element's index alone ---- */
const pl_op_rule pl_rule_TRUNCATED_NORMAL = {shape_normal, NULL, cost_normal};

/* ---- uniform: item, a number → U(low, high) from Philox(seed, stream), a function of the item's number (0
 * where none is given) and of the element's index alone ---- */
static pl_cost cost_uniform(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->uniform.y];
    return (pl_cost){25 * pl_value_elems_f(y), pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_UNIFORM = {shape_normal, NULL, cost_uniform};
