/* Products with matrices, norms and attention. Matrices are [out, in] in the graph and in the file; MatMul takes them
 * transposed, which a runtime does once, when it loads the model. */
#include <math.h>

#include "base/alloc.h"
#include "base/causal_lm.h"
#include "export/lower.h"

static const char *product(pl_lowering *l, const char *x, pl_id matrix)
{
    return pl_emit(l, "MatMul", NULL, PL_IN(x, pl_lower_transposed(l, matrix)));
}

/* y = x·Wᵀ + bias + residual, and act(y). */
void pl_lower_linear(pl_lowering *l, const pl_node *n)
{
    const pl_linear_args *a = &n->linear;
    const char *y = product(l, pl_lower_value(l, a->x), a->weight);
    y = pl_emit_add(l, y, pl_lower_value(l, a->bias));
    y = pl_emit_add(l, y, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, y);
    if (a->act_y != PL_NONE) pl_lower_output(l, n, a->act_y, pl_emit_activation(l, y, (pl_activation)a->act));
}

void pl_lower_feed_forward(pl_lowering *l, const pl_node *n)
{
    const pl_feed_forward_args *a = &n->feed_forward;
    const char *h = pl_emit_add(l, product(l, pl_lower_value(l, a->x), a->up), pl_lower_value(l, a->up_bias));
    h = pl_emit_activation(l, h, (pl_activation)a->act);
    const char *y = pl_emit_add(l, product(l, h, a->down), pl_lower_value(l, a->down_bias));
    y = pl_emit_add(l, y, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, y);
}

/* act(a)·b of [a | b]. */
static const char *gated(pl_lowering *l, const char *both, int64_t hidden, pl_activation act)
{
    const char *half[2];
    pl_emit_many(l, "Split", PL_ATTRIBUTES(PL_INT("axis", -1)),
                 PL_IN(both, pl_emit_integers(l, 2, (const int64_t[]){hidden, hidden})), 2, half);
    return pl_emit(l, "Mul", NULL, PL_IN(pl_emit_activation(l, half[0], act), half[1]));
}

void pl_lower_gated_activation(pl_lowering *l, const pl_node *n)
{
    const pl_gated_activation_args *a = &n->gated_activation;
    if (a->up != PL_NONE) {
        const char *gate = pl_emit_activation(l, pl_lower_value(l, a->x), (pl_activation)a->act);
        return pl_lower_output(l, n, a->y, pl_emit(l, "Mul", NULL, PL_IN(gate, pl_lower_value(l, a->up))));
    }
    const int64_t hidden = pl_shape_last(pl_lower_shape(l, a->x)) / 2;
    const char *y = gated(l, pl_lower_value(l, a->x), hidden, (pl_activation)a->act);
    pl_lower_output(l, n, a->y, y);
}

void pl_lower_gated_feed_forward(pl_lowering *l, const pl_node *n)
{
    const pl_gated_feed_forward_args *a = &n->gated_feed_forward;
    const int64_t hidden = pl_lower_shape(l, a->gate_up)->dim[0] / 2;
    const char *h = gated(l, product(l, pl_lower_value(l, a->x), a->gate_up), hidden, (pl_activation)a->act);
    const char *y = pl_emit_add(l, product(l, h, a->down), pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, y);
}

/* ---- norms ---- */

void pl_lower_layer_norm(pl_lowering *l, const pl_node *n)
{
    const pl_layer_norm_args *a = &n->layer_norm;
    const pl_onnx_attribute *with = PL_ATTRIBUTES(PL_INT("axis", -1), PL_REAL("epsilon", a->eps));
    const char *x = pl_lower_value(l, a->x), *gain = pl_lower_value(l, a->gamma);
    const char *offset = pl_lower_value(l, a->beta);
    const char *y =
        pl_emit(l, "LayerNormalization", with, offset ? (const char *const[]){x, gain, offset, NULL} : PL_IN(x, gain));
    pl_lower_output(l, n, a->y, y);
}

/* x/√(mean(x²) + eps), and the gain where there is one. */
void pl_lower_rms_norm(pl_lowering *l, const pl_node *n)
{
    const pl_rms_norm_args *a = &n->rms_norm;
    const char *x = pl_lower_value(l, a->x), *gain = pl_lower_value(l, a->gamma);
    const char *mean = pl_emit(l, "ReduceMean", PL_ATTRIBUTES(PL_LIST("axes", 1, -1), PL_INT("keepdims", 1)),
                               PL_IN(pl_emit(l, "Mul", NULL, PL_IN(x, x))));
    const char *size = pl_emit(l, "Sqrt", NULL, PL_IN(pl_emit_add(l, mean, pl_emit_number(l, a->eps))));
    const char *y = pl_emit(l, "Div", NULL, PL_IN(x, size));
    pl_lower_output(l, n, a->y, gain ? pl_emit(l, "Mul", NULL, PL_IN(y, gain)) : y);
}

