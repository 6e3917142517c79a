/* One value steers another: gates, blends of two values by a gate, feature-wise affine maps (FiLM, Perez et al. 2018),
 * and sums over time with weights from a softmax (temporal attention). Their backward nodes need only the inputs. */
#include "ir/op.h"

static pl_cost cost_of(const pl_graph *g, const pl_node *n, double flops_per_elem)
{
    double elems = 0, bytes = 0;
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        const pl_value *v = pl_value_at(g, n->in[k]);
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

/* gate, film and softmax_pool are alike: x and what steers it; in the backward pass, the gradients of the two. */
_Static_assert(offsetof(pl_gate_args, gate) == offsetof(pl_film_args, film), "one rule reads both");
_Static_assert(offsetof(pl_gate_args, gate) == offsetof(pl_softmax_pool_args, logits), "one rule reads both");
_Static_assert(offsetof(pl_gate_bwd_args, gate) == offsetof(pl_film_bwd_args, film), "one rule builds both");
_Static_assert(offsetof(pl_gate_bwd_args, gate) == offsetof(pl_softmax_pool_bwd_args, logits), "one rule builds both");
_Static_assert(offsetof(pl_gate_bwd_args, dgate) == offsetof(pl_film_bwd_args, dfilm), "one rule builds both");
_Static_assert(offsetof(pl_gate_bwd_args, dgate) == offsetof(pl_softmax_pool_bwd_args, dlogits),
               "one rule builds both");

static pl_status build_bwd(pl_gradient *g, const pl_node *n, pl_op bwd)
{
    const pl_gate_args *a = &n->gate;
    pl_gate_bwd_args b = pl_gate_bwd_none;
    b.dy = pl_gradient_of(g, a->y), b.x = a->x, b.gate = a->gate;
    b.dx = pl_gradient_output(g, a->x), b.dgate = pl_gradient_output(g, a->gate);
    if (b.dy == PL_NONE || (b.dx == PL_UNWANTED && b.dgate == PL_UNWANTED)) return PL_OK;
    pl_build_node(g->b, bwd, b.attr, PL_INS_OF_GATE_BWD, b.in, PL_OUTS_OF_GATE_BWD, b.out);
    pl_gradient_add(g, a->x, b.dx);
    pl_gradient_add(g, a->gate, b.dgate);
    return g->b->status;
}

/* ---- gate: x, gate → x·σ(gate), the gate like x or with one channel for all of x's ---- */
static pl_status check_gate(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *gate, pl_error *err)
{
    const pl_shape *s = &g->value[*x].shape;
    if (s->rank < 1 || s->symbolic >> (s->rank - 1) & 1) return pl_fail_operand(g, n, x, "[..., channels]", err);
    pl_shape one = *s;
    one.dim[one.rank - 1] = 1;
    if (pl_shape_equal(&g->value[*gate].shape, &one)) return PL_OK;
    return pl_expect_operand(g, n, gate, s, "the shape of the gated input, or that with one channel", err);
}

static pl_status shape_gate(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gate_args *a = &n->gate;
    PL_TRY(check_gate(g, n, &a->x, &a->gate, err));
    *out = pl_out_like(&g->value[a->x]);
    return PL_OK;
}

static pl_status gradient_gate(pl_gradient *g, const pl_node *n) { return build_bwd(g, n, PL_OP_GATE_BWD); }

const pl_op_rule pl_rule_GATE = {shape_gate, gradient_gate, cost_forward, .recompute = true};

/* ---- gate_bwd: dy, x, gate → dx, dgate ---- */
static pl_status shape_gate_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_gate_bwd_args *a = &n->gate_bwd;
    PL_TRY(check_gate(g, n, &a->x, &a->gate, err));
    PL_TRY(pl_expect_operand(g, n, &a->dy, &g->value[a->x].shape, "the shape of the gated input", err));
    out[PL_OUT_OF(gate_bwd, dx)] = pl_out_like(&g->value[a->x]);
    out[PL_OUT_OF(gate_bwd, dgate)] = pl_out_like(&g->value[a->gate]);
    return PL_OK;
}

const pl_op_rule pl_rule_GATE_BWD = {shape_gate_bwd, NULL, cost_backward};

/* ---- blend: a, b [B,...,D], z → y = gate·a + (1 − gate)·b, gate f32 = σ(z) ----
 * One logit for each row, or for rows that follow one another: z has the first dimensions of a, at least the samples,
 * perhaps followed by ones. [B,N,1] is a gate for each row, [B,1] or [B,1,1] one for each sample. The gates are an
 * output for inspection; no gradient comes back from it. */
