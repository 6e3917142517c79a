/* Multi-head attention that never stores the T×T matrix: the output and one log-sum-exp a row are kept; the backward
 * pass computes the probabilities again in tiles (Dao et al. 2022, "FlashAttention"). So it does with the mask of
 * dropout on them, a function of (seed, stream, step, global sample, head, query, key):
 *   o = (mask∘P/(1−p)) v,   dP = mask∘(do vᵀ)/(1−p),   dS = P∘(dP − rowsum(P∘dP)),   rowsum(P∘dP) = rowsum(do∘o) */
#include <math.h>

#include "ir/op.h"

enum { HEADS, CAUSAL, SCALE, PROBABILITY };

enum { DROPOUT_FLOPS = 20 }; /* of a number of the mask, as in the operator dropout */

static double score_flops(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = pl_in(g, n, 0), *k = pl_in(g, n, 1);
    double rows = (double)pl_shape_rows(&q->shape), tk = (double)k->shape.dim[1], d = (double)pl_shape_last(&q->shape);
    return 2 * rows * tk * d * (n->attr[CAUSAL].i ? 0.5 : 1);
}

static double dropout_flops(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = pl_in(g, n, 0);
    if (n->attr[PROBABILITY].f == 0) return 0;
    return DROPOUT_FLOPS * score_flops(g, n) * (double)n->attr[HEADS].i / (2 * (double)pl_shape_last(&q->shape));
}

static pl_status check_qkv(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_value *q = pl_in(g, n, 0), *k = pl_in(g, n, 1);
    if (q->shape.rank != 3) return pl_fail_input(g, n, 0, "f32 [B,T,width]", err);
    if (n->attr[HEADS].i < 1 || pl_shape_last(&q->shape) % n->attr[HEADS].i)
        return pl_fail_input(g, n, 0, "a width that the number of heads divides", err);
    bool same = k->shape.rank == 3 && k->shape.dim[0] == q->shape.dim[0] && k->shape.symbolic == q->shape.symbolic;
    if (!same || pl_shape_last(&k->shape) != pl_shape_last(&q->shape))
        return pl_fail_input(g, n, 1, "f32 [B,T,width] like the queries", err);
    return pl_expect_shape(g, n, 2, &k->shape, "the shape of the keys", err);
}

/* Input `step` is the step, the next one the number of the first sample. */
static pl_status check_dropout(const pl_graph *g, const pl_node *n, int step, pl_error *err)
{
    const double blocks = ceil((double)pl_in(g, n, 1)->shape.dim[1] / 4), p = n->attr[PROBABILITY].f;
    if (!(p >= 0 && p < 1))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: its probability is not in [0, 1)", pl_op_name(n->op), n->scope);
    if (p == 0) return PL_OK;
    for (int k = step; k < step + 2; k++)
        if (!pl_in(g, n, k)) return pl_fail_input(g, n, k, "i64 [1]: dropout needs step and first sample", err);
    if (blocks * (double)pl_in(g, n, 0)->shape.dim[1] * (double)n->attr[HEADS].i > 0x1p32)
        return pl_fail_input(g, n, 1, "fewer keys: dropout numbers at most 2^34 weights of a sample", err);
    return PL_OK;
}

static pl_shape lse_shape(const pl_graph *g, const pl_node *n)
{
    pl_shape s = pl_in(g, n, 0)->shape;
    s.dim[2] = s.dim[1];
    s.dim[1] = n->attr[HEADS].i;
    return s;
}

/* attention: q, k, v, [position], [step], [first sample] → o, [lse [B,heads,T]]. Nothing is dropped while a cache is
 * filled: a weight's number in the mask depends on how many keys there are. */
static pl_status shape_attention(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_qkv(g, n, err));
    PL_TRY(check_dropout(g, n, 4, err));
    if (pl_in(g, n, 3) && n->attr[PROBABILITY].f > 0)
        return pl_fail_input(g, n, 3, "no position where weights are dropped", err);
    out[0] = (pl_out){pl_in(g, n, 0)->shape, pl_in(g, n, 0)->dtype};
    out[1] = (pl_out){lse_shape(g, n), PL_DTYPE_F32};
    return PL_OK;
}

/* Do q, k and v part the columns of one value among them (fused QKV)? */
static bool is_fused(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = &g->value[n->in[0]];
    if (q->view_of == PL_NONE) return false;
    const pl_value *base = &g->value[q->view_of];
    int64_t width = pl_shape_last(&q->shape), seen = 0;
    if (base->shape.rank != 3 || pl_shape_last(&base->shape) != 3 * width || !pl_value_is_contiguous(base))
        return false;
    for (int k = 0; k < 3; k++) {
        const pl_value *v = &g->value[n->in[k]];
        if (v->view_of != q->view_of || v->view_offset % width || v->view_offset >= 3 * width) return false;
        for (int i = 0; i < 3; i++)
            if (v->stride[i] != base->stride[i] || (i < 2 && v->shape.dim[i] != base->shape.dim[i])) return false;
        seen |= 1 << v->view_offset / width;
    }
    return seen == 7;
}

