/* Norms of images: group, instance and batch norm over the positions of each channel; the backward formulas are the
 * textbooks'. The input is [samples, ..., positions, channels]: [B,H,W,C], sequences [B,T,C], or [B,C], whose samples
 * have one position each.
 *
 * A norm reads x twice, for its statistics and to apply them. The first read is an operator of its own, or a
 * convolution's epilogue: moments, the mean and the sum of squared deviations for each row of positions and each
 * channel. */
#include "ir/op.h"

enum { RANK_MIN = 2 };

static pl_status check_image(const pl_graph *g, const pl_node *n, const pl_id *image, pl_error *err)
{
    const pl_shape *s = &g->value[*image].shape;
    if (s->rank < RANK_MIN || s->dim[s->rank - 1] < 1 || pl_shape_elems(s) == 0)
        return pl_fail_operand(g, n, image, "[samples, ..., positions, channels]", err);
    return PL_OK;
}

/* All dimensions but positions and channels, followed by [2, channels]. */
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

/* A number for each channel of x. */
static pl_status expect_channels(const pl_graph *g, const pl_node *n, const pl_id *operand, const pl_shape *x,
                                 pl_error *err)
{
    pl_shape channels = channels_of(x);
    return pl_expect_operand(g, n, operand, &channels, "f32 [channels of the input]", err);
}

/* ---- channel_moments: x → moments ---- */
static pl_status shape_moments(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_channel_moments_args *a = &n->channel_moments;
    PL_TRY(check_image(g, n, &a->x, err));
    *out = (pl_out){moments_of(&g->value[a->x].shape), PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_moments(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->channel_moments.x];
    return (pl_cost){4 * pl_value_elems_f(x), pl_value_bytes_f(x)};
}

/* The norm that reads the moments gives the whole gradient of x, including the part through them. */
const pl_op_rule pl_rule_CHANNEL_MOMENTS = {shape_moments, NULL, cost_moments, .recompute = true};

/* ---- forward ---- */
_Static_assert(offsetof(pl_group_norm_args, residual) == offsetof(pl_batch_norm_args, residual) &&
                   offsetof(pl_group_norm_args, rstd) == offsetof(pl_batch_norm_args, rstd),
               "one rule reads both");
_Static_assert(offsetof(pl_batch_norm_args, x) == offsetof(pl_batch_norm_eval_args, x), "one rule reads both");

/* x an image, with gain, offset and residual. */
static pl_status check_norm(const pl_graph *g, const pl_node *n, const pl_id *gamma, const pl_id *beta,
                            const pl_id *residual, pl_error *err)
{
    const pl_id *x = &n->batch_norm.x;
    const pl_shape *s = &g->value[*x].shape;
    PL_TRY(check_image(g, n, x, err));
    PL_TRY(expect_channels(g, n, gamma, s, err));
    PL_TRY(expect_channels(g, n, beta, s, err));
    return pl_expect_operand(g, n, residual, s, "the shape of the norm's input", err);
}

static pl_status check_norm_of_moments(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_batch_norm_args *a = &n->batch_norm;
    PL_TRY(check_norm(g, n, &a->gamma, &a->beta, &a->residual, err));
    pl_shape moments = moments_of(&g->value[a->x].shape);
    return pl_expect_operand(g, n, &a->moments, &moments, "the moments of x", err);
}

/* y, mean and rstd of group_norm and batch_norm. */
static void give_norm(const pl_graph *g, const pl_node *n, pl_shape statistics, pl_out out[])
{
    const pl_value *x = &g->value[n->batch_norm.x];
    out[PL_OUT_OF(batch_norm, y)] = pl_out_like(x);
    out[PL_OUT_OF(batch_norm, mean)] = out[PL_OUT_OF(batch_norm, rstd)] = (pl_out){statistics, PL_DTYPE_F32};
}

static pl_status check_groups(const pl_node *n, const pl_value *x, int64_t groups, pl_error *err)
{
    int64_t channels = pl_shape_last(&x->shape);
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
    const bool eval = n->op == PL_OP_BATCH_NORM_EVAL;
    const pl_value *x = &g->value[n->batch_norm.x];
    const pl_value *residual = pl_value_at(g, eval ? n->batch_norm_eval.residual : n->batch_norm.residual);
    return (pl_cost){24 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(residual)};
}

_Static_assert(offsetof(pl_batch_norm_bwd_args, add) == offsetof(pl_group_norm_bwd_args, add) &&
                   offsetof(pl_batch_norm_bwd_args, add) == offsetof(pl_batch_norm_eval_bwd_args, add) &&
                   offsetof(pl_batch_norm_bwd_args, dbeta_new) == offsetof(pl_group_norm_bwd_args, dbeta_new) &&
                   offsetof(pl_batch_norm_bwd_args, dbeta_new) == offsetof(pl_batch_norm_eval_bwd_args, dbeta_new),
               "one rule reads all");

/* Adds the wanted outputs to the backward node, and builds it. The residual's gradient is passed on as it is. */
static pl_status gradient_norm(pl_gradient *g, pl_id y, pl_id residual, pl_node *bwd)
{
    pl_batch_norm_bwd_args *b = &bwd->batch_norm_bwd;
    b->dy = pl_gradient_of(g, y);
    if (b->dy == PL_NONE) return PL_OK;
    if (residual != PL_NONE) pl_gradient_add(g, residual, b->dy);
    b->dx = pl_gradient_output(g, b->x);
    b->dgamma = pl_gradient_accumulator(g, b->gamma), b->dbeta = pl_gradient_accumulator(g, b->beta);
    if (b->dx == PL_UNWANTED && b->dgamma == PL_NONE && b->dbeta == PL_NONE) return g->b->status;
    b->add = pl_gradient_take(g, b->x);
    pl_build_node(g->b, bwd->op, bwd->attr, PL_INS_OF_BATCH_NORM_BWD, bwd->in, PL_OUTS_OF_BATCH_NORM_BWD, bwd->out);
    pl_gradient_add(g, b->x, b->dx);
    pl_gradient_accumulated(g, b->gamma, b->dgamma_new);
    pl_gradient_accumulated(g, b->beta, b->dbeta_new);
    return g->b->status;
}

/* ---- group_norm: x, moments, gamma, beta, residual → y, mean, rstd ----
 * y = act(x̂·gamma + beta) (+ residual). One channel per group is instance norm. */
static pl_status shape_group_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_group_norm_args *a = &n->group_norm;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_norm_of_moments(g, n, err));
    PL_TRY(check_groups(n, x, a->groups, err));
    give_norm(g, n, statistics_of_groups(&x->shape, a->groups), out);
    return PL_OK;
}

