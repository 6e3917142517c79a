/* What the module plimsoll-onnx.so offers: a model as ONNX's protocol buffer, written by protobuf-c with ONNX's own
 * schema. It is loaded by who exports, and by nothing else, so no page of libprotobuf-c is in a process that runs.
 * Plain values: the module is compiled from modules/onnx.c alone and links nothing of src/. */
#ifndef PL_EXPORT_ONNX_MODULE_H
#define PL_EXPORT_ONNX_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_ONNX_FILE   "plimsoll-onnx.so"
#define PL_ONNX_SYMBOL "pl_onnx_functions"
enum {
    PL_ONNX_VERSION = 2,
    PL_ONNX_RANK_MAX = 6,
    PL_ONNX_IN_MAX = 10,
    PL_ONNX_OUT_MAX = 4,
    PL_ONNX_ATTRIBUTES_MAX = 5
};

/* TensorProto.DataType; the module holds these numbers against the schema's when it is compiled. */
typedef enum pl_onnx_dtype {
    PL_ONNX_F32 = 1,
    PL_ONNX_U8 = 2,
    PL_ONNX_I8 = 3,
    PL_ONNX_I32 = 6,
    PL_ONNX_I64 = 7,
    PL_ONNX_F16 = 10,
    PL_ONNX_F64 = 11,
    PL_ONNX_BF16 = 16
} pl_onnx_dtype;

#define PL_ONNX_BATCH (-1) /* in place of a size: the batch, a size of the caller's */

typedef struct pl_onnx_attribute {
    const char *name; /* NULL: behind the last */
    char kind;        /* 'i' a whole number, 'f' a real one, 's' a text, 'l' a list of whole numbers */
    int64_t i;
    float f;
    const char *s;
    int64_t list[PL_ONNX_RANK_MAX];
    size_t count;
} pl_onnx_attribute;

/* An input that is not given is "". */
typedef struct pl_onnx_node {
    const char *op, *name;
    const char *in[PL_ONNX_IN_MAX], *out[PL_ONNX_OUT_MAX];
    size_t ins, outs;
    pl_onnx_attribute attribute[PL_ONNX_ATTRIBUTES_MAX];
    size_t attributes;
} pl_onnx_node;

typedef struct pl_onnx_tensor {
    const char *name;
    pl_onnx_dtype dtype;
    uint32_t rank;
    int64_t dim[PL_ONNX_RANK_MAX];
    const void *data; /* row-major; nothing copies it */
    uint64_t bytes;
    const char *location; /* NULL: its bytes are in the model; else the name of the file beside it that has them, */
    uint64_t offset;      /* and where */
} pl_onnx_tensor;

/* An input or output of the model. */
typedef struct pl_onnx_port {
    const char *name;
    pl_onnx_dtype dtype;
    uint32_t rank;
    int64_t dim[PL_ONNX_RANK_MAX];
    const char *meaning; /* what stands beside it for a reader, or NULL */
} pl_onnx_port;

typedef struct pl_onnx_text {
    const char *key, *value;
} pl_onnx_text;

typedef struct pl_onnx_model {
    const char *name, *meaning, *producer, *producer_version;
    int64_t opset;
    const pl_onnx_node *node;
    const pl_onnx_tensor *tensor;
    const pl_onnx_port *input, *output;
    const pl_onnx_text *text;
    size_t nodes, tensors, inputs, outputs, texts;
} pl_onnx_model;

/* Takes so many bytes of the file, which come from its first to its last; anything but 0 means that there was no room
 * for them, and nothing more is of use. */
typedef int pl_onnx_sink(void *context, const void *data, size_t bytes);

/* Functions give 0, or -1 where memory was refused. */
typedef struct pl_onnx_module {
    uint32_t version;
    /* Bytes of the file, those of tensors in the model included; and of memory that it takes to say so and to write. */
    int (*measure)(const pl_onnx_model *, uint64_t *bytes, uint64_t *held);
    int (*write)(const pl_onnx_model *, pl_onnx_sink *, void *context);
} pl_onnx_module;

#endif
