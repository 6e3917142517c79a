/* What is drawn and tried when a policy learns from its actions: numbers near those it gives, and pages placed where it
 * says. Drawing cannot be differentiated, so no gradient passes. */
#include "base/policy.h"
#include "ir/op.h"

/* ---- perturb: x f32 [samples,N], step, first sample → f32 [samples,count,N] ----
 * x and something random, `count` times: gumbel, −log(−log(u)) with u uniform in (0, 1), or normal; times `scale`. A
 * function of (seed, stream; step, sample, copy, element). */
static pl_status shape_perturb(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_perturb_args *a = &n->perturb;
    pl_shape s = g->value[a->x].shape;
    if (s.rank != 2 || s.symbolic & ~1u || pl_shape_elems(&s) == 0)
        return pl_fail_operand(g, n, &a->x, "f32 [samples, numbers]", err);
    if (a->count < 1 || a->count > INT32_MAX / s.dim[1] || a->kind < 0 || a->kind >= PL_PERTURB_COUNT ||
        !(a->scale >= 0))
        return pl_fail(err, PL_E_INTERNAL, "perturb in %s: %lld copies of kind %lld and scale %g cannot be made",
                       n->scope, (long long)a->count, (long long)a->kind, a->scale);
    s.rank = 3, s.dim[2] = s.dim[1], s.dim[1] = a->count;
    *out = (pl_out){s, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_perturb(const pl_graph *g, const pl_node *n)
{
    const pl_value *x = &g->value[n->perturb.x], *y = &g->value[n->perturb.y];
    return (pl_cost){80 * pl_value_elems_f(y), pl_value_bytes_f(x) + pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_PERTURB = {shape_perturb, NULL, cost_perturb};

/* ---- shift: page u8 [pages,H,W], across i32 [pages], down i32 [pages] → u8 of the same shape ----
 * A page moves across − reach pixels to the right and down − reach pixels down; reach is an attribute, both numbers are
 * clamped to 0 … 2·reach. What comes in from outside is paper, 255. No gradient: bytes are data. */
static pl_status shape_shift(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_shift_args *a = &n->shift;
    const pl_value *page = &g->value[a->page];
    const pl_shape *s = &page->shape;
    if (page->dtype != PL_DTYPE_U8 || s->rank != 3 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_operand(g, n, &a->page, "u8 [pages, height, width]", err);
    const pl_shape one = {.rank = 1, .symbolic = s->symbolic, .dim = {s->dim[0]}};
    PL_TRY(pl_expect_operand(g, n, &a->across, &one, "a number for each page", err));
    PL_TRY(pl_expect_operand(g, n, &a->down, &one, "a number for each page", err));
    if (a->reach < 0 || a->reach > INT32_MAX / 4)
        return pl_fail(err, PL_E_INTERNAL, "shift in %s: a reach of %lld pixels is none", n->scope,
                       (long long)a->reach);
    *out = (pl_out){*s, PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_shift(const pl_graph *g, const pl_node *n)
{
    const double bytes = pl_value_bytes_f(&g->value[n->shift.page]);
    return (pl_cost){0, 2 * bytes};
}

const pl_op_rule pl_rule_SHIFT = {shape_shift, NULL, cost_shift, .recompute = true};
