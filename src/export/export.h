/* Models for other programs: the inference program of a graph as nodes of ONNX, and that as a file.
 *
 * Lowering walks the program and hands each node to the function of its operator (lowerings.def). The ONNX model
 * computes in f32, whatever precision the graph has; weights are stored as they are, and widened by ONNX nodes. A
 * weight is one initialiser, however often it is read. Pictures, bytes in the graph, become f32 planes [batch,
 * channels, height, width] from 0 to 1.
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

/* The numbers of a persistent value, as they are stored: perhaps in 16 bits where the graph has 32. */
typedef struct pl_lower_weight {
    const void *data; /* NULL: it has no data */
    pl_dtype dtype;
    /* Each column's scale, for an 8-bit matrix that linear_int8 reads: then data are its numbers [in, out], s8,
     * whatever the value's shape is here. NULL for any other. */
    const float *scale;
} pl_lower_weight;

typedef struct pl_lower_options {
    const pl_graph *graph; /* the forward graph as the model builds it: not bound, not rewritten */
    const pl_face *face;
    const char *name;               /* the model's */
    const pl_lower_weight *weights; /* [values] */
} pl_lower_options;

/* The graph, the data and the face must outlive the lowering. PL_E_UNSUPPORTED names the operator for which ONNX has no
 * equivalent. */
pl_status pl_lower(const pl_lower_options *, pl_lowering **, pl_error *);
void pl_lowering_destroy(pl_lowering *); /* NULL is fine */
pl_onnx_model pl_lowering_model(const pl_lowering *);
size_t pl_lowering_held_bytes(const pl_lowering *);

/* ---- write.c ---- */

typedef struct pl_export_file {
    const char *path;
    bool outside; /* weights go into a file of their own next to it, PATH.data; a model that a file of protocol buffers
                      cannot hold (2 GB) is written so in any case */
    const pl_onnx_text *text;
    size_t texts;
} pl_export_file;

typedef struct pl_export_sizes {
    uint64_t model_bytes, data_bytes; /* of the two files; data 0: there is only one */
    uint64_t nodes, tensors, weight_bytes;
    uint64_t held_bytes; /* memory that writing took, in addition to the lowering */
    bool has_other_data; /* PATH.data exists and this model does not read it: an earlier model's, or a foreign file */
} pl_export_sizes;

/* Each file is whole or absent. PL_E_STORAGE; PL_E_UNSUPPORTED where the module of ONNX cannot be loaded. */
pl_status pl_export_write_onnx(const pl_lowering *, const pl_export_file *, pl_export_sizes *, pl_error *);
/* Only checks for the module, so that a missing one is reported before any work is done. */
pl_status pl_export_check_onnx(pl_error *);

#endif
