/* Attention whose weights are not a softmax over the keys, but independent sigmoids (Ramapuram et al. 2024, "Theory,
 * Analysis, and Best Practices for Sigmoid Self-Attention"), plus a sum common to all queries:
 *   o_i = Σ_j (σ(scale·q_i·k_j) v_j + u_j)
 * With k, v from the difference of two sources and u the values of the second, each query takes a softmax over the two
 * at each position. Backward, with A = σ(scale·q kᵀ):
 *   dv = Aᵀ do,  du_j = Σ_i do_i,  dS = scale·(do vᵀ)∘A∘(1 − A),  dq = dS k,  dk = dSᵀ q */
#include "ir/op.h"

static double product_flops(const pl_value *q)
{
    return 2 * (double)pl_shape_rows(&q->shape) * (double)q->shape.dim[1] * (double)pl_shape_last(&q->shape);
}

/* The queries `q`, and the other three of the same shape. */
static pl_status check_all(const pl_graph *g, const pl_node *n, const pl_id *q, const pl_id *const others[3],
                           pl_error *err)
{
    const pl_shape *s = &g->value[*q].shape;
    if (s->rank != 3 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_operand(g, n, q, "[B,T,width]", err);
    for (int k = 0; k < 3; k++) PL_TRY(pl_expect_operand(g, n, others[k], s, "the shape of the queries", err));
    return PL_OK;
}

/* ---- sigmoid_attention: q, k, v, u [B,T,width] → o ---- */
static pl_status shape_sigmoid_attention(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_sigmoid_attention_args *a = &n->sigmoid_attention;
    const pl_value *q = &g->value[a->q];
    PL_TRY(check_all(g, n, &a->q, (const pl_id *const[]){&a->k, &a->v, &a->u}, err));
    *out = pl_out_like(q);
    return PL_OK;
}

static pl_status gradient_sigmoid_attention(pl_gradient *g, const pl_node *n)
{
    const pl_sigmoid_attention_args *a = &n->sigmoid_attention;
    pl_sigmoid_attention_bwd_args b = pl_sigmoid_attention_bwd_none;
    b.d_o = pl_gradient_of(g, a->o);
    if (b.d_o == PL_NONE) return PL_OK;
    b.dq = pl_gradient_output(g, a->q), b.dk = pl_gradient_output(g, a->k);
    b.dv = pl_gradient_output(g, a->v), b.du = pl_gradient_output(g, a->u);
    if (b.dq == PL_UNWANTED && b.dk == PL_UNWANTED && b.dv == PL_UNWANTED && b.du == PL_UNWANTED) return PL_OK;
    b.q = a->q, b.k = a->k, b.v = a->v, b.scale = a->scale;
    pl_build_sigmoid_attention_bwd(g->b, &b);
    pl_gradient_add(g, a->q, b.dq);
    pl_gradient_add(g, a->k, b.dk);
    pl_gradient_add(g, a->v, b.dv);
    pl_gradient_add(g, a->u, b.du);
    return g->b->status;
}

static pl_cost cost_sigmoid_attention(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = &g->value[n->sigmoid_attention.q];
    return (pl_cost){2 * product_flops(q), 5 * pl_value_bytes_f(q), 2 * product_flops(q)};
}

const pl_op_rule pl_rule_SIGMOID_ATTENTION = {shape_sigmoid_attention, gradient_sigmoid_attention,
                                              cost_sigmoid_attention};

/* ---- sigmoid_attention_bwd: d_o, q, k, v [B,T,width] → dq, dk, dv, du ---- */
static pl_status shape_sigmoid_attention_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_sigmoid_attention_bwd_args *a = &n->sigmoid_attention_bwd;
    const pl_value *q = &g->value[a->q];
    const pl_out like_q = {q->shape, q->dtype};
    PL_TRY(check_all(g, n, &a->q, (const pl_id *const[]){&a->d_o, &a->k, &a->v}, err));
    out[PL_OUT_OF(sigmoid_attention_bwd, dq)] = out[PL_OUT_OF(sigmoid_attention_bwd, dk)] = like_q;
    out[PL_OUT_OF(sigmoid_attention_bwd, dv)] = out[PL_OUT_OF(sigmoid_attention_bwd, du)] = like_q;
    return PL_OK;
}

static pl_cost cost_sigmoid_attention_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = &g->value[n->sigmoid_attention_bwd.q];
    return (pl_cost){5 * product_flops(q), 8 * pl_value_bytes_f(q)};
}

const pl_op_rule pl_rule_SIGMOID_ATTENTION_BWD = {shape_sigmoid_attention_bwd, NULL, cost_sigmoid_attention_bwd};
