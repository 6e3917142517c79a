/* From the forward graph to nodes of ONNX. First, from the outputs back, what is needed at all (losses and what only
 * they read are not); then node by node, in program order. A value of the graph is written once, so it has one name in
 * ONNX; a window on one becomes Reshape or Slice where it is first read. */
#include "export/lower.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"

static const pl_lower_row rows[PL_OP_COUNT] = {
#define PL_LOWER_ROW(id, function, scores) [PL_OP_##id] = {pl_lower_##function, scores},
#include "export/lowerings.def"
#undef PL_LOWER_ROW
};

void pl_lower_refuse(pl_lowering *l, const pl_node *n, const char *why)
{
    if (l->status != PL_OK) return;
    l->status = pl_fail(l->err, PL_E_UNSUPPORTED,
                        "the operator %s (in %.200s) cannot be exported to ONNX: %s; `format` safetensors exports the "
                        "weights of any model",
                        pl_op_name(n->op), *n->scope ? n->scope : "the program", why);
}

/* ---- what is wanted ---- */

static void want(pl_lowering *l, pl_id id)
{
    for (; id != PL_NONE && !l->wanted[id]; id = l->o.graph->value[id].view_of) l->wanted[id] = true;
}

static bool is_back(const pl_node *n) { return n->op == PL_OP_STORE && n->store.back != 0; }

static void want_inputs(pl_lowering *l, size_t at)
{
    const pl_node *n = &l->o.graph->node[at];
    bool is_read = false;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) is_read |= n->out[k] != PL_NONE && l->wanted[n->out[k]];
    for (int k = 0; k < PL_NODE_IN_MAX; k++) {
        const bool is_stored = n->op == PL_OP_STORE && !is_back(n) && l->o.face->stored[k].name;
        if (is_read || is_stored || (l->judged[at].name && rows[n->op].scores >> k & 1)) want(l, n->in[k]);
    }
}

static bool is_of_program(const pl_lowering *l, const pl_node *n, pl_id program)
{
    return !n->dead && pl_region_program(l->o.graph, n->region) == program;
}

static void find_wanted(pl_lowering *l, pl_id program)
{
    const pl_graph *g = l->o.graph;
    size_t losses = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (is_of_program(l, &g->node[i], program) && rows[g->node[i].op].scores && losses < PL_FACE_SCORED_MAX)
            l->judged[i] = l->o.face->scored[losses++];
    for (size_t i = g->node_count; i-- > 0;)
        if (is_of_program(l, &g->node[i], program)) want_inputs(l, i);
}

/* ---- values ---- */

static pl_onnx_dtype dtype_of(pl_dtype d)
{
    static const pl_onnx_dtype dtypes[PL_DTYPE_COUNT] = {
        [PL_DTYPE_F32] = PL_ONNX_F32, [PL_DTYPE_BF16] = PL_ONNX_BF16, [PL_DTYPE_F16] = PL_ONNX_F16,
        [PL_DTYPE_F64] = PL_ONNX_F64, [PL_DTYPE_I64] = PL_ONNX_I64,   [PL_DTYPE_I32] = PL_ONNX_I32,
        [PL_DTYPE_U8] = PL_ONNX_U8,   [PL_DTYPE_I8] = PL_ONNX_I8};
    return dtypes[d];
}

bool pl_lower_add_tensor(pl_lowering *l, const pl_onnx_tensor *t)
{
    if (pl_grow(&l->tensor, &l->tensor_capacity, l->tensors, sizeof *l->tensor)) return pl_lower_nomem(l);
    l->tensor[l->tensors++] = *t;
    return true;
}

/* A persistent value is an initialiser; one of 16 bits is widened where it is first read, and not stored wider. */
static const char *lasting(pl_lowering *l, pl_id id)
{
    const pl_value *v = &l->o.graph->value[id];
    const pl_lower_weight *w = &l->o.weights[id];
    pl_onnx_tensor t = {.name = v->name,
                        .dtype = dtype_of(w->dtype),
                        .rank = v->shape.rank,
                        .data = w->data,
                        .bytes = pl_shape_elems(&v->shape) * pl_dtype_bytes(w->dtype)};
    for (uint32_t i = 0; i < v->shape.rank; i++) t.dim[i] = v->shape.dim[i];
    if (!t.dtype || !t.data || v->shape.symbolic || v->encoding != PL_ENCODING_F32) {
        l->status = pl_fail(l->err, PL_E_UNSUPPORTED,
                            "%.200s cannot be exported to ONNX: it is nothing that is saved with a model", v->name);
        return "";
    }
    if (!pl_lower_add_tensor(l, &t)) return "";
    if (w->dtype != PL_DTYPE_BF16 && w->dtype != PL_DTYPE_F16) return v->name;
    return pl_emit(l, "Cast", PL_ATTRIBUTES(PL_INT("to", PL_ONNX_F32)), PL_IN(v->name));
}

