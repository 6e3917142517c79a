/* plimsoll-onnx.so: a model as ONNX's protocol buffer (src/export/onnx_module.h). The messages are structs of
 * protobuf-c, generated from ONNX's own schema when this is built; they point at the caller's texts and numbers, in one
 * block of memory, and packing hands their bytes on piece by piece: no tensor is ever copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.pb-c.h"

#include "export/onnx_module.h"

_Static_assert((int)PL_ONNX_F32 == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, "as in the schema");
_Static_assert((int)PL_ONNX_U8 == ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, "as in the schema");
_Static_assert((int)PL_ONNX_I8 == ONNX__TENSOR_PROTO__DATA_TYPE__INT8, "as in the schema");
_Static_assert((int)PL_ONNX_I32 == ONNX__TENSOR_PROTO__DATA_TYPE__INT32, "as in the schema");
_Static_assert((int)PL_ONNX_I64 == ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "as in the schema");
_Static_assert((int)PL_ONNX_F16 == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, "as in the schema");
_Static_assert((int)PL_ONNX_F64 == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, "as in the schema");
_Static_assert((int)PL_ONNX_BF16 == ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, "as in the schema");

/* ---- one block: measured with base NULL, then filled by the same code ---- */

typedef struct block {
    char *base;
    size_t used;
} block;

static void *take(block *b, size_t count, size_t size)
{
    const size_t at = b->used;
    b->used += (count * size + 15) & ~(size_t)15;
    return b->base ? b->base + at : NULL;
}

/* protobuf-c has `char *` for texts that it only reads. */
static char *text_of(const char *text) { return (char *)(uintptr_t)text; }

static ProtobufCBinaryData bytes_of(const void *data, uint64_t bytes)
{
    return (ProtobufCBinaryData){.len = (size_t)bytes, .data = (uint8_t *)(uintptr_t)data};
}

static Onnx__StringStringEntryProto *entry_of(block *b, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = take(b, 1, sizeof *e);
    if (!e) return NULL;
    onnx__string_string_entry_proto__init(e);
    e->key = text_of(key);
    e->value = text_of(value);
    return e;
}

/* ---- nodes ---- */

static Onnx__AttributeProto *attribute_of(block *b, const pl_onnx_attribute *a)
{
    Onnx__AttributeProto *p = take(b, 1, sizeof *p);
    if (!p) return NULL;
    onnx__attribute_proto__init(p);
    p->name = text_of(a->name);
    p->has_type = 1;
    switch (a->kind) {
    case 'i':
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, p->has_i = 1, p->i = a->i;
        break;
    case 'f':
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, p->has_f = 1, p->f = a->f;
        break;
    case 's':
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, p->has_s = 1, p->s = bytes_of(a->s, strlen(a->s));
        break;
    default:
        p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, p->n_ints = a->count;
        p->ints = (int64_t *)(uintptr_t)a->list;
    }
    return p;
}

static Onnx__NodeProto *node_of(block *b, const pl_onnx_node *n)
{
    Onnx__NodeProto *p = take(b, 1, sizeof *p);
    Onnx__AttributeProto **attribute = take(b, n->attributes, sizeof *attribute);
    for (size_t i = 0; i < n->attributes; i++) {
        Onnx__AttributeProto *a = attribute_of(b, &n->attribute[i]);
        if (attribute) attribute[i] = a;
    }
    if (!p) return NULL;
    onnx__node_proto__init(p);
    p->op_type = text_of(n->op);
    p->name = text_of(n->name);
    p->n_input = n->ins, p->input = (char **)(uintptr_t)n->in;
    p->n_output = n->outs, p->output = (char **)(uintptr_t)n->out;
    p->n_attribute = n->attributes, p->attribute = attribute;
    return p;
}

/* ---- tensors ---- */

/* The place of its bytes, as texts: that is how the format has it. */
static void place_outside(block *b, Onnx__TensorProto *p, const pl_onnx_tensor *t)
{
    enum { NUMBER_BYTES = 24 };
    char *offset = take(b, 1, NUMBER_BYTES), *length = take(b, 1, NUMBER_BYTES);
    Onnx__StringStringEntryProto **list = take(b, 3, sizeof *list);
    Onnx__StringStringEntryProto *entry[] = {entry_of(b, "location", t->location), entry_of(b, "offset", offset),
                                             entry_of(b, "length", length)};
    if (!p) return;
    snprintf(offset, NUMBER_BYTES, "%llu", (unsigned long long)t->offset);
    snprintf(length, NUMBER_BYTES, "%llu", (unsigned long long)t->bytes);
    memcpy(list, entry, sizeof entry);
    p->n_external_data = 3, p->external_data = list;
    p->has_data_location = 1, p->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static Onnx__TensorProto *tensor_of(block *b, const pl_onnx_tensor *t)
{
    Onnx__TensorProto *p = take(b, 1, sizeof *p);
    if (p) {
        onnx__tensor_proto__init(p);
        p->name = text_of(t->name);
        p->n_dims = t->rank, p->dims = (int64_t *)(uintptr_t)t->dim;
        p->has_data_type = 1, p->data_type = (int32_t)t->dtype;
    }
    if (t->location) place_outside(b, p, t);
    if (p && !t->location) p->has_raw_data = 1, p->raw_data = bytes_of(t->data, t->bytes);
    return p;
}

/* ---- inputs and outputs ---- */

static Onnx__TensorShapeProto__Dimension *dimension_of(block *b, int64_t size)
{
    Onnx__TensorShapeProto__Dimension *d = take(b, 1, sizeof *d);
    if (!d) return NULL;
    onnx__tensor_shape_proto__dimension__init(d);
    if (size == PL_ONNX_BATCH) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = text_of("batch");
    } else {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        d->dim_value = size;
    }
    return d;
}