static bool are_gates_of(const pl_shape *z, const pl_shape *a)
{
    uint32_t k = 1;
    if (z->rank < 1 || z->rank > a->rank || z->dim[0] != a->dim[0] || z->symbolic != a->symbolic) return false;
    while (k < z->rank && k + 1 < a->rank && z->dim[k] == a->dim[k]) k++;
    while (k < z->rank && z->dim[k] == 1) k++;
    return k == z->rank;
}

static pl_status check_blend(const pl_graph *g, const pl_node *n, const pl_id *a, const pl_id *b, const pl_id *z,
                             pl_error *err)
{
    const pl_shape *s = &g->value[*a].shape;
    if (s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_operand(g, n, a, "[samples, ..., width]", err);
    PL_TRY(pl_expect_operand(g, n, b, s, "the shape of what it is blended with", err));
    if (are_gates_of(&g->value[*z].shape, s)) return PL_OK;
    return pl_fail_operand(g, n, z, "a logit for each row, or one for all rows of a sample", err);
}

static pl_status shape_blend(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_blend_args *a = &n->blend;
    PL_TRY(check_blend(g, n, &a->a, &a->b, &a->z, err));
    out[PL_OUT_OF(blend, y)] = pl_out_like(&g->value[a->a]);
    out[PL_OUT_OF(blend, gate)] = (pl_out){g->value[a->z].shape, PL_DTYPE_F32};
    return PL_OK;
}

static pl_status gradient_blend(pl_gradient *g, const pl_node *n)
{
    const pl_blend_args *a = &n->blend;
    pl_blend_bwd_args b = pl_blend_bwd_none;
    if (pl_gradient_of(g, a->gate) != PL_NONE)
        return g->b->status =
                   pl_fail(g->b->err, PL_E_UNSUPPORTED,
                           "%s: blend has no gradient rule for its second output, the gates: a loss may not read them",
                           g->b->scope);
    b.dy = pl_gradient_of(g, a->y), b.a = a->a, b.b = a->b, b.z = a->z;
    b.da = pl_gradient_output(g, a->a), b.db = pl_gradient_output(g, a->b), b.dz = pl_gradient_output(g, a->z);
    if (b.dy == PL_NONE || (b.da == PL_UNWANTED && b.db == PL_UNWANTED && b.dz == PL_UNWANTED)) return PL_OK;
    pl_build_blend_bwd(g->b, &b);
    pl_gradient_add(g, a->a, b.da);
    pl_gradient_add(g, a->b, b.db);
    pl_gradient_add(g, a->z, b.dz);
    return g->b->status;
}

/* The values are blended number by number; the gates are read by many rows. */
const pl_op_rule pl_rule_BLEND = {shape_blend, gradient_blend, cost_forward, .recompute = true};

/* ---- blend_bwd: dy, a, b, z → da, db, dz ---- */
static pl_status shape_blend_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_blend_bwd_args *a = &n->blend_bwd;
    PL_TRY(check_blend(g, n, &a->a, &a->b, &a->z, err));
    PL_TRY(pl_expect_operand(g, n, &a->dy, &g->value[a->a].shape, "the shape of the blended inputs", err));
    out[PL_OUT_OF(blend_bwd, da)] = pl_out_like(&g->value[a->a]);
    out[PL_OUT_OF(blend_bwd, db)] = pl_out_like(&g->value[a->b]);
    out[PL_OUT_OF(blend_bwd, dz)] = pl_out_like(&g->value[a->z]);
    return PL_OK;
}

/* All three inputs of an element are read before anything is written there, and a logit before its gradient. No storage
 * is offered to two outputs: db may take the place of dy only if da, which is made first, does not. */
static uint32_t over_blend_bwd(const pl_node *n, int out)
{
    return out == PL_OUT_OF(blend_bwd, db) && n->blend_bwd.da == PL_NONE ? PL_BIT_OF(blend_bwd, dy) : 0;
}

const pl_op_rule pl_rule_BLEND_BWD = {shape_blend_bwd, NULL, cost_backward, .over = over_blend_bwd};

/* ---- film: x [B,...,C], film [B,2C] → y = film[b,c]·x + film[b,C+c] ----
 * First the scales, then the shifts, and no "1 +" before a scale. They are stored like x, or as f32. */
