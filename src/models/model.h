/* From a config to the forward graph of a command: the arch of the config builds its programs into one graph (its file
 * here says which), with the pieces below. What every arch keeps to:
 *
 *   - a program "init" gives every weight its first value;
 *   - inputs that whoever runs the programs writes are rows of ir/inputs.def;
 *   - data come out of a LOAD node in a region that is repeated once per micro-batch (batch extent B). */
#ifndef PL_MODELS_MODEL_H
#define PL_MODELS_MODEL_H

#include "base/facts.h"
#include "base/parts.h"
#include "config/config.h"
#include "ir/face.h"
#include "ir/index.h"
#include "ir/inputs.h"
#include "ir/op.h"

/* extents: what shapes depend on beside the config, and the data tell ("vocab"). The graph is the caller's to destroy.
 */
pl_status pl_model_build(const pl_config *, const pl_facts *extents, pl_graph **, pl_error *);

/* Do the numbers of the config make a model of its arch? PL_E_CONFIG. */
pl_status pl_model_check(const pl_config *, pl_error *);

/* What a process holds of its plan for each layer of this arch, at least. */
uint64_t pl_model_plan_bytes_per_layer(const pl_config *);

/* A part of a model that a training begins with from the folder of another run. The texts are constants or the
 * config's. */
typedef struct pl_model_part {
    const char *from;  /* that folder; NULL: there is no such part */
    const char *names; /* how the names of its tensors begin */
    const char *too;   /* likewise of another part that lies there, too; NULL: of none */
    const char *key;   /* of the config, which names the folder */
    const char *sizes; /* keys that say how large its tensors are: "denoiser.channels and denoiser.depth" */
} pl_model_part;

/* What is asked about a model beyond its graph, also by a process that runs a plan: all archs of a system share it
 * (families.c). */
typedef struct pl_family {
    pl_parts parts; /* of the program, that runs of these models call beyond what every run does (base/parts.h) */
    pl_face face;
    pl_command used_for; /* the command whose data its inference program takes */
    /* Does the config ask for little memory rather than for the quickest plan? Then, where neither a budget nor a key
     * says what is computed again, all is. NULL: it never does. */
    bool (*saves_memory)(const pl_config *);
    pl_model_part (*find_part)(const pl_config *); /* NULL: there is none */
    /* Can the model be run on what is not its training's, and has the face's program? PL_E_CONFIG; NULL: always. */
    pl_status (*check_used)(const pl_config *, pl_error *);
} pl_family;

const pl_family *pl_model_family(const pl_config *);

/* ---- within this folder ---- */

typedef struct pl_model {
    const pl_config *config;
    const pl_facts *extents;
    pl_error *err;
    pl_builder b;     /* of the program being built */
    pl_builder init;  /* of the init program: weights announce their first value there */
    pl_names lasting; /* weights and states */
    bool training;
    uint64_t seed;               /* of first values; train.seed unless the arch says another */
    pl_id input[PL_INPUT_COUNT]; /* PL_NONE: not made */
} pl_model;

/* One of systems.def. */
typedef struct pl_arch {
    /* All programs but "init", which the weights build on the way. */
    pl_status (*build)(pl_model *);
    /* What no single key can tell: PL_E_CONFIG. */
    pl_status (*check)(const pl_config *, pl_error *);
    uint64_t plan_bytes_per_layer; /* pl_model_plan_bytes_per_layer; measured for its smallest model, and halved */
} pl_arch;

#define PL_SYSTEM_ROW(id, name)
#define PL_ARCH_ROW(id, name, system) extern const pl_arch pl_arch_##name;
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW

/* Makes the inputs, first of all, in this order. */
void pl_model_inputs(pl_model *, const pl_input *, int count);
/* m->b begins a program of that name; the program, or PL_NONE. */
pl_id pl_model_begin_program(pl_model *, const char *name);

/* A port of the data, in the order in which the source has them: NAME.port of a micro-batch. */
typedef struct pl_model_port {
    const char *name;
    pl_dtype dtype;
    pl_shape shape; /* PL_B(1) samples, and what one of them is */
} pl_model_port;
/* The output "NAME.loss" of the program NAME, f64 [1]: 0 at its beginning. */
pl_id pl_model_loss(pl_model *, const char *program_name);
/* From here on m->b builds what the program repeats for each micro-batch; load[k]: port k of its data. */
pl_status pl_model_begin_micro(pl_model *, pl_id program, const pl_model_port *, size_t ports, pl_id load[]);
/* loss += Σ over the rows of h of the cross-entropy between softmax(weight·h) and the row's target, an id below the
 * number of rows of weight; −1 counts nothing. */
