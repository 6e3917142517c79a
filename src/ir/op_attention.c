/* Multi-head attention that never stores the T×T matrix: the output and one log-sum-exp a row are kept; the backward
 * pass computes the probabilities again in tiles (Dao et al. 2022, "FlashAttention"). So it does with the mask of
 * dropout on them, a function of (seed, stream, step, global sample, head, query, key):
 *   o = (mask∘P/(1−p)) v,   dP = mask∘(do vᵀ)/(1−p),   dS = P∘(dP − rowsum(P∘dP)),   rowsum(P∘dP) = rowsum(do∘o) */
#include <math.h>

#include "ir/op.h"

enum { DROPOUT_FLOPS = 20 }; /* per number of the mask, as in the operator dropout */

_Static_assert(offsetof(pl_attention_args, v) == offsetof(pl_attention_bwd_args, v), "one rule reads both");
_Static_assert(offsetof(pl_attention_args, sequences) == offsetof(pl_attention_bwd_args, sequences),
               "one rule reads both");

static double score_flops(const pl_graph *g, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    const pl_value *q = &g->value[a->q], *k = &g->value[a->k];
    double rows = (double)pl_shape_rows(&q->shape), tk = (double)k->shape.dim[1], d = (double)pl_shape_last(&q->shape);
    return 2 * rows * tk * d * (a->causal ? 0.5 : 1);
}

static double dropout_flops(const pl_graph *g, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    const pl_value *q = &g->value[a->q];
    if (a->probability == 0) return 0;
    return DROPOUT_FLOPS * score_flops(g, n) * (double)a->heads / (2 * (double)pl_shape_last(&q->shape));
}

/* Of the derivative, too, which has no key heads of its own. */
static pl_status check_qkv(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_attention_args *a = &n->attention;
    const pl_value *q = &g->value[a->q], *k = &g->value[a->k];
    const int64_t key_heads = n->op == PL_OP_ATTENTION && a->key_heads ? a->key_heads : a->heads;
    if (q->shape.rank != 3) return pl_fail_operand(g, n, &a->q, "f32 [B,T,width]", err);
    if (a->heads < 1 || pl_shape_last(&q->shape) % a->heads)
        return pl_fail_operand(g, n, &a->q, "a width that the number of heads divides", err);
    if (key_heads < 1 || a->heads % key_heads)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: %lld key heads do not divide %lld heads", pl_op_name(n->op),
                       n->scope, (long long)key_heads, (long long)a->heads);
    const bool is_one_of_several = n->op == PL_OP_ATTENTION && a->sequence != PL_NONE && q->shape.dim[0] == 1;
    bool same = k->shape.rank == 3 && (k->shape.dim[0] == q->shape.dim[0] || is_one_of_several) &&
                k->shape.symbolic == q->shape.symbolic;
    if (!same || pl_shape_last(&k->shape) != pl_shape_last(&q->shape) / a->heads * key_heads)
        return pl_fail_operand(g, n, &a->k, "f32 [B,T,width] like the queries, as wide as the key heads", err);
    return pl_expect_operand(g, n, &a->v, &k->shape, "the shape of the keys", err);
}

/* Keys and values of another type than the queries come from a cache. */
static pl_status check_scores(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_attention_args *a = &n->attention;
    const pl_dtype q = g->value[a->q].dtype, k = g->value[a->k].dtype;
    const pl_encoding encoding = g->value[a->k].encoding;
    const bool is_from_elsewhere = k != q || encoding != PL_ENCODING_F32;
    if (!pl_dtype_is_real(k) || (is_from_elsewhere && a->position == PL_NONE))
        return pl_fail_operand(g, n, &a->k, a->position == PL_NONE ? pl_dtype_name(q) : "f32, bf16 or f16", err);
    if (g->value[a->v].dtype != k || g->value[a->v].encoding != encoding)
        return pl_fail_operand(g, n, &a->v, encoding ? pl_encoding_name(encoding) : pl_dtype_name(k), err);
    const int64_t width = pl_shape_last(&g->value[a->q].shape) / a->heads;
    if (encoding && (encoding != PL_ENCODING_Q8_0 || width % pl_encoding_block(encoding) || q != k))
        return pl_fail_operand(g, n, &a->k, "plain numbers, or heads of f32 that are whole blocks of q8_0", err);
    if (a->window < 0 || (a->window > 0 && !a->causal))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: only causal attention has a window, of at least 1 key",
                       pl_op_name(n->op), n->scope);
    if (!(a->cap >= 0 && isfinite(a->cap)))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: the cap %g of its scores is not a finite number above 0",
                       pl_op_name(n->op), n->scope, a->cap);
    return PL_OK;
}

