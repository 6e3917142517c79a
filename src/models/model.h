/* From a config to the forward graph of a command: the arch of the config builds its programs into one graph (its file
 * here says which), of layers (layers/layers.h). What every arch keeps to:
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
#include "layers/layers.h"

/* extents: what shapes depend on and the data alone know ("vocab"). The caller destroys the graph. */
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
    const char *too;   /* likewise of another part that lies there; NULL: no other */
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
    pl_net net;
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

/* What model.activation and model.binary say. */
pl_activation pl_model_activation_of(pl_config_activation);
bool pl_model_is_binary(const pl_config *);

/* Makes the inputs, first of all, in this order. */
void pl_model_inputs(pl_model *, const pl_input *, int count);
/* m->net.b begins a program of that name; the program, or PL_NONE. */
pl_id pl_model_begin_program(pl_model *, const char *name);

/* A port of the data, in the order in which the source has them: NAME.port of a micro-batch. */
typedef struct pl_model_port {
    const char *name;
    pl_dtype dtype;
    pl_shape shape; /* PL_B(1) samples, and what one of them is */
} pl_model_port;
/* The output "NAME.loss" of the program NAME, f64 [1]: 0 at its beginning. */
pl_id pl_model_loss(pl_model *, const char *program_name);
/* Loads the ports of the data, in the program, or in what it repeats; load[k]: port k. */
pl_status pl_model_load(pl_model *, const pl_model_port *, size_t ports, pl_id load[]);
/* From here on m->net.b builds what the program repeats for each micro-batch, which begins with a load. */
pl_status pl_model_begin_micro(pl_model *, pl_id program, const pl_model_port *, size_t ports, pl_id load[]);

#endif
