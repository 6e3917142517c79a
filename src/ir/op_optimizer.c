/* The update: AdamW (Loshchilov & Hutter 2019), Adam-atan2 (Everett et al. 2024), averages of weights and clipping by
 * the global norm are nodes like all others. */
#include "base/block8.h"
#include "ir/op.h"

/* ---- sum_squares: x, sum (f64 [1]) → sum' ---- */
static pl_status shape_sum_squares(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *sum = pl_in(g, n, 1);
    PL_TRY(pl_expect_inputs(g, n, "fD", err));
    out[0] = (pl_out){sum->shape, PL_DTYPE_F64};
    return PL_OK;
}

static pl_cost cost_sum_squares(const pl_graph *g, const pl_node *n)
{
    double e = pl_value_elems_f(pl_in(g, n, 0));
    return (pl_cost){2 * e, 4 * e};
}

static pl_alias alias_sum_squares(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 1};
}

const pl_op_rule pl_rule_SUM_SQUARES = {shape_sum_squares, NULL, cost_sum_squares, alias_sum_squares};

/* ---- clip_scale: sum of squares, [loss scale], [skipped steps] → scale f32 [1], finite i32 [1], skipped steps after
 * this one; max_norm 0: only un-scaled ---- */
static pl_status shape_clip_scale(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_inputs(g, n, "DFI", err));
    out[0] = (pl_out){pl_shape_of(1, (int64_t)1), PL_DTYPE_F32};
    out[1] = out[2] = (pl_out){pl_shape_of(1, (int64_t)1), PL_DTYPE_I32};
    return PL_OK;
}

static pl_alias alias_clip_scale(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = out == 2 ? 2 : -1};
}

static pl_cost cost_clip_scale(const pl_graph *g, const pl_node *n)
{
    (void)g, (void)n;
    return (pl_cost){2, 16};
}

const pl_op_rule pl_rule_CLIP_SCALE = {shape_clip_scale, NULL, cost_clip_scale, alias_clip_scale, .out_min = 2};

/* ---- loss_scale: finite, loss scale, good steps in a row → the last two, after this step ---- */
static pl_status shape_loss_scale(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_inputs(g, n, "IFI", err));
    if (n->attr[0].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "loss_scale in %s: growth_steps is at least 1, not %lld", n->scope,
                       (long long)n->attr[0].i);
    for (int k = 0; k < 2; k++) out[k] = (pl_out){pl_in(g, n, k + 1)->shape, pl_in(g, n, k + 1)->dtype};
    return PL_OK;
}

static pl_alias alias_loss_scale(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = out + 1};
}

const pl_op_rule pl_rule_LOSS_SCALE = {shape_loss_scale, NULL, cost_clip_scale, alias_loss_scale, .out_min = 2};

/* ---- adamw, adam_atan2: w, gradient, m, v, lr, step, [gradient scale, [skipped steps]] → w', m', v'
 * The step t of the formula is the step less those that were skipped: of moments that have seen nothing, the first.
 * Both moments are f32 or bf16 with the weight's shape, or u8 [blocks,260] (base/block8.h); the two smaller kinds are
 * rounded at random, by seed, stream and step. With a limit w' stays within ±limit. ---- */
static pl_status expect_moment(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_value *w = pl_in(g, n, 0), *moment = pl_in(g, n, k);
    bool whole = moment->dtype == PL_DTYPE_F32 || moment->dtype == PL_DTYPE_BF16;
    pl_shape blocks = pl_shape_of(2, (int64_t)pl_block8_blocks(pl_shape_elems(&w->shape)), (int64_t)PL_BLOCK8_BYTES);
    if (moment->dtype != pl_in(g, n, 2)->dtype) return pl_fail_input(g, n, k, "the dtype of the other moment", err);
    if (!whole && moment->dtype != PL_DTYPE_U8) return pl_fail_input(g, n, k, "f32, bf16 or u8", err);
    return pl_expect_shape(g, n, k, whole ? &w->shape : &blocks,
                           whole ? "the shape of the weight" : "a row of 260 for each 256 elements of the weight", err);
}

static pl_status shape_adamw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *w = pl_in(g, n, 0);
    PL_TRY(pl_expect_inputs(g, n, "ff..FLFI", err));
    PL_TRY(pl_expect_shape(g, n, 1, &w->shape, "the shape of the weight", err));
    out[0] = (pl_out){w->shape, PL_DTYPE_F32};
    for (int k = 2; k <= 3; k++) {
        PL_TRY(expect_moment(g, n, k, err));
        out[k - 1] = (pl_out){pl_in(g, n, k)->shape, pl_in(g, n, k)->dtype};
    }
    return PL_OK;
}

static pl_cost cost_adamw(const pl_graph *g, const pl_node *n)
{
    const pl_value *m = pl_in(g, n, 2);
    double e = pl_value_elems_f(pl_in(g, n, 0)), moment = pl_value_elems_f(m) * (double)pl_dtype_bytes(m->dtype);
    return (pl_cost){14 * e, 12 * e + 4 * moment};
}

static pl_alias alias_adamw(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = out == 0 ? 0 : out + 1};
}

const pl_op_rule pl_rule_ADAMW = {shape_adamw, NULL, cost_adamw, alias_adamw, .optimizer = true};

/* The polynomial of the angle. */
static pl_cost cost_adam_atan2(const pl_graph *g, const pl_node *n)
{
    pl_cost cost = cost_adamw(g, n);
    cost.flops += 20 * pl_value_elems_f(pl_in(g, n, 0));
    return cost;
}

const pl_op_rule pl_rule_ADAM_ATAN2 = {shape_adamw, NULL, cost_adam_atan2, alias_adamw, .optimizer = true};

/* ---- ema: average, w → average + (1 − rate)·(w − average), an exponential moving average ---- */
static pl_status shape_ema(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *average = pl_in(g, n, 0);
    PL_TRY(pl_expect_inputs(g, n, "ff", err));
    PL_TRY(pl_expect_shape(g, n, 1, &average->shape, "the shape of the average", err));
    if (!(n->attr[0].f >= 0 && n->attr[0].f < 1))
        return pl_fail(err, PL_E_INTERNAL, "ema in %s: the rate is at least 0 and below 1, not %g", n->scope,
                       n->attr[0].f);
    out[0] = (pl_out){average->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_ema(const pl_graph *g, const pl_node *n)
{
    double e = pl_value_elems_f(pl_in(g, n, 0));
    return (pl_cost){3 * e, 12 * e};
}

static pl_alias alias_ema(const pl_node *n, int out)
{
    (void)n, (void)out;
    return (pl_alias){.update = 0};
}

const pl_op_rule pl_rule_EMA = {shape_ema, NULL, cost_ema, alias_ema};
