/* Capsules: a few weighted sums over the tokens of a sample, the tokens that weigh most in each, and copies
 * (docs/capsules.md). Tokens t are [B,...,D]: what stands between the samples and the width are N positions. */
#include "ir/op.h"

static pl_cost cost_of(const pl_graph *g, const pl_node *n, double flops)
{
    double bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) bytes += pl_value_bytes_f(pl_in(g, n, k));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return (pl_cost){flops, bytes};
}

static pl_cost cost_moved(const pl_graph *g, const pl_node *n)
{
    double elems = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) elems += pl_value_elems_f(pl_in(g, n, k));
    return cost_of(g, n, 2 * elems);
}

static bool has_samples(const pl_shape *s, uint32_t rank_min)
{
    return s->rank >= rank_min && !(s->symbolic & ~1u) && pl_shape_elems(s) != 0;
}

static pl_status check_tokens(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    bool fine = has_samples(&pl_in(g, n, k)->shape, 3);
    return fine ? PL_OK : pl_fail_input(g, n, k, "[samples, positions, width]", err);
}

static int64_t positions_of(const pl_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 1; i + 1 < s->rank; i++) n *= s->dim[i];
    return n;
}

static pl_shape of_each(const pl_shape *samples, int64_t rows, int64_t columns)
{
    pl_shape s = {.rank = 3, .symbolic = samples->symbolic};
    s.dim[0] = samples->dim[0], s.dim[1] = rows, s.dim[2] = columns;
    return s;
}

/* ---- capsule_pool: t [B,...,D], logits [B,...,K] → y [B,K,D] = Σ_n a_kn·t_n, [a f32 [B,K,N]] ----
 * a_k is the softmax of capsule k's logits over the positions. */
static pl_status check_logits(const pl_graph *g, const pl_node *n, int t, pl_error *err)
{
    PL_TRY(check_tokens(g, n, t, err));
    pl_shape logits = pl_in(g, n, t)->shape;
    logits.dim[logits.rank - 1] = pl_shape_last(&pl_in(g, n, t + 1)->shape);
    if (logits.dim[logits.rank - 1] < 1) return pl_fail_input(g, n, t + 1, "a number for each capsule", err);
    return pl_expect_shape(g, n, t + 1, &logits, "a number for each capsule at every position of the tokens", err);
}

static pl_status shape_capsule_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_logits(g, n, 0, err));
    const pl_value *t = pl_in(g, n, 0);
    int64_t capsules = pl_shape_last(&pl_in(g, n, 1)->shape);
    out[0] = (pl_out){of_each(&t->shape, capsules, pl_shape_last(&t->shape)), t->dtype};
    out[1] = (pl_out){of_each(&t->shape, capsules, positions_of(&t->shape)), PL_DTYPE_F32};
    return PL_OK;
}

