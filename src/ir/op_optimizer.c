/* The update: AdamW (Loshchilov & Hutter 2019), Adam-atan2 (Everett et al. 2024), averages of weights and clipping by
 * the global norm are nodes like any other. */
#include "ir/op.h"

/* ---- sum_squares: sum' = sum + Σ x² ---- */
static pl_cost cost_sum_squares(const pl_graph *g, const pl_node *n)
{
    const double e = pl_value_elems_f(pl_value_at(g, n->sum_squares.x));
    return (pl_cost){2 * e, 4 * e};
}

const pl_op_rule pl_rule_SUM_SQUARES = {NULL, NULL, cost_sum_squares};

/* ---- clip_scale: from the sum of squares: the scale of the gradient, whether it is finite, and how many steps were
 * skipped so far; max_norm 0: only un-scales ---- */
static pl_status shape_clip_scale(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    (void)g, (void)n, (void)err;
    out[PL_OUT_OF(clip_scale, scale)] = (pl_out){pl_shape_of(1, (int64_t)1), PL_DTYPE_F32};
    out[PL_OUT_OF(clip_scale, finite)] = (pl_out){pl_shape_of(1, (int64_t)1), PL_DTYPE_I32};
    return PL_OK;
}

static pl_cost cost_clip_scale(const pl_graph *g, const pl_node *n)
{
    (void)g, (void)n;
    return (pl_cost){2, 16};
}

const pl_op_rule pl_rule_CLIP_SCALE = {shape_clip_scale, NULL, cost_clip_scale};

/* ---- loss_scale: the scale, and the good steps in a row, after this step ---- */
static pl_status shape_loss_scale(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const int64_t steps = n->loss_scale.growth_steps;
    (void)g, (void)out;
    if (steps >= 1) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "loss_scale in %s: growth_steps is at least 1, not %lld", n->scope,
                   (long long)steps);
}

const pl_op_rule pl_rule_LOSS_SCALE = {shape_loss_scale, NULL, cost_clip_scale};

/* ---- adamw, adam_atan2 ----
 * The step t of the formula does not count skipped steps: for moments that have seen nothing, it is the first. Both
 * moments have the weight's shape, and are f32, bf16, or in 8 bits (m as signed8, v as root8); the two smaller kinds
 * are rounded at random, by seed, stream and step. With a limit the new weight stays within ±limit. */
_Static_assert(offsetof(pl_adamw_args, skipped) == offsetof(pl_adam_atan2_args, skipped), "one rule reads both");

static pl_status expect_moment(const pl_graph *g, const pl_node *n, const pl_id *which, pl_error *err)
{
    const pl_value *w = pl_value_at(g, n->adamw.weight), *m = pl_value_at(g, n->adamw.m),
                   *moment = pl_value_at(g, *which);
    const pl_encoding small = which == &n->adamw.m ? PL_ENCODING_SIGNED8 : PL_ENCODING_ROOT8;
    const bool is_like = moment->dtype == m->dtype && (moment->encoding != 0) == (m->encoding != 0);
    if (moment->dtype != PL_DTYPE_F32 && moment->dtype != PL_DTYPE_BF16)
        return pl_fail_operand(g, n, which, "f32 or bf16", err);
    if (!is_like || (moment->encoding && moment->encoding != small))
        return pl_fail_operand(g, n, which, "stored like the other moment, in 8 bits m as signed8 and v as root8", err);
    return pl_expect_operand(g, n, which, &w->shape, "the shape of the weight", err);
}

static pl_status shape_adamw(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_adamw_args *a = &n->adamw;
    (void)out;
    PL_TRY(pl_expect_operand(g, n, &a->gradient, &g->value[a->weight].shape, "the shape of the weight", err));
    PL_TRY(expect_moment(g, n, &a->m, err));
    return expect_moment(g, n, &a->v, err);
}

static pl_cost cost_adamw(const pl_graph *g, const pl_node *n)
{
    const double e = pl_value_elems_f(pl_value_at(g, n->adamw.weight));
    return (pl_cost){14 * e, 12 * e + 4 * pl_value_bytes_f(pl_value_at(g, n->adamw.m))};
}

const pl_op_rule pl_rule_ADAMW = {shape_adamw, NULL, cost_adamw, .optimizer = true};

/* Includes the polynomial for the angle. */
static pl_cost cost_adam_atan2(const pl_graph *g, const pl_node *n)
{
    pl_cost cost = cost_adamw(g, n);
    cost.flops += 20 * pl_value_elems_f(pl_value_at(g, n->adam_atan2.weight));
    return cost;
}

const pl_op_rule pl_rule_ADAM_ATAN2 = {shape_adamw, NULL, cost_adam_atan2, .optimizer = true};

/* ---- ema: average' = average + (1 − rate)·(weight − average), an exponential moving average ---- */
static pl_status shape_ema(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_ema_args *a = &n->ema;
    (void)out;
    PL_TRY(pl_expect_operand(g, n, &a->weight, &g->value[a->average].shape, "the shape of the average", err));
    if (a->rate >= 0 && a->rate < 1) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "ema in %s: the rate is at least 0 and below 1, not %g", n->scope, a->rate);
}

static pl_cost cost_ema(const pl_graph *g, const pl_node *n)
{
    const double e = pl_value_elems_f(pl_value_at(g, n->ema.average));
    return (pl_cost){3 * e, 12 * e};
}

const pl_op_rule pl_rule_EMA = {shape_ema, NULL, cost_ema};
