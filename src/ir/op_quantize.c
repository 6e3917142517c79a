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
    PL_TRY(pl_expect_inputs(g, n, "ff", err));
    PL_TRY(pl_expect_shape(g, n, 1, &extremes_shape, "least, largest and how many are not finite", err));
    out[0] = (pl_out){extremes_shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_alias alias_extremes(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 1};
}

const pl_op_rule pl_rule_OBSERVE_EXTREMES = {shape_extremes, NULL, cost_observe, alias_extremes};

/* ---- observe_spread: x f32, extremes f32 [3], bins i64 [4096] → bins' ---- */
static pl_status shape_spread(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_inputs(g, n, "ffl", err));
    PL_TRY(pl_expect_shape(g, n, 1, &extremes_shape, "least, largest and how many are not finite", err));
    PL_TRY(pl_expect_shape(g, n, 2, &bins_shape, "a count for each bin", err));
    out[0] = (pl_out){bins_shape, PL_DTYPE_I64};
    return PL_OK;
}

static pl_alias alias_spread(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 2};
}

const pl_op_rule pl_rule_OBSERVE_SPREAD = {shape_spread, NULL, cost_observe, alias_spread};