static Onnx__ValueInfoProto *port_of(block *b, const pl_onnx_port *v)
{
    Onnx__ValueInfoProto *p = take(b, 1, sizeof *p);
    Onnx__TypeProto *type = take(b, 1, sizeof *type);
    Onnx__TypeProto__Tensor *tensor = take(b, 1, sizeof *tensor);
    Onnx__TensorShapeProto *shape = take(b, 1, sizeof *shape);
    Onnx__TensorShapeProto__Dimension **dim = take(b, v->rank, sizeof *dim);
    for (uint32_t i = 0; i < v->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = dimension_of(b, v->dim[i]);
        if (dim) dim[i] = d;
    }
    if (!p) return NULL;
    onnx__value_info_proto__init(p), onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor), onnx__tensor_shape_proto__init(shape);
    shape->n_dim = v->rank, shape->dim = dim;
    tensor->has_elem_type = 1, tensor->elem_type = (int32_t)v->dtype, tensor->shape = shape;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, type->tensor_type = tensor;
    p->name = text_of(v->name), p->type = type, p->doc_string = text_of(v->meaning);
    return p;
}

/* ---- the model ---- */

#define LIST(type, of, item, count)                                                                                    \
    type **list_##item = take(b, count, sizeof *list_##item);                                                          \
    for (size_t i = 0; i < (count); i++) {                                                                             \
        type *one = of(b, &m->item[i]);                                                                                \
        if (list_##item) list_##item[i] = one;                                                                         \
    }

static Onnx__GraphProto *graph_of(block *b, const pl_onnx_model *m)
{
    Onnx__GraphProto *g = take(b, 1, sizeof *g);
    LIST(Onnx__NodeProto, node_of, node, m->nodes)
    LIST(Onnx__TensorProto, tensor_of, tensor, m->tensors)
    LIST(Onnx__ValueInfoProto, port_of, input, m->inputs)
    LIST(Onnx__ValueInfoProto, port_of, output, m->outputs)
    if (!g) return NULL;
    onnx__graph_proto__init(g);
    g->name = text_of(m->name);
    g->n_node = m->nodes, g->node = list_node;
    g->n_initializer = m->tensors, g->initializer = list_tensor;
    g->n_input = m->inputs, g->input = list_input;
    g->n_output = m->outputs, g->output = list_output;
    return g;
}

static Onnx__StringStringEntryProto *text_entry(block *b, const pl_onnx_text *t)
{
    return entry_of(b, t->key, t->value);
}

static Onnx__ModelProto *model_of(block *b, const pl_onnx_model *m)
{
    Onnx__ModelProto *p = take(b, 1, sizeof *p);
    Onnx__OperatorSetIdProto **list = take(b, 1, sizeof *list), *set = take(b, 1, sizeof *set);
    Onnx__GraphProto *graph = graph_of(b, m);
    LIST(Onnx__StringStringEntryProto, text_entry, text, m->texts)
    if (!p) return NULL;
    onnx__model_proto__init(p), onnx__operator_set_id_proto__init(set);
    set->domain = text_of(""), set->has_version = 1, set->version = m->opset;
    *list = set;
    p->n_opset_import = 1, p->opset_import = list;
    p->has_ir_version = 1, p->ir_version = ONNX__VERSION__IR_VERSION;
    p->producer_name = text_of(m->producer), p->producer_version = text_of(m->producer_version);
    p->doc_string = text_of(m->meaning);
    p->graph = graph;
    p->n_metadata_props = m->texts, p->metadata_props = list_text;
    return p;
}

/* The block and the model in it, or NULL. */
static Onnx__ModelProto *make(const pl_onnx_model *m, void **memory, uint64_t *held)
{
    block b = {0};
    (void)model_of(&b, m);
    *memory = b.base = calloc(1, b.used);
    *held = b.used;
    b.used = 0;
    return b.base ? model_of(&b, m) : NULL;
}

static int measure(const pl_onnx_model *m, uint64_t *bytes, uint64_t *held)
{
    void *memory;
    const Onnx__ModelProto *p = make(m, &memory, held);
    *bytes = p ? onnx__model_proto__get_packed_size(p) : 0;
    free(memory);
    return p ? 0 : -1;
}

typedef struct sink {
    ProtobufCBuffer base;
    pl_onnx_sink *put;
    void *context;
    int failed;
} sink;

static void append(ProtobufCBuffer *buffer, size_t bytes, const uint8_t *data)
{
    sink *s = (sink *)buffer;
    if (!s->failed) s->failed = s->put(s->context, data, bytes);
}

static int write_model(const pl_onnx_model *m, pl_onnx_sink *put, void *context)
{
    void *memory;
    uint64_t held;
    sink s = {.base = {append}, .put = put, .context = context};
    const Onnx__ModelProto *p = make(m, &memory, &held);
    if (p) onnx__model_proto__pack_to_buffer(p, &s.base);
    free(memory);
    return p ? 0 : -1;
}

extern __attribute__((visibility("default"))) const pl_onnx_module pl_onnx_functions; /* PL_ONNX_SYMBOL */
const pl_onnx_module pl_onnx_functions = {PL_ONNX_VERSION, measure, write_model};
