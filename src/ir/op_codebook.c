/* A codebook whose vectors are not weights but averages of what they stand for (van den Oord et al. 2017, appendix A):
 * for each code, the number of vectors to which it is the nearest and their sum, both averaged over the steps. */
#include "ir/op.h"

/* ---- nearest_code: z [samples,...,D], codebook f32 [V,D] → index i32 [samples,...], code as z ----
 * The first of the codes at the least distance. No gradient: learning passes through straight_through. */
static pl_status shape_nearest_code(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_nearest_code_args *a = &n->nearest_code;
    const pl_value *z = &g->value[a->z], *codes = &g->value[a->codebook];
    if (z->shape.rank < 2 || z->shape.symbolic & ~1u || pl_shape_elems(&z->shape) == 0)
        return pl_fail_operand(g, n, &a->z, "[samples, ..., width]", err);
    if (codes->shape.rank != 2 || codes->shape.symbolic || codes->shape.dim[0] < 1 || codes->shape.dim[0] > INT32_MAX ||
        codes->shape.dim[1] != pl_shape_last(&z->shape))
        return pl_fail_operand(g, n, &a->codebook, "f32 [codes, width]", err);
    pl_shape rows = z->shape;
    rows.rank--;
    out[PL_OUT_OF(nearest_code, index)] = (pl_out){rows, PL_DTYPE_I32};
    out[PL_OUT_OF(nearest_code, code)] = pl_out_like(z);
    return PL_OK;
}

static pl_cost cost_nearest_code(const pl_graph *g, const pl_node *n)
{
    const pl_nearest_code_args *a = &n->nearest_code;
    const pl_value *z = &g->value[a->z], *codes = &g->value[a->codebook];
    const double rows = pl_value_elems_f(z) / (double)pl_shape_last(&z->shape);
    return (pl_cost){3 * rows * pl_value_elems_f(codes), 2 * pl_value_bytes_f(z) + pl_value_bytes_f(codes)};
}

const pl_op_rule pl_rule_NEAREST_CODE = {shape_nearest_code, NULL, cost_nearest_code};

/* ---- code_sum: index i32 [samples,...], z [samples,...,D], sums f32 [V,D+1], counted f32, one a sample ----
 * Each vector is added to the row of its code, and 1 to the last column, except for samples that count nothing. One
 * after another, so the sums have the same bits however the batch is split. */
static pl_status shape_code_sum(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_code_sum_args *a = &n->code_sum;
    const pl_shape *index = &g->value[a->index].shape, *z = &g->value[a->z].shape, *sums = &g->value[a->sums].shape;
    const pl_value *counted = pl_value_at(g, a->counted);
    (void)out;
    if (z->rank < 2 || z->symbolic & ~1u || pl_shape_elems(z) == 0)
        return pl_fail_operand(g, n, &a->z, "[samples, ..., width]", err);
    if (index->rank < 1 || index->dim[0] != z->dim[0] || index->symbolic != z->symbolic ||
        (int64_t)pl_shape_elems(index) != pl_shape_rows(z))
        return pl_fail_operand(g, n, &a->index, "i32, the number of a code for each row", err);
    if (sums->rank != 2 || sums->symbolic || sums->dim[0] < 1 || sums->dim[1] != pl_shape_last(z) + 1)
        return pl_fail_operand(g, n, &a->sums, "f32 [codes, width + 1]", err);
    if (counted && (counted->shape.rank < 1 || counted->shape.dim[0] != z->dim[0] ||
                    counted->shape.symbolic != z->symbolic || (int64_t)pl_shape_elems(&counted->shape) != z->dim[0]))
        return pl_fail_operand(g, n, &a->counted, "f32, one number for each sample", err);
    return PL_OK;
}

static pl_cost cost_code_sum(const pl_graph *g, const pl_node *n)
{
    const pl_value *z = &g->value[n->code_sum.z];
    return (pl_cost){pl_value_elems_f(z), 3 * pl_value_bytes_f(z)};
}

const pl_op_rule pl_rule_CODE_SUM = {shape_code_sum, NULL, cost_code_sum};

/* ---- code_update: sums f32 [V,D+1], codebook f32 [V,D], sizes f32 [V], averages f32 [V,D]: all of them updated ----
 * With n and s for a code's count and sum, N for the sum over all codes: size' = rate·size + (1 − rate)·n, average'
 * likewise of s, code' = average' / ((size' + eps)·N' / (N' + V·eps)); sums' = 0. Where nothing at all was counted,
 * everything stays as it is; a sum that is not finite counts as nothing. */
static pl_status shape_code_update(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_code_update_args *a = &n->code_update;
    const pl_shape *codes = &g->value[a->codebook].shape;
    (void)out;
    if (codes->rank != 2 || codes->symbolic || pl_shape_elems(codes) == 0)
        return pl_fail_operand(g, n, &a->codebook, "f32 [codes, width]", err);
    const pl_shape sums = pl_shape_of(2, codes->dim[0], codes->dim[1] + 1), sizes = pl_shape_of(1, codes->dim[0]);
    PL_TRY(pl_expect_operand(g, n, &a->sums, &sums, "f32 [codes, width + 1]", err));
    PL_TRY(pl_expect_operand(g, n, &a->sizes, &sizes, "f32 [codes]", err));
    PL_TRY(pl_expect_operand(g, n, &a->averages, codes, "the shape of the codebook", err));
    if (a->rate >= 0 && a->rate < 1 && a->eps > 0) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "code_update in %s: a rate in [0, 1), and eps above 0", n->scope);
}

static pl_cost cost_code_update(const pl_graph *g, const pl_node *n)
{
    const pl_value *codes = &g->value[n->code_update.codebook];
    return (pl_cost){5 * pl_value_elems_f(codes), 6 * pl_value_bytes_f(codes)};
}

const pl_op_rule pl_rule_CODE_UPDATE = {shape_code_update, NULL, cost_code_update};

/* ---- straight_through: z, code → y = code; its gradient is that of z (Bengio et al. 2013) ---- */
static pl_status shape_straight_through(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_straight_through_args *a = &n->straight_through;
    const pl_value *z = &g->value[a->z];
    PL_TRY(pl_expect_operand(g, n, &a->code, &z->shape, "the shape of what it stands for", err));
    *out = pl_out_like(z);
    return PL_OK;
}

static pl_status gradient_straight_through(pl_gradient *g, const pl_node *n)
{
    const pl_straight_through_args *a = &n->straight_through;
    pl_gradient_add(g, a->z, pl_gradient_of(g, a->y));
    return g->b->status;
}

static pl_cost cost_straight_through(const pl_graph *g, const pl_node *n)
{
    return (pl_cost){0, 2 * pl_value_bytes_f(&g->value[n->straight_through.code])};
}

const pl_op_rule pl_rule_STRAIGHT_THROUGH = {shape_straight_through, gradient_straight_through, cost_straight_through};