/* ---- attention ---- */

enum { HEADS_MAX = 1024 }; /* that share keys */

static int64_t sequences_of(const pl_attention_args *a) { return a->sequences > 1 ? a->sequences : 1; }

/* [B,T,heads·d] → [B,T,heads,d]; where a sample holds several sequences one after another, [B,S,T/S,heads,d]. */
static pl_shape apart(const pl_attention_args *a, const pl_shape *s, int64_t heads)
{
    const int64_t sequences = sequences_of(a);
    pl_shape to = {.rank = 1, .symbolic = s->symbolic, .dim = {s->dim[0]}};
    if (sequences > 1) to.dim[to.rank++] = sequences;
    to.dim[to.rank++] = s->dim[1] / sequences;
    to.dim[to.rank++] = heads;
    to.dim[to.rank++] = s->dim[2] / heads;
    return to;
}

/* The last three dimensions in another order, those before them as they are. */
static const char *turn(pl_lowering *l, const char *x, uint32_t rank, const int64_t last[3])
{
    int64_t order[PL_RANK_MAX];
    for (uint32_t i = 0; i < rank; i++) order[i] = i + 3 < rank ? i : rank - 3 + last[i + 3 - rank];
    return pl_emit_transpose(l, x, rank, order);
}

/* Each head of keys or values as often as there are heads that read it. */
static const char *repeated(pl_lowering *l, const pl_attention_args *a, const char *x, uint32_t axis)
{
    int64_t head[HEADS_MAX];
    for (int64_t i = 0; i < a->heads; i++) head[i] = i * a->key_heads / a->heads;
    return pl_emit(l, "Gather", PL_ATTRIBUTES(PL_INT("axis", axis)),
                   PL_IN(x, pl_emit_integers(l, (size_t)a->heads, head)));
}

/* q, k or v: [B,heads,T,d], or [B,heads,d,T] for the keys. */
static const char *heads_of(pl_lowering *l, const pl_attention_args *a, pl_id id, bool turned)
{
    const bool is_shared = id != a->q && a->key_heads > 0;
    const pl_shape *s = pl_lower_shape(l, id), to = apart(a, s, is_shared ? a->key_heads : a->heads);
    const char *x = pl_emit_reshape(l, pl_lower_value(l, id), s, &to);
    x = turn(l, x, to.rank, turned ? (const int64_t[]){1, 2, 0} : (const int64_t[]){1, 0, 2});
    return is_shared ? repeated(l, a, x, to.rank - 3) : x;
}

/* -∞ for keys after the query or before its window, else 0: computed by the model, so that a long context does not make
 * a large file; one mask for all layers that are alike. */
static const char *mask_of(pl_lowering *l, int64_t tokens, int64_t window)
{
    const float never = -INFINITY;
    pl_lower_mask *m = &l->mask[window > 0];
    if (m->name && m->tokens == tokens && m->window == window) return m->name;
    const char *size = pl_emit_integers(l, 2, (const int64_t[]){tokens, tokens});
    const char *all = pl_emit(l, "Expand", NULL, PL_IN(pl_emit_numbers(l, 1, &never), size));
    *m = (pl_lower_mask){.tokens = tokens, .window = window};
    m->name = pl_emit(l, "Trilu", PL_ATTRIBUTES(PL_INT("upper", 1)), PL_IN(all, pl_emit_integer(l, 1)));
    if (window > 0 && window < tokens) {
        const char *before =
            pl_emit(l, "Trilu", PL_ATTRIBUTES(PL_INT("upper", 0)), PL_IN(all, pl_emit_integer(l, -window)));
        m->name = pl_emit_add(l, m->name, before);
    }
    return m->name;
}

static const char *add_mask(pl_lowering *l, const pl_node *n, const char *scores)
{
    const pl_attention_args *a = &n->attention;
    const int64_t queries = pl_lower_shape(l, a->q)->dim[1];
    const int64_t keys = pl_lower_shape(l, a->k)->dim[1];
    if (queries != keys) pl_lower_refuse(l, n, "it is causal between sequences of different lengths");
    return pl_emit_add(l, scores, mask_of(l, keys / sequences_of(a), a->window));
}

