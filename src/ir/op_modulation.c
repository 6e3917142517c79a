/* One value steers another: gates, blends of two values by a gate, feature-wise affine maps (FiLM, Perez et al. 2018),
 * and sums over time with weights from a softmax (temporal attention). Backward they need their inputs alone. */
#include "ir/op.h"

static pl_cost cost_of(const pl_graph *g, const pl_node *n, double flops_per_elem)
{
    double elems = 0, bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        const pl_value *v = pl_in(g, n, k);
        elems = pl_value_elems_f(v) > elems ? pl_value_elems_f(v) : elems;
        bytes += pl_value_bytes_f(v);
    }
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) bytes += pl_value_bytes_f(&g->value[n->out[k]]);
    return (pl_cost){flops_per_elem * elems, bytes};
}

static pl_cost cost_forward(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, n->op == PL_OP_GATE ? 12 : n->op == PL_OP_BLEND ? 3 : 2);
}

static pl_cost cost_backward(const pl_graph *g, const pl_node *n)
{
    return cost_of(g, n, n->op == PL_OP_GATE_BWD ? 30 : 6);
}

/* dy, x, second input → dx, its gradient */
static pl_status build_bwd(pl_gradient *g, const pl_node *n, pl_op bwd)
{
    pl_id dy = pl_gradient_of(g, n->out[0]);
    if (dy == PL_NONE) return PL_OK;
    pl_id in[3] = {dy, n->in[0], n->in[1]};
    pl_id out[2] = {pl_gradient_output(g, n->in[0]), pl_gradient_output(g, n->in[1])};
    if (out[0] == PL_UNWANTED && out[1] == PL_UNWANTED) return PL_OK;
    pl_build_node(g->b, bwd, n->attr, 3, in, 2, out);
    pl_gradient_add(g, n->in[0], out[0]);
    pl_gradient_add(g, n->in[1], out[1]);
    return g->b->status;
}

/* ---- gate: x, g → x·σ(g), g as x or with one channel for all of x's ---- */
static pl_status check_gate(const pl_graph *g, const pl_node *n, int x, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, x)->shape, *gates = &pl_in(g, n, x + 1)->shape;
    if (s->rank < 1 || s->symbolic >> (s->rank - 1) & 1) return pl_fail_input(g, n, x, "[..., channels]", err);
    pl_shape one = *s;
    one.dim[one.rank - 1] = 1;
    if (pl_shape_equal(gates, &one)) return PL_OK;
    return pl_expect_shape(g, n, x + 1, s, "the shape of the gated input, or that with one channel", err);
}

static pl_status shape_gate(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_gate(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_gate(pl_gradient *g, const pl_node *n) { return build_bwd(g, n, PL_OP_GATE_BWD); }

const pl_op_rule pl_rule_GATE = {shape_gate, gradient_gate, cost_forward, .recompute = true};

/* Of dy, x and one more: the gradients of the two. */
static void gradients_of(const pl_graph *g, const pl_node *n, pl_out out[])
{
    for (int k = 0; k < 2; k++) out[k] = (pl_out){pl_in(g, n, k + 1)->shape, pl_in(g, n, k + 1)->dtype};
}

/* ---- gate_bwd: dy, x, g → [dx], [dg] ---- */
static pl_status shape_gate_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_gate(g, n, 1, err));
    PL_TRY(pl_expect_shape(g, n, 0, &pl_in(g, n, 1)->shape, "the shape of the gated input", err));
    gradients_of(g, n, out);
    return PL_OK;
}

const pl_op_rule pl_rule_GATE_BWD = {shape_gate_bwd, NULL, cost_backward};

/* ---- blend: a, b [B,...,D], z → y = g·a + (1 − g)·b, [g f32] with g = σ(z) ----
 * One logit for each row, or for rows that follow one another: z has the first dimensions of a, the samples at least,
 * and may have ones behind them. [B,N,1] is a gate for each token, [B,1] or [B,1,1] one for each sample. The gates are
 * an output for whoever wants to know them; no gradient comes back from there. */