static pl_status gradient_group_norm(pl_gradient *g, const pl_node *n)
{
    const pl_group_norm_args *a = &n->group_norm;
    pl_group_norm_bwd_args b = pl_group_norm_bwd_none;
    b.x = a->x, b.gamma = a->gamma, b.beta = a->beta, b.mean = a->mean, b.rstd = a->rstd;
    b.groups = a->groups, b.eps = a->eps, b.act = a->act;
    pl_node bwd = {.op = PL_OP_GROUP_NORM_BWD, .group_norm_bwd = b};
    return gradient_norm(g, a->y, a->residual, &bwd);
}

const pl_op_rule pl_rule_GROUP_NORM = {shape_group_norm, gradient_group_norm, cost_norm, .recompute = true};

/* ---- batch_norm: x, moments, gamma, beta, residual → y, mean, rstd ----
 * With the statistics of the whole batch. batch_norm_update keeps those that evaluation needs: it is a node of its own,
 * so that recompute, which may run this one again, leaves them alone. */
static pl_status shape_batch_norm(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_norm_of_moments(g, n, err));
    give_norm(g, n, channels_of(&g->value[n->batch_norm.x].shape), out);
    return PL_OK;
}

static pl_status gradient_batch_norm(pl_gradient *g, const pl_node *n)
{
    const pl_batch_norm_args *a = &n->batch_norm;
    pl_batch_norm_bwd_args b = pl_batch_norm_bwd_none;
    b.x = a->x, b.gamma = a->gamma, b.beta = a->beta, b.mean = a->mean, b.rstd = a->rstd;
    b.eps = a->eps, b.act = a->act;
    pl_node bwd = {.op = PL_OP_BATCH_NORM_BWD, .batch_norm_bwd = b};
    return gradient_norm(g, a->y, a->residual, &bwd);
}

