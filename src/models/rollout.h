/* Operators that are iterated from a field: what the archs of the system rollout have in common. One graph holds three
 * programs:
 *
 *   init    the weights of the operator whose number is input.item: its random weights are what it is
 *   begin   a first state, its parameters and ids from the data; its metrics; all that is known of state 0 is stored
 *   step    state t from state t − 1, where t + 1 is input.step: network, noise, policy; likewise metrics, stored
 *
 * What lasts between them: "state" f32 [B,H,W,3], "parameters" f32 [B,PL_ROLLOUT_COLUMNS], "ids" i64 [B,PL_ROLLOUT_IDS]
 * (base/rollout.h). Where features of operators are wanted, or for export, there is also
 *
 *   features  the answer of the network, without its noise, to what stands in "state": it alone is stored
 *
 * Ports of the data, in this order, and of what is stored: state, metrics f32 [B,PL_FIELD_METRICS].
 * It takes from the data the extents "num_layers", "base_channels", "kernel_size", "grid_size" (each arch those whose
 * rows in config/sections/parameter_space.def name it); "activation", a pl_activation; "normalization", a
 * pl_rollout_norm; "precision", a pl_dtype; "correlated": may noise be? "dropout": are channels dropped? "convolution":
 * 0 by rule, else one more than a pl_convolution_algorithm; "seed"; "features" and "witness" where they are wanted. */
#ifndef PL_MODELS_ROLLOUT_H
#define PL_MODELS_ROLLOUT_H

#include "base/rollout.h"
#include "models/model.h"

enum { PL_ROLLOUT_CHANNELS = 3 };
/* BATCH: as evaluation has it, with the statistics that were kept. Nothing was trained, so these are mean 0 and
 * variance 1, and no realisation sees the others of its batch. */
typedef enum pl_rollout_norm { PL_ROLLOUT_NORM_INSTANCE, PL_ROLLOUT_NORM_GROUP, PL_ROLLOUT_NORM_BATCH } pl_rollout_norm;

typedef struct pl_rollout pl_rollout;
struct pl_rollout {
    pl_model *m;
    int64_t layers, channels, kernel, grid;
    pl_activation activation;
    pl_rollout_norm norm;
    pl_dtype precision;  /* of the network's weights and features */
    int64_t convolution; /* pl_convolution_algorithm where a shape allows it; −1: by the shape's rule */
    pl_id state, parameters, ids;
    bool silent;        /* the network is built without its noise */
    pl_id quiet, noisy; /* the features before the noise and with it; where a witness is wanted they are stored, too */
    /* x [B,H,W,3] in the network's precision → its output, likewise. */
    pl_id (*network)(pl_rollout *, pl_id x);
};

pl_status pl_rollout_build(pl_rollout *);

/* The noise block, on the features before the output; x itself where the network is silent. */
pl_id pl_rollout_noise(pl_rollout *, pl_id x);
/* Where the config asks for it: whole channels of what an activation gives are 0 with the probability of the row,
 * the others 1/(1 − p) times as large; else, and where the network is silent, x itself. The name keys its numbers. */
pl_id pl_rollout_dropout(const pl_rollout *, pl_id x, const char *name);
bool pl_rollout_drops(const pl_rollout *);

#endif
