/* Private to this folder: the functions that lower operators, and their tools. Failures are kept: after the first every
 * call gives "" and does nothing, so a lowering reads as straight code. */
#ifndef PL_EXPORT_LOWER_H
#define PL_EXPORT_LOWER_H

#include "base/activation.h"
#include "export/export.h"
#include "ir/op.h"

typedef struct pl_lower_row {
    void (*lower)(pl_lowering *, const pl_node *);
    uint32_t scores; /* a loss's: bits of the inputs that make what it judges, which its lowering then outputs */
} pl_lower_row;

#define PL_LOWER_ROW(id, function, scores) void pl_lower_##function(pl_lowering *, const pl_node *);
#include "export/lowerings.def"
#undef PL_LOWER_ROW

/* The mask of causal attention over so many tokens. */
typedef struct pl_lower_mask {
    const char *name; /* NULL: there is none yet */
    int64_t tokens, window;
} pl_lower_mask;

struct pl_lowering {
    pl_lower_options o;
    pl_pool *pool;
    const char **name;    /* [values] its name in ONNX; NULL: none yet */
    const char **turned;  /* [values] a matrix's transpose */
    bool *wanted;         /* [values] an output depends on it */
    pl_face_port *judged; /* [nodes] a loss's: the port of what it judges */
    pl_onnx_node *node;
    pl_onnx_tensor *tensor;
    pl_onnx_port input[PL_FACE_IN_MAX + 1], output[PL_FACE_STORED_MAX + PL_FACE_SCORED_MAX];
    size_t nodes, tensors, inputs, outputs, node_capacity, tensor_capacity;
    pl_lower_mask mask[2]; /* the last one without a window, and with one */
    const char *scope; /* of the node being lowered */
    pl_status status;
    pl_error *err;
};

/* ---- emit.c: nodes of ONNX ---- */
#define PL_INT(key, number)                                                                                            \
    {                                                                                                                  \
        .name = key, .kind = 'i', .i = (number)                                                                        \
    }
#define PL_REAL(key, number)                                                                                           \
    {                                                                                                                  \
        .name = key, .kind = 'f', .f = (float)(number)                                                                 \
    }
#define PL_TEXT(key, text)                                                                                             \
    {                                                                                                                  \
        .name = key, .kind = 's', .s = (text)                                                                          \
    }
#define PL_LIST(key, n, ...)                                                                                           \
    {                                                                                                                  \
        .name = key, .kind = 'l', .list = {__VA_ARGS__}, .count = (n)                                                  \
    }
#define PL_ATTRIBUTES(...) ((const pl_onnx_attribute[]){__VA_ARGS__, {.name = NULL}})

/* A node of one output, whose name is returned; inputs end with NULL. attributes: end with a nameless one, or NULL. */
const char *pl_emit(pl_lowering *, const char *op, const pl_onnx_attribute *, const char *const *in);
/* Likewise, a node of several outputs. */
void pl_emit_many(pl_lowering *, const char *op, const pl_onnx_attribute *, const char *const *in, size_t outs,
                  const char **out);
#define PL_IN(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Constants, each kind and content once. */
const char *pl_emit_number(pl_lowering *, double);                          /* f32 [] */
const char *pl_emit_numbers(pl_lowering *, size_t count, const float *);    /* f32 [count] */
const char *pl_emit_table(pl_lowering *, const pl_shape *, const float *);  /* f32 of that shape */
const char *pl_emit_zero_point(pl_lowering *, uint8_t);                     /* u8 [] */
const char *pl_emit_integer(pl_lowering *, int64_t);                        /* i64 [] */
const char *pl_emit_integers(pl_lowering *, size_t count, const int64_t *); /* i64 [count] */

const char *pl_emit_transpose(pl_lowering *, const char *x, size_t rank, const int64_t *order);
/* Reshapes a value of shape `from`; where both shapes begin with the batch, it stays the batch. */
const char *pl_emit_reshape(pl_lowering *, const char *x, const pl_shape *from, const pl_shape *to);
const char *pl_emit_slice(pl_lowering *, const char *x, int64_t axis, int64_t first, int64_t end);
const char *pl_emit_activation(pl_lowering *, const char *x, pl_activation);
const char *pl_emit_add(pl_lowering *, const char *x, const char *y); /* y NULL: x */

/* ---- lower.c: values ---- */
/* A further tensor of the model; the numbers are not copied. False when memory is refused. */
bool pl_lower_add_tensor(pl_lowering *, const pl_onnx_tensor *);
/* The value's name in ONNX; NULL for PL_NONE. */
const char *pl_lower_value(pl_lowering *, pl_id value);
const char *pl_lower_transposed(pl_lowering *, pl_id matrix); /* two-dimensional */
/* An output of the node, unless it is PL_NONE. */
void pl_lower_output(pl_lowering *, const pl_node *, pl_id output, const char *name);
/* A further output of the model, under the name of the port. */
void pl_lower_give_out(pl_lowering *, const pl_face_port *, const char *x, const pl_shape *, pl_dtype);
const pl_shape *pl_lower_shape(const pl_lowering *, pl_id value);
/* PL_E_UNSUPPORTED: the operator in that scope, and why. */
void pl_lower_refuse(pl_lowering *, const pl_node *, const char *why);
bool pl_lower_nomem(pl_lowering *); /* notes that memory was refused; returns false */

#endif
