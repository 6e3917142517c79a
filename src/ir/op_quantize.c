/* What a calibration observes of a layer's inputs (base/quantize.h). Both update what was seen so far by counting and
 * comparing, so that nothing depends on how samples are split. No gradient: nothing is trained meanwhile. */
#include "base/quantize.h"
#include "ir/op.h"

static const pl_shape extremes_shape = {.rank = 1, .dim = {sizeof(pl_extremes) / sizeof(float)}};
static const pl_shape bins_shape = {.rank = 1, .dim = {PL_SPREAD_BINS}};

_Static_assert(offsetof(pl_observe_extremes_args, x) == offsetof(pl_observe_spread_args, x), "one rule reads both");
_Static_assert(offsetof(pl_observe_extremes_args, x) == offsetof(pl_observe_difference_args, x), "one rule reads both");

static pl_cost cost_observe(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->observe_extremes.x];
    return (pl_cost){4 * pl_value_elems_f(x), pl_value_bytes_f(x)};
}

static pl_status expect_extremes(const pl_graph *g, const pl_node *n, const pl_id *extremes, pl_error *err)
{
    return pl_expect_operand(g, n, extremes, &extremes_shape, "least, largest and how many are not finite", err);
}

/* ---- observe_extremes: x f32, extremes f32 [3] ---- */
static pl_status shape_extremes(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    (void)out;
    return expect_extremes(g, n, &n->observe_extremes.extremes, err);
}

const pl_op_rule pl_rule_OBSERVE_EXTREMES = {shape_extremes, NULL, cost_observe};

/* ---- observe_spread: x f32, extremes f32 [3], bins i64 [4096] ---- */
static pl_status shape_spread(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_observe_spread_args *a = &n->observe_spread;
    (void)out;
    PL_TRY(expect_extremes(g, n, &a->extremes, err));
    return pl_expect_operand(g, n, &a->bins, &bins_shape, "a count for each bin", err);
}

const pl_op_rule pl_rule_OBSERVE_SPREAD = {shape_spread, NULL, cost_observe};

/* ---- linear_int8: x [...,K], weight [N,K] as int8, range f32 [2], bias [N], residual [...,N] → y [...,N], act(y)
 * y = x Wᵀ in 8 bits, as backend/calls.h says; x is rounded to the 256 numbers that span the range, or u8 and already
 * rounded so. */
static pl_status check_range(const pl_graph *g, const pl_node *n, const pl_id *range, pl_error *err)
{
    static const pl_shape two = {.rank = 1, .dim = {2}};
    return pl_expect_operand(g, n, range, &two, "least and largest", err);
}

_Static_assert(offsetof(pl_linear_int8_args, bias) == offsetof(pl_hidden_int8_args, bias), "one rule reads both");

/* x, weight, the range of x and a bias; *y: the product's output. */
static pl_status check_product(const pl_graph *g, const pl_node *n, pl_shape *y, pl_error *err)
{
    const pl_linear_int8_args *a = &n->linear_int8;
    const pl_value *x = &g->value[a->x];
    const int64_t width = pl_shape_last(&x->shape);
    if (x->dtype != PL_DTYPE_F32 && x->dtype != PL_DTYPE_U8) return pl_fail_operand(g, n, &a->x, "f32 or u8", err);
    if (x->shape.rank < 1 || width < 1 || width > PL_INT8_K_MAX)
        return pl_fail_operand(g, n, &a->x, "[..., in], of at most 65,536 numbers", err);
    PL_TRY(pl_expect_stored(g, n, &a->weight, PL_ENCODING_INT8, width, err));
    const int64_t columns = g->value[a->weight].shape.dim[0];
    PL_TRY(check_range(g, n, &a->range, err));
    const pl_shape bias = {.rank = 1, .dim = {columns}};
    PL_TRY(pl_expect_operand(g, n, &a->bias, &bias, "a number for each column", err));
    *y = x->shape;
    y->dim[y->rank - 1] = columns;
    return PL_OK;
}

