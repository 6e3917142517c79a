/* Losses of rows of numbers (base/row_loss.h), of which a step may have several:
 *
 *   loss' = loss + scale·Σ of the rows' terms
 *
 * Each takes the loss so far and gives the next version of it, in the same place; so a sum of losses with weights is a
 * chain of these nodes, and the weight of each lies in its scale. (linear_ce and the losses of regression add their
 * sums as they are, and only their gradients are scaled: in one chain with these they would be out of proportion.)
 *
 * The node of the backward pass adds to the loss, too, and takes the place of the forward node. Its gradients are times
 * the scale and the loss scale. */
#include "base/row_loss.h"
#include "ir/op.h"

enum { COUNTS = 3 }; /* labelled, right, all right */

/* How many inputs have gradients; scale and loss are the two behind what is compared. */
static int gradients_of(pl_op op)
{
    return op == PL_OP_COSINE_LOSS || op == PL_OP_SQUARED_ERROR || op == PL_OP_COSINE_LOSS_BWD ||
                   op == PL_OP_SQUARED_ERROR_BWD
               ? 2
               : 1;
}

static int loss_input(pl_op op) { return op == PL_OP_NORM_PENALTY || op == PL_OP_NORM_PENALTY_BWD ? 2 : 3; }

/* [samples, ..., width], none of it empty */
static pl_status check_rows(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, 0)->shape;
    return s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0
               ? pl_fail_input(g, n, 0, "[samples, ..., width]", err)
               : PL_OK;
}

static pl_status check_labels(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_shape *z = &pl_in(g, n, 0)->shape, *t = &pl_in(g, n, 1)->shape;
    PL_TRY(check_rows(g, n, err));
    if (t->rank < 1 || t->symbolic != z->symbolic || t->dim[0] != z->dim[0] ||
        (int64_t)pl_shape_elems(t) != pl_shape_rows(z))
        return pl_fail_input(g, n, 1, "i32 [samples, ...], a label for each row", err);
    return PL_OK;
}

static bool is_one_a_sample(const pl_shape *s)
{
    return s->rank >= 1 && !(s->symbolic & ~1u) && s->dim[0] >= 1 && (int64_t)pl_shape_elems(s) == s->dim[0];
}

static pl_status check_counted(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const int at = loss_input(n->op) + 2;
    const pl_value *v = pl_in(g, n, at), *x = pl_in(g, n, 0);
    if (!v ||
        (is_one_a_sample(&v->shape) && v->shape.dim[0] == x->shape.dim[0] && v->shape.symbolic == x->shape.symbolic))
        return PL_OK;
    return pl_fail_input(g, n, at, "f32, one number for each sample", err);
}

/* The next version of the loss, and of a backward node the gradients. */
static pl_status shape_loss(const pl_graph *g, const pl_node *n, pl_out out[])
{
    out[0] = (pl_out){pl_in(g, n, loss_input(n->op))->shape, PL_DTYPE_F64};
    for (int k = 0; k < gradients_of(n->op); k++) out[k + 1] = (pl_out){pl_in(g, n, k)->shape, pl_in(g, n, k)->dtype};
    return PL_OK;
}

/* The backward node computes the loss, too, so the forward node is replaced by it. */
static pl_status build_bwd(pl_gradient *g, const pl_node *n, pl_op bwd)
{
    enum { BEHIND_LOSS = 2 }; /* the loss scale, which comes later, and what counts */
    int gradients = gradients_of(n->op), ins = loss_input(n->op) + 1 + BEHIND_LOSS;
    pl_id out[3] = {n->out[0], PL_UNWANTED, PL_UNWANTED};
    for (int k = 0; k < gradients; k++) out[k + 1] = pl_gradient_output(g, n->in[k]);
    if (out[1] == PL_UNWANTED && out[2] == PL_UNWANTED) return PL_OK;
    g->replaced = true;
    pl_build_node(g->b, bwd, n->attr, ins, n->in, 1 + gradients, out);
    for (int k = 0; k < gradients; k++) pl_gradient_add(g, n->in[k], out[k + 1]);
    return g->b->status;
}

static pl_cost cost_of(const pl_graph *g, const pl_node *n, double flops_per_elem)
{
    double bytes = 0, gradients = 0;
    for (int k = 0; k <= loss_input(n->op); k++) bytes += pl_value_bytes_f(pl_in(g, n, k));
    for (int k = 1; k <= gradients_of(n->op); k++) {
        if (n->out[k] == PL_NONE) continue;
        bytes += pl_value_bytes_f(&g->value[n->out[k]]);
        gradients++;
    }
    return (pl_cost){flops_per_elem * (1 + gradients) * pl_value_elems_f(pl_in(g, n, 0)), bytes};
}

static pl_cost cost_exponents(const pl_graph *g, const pl_node *n) { return cost_of(g, n, 20); }
static pl_cost cost_products(const pl_graph *g, const pl_node *n) { return cost_of(g, n, 6); }

/* ---- cross_entropy: logits [samples,...,V], target [samples,...], scale, loss, [loss scale], [counted] → loss' ----
 * Of a sample with so many `counted` the terms are divided by that: a mean, where it is how many labels it has. */
