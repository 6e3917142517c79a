/* What a calibration sees of the numbers that come to a layer (base/quantize.h). Both update what was seen so far, as
 * counts and comparisons, so that nothing hangs on how samples are cut. No gradient: nothing is trained meanwhile. */
#include "base/quantize.h"
#include "ir/op.h"

static const pl_shape extremes_shape = {.rank = 1, .dim = {sizeof(pl_extremes) / sizeof(float)}};
static const pl_shape bins_shape = {.rank = 1, .dim = {PL_SPREAD_BINS}};

static pl_cost cost_observe(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){4 * pl_value_elems_f(x), pl_value_bytes_f(x)};
}

/* ---- observe_extremes: x f32, extremes f32 [3] → extremes' ---- */
static pl_status shape_extremes(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_shape(g, n, 1, &extremes_shape, "least, largest and how many are not finite", err));
    out[0] = (pl_out){extremes_shape, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_OBSERVE_EXTREMES = {shape_extremes, NULL, cost_observe};

/* ---- observe_spread: x f32, extremes f32 [3], bins i64 [4096] → bins' ---- */
static pl_status shape_spread(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_shape(g, n, 1, &extremes_shape, "least, largest and how many are not finite", err));
    PL_TRY(pl_expect_shape(g, n, 2, &bins_shape, "a count for each bin", err));
    out[0] = (pl_out){bins_shape, PL_DTYPE_I64};
    return PL_OK;
}

const pl_op_rule pl_rule_OBSERVE_SPREAD = {shape_spread, NULL, cost_observe};

/* ---- linear_int8: x [...,K], W u8 [packed bytes], range f32 [2], [bias N], [residual ...,N] → y [...,N], [act(y)]
 * y = x Wᵀ in 8 bits, as backend/calls.h says: W are bytes that pl_int8_pack made of N rows, x is rounded to the 256
 * numbers that span the range, or u8 and rounded so already. */
enum { COLUMNS, ACT, GATED }; /* attributes, the last one of hidden_int8 alone */

static pl_status check_range(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    static const pl_shape range = {.rank = 1, .dim = {2}};
    return pl_expect_shape(g, n, k, &range, "least and largest", err);
}

/* x, W, its range and a bias; *y: what comes out of the product. */
static pl_status check_product(const pl_graph *g, const pl_node *n, pl_shape *y, pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    const int64_t columns = n->attr[COLUMNS].i;
    if (x->dtype != PL_DTYPE_F32 && x->dtype != PL_DTYPE_U8) return pl_fail_input(g, n, 0, "f32 or u8", err);
    if (x->shape.rank < 1 || pl_shape_last(&x->shape) < 1) return pl_fail_input(g, n, 0, "[..., in]", err);
    if (columns < 1 || columns > INT32_MAX || pl_shape_last(&x->shape) > PL_INT8_K_MAX)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: %lld columns of %lld numbers are none", pl_op_name(n->op),
                       n->scope, (long long)columns, (long long)pl_shape_last(&x->shape));
    if (w->dtype != PL_DTYPE_U8 || w->shape.rank != 1 ||
        (uint64_t)w->shape.dim[0] != pl_int8_packed_bytes(columns, pl_shape_last(&x->shape)))
        return pl_fail_input(g, n, 1, "u8, as many bytes as packed weights have", err);
    PL_TRY(check_range(g, n, 2, err));
    const pl_shape bias = {.rank = 1, .dim = {columns}};
    PL_TRY(pl_expect_shape(g, n, 3, &bias, "a number for each column", err));
    *y = x->shape;
    y->dim[y->rank - 1] = columns;
    return PL_OK;
}

static pl_status shape_linear_int8(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    pl_shape y;
    PL_TRY(check_product(g, n, &y, err));
    PL_TRY(pl_expect_shape(g, n, 4, &y, "the shape of the output", err));
    out[0] = out[1] = (pl_out){y, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_linear_int8(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *y = &g->value[n->out[0]];
    const double outputs = n->out[1] == PL_NONE ? 1 : 2;
    return (pl_cost){2 * pl_value_elems_f(x) * (double)n->attr[COLUMNS].i,
                     pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1)) + outputs * pl_value_bytes_f(y) +
                         pl_value_bytes_f(pl_in(g, n, 4)),
                     2 * pl_value_elems_f(x) * (double)n->attr[COLUMNS].i};
}

const pl_op_rule pl_rule_LINEAR_INT8 = {shape_linear_int8, NULL, cost_linear_int8};

/* ---- hidden_int8: x [...,K], W u8 [packed bytes], range f32 [2], [bias N], [range of h [2]] → h [...,N] ----
 * What is between two layers: h = act(y) with the y of linear_int8 or, gated, act(the first half of y)·the second, half
 * as wide, a multiple of the packed panels. With its range h is u8, rounded as who reads it would, else f32. */
static pl_status shape_hidden_int8(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    pl_shape h;
    PL_TRY(check_product(g, n, &h, err));
    PL_TRY(check_range(g, n, 4, err));
    if (n->attr[GATED].i && pl_shape_last(&h) % (2 * PL_INT8_PANEL))
        return pl_fail_input(g, n, 1, "packed rows for a gate, each half of whole panels", err);
    if (n->attr[GATED].i) h.dim[h.rank - 1] /= 2;
    out[0] = (pl_out){h, n->in[4] == PL_NONE ? PL_DTYPE_F32 : PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_hidden_int8(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0), *h = &g->value[n->out[0]];
    return (pl_cost){2 * pl_value_elems_f(x) * (double)n->attr[COLUMNS].i + 10 * pl_value_elems_f(h),
                     pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1)) + pl_value_bytes_f(h),
                     2 * pl_value_elems_f(x) * (double)n->attr[COLUMNS].i};
}

const pl_op_rule pl_rule_HIDDEN_INT8 = {shape_hidden_int8, NULL, cost_hidden_int8};

/* ---- observe_difference: x f32, y f32 of its shape, sums f64 [2] → sums' ----
 * Adds Σ (x − y)² and Σ x²: what is not finite makes a sum that is not, either. */
static const pl_shape sums_shape = {.rank = 1, .dim = {2}};

static pl_status shape_difference(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_shape(g, n, 1, &pl_in(g, n, 0)->shape, "the shape of the first input", err));
    PL_TRY(pl_expect_shape(g, n, 2, &sums_shape, "two sums", err));
    out[0] = (pl_out){sums_shape, PL_DTYPE_F64};
    return PL_OK;
}

const pl_op_rule pl_rule_OBSERVE_DIFFERENCE = {shape_difference, NULL, cost_observe};

/* ---- overwrite: y f32, z f32 of its shape → y', which is z in y's place; where it does not run, y stays ---- */
static pl_status shape_overwrite(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_shape(g, n, 1, &pl_in(g, n, 0)->shape, "the shape of the first input", err));
    out[0] = (pl_out){pl_in(g, n, 0)->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_overwrite(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(pl_in(g, n, 0))};
}

const pl_op_rule pl_rule_OVERWRITE = {shape_overwrite, NULL, cost_overwrite};