/* Of a loss that reads the weights alone. */
static pl_id zeros_like(pl_gradient *g, pl_id value)
{
    const pl_value *v = &g->b->graph->value[value];
    pl_id out =
        pl_build_temporary(g->b, PL_ROLE_TEMPORARY, v->dtype, v->shape, "d_%s.%zu", v->name, g->b->graph->value_count);
    return pl_build_node(g->b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
}

static pl_status gradient_capsule_pool(pl_gradient *g, const pl_node *n)
{
    pl_id t = n->in[0], logits = n->in[1], out[2] = {pl_gradient_output(g, t), pl_gradient_output(g, logits)};
    pl_id dy = pl_gradient_of(g, n->out[0]), da = n->out[1] == PL_NONE ? PL_NONE : pl_gradient_of(g, n->out[1]);
    if ((dy == PL_NONE && da == PL_NONE) || (out[0] == PL_UNWANTED && out[1] == PL_UNWANTED)) return PL_OK;
    if (dy == PL_NONE) dy = zeros_like(g, n->out[0]);
    pl_id in[5] = {dy, t, logits, da, pl_gradient_take(g, t)};
    pl_build_node(g->b, PL_OP_CAPSULE_POOL_BWD, n->attr, 5, in, 2, out);
    pl_gradient_add(g, t, out[0]);
    pl_gradient_add(g, logits, out[1]);
    return g->b->status;
}

static double pool_flops(const pl_graph *g, const pl_node *n, int t)
{
    return 2 * pl_value_elems_f(pl_in(g, n, t)) * (double)pl_shape_last(&pl_in(g, n, t + 1)->shape);
}

static pl_cost cost_capsule_pool(const pl_graph *g, const pl_node *n) { return cost_of(g, n, pool_flops(g, n, 0)); }

const pl_op_rule pl_rule_CAPSULE_POOL = {shape_capsule_pool, gradient_capsule_pool, cost_capsule_pool,
                                         .recompute = true};

/* ---- capsule_pool_bwd: dy [B,K,D], t, logits, [da f32 [B,K,N]], [partial as t] → [dt], [dlogits] ---- */
static pl_status shape_capsule_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_logits(g, n, 1, err));
    const pl_value *t = pl_in(g, n, 1), *logits = pl_in(g, n, 2);
    int64_t capsules = pl_shape_last(&logits->shape);
    pl_shape y = of_each(&t->shape, capsules, pl_shape_last(&t->shape));
    pl_shape a = of_each(&t->shape, capsules, positions_of(&t->shape));
    PL_TRY(pl_expect_shape(g, n, 0, &y, "the shape of the sums", err));
    PL_TRY(pl_expect_shape(g, n, 3, &a, "the shape of the weights of the sums", err));
    PL_TRY(pl_expect_shape(g, n, 4, &t->shape, "the shape of the tokens", err));
    out[0] = (pl_out){t->shape, t->dtype};
    out[1] = (pl_out){logits->shape, logits->dtype};
    return PL_OK;
}

static pl_cost cost_capsule_pool_bwd(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, 2 * pool_flops(g, n, 1));
}

/* All sums of a sample are made before its dt is written, all weights before its dlogits. */
const pl_op_rule pl_rule_CAPSULE_POOL_BWD = {shape_capsule_pool_bwd, NULL, cost_capsule_pool_bwd};

/* ---- top_k: x f32 [...,N] → i32 [...,count]: where the largest are, the largest first ----
 * Of equal ones the first comes first, NaN behind all numbers. No gradient: places are no numbers. */
static pl_status shape_top_k(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    pl_shape s = pl_in(g, n, 0)->shape;
    int64_t width = pl_shape_last(&s), count = n->attr[0].i;
    if (s.rank < 1 || s.symbolic >> (s.rank - 1) & 1 || width > INT32_MAX)
        return pl_fail_input(g, n, 0, "f32 [..., numbers]", err);
    if (count < 1 || count > width)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: of %lld numbers there are no %lld largest", pl_op_name(n->op),
                       n->scope, (long long)width, (long long)count);
    s.dim[s.rank - 1] = count;
    out[0] = (pl_out){s, PL_DTYPE_I32};
    return PL_OK;
}

const pl_op_rule pl_rule_TOP_K = {shape_top_k, NULL, cost_moved, .recompute = true};

/* ---- gather_rows: t [B,...,D] of any type, index i32 [B,...] → [B,...,D]: the tokens at these positions, 0 … N − 1
 * ---- */
static pl_status check_gather(const pl_graph *g, const pl_node *n, int index, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, index)->shape;
    bool fine = has_samples(s, 2) && s->rank < PL_RANK_MAX;
    return fine ? PL_OK : pl_fail_input(g, n, index, "i32 [samples, ...]", err);
}

static pl_shape with_width(pl_shape index, int64_t width)
{
    index.dim[index.rank++] = width;
    return index;
}

static bool are_of_the_same_samples(const pl_shape *a, const pl_shape *b)
{
    return a->dim[0] == b->dim[0] && a->symbolic == b->symbolic;
}

static pl_status shape_gather_rows(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_tokens(g, n, 0, err));
    PL_TRY(check_gather(g, n, 1, err));
    const pl_value *t = pl_in(g, n, 0);
    const pl_shape *index = &pl_in(g, n, 1)->shape;
    if (!are_of_the_same_samples(&t->shape, index))
        return pl_fail_input(g, n, 1, "i32 [samples, ...], as many samples as there are of tokens", err);
    out[0] = (pl_out){with_width(*index, pl_shape_last(&t->shape)), t->dtype};
    return PL_OK;
}

