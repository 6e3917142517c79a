/* A neural n-gram (Bengio et al. 2003): the embeddings of the last `window` tokens, side by side, through `layers`
 * linear layers with activation to `width`; the output matrix is the embedding's or its own. The smallest model that
 * exercises every part of the road. */
#include <inttypes.h>

#include "models/check.h"
#include "models/language.h"

static pl_id hidden(const pl_language *l, pl_id tokens, pl_id *output_weight)
{
    pl_model *m = l->m;
    const pl_config_model *c = &m->config->model;
    pl_embedding_args embed = pl_embedding_none;
    pl_builder_enter(&m->b, "embedding");
    pl_id table = pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, l->vocab, c->width), "embedding.weight");
    embed.tokens = tokens, embed.table = table, embed.window = c->window;
    pl_id x = pl_build_embedding(&m->b, &embed);
    pl_builder_leave(&m->b);
    for (int i = 0; i < c->layers; i++) {
        pl_builder_enter_block(&m->b, "layer", (uint32_t)i);
        int64_t in = i == 0 ? c->window * c->width : c->width;
        pl_id w = pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, c->width, in), "layers.%d.weight", i);
        pl_id bias =
            c->bias ? pl_model_weight(m, PL_INIT_ZERO, pl_shape_of(1, c->width), "layers.%d.bias", i) : PL_NONE;
        x = pl_model_dropout(m, pl_model_activation(m, pl_model_linear(m, x, w, bias, PL_NONE)), PL_NONE);
        pl_builder_leave(&m->b);
    }
    pl_builder_enter(&m->b, "head");
    *output_weight = c->tie_embeddings
                         ? table
                         : pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, l->vocab, c->width), "head.weight");
    pl_builder_leave(&m->b);
    return x;
}

static pl_status build(pl_model *m)
{
    return pl_language_build(&(pl_language){.m = m, .read = m->config->model.window, .hidden = hidden});
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
