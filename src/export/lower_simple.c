/* What touches each number once, and what puts channels together or takes them apart. */
#include "export/lower.h"

void pl_lower_activation(pl_lowering *l, const pl_node *n)
{
    const pl_activation_args *a = &n->activation;
    const char *y = pl_emit_activation(l, pl_lower_value(l, a->x), (pl_activation)a->act);
    pl_lower_output(l, n, a->y, y);
}

void pl_lower_scale(pl_lowering *l, const pl_node *n)
{
    const pl_scale_args *a = &n->scale;
    const char *factor = pl_emit_number(l, a->factor);
    pl_lower_output(l, n, a->y, pl_emit(l, "Mul", NULL, PL_IN(pl_lower_value(l, a->x), factor)));
}

void pl_lower_add(pl_lowering *l, const pl_node *n)
{
    const pl_add_args *a = &n->add;
    const char *y = pl_emit_add(l, pl_lower_value(l, a->a), pl_lower_value(l, a->b));
    pl_lower_output(l, n, a->y, y);
}

_Static_assert(offsetof(pl_cast_args, x) == offsetof(pl_detach_args, x) &&
                   offsetof(pl_cast_args, y) == offsetof(pl_detach_args, y),
               "one function reads both");

/* All is f32 in ONNX; and there are no gradients. */
void pl_lower_same(pl_lowering *l, const pl_node *n) { pl_lower_output(l, n, n->cast.y, pl_lower_value(l, n->cast.x)); }

/* All of them the same number; for as many samples as the model is given. */
void pl_lower_fill(pl_lowering *l, const pl_node *n)
{
    const pl_fill_args *a = &n->fill;
    const pl_shape *s = pl_lower_shape(l, a->y);
    const char *size;
    if (s->symbolic & ~1u || (s->symbolic && (s->dim[0] != 1 || l->inputs == 0)))
        return pl_lower_refuse(l, n, "what it fills has no batch that an input tells");
    if (s->symbolic) {
        size = pl_emit(l, "Shape", PL_ATTRIBUTES(PL_INT("start", 0), PL_INT("end", 1)), PL_IN(l->input[0].name));
        if (s->rank > 1)
            size = pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", 0)),
                           PL_IN(size, pl_emit_integers(l, s->rank - 1, s->dim + 1)));
    } else {
        size = pl_emit_integers(l, s->rank, s->dim);
    }
    const char *y = pl_emit(l, "Expand", NULL, PL_IN(pl_emit_number(l, a->value), size));
    pl_lower_output(l, n, a->y, y);
}

void pl_lower_concat(pl_lowering *l, const pl_node *n)
{
    const pl_concat_args *a = &n->concat;
    const char *part[PL_INS_OF_CONCAT + 1] = {NULL};
    for (int k = 0, at = 0; k < PL_INS_OF_CONCAT; k++)
        if (a->part[k] != PL_NONE) part[at++] = pl_lower_value(l, a->part[k]);
    pl_lower_output(l, n, a->y, pl_emit(l, "Concat", PL_ATTRIBUTES(PL_INT("axis", -1)), part));
}

void pl_lower_slice(pl_lowering *l, const pl_node *n)
{
    const pl_slice_args *a = &n->slice;
    const int64_t axis = pl_lower_shape(l, a->x)->rank - 1;
    const char *y = pl_emit_slice(l, pl_lower_value(l, a->x), axis, a->first, a->first + a->channels);
    pl_lower_output(l, n, a->y, y);
}

/* ---- adaptive_avg_pool: x [B,H,W,C] → [B,m,k,C]: means of windows that cover it, as products with a matrix each for
 * rows and columns, so that windows of different sizes are no matter ---- */

static const char *means(pl_lowering *l, int64_t windows, int64_t of)
{
    const pl_shape s = pl_shape_of(2, windows, of);
    float *table = pl_alloc((size_t)(windows * of), sizeof *table);
    if (!table) return pl_lower_nomem(l), "";
    for (int64_t w = 0; w < windows; w++) {
        const int64_t first = w * of / windows, end = ((w + 1) * of + windows - 1) / windows;
        for (int64_t i = first; i < end; i++) table[w * of + i] = 1 / (float)(end - first);
    }
    const char *name = pl_emit_table(l, &s, table);
    pl_free(table);
    return name;
}

/* Tokens [B,N,C] are an image of one column. */
void pl_lower_adaptive_avg_pool(pl_lowering *l, const pl_node *n)
{
    const pl_adaptive_avg_pool_args *a = &n->adaptive_avg_pool;
    const pl_shape *x = pl_lower_shape(l, a->x);
    const int64_t down = a->height, across = a->width;
    const char *y = pl_lower_value(l, a->x);
    if (x->rank == 3)
        return pl_lower_output(l, n, a->y, pl_emit(l, "MatMul", NULL, PL_IN(means(l, down, x->dim[1]), y)));
    pl_shape lines = {.rank = 3, .symbolic = x->symbolic, .dim = {x->dim[0], x->dim[1], x->dim[2] * x->dim[3]}};
    pl_shape fewer = {.rank = 3, .symbolic = x->symbolic, .dim = {x->dim[0], down, x->dim[2] * x->dim[3]}};
    pl_shape apart = {.rank = 4, .symbolic = x->symbolic, .dim = {x->dim[0], down, x->dim[2], x->dim[3]}};
    y = pl_emit(l, "MatMul", NULL, PL_IN(means(l, down, x->dim[1]), pl_emit_reshape(l, y, x, &lines)));
    y = pl_emit_reshape(l, y, &fewer, &apart);
    pl_lower_output(l, n, a->y, pl_emit(l, "MatMul", NULL, PL_IN(means(l, across, x->dim[2]), y)));
}
