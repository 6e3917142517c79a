/* Losses over rows of numbers (base/row_loss.h); a step may have several:
 *
 *   loss' = loss + scale·Σ of the rows' terms
 *
 * Each takes the loss so far and gives its next version, in the same place; so a weighted sum of losses is a chain of
 * these nodes, and each one's weight is part of its scale. (linear_ce and the regression losses add their sums as they
 * are, and scale only their gradients: in one chain with these they would be out of proportion.)
 *
 * The backward node adds to the loss, too, and replaces the forward node. Its gradients are multiplied by the scale and
 * the loss scale. */
#include "base/row_loss.h"
#include "ir/op.h"

enum { COUNTS = 3 }; /* labelled, right, all right */

/* The losses that compare two values have the same first inputs and outputs, and each has those of its backward node
 * and its first attributes, too: several are read as the longest, since a node has no operand beyond its row. */
#define READ_ALIKE(one, its, other, others)                                                                            \
    _Static_assert(offsetof(pl_##one##_args, its) == offsetof(pl_##other##_args, others), "one rule reads both")
READ_ALIKE(count_right, target, cosine_loss_bwd, b);
READ_ALIKE(cross_entropy, counted, cosine_loss_bwd, counted);
READ_ALIKE(cross_entropy, loss_new, cosine_loss_bwd, loss_new);
READ_ALIKE(cross_entropy, kind, cross_entropy_bwd, kind);
READ_ALIKE(cross_entropy_bwd, counted, cosine_loss_bwd, counted);
READ_ALIKE(cross_entropy_bwd, dlogits, cosine_loss_bwd, da);
READ_ALIKE(bce_with_logits, counted, cosine_loss_bwd, counted);
READ_ALIKE(bce_with_logits, loss_new, cosine_loss_bwd, loss_new);
READ_ALIKE(bce_with_logits_bwd, counted, cosine_loss_bwd, counted);
READ_ALIKE(bce_with_logits_bwd, dq, cosine_loss_bwd, da);
READ_ALIKE(cosine_loss, counted, cosine_loss_bwd, counted);
READ_ALIKE(cosine_loss, loss_new, cosine_loss_bwd, loss_new);
READ_ALIKE(squared_error, counted, cosine_loss_bwd, counted);
READ_ALIKE(squared_error, loss_new, cosine_loss_bwd, loss_new);
READ_ALIKE(squared_error_bwd, counted, cosine_loss_bwd, counted);
READ_ALIKE(squared_error_bwd, db, cosine_loss_bwd, db);
READ_ALIKE(norm_penalty, counted, norm_penalty_bwd, counted);
READ_ALIKE(norm_penalty, loss_new, norm_penalty_bwd, loss_new);

/* [samples, ..., width], no dimension empty */
static pl_status check_rows(const pl_graph *g, const pl_node *n, const pl_id *x, pl_error *err)
{
    const pl_shape *s = &g->value[*x].shape;
    return s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0
               ? pl_fail_operand(g, n, x, "[samples, ..., width]", err)
               : PL_OK;
}

static pl_status check_labels(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_cross_entropy_args *a = &n->cross_entropy;
    const pl_shape *z = &g->value[a->logits].shape, *t = &g->value[a->target].shape;
    PL_TRY(check_rows(g, n, &a->logits, err));
    if (t->rank < 1 || t->symbolic != z->symbolic || t->dim[0] != z->dim[0] ||
        (int64_t)pl_shape_elems(t) != pl_shape_rows(z))
        return pl_fail_operand(g, n, &a->target, "i32 [samples, ...], a label for each row", err);
    return PL_OK;
}

static bool is_one_a_sample(const pl_shape *s)
{
    return s->rank >= 1 && !(s->symbolic & ~1u) && s->dim[0] >= 1 && (int64_t)pl_shape_elems(s) == s->dim[0];
}

/* If given, one number for each sample of x. */
static pl_status check_counted(const pl_graph *g, const pl_node *n, const pl_id *counted, pl_id x, pl_error *err)
{
    const pl_value *v = pl_value_at(g, *counted);
    const pl_shape *s = &g->value[x].shape;
    if (!v || (is_one_a_sample(&v->shape) && v->shape.dim[0] == s->dim[0] && v->shape.symbolic == s->symbolic))
        return PL_OK;
    return pl_fail_operand(g, n, counted, "f32, one number for each sample", err);
}

static pl_cost cost_of_compared(const pl_graph *g, const pl_cosine_loss_bwd_args *a, double flops_per_elem)
{
    const double read = pl_value_bytes_f(&g->value[a->a]) + pl_value_bytes_f(&g->value[a->b]) +
                        pl_value_bytes_f(&g->value[a->scale]) + pl_value_bytes_f(&g->value[a->loss]);
    const double gradients = (a->da != PL_NONE) + (a->db != PL_NONE);
    return (pl_cost){flops_per_elem * (1 + gradients) * pl_value_elems_f(&g->value[a->a]),
                     read + pl_value_bytes_f(pl_value_at(g, a->da)) + pl_value_bytes_f(pl_value_at(g, a->db))};
}

static pl_cost cost_exponents(const pl_graph *g, const pl_node *n)
{
    return cost_of_compared(g, &n->cosine_loss_bwd, 20);
}

static pl_cost cost_products(const pl_graph *g, const pl_node *n)
{
    return cost_of_compared(g, &n->cosine_loss_bwd, 6);
}

/* ---- cross_entropy: logits [samples,...,V], target [samples,...], counted [samples] ----
 * A sample's terms are divided by its `counted`: if that is its number of labels, they give a mean. */
static pl_status shape_cross_entropy(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_cross_entropy_args *a = &n->cross_entropy;
    (void)out;
    if (a->kind < 0 || a->kind >= PL_CROSS_ENTROPY_COUNT)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: there is no kind %lld of it", pl_op_name(n->op), n->scope,
                       (long long)a->kind);
    PL_TRY(check_labels(g, n, err));
    return check_counted(g, n, &a->counted, a->logits, err);
}

/* The backward node has all that the forward node has and computes the loss, too, and so replaces it; likewise for the
 * other losses. */
static pl_status gradient_cross_entropy(pl_gradient *g, const pl_node *n)
{
    pl_cross_entropy_bwd_args b = n->cross_entropy_bwd;
    b.dlogits = pl_gradient_output(g, b.logits);
    if (b.dlogits == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_cross_entropy_bwd(g->b, &b);
    pl_gradient_add(g, b.logits, b.dlogits);
    return g->b->status;
}

const pl_op_rule pl_rule_CROSS_ENTROPY = {
    shape_cross_entropy,
    gradient_cross_entropy,
    cost_exponents,
    .loss = true,
    .scaled = true,
    .ids = PL_IN_OF(cross_entropy, target),
    .ids_below = PL_IN_OF(cross_entropy, logits),
    .ids_dim = -1,
};

/* ---- cross_entropy_bwd: as cross_entropy → dlogits ---- */
static pl_status shape_cross_entropy_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_cross_entropy(g, n, out, err));
    out[PL_OUT_OF(cross_entropy_bwd, dlogits)] = pl_out_like(&g->value[n->cross_entropy_bwd.logits]);
    return PL_OK;
}