static pl_status gradient_gather_rows(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), t = n->in[0], out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, t)) return PL_OK;
    const pl_attr positions = pl_attr_i(positions_of(&g->b->graph->value[t].shape));
    const pl_shape shape = g->b->graph->value[t].shape;
    if (shape.rank != 3)
        return g->b->status = pl_fail(g->b->err, PL_E_UNSUPPORTED,
                                      "%s: gather_rows has a gradient rule for tokens [samples, positions, width] only",
                                      g->b->scope);
    pl_id in[3] = {dy, n->in[1], pl_gradient_take(g, t)};
    pl_gradient_add(g, t, pl_build_node(g->b, PL_OP_GATHER_ROWS_BWD, &positions, 3, in, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_GATHER_ROWS = {shape_gather_rows, gradient_gather_rows, cost_moved,  .recompute = true,
                                        .ids = 1,          .ids_below = 0,       .ids_dim = 1};

/* ---- gather_rows_bwd: dy [B,...,D], index, [partial [B,N,D]] → dt [B,N,D]; N is an attribute ---- */
static pl_status shape_gather_rows_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_gather(g, n, 1, err));
    const pl_value *dy = pl_in(g, n, 0);
    const pl_shape *index = &pl_in(g, n, 1)->shape;
    int64_t positions = n->attr[0].i;
    pl_shape picked = with_width(*index, pl_shape_last(&dy->shape));
    PL_TRY(pl_expect_shape(g, n, 0, &picked, "a token for each place of the index", err));
    if (positions < 1 || positions > INT32_MAX)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: nothing is picked of %lld positions", pl_op_name(n->op), n->scope,
                       (long long)positions);
    pl_shape t = of_each(index, positions, pl_shape_last(&dy->shape));
    PL_TRY(pl_expect_shape(g, n, 2, &t, "the shape of the tokens", err));
    out[0] = (pl_out){t, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_GATHER_ROWS_BWD = {shape_gather_rows_bwd, NULL, cost_moved};

/* ---- repeat: x [...,D] of any type → [...,count,D] ---- */
static pl_status check_count(const pl_node *n, pl_error *err)
{
    if (n->attr[0].i >= 1 && n->attr[0].i <= INT32_MAX) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: %lld times is not 1 or more", pl_op_name(n->op), n->scope,
                   (long long)n->attr[0].i);
}

static pl_status shape_repeat(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_count(n, err));
    const pl_value *x = pl_in(g, n, 0);
    pl_shape s = x->shape;
    if (s.rank < 1 || s.rank == PL_RANK_MAX || s.symbolic >> (s.rank - 1) & 1)
        return pl_fail_input(g, n, 0, "[..., width]", err);
    s.dim[s.rank] = s.dim[s.rank - 1], s.dim[s.rank - 1] = n->attr[0].i, s.rank++;
    out[0] = (pl_out){s, x->dtype};
    return PL_OK;
}

static pl_status gradient_repeat(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out = PL_NONE;
    if (dy == PL_NONE || !pl_gradient_is_wanted(g, n->in[0])) return PL_OK;
    pl_gradient_add(g, n->in[0], pl_build_node(g->b, PL_OP_REPEAT_BWD, n->attr, 1, &dy, 1, &out));
    return g->b->status;
}

const pl_op_rule pl_rule_REPEAT = {shape_repeat, gradient_repeat, cost_moved, .recompute = true};

/* ---- repeat_bwd: dy [...,count,D] → dx [...,D], the sum over the copies ---- */
static pl_status shape_repeat_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_count(n, err));
    const pl_value *dy = pl_in(g, n, 0);
    pl_shape s = dy->shape;
    if (s.rank < 2 || s.dim[s.rank - 2] != n->attr[0].i || s.symbolic >> (s.rank - 2))
        return pl_fail_input(g, n, 0, "[..., copies, width]", err);
    s.dim[s.rank - 2] = s.dim[s.rank - 1], s.rank--;
    out[0] = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_REPEAT_BWD = {shape_repeat_bwd, NULL, cost_moved};
