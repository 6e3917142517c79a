/* Capsules: a few weighted sums over the tokens of a sample, the tokens that weigh most in each, and copies
 * (docs/capsules.md). Tokens t are [B,...,D]: the dimensions between the samples and the width are N positions. */
#include "ir/op.h"

static pl_cost cost_of(const pl_graph *g, const pl_node *n, double flops)
{
    double bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) bytes += pl_value_bytes_f(pl_value_at(g, n->in[k]));
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return (pl_cost){flops, bytes};
}

static pl_cost cost_moved(const pl_graph *g, const pl_node *n)
{
    double elems = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) elems += pl_value_elems_f(pl_value_at(g, n->in[k]));
    return cost_of(g, n, 2 * elems);
}

static bool has_samples(const pl_shape *s, uint32_t rank_min)
{
    return s->rank >= rank_min && !(s->symbolic & ~1u) && pl_shape_elems(s) != 0;
}

static pl_status check_tokens(const pl_graph *g, const pl_node *n, const pl_id *tokens, pl_error *err)
{
    bool fine = has_samples(&g->value[*tokens].shape, 3);
    return fine ? PL_OK : pl_fail_operand(g, n, tokens, "[samples, positions, width]", err);
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

/* ---- capsule_pool: tokens t [B,...,D], logits [B,...,K] → y [B,K,D] = Σ_n a_kn·t_n, assignment a f32 [B,K,N] ----
 * a_k is the softmax of capsule k's logits over the positions. */
static pl_status check_logits(const pl_graph *g, const pl_node *n, const pl_id *tokens, const pl_id *logits,
                              pl_error *err)
{
    PL_TRY(check_tokens(g, n, tokens, err));
    pl_shape want = g->value[*tokens].shape;
    want.dim[want.rank - 1] = pl_shape_last(&g->value[*logits].shape);
    if (want.dim[want.rank - 1] < 1) return pl_fail_operand(g, n, logits, "a number for each capsule", err);
    return pl_expect_operand(g, n, logits, &want, "a number for each capsule at every position of the tokens", err);
}

static pl_status shape_capsule_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_capsule_pool_args *a = &n->capsule_pool;
    PL_TRY(check_logits(g, n, &a->tokens, &a->logits, err));
    const pl_value *t = &g->value[a->tokens];
    const int64_t capsules = pl_shape_last(&g->value[a->logits].shape);
    const pl_shape y = of_each(&t->shape, capsules, pl_shape_last(&t->shape));
    out[PL_OUT_OF(capsule_pool, y)] = (pl_out){y, t->dtype};
    out[PL_OUT_OF(capsule_pool, assignment)] =
        (pl_out){of_each(&t->shape, capsules, positions_of(&t->shape)), PL_DTYPE_F32};
    return PL_OK;
}

/* For a loss that reads only the weights. */
static pl_id zeros_like(pl_gradient *g, pl_id value)
{
    const pl_value *v = &g->b->graph->value[value];
    pl_fill_args zeros = pl_fill_none;
    zeros.y =
        pl_build_temporary(g->b, PL_ROLE_TEMPORARY, v->dtype, v->shape, "d_%s.%zu", v->name, g->b->graph->value_count);
    return pl_build_fill(g->b, &zeros);
}

static pl_status gradient_capsule_pool(pl_gradient *g, const pl_node *n)
{
    const pl_capsule_pool_args *a = &n->capsule_pool;
    pl_capsule_pool_bwd_args b = pl_capsule_pool_bwd_none;
    b.dtokens = pl_gradient_output(g, a->tokens), b.dlogits = pl_gradient_output(g, a->logits);
    b.dy = pl_gradient_of(g, a->y), b.dassignment = pl_gradient_of(g, a->assignment);
    if (b.dy == PL_NONE && b.dassignment == PL_NONE) return PL_OK;
    if (b.dtokens == PL_UNWANTED && b.dlogits == PL_UNWANTED) return PL_OK;
    if (b.dy == PL_NONE) b.dy = zeros_like(g, a->y);
    b.tokens = a->tokens, b.logits = a->logits, b.partial = pl_gradient_take(g, a->tokens);
    pl_build_capsule_pool_bwd(g->b, &b);
    pl_gradient_add(g, a->tokens, b.dtokens);
    pl_gradient_add(g, a->logits, b.dlogits);
    return g->b->status;
}

