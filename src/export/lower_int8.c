/* Products in 8 bits, as ONNX has them: what comes in is rounded to 256 numbers and taken back (QuantizeLinear,
 * DequantizeLinear), and multiplied with a matrix of 8 bits that is taken back, too, by columns. A runtime that knows
 * this form multiplies the integers themselves; another computes in f32 what that would give, but for how f32 rounds.
 *
 * ONNX Runtime makes MatMulIntegerToFloat of it where the matrix is the initialiser [in, out], and MatMul has no
 * vector to add with it in two dimensions: Add would join it to Gemm first, whose result it can only have in integers
 * when that is rounded, too. So a layer of two dimensions gets a third. */
#include <stdio.h>

#include "base/quantize.h"
#include "export/lower.h"

static const char *matrix_name(pl_lowering *l, const char *weight, const char *end)
{
    char text[320];
    snprintf(text, sizeof text, "%.280s%s", weight, end);
    const char *name = pl_pool_strdup(l->pool, text);
    if (!name) pl_lower_nomem(l);
    return name ? name : "";
}

/* The matrix in f32, [in, out]; once for all that read it. */
static const char *matrix_of(pl_lowering *l, const pl_node *n)
{
    const pl_id id = pl_value_root(l->o.graph, n->linear_int8.weight);
    const pl_lower_weight *w = &l->o.weights[id];
    const pl_shape *matrix = &l->o.graph->value[id].shape;
    const int64_t out = matrix->dim[0], in = matrix->dim[1];
    if (l->status != PL_OK) return "";
    if (l->name[id]) return l->name[id];
    if (!w->scale) return pl_lower_refuse(l, n, "its weights are nothing that is saved with a model"), "";
    const pl_onnx_tensor q = {.name = l->o.graph->value[id].name,
                              .dtype = PL_ONNX_I8,
                              .rank = 2,
                              .dim = {in, out},
                              .data = w->data,
                              .bytes = (uint64_t)(in * out)};
    const pl_onnx_tensor scale = {.name = matrix_name(l, q.name, ".scale"),
                                  .dtype = PL_ONNX_F32,
                                  .rank = 1,
                                  .dim = {out},
                                  .data = w->scale,
                                  .bytes = (uint64_t)out * sizeof(float)};
    if (!pl_lower_add_tensor(l, &q) || !pl_lower_add_tensor(l, &scale)) return "";
    return l->name[id] = pl_emit(l, "DequantizeLinear", PL_ATTRIBUTES(PL_INT("axis", 1)), PL_IN(q.name, scale.name));
}

/* [B, n] → [B, 1, n] */
static pl_shape with_a_third(const pl_shape *s)
{
    if (s->rank != 2) return *s;
    return (pl_shape){.rank = 3, .symbolic = s->symbolic & 1, .dim = {s->dim[0], 1, s->dim[1]}};
}

/* What comes to a site, rounded; once for all its layers, which read the same range. */
static const char *rounded(pl_lowering *l, const pl_node *n)
{
    const pl_id range = pl_value_root(l->o.graph, n->linear_int8.range);
    const pl_shape *from = pl_lower_shape(l, n->linear_int8.x), to = with_a_third(from);
    const float *span = l->o.weights[range].data;
    if (l->status != PL_OK) return "";
    if (l->name[range]) return l->name[range];
    if (!span) return pl_lower_refuse(l, n, "the range of what comes to it is nothing that is saved with a model"), "";
    const pl_quantization of = pl_quantization_of(span[0], span[1]);
    const char *scale = pl_emit_number(l, of.scale), *zero = pl_emit_zero_point(l, (uint8_t)of.zero);
    const char *x = pl_emit_reshape(l, pl_lower_value(l, n->linear_int8.x), from, &to);
    const char *q = pl_emit(l, "QuantizeLinear", NULL, PL_IN(x, scale, zero));
    return l->name[range] = pl_emit(l, "DequantizeLinear", NULL, PL_IN(q, scale, zero));
}

void pl_lower_linear_int8(pl_lowering *l, const pl_node *n)
{
    const pl_linear_int8_args *a = &n->linear_int8;
    const pl_shape *y = pl_lower_shape(l, a->y), wide = with_a_third(y);
    const char *x = rounded(l, n);
    const char *r = pl_emit(l, "MatMul", NULL, PL_IN(x, matrix_of(l, n)));
    r = pl_emit_reshape(l, pl_emit_add(l, r, pl_lower_value(l, a->bias)), &wide, y);
    r = pl_emit_add(l, r, pl_lower_value(l, a->residual));
    pl_lower_output(l, n, a->y, r);
    if (a->act_y != PL_NONE) pl_lower_output(l, n, a->act_y, pl_emit_activation(l, r, (pl_activation)a->act));
}
