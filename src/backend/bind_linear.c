/* linear, its two derivatives and the bias gradient are GEMMs with epilogues (and a column sum). */
#include "backend/backend.h"
#include "ir/op.h"

static void *at(const pl_graph *g, const pl_addresses *a, pl_id value) { return pl_address_of(g, a, value); }

static uint64_t workspace_gemm(const pl_call *c, pl_team team) { return pl_gemm_workspace_bytes(&c->u.gemm, team); }
static void exec_gemm(const pl_call *c, pl_team team) { pl_gemm_exec(&c->u.gemm, c->workspace, team); }

/* y[R,N] = x[R,K] Wᵀ (+ bias) (act) (+ residual) */
static void bind_linear(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    int64_t k = w->shape.dim[1], out = w->shape.dim[0];
    pl_gemm_call *c = &call->u.gemm;
    *c = pl_gemm_linear(pl_real_of(g, n->in[0]), pl_shape_rows(&x->shape), out, k, at(g, a, n->in[0]),
                        at(g, a, n->in[1]), at(g, a, n->out[0]));
    c->type = pl_real_of(g, n->out[0]);
    c->dots = pl_has_few_tokens(&x->shape);
    c->bias = at(g, a, n->in[2]);
    c->residual = at(g, a, n->in[3]), c->ld_residual = out;
    c->act = (pl_activation)n->attr[0].i;
    c->act_out = at(g, a, n->out[1]), c->ld_act_out = out;
}

const pl_binding pl_binding_LINEAR = {bind_linear, workspace_gemm, exec_gemm};

/* dx[R,K] = dy[R,N] W (+ partial) (· act'(u)) */
static void bind_linear_dx(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = pl_in(g, n, 0), *w = pl_in(g, n, 1);
    int64_t k = w->shape.dim[0], in = w->shape.dim[1];
    pl_gemm_call *c = &call->u.gemm;
    *c = pl_gemm_linear_dx(pl_real_of(g, n->in[0]), pl_shape_rows(&dy->shape), in, k, at(g, a, n->in[0]),
                           at(g, a, n->in[1]), at(g, a, n->out[0]));
    c->residual = at(g, a, n->in[2]), c->ld_residual = in;
    c->act = (pl_activation)n->attr[0].i;
    c->grad_of = at(g, a, n->in[3]), c->ld_grad_of = in;
    c->act_again = at(g, a, n->out[1]), c->ld_act_again = in;
}

const pl_binding pl_binding_LINEAR_DX = {bind_linear_dx, workspace_gemm, exec_gemm};

/* dW[N,K] += dy[R,N]ᵀ x[R,K] */
static void bind_linear_dw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = pl_in(g, n, 0), *x = pl_in(g, n, 1);
    call->u.gemm =
        pl_gemm_linear_dw(pl_real_of(g, n->in[0]), pl_shape_last(&dy->shape), pl_shape_last(&x->shape),
                          pl_shape_rows(&x->shape), at(g, a, n->in[0]), at(g, a, n->in[1]), at(g, a, n->out[0]));
    call->u.gemm.k_sample = pl_tokens_of(&x->shape);
}

const pl_binding pl_binding_LINEAR_DW = {bind_linear_dw, workspace_gemm, exec_gemm};

static void bind_column_sum(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = pl_in(g, n, 0);
    int64_t columns = (int64_t)pl_shape_elems(&pl_in(g, n, 1)->shape);
    call->u.column_sum = (pl_column_sum_call){.rows = columns ? (int64_t)pl_shape_elems(&x->shape) / columns : 0,
                                              .columns = columns,
                                              .ld = columns,
                                              .x = at(g, a, n->in[0]),
                                              .out = at(g, a, n->out[0]),
                                              .accumulate = 1,
                                              .type = pl_real_of(g, n->in[0])};
}

static void exec_column_sum(const pl_call *c, pl_team team) { pl_column_sum_exec(&c->u.column_sum, team); }

const pl_binding pl_binding_COLUMN_SUM = {bind_column_sum, NULL, exec_column_sum};
