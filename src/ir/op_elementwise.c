/* Operators that touch each element once: activation, dropout, addition, conversion. */
#include <math.h>

#include "ir/op.h"

_Static_assert(offsetof(pl_activation_args, x) == offsetof(pl_activation_bwd_args, x) &&
                   offsetof(pl_activation_args, x) == offsetof(pl_dropout_args, x) &&
                   offsetof(pl_activation_args, x) == offsetof(pl_add_args, a) &&
                   offsetof(pl_activation_args, x) == offsetof(pl_detach_args, x) &&
                   offsetof(pl_activation_args, x) == offsetof(pl_scale_args, x) &&
                   offsetof(pl_activation_args, x) == offsetof(pl_add_to_args, x),
               "one rule reads all");
_Static_assert(offsetof(pl_add_args, b) == offsetof(pl_activation_bwd_args, dy), "one rule reads both");

static pl_status shape_like_x(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = &g->value[n->activation.x];
    (void)err;
    *out = pl_out_like(x);
    return PL_OK;
}

/* Both inputs have the same shape. */
static pl_status shape_add(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_add_args *a = &n->add;
    PL_TRY(pl_expect_operand(g, n, &a->b, &g->value[a->a].shape, "the shape of the first input", err));
    return shape_like_x(g, n, out, err);
}

static pl_cost cost_elementwise(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->activation.x];
    bool heavy = n->op == PL_OP_ACTIVATION || n->op == PL_OP_ACTIVATION_BWD || n->op == PL_OP_DROPOUT;
    bool alone = n->op == PL_OP_ACTIVATION || n->op == PL_OP_DETACH || n->op == PL_OP_SCALE;
    return (pl_cost){(heavy ? 20 : 1) * pl_value_elems_f(x), pl_value_bytes_f(x) * (alone ? 2 : 3)};
}