const pl_op_rule pl_rule_BATCH_NORM = {shape_batch_norm, gradient_batch_norm, cost_norm, .recompute = true,
                                       .mixes_samples = true};

/* ---- batch_norm_eval: x, mean, variance, gamma, beta, residual → y ---- */
static pl_status shape_batch_norm_eval(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_batch_norm_eval_args *a = &n->batch_norm_eval;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_norm(g, n, &a->gamma, &a->beta, &a->residual, err));
    PL_TRY(expect_channels(g, n, &a->mean, &x->shape, err));
    PL_TRY(expect_channels(g, n, &a->variance, &x->shape, err));
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_batch_norm_eval(pl_gradient *g, const pl_node *n)
{
    const pl_batch_norm_eval_args *a = &n->batch_norm_eval;
    pl_batch_norm_eval_bwd_args b = pl_batch_norm_eval_bwd_none;
    b.x = a->x, b.gamma = a->gamma, b.beta = a->beta, b.mean = a->mean, b.variance = a->variance;
    b.eps = a->eps, b.act = a->act;
    pl_node bwd = {.op = PL_OP_BATCH_NORM_EVAL_BWD, .batch_norm_eval_bwd = b};
    return gradient_norm(g, a->y, a->residual, &bwd);
}

const pl_op_rule pl_rule_BATCH_NORM_EVAL = {shape_batch_norm_eval, gradient_batch_norm_eval, cost_norm,
                                            .recompute = true};

/* ---- batch_norm_update: moments, mean, variance, the running ones ----
 * running += momentum·(statistic of the batch − running), the variance unbiased; `positions` is how many positions go
 * into one row's moments. */
static pl_status shape_batch_norm_update(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_batch_norm_update_args *a = &n->batch_norm_update;
    const pl_shape *moments = &g->value[a->moments].shape;
    (void)out;
    if (moments->rank < RANK_MIN + 1 || moments->dim[moments->rank - 2] != 2 || pl_shape_elems(moments) == 0)
        return pl_fail_operand(g, n, &a->moments, "moments, f32 [..., 2, channels]", err);
    if (a->positions < 1 || !(a->momentum >= 0 && a->momentum <= 1))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a row has at least 1 position, and momentum is in [0, 1]",
                       pl_op_name(n->op), n->scope);
    pl_shape channels = channels_of(moments);
    PL_TRY(pl_expect_operand(g, n, &a->mean, &channels, "f32 [channels of the moments]", err));
    return pl_expect_operand(g, n, &a->variance, &channels, "f32 [channels of the moments]", err);
}

static pl_cost cost_batch_norm_update(const pl_graph *g, const pl_node *n)
{
    const pl_value *moments = &g->value[n->batch_norm_update.moments];
    return (pl_cost){3 * pl_value_elems_f(moments), pl_value_bytes_f(moments)};
}

const pl_op_rule pl_rule_BATCH_NORM_UPDATE = {shape_batch_norm_update, NULL, cost_batch_norm_update,
                                              .mixes_samples = true};

/* ---- …_bwd: dy, x, gamma, beta, mean, rstd, dgamma, dbeta, add → dx ----
 * The pre-activation is made again from x; batch_norm_eval_bwd has the running variance in place of rstd;
 * pooled_batch_norm_bwd has film in place of add. */
_Static_assert(offsetof(pl_batch_norm_bwd_args, dbeta) == offsetof(pl_pooled_batch_norm_bwd_args, dbeta) &&
                   offsetof(pl_batch_norm_bwd_args, add) == offsetof(pl_pooled_batch_norm_bwd_args, film) &&
                   offsetof(pl_batch_norm_bwd_args, dx) == offsetof(pl_pooled_batch_norm_bwd_args, dx),
               "one rule reads both");

