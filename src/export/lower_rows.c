/* Rows of tokens: how pictures and ids become them, and how they are weighed, chosen and joined. */
#include "base/colours.h"
#include "export/lower.h"

/* [B,...,D] → [B,N,D]. */
static pl_shape flat(const pl_shape *s)
{
    pl_shape f = {.rank = 3, .symbolic = s->symbolic & 1};
    f.dim[0] = s->dim[0], f.dim[1] = 1, f.dim[2] = pl_shape_last(s);
    for (uint32_t i = 1; i + 1 < s->rank; i++) f.dim[1] *= s->dim[i];
    return f;
}

static const char *flat_value(pl_lowering *l, pl_id id)
{
    const pl_shape *s = pl_lower_shape(l, id), f = flat(s);
    return pl_emit_reshape(l, pl_lower_value(l, id), s, &f);
}

static const char *with_dimension(pl_lowering *l, const char *x, int64_t axis)
{
    return pl_emit(l, "Unsqueeze", NULL, PL_IN(x, pl_emit_integers(l, 1, &axis)));
}

/* ---- ids ---- */

/* The rows `by` tokens back; zeros in front of the first. */
static const char *moved(pl_lowering *l, const char *x, int64_t by)
{
    return by ? pl_emit(l, "Pad", NULL, PL_IN(x, pl_emit_integers(l, 6, (const int64_t[]){0, by, 0, 0, -by, 0}))) : x;
}

/* The row of each id; zeros for one below 0, which is no token. */
static const char *rows_of(pl_lowering *l, const char *ids, const char *table)
{
    const int64_t behind = -1;
    const char *none = pl_emit_integer(l, 0), *there = pl_emit(l, "GreaterOrEqual", NULL, PL_IN(ids, none));
    there = pl_emit(l, "Cast", PL_ATTRIBUTES(PL_INT("to", PL_ONNX_F32)), PL_IN(there));
    const char *row =
        pl_emit(l, "Gather", PL_ATTRIBUTES(PL_INT("axis", 0)), PL_IN(table, pl_emit(l, "Max", NULL, PL_IN(ids, none))));
    return pl_emit(l, "Mul", NULL, PL_IN(row, with_dimension(l, there, behind)));
}

void pl_lower_embedding(pl_lowering *l, const pl_node *n)
{
    const pl_embedding_args *a = &n->embedding;
    const int64_t tokens = pl_lower_shape(l, a->tokens)->dim[1];
    if (a->position != PL_NONE) return pl_lower_refuse(l, n, "it goes on from a position");
    const char *one = rows_of(l, pl_lower_value(l, a->tokens), pl_lower_value(l, a->table)), *x = one;
    for (int64_t k = 1; k < a->window; k++)
        x = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 2)), PL_IN(x, moved(l, one, k)));
    if (a->positions != PL_NONE) {
        const char *places = pl_lower_value(l, a->positions);
        if (pl_lower_shape(l, a->positions)->dim[0] > tokens) places = pl_emit_slice(l, places, 0, 0, tokens);
        x = pl_emit_add(l, x, places);
    }
    pl_lower_output(l, n, a->x, x);
}

/* ---- pictures ---- */

/* (v − mean)/deviation of the three colours. */
static const char *standardized(pl_lowering *l, const char *x)
{
    const pl_shape s = pl_shape_of(3, (int64_t)PL_COLOURS, (int64_t)1, (int64_t)1);
    x = pl_emit(l, "Sub", NULL, PL_IN(x, pl_emit_table(l, &s, pl_colour_mean)));
    return pl_emit(l, "Div", NULL, PL_IN(x, pl_emit_table(l, &s, pl_colour_deviation)));
}

void pl_lower_patches(pl_lowering *l, const pl_node *n)
{
    const pl_patches_args *a = &n->patches;
    const pl_shape *s = pl_lower_shape(l, a->image), *y = pl_lower_shape(l, a->y);
    const int64_t patch = a->patch, down = s->dim[1] / patch, across = s->dim[2] / patch;
    const char *x = pl_lower_value(l, a->image);
    if (a->standardize) x = standardized(l, x);
    x = pl_emit(l, "Reshape", NULL,
                PL_IN(x, pl_emit_integers(l, 6, (const int64_t[]){0, a->channels, down, patch, across, patch})));
    x = pl_emit_transpose(l, x, 6, (const int64_t[]){0, 2, 4, 1, 3, 5});
    x = pl_emit(l, "Reshape", NULL, PL_IN(x, pl_emit_integers(l, 3, (const int64_t[]){0, y->dim[1], y->dim[2]})));
    pl_lower_output(l, n, a->y, x);
}