static pl_status check_dropout(const pl_graph *g, const pl_node *n, const pl_id *step, const pl_id *first_sample,
                               pl_error *err)
{
    const pl_attention_args *a = &n->attention;
    const double blocks = ceil((double)g->value[a->k].shape.dim[1] / 4), p = a->probability;
    const pl_id *missing = *step == PL_NONE ? step : *first_sample == PL_NONE ? first_sample : NULL;
    if (!(p >= 0 && p < 1))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: its probability is not in [0, 1)", pl_op_name(n->op), n->scope);
    if (p == 0) return PL_OK;
    if (missing) return pl_fail_operand(g, n, missing, "i64 [1]: dropout needs step and first sample", err);
    if (blocks * (double)g->value[a->q].shape.dim[1] * (double)a->heads > 0x1p32)
        return pl_fail_operand(g, n, &a->k, "fewer keys: dropout numbers at most 2^34 weights of a sample", err);
    return PL_OK;
}

static pl_shape lse_shape(const pl_graph *g, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    pl_shape s = g->value[a->q].shape;
    s.dim[2] = s.dim[1];
    s.dim[1] = a->heads;
    return s;
}

/* attention: q [B,T,heads·h], k, v [B,keys,key_heads·h] → o [B,T,heads·h], lse [B,heads,T]. Head j reads key head
 * floor(j·key_heads/heads). Scores s = scale·q·k, with a cap cap·tanh(s/cap); query t sees key u if, causal, u ≤ t and,
 * with a window, t − u < window; with a position query i is at position + i, and k and v are the places of a cache,
 * with a window key u at place u mod keys: a ring is enough that has room for a window and the rows that come at once.
 * There is one position for all sequences, or one for each. With `sequence` q is one sequence, [1,T,heads·h], and reads
 * that one of several in the cache.
 * Nothing is dropped while a cache is filled: a weight's number in the mask depends on how many keys there are. */
static pl_status shape_attention(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_attention_args *a = &n->attention;
    PL_TRY(check_qkv(g, n, err));
    PL_TRY(check_scores(g, n, err));
    PL_TRY(check_dropout(g, n, &a->step, &a->first_sample, err));
    if (a->position != PL_NONE && a->probability > 0)
        return pl_fail_operand(g, n, &a->position, "no position where weights are dropped", err);
    PL_TRY(pl_expect_position(g, n, &a->position, g->value[a->q].shape.dim[0], err));
    if (a->sequence != PL_NONE && (a->position == PL_NONE || g->value[a->q].shape.dim[0] != 1))
        return pl_fail_operand(g, n, &a->sequence, "nothing, or a position and queries of one sequence", err);
    out[PL_OUT_OF(attention, o)] = pl_out_like(&g->value[a->q]);
    out[PL_OUT_OF(attention, lse)] = (pl_out){lse_shape(g, n), PL_DTYPE_F32};
    return PL_OK;
}

