/* How tokens become vectors: a table and learned positions (or, with a window above 1, the concatenated embeddings of
 * the last tokens: Bengio et al. 2003). */
#include "ir/op.h"

_Static_assert(offsetof(pl_embedding_args, tokens) == offsetof(pl_embedding_bwd_args, tokens), "one rule reads both");
_Static_assert(offsetof(pl_embedding_args, window) == offsetof(pl_embedding_bwd_args, window), "one rule reads both");

static pl_status check_places(const pl_graph *g, const pl_node *n, const pl_id *positions, const pl_value *table,
                              pl_error *err)
{
    const pl_embedding_args *a = &n->embedding;
    const pl_value *places = pl_value_at(g, *positions), *tokens = &g->value[a->tokens];
    bool fine = !places || (places->shape.rank == 2 && places->shape.dim[0] >= tokens->shape.dim[1] &&
                            places->shape.dim[1] == table->shape.dim[1] && a->window == 1);
    return fine ? PL_OK : pl_fail_operand(g, n, positions, "f32 [at least T, width], and a window of 1", err);
}

/* The output's dtype if it already exists (a rewrite may have narrowed it), else f32. */
static pl_dtype dtype_of_output(const pl_graph *g, const pl_embedding_args *a)
{
    const pl_value *x = pl_value_at(g, a->x);
    return x && pl_dtype_is_real(x->dtype) ? x->dtype : PL_DTYPE_F32;
}

static pl_cost cost_of(const pl_value *vectors)
{
    const double e = pl_value_elems_f(vectors);
    return (pl_cost){e, 12 * e};
}

/* ---- embedding: tokens [B,T], table [V,D], positions [≥T,D], position [1] or [B] → x [B,T,window·D]; table and
 * positions are f32, or of the dtype of x. Token t of a sequence gets row position + t of positions. ---- */
static pl_status shape_embedding(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_embedding_args *a = &n->embedding;
    const pl_value *tokens = &g->value[a->tokens], *table = &g->value[a->table];
    const pl_dtype dtype = dtype_of_output(g, a);
    if (table->encoding != PL_ENCODING_F32 && dtype != PL_DTYPE_F32)
        return pl_fail_operand(g, n, &a->table, "plain where what comes out has 16 bits", err);
    if (table->dtype != PL_DTYPE_F32 && table->dtype != dtype)
        return pl_fail_operand(g, n, &a->table, "f32, or the dtype of what comes out", err);
    if (tokens->shape.rank != 2) return pl_fail_operand(g, n, &a->tokens, "i32 [B,T]", err);
    if (table->shape.rank != 2 || a->window < 1)
        return pl_fail_operand(g, n, &a->table, "f32 [vocabulary, width] and a window of at least 1", err);
    if (table->shape.dim[1] > INT32_MAX || a->window > INT32_MAX)
        return pl_fail_operand(g, n, &a->table, "a width and a window that are not absurd", err);
    PL_TRY(check_places(g, n, &a->positions, table, err));
    PL_TRY(pl_expect_position(g, n, &a->position, tokens->shape.dim[0], err));
    pl_shape s = tokens->shape;
    s.rank = 3;
    s.dim[2] = table->shape.dim[1] * a->window;
    *out = (pl_out){s, dtype};
    return PL_OK;
}

static pl_status gradient_embedding(pl_gradient *g, const pl_node *n)
{
    const pl_embedding_args *a = &n->embedding;
    pl_embedding_bwd_args b = pl_embedding_bwd_none;
    b.dy = pl_gradient_of(g, a->x);
    if (b.dy == PL_NONE) return PL_OK;
    b.tokens = a->tokens, b.window = a->window;
    b.dtable = pl_gradient_accumulator(g, a->table), b.dpositions = pl_gradient_accumulator(g, a->positions);
    pl_build_embedding_bwd(g->b, &b);
    pl_gradient_accumulated(g, a->table, b.dtable_new);
    pl_gradient_accumulated(g, a->positions, b.dpositions_new);
    return g->b->status;
}

static pl_cost cost_embedding(const pl_graph *g, const pl_node *n) { return cost_of(&g->value[n->embedding.x]); }

const pl_op_rule pl_rule_EMBEDDING = {shape_embedding, gradient_embedding, cost_embedding,
                                      .ids = PL_IN_OF(embedding, tokens), .ids_below = PL_IN_OF(embedding, table)};

/* ---- embedding_bwd: tokens [B,T], dy [B,T,window·D], dtable [V,D], dpositions [≥T,D] ---- */
static pl_status shape_embedding_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_embedding_bwd_args *a = &n->embedding_bwd;
    const pl_shape *tokens = &g->value[a->tokens].shape, *dy = &g->value[a->dy].shape;
    const pl_value *rows = pl_value_at(g, a->dtable != PL_NONE ? a->dtable : a->dpositions);
    (void)out;
    if (tokens->rank != 2) return pl_fail_operand(g, n, &a->tokens, "i32 [B,T]", err);
    if (!rows || rows->shape.rank != 2 || a->window < 1 || a->window > INT32_MAX || rows->shape.dim[1] > INT32_MAX)
        return pl_fail_operand(g, n, &a->dtable, "f32 [vocabulary, width] and a window of at least 1", err);
    if (dy->rank < 1 || pl_shape_rows(dy) != (int64_t)pl_shape_elems(tokens) ||
        pl_shape_last(dy) != rows->shape.dim[1] * a->window)
        return pl_fail_operand(g, n, &a->dy, "f32 [B,T,window x width]", err);
    return check_places(g, n, &a->dpositions, rows, err);
}

static pl_cost cost_embedding_bwd(const pl_graph *g, const pl_node *n)
{
    return cost_of(&g->value[n->embedding_bwd.dy]);
}

const pl_op_rule pl_rule_EMBEDDING_BWD = {shape_embedding_bwd, NULL, cost_embedding_bwd,
                                          .ids = PL_IN_OF(embedding_bwd, tokens),
                                          .ids_below = PL_IN_OF(embedding_bwd, dtable)};
