/* Where the weights of an exported model come from. */
#ifndef PL_API_EXPORT_H
#define PL_API_EXPORT_H

#include "api/api.h"
#include "export/export.h"
#include "plimsoll/export.h"
#include "run/program.h"
#include "run/session_impl.h"

/* What signs are packed into, and how it is called. */
typedef struct pl_export_bits {
    void *packed;
    char name[256];
} pl_export_bits;
typedef struct pl_export_binary {
    pl_export_bits *of;
    size_t count;
    uint64_t bytes;
} pl_export_binary;

/* Begins zeroed; ends with deinit, whatever was returned. */
typedef struct pl_export_weights {
    pl_lower_weight *of; /* [values of the graph] of those that are saved with a model */
    pl_st_entry *model, *state;
    size_t models, states; /* model: all of them, with their places */
    size_t packed; /* of them, weights in 8 bits in the file that the config names: set by who built the graph so */
    uint64_t held_bytes, planned_bytes; /* planned: all that the process holds at most */
    const pl_config *config;
    const pl_graph *graph;
    pl_export_binary binary;
    char from[1100], warning[PL_ERROR_TEXT_BYTES];
    pl_plan *plan; /* of the program that makes first values */
    pl_program *program;
    void *arena;
    uint64_t arena_bytes;
    pl_saved saved;
} pl_export_weights;

/* graph: with its program "init", not bound; it stays as it is. */
pl_status pl_export_find_weights(const pl_config *, const pl_export_options *, const pl_settings *, const pl_data *,
                                 const pl_graph *, pl_export_weights *, pl_error *);
/* Weights in 8 bits lie as products here read them; now they lie as matrices, and only ONNX can be written. */
pl_status pl_export_unpack(const pl_graph *, pl_export_weights *, pl_error *);
void pl_export_weights_deinit(pl_export_weights *);
/* export_binary.c: latent weights become their bits; the graph still has them as they were. */
pl_status pl_export_pack_binary(const pl_config *, const pl_graph *, pl_export_weights *, pl_error *);
void pl_export_binary_deinit(pl_export_binary *);

#endif