const pl_op_rule pl_rule_CROSS_ENTROPY_BWD = {
    shape_cross_entropy_bwd,
    NULL,
    cost_exponents,
    .loss = true,
    .scaled = true,
    .loss_scale = PL_IN_OF(cross_entropy_bwd, loss_scale),
    .ids = PL_IN_OF(cross_entropy_bwd, target),
    .ids_below = PL_IN_OF(cross_entropy_bwd, logits),
    .ids_dim = -1,
};

/* ---- count_right: logits [samples,...,V], target [samples,...] → counts f32 [samples, 3] ----
 * For each sample: the rows with a label; those of them whose label has the largest logit (the first of equal ones
 * counts, and a row with a NaN logit is wrong); 1 if these are all of them, also where no row has a label. */
static pl_status shape_count_right(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_labels(g, n, err));
    pl_shape s = g->value[n->count_right.logits].shape;
    s.rank = 2, s.dim[1] = COUNTS;
    *out = (pl_out){s, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_count_right(const pl_graph *g, const pl_node *n)
{
    const pl_count_right_args *a = &n->count_right;
    const pl_value *logits = &g->value[a->logits];
    return (pl_cost){pl_value_elems_f(logits), pl_value_bytes_f(logits) + pl_value_bytes_f(&g->value[a->target])};
}

const pl_op_rule pl_rule_COUNT_RIGHT = {shape_count_right,
                                        NULL,
                                        cost_count_right,
                                        .ids = PL_IN_OF(count_right, target),
                                        .ids_below = PL_IN_OF(count_right, logits),
                                        .ids_dim = -1};

/* ---- bce_with_logits: q, y, counted [samples]; y may be a column of another value ---- */
static pl_status shape_bce(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_bce_with_logits_args *a = &n->bce_with_logits;
    const pl_shape *q = &g->value[a->q].shape, *y = &g->value[a->y].shape;
    (void)out;
    PL_TRY(check_counted(g, n, &a->counted, a->q, err));
    if (!is_one_a_sample(q)) return pl_fail_operand(g, n, &a->q, "one logit a sample", err);
    if (!is_one_a_sample(y) || y->dim[0] != q->dim[0] || y->symbolic != q->symbolic)
        return pl_fail_operand(g, n, &a->y, "f32, one number for each logit", err);
    return PL_OK;
}

static pl_status gradient_bce(pl_gradient *g, const pl_node *n)
{
    pl_bce_with_logits_bwd_args b = n->bce_with_logits_bwd;
    b.dq = pl_gradient_output(g, b.q);
    if (b.dq == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_bce_with_logits_bwd(g->b, &b);
    pl_gradient_add(g, b.q, b.dq);
    return g->b->status;
}

const pl_op_rule pl_rule_BCE_WITH_LOGITS = {shape_bce, gradient_bce, cost_exponents, .loss = true, .scaled = true};

/* ---- bce_with_logits_bwd: as bce_with_logits → dq [samples] ---- */
static pl_status shape_bce_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_bce(g, n, out, err));
    out[PL_OUT_OF(bce_with_logits_bwd, dq)] = pl_out_like(&g->value[n->bce_with_logits_bwd.q]);
    return PL_OK;
}

