/* What is drawn and tried where a policy learns from what it has done: numbers near those it says, and pages that stand
 * where it says. What is drawn is no function that could be differentiated, so no gradient passes. */
#include "base/policy.h"
#include "ir/op.h"

/* ---- perturb: x f32 [samples,N], step, first sample → f32 [samples,count,N] ----
 * x and something random, `count` times: gumbel, −log(−log(u)) with u uniform in (0, 1), or normal; times `scale`. A
 * function of (seed, stream; step, sample, copy, element). */
static pl_status shape_perturb(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const int64_t count = n->attr[0].i, kind = n->attr[1].i;
    pl_shape s = pl_in(g, n, 0)->shape;
    if (s.rank != 2 || s.symbolic & ~1u || pl_shape_elems(&s) == 0)
        return pl_fail_input(g, n, 0, "f32 [samples, numbers]", err);
    if (count < 1 || count > INT32_MAX / s.dim[1] || kind < 0 || kind >= PL_PERTURB_COUNT || !(n->attr[2].f >= 0))
        return pl_fail(err, PL_E_INTERNAL, "perturb in %s: %lld copies of kind %lld and scale %g cannot be made",
                       n->scope, (long long)count, (long long)kind, n->attr[2].f);
    s.rank = 3, s.dim[2] = s.dim[1], s.dim[1] = count;
    out[0] = (pl_out){s, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_perturb(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->out[0]];
    return (pl_cost){80 * pl_value_elems_f(y), pl_value_bytes_f(pl_in(g, n, 0)) + pl_value_bytes_f(y)};
}

const pl_op_rule pl_rule_PERTURB = {shape_perturb, NULL, cost_perturb};

/* ---- shift: page u8 [pages,H,W], across i32 [pages], down i32 [pages] → u8 of the same shape ----
 * A page goes across − reach pixels to the right, down − reach pixels down; reach is an attribute, both numbers are cut
 * to 0 … 2·reach. What comes in from outside is paper, 255. No gradient: bytes are data. */
static pl_status shape_shift(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_value *page = pl_in(g, n, 0);
    const pl_shape *s = &page->shape;
    if (page->dtype != PL_DTYPE_U8 || s->rank != 3 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_input(g, n, 0, "u8 [pages, height, width]", err);
    const pl_shape one = {.rank = 1, .symbolic = s->symbolic, .dim = {s->dim[0]}};
    PL_TRY(pl_expect_shape(g, n, 1, &one, "a number for each page", err));
    PL_TRY(pl_expect_shape(g, n, 2, &one, "a number for each page", err));
    if (n->attr[0].i < 0 || n->attr[0].i > INT32_MAX / 4)
        return pl_fail(err, PL_E_INTERNAL, "shift in %s: a reach of %lld pixels is none", n->scope,
                       (long long)n->attr[0].i);
    out[0] = (pl_out){*s, PL_DTYPE_U8};
    return PL_OK;
}

static pl_cost cost_shift(const pl_graph *g, const pl_node *n)
{
    const double bytes = pl_value_bytes_f(pl_in(g, n, 0));
    return (pl_cost){0, 2 * bytes};
}

const pl_op_rule pl_rule_SHIFT = {shape_shift, NULL, cost_shift, .recompute = true};