static pl_status shape_cross_entropy(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    if (n->attr[0].i < 0 || n->attr[0].i >= PL_CROSS_ENTROPY_COUNT)
        return pl_fail(err, PL_E_INTERNAL, "%s in %s: there is no kind %lld of it", pl_op_name(n->op), n->scope,
                       (long long)n->attr[0].i);
    PL_TRY(check_labels(g, n, err));
    PL_TRY(check_counted(g, n, err));
    return shape_loss(g, n, out);
}

static pl_status gradient_cross_entropy(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, PL_OP_CROSS_ENTROPY_BWD);
}

const pl_op_rule pl_rule_CROSS_ENTROPY = {
    shape_cross_entropy, gradient_cross_entropy, cost_exponents, .loss = true, .scaled = true, .ids = 1, .ids_dim = -1};

/* ---- cross_entropy_bwd: the same → loss', [dlogits] ---- */
const pl_op_rule pl_rule_CROSS_ENTROPY_BWD = {
    shape_cross_entropy, NULL, cost_exponents, .loss = true, .scaled = true, .loss_scale = 4, .ids = 1, .ids_dim = -1};

/* ---- count_right: logits [samples,...,V], target [samples,...] → f32 [samples, 3] ----
 * Of each sample: rows with a label; of these the ones whose label has the largest logit (of equal ones the first
 * counts, and a row with a logit that is not a number is wrong); 1 if these are all of them, as where there is none. */
static pl_status shape_count_right(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_labels(g, n, err));
    pl_shape s = pl_in(g, n, 0)->shape;
    s.rank = 2, s.dim[1] = COUNTS;
    out[0] = (pl_out){s, PL_DTYPE_F32};
    return PL_OK;
}

static pl_cost cost_count_right(const pl_graph *g, const pl_node *n)
{
    const pl_value *logits = pl_in(g, n, 0);
    return (pl_cost){pl_value_elems_f(logits), pl_value_bytes_f(logits) + pl_value_bytes_f(pl_in(g, n, 1))};
}

const pl_op_rule pl_rule_COUNT_RIGHT = {shape_count_right, NULL, cost_count_right, .ids = 1, .ids_dim = -1};

/* ---- bce_with_logits: q, y f32, one of each a sample, scale, loss → loss'; y may be a column of another value ---- */
static pl_status shape_bce(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_counted(g, n, err));
    const pl_shape *q = &pl_in(g, n, 0)->shape, *y = &pl_in(g, n, 1)->shape;
    if (!is_one_a_sample(q)) return pl_fail_input(g, n, 0, "one logit a sample", err);
    if (!is_one_a_sample(y) || y->dim[0] != q->dim[0] || y->symbolic != q->symbolic)
        return pl_fail_input(g, n, 1, "f32, one number for each logit", err);
    return shape_loss(g, n, out);
}

static pl_status gradient_bce(pl_gradient *g, const pl_node *n) { return build_bwd(g, n, PL_OP_BCE_WITH_LOGITS_BWD); }

const pl_op_rule pl_rule_BCE_WITH_LOGITS = {shape_bce, gradient_bce, cost_exponents, .loss = true, .scaled = true};

/* ---- bce_with_logits_bwd: …, [loss scale] → loss', [dq] ---- */
const pl_op_rule pl_rule_BCE_WITH_LOGITS_BWD = {shape_bce,    NULL,           cost_exponents,
                                                .loss = true, .scaled = true, .loss_scale = 4};

/* ---- cosine_loss, squared_error: a, b [samples,...,width], scale, loss → loss' ---- */
static pl_status shape_pair(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_counted(g, n, err));
    PL_TRY(check_rows(g, n, err));
    PL_TRY(pl_expect_shape(g, n, 1, &pl_in(g, n, 0)->shape, "the shape of what it is compared with", err));
    return shape_loss(g, n, out);
}

static pl_status gradient_pair(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, n->op == PL_OP_COSINE_LOSS ? PL_OP_COSINE_LOSS_BWD : PL_OP_SQUARED_ERROR_BWD);
}

const pl_op_rule pl_rule_COSINE_LOSS = {shape_pair, gradient_pair, cost_products, .loss = true, .scaled = true};
const pl_op_rule pl_rule_SQUARED_ERROR = {shape_pair, gradient_pair, cost_products, .loss = true, .scaled = true};

/* ---- …_bwd: …, [loss scale] → loss', [da], [db] ---- */
const pl_op_rule pl_rule_COSINE_LOSS_BWD = {shape_pair,   NULL,           cost_products,
                                            .loss = true, .scaled = true, .loss_scale = 4};
const pl_op_rule pl_rule_SQUARED_ERROR_BWD = {shape_pair,   NULL,           cost_products,
                                              .loss = true, .scaled = true, .loss_scale = 4};

/* ---- norm_penalty: x [samples,...,width], scale, loss → loss' ---- */
static pl_status shape_norm_penalty(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_counted(g, n, err));
    PL_TRY(check_rows(g, n, err));
    return shape_loss(g, n, out);
}

static pl_status gradient_norm_penalty(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, PL_OP_NORM_PENALTY_BWD);
}

const pl_op_rule pl_rule_NORM_PENALTY = {shape_norm_penalty, gradient_norm_penalty, cost_products, .loss = true,
                                         .scaled = true};

/* ---- norm_penalty_bwd: …, [loss scale] → loss', [dx] ---- */
const pl_op_rule pl_rule_NORM_PENALTY_BWD = {shape_norm_penalty, NULL,           cost_products,
                                             .loss = true,       .scaled = true, .loss_scale = 3};