/* All inputs but add and film; dx. */
static pl_status shape_bwd_alone(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_batch_norm_bwd_args *a = &n->batch_norm_bwd;
    const pl_value *x = &g->value[a->x];
    const bool grouped = n->op == PL_OP_GROUP_NORM_BWD;
    const int64_t groups = grouped ? n->group_norm_bwd.groups : 0;
    PL_TRY(check_image(g, n, &a->x, err));
    if (grouped) PL_TRY(check_groups(n, x, groups, err));
    pl_shape statistics = grouped ? statistics_of_groups(&x->shape, groups) : channels_of(&x->shape);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &x->shape, "the shape of the norm's input", err));
    PL_TRY(expect_channels(g, n, &a->gamma, &x->shape, err));
    PL_TRY(expect_channels(g, n, &a->beta, &x->shape, err));
    PL_TRY(pl_expect_operand(g, n, &a->mean, &statistics, "the statistics of the norm, f32", err));
    PL_TRY(pl_expect_operand(g, n, &a->rstd, &statistics, "the statistics of the norm, f32", err));
    PL_TRY(expect_channels(g, n, &a->dgamma, &x->shape, err));
    PL_TRY(expect_channels(g, n, &a->dbeta, &x->shape, err));
    out[PL_OUT_OF(batch_norm_bwd, dx)] = pl_out_like(x);
    return PL_OK;
}

static pl_status shape_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_batch_norm_bwd_args *a = &n->batch_norm_bwd;
    PL_TRY(shape_bwd_alone(g, n, out, err));
    return pl_expect_operand(g, n, &a->add, &g->value[a->x].shape, "the shape of the norm's input", err);
}

static pl_cost cost_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->batch_norm_bwd.x], *add = pl_value_at(g, n->batch_norm_bwd.add);
    return (pl_cost){60 * pl_value_elems_f(x), 5 * pl_value_bytes_f(x) + pl_value_bytes_f(add)};
}

const pl_op_rule pl_rule_GROUP_NORM_BWD = {shape_bwd, NULL, cost_bwd};
const pl_op_rule pl_rule_BATCH_NORM_BWD = {shape_bwd, NULL, cost_bwd, .mixes_samples = true};
const pl_op_rule pl_rule_BATCH_NORM_EVAL_BWD = {shape_bwd, NULL, cost_bwd};

/* ---- pooled_batch_norm: x, moments, gamma, beta, film [B,2·channels] → y, mean, rstd ----
 * batch_norm of what a pool has left of an image (conv2d_pool), with the statistics of the whole image: the moments are
 * its rows', each of `positions` pixels. With film, y = s·act(…) + t; scales s come before shifts t. Here: one sample's
 * rows, and their pixels. */