/* Do q, k and v part the columns of one value among them (fused QKV)? */
static bool is_fused(const pl_graph *g, const pl_attention_args *a)
{
    const pl_value *q = &g->value[a->q];
    if (q->view_of == PL_NONE) return false;
    const pl_value *base = &g->value[q->view_of], *const parts[] = {q, &g->value[a->k], &g->value[a->v]};
    int64_t width = pl_shape_last(&q->shape), seen = 0;
    if (base->shape.rank != 3 || pl_shape_last(&base->shape) != 3 * width || !pl_value_is_contiguous(base))
        return false;
    for (int k = 0; k < 3; k++) {
        const pl_value *v = parts[k];
        if (v->view_of != q->view_of || v->view_offset % width || v->view_offset >= 3 * width) return false;
        for (int i = 0; i < 3; i++)
            if (v->stride[i] != base->stride[i] || (i < 2 && v->shape.dim[i] != base->shape.dim[i])) return false;
        seen |= 1 << v->view_offset / width;
    }
    return seen == 7;
}

/* A gradient for the base of a window, with no content yet. */
static pl_id gradient_base(pl_gradient *g, pl_id base)
{
    const pl_value *v = &g->b->graph->value[base];
    return pl_build_temporary(g->b, PL_ROLE_TEMPORARY, v->dtype, v->shape, "d_%s.%zu", v->name,
                              g->b->graph->value_count);
}

/* The window on a gradient that `view` is on its base. */
static pl_id gradient_window(pl_gradient *g, pl_id d_base, pl_id view)
{
    if (d_base == PL_NONE) return PL_NONE;
    const pl_value *v = &g->b->graph->value[view];
    int64_t stride[PL_RANK_MAX];
    for (int i = 0; i < PL_RANK_MAX; i++) stride[i] = v->stride[i];
    return pl_build_view(g->b, d_base, v->shape, v->view_offset, stride);
}

/* One of q, k and v; the gradient of its base where it is a window; and its own output. */
typedef struct part {
    pl_id value, d_base, *d_value;
} part;

/* Where q, k and v are the columns of one value, their gradients are the same windows on one gradient. Any other window
 * is written into a gradient of its own, zero around it. (The kernel makes all three, wanted or not.) */
static void gradient_windows(pl_gradient *g, bool fused, part parts[3])
{
    for (part *p = parts; p < parts + 3; p++) {
        pl_fill_args zero = pl_fill_none;
        pl_id base = g->b->graph->value[p->value].view_of;
        if (base == PL_NONE || !pl_gradient_is_wanted(g, base)) continue;
        p->d_base = zero.y = fused && p > parts ? parts->d_base : gradient_base(g, base);
        if (!fused) pl_build_fill(g->b, &zero);
        *p->d_value = gradient_window(g, p->d_base, p->value);
    }
}

static pl_status gradient_attention(pl_gradient *g, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    pl_attention_bwd_args b = pl_attention_bwd_none;
    part parts[] = {{a->q, PL_NONE, &b.dq}, {a->k, PL_NONE, &b.dk}, {a->v, PL_NONE, &b.dv}};
    const bool fused = is_fused(g->b->graph, a);
    b.d_o = pl_gradient_of(g, a->o);
    if (b.d_o == PL_NONE) return PL_OK;
    if ((a->key_heads && a->key_heads != a->heads) || a->window || a->cap > 0)
        return pl_fail(g->b->err, PL_E_UNSUPPORTED,
                       "attention in %s: with fewer key heads, a window or a cap it cannot be trained", n->scope);
    gradient_windows(g, fused, parts);
    b.q = a->q, b.k = a->k, b.v = a->v, b.o = a->o, b.lse = a->lse;
    b.step = a->step, b.first_sample = a->first_sample;
    b.heads = a->heads, b.causal = a->causal, b.scale = a->scale, b.sequences = a->sequences;
    b.probability = a->probability, b.seed = a->seed, b.stream = a->stream;
    pl_build_attention_bwd(g->b, &b);
    for (part *p = parts; p < parts + (fused ? 1 : 3) && g->b->status == PL_OK; p++) {
        pl_id base = g->b->graph->value[p->value].view_of;
        pl_gradient_add(g, base == PL_NONE ? p->value : base, base == PL_NONE ? *p->d_value : p->d_base);
    }
    return g->b->status;
}