/* The one dimension in which a window is shorter than its base, and where it begins there; -1: not such a window. */
static int window_axis(const pl_value *v, const pl_value *base, int64_t *first)
{
    int axis = -1;
    if (v->shape.rank != base->shape.rank) return -1;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        const bool same = v->shape.dim[i] == base->shape.dim[i];
        if (v->shape.dim[i] > 1 && v->stride[i] != base->stride[i]) return -1;
        if (!same && axis >= 0) return -1;
        if (!same) axis = (int)i;
    }
    if (axis < 0 || v->shape.symbolic >> axis & 1 || v->view_offset % base->stride[axis]) return -1;
    *first = v->view_offset / base->stride[axis];
    return axis;
}

/* Is it the same stretch of each sample, without gaps? */
static bool is_stretch(const pl_value *v, const pl_value *base)
{
    int64_t elems = 1;
    if (!pl_value_is_contiguous(base) || v->shape.symbolic != 1 || base->shape.symbolic != 1 ||
        v->shape.dim[0] != base->shape.dim[0] || v->stride[0] != base->stride[0])
        return false;
    for (uint32_t i = v->shape.rank; i-- > 1; elems *= v->shape.dim[i])
        if (v->shape.dim[i] > 1 && v->stride[i] != elems) return false;
    return v->view_offset + elems <= base->stride[0];
}

static const char *stretch(pl_lowering *l, const char *x, const pl_value *v, const pl_value *base)
{
    pl_shape all = {.rank = 2, .symbolic = 1, .dim = {base->shape.dim[0], base->stride[0]}}, some = all;
    some.dim[1] = (int64_t)pl_shape_elems(&v->shape) / v->shape.dim[0];
    x = pl_emit_reshape(l, x, &base->shape, &all);
    x = pl_emit_slice(l, x, 1, v->view_offset, v->view_offset + some.dim[1]);
    return pl_emit_reshape(l, x, &some, &v->shape);
}

static const char *window(pl_lowering *l, pl_id id)
{
    const pl_value *v = &l->o.graph->value[id], *base = &l->o.graph->value[v->view_of];
    const char *x = pl_lower_value(l, v->view_of);
    int64_t first = 0;
    if (!v->tile && v->view_offset == 0 && pl_value_is_contiguous(v) && pl_value_is_contiguous(base) &&
        pl_shape_elems(&v->shape) == pl_shape_elems(&base->shape))
        return pl_emit_reshape(l, x, &base->shape, &v->shape);
    const int axis = v->tile ? -1 : window_axis(v, base, &first);
    if (axis >= 0) return pl_emit_slice(l, x, axis, first, first + v->shape.dim[axis]);
    if (!v->tile && is_stretch(v, base)) return stretch(l, x, v, base);
    if (l->status == PL_OK)
        l->status = pl_fail(l->err, PL_E_UNSUPPORTED,
                            "%.200s cannot be exported to ONNX: it is a window of several dimensions", v->name);
    return "";
}

const char *pl_lower_value(pl_lowering *l, pl_id id)
{
    if (id == PL_NONE) return NULL;
    if (l->status != PL_OK) return "";
    const pl_value *v = &l->o.graph->value[id];
    if (l->name[id]) return l->name[id];
    if (v->view_of != PL_NONE)
        l->name[id] = window(l, id);
    else if (v->program == PL_NONE && v->update_of == PL_NONE)
        l->name[id] = lasting(l, id);
    if (!l->name[id] && l->status == PL_OK)
        l->status = pl_fail(l->err, PL_E_UNSUPPORTED,
                            "%.200s cannot be exported to ONNX: whoever runs the program has to give it", v->name);
    return l->name[id] ? l->name[id] : "";
}

const pl_shape *pl_lower_shape(const pl_lowering *l, pl_id value) { return &l->o.graph->value[value].shape; }

const char *pl_lower_transposed(pl_lowering *l, pl_id matrix)
{
    if (l->status != PL_OK) return "";
    if (!l->turned[matrix])
        l->turned[matrix] = pl_emit_transpose(l, pl_lower_value(l, matrix), 2, (const int64_t[]){1, 0});
    return l->turned[matrix];
}