static pl_status check_pooled(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_pooled_batch_norm_args *a = &n->pooled_batch_norm;
    const pl_shape *x = &g->value[a->x].shape, *moments = &g->value[a->moments].shape;
    pl_shape whole = *x;
    whole.dim[1] = moments->dim[1], whole.dim[2] = 2;
    if (x->rank != 4) return pl_fail_operand(g, n, &a->x, "[samples, rows, positions, channels]", err);
    if (moments->rank != 4 || !pl_shape_equal(moments, &whole))
        return pl_fail_operand(g, n, &a->moments, "moments, f32 [samples, rows of the whole image, 2, channels]", err);
    if (a->positions < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a row has at least 1 position", pl_op_name(n->op), n->scope);
    if (a->act == PL_ACT_GELU || a->act == PL_ACT_SILU || a->act == PL_ACT_QUICK_GELU || a->act == PL_ACT_GELU_TANH)
        return pl_fail(err, PL_E_INTERNAL,
                       "%s in %s: the pool went first, so the activation must not fall anywhere, as %s does",
                       pl_op_name(n->op), n->scope, pl_activation_name((pl_activation)a->act));
    return PL_OK;
}

static pl_status expect_film(const pl_graph *g, const pl_node *n, const pl_id *film, const pl_shape *x, pl_error *err)
{
    return pl_expect_film(g, n, film, x, pl_shape_last(x), err);
}

static pl_status shape_pooled(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_pooled_batch_norm_args *a = &n->pooled_batch_norm;
    const pl_value *x = &g->value[a->x];
    PL_TRY(check_image(g, n, &a->x, err));
    PL_TRY(expect_channels(g, n, &a->gamma, &x->shape, err));
    PL_TRY(expect_channels(g, n, &a->beta, &x->shape, err));
    PL_TRY(check_pooled(g, n, err));
    PL_TRY(expect_film(g, n, &a->film, &x->shape, err));
    const pl_out statistics = {channels_of(&x->shape), PL_DTYPE_F32};
    out[PL_OUT_OF(pooled_batch_norm, y)] = pl_out_like(x);
    out[PL_OUT_OF(pooled_batch_norm, mean)] = out[PL_OUT_OF(pooled_batch_norm, rstd)] = statistics;
    return PL_OK;
}

static pl_cost cost_pooled(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->pooled_batch_norm.x], *moments = &g->value[n->pooled_batch_norm.moments];
    return (pl_cost){24 * pl_value_elems_f(x), 2 * pl_value_bytes_f(x) + pl_value_bytes_f(moments)};
}

static bool reads_either(const pl_node *n, pl_id one, pl_id other)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] == one || n->in[k] == other) return true;
    return false;
}

/* One conv2d_pool makes x and the moments, and no other node with a gradient reads either: only then is the spread the
 * whole gradient. Rules run from the last node to the first. */
static bool is_only_reader(const pl_gradient *g, const pl_node *n)
{
    const pl_graph *graph = g->b->graph;
    const pl_pooled_batch_norm_args *a = &n->pooled_batch_norm;
    const pl_id producer = graph->value[a->moments].producer;
    const pl_node *maker = producer == PL_NONE ? NULL : &graph->node[producer];
    if (!maker || maker->op != PL_OP_CONV2D_POOL || maker->conv2d_pool.pooled != a->x ||
        maker->conv2d_pool.moments != a->moments)
        return false;
    for (size_t i = 0; i < graph->node_count; i++) {
        const pl_node *other = &graph->node[i];
        const bool is_this = other->op == n->op && other->pooled_batch_norm.y == a->y;
        const bool is_running = other->op == PL_OP_BATCH_NORM_UPDATE || other->phase == PL_PHASE_BACKWARD;
        if (!other->dead && !is_this && !is_running && reads_either(other, a->x, a->moments)) return false;
    }
    return true;
}

static pl_status build_pooled_bwd(pl_gradient *g, const pl_pooled_batch_norm_args *a, pl_pooled_batch_norm_bwd_args *b)
{
    b->dx = pl_gradient_output(g, a->x), b->dfilm = pl_gradient_output(g, a->film);
    b->dgamma = pl_gradient_accumulator(g, a->gamma), b->dbeta = pl_gradient_accumulator(g, a->beta);
    if (b->dx == PL_UNWANTED && b->dfilm == PL_UNWANTED && b->dgamma == PL_NONE && b->dbeta == PL_NONE)
        return g->b->status;
    b->spread = pl_gradient_output(g, a->moments);
    pl_build_pooled_batch_norm_bwd(g->b, b);
    pl_gradient_add(g, a->x, b->dx);
    pl_gradient_accumulated(g, a->gamma, b->dgamma_new);
    pl_gradient_accumulated(g, a->beta, b->dbeta_new);
    pl_gradient_add(g, a->moments, b->spread);
    if (a->film != PL_NONE) pl_gradient_add(g, a->film, b->dfilm);
    return g->b->status;
}