static bool are_gates_of(const pl_shape *z, const pl_shape *a)
{
    uint32_t k = 1;
    if (z->rank < 1 || z->rank > a->rank || z->dim[0] != a->dim[0] || z->symbolic != a->symbolic) return false;
    while (k < z->rank && k + 1 < a->rank && z->dim[k] == a->dim[k]) k++;
    while (k < z->rank && z->dim[k] == 1) k++;
    return k == z->rank;
}

static pl_status check_blend(const pl_graph *g, const pl_node *n, int a, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, a)->shape;
    if (s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_input(g, n, a, "[samples, ..., width]", err);
    PL_TRY(pl_expect_shape(g, n, a + 1, s, "the shape of what it is blended with", err));
    if (are_gates_of(&pl_in(g, n, a + 2)->shape, s)) return PL_OK;
    return pl_fail_input(g, n, a + 2, "a logit for each row, or one for all rows of a sample", err);
}

static pl_status shape_blend(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_blend(g, n, 0, err));
    out[0] = (pl_out){pl_in(g, n, 0)->shape, pl_in(g, n, 0)->dtype};
    out[1] = (pl_out){pl_in(g, n, 2)->shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_blend(pl_gradient *g, const pl_node *n)
{
    pl_id dy = pl_gradient_of(g, n->out[0]), out[3];
    if (n->out[1] != PL_NONE && pl_gradient_of(g, n->out[1]) != PL_NONE)
        return g->b->status =
                   pl_fail(g->b->err, PL_E_UNSUPPORTED,
                           "%s: blend has no gradient rule for its second output, the gates: a loss may not read them",
                           g->b->scope);
    if (dy == PL_NONE) return PL_OK;
    for (int k = 0; k < 3; k++) out[k] = pl_gradient_output(g, n->in[k]);
    if (out[0] == PL_UNWANTED && out[1] == PL_UNWANTED && out[2] == PL_UNWANTED) return PL_OK;
    pl_build_node(g->b, PL_OP_BLEND_BWD, NULL, 4, (pl_id[]){dy, n->in[0], n->in[1], n->in[2]}, 3, out);
    for (int k = 0; k < 3; k++) pl_gradient_add(g, n->in[k], out[k]);
    return g->b->status;
}

/* The values are blended number by number; the gates are read by many rows. */
const pl_op_rule pl_rule_BLEND = {shape_blend, gradient_blend, cost_forward, .recompute = true};

/* ---- blend_bwd: dy, a, b, z → [da], [db], [dz] ---- */
static pl_status shape_blend_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_blend(g, n, 1, err));
    PL_TRY(pl_expect_shape(g, n, 0, &pl_in(g, n, 1)->shape, "the shape of the blended inputs", err));
    for (int k = 0; k < 3; k++) out[k] = (pl_out){pl_in(g, n, k + 1)->shape, pl_in(g, n, k + 1)->dtype};
    return PL_OK;
}

/* All three of a place are read before anything is written there, and a logit before its gradient. No storage is
 * offered to two outputs. */
/* db, too, may take the place of dy where da, which is made first, does not. */
static uint32_t over_blend_bwd(const pl_node *n, int out)
{
    return out == 1 && n->blend_bwd.da == PL_NONE ? PL_BIT_OF(blend_bwd, dy) : 0;
}

const pl_op_rule pl_rule_BLEND_BWD = {shape_blend_bwd, NULL, cost_backward, .over = over_blend_bwd};

/* ---- film: x [B,...,C], s [B,2C] → y = s[b,c]·x + s[b,C+c] ----
 * First the scales, then the shifts, and no "1 +" in front of a scale. s is stored as x is, or as f32. */
static pl_status check_film(const pl_graph *g, const pl_node *n, int x, pl_error *err)
{
    const pl_value *v = pl_in(g, n, x), *s = pl_in(g, n, x + 1);
    if (v->shape.rank < 2 || v->shape.symbolic & ~1u || pl_shape_elems(&v->shape) == 0)
        return pl_fail_input(g, n, x, "[samples, ..., channels]", err);
    if (s->dtype != PL_DTYPE_F32 && s->dtype != v->dtype)
        return pl_fail_input(g, n, x + 1, "f32, or of the type of what it scales", err);
    int64_t both = pl_shape_last(&s->shape);
    if (!pl_is_row_a_sample(&s->shape, v->shape.dim[0], v->shape.symbolic) || both % 2 ||
        both / 2 != pl_shape_last(&v->shape))
        return pl_fail_input(g, n, x + 1, "[samples, a scale, then a shift for each channel]", err);
    return PL_OK;
}