pl_id pl_model_cross_entropy(pl_model *, pl_id h, pl_id weight, pl_id targets, pl_id loss);

/* loss += Σ over the samples of what base/regression.h says, by the keys of the config; an item whose target is not a
 * number counts nothing. While training the hardest items of the batch may count more. */
pl_id pl_model_regression_loss(pl_model *, pl_id prediction, pl_id target, pl_id loss);

typedef enum pl_model_init { PL_INIT_NORMAL, PL_INIT_PROJECTION, PL_INIT_ZERO, PL_INIT_ONE } pl_model_init;

/* A weight by name: made, with its init node, the first time it is asked for; the same one afterwards. PROJECTION is a
 * normal whose deviation shrinks with depth (1/√(2·layers)): for the matrices that write into the residual stream. */
pl_id pl_model_weight(pl_model *, pl_model_init, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
/* Likewise from N(0, std²), and all alike. */
pl_id pl_model_normal(pl_model *, double std, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
pl_id pl_model_constant(pl_model *, double value, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
/* Likewise no weight but lasting state that evaluating needs, and that is saved with the weights. */
pl_id pl_model_state(pl_model *, double value, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
/* The same, uniform from low to high. */
pl_id pl_model_uniform_state(pl_model *, double low, double high, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
/* Likewise what training alone goes on with, saved beside the moments: all alike (0, but for f32), or a copy. */
pl_id pl_model_carried(pl_model *, pl_dtype, double value, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
pl_id pl_model_carried_copy(pl_model *, pl_id of, const char *fmt, ...) PL_PRINTF(3, 4);
/* Likewise one that may be of 16 bits, normal and cut at two deviations (truncated_normal), std what is left of it. */
pl_id pl_model_truncated(pl_model *, pl_dtype, double std, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
/* Likewise one that may be of 16 bits, uniform from low to high, for the item whose number is the input ITEM, where
 * that is made. */
pl_id pl_model_uniform(pl_model *, pl_dtype, double low, double high, pl_shape, const char *fmt, ...) PL_PRINTF(6, 7);
/* The same numbers, all of them and in their order, in another shape; of a weight [out, ...] as the matrix [out, rest];
 * and columns first … first + count − 1 of [B,T,width]. */
pl_id pl_model_view(pl_model *, pl_id x, pl_shape);
pl_id pl_model_as_matrix(pl_model *, pl_id weight);
pl_id pl_model_columns(pl_model *, pl_id x, int64_t first, int64_t count);
pl_id pl_model_linear(pl_model *, pl_id x, pl_id weight, pl_id bias, pl_id residual);
/* binary.c: the same of a matrix of the blocks, whose signs alone are multiplied where model.binary says so; and is it
 * so? */
pl_id pl_model_block_linear(pl_model *, pl_id x, pl_id weight, pl_id bias, pl_id residual);
bool pl_model_is_binary(const pl_config *);
/* binary.c: what is made once a step comes in front of what is repeated. */
pl_status pl_model_put_packing_first(pl_graph *, pl_error *);
pl_activation pl_model_activation_of(pl_config_activation);
pl_id pl_model_activation(pl_model *, pl_id x);
/* Norm over the last dimension, of the kind the config says; weights NAME.weight (and NAME.bias). */
pl_id pl_model_norm(pl_model *, pl_id x, const char *name);
/* From here on the weight is not trained, where `frozen` says so. */
pl_id pl_model_freeze(pl_model *, bool frozen, pl_id weight);
/* Likewise all weights there are whose names begin so. */
void pl_model_freeze_all(pl_model *, const char *prefix);
/* Of random numbers: that of the scope, or ("" or a name) of one part of what it makes. */
int64_t pl_model_stream(const pl_model *, const char *part);
/* residual + dropout(x), with this probability. */
pl_id pl_model_drop(pl_model *, double probability, pl_id x, pl_id residual);
/* residual + dropout(x); without dropout (or outside training) residual + x, by an add node. */
pl_id pl_model_dropout(pl_model *, pl_id x, pl_id residual);
bool pl_model_drops(const pl_model *);

#endif