const pl_op_rule pl_rule_BCE_WITH_LOGITS_BWD = {
    shape_bce_bwd, NULL,           cost_exponents,
    .loss = true,  .scaled = true, .loss_scale = PL_IN_OF(bce_with_logits_bwd, loss_scale),
};

/* ---- cosine_loss, squared_error: a, b [samples,...,width], counted [samples] ---- */
static pl_status shape_pair(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_cosine_loss_args *a = &n->cosine_loss;
    (void)out;
    PL_TRY(check_counted(g, n, &a->counted, a->a, err));
    PL_TRY(check_rows(g, n, &a->a, err));
    return pl_expect_operand(g, n, &a->b, &g->value[a->a].shape, "the shape of what it is compared with", err);
}

static pl_status gradient_pair(pl_gradient *g, const pl_node *n)
{
    const pl_op bwd = n->op == PL_OP_COSINE_LOSS ? PL_OP_COSINE_LOSS_BWD : PL_OP_SQUARED_ERROR_BWD;
    const pl_signature *s = pl_signature_of(bwd);
    pl_cosine_loss_bwd_args b = n->cosine_loss_bwd;
    b.da = pl_gradient_output(g, b.a), b.db = pl_gradient_output(g, b.b);
    if (b.da == PL_UNWANTED && b.db == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_node(g->b, bwd, b.attr, s->ins, b.in, s->outs, b.out);
    pl_gradient_add(g, b.a, b.da);
    pl_gradient_add(g, b.b, b.db);
    return g->b->status;
}

const pl_op_rule pl_rule_COSINE_LOSS = {shape_pair, gradient_pair, cost_products, .loss = true, .scaled = true};
const pl_op_rule pl_rule_SQUARED_ERROR = {shape_pair, gradient_pair, cost_products, .loss = true, .scaled = true};

/* ---- cosine_loss_bwd, squared_error_bwd: likewise → da, db ---- */
static pl_status shape_pair_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_cosine_loss_bwd_args *a = &n->cosine_loss_bwd;
    PL_TRY(shape_pair(g, n, out, err));
    out[PL_OUT_OF(cosine_loss_bwd, da)] = pl_out_like(&g->value[a->a]);
    out[PL_OUT_OF(cosine_loss_bwd, db)] = pl_out_like(&g->value[a->b]);
    return PL_OK;
}

const pl_op_rule pl_rule_COSINE_LOSS_BWD = {
    shape_pair_bwd, NULL,           cost_products,
    .loss = true,   .scaled = true, .loss_scale = PL_IN_OF(cosine_loss_bwd, loss_scale),
};
const pl_op_rule pl_rule_SQUARED_ERROR_BWD = {
    shape_pair_bwd, NULL,           cost_products,
    .loss = true,   .scaled = true, .loss_scale = PL_IN_OF(squared_error_bwd, loss_scale),
};

/* ---- norm_penalty: x [samples,...,width], counted [samples] ---- */
static pl_status shape_norm_penalty(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_norm_penalty_args *a = &n->norm_penalty;
    (void)out;
    PL_TRY(check_counted(g, n, &a->counted, a->x, err));
    return check_rows(g, n, &a->x, err);
}

static pl_status gradient_norm_penalty(pl_gradient *g, const pl_node *n)
{
    pl_norm_penalty_bwd_args b = n->norm_penalty_bwd;
    b.dx = pl_gradient_output(g, b.x);
    if (b.dx == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_norm_penalty_bwd(g->b, &b);
    pl_gradient_add(g, b.x, b.dx);
    return g->b->status;
}

static pl_cost cost_norm_penalty(const pl_graph *g, const pl_node *n)
{
    const pl_norm_penalty_bwd_args *a = &n->norm_penalty_bwd;
    const pl_value *x = &g->value[a->x];
    const double read =
        pl_value_bytes_f(x) + pl_value_bytes_f(&g->value[a->scale]) + pl_value_bytes_f(&g->value[a->loss]);
    const double gradients = a->dx != PL_NONE;
    return (pl_cost){6 * (1 + gradients) * pl_value_elems_f(x), read + pl_value_bytes_f(pl_value_at(g, a->dx))};
}

const pl_op_rule pl_rule_NORM_PENALTY = {shape_norm_penalty, gradient_norm_penalty, cost_norm_penalty, .loss = true,
                                         .scaled = true};

/* ---- norm_penalty_bwd: as norm_penalty → dx [samples,...,width] ---- */
static pl_status shape_norm_penalty_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(shape_norm_penalty(g, n, out, err));
    out[PL_OUT_OF(norm_penalty_bwd, dx)] = pl_out_like(&g->value[n->norm_penalty_bwd.x]);
    return PL_OK;
}

const pl_op_rule pl_rule_NORM_PENALTY_BWD = {
    shape_norm_penalty_bwd, NULL,           cost_norm_penalty,
    .loss = true,           .scaled = true, .loss_scale = PL_IN_OF(norm_penalty_bwd, loss_scale),
};