void pl_lower_output(pl_lowering *l, const pl_node *n, pl_id output, const char *name)
{
    if (output == PL_NONE || l->status != PL_OK) return;
    if (l->o.graph->value[output].view_of != PL_NONE)
        pl_lower_refuse(l, n, "it writes into a window");
    else
        l->name[output] = name;
}

/* ---- what comes in and goes out ---- */

static bool take_dims(pl_lowering *l, const pl_node *n, const pl_shape *s, pl_onnx_port *to)
{
    to->rank = s->rank;
    for (uint32_t i = 0; i < s->rank; i++) {
        const bool is_batch = s->symbolic >> i & 1;
        if (is_batch && s->dim[i] != 1) return pl_lower_refuse(l, n, "a dimension is several times the batch"), false;
        to->dim[i] = is_batch ? PL_ONNX_BATCH : s->dim[i];
    }
    return true;
}

/* How many colours a port's pictures have: their reader says so where they have no such dimension. */
static int64_t channels_of(const pl_graph *g, pl_id id)
{
    const pl_shape *s = &g->value[id].shape;
    if (s->rank == 4) return s->dim[3];
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_PATCHES && g->node[i].patches.image == id) return g->node[i].patches.channels;
    return 1;
}

static void take_given(pl_lowering *l)
{
    const pl_face_port *face = &l->o.face->given.as;
    const pl_id id = l->o.face->given.value ? pl_graph_find_value(l->o.graph, l->o.face->given.value) : PL_NONE;
    const pl_node none = {.op = PL_OP_LOAD, .scope = ""};
    if (id == PL_NONE || !l->wanted[id]) return;
    pl_onnx_port *p = &l->input[l->inputs];
    *p = (pl_onnx_port){.name = face->name, .meaning = face->meaning, .dtype = PL_ONNX_F32};
    if (!take_dims(l, &none, &l->o.graph->value[id].shape, p)) return;
    l->inputs++;
    l->name[id] = face->name;
}

static void take_port(pl_lowering *l, const pl_node *n, int k)
{
    const pl_id id = n->load.port[k];
    const pl_value *v = &l->o.graph->value[id];
    const pl_face_port *face = &l->o.face->in[k];
    pl_onnx_port *p = &l->input[l->inputs];
    if (!face->name) return pl_lower_refuse(l, n, "it reads more of the data than a model is given");
    *p = (pl_onnx_port){.name = face->name, .meaning = face->meaning, .dtype = PL_ONNX_F32};
    if (v->dtype == PL_DTYPE_I32 || v->dtype == PL_DTYPE_I64) p->dtype = PL_ONNX_I64;
    if (!take_dims(l, n, &v->shape, p)) return;
    if (v->dtype == PL_DTYPE_U8) { /* pictures */
        p->rank = 4;
        p->dim[2] = v->shape.dim[1], p->dim[3] = v->shape.dim[2];
        p->dim[1] = channels_of(l->o.graph, id);
    }
    l->inputs++;
    l->name[id] = face->name;
}

_Static_assert((int)PL_FACE_IN_MAX <= (int)PL_OUTS_OF_LOAD && (int)PL_FACE_STORED_MAX <= (int)PL_INS_OF_STORE,
               "what has a name outside has a port");

void pl_lower_load(pl_lowering *l, const pl_node *n)
{
    const pl_id *port = n->load.port;
    for (int k = 0; k < PL_FACE_IN_MAX && port[k] != PL_NONE; k++)
        if (l->wanted[port[k]] && l->status == PL_OK) take_port(l, n, k);
}

void pl_lower_give_out(pl_lowering *l, const pl_face_port *face, const char *x, const pl_shape *s, pl_dtype dtype)
{
    const pl_node none = {.op = PL_OP_STORE, .scope = l->scope};
    pl_onnx_port p = {.name = face->name, .meaning = face->meaning, .dtype = PL_ONNX_F32};
    const char *out = pl_emit(l, "Identity", NULL, PL_IN(x));
    if (l->status != PL_OK || !take_dims(l, &none, s, &p)) return;
    (void)out;
    if (!pl_dtype_is_real(dtype)) p.dtype = PL_ONNX_I64;
    l->node[l->nodes - 1].out[0] = face->name;
    l->output[l->outputs++] = p;
}

