/* linear, its two derivatives and the bias gradient are GEMMs with epilogues (and a column sum). */
#include "backend/backend.h"
#include "ir/op.h"

static void *at(const pl_graph *g, const pl_addresses *a, pl_id value) { return pl_address_of(g, a, value); }

static uint64_t workspace_gemm(const pl_call *c, pl_team team) { return pl_gemm_workspace_bytes(&c->u.gemm, team); }
static void exec_gemm(const pl_call *c, pl_team team) { pl_gemm_exec(&c->u.gemm, c->workspace, team); }

/* y[R,N] = x[R,K] Wᵀ (+ bias) (act) (+ residual) */
static void bind_linear(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->linear.x], *w = &g->value[n->linear.weight];
    int64_t k = w->shape.dim[1], out = w->shape.dim[0];
    pl_gemm_call *c = &call->u.gemm;
    *c = pl_gemm_linear(pl_real_of(g, n->linear.x), pl_shape_rows(&x->shape), out, k, at(g, a, n->linear.x),
                        at(g, a, n->linear.weight), at(g, a, n->linear.y));
    pl_gemm_encode(c, w->encoding);
    c->a_encoding = x->encoding;
    c->type = pl_real_of(g, n->linear.y);
    c->dots = pl_has_few_tokens(&x->shape);
    c->bias = at(g, a, n->linear.bias);
    c->residual = at(g, a, n->linear.residual), c->ld_residual = out;
    c->act = (pl_activation)n->linear.act;
    c->act_out = at(g, a, n->linear.act_y), c->ld_act_out = out;
}

const pl_binding pl_binding_LINEAR = {bind_linear, workspace_gemm, exec_gemm};

/* dx[R,K] = dy[R,N] W (+ partial) (· act'(u)) */
static void bind_linear_dx(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = &g->value[n->linear_dx.dy], *w = &g->value[n->linear_dx.weight];
    int64_t k = w->shape.dim[0], in = w->shape.dim[1];
    pl_gemm_call *c = &call->u.gemm;
    *c = pl_gemm_linear_dx(pl_real_of(g, n->linear_dx.dy), pl_shape_rows(&dy->shape), in, k, at(g, a, n->linear_dx.dy),
                           at(g, a, n->linear_dx.weight), at(g, a, n->linear_dx.dx));
    pl_gemm_encode(c, w->encoding);
    c->residual = at(g, a, n->linear_dx.partial), c->ld_residual = in;
    c->act = (pl_activation)n->linear_dx.act;
    c->grad_of = at(g, a, n->linear_dx.u), c->ld_grad_of = in;
    c->act_again = at(g, a, n->linear_dx.act_u), c->ld_act_again = in;
}

const pl_binding pl_binding_LINEAR_DX = {bind_linear_dx, workspace_gemm, exec_gemm};

/* dW[N,K] += dy[R,N]ᵀ x[R,K] */
static void bind_linear_dw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *dy = &g->value[n->linear_dw.dy], *x = &g->value[n->linear_dw.x];
    call->u.gemm = pl_gemm_linear_dw(pl_real_of(g, n->linear_dw.dy), pl_shape_last(&dy->shape),
                                     pl_shape_last(&x->shape), pl_shape_rows(&x->shape), at(g, a, n->linear_dw.dy),
                                     at(g, a, n->linear_dw.x), at(g, a, n->linear_dw.dweight_new));
    call->u.gemm.k_sample = pl_tokens_of(&x->shape);
}

const pl_binding pl_binding_LINEAR_DW = {bind_linear_dw, workspace_gemm, exec_gemm};

static void bind_column_sum(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    const pl_value *x = &g->value[n->column_sum.x];
    int64_t columns = (int64_t)pl_shape_elems(&g->value[n->column_sum.sum].shape);
    call->u.column_sum = (pl_column_sum_call){.rows = columns ? (int64_t)pl_shape_elems(&x->shape) / columns : 0,
                                              .columns = columns,
                                              .ld = columns,
                                              .x = at(g, a, n->column_sum.x),
                                              .out = at(g, a, n->column_sum.sum_new),
                                              .accumulate = 1,
                                              .type = pl_real_of(g, n->column_sum.x)};
}

static void exec_column_sum(const pl_call *c, pl_team team) { pl_column_sum_exec(&c->u.column_sum, team); }

const pl_binding pl_binding_COLUMN_SUM = {bind_column_sum, NULL, exec_column_sum};