/* ---- activation: x → act(x) ---- */
static pl_status gradient_activation(pl_gradient *g, const pl_node *n)
{
    const pl_activation_args *a = &n->activation;
    pl_activation_bwd_args b = pl_activation_bwd_none;
    b.x = a->x, b.dy = pl_gradient_of(g, a->y), b.act = a->act;
    if (b.dy != PL_NONE) pl_gradient_add(g, a->x, pl_build_activation_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_ACTIVATION = {shape_like_x, gradient_activation, cost_elementwise, .recompute = true};

/* ---- activation_bwd: x, dy → dx ---- */
const pl_op_rule pl_rule_ACTIVATION_BWD = {shape_add, NULL, cost_elementwise};

/* ---- dropout: x, step, first_sample, residual → (residual +) x·mask/(1−p) ----
 * The mask is a function of (seed, stream, step, global sample, element), so the backward pass is the same node on
 * dy. */
static pl_status shape_dropout(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_dropout_args *a = &n->dropout;
    const pl_value *x = &g->value[a->x];
    PL_TRY(pl_expect_operand(g, n, &a->residual, &x->shape, "the shape of the first input", err));
    if (x->shape.rank < 1) return pl_fail_operand(g, n, &a->x, "f32 [samples, ...]", err);
    if (!(a->probability >= 0 && a->probability < 1))
        return pl_fail(err, PL_E_INTERNAL, "dropout in %s: its probability is not in [0, 1)", n->scope);
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_dropout(pl_gradient *g, const pl_node *n)
{
    const pl_dropout_args *a = &n->dropout;
    pl_dropout_args b = pl_dropout_none;
    b.x = pl_gradient_of(g, a->y), b.step = a->step, b.first_sample = a->first_sample;
    b.probability = a->probability, b.seed = a->seed, b.stream = a->stream;
    if (b.x == PL_NONE) return PL_OK;
    if (pl_gradient_is_wanted(g, a->x)) pl_gradient_add(g, a->x, pl_build_dropout(g->b, &b));
    if (a->residual != PL_NONE) pl_gradient_add(g, a->residual, b.x);
    return g->b->status;
}

const pl_op_rule pl_rule_DROPOUT = {shape_dropout, gradient_dropout, cost_elementwise, .recompute = true};

/* ---- add: a, b → a + b ---- */
static pl_status gradient_add(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->add.y);
    pl_gradient_add(g, n->add.a, dy);
    pl_gradient_add(g, n->add.b, dy);
    return g->b->status;
}

const pl_op_rule pl_rule_ADD = {shape_add, gradient_add, cost_elementwise, .recompute = true};

/* ---- scale: x → factor·x ---- */
static pl_status shape_scale(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    if (!isfinite(n->scale.factor))
        return pl_fail(err, PL_E_INTERNAL, "scale in %s: %g is not a finite factor", n->scope, n->scale.factor);
    return shape_like_x(g, n, out, err);
}

static pl_status gradient_scale(pl_gradient *g, const pl_node *n)
{
    const pl_scale_args *a = &n->scale;
    pl_scale_args b = pl_scale_none;
    b.x = pl_gradient_of(g, a->y), b.factor = a->factor;
    if (b.x != PL_NONE && pl_gradient_is_wanted(g, a->x)) pl_gradient_add(g, a->x, pl_build_scale(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_SCALE = {shape_scale, gradient_scale, cost_elementwise, .recompute = true};

/* ---- detach: x → the same, as a constant: no gradient passes, so nothing is kept for it ---- */
const pl_op_rule pl_rule_DETACH = {shape_like_x, NULL, cost_elementwise};

/* ---- cast: x → the same numbers in the type and the encoding of the output, which must exist already ---- */
static pl_status shape_cast(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_cast_args *a = &n->cast;
    bool fine = a->y != PL_NONE && pl_dtype_is_real(g->value[a->y].dtype);
    if (!fine)
        return pl_fail(err, PL_E_INTERNAL, "cast in %s: its output must exist before the node, as f32, bf16 or f16",
                       n->scope);
    const pl_value *x = &g->value[a->x], *y = &g->value[a->y];
    if (y->encoding && (y->encoding != PL_ENCODING_Q8_0 || x->dtype != PL_DTYPE_F32 || !pl_value_is_contiguous(x)))
        return pl_fail_operand(g, n, &a->x, "contiguous f32 and an output in q8_0, the only blocks that are made", err);
    *out = (pl_out){x->shape, y->dtype, y->encoding};
    return PL_OK;
}

static pl_status gradient_cast(pl_gradient *g, const pl_node *n)
{
    const pl_cast_args *a = &n->cast;
    const pl_value *x = &g->b->graph->value[a->x];
    pl_cast_args b = pl_cast_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE) return PL_OK;
    b.y =
        pl_build_temporary(g->b, PL_ROLE_TEMPORARY, x->dtype, x->shape, "d_%s.%zu", x->name, g->b->graph->value_count);
    pl_gradient_add(g, a->x, pl_build_cast(g->b, &b));
    return g->b->status;
}

_Static_assert(offsetof(pl_cast_args, x) == offsetof(pl_replace_args, x) &&
                   offsetof(pl_cast_args, y) == offsetof(pl_replace_args, value_new),
               "one rule reads both");

static pl_cost cost_cast(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->cast.x];
    return (pl_cost){pl_value_elems_f(x), pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[n->cast.y])};
}

const pl_op_rule pl_rule_CAST = {shape_cast, gradient_cast, cost_cast};

/* ---- add_to: sum += x ---- */
static pl_status shape_add_to(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_add_to_args *a = &n->add_to;
    (void)out;
    return pl_expect_operand(g, n, &a->sum, &g->value[a->x].shape, "the shape of the first input", err);
}

const pl_op_rule pl_rule_ADD_TO = {shape_add_to, NULL, cost_elementwise};

/* ---- replace: x in the place of `value`: numbers in the type of `value`, anything else as it is. A node that is not
 * run leaves what was there. No gradient passes ---- */
static pl_status shape_replace(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_replace_args *a = &n->replace;
    const pl_dtype from = g->value[a->x].dtype, to = g->value[a->value].dtype;
    (void)out;
    if (from != to && !(pl_dtype_is_real(from) && pl_dtype_is_real(to)))
        return pl_fail_operand(g, n, &a->value, "f32, bf16 or f16, or of the type of what replaces it", err);
    return pl_expect_operand(g, n, &a->value, &g->value[a->x].shape, "the shape of what replaces it", err);
}

const pl_op_rule pl_rule_REPLACE = {shape_replace, NULL, cost_cast};