static pl_status check_film(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *film, pl_error *err)
{
    const pl_value *v = &g->value[*x], *s = &g->value[*film];
    if (v->shape.rank < 2 || v->shape.symbolic & ~1u || pl_shape_elems(&v->shape) == 0)
        return pl_fail_operand(g, n, x, "[samples, ..., channels]", err);
    if (s->dtype != PL_DTYPE_F32 && s->dtype != v->dtype)
        return pl_fail_operand(g, n, film, "f32, or of the type of what it scales", err);
    int64_t both = pl_shape_last(&s->shape);
    if (!pl_is_row_a_sample(&s->shape, v->shape.dim[0], v->shape.symbolic) || both % 2 ||
        both / 2 != pl_shape_last(&v->shape))
        return pl_fail_operand(g, n, film, "[samples, a scale, then a shift for each channel]", err);
    return PL_OK;
}

static pl_status shape_film(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_film_args *a = &n->film;
    PL_TRY(check_film(g, n, &a->x, &a->film, err));
    *out = pl_out_like(&g->value[a->x]);
    return PL_OK;
}

static pl_status gradient_film(pl_gradient *g, const pl_node *n) { return build_bwd(g, n, PL_OP_FILM_BWD); }

const pl_op_rule pl_rule_FILM = {shape_film, gradient_film, cost_forward, .recompute = true};

/* ---- film_bwd: dy, x, film → dx, dfilm ---- */
static pl_status shape_film_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_film_bwd_args *a = &n->film_bwd;
    PL_TRY(check_film(g, n, &a->x, &a->film, err));
    PL_TRY(pl_expect_operand(g, n, &a->dy, &g->value[a->x].shape, "the shape of the scaled input", err));
    out[PL_OUT_OF(film_bwd, dx)] = pl_out_like(&g->value[a->x]);
    out[PL_OUT_OF(film_bwd, dfilm)] = pl_out_like(&g->value[a->film]);
    return PL_OK;
}

const pl_op_rule pl_rule_FILM_BWD = {shape_film_bwd, NULL, cost_backward};

/* ---- softmax_pool: x, logits → y = Σ_t softmax(logits)_t·x_t, for each sample ----
 * x [B,T,C] with logits [B,T] or [B,T,1] gives [B,C]; or x [B,...,T·C], which concat makes from T values, with logits
 * [B,...,T] gives [B,...,C]: the same bytes without a window, which would have no gradient. */
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

static pl_status check_pool(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_id *logits, pl_error *err)
{
    const pl_shape *s = &g->value[*x].shape, *e = &g->value[*logits].shape;
    if (s->rank < 2 || s->symbolic & ~1u || pl_shape_elems(s) == 0)
        return pl_fail_operand(g, n, x, "[samples, times, channels] or [samples, ..., times·channels]", err);
    if (are_apart(s, e) || are_joined(s, e)) return PL_OK;
    return pl_fail_operand(g, n, logits, "a number for each sample and time", err);
}

/* The shape of the sums over time. */
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
    const pl_softmax_pool_args *a = &n->softmax_pool;
    PL_TRY(check_pool(g, n, &a->x, &a->logits, err));
    *out = (pl_out){pooled(&g->value[a->x].shape, &g->value[a->logits].shape), g->value[a->x].dtype};
    return PL_OK;
}

static pl_status gradient_softmax_pool(pl_gradient *g, const pl_node *n)
{
    return build_bwd(g, n, PL_OP_SOFTMAX_POOL_BWD);
}

const pl_op_rule pl_rule_SOFTMAX_POOL = {shape_softmax_pool, gradient_softmax_pool, cost_forward, .recompute = true};

/* ---- softmax_pool_bwd: dy, x, logits → dx, dlogits ---- */
static pl_status shape_softmax_pool_bwd(const pl_graph *g, const pl_node *n, pl_out out[], pl_error *err)
{
    const pl_softmax_pool_bwd_args *a = &n->softmax_pool_bwd;
    PL_TRY(check_pool(g, n, &a->x, &a->logits, err));
    const pl_shape y = pooled(&g->value[a->x].shape, &g->value[a->logits].shape);
    PL_TRY(pl_expect_operand(g, n, &a->dy, &y, "the shape of the sums over time", err));
    out[PL_OUT_OF(softmax_pool_bwd, dx)] = pl_out_like(&g->value[a->x]);
    out[PL_OUT_OF(softmax_pool_bwd, dlogits)] = pl_out_like(&g->value[a->logits]);
    return PL_OK;
}

const pl_op_rule pl_rule_SOFTMAX_POOL_BWD = {shape_softmax_pool_bwd, NULL, cost_backward};
