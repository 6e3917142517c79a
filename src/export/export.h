/* Models for other programs: the inference program of a graph as nodes of ONNX, and that as a file.
 *
 * Lowering walks the program and hands each node to the function of its operator (lowerings.def). What ONNX computes in
 * is f32, whatever precision the graph has; weights are stored as they are and widened by the graph. A weight is one
 * initialiser, however often it is read. Pictures, which are bytes here, are f32 planes [batch, channels, height,
 * width] from 0 to 1 there.
 *
 * Nothing copies a weight: tensors point at where the caller has them, and the file is written from there. */
#ifndef PL_EXPORT_EXPORT_H
#define PL_EXPORT_EXPORT_H

#include "base/error.h"
#include "ir/face.h"
#include "export/onnx_module.h"
#include "ir/graph.h"

enum { PL_ONNX_OPSET = 17 };

/* ---- lower.c ---- */

typedef struct pl_lowering pl_lowering;

/* The numbers of a value that lasts, as they are stored: 16 bits may stand for the 32 of the graph. */
typedef struct pl_lower_weight {
    const void *data; /* NULL: it has none */
    pl_dtype dtype;
    /* Of a matrix in 8 bits, which linear_int8 reads, that of each column: then data are its numbers [in, out], s8,
     * whatever the value's shape is here. NULL: it is none. */
    const float *scale;
} pl_lower_weight;

typedef struct pl_lower_options {
    const pl_graph *graph; /* the forward graph as the model builds it: not bound, not rewritten */
    const pl_face *face;
    const char *name;               /* of the model */
    const pl_lower_weight *weights; /* [values] */
} pl_lower_options;

/* The graph, the data and the face must outlive the lowering. PL_E_UNSUPPORTED names the operator that ONNX has nothing
 * for. */
pl_status pl_lower(const pl_lower_options *, pl_lowering **, pl_error *);
void pl_lowering_destroy(pl_lowering *); /* NULL is fine */
pl_onnx_model pl_lowering_model(const pl_lowering *);
size_t pl_lowering_held_bytes(const pl_lowering *);

/* ---- write.c ---- */

typedef struct pl_export_file {
    const char *path;
    bool outside; /* weights go into a file of their own beside it, PATH.data; a model that a file of protocol buffers
                      cannot hold (2 GB) is written so in any case */
    const pl_onnx_text *text;
    size_t texts;
} pl_export_file;

typedef struct pl_export_sizes {
    uint64_t model_bytes, data_bytes; /* of the two files; data 0: there is one */
    uint64_t nodes, tensors, weight_bytes;
    uint64_t held_bytes; /* memory that writing took, beside the lowering */
    bool has_other_data; /* PATH.data is there and this model does not read it: it is an earlier one's, or anybody's */
} pl_export_sizes;

/* Each file is whole or not there. PL_E_STORAGE; PL_E_UNSUPPORTED where the module of ONNX cannot be loaded. */
pl_status pl_export_write_onnx(const pl_lowering *, const pl_export_file *, pl_export_sizes *, pl_error *);
/* The module alone: what would be missing is said before any work is done. */
pl_status pl_export_check_onnx(pl_error *);

#endif
