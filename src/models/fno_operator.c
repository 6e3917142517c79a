/* A random Fourier neural operator (docs/rollouts.md; Li et al. 2021): the state with the coordinates of its pixels is
 * lifted to some channels; each layer is act(K v + W v + b), K a complex matrix for each of the lowest Fourier modes, W
 * the same matrix for each pixel, and no activation in the last; then noise, and two linears back to the state's
 * channels. Modes, their matrices and biases are f32 whatever the precision. */
#include <stdio.h>

#include "models/rollout_blocks.h"

enum { MODES = 12, HIDDEN = 128, CHUNK_ROWS = 512, COORDINATES = 2 };

static pl_id linear(pl_rollout *r, pl_id x, int64_t in, int64_t out, const char *name)
{
    pl_id w = pl_rollout_weight(r, in, pl_shape_of(2, out, in), "%s.weight", name);
    return pl_model_linear(r->m, x, w, pl_rollout_bias(r, in, out, name), PL_NONE);
}

static pl_id lift(pl_rollout *r, pl_id x)
{
    pl_id placed = PL_NONE;
    pl_builder_enter(&r->m->b, "lift");
    pl_build_node(&r->m->b, PL_OP_APPEND_COORDINATES, NULL, 1, &x, 1, &placed);
    x = linear(r, placed, PL_ROLLOUT_CHANNELS + COORDINATES, r->channels, "lift");
    pl_builder_leave(&r->m->b);
    return x;
}

/* to + the image of K times the modes of x; K's components are uniform in [0, 1/(channels of x · channels of to)). */
static pl_id add_modes(pl_rollout *r, pl_id x, pl_id to, const char *name)
{
    pl_builder *b = &r->m->b;
    const int64_t c = r->channels, modes = MODES;
    pl_id spectrum = PL_NONE, mixed = PL_NONE, out = PL_NONE;
    pl_id w = pl_model_uniform(r->m, PL_DTYPE_F32, 0, 1 / (double)(c * c),
                               pl_shape_of(5, 2 * modes, modes, c, (int64_t)2, c), "%s.spectral.weight", name);
    pl_build_node(b, PL_OP_RFFT2, (pl_attr[]){pl_attr_i(modes), pl_attr_i(0)}, 1, &x, 1, &spectrum);
    pl_build_node(b, PL_OP_SPECTRAL_LINEAR, NULL, 2, (pl_id[]){spectrum, w}, 1, &mixed);
    return pl_build_node(b, PL_OP_IRFFT2, (pl_attr[]){pl_attr_i(1), pl_attr_i(0)}, 2, (pl_id[]){mixed, to}, 1, &out);
}

static pl_id layer(pl_rollout *r, pl_id x, int64_t number)
{
    pl_builder *b = &r->m->b;
    char name[32], path[48];
    pl_id out = PL_NONE;
    snprintf(name, sizeof name, "layers.%d", (int)number);
    snprintf(path, sizeof path, "%s.linear", name);
    pl_builder_enter(b, "layer.%d", (int)number);
    x = add_modes(r, x, linear(r, x, r->channels, r->channels, path), name);
    if (number + 1 < r->layers) {
        x = pl_build_node(b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(r->activation)}, 1, &x, 1, &out);
        x = pl_rollout_dropout(r, x, name);
    }
    pl_builder_leave(b);
    return x;
}

static pl_id project(pl_rollout *r, pl_id x)
{
    const int64_t in = r->channels, hidden = HIDDEN, channels = PL_ROLLOUT_CHANNELS;
    pl_id out = PL_NONE;
    pl_builder_enter(&r->m->b, "output");
    pl_id first = pl_rollout_weight(r, in, pl_shape_of(2, hidden, in), "output.0.weight");
    pl_id second = pl_rollout_weight(r, hidden, pl_shape_of(2, channels, hidden), "output.1.weight");
    pl_id bias[2] = {pl_rollout_bias(r, in, hidden, "output.0"), pl_rollout_bias(r, hidden, channels, "output.1")};
    pl_build_node(&r->m->b, PL_OP_FEED_FORWARD, (pl_attr[]){pl_attr_i(r->activation), pl_attr_i(CHUNK_ROWS)}, 5,
                  (pl_id[]){x, first, second, bias[0], bias[1]}, 1, &out);
    pl_builder_leave(&r->m->b);
    return out;
}

static pl_id network(pl_rollout *r, pl_id x)
{
    pl_id h = lift(r, x);
    for (int64_t i = 0; i < r->layers; i++) h = layer(r, h, i);
    pl_builder_enter(&r->m->b, "noise");
    h = pl_rollout_noise(r, h);
    pl_builder_leave(&r->m->b);
    return project(r, h);
}

static pl_status build(pl_model *m) { return pl_rollout_build(&(pl_rollout){.m = m, .network = network}); }

static pl_status check(const pl_config *c, pl_error *err)
{
    return pl_rollout_check_grid(c, 1, 2 * MODES, "twelve Fourier modes of either sign", err);
}

const pl_arch pl_arch_fno_operator = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
