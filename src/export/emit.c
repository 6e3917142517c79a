#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/lower.h"

bool pl_lower_nomem(pl_lowering *l)
{
    if (l->status == PL_OK) l->status = pl_fail(l->err, PL_E_NOMEM, "no memory to export the model");
    return false;
}

/* ---- nodes ---- */

/* "cycle.0/block.1/attention/MatMul_17": unique by its number, and says where it comes from. */
static const char *name_of(pl_lowering *l, const char *op, size_t number)
{
    char text[320];
    snprintf(text, sizeof text, "%.256s%s%s_%zu", l->scope, *l->scope ? "/" : "", op, number);
    const char *name = pl_pool_strdup(l->pool, text);
    if (!name) pl_lower_nomem(l);
    return name ? name : "";
}

void pl_emit_many(pl_lowering *l, const char *op, const pl_onnx_attribute *attributes, const char *const *in,
                  size_t outs, const char **out)
{
    for (size_t k = 0; k < outs; k++) out[k] = "";
    if (l->status != PL_OK) return;
    if (pl_grow(&l->node, &l->node_capacity, l->nodes, sizeof *l->node)) {
        pl_lower_nomem(l);
        return;
    }
    pl_onnx_node *n = &l->node[l->nodes];
    *n = (pl_onnx_node){.op = op, .outs = outs, .name = name_of(l, op, l->nodes)};
    l->nodes++;
    while (in[n->ins]) n->in[n->ins] = in[n->ins], n->ins++;
    while (attributes && attributes[n->attributes].name)
        n->attribute[n->attributes] = attributes[n->attributes], n->attributes++;
    n->out[0] = out[0] = n->name;
    for (size_t k = 1; k < outs; k++) {
        char text[360];
        snprintf(text, sizeof text, "%s.%zu", n->name, k);
        n->out[k] = out[k] = pl_pool_strdup(l->pool, text);
        if (!out[k]) out[k] = "", pl_lower_nomem(l);
    }
}

const char *pl_emit(pl_lowering *l, const char *op, const pl_onnx_attribute *attributes, const char *const *in)
{
    const char *out;
    pl_emit_many(l, op, attributes, in, 1, &out);
    return out;
}

/* ---- constants ---- */

static const char *find_constant(const pl_lowering *l, const pl_onnx_tensor *t)
{
    for (size_t i = 0; i < l->tensors; i++) {
        const pl_onnx_tensor *o = &l->tensor[i];
        if (o->dtype == t->dtype && o->rank == t->rank && o->bytes == t->bytes &&
            memcmp(o->dim, t->dim, sizeof t->dim) == 0 && strncmp(o->name, "constant.", 9) == 0 &&
            memcmp(o->data, t->data, t->bytes) == 0)
            return o->name;
    }
    return NULL;
}

/* The numbers are copied: they are small. */
static const char *constant(pl_lowering *l, pl_onnx_tensor t)
{
    char text[40];
    if (l->status != PL_OK) return "";
    const char *there = find_constant(l, &t);
    if (there) return there;
    snprintf(text, sizeof text, "constant.%zu", l->tensors);
    char *name = pl_pool_strdup(l->pool, text), *data = pl_pool_alloc(l->pool, 1, t.bytes ? t.bytes : 1);
    if (!name || !data || pl_grow(&l->tensor, &l->tensor_capacity, l->tensors, sizeof *l->tensor)) {
        pl_lower_nomem(l);
        return "";
    }
    memcpy(data, t.data, t.bytes);
    t.name = name, t.data = data;
    l->tensor[l->tensors++] = t;
    return name;
}

const char *pl_emit_number(pl_lowering *l, double number)
{
    const float x = (float)number;
    return constant(l, (pl_onnx_tensor){.dtype = PL_ONNX_F32, .data = &x, .bytes = sizeof x});
}

const char *pl_emit_numbers(pl_lowering *l, size_t count, const float *x)
{
    return constant(
        l, (pl_onnx_tensor){.dtype = PL_ONNX_F32, .rank = 1, .dim = {(int64_t)count}, .data = x, .bytes = 4 * count});
}

const char *pl_emit_table(pl_lowering *l, const pl_shape *s, const float *x)
{
    pl_onnx_tensor t = {.dtype = PL_ONNX_F32, .rank = s->rank, .data = x, .bytes = 4 * pl_shape_elems(s)};
    for (uint32_t i = 0; i < s->rank; i++) t.dim[i] = s->dim[i];
    return constant(l, t);
}

const char *pl_emit_zero_point(pl_lowering *l, uint8_t x)
{
    return constant(l, (pl_onnx_tensor){.dtype = PL_ONNX_U8, .data = &x, .bytes = 1});
}

