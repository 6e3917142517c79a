/* The passes in their order, once: product, tests and benchmarks all come here. */
#ifndef PL_REWRITE_PASSES_H
#define PL_REWRITE_PASSES_H

#include "rewrite/rewrite.h"

typedef enum pl_pass {
    /* what gives the graph its form: which nodes there are to be computed again depends on it */
    PL_PASS_SHARE_SUMS,
    PL_PASS_PRECISION,
    PL_PASS_CHUNK,
    PL_PASS_LAYER_MAJOR,
    PL_PASS_FROZEN_STORAGE,
    /* what is carried out on that form */
    PL_PASS_RECOMPUTE,
    PL_PASS_OPTIMIZER_STATE,
    PL_PASS_DROP_UNREAD,
    PL_PASS_FUSE,
    PL_PASS_INT8_HIDDEN,
    PL_PASS_BIND_BATCH,
    PL_PASS_UPDATE_ORDER,
    PL_PASS_IN_PLACE,
    PL_PASS_MARK_SAVED,
    PL_PASS_COUNT
} pl_pass;

typedef enum pl_recompute_rule {
    PL_RECOMPUTE_NOTHING,
    PL_RECOMPUTE_CHEAP,
    PL_RECOMPUTE_FULL,
    PL_RECOMPUTE_LISTED, /* `decision` says what */
} pl_recompute_rule;

/* What is to be done, to programs that are trained, that load data or that have a batch (ir/properties.h), whatever
 * they are called. All zero but micro_batch and trips: as the model is. */
typedef struct pl_rewrites {
    int64_t micro_batch; /* samples at once */
    uint64_t trips;      /* micro-batches of a step */
    bool shared_sums;    /* of the gradients of weights that several nodes read */
    pl_dtype precision;  /* of activations while training, or throughout where nothing is trained */
    int64_t feed_forward_rows;
    int64_t convolution_limit;             /* numbers of a sample; 0: none */
    int64_t layer_major, layer_major_keep; /* as in pl_layer_major; layer_major 0: not */
    pl_recompute_rule recompute;
    const pl_recompute_decision *decision;
    pl_dtype moments; /* PL_DTYPE_F32: as they are */
    pl_dtype frozen;  /* likewise, of frozen matrices */
    bool update_early;
    uint32_t without; /* bits of passes that are left out, for who compares with and without */
    /* NULL, or called behind each pass. */
    void (*after)(void *context, pl_pass, pl_graph *);
    void *context;
} pl_rewrites;

/* Passes first … end − 1; [0, PL_PASS_RECOMPUTE) is the form, [0, PL_PASS_COUNT) all. The graph is differentiated, or
 * never to be. What it cannot bear is the caller's to find out before (pl_rewrite_…_possible). */
pl_status pl_rewrite_passes(pl_graph *, const pl_rewrites *, pl_pass first, pl_pass end, pl_error *);
const char *pl_pass_name(pl_pass);

#endif
