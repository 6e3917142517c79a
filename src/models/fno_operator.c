/* A random Fourier neural operator (docs/rollouts.md; Li et al. 2021): the state with the coordinates of its pixels is
 * lifted to some channels; each layer is act(K v + W v + b), K a complex matrix for each of the lowest Fourier modes, W
 * the same matrix for each pixel, and no activation in the last; then noise, and two linears back to the state's
 * channels. Modes, their matrices and biases are f32 whatever the precision. */
#include <stdio.h>

#include "models/rollout_blocks.h"

enum { MODES = 12, HIDDEN = 128, CHUNK_ROWS = 512, COORDINATES = 2 };

static pl_id linear(pl_rollout *r, pl_id x, int64_t in, int64_t out, const char *name)
{
    return pl_net_torch_linear(&r->m->net, x, r->precision, pl_shape_of(2, out, in), name);
}

static pl_id lift(pl_rollout *r, pl_id x)
{
    pl_append_coordinates_args placed = pl_append_coordinates_none;
    pl_builder_enter(&r->m->net.b, "lift");
    placed.x = x;
    x = linear(r, pl_build_append_coordinates(&r->m->net.b, &placed), PL_ROLLOUT_CHANNELS + COORDINATES, r->channels,
               "lift");
    pl_builder_leave(&r->m->net.b);
    return x;
}

/* to + the image of K times the modes of x; K's components are uniform in [0, 1/(channels of x · channels of to)). */
static pl_id add_modes(pl_rollout *r, pl_id x, pl_id to, const char *name)
{
    pl_builder *b = &r->m->net.b;
    const int64_t c = r->channels, modes = MODES;
    pl_rfft2_args there = pl_rfft2_none;
    pl_spectral_linear_args mixed = pl_spectral_linear_none;
    pl_irfft2_args back = pl_irfft2_none;
    mixed.weight = pl_net_weight(&r->m->net, pl_init_uniform(0, 1 / (double)(c * c)), PL_DTYPE_F32,
                                 pl_shape_of(5, 2 * modes, modes, c, (int64_t)2, c), "%s.spectral.weight", name);
    there.x = x, there.modes = modes;
    mixed.x = pl_build_rfft2(b, &there);
    back.spectrum = pl_build_spectral_linear(b, &mixed), back.image = to, back.add = 1;
    return pl_build_irfft2(b, &back);
}

static pl_id layer(pl_rollout *r, pl_id x, int64_t number)
{
    pl_builder *b = &r->m->net.b;
    char name[32], path[48];
    snprintf(name, sizeof name, "layers.%d", (int)number);
    snprintf(path, sizeof path, "%s.linear", name);
    pl_builder_enter_block(b, "layer", (uint32_t)number);
    x = add_modes(r, x, linear(r, x, r->channels, r->channels, path), name);
    if (number + 1 < r->layers) {
        x = pl_rollout_dropout(r, pl_net_activate(&r->m->net, r->activation, x), name);
    }
    pl_builder_leave(b);
    return x;
}

static pl_id project(pl_rollout *r, pl_id x)
{
    pl_net *n = &r->m->net;
    const int64_t in = r->channels, hidden = HIDDEN, channels = PL_ROLLOUT_CHANNELS;
    const pl_affine_init up = pl_affine_torch(r->precision, in), down = pl_affine_torch(r->precision, hidden);
    pl_feed_forward_args a = pl_feed_forward_none;
    pl_builder_enter(&n->b, "output");
    a.x = x, a.act = r->activation, a.rows = CHUNK_ROWS;
    a.up = pl_net_weight(n, up.weight, up.type, pl_shape_of(2, hidden, in), "output.0.weight");
    a.down = pl_net_weight(n, down.weight, down.type, pl_shape_of(2, channels, hidden), "output.1.weight");
    a.up_bias = pl_net_weight(n, up.bias, PL_DTYPE_F32, pl_shape_of(1, hidden), "output.0.bias");
    a.down_bias = pl_net_weight(n, down.bias, PL_DTYPE_F32, pl_shape_of(1, channels), "output.1.bias");
    pl_build_feed_forward(&n->b, &a);
    pl_builder_leave(&n->b);
    return a.y;
}

static pl_id network(pl_rollout *r, pl_id x)
{
    pl_id h = lift(r, x);
    for (int64_t i = 0; i < r->layers; i++) h = layer(r, h, i);
    pl_builder_enter(&r->m->net.b, "noise");
    h = pl_rollout_noise(r, h);
    pl_builder_leave(&r->m->net.b);
    return project(r, h);
}

static pl_status build(pl_model *m) { return pl_rollout_build(&(pl_rollout){.m = m, .network = network}); }

static pl_status check(const pl_config *c, pl_error *err)
{
    return pl_rollout_check_grid(c, 1, 2 * MODES, "twelve Fourier modes of either sign", err);
}

const pl_arch pl_arch_fno_operator = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