static double pool_flops(const pl_graph *g, pl_id tokens, pl_id logits)
{
    return 2 * pl_value_elems_f(&g->value[tokens]) * (double)pl_shape_last(&g->value[logits].shape);
}

static pl_cost cost_capsule_pool(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, pool_flops(g, n->capsule_pool.tokens, n->capsule_pool.logits));
}

const pl_op_rule pl_rule_CAPSULE_POOL = {shape_capsule_pool, gradient_capsule_pool, cost_capsule_pool,
                                         .recompute = true};

/* ---- capsule_pool_bwd: dy [B,K,D], tokens, logits, dassignment f32 [B,K,N], partial as tokens → dtokens, dlogits
 * ---- */
static pl_status shape_capsule_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_capsule_pool_bwd_args *a = &n->capsule_pool_bwd;
    PL_TRY(check_logits(g, n, &a->tokens, &a->logits, err));
    const pl_value *t = &g->value[a->tokens], *logits = &g->value[a->logits];
    const int64_t capsules = pl_shape_last(&logits->shape);
    const pl_shape y = of_each(&t->shape, capsules, pl_shape_last(&t->shape));
    const pl_shape assignment = of_each(&t->shape, capsules, positions_of(&t->shape));
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "the shape of the sums", err));
    PL_TRY(pl_expect_operand(g, n, &a->dassignment, &assignment, "the shape of the weights of the sums", err));
    PL_TRY(pl_expect_operand(g, n, &a->partial, &t->shape, "the shape of the tokens", err));
    out[PL_OUT_OF(capsule_pool_bwd, dtokens)] = pl_out_like(t);
    out[PL_OUT_OF(capsule_pool_bwd, dlogits)] = pl_out_like(logits);
    return PL_OK;
}

static pl_cost cost_capsule_pool_bwd(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, 2 * pool_flops(g, n->capsule_pool_bwd.tokens, n->capsule_pool_bwd.logits));
}

/* All sums of a sample are made before its dtokens are written, all weights before its dlogits. */
const pl_op_rule pl_rule_CAPSULE_POOL_BWD = {shape_capsule_pool_bwd, NULL, cost_capsule_pool_bwd};

/* ---- top_k: x f32 [...,N] → i32 [...,count]: where the largest are, the largest first ----
 * Equal ones keep their order; NaN comes after all numbers. No gradient: the outputs are positions. */
static pl_status shape_top_k(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_top_k_args *a = &n->top_k;
    pl_shape s = g->value[a->x].shape;
    const int64_t width = pl_shape_last(&s), count = a->count;
    if (s.rank < 1 || s.symbolic >> (s.rank - 1) & 1 || width > INT32_MAX)
        return pl_fail_operand(g, n, &a->x, "f32 [..., numbers]", err);
    if (count < 1 || count > width)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: of %lld numbers there are no %lld largest", pl_op_name(n->op),
                       n->scope, (long long)width, (long long)count);
    s.dim[s.rank - 1] = count;
    *out = (pl_out){s, PL_DTYPE_I32};
    return PL_OK;
}

const pl_op_rule pl_rule_TOP_K = {shape_top_k, NULL, cost_moved, .recompute = true};

/* ---- gather_rows: tokens [B,...,D] of any type, index i32 [B,...] → y [B,...,D]: the tokens at these positions, 0 … N
 * − 1 ---- */
static pl_status check_gather(const pl_graph *g, const pl_node *n, const pl_id *index, pl_error *err)
{
    const pl_shape *s = &g->value[*index].shape;
    bool fine = has_samples(s, 2) && s->rank < PL_RANK_MAX;
    return fine ? PL_OK : pl_fail_operand(g, n, index, "i32 [samples, ...]", err);
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
    const pl_gather_rows_args *a = &n->gather_rows;
    PL_TRY(check_tokens(g, n, &a->tokens, err));
    PL_TRY(check_gather(g, n, &a->index, err));
    const pl_value *t = &g->value[a->tokens];
    const pl_shape *index = &g->value[a->index].shape;
    if (!are_of_the_same_samples(&t->shape, index))
        return pl_fail_operand(g, n, &a->index, "i32 [samples, ...], as many samples as there are of tokens", err);
    *out = (pl_out){with_width(*index, pl_shape_last(&t->shape)), t->dtype};
    return PL_OK;
}