static const char *scores_of(pl_lowering *l, const pl_node *n, const char *q, const char *k)
{
    const pl_attention_args *a = &n->attention;
    const char *scores = pl_emit(l, "MatMul", NULL, PL_IN(q, k));
    scores = pl_emit(l, "Mul", NULL, PL_IN(scores, pl_emit_number(l, a->scale)));
    if (a->cap > 0) {
        scores = pl_emit(l, "Tanh", NULL, PL_IN(pl_emit(l, "Div", NULL, PL_IN(scores, pl_emit_number(l, a->cap)))));
        scores = pl_emit(l, "Mul", NULL, PL_IN(scores, pl_emit_number(l, a->cap)));
    }
    return a->causal ? add_mask(l, n, scores) : scores;
}

void pl_lower_attention(pl_lowering *l, const pl_node *n)
{
    const pl_attention_args *a = &n->attention;
    if (a->position != PL_NONE) return pl_lower_refuse(l, n, "it goes on from a cache");
    if (a->probability > 0) return pl_lower_refuse(l, n, "it drops weights at random");
    if (a->key_heads && a->heads > HEADS_MAX) return pl_lower_refuse(l, n, "it has more than 1024 heads");
    const pl_shape *s = pl_lower_shape(l, a->q), from = apart(a, s, a->heads);
    const char *q = heads_of(l, a, a->q, false), *k = heads_of(l, a, a->k, true), *v = heads_of(l, a, a->v, false);
    const char *p = pl_emit(l, "Softmax", PL_ATTRIBUTES(PL_INT("axis", -1)), PL_IN(scores_of(l, n, q, k)));
    const char *o = pl_emit(l, "MatMul", NULL, PL_IN(p, v));
    o = turn(l, o, from.rank, (const int64_t[]){1, 0, 2});
    pl_lower_output(l, n, a->o, pl_emit_reshape(l, o, &from, s));
}

/* o = σ(scale·q·kᵀ)·v + Σ u, the sum over all tokens. */
void pl_lower_sigmoid_attention(pl_lowering *l, const pl_node *n)
{
    const pl_sigmoid_attention_args *a = &n->sigmoid_attention;
    const char *keys = pl_emit_transpose(l, pl_lower_value(l, a->k), 3, (const int64_t[]){0, 2, 1});
    const char *scores = pl_emit(l, "MatMul", NULL, PL_IN(pl_lower_value(l, a->q), keys));
    scores = pl_emit(l, "Mul", NULL, PL_IN(scores, pl_emit_number(l, a->scale)));
    const char *weights = pl_emit(l, "Sigmoid", NULL, PL_IN(scores)), *u = pl_lower_value(l, a->u);
    const char *all = pl_emit(l, "ReduceSum", PL_ATTRIBUTES(PL_INT("keepdims", 1)),
                              PL_IN(u, pl_emit_integers(l, 1, (const int64_t[]){1})));
    const char *o = pl_emit_add(l, pl_emit(l, "MatMul", NULL, PL_IN(weights, pl_lower_value(l, a->v))), all);
    pl_lower_output(l, n, a->o, o);
}

/* ---- rope: the angles of all positions are a table ---- */

typedef struct turning {
    pl_rope_scaling by;
    const float *divisor; /* NULL: none */
    int64_t positions, half;
    double cosine, sine; /* times these */
} turning;

static const char *table_of(pl_lowering *l, const turning *t, bool sine)
{
    pl_shape s = pl_shape_of(3, t->positions, (int64_t)1, t->half);
    float *table = pl_alloc((size_t)(t->positions * t->half), sizeof *table);
    if (!table) return pl_lower_nomem(l), "";
    for (int64_t i = 0; i < t->half; i++) {
        const double f = pl_rope_frequency(&t->by, t->half, i) / (t->divisor ? (double)t->divisor[i] : 1);
        for (int64_t p = 0; p < t->positions; p++)
            table[p * t->half + i] = (float)(sine ? t->sine * sin((double)p * f) : t->cosine * cos((double)p * f));
    }
    const char *name = pl_emit_table(l, &s, table);
    pl_free(table);
    return name;
}

static const float *numbers_of(const pl_lowering *l, pl_id weight)
{
    return weight == PL_NONE ? NULL : l->o.weights[pl_value_root(l->o.graph, weight)].data;
}

