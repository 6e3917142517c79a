/* The transformer language model of docs/sources/threaded-text.md (arch gpt), under nanoGPT's tensor names:
 *   x = E[token] + P[position];  per block: x += Wo·attention(Wqkv·norm1(x)); x += W2·act(W1·norm2(x) + b1) + b2;
 *   then norm, and the output layer. P, Wo and the last norm can be left out: what comes then is the model of 4,540,928
 *   parameters there. */
#include <inttypes.h>
#include <math.h>

#include "models/check.h"
#include "models/gpt.h"

static pl_transformer block_of(const pl_language *l)
{
    const pl_config *cfg = l->m->config;
    const pl_config_model *c = &cfg->model;
    const pl_init zero = pl_init_all(0), none = {PL_INIT_ABSENT}, normal = pl_init_normal(c->init_std);
    /* The deviation of what writes into the residual stream shrinks with depth. */
    const pl_init residual = pl_init_normal(c->init_std / sqrt(2.0 * (double)c->layers));
    const pl_init bias = c->bias ? zero : none, attention_bias = c->attention_bias ? zero : none;
    pl_transformer t = {.width = c->width,
                        .heads = c->heads,
                        .inner = pl_config_feed_forward(cfg),
                        .norm = {.is_rms = c->norm == PL_NORM_RMS_NORM, .eps = c->norm_eps},
                        .norm1 = "ln_1",
                        .norm2 = "ln_2",
                        .query = PL_PROJECTION("attn.c_attn", normal, attention_bias),
                        .is_causal = true,
                        .cached = l->generating ? c->sequence : 0,
                        .up = PL_PROJECTION("mlp.c_fc", normal, bias),
                        .down = PL_PROJECTION("mlp.c_proj", residual, bias),
                        .activation = pl_model_activation_of(c->activation),
                        .dropout = c->dropout,
                        .is_binary = pl_model_is_binary(cfg)};
    if (c->attention_output) t.output = (pl_projection)PL_PROJECTION("attn.c_proj", residual, attention_bias);
    return t;
}

pl_id pl_gpt_through(const pl_language *l, pl_id x)
{
    pl_net *n = &l->m->net;
    const pl_config_model *c = &l->m->config->model;
    const pl_transformer t = block_of(l);
    x = pl_net_stack(n, &(pl_stack){"block", "transformer.h", true, 0, c->layers}, &t, x);
    if (!c->final_norm) return x;
    pl_builder_enter(&n->b, "head");
    x = pl_net_norm(n, x, &t.norm, "transformer.ln_f");
    pl_builder_leave(&n->b);
    return x;
}

static pl_id table(const pl_language *l, int64_t rows, const char *name)
{
    const pl_config_model *c = &l->m->config->model;
    return pl_net_weight(&l->m->net, pl_init_normal(c->init_std), PL_DTYPE_F32, pl_shape_of(2, rows, c->width), "%s",
                         name);
}

pl_id pl_gpt_token_table(const pl_language *l) { return table(l, l->vocab, "transformer.wte.weight"); }

pl_id pl_gpt_place_table(const pl_language *l)
{
    return table(l, l->m->config->model.sequence, "transformer.wpe.weight");
}

pl_id pl_gpt_output_weight(const pl_language *l)
{
    pl_builder *b = &l->m->net.b;
    if (l->m->config->model.tie_embeddings) return pl_gpt_token_table(l);
    pl_builder_enter(b, "head");
    pl_id weight = table(l, l->vocab, "lm_head.weight");
    pl_builder_leave(b);
    return weight;
}

static pl_id hidden(const pl_language *l, pl_id tokens, pl_id *output_weight)
{
    pl_net *n = &l->m->net;
    const pl_config_model *c = &l->m->config->model;
    pl_embedding_args embed = pl_embedding_none;
    pl_builder_enter(&n->b, "embedding");
    embed.tokens = tokens, embed.window = 1;
    embed.table = pl_gpt_token_table(l);
    if (c->positions) embed.positions = pl_gpt_place_table(l);
    if (c->positions && l->generating) embed.position = n->input[PL_INPUT_POSITION];
    pl_id x = pl_net_dropout(n, c->dropout, pl_build_embedding(&n->b, &embed), PL_NONE);
    pl_builder_leave(&n->b);
    x = pl_gpt_through(l, x);
    *output_weight = pl_gpt_output_weight(l);
    return x;
}

static pl_status build(pl_model *m)
{
    return pl_language_build(
        &(pl_language){.m = m, .sequence = m->config->model.sequence, .read = 1, .hidden = hidden});
}

/* ---- its part of a config ---- */

/* The divisor of width next to heads, on either side (1 always is one). */
static int64_t divisor_below(int64_t width, int64_t heads)
{
    while (width % heads != 0) heads--;
    return heads;
}

static int64_t divisor_above(int64_t width, int64_t heads)
{
    if (heads > width) return 0;
    while (width % heads != 0) heads++;
    return heads;
}

static pl_status check_heads(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t width = cfg->model.width, heads = cfg->model.heads;
    if (width % heads == 0) return PL_OK;
    int64_t below = divisor_below(width, heads < width ? heads : width), above = divisor_above(width, heads);
    pl_config_blame(cfg, "model.heads", "model.width", where);
    if (!above)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.heads %" PRId64 " is more than model.width %" PRId64 "; take at most that many heads",
                       where, heads, width);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.heads %" PRId64 " does not divide model.width %" PRId64 "; take %" PRId64 " or %" PRId64
                   " heads",
                   where, heads, width, below, above);
}

/* The widest layer of a token: the feed-forward, or attention with three of the width. */
pl_status pl_gpt_check(const pl_config *cfg, pl_error *err)
{
    const uint64_t d = (uint64_t)cfg->model.width, inner = (uint64_t)pl_config_feed_forward(cfg);
    PL_TRY(check_heads(cfg, err));
    PL_TRY(pl_check_binary(cfg, err));
    return pl_language_check(cfg,
                             &(pl_language_size){.layer = {{4 * d, d}, {2 * d, inner}},
                                                 .first = {(uint64_t)cfg->model.sequence, d},
                                                 .widest = inner > 3 * d ? inner : 3 * d,
                                                 .key = "feed_forward",
                                                 .value = pl_config_feed_forward(cfg)},
                             err);
}

const pl_arch pl_arch_gpt = {.build = build, .check = pl_gpt_check, .plan_bytes_per_layer = 16 << 10};