static pl_status shape_film(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_film(g, n, 0, err));
    const pl_value *x = pl_in(g, n, 0);
    out[0] = (pl_out){x->shape, x->dtype};
    return PL_OK;
}

static pl_status gradient_film(pl_gradient *g, const pl_node *n) { return build_bwd(g, n, PL_OP_FILM_BWD); }

const pl_op_rule pl_rule_FILM = {shape_film, gradient_film, cost_forward, .recompute = true};

/* ---- film_bwd: dy, x, s → [dx], [ds] ---- */
static pl_status shape_film_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_film(g, n, 1, err));
    PL_TRY(pl_expect_shape(g, n, 0, &pl_in(g, n, 1)->shape, "the shape of the scaled input", err));
    gradients_of(g, n, out);
    return PL_OK;
}

const pl_op_rule pl_rule_FILM_BWD = {shape_film_bwd, NULL, cost_backward};

/* ---- softmax_pool: x, e → y = Σ_t softmax(e)_t·x_t, of each sample ----
 * x [B,T,C] with e [B,T] or [B,T,1] gives [B,C]; or x [B,...,T·C] with e [B,...,T], which concat makes of T values,
 * gives [B,...,C]: the same bytes, and no window is needed, which would have no gradient. */
static bool are_apart(const pl_shape *x, const pl_shape *e)
{
    bool scores = e->rank == 2 || (e->rank == 3 && e->dim[2] == 1);
    return x->rank == 3 && scores && e->dim[1] == x->dim[1] && e->dim[0] == x->dim[0] && e->symbolic == x->symbolic;
}

static bool are_joined(const pl_shape *x, const pl_shape *e)
{
    return e->rank == x->rank && pl_is_row_a_sample(x, e->dim[0], e->symbolic) &&
           pl_is_row_a_sample(e, x->dim[0], x->symbolic) && pl_shape_last(x) % pl_shape_last(e) == 0;
}

static pl_status check_pool(const pl_graph *g, const pl_node *n, int x, pl_error *err)
{
    const pl_shape *s = &pl_in(g, n, x)->shape, *e = &pl_in(g, n, x + 1)->shape;
    if (s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_input(g, n, x, "[samples, times, channels] or [samples, ..., times·channels]", err);
    if (are_apart(s, e) || are_joined(s, e)) return PL_OK;
    return pl_fail_input(g, n, x + 1, "a number for each sample and time", err);
}

/* Of the sums over time. */
static pl_shape pooled(const pl_shape *x, const pl_shape *e)
{
    pl_shape s = *x;
    if (are_apart(x, e))
        s.dim[1] = s.dim[2], s.rank = 2;
    else
        s.dim[s.rank - 1] /= pl_shape_last(e);
    return s;
}

static pl_status shape_softmax_pool(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_pool(g, n, 0, err));
    out[0] = (pl_out){pooled(&pl_in(g, n, 0)->shape, &pl_in(g, n, 1)->shape), pl_in(g, n, 0)->dtype};
    return PL_OK;
}

static pl_status gradient_softmax_pool(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, PL_OP_SOFTMAX_POOL_BWD);
}

const pl_op_rule pl_rule_SOFTMAX_POOL = {shape_softmax_pool, gradient_softmax_pool, cost_forward, .recompute = true};

/* ---- softmax_pool_bwd: dy, x, e → [dx], [de] ---- */
static pl_status shape_softmax_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    PL_TRY(check_pool(g, n, 1, err));
    pl_shape y = pooled(&pl_in(g, n, 1)->shape, &pl_in(g, n, 2)->shape);
    PL_TRY(pl_expect_shape(g, n, 0, &y, "the shape of the sums over time", err));
    gradients_of(g, n, out);
    return PL_OK;
}

const pl_op_rule pl_rule_SOFTMAX_POOL_BWD = {shape_softmax_pool_bwd, NULL, cost_backward};
