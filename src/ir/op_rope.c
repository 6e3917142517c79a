/* Rotary position embedding (Su et al. 2021, "RoFormer"): queries and keys are rotated by angles that grow with their
 * position, so that the product of two depends only on their distance. */
#include <math.h>

#include "base/causal_lm.h"
#include "ir/op.h"

/* ---- rope: x [B,...,T,heads·2h] → y as x ----
 * For each of the first `rotated` heads of the row at position t, with a and b for its halves,
 *
 *   y = [a·cos − b·sin, b·cos + a·sin]   for the angles t·theta^(−i/h), i = 0 … h − 1
 *
 * or for those whose cosines and sines are given, [T, h] or for each sample its own, [B, T, h]; and the other heads
 * stay as they are: those of the values, where one product makes queries, keys and values. adjoint: by the opposite
 * angles, which is both the gradient and the inverse. */
static pl_status check_tables(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_rope_args *a = &n->rope;
    const pl_shape *x = &g->value[a->x].shape;
    const pl_id *const table[] = {&a->cosine, &a->sine};
    const int64_t positions = x->dim[x->rank - 2], half = pl_shape_last(x) / a->heads / 2;
    const pl_shape all = pl_shape_of(2, positions, half), each = pl_shape_of(3, x->dim[0], positions, half);
    const bool may_differ = x->rank == 3 && !x->symbolic && *table[0] != PL_NONE && g->value[*table[0]].shape.rank == 3;
    for (int k = 0; k < 2; k++)
        if (*table[k] == PL_NONE || !pl_shape_equal(&g->value[*table[k]].shape, may_differ ? &each : &all))
            return pl_fail_operand(g, n, table[k], "f32 [positions, half of a head], or that for each sample", err);
    return PL_OK;
}

static pl_status check_attributes(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_rope_args *a = &n->rope;
    const int64_t width = pl_shape_last(&g->value[a->x].shape), heads = a->heads, rotated = a->rotated;
    if (heads < 1 || width % heads || width / heads % 2)
        return pl_fail_operand(g, n, &a->x, "a width of whole heads, each of two halves", err);
    if (rotated < 1 || rotated > heads)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: of %lld heads %lld cannot be turned", pl_op_name(n->op), n->scope,
                       (long long)heads, (long long)rotated);
    if (a->cosine != PL_NONE || a->sine != PL_NONE) return check_tables(g, n, err);
    if (!(a->theta >= 1 && isfinite(a->theta)))
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: theta %g is not a finite number of at least 1", pl_op_name(n->op),
                       n->scope, a->theta);
    return PL_OK;
}

static pl_status shape_rope(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rope_args *a = &n->rope;
    const pl_value *x = &g->value[a->x];
    if (x->shape.rank < 3 || x->shape.symbolic & ~1u || pl_shape_elems(&x->shape) == 0)
        return pl_fail_operand(g, n, &a->x, "[samples, ..., positions, width]", err);
    PL_TRY(check_attributes(g, n, err));
    *out = pl_out_like(x);
    return PL_OK;
}

static pl_status gradient_rope(pl_gradient *g, const pl_node *n)
{
    const pl_rope_args *a = &n->rope;
    pl_rope_args b = pl_rope_none;
    b.x = pl_gradient_of(g, a->y);
    if (b.x == PL_NONE || !pl_gradient_is_wanted(g, a->x)) return PL_OK;
    if (a->cosine != PL_NONE)
        return pl_fail(g->b->err, PL_E_UNSUPPORTED, "rope in %s: by a table it cannot be trained", n->scope);
    b.heads = a->heads, b.rotated = a->rotated, b.theta = a->theta, b.adjoint = !a->adjoint;
    pl_gradient_add(g, a->x, pl_build_rope(g->b, &b));
    return g->b->status;
}

static pl_cost cost_rope(const pl_graph *g, const pl_node *n)
{
    const pl_rope_args *a = &n->rope;
    const pl_value *x = &g->value[a->x];
    double rotated = (double)a->rotated / (double)a->heads;
    return (pl_cost){3 * rotated * pl_value_elems_f(x), 2 * pl_value_bytes_f(x)};
}

/* The two numbers of a rotation are both read before either is written. */
const pl_op_rule pl_rule_ROPE = {shape_rope, gradient_rope, cost_rope, .recompute = true};

/* ---- rope_table: position [1], divisor f32 [half] → cosine, sine f32 [positions, half]; position [B] → [B, positions,
 * half] ----
 * Row r is that of position + r, or of r without that input. The frequencies are those of a pl_rope_scaling
 * (base/causal_lm.h) with these numbers, each divided by its divisor; low and high are its low_factor and high_factor
 * (llama3) or beta_slow and beta_fast (yarn). Both tables are multiplied by the magnitude; 0: 1. */
static bool is_above_zero(double x) { return x > 0 && isfinite(x); }

static bool is_scaling(const pl_rope_table_args *a)
{
    const bool has_ends = a->kind == PL_ROPE_LLAMA3 || a->kind == PL_ROPE_YARN;
    if (a->kind < PL_ROPE_DEFAULT || a->kind > PL_ROPE_YARN) return false;
    if (a->kind != PL_ROPE_DEFAULT && !is_above_zero(a->factor)) return false;
    return !has_ends || (is_above_zero(a->original) && is_above_zero(a->low) && is_above_zero(a->high));
}

static pl_status shape_rope_table(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_rope_table_args *a = &n->rope_table;
    if (a->positions < 1 || a->half < 1 || a->half > PL_ROPE_PAIRS_MAX || a->positions > INT64_MAX / a->half)
        return pl_fail(err, PL_E_INTERNAL,
                       "rope_table in %s: no table of %lld positions and %lld pairs, expected 1 to %d", n->scope,
                       (long long)a->positions, (long long)a->half, PL_ROPE_PAIRS_MAX);
    if (!(a->theta > 1 && isfinite(a->theta)) || !is_scaling(a) || !(a->magnitude >= 0 && isfinite(a->magnitude)))
        return pl_fail(err, PL_E_INTERNAL, "rope_table in %s: theta %g and kind %lld are no scaling of frequencies",
                       n->scope, a->theta, (long long)a->kind);
    const pl_value *position = pl_value_at(g, a->position);
    const int64_t samples = position ? (int64_t)pl_shape_elems(&position->shape) : 1;
    const pl_shape pairs = pl_shape_of(1, a->half), one = pl_shape_of(2, a->positions, a->half),
                   table = samples > 1 ? pl_shape_of(3, samples, a->positions, a->half) : one;
    PL_TRY(pl_expect_position(g, n, &a->position, samples, err));
    PL_TRY(pl_expect_operand(g, n, &a->divisor, &pairs, "f32 [half]", err));
    out[PL_OUT_OF(rope_table, cosine)] = out[PL_OUT_OF(rope_table, sine)] = (pl_out){table, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_rope_table(const pl_graph *g, const pl_node *n)
{
    const double elems = pl_value_elems_f(&g->value[n->rope_table.cosine]);
    return (pl_cost){60 * elems, 8 * elems};
}

const pl_op_rule pl_rule_ROPE_TABLE = {shape_rope_table, NULL, cost_rope_table};
