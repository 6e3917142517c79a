/* Norms of images: group, instance and batch norm over the positions of each channel; the backward
 * formulas are the textbooks'. What is normalised is [samples, ..., positions, channels]: [B,H,W,C], sequences
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
const pl_op_rule pl_rule_CHANNEL_MOMENTS = {shape_moments, NULL, cost_moments, .recompute = true};

/* ---- forward ---- */

/* Input 0 an image, `first` and the one behind it gain and offset, the one behind that the residual. */
static pl_status check_norm(const pl_graph *g, const pl_node *n, int first, pl_error *err)
{
    PL_TRY(check_image(g, n, 0, err));
    const pl_shape *x = &pl_in(g, n, 0)->shape;
    pl_shape channels = channels_of(x);
    for (int k = first; k < first + 2; k++)
        PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    return pl_expect_shape(g, n, first + 2, x, "the shape of the norm's input", err);
}

static pl_status check_moments(const pl_graph *g, const pl_node *n, pl_error *err)
{
    pl_shape moments = moments_of(&pl_in(g, n, 0)->shape);
    return pl_expect_shape(g, n, 1, &moments, "the moments of input 0", err);
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

static pl_cost cost_norm(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    const pl_value *residual = pl_in(g, n, n->op == PL_OP_BATCH_NORM_EVAL ? 5 : 4);
    return (pl_cost){24 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(residual)};
}

/* The residual passes its gradient on as it is. mean and second (rstd, or a variance that is given) are what the
 * backward node makes x̂ from. */
static pl_status gradient_norm(pl_gradient *g, const pl_node *n, pl_op bwd, int gamma, pl_id mean, pl_id second)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], residual = n->in[gamma + 2];
    if (dy == PL_NONE) return PL_OK;
    if (residual != PL_NONE) pl_gradient_add(g, residual, dy);
    pl_id out[3] = {pl_gradient_output(g, x), PL_NONE, PL_NONE};
    pl_id to_gamma = pl_gradient_accumulator(g, n->in[gamma]), to_beta = pl_gradient_accumulator(g, n->in[gamma + 1]);
    if (out[0] == PL_UNWANTED && to_gamma == PL_NONE && to_beta == PL_NONE) return g->b->status;
    pl_id in[9] = {dy, x, n->in[gamma], n->in[gamma + 1], mean, second, to_gamma, to_beta, pl_gradient_take(g, x)};
    pl_build_node(g->b, bwd, n->attr, 9, in, 3, out);
    pl_gradient_add(g, x, out[0]);
    pl_gradient_accumulated(g, n->in[gamma], out[1]);
    pl_gradient_accumulated(g, n->in[gamma + 1], out[2]);
    return g->b->status;
}

/* ---- group_norm: x, moments, gamma, beta, [residual] → y, mean, rstd ----
 * y = act(x̂·gamma + beta) (+ residual). A group a channel is instance norm. */