void pl_lower_add_positions(pl_lowering *l, const pl_node *n)
{
    const pl_add_positions_args *a = &n->add_positions;
    const char *y = pl_emit_add(l, pl_lower_value(l, a->x), pl_lower_value(l, a->positions));
    pl_lower_output(l, n, a->y, y);
}

/* The row, or zeros, once for each sample: as many as x has. */
void pl_lower_prepend_row(pl_lowering *l, const pl_node *n)
{
    const pl_prepend_row_args *a = &n->prepend_row;
    const int64_t width = pl_shape_last(pl_lower_shape(l, a->x));
    const char *x = pl_lower_value(l, a->x);
    const char *row = a->row == PL_NONE ? pl_emit_number(l, 0) : pl_lower_value(l, a->row);
    const char *batch = pl_emit(l, "Shape", PL_ATTRIBUTES(PL_INT("start", 0), PL_INT("end", 1)), PL_IN(x));
    const char *size = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 0)),
                               PL_IN(batch, pl_emit_integers(l, 2, (const int64_t[]){1, width})));
    const char *rows = pl_emit(l, "Expand", NULL, PL_IN(row, size));
    const char *y = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 1)), PL_IN(rows, x));
    pl_lower_output(l, n, a->y, y);
}

void pl_lower_drop_row(pl_lowering *l, const pl_node *n)
{
    const pl_drop_row_args *a = &n->drop_row;
    const int64_t rows = pl_lower_shape(l, a->x)->dim[1];
    if (a->sum_new != PL_NONE && l->wanted[a->sum_new]) return pl_lower_refuse(l, n, "it sums up rows");
    pl_lower_output(l, n, a->y, pl_emit_slice(l, pl_lower_value(l, a->x), 1, 1, rows));
}

/* ---- weighed sums ---- */

void pl_lower_capsule_pool(pl_lowering *l, const pl_node *n)
{
    const pl_capsule_pool_args *args = &n->capsule_pool;
    const char *t = flat_value(l, args->tokens), *logits = flat_value(l, args->logits);
    logits = pl_emit_transpose(l, logits, 3, (const int64_t[]){0, 2, 1});
    const char *a = pl_emit(l, "Softmax", PL_ATTRIBUTES(PL_INT("axis", -1)), PL_IN(logits));
    pl_lower_output(l, n, args->y, pl_emit(l, "MatMul", NULL, PL_IN(a, t)));
    pl_lower_output(l, n, args->assignment, a);
}

/* [B,T,C] and [B,T(,1)], or the same numbers as [B,1…,T·C] and [B,1…,T]. */
void pl_lower_softmax_pool(pl_lowering *l, const pl_node *n)
{
    const pl_softmax_pool_args *args = &n->softmax_pool;
    const pl_shape *x = pl_lower_shape(l, args->x), *e = pl_lower_shape(l, args->logits),
                   *y = pl_lower_shape(l, args->y);
    int64_t times = 1, numbers = 1;
    for (uint32_t i = 1; i < e->rank; i++) times *= e->dim[i];
    for (uint32_t i = 1; i < x->rank; i++) numbers *= x->dim[i];
    pl_shape samples = {.rank = 3, .symbolic = x->symbolic & 1}, weights = samples, sum = samples;
    samples.dim[0] = weights.dim[0] = sum.dim[0] = x->dim[0];
    samples.dim[1] = times, samples.dim[2] = numbers / times;
    weights.dim[1] = 1, weights.dim[2] = times;
    sum.dim[1] = 1, sum.dim[2] = numbers / times;
    const char *values = pl_emit_reshape(l, pl_lower_value(l, args->x), x, &samples);
    const char *a = pl_emit_reshape(l, pl_lower_value(l, args->logits), e, &weights);
    a = pl_emit(l, "Softmax", PL_ATTRIBUTES(PL_INT("axis", -1)), PL_IN(a));
    a = pl_emit_reshape(l, pl_emit(l, "MatMul", NULL, PL_IN(a, values)), &sum, y);
    pl_lower_output(l, n, args->y, a);
}

