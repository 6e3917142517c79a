/* Attention whose weights are no softmax over the keys, but each a sigmoid of its own (Ramapuram et al. 2024, "Theory,
 * Analysis, and Best Practices for Sigmoid Self-Attention"), upon a sum that all queries have:
 *   o_i = Σ_j (σ(scale·q_i·k_j) v_j + u_j)
 * With k, v of the difference of two sources and u the values of the second, each query takes of each token a softmax
 * over the two. Backward, with A = σ(scale·q kᵀ):
 *   dv = Aᵀ do,  du_j = Σ_i do_i,  dS = scale·(do vᵀ)∘A∘(1 − A),  dq = dS k,  dk = dSᵀ q */
#include "ir/op.h"

static double product_flops(const pl_value *q)
{
    return 2 * (double)pl_shape_rows(&q->shape) * (double)q->shape.dim[1] * (double)pl_shape_last(&q->shape);
}

/* All four inputs are of one shape; input `q` are the queries. */
static pl_status check_all(const pl_graph *g, const pl_node *n, int q, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, q)->shape;
    if (s->rank != 3 || s->symbolic & ~1u || pl_shape_elems(s) == 0) return pl_fail_input(g, n, q, "[B,T,width]", err);
    for (int k = 0; k < 4; k++) PL_TRY(pl_expect_shape(g, n, k, s, "the shape of the queries", err));
    return PL_OK;
}

/* ---- sigmoid_attention: q, k, v, u → o ---- */
static pl_status shape_sigmoid_attention(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_all(g, n, 0, err));
    out[0] = (pl_out){pl_in(g, n, 0)->shape, pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient_sigmoid_attention(pl_gradient *g, const pl_node *n)
{
    pl_id d_o = pl_gradient_of(g, n->out[0]), out[4];
    if (d_o == PL_NONE) return PL_OK;
    bool wanted = false;
    for (int k = 0; k < 4; k++) {
        out[k] = pl_gradient_output(g, n->in[k]);
        wanted |= out[k] != PL_UNWANTED;
    }
    if (!wanted) return PL_OK;
    pl_build_node(g->b, PL_OP_SIGMOID_ATTENTION_BWD, n->attr, 4, (pl_id[]){d_o, n->in[0], n->in[1], n->in[2]}, 4, out);
    for (int k = 0; k < 4; k++) pl_gradient_add(g, n->in[k], out[k]);
    return g->b->status;
}

static pl_cost cost_sigmoid_attention(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = pl_in(g, n, 0);
    return (pl_cost){2 * product_flops(q), 5 * pl_value_bytes_f(q), 2 * product_flops(q)};
}

const pl_op_rule pl_rule_SIGMOID_ATTENTION = {shape_sigmoid_attention, gradient_sigmoid_attention,
                                              cost_sigmoid_attention};

/* ---- sigmoid_attention_bwd: do, q, k, v → [dq], [dk], [dv], [du] ---- */
static pl_status shape_sigmoid_attention_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_all(g, n, 1, err));
    for (int k = 0; k < 4; k++) out[k] = (pl_out){pl_in(g, n, 1)->shape, pl_in(g, n, 1)->dtype};
    return PL_OK;
}

static pl_cost cost_sigmoid_attention_bwd(const pl_graph *g, const pl_node *n)
{
    const pl_value *q = pl_in(g, n, 1);
    return (pl_cost){5 * product_flops(q), 8 * pl_value_bytes_f(q)};
}

const pl_op_rule pl_rule_SIGMOID_ATTENTION_BWD = {shape_sigmoid_attention_bwd, NULL, cost_sigmoid_attention_bwd};
