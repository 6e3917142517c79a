/* Operators that touch each element once: activation, dropout, addition, conversion. */
#include "ir/op.h"

static pl_status like_first(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    PL_TRY(pl_expect_shape(g, n, 1, x, "the shape of the first input", err));
    out[0] = (pl_out){*x, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status shape_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    PL_TRY(pl_expect_shape(g, n, 3, x, "the shape of the first input", err));
    if (x->rank < 1) return pl_fail_input(g, n, 0, "f32 [samples, ...]", err);
    if (!(n->attr[0].f >= 0 && n->attr[0].f < 1))
        return pl_fail(err, PL_E_INTERNAL, "dropout in %s: its probability is not in [0, 1)", n->scope);
    out[0] = (pl_out){*x, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_cost cost_elementwise(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    bool heavy = n->op == PL_OP_ACTIVATION || n->op == PL_OP_ACTIVATION_BWD || n->op == PL_OP_DROPOUT;
    return (pl_cost){(heavy ? 20 : 1) * pl_value_elems_f(x), pl_value_bytes_f(x) * (pl_in(g, n, 1) ? 3 : 2)};
}

/* ---- activation: x → act(x) ---- */
static pl_status gradient_activation(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE) return PL_OK;
    pl_gradient_add(g, n->in[0],
                    pl_build_node(g->b, PL_OP_ACTIVATION_BWD, n->attr, 2, (pl_id[]){n->in[0], dy}, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_ACTIVATION = {like_first, gradient_activation, cost_elementwise, .recompute = true};

/* ---- activation_bwd: x, dy → dx ---- */
const pl_op_rule pl_rule_ACTIVATION_BWD = {like_first, NULL, cost_elementwise};

/* ---- dropout: x, step, first sample, [residual] → (residual +) x·mask/(1−p) ----
 * The mask is a function of (seed, stream, step, global sample, element), so the backward pass is the same node on
 * dy. */
static pl_status gradient_dropout(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE) return PL_OK;
    pl_id in[4] = {dy, n->in[1], n->in[2], PL_NONE};
    if (pl_gradient_is_wanted(g, n->in[0]))
        pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_DROPOUT, n->attr, 4, in, 1, &out));
    if (n->in[3] != PL_NONE) pl_gradient_add(g, n->in[3], dy);
    return g->b->status;
}

const pl_op_rule pl_rule_DROPOUT = {shape_dropout, gradient_dropout, cost_elementwise, .recompute = true};

/* ---- add: a, b → a + b ---- */
static pl_status gradient_add(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]);
    for (int k = 0; k < 2; k++) pl_gradient_add(g, n->in[k], dy);
    return g->b->status;
}

const pl_op_rule pl_rule_ADD = {like_first, gradient_add, cost_elementwise, .recompute = true};

/* ---- detach: x → the same, as a constant: no gradient passes, so what made it is not kept for one ---- */
const pl_op_rule pl_rule_DETACH = {like_first, NULL, cost_elementwise};

/* ---- cast: x → the same numbers as the output is stored: the output says its dtype, so it is there before ---- */
static pl_status shape_cast(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    bool fine = n->out[0] != PL_NONE && pl_dtype_is_real(g->value[n->out[0]].dtype);
    if (!fine)
        return pl_fail(err, PL_E_INTERNAL, "cast in %s: its output must exist before the node, as f32, bf16 or f16",
                       n->scope);
    out[0] = (pl_out){pl_in(g, n, 0)->shape, g->value[n->out[0]].dtype};
    return PL_OK;
}

static pl_status gradient_cast(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]);
    if (dy == PL_NONE) return PL_OK;
    const pl_value *x = &g->b->graph->value[n->in[0]];
    pl_id dx =
        pl_build_temporary(g->b, PL_ROLE_TEMPORARY, x->dtype, x->shape, "d_%s.%zu", x->name, g->b->graph->value_count);
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_CAST, NULL, 1, &dy, 1, &dx));
    return g->b->status;
}

static pl_cost cost_cast(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[n->out[0]])};
}

const pl_op_rule pl_rule_CAST = {shape_cast, gradient_cast, cost_cast};

/* ---- add_to: x, sum → sum' ---- */
const pl_op_rule pl_rule_ADD_TO = {like_first, NULL, cost_elementwise};

/* ---- replace: x, old → x, as old is stored and in its place; a node that may not run leaves what was there. No
 * gradient passes ---- */
static pl_status shape_replace(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    if (!pl_dtype_is_real(pl_in(g, n, 1)->dtype)) return pl_fail_input(g, n, 1, "f32, bf16 or f16", err);
    PL_TRY(pl_expect_shape(g, n, 1, &pl_in(g, n, 0)->shape, "the shape of what replaces it", err));
    out[0] = (pl_out){pl_in(g, n, 1)->shape, pl_in(g, n, 1)->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_REPLACE = {shape_replace, NULL, cost_cast};