void pl_lower_store(pl_lowering *l, const pl_node *n)
{
    if (is_back(n)) return;
    const pl_id *port = n->store.port;
    for (int k = 0; k < PL_FACE_STORED_MAX && port[k] != PL_NONE; k++) {
        const pl_value *v = &l->o.graph->value[port[k]];
        if (l->o.face->stored[k].name)
            pl_lower_give_out(l, &l->o.face->stored[k], pl_lower_value(l, port[k]), &v->shape, v->dtype);
    }
}

/* ---- the walk ---- */

/* A region repeated for each micro-batch appears once; other repetition is not unrolled. */
static bool is_once(pl_lowering *l, const pl_node *n)
{
    for (pl_id r = n->region; r != PL_NONE; r = l->o.graph->region[r].parent)
        if (l->o.graph->region[r].trip > 1) return false;
    return true;
}

/* What the data might supply instead is always computed. */
static bool is_made_always(const pl_lowering *l, const pl_node *n)
{
    if (n->predicate == PL_NONE) return true;
    const pl_id by = l->o.graph->value[n->predicate].producer;
    return by != PL_NONE && l->o.graph->node[by].op == PL_OP_LOAD;
}

static void lower_node(pl_lowering *l, size_t at)
{
    const pl_node *n = &l->o.graph->node[at];
    bool is_read = n->op == PL_OP_STORE || l->judged[at].name;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++) is_read |= n->out[k] != PL_NONE && l->wanted[n->out[k]];
    if (!is_read) return;
    l->scope = n->scope;
    if (!rows[n->op].lower) return pl_lower_refuse(l, n, "there is no lowering of it");
    if (!is_once(l, n)) return pl_lower_refuse(l, n, "it is repeated");
    if (!is_made_always(l, n)) return pl_lower_refuse(l, n, "it runs on a condition");
    rows[n->op].lower(l, n);
}

static pl_status find_program(const pl_lowering *l, pl_id *program, pl_error *err)
{
    *program = pl_graph_find_program(l->o.graph, l->o.face->program);
    if (*program != PL_NONE) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "this config is of a model (or a part of one) that is not exported to ONNX: it has no program "
                   "\"%s\"; `format` safetensors exports its weights",
                   l->o.face->program);
}

static pl_status lower(pl_lowering *l, pl_error *err)
{
    const pl_graph *g = l->o.graph;
    pl_id program;
    PL_TRY(find_program(l, &program, err));
    l->name = pl_pool_alloc(l->pool, g->value_count, sizeof *l->name);
    l->turned = pl_pool_alloc(l->pool, g->value_count, sizeof *l->turned);
    l->wanted = pl_pool_alloc(l->pool, g->value_count, sizeof *l->wanted);
    l->judged = pl_pool_alloc(l->pool, g->node_count, sizeof *l->judged);
    if (!l->name || !l->turned || !l->wanted || !l->judged) return pl_lower_nomem(l), l->status;
    find_wanted(l, program);
    take_given(l);
    for (size_t i = 0; i < g->node_count && l->status == PL_OK; i++)
        if (is_of_program(l, &g->node[i], program)) lower_node(l, i);
    if (l->status == PL_OK && l->outputs == 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "the program \"%s\" of this model gives nothing out that could be "
                       "exported to ONNX; `format` safetensors exports its weights",
                       l->o.face->program);
    return l->status;
}

pl_status pl_lower(const pl_lower_options *o, pl_lowering **lowering, pl_error *err)
{
    pl_lowering *l = *lowering = pl_alloc(1, sizeof *l);
    if (!l) return pl_fail(err, PL_E_NOMEM, "no memory to export the model");
    l->o = *o;
    l->scope = "";
    l->err = err;
    l->pool = pl_pool_create();
    if (!l->pool) return pl_fail(err, PL_E_NOMEM, "no memory to export the model");
    return lower(l, err);
}

void pl_lowering_destroy(pl_lowering *l)
{
    if (!l) return;
    pl_pool_destroy(l->pool);
    pl_free(l->node);
    pl_free(l->tensor);
    pl_free(l);
}

pl_onnx_model pl_lowering_model(const pl_lowering *l)
{
    return (pl_onnx_model){.name = l->o.name,
                           .opset = PL_ONNX_OPSET,
                           .node = l->node,
                           .nodes = l->nodes,
                           .tensor = l->tensor,
                           .tensors = l->tensors,
                           .input = l->input,
                           .inputs = l->inputs,
                           .output = l->output,
                           .outputs = l->outputs};
}

size_t pl_lowering_held_bytes(const pl_lowering *l)
{
    return pl_pool_bytes(l->pool) + l->node_capacity * sizeof *l->node + l->tensor_capacity * sizeof *l->tensor;
}