static pl_status gradient_gather_rows(pl_gradient *g, const pl_node *n)
{
    const pl_gather_rows_args *a = &n->gather_rows;
    const pl_shape *tokens = &g->b->graph->value[a->tokens].shape;
    pl_gather_rows_bwd_args b = pl_gather_rows_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.index = a->index, b.positions = positions_of(tokens);
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->tokens)) return PL_OK;
    if (tokens->rank != 3)
        return g->b->status = pl_fail(g->b->err, PL_E_UNSUPPORTED,
                                      "%s: gather_rows has a gradient rule for tokens [samples, positions, width] only",
                                      g->b->scope);
    b.partial = pl_gradient_take(g, a->tokens);
    pl_gradient_add(g, a->tokens, pl_build_gather_rows_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_GATHER_ROWS = {shape_gather_rows,
                                        gradient_gather_rows,
                                        cost_moved,
                                        .recompute = true,
                                        .ids = PL_IN_OF(gather_rows, index),
                                        .ids_below = PL_IN_OF(gather_rows, tokens),
                                        .ids_dim = 1};

/* ---- gather_rows_bwd: dy [B,...,D], index, partial [B,N,D] → dtokens [B,N,D]; N is an attribute ---- */
static pl_status shape_gather_rows_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gather_rows_bwd_args *a = &n->gather_rows_bwd;
    PL_TRY(check_gather(g, n, &a->index, err));
    const pl_value *dy = &g->value[a->dy];
    const pl_shape *index = &g->value[a->index].shape;
    const int64_t positions = a->positions;
    const pl_shape picked = with_width(*index, pl_shape_last(&dy->shape));
    PL_TRY(pl_expect_operand(g, n, &a->dy, &picked, "a token for each place of the index", err));
    if (positions < 1 || positions > INT32_MAX)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: nothing is picked of %lld positions", pl_op_name(n->op), n->scope,
                       (long long)positions);
    const pl_shape t = of_each(index, positions, pl_shape_last(&dy->shape));
    PL_TRY(pl_expect_operand(g, n, &a->partial, &t, "the shape of the tokens", err));
    *out = (pl_out){t, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_GATHER_ROWS_BWD = {shape_gather_rows_bwd, NULL, cost_moved};

/* ---- repeat: x [...,D] of any type → [...,count,D] ---- */
static pl_status check_count(const pl_node *n, int64_t count, pl_error *err)
{
    if (count >= 1 && count <= INT32_MAX) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: %lld times is not 1 or more", pl_op_name(n->op), n->scope,
                   (long long)count);
}

static pl_status shape_repeat(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_repeat_args *a = &n->repeat;
    const pl_value *x = &g->value[a->x];
    pl_shape s = x->shape;
    PL_TRY(check_count(n, a->count, err));
    if (s.rank < 1 || s.rank == PL_RANK_MAX || s.symbolic >> (s.rank - 1) & 1)
        return pl_fail_operand(g, n, &a->x, "[..., width]", err);
    s.dim[s.rank] = s.dim[s.rank - 1], s.dim[s.rank - 1] = a->count, s.rank++;
    *out = (pl_out){s, x->dtype};
    return PL_OK;
}

static pl_status gradient_repeat(pl_gradient *g, const pl_node *n)
{
    const pl_repeat_args *a = &n->repeat;
    pl_repeat_bwd_args b = pl_repeat_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.count = a->count;
    if (b.dy == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    pl_gradient_add(g, a->x, pl_build_repeat_bwd(g->b, &b));
    return g->b->status;
}

const pl_op_rule pl_rule_REPEAT = {shape_repeat, gradient_repeat, cost_moved, .recompute = true};

/* ---- repeat_bwd: dy [...,count,D] → dx [...,D], the sum over the copies ---- */
static pl_status shape_repeat_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_repeat_bwd_args *a = &n->repeat_bwd;
    const pl_value *dy = &g->value[a->dy];
    pl_shape s = dy->shape;
    PL_TRY(check_count(n, a->count, err));
    if (s.rank < 2 || s.dim[s.rank - 2] != a->count || s.symbolic >> (s.rank - 2))
        return pl_fail_operand(g, n, &a->dy, "[..., copies, width]", err);
    s.dim[s.rank - 2] = s.dim[s.rank - 1], s.rank--;
    *out = (pl_out){s, dy->dtype};
    return PL_OK;
}

const pl_op_rule pl_rule_REPEAT_BWD = {shape_repeat_bwd, NULL, cost_moved};
