/* What operators are put together from: convolutions, blocks of them with a norm and an activation, residual blocks
 * (docs/rollouts.md), and the end that all convolutional ones have. Images are [B,H,W,C] in the network's precision.
 * Within this folder. */
#ifndef PL_MODELS_ROLLOUT_BLOCKS_H
#define PL_MODELS_ROLLOUT_BLOCKS_H

#include "models/rollout.h"

typedef struct pl_rollout_conv {
    int64_t out, kernel, stride; /* channels made; padded by zeros: stride 1 keeps the size, 2 halves an even one */
    const char *name;            /* of the weights, NAME.weight, NAME.norm.weight, … */
} pl_rollout_conv;

/* A convolution, its norm (and so no bias) and the activation; then plus residual, where that is not PL_NONE. */
pl_id pl_rollout_conv_block(const pl_rollout *, pl_id x, const pl_rollout_conv *, pl_id residual);
/* Two of them, and x added; where the channels differ, a 1×1 convolution of it. */
pl_id pl_rollout_residual_block(const pl_rollout *, pl_id x, int64_t out, const char *name);
/* The noise and a 1×1 convolution to the channels of the state. */
pl_id pl_rollout_output(pl_rollout *, pl_id x);

/* PL_E_CONFIG: a grid that the parameter space may take is no multiple of `multiple`, or is less than `least`. `why`
 * says what needs that, "the three halvings of a U-Net". */
pl_status pl_rollout_check_grid(const pl_config *, int64_t multiple, int64_t least, const char *why, pl_error *);

#endif