/* Its outputs have a dimension more than in the graph, for the heads. */
void pl_lower_rope_table(pl_lowering *l, const pl_node *n)
{
    const pl_rope_table_args *a = &n->rope_table;
    const double magnitude = a->magnitude == 0 ? 1 : a->magnitude;
    if (a->position != PL_NONE) return pl_lower_refuse(l, n, "it goes on from a position");
    const turning t = {.by = {.kind = (pl_rope_kind)a->kind,
                              .theta = a->theta,
                              .factor = a->factor,
                              .original_context = a->original,
                              .low_factor = a->low,
                              .high_factor = a->high,
                              .beta_slow = a->low,
                              .beta_fast = a->high,
                              .keeps_fractions = a->keeps_fractions != 0},
                       .divisor = numbers_of(l, a->divisor),
                       .positions = a->positions,
                       .half = a->half,
                       .cosine = magnitude,
                       .sine = magnitude};
    pl_lower_output(l, n, a->cosine, table_of(l, &t, false));
    pl_lower_output(l, n, a->sine, table_of(l, &t, true));
}

void pl_lower_rope(pl_lowering *l, const pl_node *n)
{
    const pl_rope_args *args = &n->rope;
    const pl_shape *s = pl_lower_shape(l, args->x);
    const int64_t heads = args->heads, rotated = args->rotated, width = s->dim[s->rank - 1] / heads, half = width / 2;
    pl_shape apart = *s;
    if (s->rank + 1 > PL_RANK_MAX) return pl_lower_refuse(l, n, "its input has too many dimensions");
    const int64_t axis = s->rank - 1; /* of the heads */
    apart.rank++, apart.dim[axis] = heads, apart.dim[axis + 1] = width;
    const char *x = pl_emit_reshape(l, pl_lower_value(l, args->x), s, &apart);
    const char *turned = rotated < heads ? pl_emit_slice(l, x, axis, 0, rotated) : x;
    const char *a = pl_emit_slice(l, turned, axis + 1, 0, half), *b = pl_emit_slice(l, turned, axis + 1, half, width);
    const turning by = {.by = {.theta = args->theta},
                        .positions = s->dim[s->rank - 2],
                        .half = half,
                        .cosine = 1,
                        .sine = args->adjoint ? -1 : 1};
    const bool is_given = args->cosine != PL_NONE;
    const char *c = is_given ? pl_lower_value(l, args->cosine) : table_of(l, &by, false);
    const char *d = is_given ? pl_lower_value(l, args->sine) : table_of(l, &by, true);
    const char *first =
        pl_emit(l, "Sub", NULL, PL_IN(pl_emit(l, "Mul", NULL, PL_IN(a, c)), pl_emit(l, "Mul", NULL, PL_IN(b, d))));
    const char *second =
        pl_emit(l, "Add", NULL, PL_IN(pl_emit(l, "Mul", NULL, PL_IN(b, c)), pl_emit(l, "Mul", NULL, PL_IN(a, d))));
    const char *y = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", axis + 1)), PL_IN(first, second));
    if (rotated < heads)
        y = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", axis)),
                    PL_IN(y, pl_emit_slice(l, x, axis, rotated, heads)));
    pl_lower_output(l, n, args->y, pl_emit_reshape(l, y, &apart, s));
}

/* ---- losses: what they judge becomes an output ---- */

static const pl_face_port *port_of(const pl_lowering *l, const pl_node *n) { return &l->judged[n - l->o.graph->node]; }

void pl_lower_linear_ce(pl_lowering *l, const pl_node *n)
{
    const pl_linear_ce_args *a = &n->linear_ce;
    pl_shape s = *pl_lower_shape(l, a->h);
    s.dim[s.rank - 1] = pl_lower_shape(l, a->weight)->dim[0];
    pl_lower_give_out(l, port_of(l, n), product(l, pl_lower_value(l, a->h), a->weight), &s, PL_DTYPE_F32);
}

_Static_assert(offsetof(pl_cross_entropy_args, logits) == offsetof(pl_bce_with_logits_args, q) &&
                   offsetof(pl_cross_entropy_args, logits) == offsetof(pl_regression_loss_args, prediction),
               "one function reads all");

void pl_lower_judged(pl_lowering *l, const pl_node *n)
{
    const pl_id judged = n->cross_entropy.logits;
    const pl_value *v = &l->o.graph->value[judged];
    pl_lower_give_out(l, port_of(l, n), pl_lower_value(l, judged), &v->shape, v->dtype);
}