const char *pl_emit_integers(pl_lowering *l, size_t count, const int64_t *x)
{
    return constant(
        l, (pl_onnx_tensor){.dtype = PL_ONNX_I64, .rank = 1, .dim = {(int64_t)count}, .data = x, .bytes = 8 * count});
}

const char *pl_emit_integer(pl_lowering *l, int64_t x)
{
    return constant(l, (pl_onnx_tensor){.dtype = PL_ONNX_I64, .data = &x, .bytes = sizeof x});
}

/* ---- shapes ---- */

const char *pl_emit_transpose(pl_lowering *l, const char *x, size_t rank, const int64_t *order)
{
    pl_onnx_attribute a[2] = {{.name = "perm", .kind = 'l', .count = rank}, {.name = NULL}};
    memcpy(a[0].list, order, rank * sizeof *order);
    return pl_emit(l, "Transpose", a, PL_IN(x));
}

/* A size that hangs on the batch is the batch of the input, where both begin with it, or what the others leave. */
const char *pl_emit_reshape(pl_lowering *l, const char *x, const pl_shape *from, const pl_shape *to)
{
    int64_t size[PL_RANK_MAX];
    if (pl_shape_equal(from, to)) return x;
    for (uint32_t i = 0; i < to->rank; i++) size[i] = to->symbolic >> i & 1 ? -1 : to->dim[i];
    if (from->rank && to->rank && (from->symbolic & to->symbolic & 1) && from->dim[0] == to->dim[0]) size[0] = 0;
    return pl_emit(l, "Reshape", NULL, PL_IN(x, pl_emit_integers(l, to->rank, size)));
}

const char *pl_emit_slice(pl_lowering *l, const char *x, int64_t axis, int64_t first, int64_t end)
{
    return pl_emit(
        l, "Slice", NULL,
        PL_IN(x, pl_emit_integers(l, 1, &first), pl_emit_integers(l, 1, &end), pl_emit_integers(l, 1, &axis)));
}

/* ---- what several operators have in common ---- */

const char *pl_emit_add(pl_lowering *l, const char *x, const char *y)
{
    return y ? pl_emit(l, "Add", NULL, PL_IN(x, y)) : x;
}

/* ½·x·(1 + erf(x/√2)); Gelu itself is of a later opset. */
static const char *gelu(pl_lowering *l, const char *x)
{
    const char *e = pl_emit(l, "Erf", NULL, PL_IN(pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit_number(l, M_SQRT1_2)))));
    const char *half = pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit_number(l, 0.5)));
    return pl_emit(l, "Mul", NULL, PL_IN(half, pl_emit(l, "Add", NULL, PL_IN(e, pl_emit_number(l, 1)))));
}

const char *pl_emit_activation(pl_lowering *l, const char *x, pl_activation act)
{
    switch (act) {
    case PL_ACT_GELU:
        return gelu(l, x);
    case PL_ACT_SILU:
        return pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit(l, "Sigmoid", NULL, PL_IN(x))));
    case PL_ACT_TANH:
        return pl_emit(l, "Tanh", NULL, PL_IN(x));
    case PL_ACT_RELU:
        return pl_emit(l, "Relu", NULL, PL_IN(x));
    case PL_ACT_LEAKY_RELU:
        return pl_emit(l, "LeakyRelu", PL_ATTRIBUTES(PL_REAL("alpha", PL_LEAKY_RELU_SLOPE)), PL_IN(x));
    case PL_ACT_SIGMOID:
        return pl_emit(l, "Sigmoid", NULL, PL_IN(x));
    case PL_ACT_QUICK_GELU: {
        const char *scaled = pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit_number(l, PL_QUICK_GELU_SCALE)));
        return pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit(l, "Sigmoid", NULL, PL_IN(scaled))));
    }
    case PL_ACT_GELU_TANH: {
        const char *square = pl_emit(l, "Mul", NULL, PL_IN(x, x));
        const char *cube = pl_emit(l, "Mul", NULL, PL_IN(square, pl_emit_number(l, PL_GELU_TANH_CUBE)));
        const char *sum = pl_emit_add(l, x, pl_emit(l, "Mul", NULL, PL_IN(x, cube)));
        const char *argument = pl_emit(l, "Mul", NULL, PL_IN(sum, pl_emit_number(l, 2 * PL_GELU_TANH_SCALE)));
        return pl_emit(l, "Mul", NULL, PL_IN(x, pl_emit(l, "Sigmoid", NULL, PL_IN(argument))));
    }
    case PL_ACT_NONE:
    case PL_ACT_COUNT:
        break;
    }
    return x;
}
