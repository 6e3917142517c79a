/* A random convolutional operator (docs/rollouts.md): a stem, blocks that double the channels twice, noise, and a 1×1
 * convolution back to the state's channels. A block is a convolution with norm and activation; of more than three
 * layers each is a residual block of two. No bias before a norm, no activation after a sum. */
#include <stdio.h>

#include "models/rollout_blocks.h"

enum { DOUBLINGS = 2, RESIDUAL_ABOVE = 3 };

static pl_id network(pl_rollout *r, pl_id x)
{
    pl_builder *b = &r->m->net.b;
    pl_builder_enter(b, "stem");
    pl_id h = pl_rollout_conv_block(r, x, &(pl_rollout_conv){r->channels, r->kernel, 1, "stem"}, PL_NONE);
    pl_builder_leave(b);
    for (int64_t i = 0; i < r->layers; i++) {
        char name[32];
        const int64_t out = r->channels << (i < DOUBLINGS ? i : DOUBLINGS);
        snprintf(name, sizeof name, "layers.%d", (int)i);
        pl_builder_enter_block(b, "layer", (uint32_t)i);
        h = r->layers > RESIDUAL_ABOVE
                ? pl_rollout_residual_block(r, h, out, name)
                : pl_rollout_conv_block(r, h, &(pl_rollout_conv){out, r->kernel, 1, name}, PL_NONE);
        pl_builder_leave(b);
    }
    return pl_rollout_output(r, h);
}

static pl_status build(pl_model *m) { return pl_rollout_build(&(pl_rollout){.m = m, .network = network}); }

static pl_status check(const pl_config *c, pl_error *err)
{
    (void)c, (void)err;
    return PL_OK;
}

const pl_arch pl_arch_cnn_operator = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
