/* A random U-Net as an operator (docs/rollouts.md; Ronneberger et al. 2015): three levels down, each with two residual
 * blocks of twice the channels, up to eight times those of the stem, and a convolution that halves the grid; three up
 * again, each twice the size by bilinear interpolation, joined with what the level had on the way down, and brought to
 * as many channels as that; then noise and a 1×1 convolution back to the state's channels. */
#include <stdio.h>

#include "models/rollout_blocks.h"

enum { LEVELS = 3, WIDEST = 8, LEAST_GRID = 2 << LEVELS }; /* a pixel alone has no variance: 2 × 2 at the bottom */

static pl_id two_blocks(pl_rollout *r, pl_id x, int64_t channels, const char *level)
{
    for (int i = 1; i <= 2; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.block%d", level, i);
        x = pl_rollout_residual_block(r, x, channels, name);
    }
    return x;
}

/* What goes on; *skip: what the way up takes. */
static pl_id go_down(pl_rollout *r, pl_id x, int64_t channels, int level, pl_id *skip)
{
    char name[24], path[32];
    snprintf(name, sizeof name, "down.%d", level);
    snprintf(path, sizeof path, "%s.reduce", name);
    pl_builder_enter_block(&r->m->net.b, "down", (uint32_t)level);
    *skip = two_blocks(r, x, channels, name);
    x = pl_rollout_conv_block(r, *skip, &(pl_rollout_conv){channels, r->kernel, 2, path}, PL_NONE);
    pl_builder_leave(&r->m->net.b);
    return x;
}

static pl_id go_up(pl_rollout *r, pl_id x, int64_t channels, int level, pl_id skip)
{
    pl_builder *b = &r->m->net.b;
    pl_upsample_bilinear_args larger = pl_upsample_bilinear_none;
    char name[24], path[32];
    snprintf(name, sizeof name, "up.%d", level);
    snprintf(path, sizeof path, "%s.merge", name);
    pl_builder_enter_block(b, "up", (uint32_t)level);
    larger.x = x;
    x = pl_net_join(&r->m->net, pl_build_upsample_bilinear(b, &larger), skip);
    x = pl_rollout_conv_block(r, x, &(pl_rollout_conv){channels, r->kernel, 1, path}, PL_NONE);
    x = two_blocks(r, x, channels, name);
    pl_builder_leave(b);
    return x;
}

static pl_id network(pl_rollout *r, pl_id x)
{
    pl_id skip[LEVELS];
    int64_t channels[LEVELS], last = r->channels;
    pl_builder_enter(&r->m->net.b, "stem");
    pl_id h = pl_rollout_conv_block(r, x, &(pl_rollout_conv){r->channels, r->kernel, 1, "stem"}, PL_NONE);
    pl_builder_leave(&r->m->net.b);
    for (int i = 0; i < LEVELS; i++) {
        const int64_t twice = 2 * last, most = WIDEST * r->channels;
        last = channels[i] = twice < most ? twice : most;
        h = go_down(r, h, channels[i], i, &skip[i]);
    }
    for (int i = LEVELS - 1; i >= 0; i--) h = go_up(r, h, channels[i], i, skip[i]);
    return pl_rollout_output(r, h);
}

static pl_status build(pl_model *m) { return pl_rollout_build(&(pl_rollout){.m = m, .network = network}); }

static pl_status check(const pl_config *c, pl_error *err)
{
    return pl_rollout_check_grid(c, 1 << LEVELS, LEAST_GRID, "the three halvings of a U-Net", err);
}

const pl_arch pl_arch_unet_operator = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