/* y = g·a + (1 − g)·b; a gate stands for all that lies behind its dimensions. */
void pl_lower_blend(pl_lowering *l, const pl_node *n)
{
    const pl_blend_args *a = &n->blend;
    const pl_shape *z = pl_lower_shape(l, a->z);
    pl_shape wide = *z;
    for (uint32_t i = z->rank; i < pl_lower_shape(l, a->a)->rank; i++) wide.dim[wide.rank++] = 1;
    const char *g = pl_emit(l, "Sigmoid", NULL, PL_IN(pl_lower_value(l, a->z)));
    const char *gate = pl_emit_reshape(l, g, z, &wide);
    const char *rest = pl_emit(l, "Sub", NULL, PL_IN(pl_emit_number(l, 1), gate));
    const char *first = pl_emit(l, "Mul", NULL, PL_IN(gate, pl_lower_value(l, a->a)));
    const char *second = pl_emit(l, "Mul", NULL, PL_IN(rest, pl_lower_value(l, a->b)));
    pl_lower_output(l, n, a->y, pl_emit_add(l, first, second));
    pl_lower_output(l, n, a->gate, g);
}

/* ---- chosen rows ---- */

void pl_lower_top_k(pl_lowering *l, const pl_node *n)
{
    const char *out[2];
    pl_emit_many(l, "TopK", PL_ATTRIBUTES(PL_INT("axis", -1), PL_INT("largest", 1), PL_INT("sorted", 1)),
                 PL_IN(pl_lower_value(l, n->top_k.x), pl_emit_integers(l, 1, &n->top_k.count)), 2, out);
    pl_lower_output(l, n, n->top_k.index, out[1]);
}

void pl_lower_gather_rows(pl_lowering *l, const pl_node *n)
{
    const pl_gather_rows_args *a = &n->gather_rows;
    const pl_shape *index = pl_lower_shape(l, a->index), *y = pl_lower_shape(l, a->y), rows = flat(y);
    pl_shape places = rows;
    places.dim[2] = 1;
    const char *at = pl_emit_reshape(l, pl_lower_value(l, a->index), index, &places);
    const char *x = pl_emit(l, "GatherND", PL_ATTRIBUTES(PL_INT("batch_dims", 1)), PL_IN(flat_value(l, a->tokens), at));
    pl_lower_output(l, n, a->y, pl_emit_reshape(l, x, &rows, y));
}

void pl_lower_repeat(pl_lowering *l, const pl_node *n)
{
    const pl_repeat_args *a = &n->repeat;
    const pl_shape *x = pl_lower_shape(l, a->x);
    int64_t size[PL_RANK_MAX] = {1, 1, 1, 1, 1, 1};
    if (x->rank + 1 > PL_RANK_MAX) return pl_lower_refuse(l, n, "its input has too many dimensions");
    size[x->rank - 1] = a->count;
    const char *apart = with_dimension(l, pl_lower_value(l, a->x), x->rank - 1);
    const char *y = pl_emit(l, "Expand", NULL, PL_IN(apart, pl_emit_integers(l, x->rank + 1, size)));
    pl_lower_output(l, n, a->y, y);
}

/* The least of |e|² − 2·z·e over the codes, which are |z|² nearer than they seem. */
void pl_lower_nearest_code(pl_lowering *l, const pl_node *n)
{
    const pl_nearest_code_args *a = &n->nearest_code;
    const char *book = pl_lower_value(l, a->codebook), *z = pl_lower_value(l, a->z);
    const char *squares =
        pl_emit(l, "ReduceSum", PL_ATTRIBUTES(PL_INT("keepdims", 0)),
                PL_IN(pl_emit(l, "Mul", NULL, PL_IN(book, book)), pl_emit_integers(l, 1, (const int64_t[]){1})));
    const char *product = pl_emit(l, "MatMul", NULL, PL_IN(z, pl_lower_transposed(l, a->codebook)));
    product = pl_emit(l, "Mul", NULL, PL_IN(product, pl_emit_number(l, 2)));
    const char *far = pl_emit(l, "Sub", NULL, PL_IN(squares, product));
    const char *index = pl_emit(l, "ArgMin", PL_ATTRIBUTES(PL_INT("axis", -1), PL_INT("keepdims", 0)), PL_IN(far));
    pl_lower_output(l, n, a->index, index);
    if (a->code == PL_NONE) return;
    const char *code = pl_emit(l, "Gather", PL_ATTRIBUTES(PL_INT("axis", 0)), PL_IN(book, index));
    pl_lower_output(l, n, a->code, code);
}

void pl_lower_straight_through(pl_lowering *l, const pl_node *n)
{
    pl_lower_output(l, n, n->straight_through.y, pl_lower_value(l, n->straight_through.code));
}