static pl_status shape_group_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_norm(g, n, 2, err));
    PL_TRY(check_moments(g, n, err));
    PL_TRY(check_groups(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = out[2] = (pl_out){statistics_of_groups(&x->shape, n->attr[0].i), PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_group_norm(pl_gradient *g, const pl_node *n)
{
    return gradient_norm(g, n, PL_OP_GROUP_NORM_BWD, 2, n->out[1], n->out[2]);
}

const pl_op_rule pl_rule_GROUP_NORM = {shape_group_norm, gradient_group_norm, cost_norm, .recompute = true};

/* ---- batch_norm: x, moments, gamma, beta, [residual] → y, mean, rstd ----
 * With the statistics of the whole batch. Those that evaluation needs are kept by batch_norm_update: a node of its own,
 * so that recompute, which may run this one again, leaves them alone. */
static pl_status shape_batch_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_norm(g, n, 2, err));
    PL_TRY(check_moments(g, n, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = out[2] = (pl_out){channels_of(&x->shape), PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_batch_norm(pl_gradient *g, const pl_node *n)
{
    return gradient_norm(g, n, PL_OP_BATCH_NORM_BWD, 2, n->out[1], n->out[2]);
}

const pl_op_rule pl_rule_BATCH_NORM = {shape_batch_norm, gradient_batch_norm, cost_norm, .recompute = true,
                                       .mixes_samples = true};

/* ---- batch_norm_eval: x, mean, variance, gamma, beta, [residual] → y ---- */
static pl_status shape_batch_norm_eval(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_norm(g, n, 3, err));
    const pl_value *x = pl_in(g, n, 0);
    pl_shape channels = channels_of(&x->shape);
    for (int k = 1; k < 3; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_batch_norm_eval(pl_gradient *g, const pl_node *n)
{
    return gradient_norm(g, n, PL_OP_BATCH_NORM_EVAL_BWD, 3, n->in[1], n->in[2]);
}

const pl_op_rule pl_rule_BATCH_NORM_EVAL = {shape_batch_norm_eval, gradient_batch_norm_eval, cost_norm,
                                            .recompute = true};

/* ---- batch_norm_update: moments, running mean, running variance → both' ----
 * running += momentum·(statistic of the batch − running), the variance unbiased; `positions` is what the moments of one
 * row are made of. */
static pl_status shape_batch_norm_update(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shape *moments = &pl_in(g, n, 0)->shape;
    if (moments->rank < RANK_MIN + 1 || moments->dim[moments->rank - 2] != 2 || pl_shape_elems(moments) == 0)
        return pl_fail_input(g, n, 0, "moments, f32 [..., 2, channels]", err);
    if (n->attr[1].i < 1 || !(n->attr[0].f >= 0 && n->attr[0].f <= 1))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a row has at least 1 position, and momentum is in [0, 1]",
                       pl_op_name(n->op), n->scope);
    pl_shape channels = channels_of(moments);
    for (int k = 1; k < 3; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the moments]", err));
    out[0] = out[1] = (pl_out){channels, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_batch_norm_update(const pl_graph *g, const pl_node *n)
{
    const pl_value *moments = pl_in(g, n, 0);
    return (pl_cost){3 * pl_value_elems_f(moments), pl_value_bytes_f(moments)};
}

const pl_op_rule pl_rule_BATCH_NORM_UPDATE = {shape_batch_norm_update, NULL, cost_batch_norm_update,
                                              .mixes_samples = true};

/* ---- …_bwd: dy, x, gamma, beta, mean, rstd, [dgamma], [dbeta], [add] → [dx], [dgamma'], [dbeta'] ----
 * The pre-activation is made again from x; batch_norm_eval_bwd has the running variance in place of rstd. */
static pl_status shape_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_image(g, n, 1, err));
    bool grouped = n->op == PL_OP_GROUP_NORM_BWD;
    if (grouped) PL_TRY(check_groups(g, n, 1, err));
    const pl_value *x = pl_in(g, n, 1);
    pl_shape channels = channels_of(&x->shape);
    pl_shape statistics = grouped ? statistics_of_groups(&x->shape, n->attr[0].i) : channels;
    for (int k = 0; k < 9; k += 8) PL_TRY(pl_expect_shape(g, n, k, &x->shape, "the shape of the norm's input", err));
    for (int k = 2; k < 4; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    for (int k = 4; k < 6; k++) PL_TRY(pl_expect_shape(g, n, k, &statistics, "the statistics of the norm, f32", err));
    for (int k = 6; k < 8; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = out[2] = (pl_out){channels, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 1);
    return (pl_cost){60 * pl_value_elems_f(x), 5 * pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 8))};
}

const pl_op_rule pl_rule_GROUP_NORM_BWD = {shape_bwd, NULL, cost_bwd};
const pl_op_rule pl_rule_BATCH_NORM_BWD = {shape_bwd, NULL, cost_bwd, .mixes_samples = true};
const pl_op_rule pl_rule_BATCH_NORM_EVAL_BWD = {shape_bwd, NULL, cost_bwd};

/* ---- pooled_batch_norm: x, moments, gamma, beta, [film B,2·channels] → y, mean, rstd ----
 * batch_norm of what a pool has left of an image (conv2d_pool), with the statistics of the whole image: moments are its
 * rows', of `positions` pixels each. With film y = s·act(…) + t, the scales s in front of the shifts t. */
enum { EPS, ACT, POSITIONS };

/* One sample's rows, and their pixels. */
static pl_status check_pooled(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_shape *x = &pl_in(g, n, 0)->shape, *moments = &pl_in(g, n, 1)->shape;
    pl_shape whole = *x;
    whole.dim[1] = moments->dim[1], whole.dim[2] = 2;
    if (x->rank != 4) return pl_fail_input(g, n, 0, "[samples, rows, positions, channels]", err);
    if (moments->rank != 4 || !pl_shape_equal(moments, &whole))
        return pl_fail_input(g, n, 1, "moments, f32 [samples, rows of the whole image, 2, channels]", err);
    if (n->attr[POSITIONS].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a row has at least 1 position", pl_op_name(n->op), n->scope);
    if (n->attr[ACT].i == PL_ACT_GELU || n->attr[ACT].i == PL_ACT_SILU || n->attr[ACT].i == PL_ACT_QUICK_GELU)
        return pl_fail(err, PL_E_INTERNAL,
                       "%s in %s: the pool went first, so the activation must not fall anywhere, as %s does",
                       pl_op_name(n->op), n->scope, pl_activation_name((pl_activation)n->attr[ACT].i));
    return PL_OK;
}

static pl_status shape_pooled(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0);
    pl_shape channels = channels_of(&x->shape);
    PL_TRY(check_image(g, n, 0, err));
    for (int k = 2; k < 4; k++) PL_TRY(pl_expect_shape(g, n, k, &channels, "f32 [channels of the input]", err));
    PL_TRY(check_pooled(g, n, err));
    PL_TRY(pl_expect_film(g, n, 4, &x->shape, pl_shape_last(&x->shape), err));
    out[0] = (pl_out){x->shape, x->dtype};
    out[1] = out[2] = (pl_out){channels_of(&x->shape), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_pooled(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = pl_in(g, n, 0);
    return (pl_cost){24 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(pl_in(g, n, 1))};
}

/* x and the moments are what one conv2d_pool makes, and no other node that has a gradient has read either of them: only
 * then is what the spread says the whole gradient. Rules run from the last node to the first. */
static bool is_only_reader(const pl_gradient *g, const pl_node *n)
{
    const pl_graph *graph = g->b->graph;
    const pl_id maker = graph->value[n->in[1]].producer;
    if (maker == PL_NONE || graph->node[maker].op != PL_OP_CONV2D_POOL || graph->node[maker].out[0] != n->in[0] ||
        graph->node[maker].out[2] != n->in[1])
        return false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const pl_node *other = &graph->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX; k++) {
            const bool is_this = other->op == n->op && other->out[0] == n->out[0];
            const bool is_running = other->op == PL_OP_BATCH_NORM_UPDATE || other->phase == PL_PHASE_BACKWARD;
            if (!other->dead && !is_this && !is_running && (other->in[k] == n->in[0] || other->in[k] == n->in[1]))
                return false;
        }
    }
    return true;
}

/* What the statistics pass on to every pixel of the whole image reaches it as the gradient of its moments. */
static pl_status gradient_pooled(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), x = n->in[0], moments = n->in[1];
    if (dy == PL_NONE) return PL_OK;
    if (!is_only_reader(g, n))
        return pl_fail(
            g->b->err, PL_E_UNSUPPORTED,
            "pooled_batch_norm in %s: its gradient needs x and moments of one conv2d_pool, and to be all that "
            "reads them",
            n->scope);
    pl_id film = n->in[4];
    pl_id out[5] = {pl_gradient_output(g, x), PL_NONE, PL_NONE, pl_gradient_output(g, moments),
                    film == PL_NONE ? PL_UNWANTED : pl_gradient_output(g, film)};
    pl_id to_gamma = pl_gradient_accumulator(g, n->in[2]), to_beta = pl_gradient_accumulator(g, n->in[3]);
    if (out[0] == PL_UNWANTED && out[4] == PL_UNWANTED && to_gamma == PL_NONE && to_beta == PL_NONE)
        return g->b->status;
    const int64_t rows = g->b->graph->value[moments].shape.dim[1];
    pl_attr attr[] = {n->attr[EPS], n->attr[ACT], pl_attr_i(rows * n->attr[POSITIONS].i)};
    pl_id in[9] = {dy, x, n->in[2], n->in[3], n->out[1], n->out[2], to_gamma, to_beta, film};
    pl_build_node(g->b, PL_OP_POOLED_BATCH_NORM_BWD, attr, 9, in, 5, out);
    pl_gradient_add(g, x, out[0]);
    pl_gradient_accumulated(g, n->in[2], out[1]);
    pl_gradient_accumulated(g, n->in[3], out[2]);
    pl_gradient_add(g, moments, out[3]);
    if (film != PL_NONE) pl_gradient_add(g, film, out[4]);
    return g->b->status;
}

const pl_op_rule pl_rule_POOLED_BATCH_NORM = {shape_pooled, gradient_pooled, cost_pooled, .recompute = true,
                                              .mixes_samples = true};

/* ---- pooled_batch_norm_bwd: dy, x, gamma, beta, mean, rstd, [dgamma], [dbeta], [film]
 *                           → [dx], [dgamma'], [dbeta'], [spread], [dfilm] ----
 * dx as if the statistics were given. What they add for a number v of the whole image, which has `positions` pixels a
 * sample, is shift + slope·(v − mean): spread f32 [3, channels] holds the three, a row each. */
static pl_status shape_pooled_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 1);
    const pl_value *film = pl_in(g, n, 8);
    pl_node plain = *n;
    plain.in[8] = PL_NONE; /* where the others have what is added to dx */
    PL_TRY(shape_bwd(g, &plain, out, err));
    PL_TRY(pl_expect_film(g, n, 8, &x->shape, pl_shape_last(&x->shape), err));
    if (n->attr[POSITIONS].i < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a sample has at least 1 position", pl_op_name(n->op), n->scope);
    out[3] = (pl_out){pl_shape_of(2, (int64_t)3, pl_shape_last(&x->shape)), PL_DTYPE_F32};
    if (film) out[4] = (pl_out){film->shape, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_POOLED_BATCH_NORM_BWD = {shape_pooled_bwd, NULL, cost_bwd, .mixes_samples = true};

/* ---- batch_norm_spread: g, argmax, spread, y → dy ----
 * The gradient of the whole image y: g where the pool took a number from, and what the statistics pass on to all. */
static pl_status shape_spread(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *pooled = pl_in(g, n, 0), *y = pl_in(g, n, 3);
    if (y->shape.rank != 4 || pl_shape_elems(&y->shape) == 0)
        return pl_fail_input(g, n, 3, "[samples, rows, positions, channels]", err);
    pl_shape half = y->shape, rows = pl_shape_of(2, (int64_t)3, pl_shape_last(&y->shape));
    half.dim[1] /= 2, half.dim[2] /= 2;
    PL_TRY(pl_expect_shape(g, n, 0, &half, "the shape of what the pool left of input 3", err));
    PL_TRY(pl_expect_shape(g, n, 1, &pooled->shape, "the shape of input 0, u8", err));
    if (pl_in(g, n, 1)->dtype != PL_DTYPE_U8) return pl_fail_input(g, n, 1, "u8", err);
    PL_TRY(pl_expect_shape(g, n, 2, &rows, "f32 [3, channels]", err));
    out[0] = (pl_out){y->shape, y->dtype};
    return PL_OK;
}

static pl_cost cost_spread(const pl_graph *g, const pl_node *n)
{
    const pl_value *pooled = pl_in(g, n, 0), *y = pl_in(g, n, 3);
    return (pl_cost){4 * pl_value_elems_f(y),
                     2 * pl_value_bytes_f(y) + pl_value_bytes_f(pooled) + pl_value_elems_f(pooled)};
}

const pl_op_rule pl_rule_BATCH_NORM_SPREAD = {shape_spread, NULL, cost_spread};
