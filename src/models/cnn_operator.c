/* A random convolutional operator (MODELS.md 5.4): a stem, blocks that double the channels twice, noise, and a 1×1
 * convolution back to the state's channels. A block is a convolution with norm and activation; of more than three
 * layers each is a residual block of two. No bias before a norm, no activation behind a sum. */
#include <math.h>
#include <stdio.h>

#include "base/convolution.h"
#include "models/rollout.h"

enum { DOUBLINGS = 2, RESIDUAL_ABOVE = 3, GROUPS = 8 };
#define NORM_EPS 1e-5

typedef struct conv {
    int64_t in, out, kernel;
    const char *name;
} conv;

/* A word that a shape does not allow leaves it direct. */
static int64_t algorithm_of(const pl_rollout *r, const conv *c)
{
    const pl_convolution_shape s = {.batch = 1,
                                    .height = r->grid,
                                    .width = r->grid,
                                    .in = c->in,
                                    .out_height = r->grid,
                                    .out_width = r->grid,
                                    .out = c->out,
                                    .kernel = c->kernel,
                                    .stride = 1,
                                    .pad = c->kernel / 2};
    const pl_convolution_algorithm a =
        r->convolution < 0 ? pl_convolution_choose(&s) : (pl_convolution_algorithm)r->convolution;
    return pl_convolution_allows(&s, a) ? a : PL_CONVOLUTION_DIRECT;
}

static pl_id convolve(const pl_rollout *r, pl_id x, const conv *c, pl_id bias, pl_id *moments)
{
    pl_model *m = r->m;
    pl_id w = pl_rollout_weight(r, c->in * c->kernel * c->kernel, pl_shape_of(4, c->out, c->kernel, c->kernel, c->in),
                                "%s.weight", c->name);
    pl_attr attr[] = {pl_attr_i(PL_ACT_NONE), pl_attr_i(1), pl_attr_i(c->kernel / 2), pl_attr_i(algorithm_of(r, c))};
    pl_id out[3] = {PL_NONE, PL_UNWANTED, PL_NONE};
    pl_build_node(&m->b, PL_OP_CONV2D, attr, 3, (pl_id[]){x, w, bias}, moments ? 3 : 1, out);
    if (moments) *moments = out[2];
    return out[0];
}

/* Of a group norm at most eight groups, as many as divide the channels. */
static int64_t groups_of(const pl_rollout *r, int64_t channels)
{
    int64_t groups = GROUPS;
    while (channels % groups) groups--;
    return r->norm == PL_ROLLOUT_NORM_INSTANCE ? channels : groups;
}

/* residual PL_NONE: none */
static pl_id conv_block(const pl_rollout *r, pl_id x, const conv *c, pl_id residual)
{
    pl_model *m = r->m;
    pl_id moments, out[3] = {PL_NONE, PL_UNWANTED, PL_UNWANTED};
    char gain[64], shift[64];
    snprintf(gain, sizeof gain, "%s.norm.weight", c->name);
    snprintf(shift, sizeof shift, "%s.norm.bias", c->name);
    pl_id y = convolve(r, x, c, PL_NONE, &moments);
    pl_id gamma = pl_model_weight(m, PL_INIT_ONE, pl_shape_of(1, c->out), "%s", gain);
    pl_id beta = pl_model_weight(m, PL_INIT_ZERO, pl_shape_of(1, c->out), "%s", shift);
    pl_attr attr[] = {pl_attr_i(groups_of(r, c->out)), pl_attr_f(NORM_EPS), pl_attr_i(r->activation)};
    return pl_build_node(&m->b, PL_OP_GROUP_NORM, attr, 5, (pl_id[]){y, moments, gamma, beta, residual}, 1, out);
}

static pl_id skip_of(const pl_rollout *r, pl_id x, int64_t in, int64_t out, const char *name)
{
    char path[64];
    if (in == out) return x;
    snprintf(path, sizeof path, "%s.skip", name);
    return convolve(r, x, &(conv){in, out, 1, path}, PL_NONE, NULL);
}

static pl_id residual_block(const pl_rollout *r, pl_id x, int64_t in, int64_t out, const char *name)
{
    char first[64], second[64];
    snprintf(first, sizeof first, "%s.conv1", name);
    snprintf(second, sizeof second, "%s.conv2", name);
    pl_id h = conv_block(r, x, &(conv){in, out, r->kernel, first}, PL_NONE);
    return conv_block(r, h, &(conv){out, out, r->kernel, second}, skip_of(r, x, in, out, name));
}

static pl_id network(pl_rollout *r, pl_id x)
{
    pl_builder *b = &r->m->b;
    int64_t in = r->channels;
    pl_builder_enter(b, "stem");
    pl_id h = conv_block(r, x, &(conv){PL_ROLLOUT_CHANNELS, in, r->kernel, "stem"}, PL_NONE);
    pl_builder_leave(b);
    for (int64_t i = 0; i < r->layers; i++) {
        char name[32];
        const int64_t out = r->channels << (i < DOUBLINGS ? i : DOUBLINGS);
        snprintf(name, sizeof name, "layers.%d", (int)i);
        pl_builder_enter(b, "layer.%d", (int)i);
        h = r->layers > RESIDUAL_ABOVE ? residual_block(r, h, in, out, name)
                                       : conv_block(r, h, &(conv){in, out, r->kernel, name}, PL_NONE);
        pl_builder_leave(b);
        in = out;
    }
    pl_builder_enter(b, "noise");
    h = pl_rollout_noise(r, h);
    pl_builder_leave(b);
    pl_builder_enter(b, "output");
    pl_id bias = pl_model_uniform(r->m, PL_DTYPE_F32, 1 / sqrt((double)in),
                                  pl_shape_of(1, (int64_t)PL_ROLLOUT_CHANNELS), "output.bias");
    h = convolve(r, h, &(conv){in, PL_ROLLOUT_CHANNELS, 1, "output"}, bias, NULL);
    pl_builder_leave(b);
    return h;
}

static pl_status build(pl_model *m) { return pl_rollout_build(&(pl_rollout){.m = m, .network = network}); }

static pl_status check(const pl_config *c, pl_error *err)
{
    (void)c, (void)err;
    return PL_OK;
}

const pl_arch pl_arch_cnn_operator = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