static pl_status shape_linear_int8(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    pl_shape y;
    PL_TRY(check_product(g, n, &y, err));
    PL_TRY(pl_expect_operand(g, n, &n->linear_int8.residual, &y, "the shape of the output", err));
    out[PL_OUT_OF(linear_int8, y)] = out[PL_OUT_OF(linear_int8, act_y)] = (pl_out){y, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_linear_int8(const pl_graph *g, const pl_node *n)
{
    const pl_linear_int8_args *a = &n->linear_int8;
    const pl_value *x = &g->value[a->x], *y = &g->value[a->y];
    const double outputs = a->act_y == PL_NONE ? 1 : 2,
                 flops = 2 * (double)pl_shape_rows(&x->shape) * pl_value_elems_f(&g->value[a->weight]);
    return (pl_cost){flops,
                     pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[a->weight]) + outputs * pl_value_bytes_f(y) +
                         pl_value_bytes_f(pl_value_at(g, a->residual)),
                     flops};
}

const pl_op_rule pl_rule_LINEAR_INT8 = {shape_linear_int8, NULL, cost_linear_int8};

/* ---- hidden_int8: x [...,K], weight [N,K] as int8, range f32 [2], bias [N], hidden_range f32 [2] → y [...,N] ----
 * The values between two layers: act(z) with z as linear_int8's y or, gated, act(the first half of z)·the second, half
 * as wide, a multiple of the packed panels. With hidden_range y is u8, rounded as its reader would, else f32. */
static pl_status shape_hidden_int8(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_hidden_int8_args *a = &n->hidden_int8;
    pl_shape y;
    PL_TRY(check_product(g, n, &y, err));
    PL_TRY(check_range(g, n, &a->hidden_range, err));
    if (a->gated && pl_shape_last(&y) % (2 * PL_INT8_PANEL))
        return pl_fail_operand(g, n, &a->weight, "packed rows for a gate, each half of whole panels", err);
    if (a->gated) y.dim[y.rank - 1] /= 2;
    *out = (pl_out){y, a->hidden_range == PL_NONE ? PL_DTYPE_F32 : PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_hidden_int8(const pl_graph *g, const pl_node *n)
{
    const pl_hidden_int8_args *a = &n->hidden_int8;
    const pl_value *x = &g->value[a->x], *y = &g->value[a->y];
    const double product = 2 * (double)pl_shape_rows(&x->shape) * pl_value_elems_f(&g->value[a->weight]);
    return (pl_cost){product + 10 * pl_value_elems_f(y),
                     pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[a->weight]) + pl_value_bytes_f(y), product};
}

const pl_op_rule pl_rule_HIDDEN_INT8 = {shape_hidden_int8, NULL, cost_hidden_int8};

/* ---- observe_difference: x f32, y f32 of its shape, sums f64 [2] ----
 * Adds Σ (x − y)² and Σ x²: if a number is not finite, neither is the sum. */
static const pl_shape sums_shape = {.rank = 1, .dim = {2}};

static pl_status shape_difference(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_observe_difference_args *a = &n->observe_difference;
    (void)out;
    PL_TRY(pl_expect_operand(g, n, &a->y, &g->value[a->x].shape, "the shape of the first input", err));
    return pl_expect_operand(g, n, &a->sums, &sums_shape, "two sums", err);
}

const pl_op_rule pl_rule_OBSERVE_DIFFERENCE = {shape_difference, NULL, cost_observe};

/* ---- overwrite: y f32, z f32 of its shape: the new y is z; where the node does not run, y stays ---- */
static pl_status shape_overwrite(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_overwrite_args *a = &n->overwrite;
    (void)out;
    return pl_expect_operand(g, n, &a->z, &g->value[a->y].shape, "the shape of the first input", err);
}

static pl_cost cost_overwrite(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(&g->value[n->overwrite.y])};
}

const pl_op_rule pl_rule_OVERWRITE = {shape_overwrite, NULL, cost_overwrite};
