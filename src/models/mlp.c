/* A neural n-gram (Bengio et al. 2003): the embeddings of the last `window` tokens, side by side, through `layers`
 * linear layers with activation to `width`; the output matrix is the embedding's or its own. The smallest model that
 * exercises every part of the road. */
#include <inttypes.h>
#include <stdio.h>

#include "models/check.h"
#include "models/language.h"

static pl_id hidden(const pl_language *l, pl_id tokens, pl_id *output_weight)
{
    pl_net *n = &l->m->net;
    const pl_config_model *c = &l->m->config->model;
    const pl_init normal = pl_init_normal(c->init_std);
    const pl_affine_init init = {.weight = normal, .bias = c->bias ? pl_init_all(0) : (pl_init){PL_INIT_ABSENT}};
    const pl_shape table = pl_shape_of(2, l->vocab, c->width);
    pl_embedding_args embed = pl_embedding_none;
    pl_builder_enter(&n->b, "embedding");
    embed.tokens = tokens, embed.window = c->window;
    embed.table = pl_net_weight(n, normal, PL_DTYPE_F32, table, "embedding.weight");
    pl_id x = pl_build_embedding(&n->b, &embed);
    pl_builder_leave(&n->b);
    for (int i = 0; i < c->layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%d", i);
        pl_builder_enter_block(&n->b, "layer", (uint32_t)i);
        const pl_affine w = pl_net_affine(n, &init, pl_shape_of(2, c->width, pl_net_last_extent(n, x)), name);
        x = pl_net_activate(n, pl_model_activation_of(c->activation), pl_net_linear(n, x, w, PL_NONE));
        x = pl_net_dropout(n, c->dropout, x, PL_NONE);
        pl_builder_leave(&n->b);
    }
    pl_builder_enter(&n->b, "head");
    *output_weight = c->tie_embeddings ? embed.table : pl_net_weight(n, normal, PL_DTYPE_F32, table, "head.weight");
    pl_builder_leave(&n->b);
    return x;
}

static pl_status build(pl_model *m)
{
    const pl_config_model *c = &m->config->model;
    return pl_language_build(&(pl_language){.m = m, .sequence = c->sequence, .read = c->window, .hidden = hidden});
}

/* Beyond its sequence a token has nothing before it: those weights would only ever see padding. */
static pl_status check_window(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t window = cfg->model.window, sequence = cfg->model.sequence;
    if (window <= sequence) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.window %" PRId64 " is more than model.sequence %" PRId64
                   "; take at most that, or a longer sequence",
                   pl_config_blame(cfg, "model.window", "model.sequence", where), window, sequence);
}

/* The first layer reads a window: of at most 2^40 numbers, so that no product below leaves 64 bits. */
static pl_status check(const pl_config *cfg, pl_error *err)
{
    const uint64_t d = (uint64_t)cfg->model.width, read = (uint64_t)cfg->model.window * d;
    PL_TRY(check_window(cfg, err));
    return pl_language_check(
        cfg,
        &(pl_language_size){
            .layer = {{d, d}}, .first = {read, d}, .widest = read, .key = "window", .value = cfg->model.window},
        err);
}

const pl_arch pl_arch_mlp = {.build = build, .check = check, .plan_bytes_per_layer = 2 << 10};