/* The statistics' gradient for every pixel of the whole image reaches it as the gradient of its moments. */
static pl_status gradient_pooled(pl_gradient *g, const pl_node *n)
{
    const pl_pooled_batch_norm_args *a = &n->pooled_batch_norm;
    pl_pooled_batch_norm_bwd_args b = pl_pooled_batch_norm_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.x = a->x, b.gamma = a->gamma, b.beta = a->beta, b.mean = a->mean;
    b.rstd = a->rstd, b.film = a->film, b.eps = a->eps, b.act = a->act;
    if (b.dy == PL_NONE) return PL_OK;
    if (!is_only_reader(g, n))
        return pl_fail(g->b->err, PL_E_UNSUPPORTED,
                       "pooled_batch_norm in %s: its gradient needs x and moments of one conv2d_pool, and to be all "
                       "that reads them",
                       n->scope);
    b.positions = g->b->graph->value[a->moments].shape.dim[1] * a->positions;
    return build_pooled_bwd(g, a, &b);
}

const pl_op_rule pl_rule_POOLED_BATCH_NORM = {shape_pooled, gradient_pooled, cost_pooled, .recompute = true,
                                              .mixes_samples = true};

/* ---- pooled_batch_norm_bwd: dy, x, gamma, beta, mean, rstd, dgamma, dbeta, film → dx, spread, dfilm ----
 * dx as if the statistics were constants. Their part for a number v of the whole image, which has `positions` pixels
 * per sample, is shift + slope·(v − mean): spread f32 [3, channels] holds the three, a row each. */
static pl_status shape_pooled_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_pooled_batch_norm_bwd_args *a = &n->pooled_batch_norm_bwd;
    const pl_shape *x = &g->value[a->x].shape;
    const pl_value *film = pl_value_at(g, a->film);
    PL_TRY(shape_bwd_alone(g, n, out, err));
    PL_TRY(expect_film(g, n, &a->film, x, err));
    if (a->positions < 1)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: a sample has at least 1 position", pl_op_name(n->op), n->scope);
    out[PL_OUT_OF(pooled_batch_norm_bwd, spread)] =
        (pl_out){pl_shape_of(2, (int64_t)3, pl_shape_last(x)), PL_DTYPE_F32};
    if (film) out[PL_OUT_OF(pooled_batch_norm_bwd, dfilm)] = (pl_out){film->shape, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_POOLED_BATCH_NORM_BWD = {shape_pooled_bwd, NULL, cost_bwd, .mixes_samples = true};

/* ---- batch_norm_spread: dpooled, argmax, spread, y → dy ----
 * The gradient of the whole image y: dpooled where the pool took a number, plus the statistics' part everywhere. */
static pl_status shape_spread(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_batch_norm_spread_args *a = &n->batch_norm_spread;
    const pl_value *y = &g->value[a->y];
    if (y->shape.rank != 4 || pl_shape_elems(&y->shape) == 0)
        return pl_fail_operand(g, n, &a->y, "[samples, rows, positions, channels]", err);
    pl_shape half = y->shape, rows = pl_shape_of(2, (int64_t)3, pl_shape_last(&y->shape));
    half.dim[1] /= 2, half.dim[2] /= 2;
    PL_TRY(pl_expect_operand(g, n, &a->dpooled, &half, "the shape of what the pool left of y", err));
    PL_TRY(pl_expect_operand(g, n, &a->argmax, &half, "the shape of dpooled, u8", err));
    if (g->value[a->argmax].dtype != PL_DTYPE_U8) return pl_fail_operand(g, n, &a->argmax, "u8", err);
    PL_TRY(pl_expect_operand(g, n, &a->spread, &rows, "f32 [3, channels]", err));
    *out = pl_out_like(y);
    return PL_OK;
}

static pl_cost cost_spread(const pl_graph *g, const pl_node *n)
{
    const pl_value *pooled = &g->value[n->batch_norm_spread.dpooled], *y = &g->value[n->batch_norm_spread.y];
    return (pl_cost){4 * pl_value_elems_f(y),
                     2 * pl_value_bytes_f(y) + pl_value_bytes_f(pooled) + pl_value_elems_f(pooled)};
}

const pl_op_rule pl_rule_BATCH_NORM_SPREAD = {shape_spread, NULL, cost_spread};
