/* What only an arch can tell of a config: whether its numbers go together, and whether a model and its activations stay
 * within what can be counted. Within this folder, but for pl_model_check (model.h). */
#ifndef PL_MODELS_CHECK_H
#define PL_MODELS_CHECK_H

#include "config/config.h"

/* The size of a language model. */
typedef struct pl_language_size {
    uint64_t layer[3][2]; /* matrices of a layer: rows, columns; 0: none */
    uint64_t first[2];    /* the other one before the layers, next to the token embedding */
    uint64_t widest;      /* numbers that the widest layer holds for a token */
    const char *key;      /* of model.…, which decides it with width and layers: "feed_forward" */
    int64_t value;
} pl_language_size;

pl_status pl_language_check(const pl_config *, const pl_language_size *, pl_error *);

/* PL_E_CONFIG where the one key's value does not divide the other's. */
pl_status pl_check_divides(const pl_config *, const char *key, int64_t value, const char *by_key, int64_t by,
                           pl_error *);

/* Signs are made of f32: PL_E_CONFIG where 16 bits are asked for, or may be taken, together with model.binary. */
pl_status pl_check_binary(const pl_config *, pl_error *);

#endif