/* A gradient for the base of a window, so far without content. */
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

/* Where q, k and v are the columns of one value, their gradients are the same windows on one gradient. Any other window
 * is written into a gradient of its own, zero around it. (The kernel makes all three, wanted or not.) */
static void gradient_windows(pl_gradient *g, const pl_node *n, bool fused, pl_id d_base[3], pl_id out[3])
{
    for (int k = 0; k < 3; k++) {
        pl_id base = g->b->graph->value[n->in[k]].view_of;
        if (base == PL_NONE || !pl_gradient_is_wanted(g, base)) continue;
        d_base[k] = fused && k > 0 ? d_base[0] : gradient_base(g, base);
        if (!fused) pl_build_node(g->b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &d_base[k]);
        out[k] = gradient_window(g, d_base[k], n->in[k]);
    }
}

static pl_status gradient_attention(pl_gradient *g, const pl_node *n)
{
    pl_id d_o = pl_gradient_of(g, n->out[0]);
    if (d_o == PL_NONE) return PL_OK;
    pl_id out[3] = {PL_NONE, PL_NONE, PL_NONE}, d_base[3] = {PL_NONE, PL_NONE, PL_NONE};
    bool fused = is_fused(g->b->graph, n);
    gradient_windows(g, n, fused, d_base, out);
    pl_id in[8] = {n->in[0], n->in[1], n->in[2], n->out[0], n->out[1], d_o, n->in[4], n->in[5]};
    pl_build_node(g->b, PL_OP_ATTENTION_BWD, n->attr, 8, in, 3, out);
    for (int k = 0; k < (fused ? 1 : 3) && g->b->status == PL_OK; k++) {
        pl_id base = g->b->graph->value[n->in[k]].view_of;
        pl_gradient_add(g, base == PL_NONE ? n->in[k] : base, base == PL_NONE ? out[k] : d_base[k]);
    }
    return g->b->status;
}

static pl_cost cost_attention(const pl_graph *g, const pl_node *n)
{
    double q = pl_value_bytes_f(pl_in(g, n, 0)), kv = pl_value_bytes_f(pl_in(g, n, 1));
    return (pl_cost){2 * score_flops(g, n) + dropout_flops(g, n), 2 * q + 2 * kv,
                     n->in[3] == PL_NONE ? 2 * score_flops(g, n) : 0};
}

const pl_op_rule pl_rule_ATTENTION = {shape_attention, gradient_attention, cost_attention};

/* attention_bwd: q, k, v, o, lse, do, [step], [first sample] → dq, dk, dv */
static pl_status shape_attention_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_qkv(g, n, err));
    PL_TRY(check_dropout(g, n, 6, err));
    pl_shape q = pl_in(g, n, 0)->shape, lse = lse_shape(g, n);
    PL_TRY(pl_expect_shape(g, n, 3, &q, "the shape of the queries", err));
    PL_TRY(pl_expect_shape(g, n, 4, &lse, "f32 [B,heads,T]", err));
    PL_TRY(pl_expect_shape(g, n, 5, &q, "the shape of the queries", err));
    for (int k = 0; k < 3; k++) out[k] = (pl_out){pl_in(g, n, k)->shape, pl_in(g, n, k)->dtype};
    return PL_OK;
}

static pl_cost cost_attention_bwd(const pl_graph *g, const pl_node *n)
{
    double q = pl_value_bytes_f(pl_in(g, n, 0)), kv = pl_value_bytes_f(pl_in(g, n, 1));
    return (pl_cost){5 * score_flops(g, n) + dropout_flops(g, n), 4 * q + 4 * kv, 5 * score_flops(g, n)};
}

const pl_op_rule pl_rule_ATTENTION_BWD = {shape_attention_bwd, NULL, cost_attention_bwd};

/* cache_write: x [1,T,width], cache [1,room,width], position → cache' (rows position … position + T − 1 replaced) */
static pl_status shape_cache_write(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *x = pl_in(g, n, 0), *cache = pl_in(g, n, 1);
    if (x->shape.rank != 3 || x->shape.symbolic || x->shape.dim[0] != 1)
        return pl_fail_input(g, n, 0, "f32, bf16 or f16 [1,T,width]", err);
    bool fits = cache->shape.rank == 3 && !cache->shape.symbolic && cache->shape.dim[0] == 1 &&
                cache->shape.dim[1] >= x->shape.dim[1];
    if (!fits || pl_shape_last(&cache->shape) != pl_shape_last(&x->shape))
        return pl_fail_input(g, n, 1, "[1,room,width] of the same dtype", err);
    out[0] = (pl_out){cache->shape, cache->dtype};
    return PL_OK;
}

static pl_cost cost_cache_write(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(pl_in(g, n, 0))};
}

const pl_op_rule pl_rule_CACHE_WRITE = {shape_cache_write, NULL, cost_cache_write};
