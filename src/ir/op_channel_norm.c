/* Norms of images: group, instance and batch norm over the positions of each channel (MODELS.md 0.3); the backward
 * formulas are those of appendix A. What is normalised is [samples, ..., positions, channels]: [B,H,W,C], sequences
 * [B,T,C], or [B,C], whose samples have one position each.
 *
 * A norm reads x twice, for its statistics and to apply them. The first time is an operator of its own, or a
 * convolution's epilogue: moments, for each row of positions and each channel the mean and the sum of squared
 * deviations. */
#include "ir/op.h"

enum { RANK_MIN = 2 };

static pl_status check_image(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, k)->shape;
    if (s->rank < RANK_MIN || s->dim[s->rank - 1] < 1 || pl_shape_elems(s) == 0)
        return pl_fail_input(g, n, k, "[samples, ..., positions, channels]", err);
    return PL_OK;
}

/* All dimensions but those of positions and channels, and behind them [2, channels]. */
static pl_shape moments_of(const pl_shape *x)
{
    pl_shape s = *x;
    s.rank = x->rank > RANK_MIN ? x->rank : RANK_MIN + 1;
    s.dim[s.rank - 2] = 2;
    s.dim[s.rank - 1] = pl_shape_last(x);
    s.symbolic &= (1u << (s.rank - 2)) - 1;
    return s;
}

static pl_shape channels_of(const pl_shape *x) { return pl_shape_of(1, pl_shape_last(x)); }

/* ---- channel_moments: x → moments ---- */
static pl_status shape_moments(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(pl_expect_inputs(g, n, "r", err));
    PL_TRY(check_image(g, n, 0, err));
    out[0] = (pl_out){moments_of(&pl_in(g, n, 0)->shape), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_moments(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){4 * pl_value_elems_f(x), pl_value_bytes_f(x)};
}

/* The norm that reads the moments has the gradient with respect to all that it saw of x. */
const pl_op_rule pl_rule_CHANNEL_MOMENTS = {shape_moments, NULL, cost_moments, pl_alias_none, .recompute = true};

/* ---- group_norm: x, moments, gamma, beta, [residual] → y, mean, rstd ---- */
static pl_status check_norm(const pl_graph *g, const pl_node *n, pl_error *err)
{
    PL_TRY(pl_expect_inputs(g, n, "rfffr", err));
    PL_TRY(check_image(g, n, 0, err));
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    pl_shape moments = moments_of(x), channels = channels_of(x);
    PL_TRY(pl_expect_shape(g, n, 1, &moments, "the moments of input 0", err));
    for (int k = 2; k < 4; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    return pl_expect_shape(g, n, 4, x, "the shape of the norm's input", err);
}

static pl_status check_groups(const pl_graph *g, const pl_node *n, int x, pl_error *err)
{
    int64_t channels = pl_shape_last(&pl_in(g, n, x)->shape), groups = n->attr[0].i;
    if (groups < 1 || channels % groups)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: %lld channels cannot be dealt to %lld groups", pl_op_name(n->op),
                       n->scope, (long long)channels, (long long)groups);
    return PL_OK;
}

static pl_shape statistics_of_groups(const pl_shape *x, int64_t groups)
{
    pl_shape s = pl_shape_of(2, x->dim[0], groups);
    s.symbolic = x->symbolic & 1;
    return s;
}

static pl_status shape_group_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_norm(g, n, err));
    PL_TRY(check_groups(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = out[2] = (pl_out){statistics_of_groups(&x->shape, n->attr[0].i), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_norm(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){24 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 4))};
}

static pl_alias alias_norm(const pl_node *n, int out)
{
    (void)n;
    return (pl_alias){.update = -1, .may = out == 0 ? 1u << 0 | 1u << 4 : 0};
}

const pl_op_rule pl_rule_GROUP_NORM = {shape_group_norm, NULL, cost_norm, alias_norm, .recompute = true};