static pl_cost cost_attention(const pl_graph *g, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    const pl_value *k = &g->value[a->k];
    double q = pl_value_bytes_f(&g->value[a->q]), kv = pl_value_bytes_f(k);
    if (a->sequence != PL_NONE) kv /= (double)k->shape.dim[0];
    return (pl_cost){2 * score_flops(g, n) + dropout_flops(g, n), 2 * q + 2 * kv,
                     a->position == PL_NONE ? 2 * score_flops(g, n) : 0};
}

const pl_op_rule pl_rule_ATTENTION = {shape_attention, gradient_attention, cost_attention};

/* attention_bwd: q [B,T,width], k, v [B,keys,width], o, lse [B,heads,T], d_o → dq, dk, dv */
static pl_status shape_attention_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_attention_bwd_args *a = &n->attention_bwd;
    PL_TRY(check_qkv(g, n, err));
    PL_TRY(check_dropout(g, n, &a->step, &a->first_sample, err));
    pl_shape q = g->value[a->q].shape, lse = lse_shape(g, n);
    PL_TRY(pl_expect_operand(g, n, &a->o, &q, "the shape of the queries", err));
    PL_TRY(pl_expect_operand(g, n, &a->lse, &lse, "f32 [B,heads,T]", err));
    PL_TRY(pl_expect_operand(g, n, &a->d_o, &q, "the shape of the queries", err));
    out[PL_OUT_OF(attention_bwd, dq)] = pl_out_like(&g->value[a->q]);
    out[PL_OUT_OF(attention_bwd, dk)] = pl_out_like(&g->value[a->k]);
    out[PL_OUT_OF(attention_bwd, dv)] = pl_out_like(&g->value[a->v]);
    return PL_OK;
}

static pl_cost cost_attention_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_attention_bwd_args *a = &n->attention_bwd;
    double q = pl_value_bytes_f(&g->value[a->q]), kv = pl_value_bytes_f(&g->value[a->k]);
    return (pl_cost){5 * score_flops(g, n) + dropout_flops(g, n), 4 * q + 4 * kv, 5 * score_flops(g, n)};
}

const pl_op_rule pl_rule_ATTENTION_BWD = {shape_attention_bwd, NULL, cost_attention_bwd};

/* cache_write: x [B,T,width], cache [B,room,width] of any real type, or of f32 in blocks: in each sequence the rows
 * position … position + T − 1 are replaced; those beyond the room are left out, or in a ring begin at its first row
 * again. One position for all sequences, or one for each. With `sequence` x is one sequence, and goes to that one of
 * several in the cache. */
static pl_status shape_cache_write(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_cache_write_args *a = &n->cache_write;
    const pl_shape *x = &g->value[a->x].shape, *cache = &g->value[a->cache].shape;
    (void)out;
    const bool is_one_of_several = a->sequence != PL_NONE;
    if (x->rank != 3 || x->symbolic || (is_one_of_several && x->dim[0] != 1))
        return pl_fail_operand(g, n, &a->x, "f32, bf16 or f16 [B,T,width], of one sequence where that is named", err);
    const pl_encoding encoding = g->value[a->cache].encoding;
    const bool can_be = !encoding || (encoding == PL_ENCODING_Q8_0 && g->value[a->x].dtype == PL_DTYPE_F32);
    bool fits = pl_dtype_is_real(g->value[a->cache].dtype) && cache->rank == 3 && !cache->symbolic &&
                (cache->dim[0] == x->dim[0] || is_one_of_several) && cache->dim[1] >= x->dim[1];
    if (!fits || pl_shape_last(cache) != pl_shape_last(x) || !can_be)
        return pl_fail_operand(g, n, &a->cache, "f32, bf16 or f16 [B,room,width]", err);
    return pl_expect_position(g, n, &a->position, x->dim[0], err);
}

static pl_cost cost_cache_write(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(&g->value[n->cache_write.x])};
}

const pl_op_rule pl_rule_CACHE_WRITE = {shape_cache_write, NULL, cost_cache_write};
