/* How tokens become vectors: a table and learned positions (or, with a window above 1, the concatenated embeddings of
 * the last tokens: Bengio et al. 2003). */
#include "ir/op.h"

static pl_status check_places(const pl_graph *g, const pl_node *n, int k, const pl_value *tokens, const pl_value *table,
                              pl_error *err)
{
    const pl_value *places = pl_in(g, n, k);
    bool fine = !places || (places->shape.rank == 2 && places->shape.dim[0] >= tokens->shape.dim[1] &&
                            places->shape.dim[1] == table->shape.dim[1] && n->attr[0].i == 1);
    return fine ? PL_OK : pl_fail_input(g, n, k, "f32 [at least T, width], and a window of 1", err);
}

/* The output's dtype where it exists already (a rewrite may have narrowed it), else f32. */
static pl_dtype dtype_of_output(const pl_graph *g, const pl_node *n)
{
    bool narrow = n->out[0] != PL_NONE && pl_dtype_is_real(g->value[n->out[0]].dtype);
    return narrow ? g->value[n->out[0]].dtype : PL_DTYPE_F32;
}

/* embedding: tokens [B,T], E [V,D], [P [≥T,D]], [position] → x [B,T,window·D]; E and P are f32, or of the dtype of x */
static pl_status shape_embedding(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *tokens = pl_in(g, n, 0), *table = pl_in(g, n, 1);
    const pl_dtype dtype = dtype_of_output(g, n);
    if (table->dtype != PL_DTYPE_F32 && table->dtype != dtype)
        return pl_fail_input(g, n, 1, "f32, or the dtype of what comes out", err);
    if (tokens->shape.rank != 2) return pl_fail_input(g, n, 0, "i32 [B,T]", err);
    if (table->shape.rank != 2 || n->attr[0].i < 1)
        return pl_fail_input(g, n, 1, "f32 [vocabulary, width] and a window of at least 1", err);
    if (table->shape.dim[1] > INT32_MAX || n->attr[0].i > INT32_MAX)
        return pl_fail_input(g, n, 1, "a width and a window that are not absurd", err);
    PL_TRY(check_places(g, n, 2, tokens, table, err));
    pl_shape s = tokens->shape;
    s.rank = 3;
    s.dim[2] = table->shape.dim[1] * n->attr[0].i;
    out[0] = (pl_out){s, dtype};
    return PL_OK;
}

static pl_status gradient_embedding(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), places = n->in[2], out[2] = {PL_NONE, PL_NONE};
    if (dy == PL_NONE) return PL_OK;
    pl_id in[4] = {n->in[0], dy, pl_gradient_accumulator(g, n->in[1]), pl_gradient_accumulator(g, places)};
    pl_build_node(g->b, PL_OP_EMBEDDING_BWD, n->attr, 4, in, 2, out);
    pl_gradient_accumulated(g, n->in[1], out[0]);
    pl_gradient_accumulated(g, places, out[1]);
    return g->b->status;
}

static pl_cost cost_embedding(const pl_graph *g, const pl_node *n)
{
    double e = n->op == PL_OP_EMBEDDING ? pl_value_elems_f(&g->value[n->out[0]]) : pl_value_elems_f(pl_in(g, n, 1));
    return (pl_cost){e, 12 * e};
}

const pl_op_rule pl_rule_EMBEDDING = {shape_embedding, gradient_embedding, cost_embedding, .ids = 0, .ids_below = 1};

/* embedding_bwd: tokens, dy, [dE], [dP] → [dE'], [dP'] */
static pl_status shape_embedding_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *tokens = pl_in(g, n, 0), *dy = pl_in(g, n, 1), *acc = pl_in(g, n, 2), *places = pl_in(g, n, 3);
    const pl_value *rows = acc ? acc : places;
    if (tokens->shape.rank != 2) return pl_fail_input(g, n, 0, "i32 [B,T]", err);
    if (!rows || rows->shape.rank != 2 || n->attr[0].i < 1 || n->attr[0].i > INT32_MAX ||
        rows->shape.dim[1] > INT32_MAX)
        return pl_fail_input(g, n, 2, "f32 [vocabulary, width] and a window of at least 1", err);
    if (dy->shape.rank < 1 || pl_shape_rows(&dy->shape) != (int64_t)pl_shape_elems(&tokens->shape) ||
        pl_shape_last(&dy->shape) != rows->shape.dim[1] * n->attr[0].i)
        return pl_fail_input(g, n, 1, "f32 [B,T,window x width]", err);
    PL_TRY(check_places(g, n, 3, tokens, rows, err));
    if (acc) out[0] = (pl_out){acc->shape, PL_DTYPE_F32};
    if (places) out[1] = (pl_out){places->shape, PL_DTYPE_F32};
    return PL_OK;
}

const pl_op_rule pl_rule_EMBEDDING_BWD = {shape_embedding_bwd, NULL, cost_embedding, .ids = 0, .ids_below = 2};
