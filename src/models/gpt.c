/* The transformer language model of docs/sources/threaded-text.md (arch gpt), under nanoGPT's tensor names:
 *   x = E[token] + P[position];  per block: x += Wo·attention(Wqkv·norm1(x)); x += W2·act(W1·norm2(x) + b1) + b2;
 *   then norm, and the output layer. P, Wo and the last norm can be left out: what comes then is the model of 4,540,928
 *   parameters there. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "models/check.h"
#include "models/gpt.h"

static pl_id bias_or_none(pl_model *m, bool wanted, int64_t n, const char *name)
{
    return wanted ? pl_model_weight(m, PL_INIT_ZERO, pl_shape_of(1, n), "%s.bias", name) : PL_NONE;
}

/* Generating: keys and values go into the cache of this block; the query sees all of it up to its own place. */
static pl_id through_cache(pl_model *m, pl_id x, char which, int block)
{
    const pl_config_model *c = &m->config->model;
    pl_cache_write_args a = pl_cache_write_none;
    a.x = x, a.position = m->input[PL_INPUT_POSITION];
    a.cache = pl_build_temporary(&m->b, PL_ROLE_STATE, PL_DTYPE_F32, pl_shape_of(3, (int64_t)1, c->sequence, c->width),
                                 "generate.cache_%c.%d", which, block);
    return pl_build_cache_write(&m->b, &a);
}

static pl_id attend(const pl_language *l, pl_id qkv, int block)
{
    pl_model *m = l->m;
    const pl_config_model *c = &m->config->model;
    const int64_t d = c->width;
    pl_attention_args a = pl_attention_none;
    a.q = pl_model_columns(m, qkv, 0, d);
    a.k = pl_model_columns(m, qkv, d, d);
    a.v = pl_model_columns(m, qkv, 2 * d, d);
    if (l->generating) {
        a.k = through_cache(m, a.k, 'k', block);
        a.v = through_cache(m, a.v, 'v', block);
        a.position = m->input[PL_INPUT_POSITION];
    }
    a.heads = c->heads, a.causal = 1, a.scale = 1 / sqrt((double)d / (double)c->heads);
    if (m->training) a.lse = PL_NONE;
    return pl_build_attention(&m->b, &a);
}

static pl_id add_residual(pl_model *m, pl_id x, pl_id residual)
{
    pl_add_args sum = pl_add_none;
    if (pl_model_drops(m)) return pl_model_dropout(m, x, residual);
    sum.a = residual, sum.b = x;
    return pl_build_add(&m->b, &sum);
}

static pl_id attention(const pl_language *l, pl_id x, pl_id residual, int block)
{
    pl_model *m = l->m;
    const pl_config_model *c = &m->config->model;
    char name[64];
    int64_t d = c->width;
    snprintf(name, sizeof name, "transformer.h.%d.attn.c_attn", block);
    pl_id w = pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, 3 * d, d), "%s.weight", name);
    pl_id qkv = pl_model_block_linear(m, x, w, bias_or_none(m, c->attention_bias, 3 * d, name), PL_NONE);
    pl_id o = attend(l, qkv, block);
    if (!c->attention_output) return add_residual(m, o, residual);
    snprintf(name, sizeof name, "transformer.h.%d.attn.c_proj", block);
    w = pl_model_weight(m, PL_INIT_PROJECTION, pl_shape_of(2, d, d), "%s.weight", name);
    pl_id bias = bias_or_none(m, c->attention_bias, d, name);
    if (!pl_model_drops(m)) return pl_model_block_linear(m, o, w, bias, residual);
    return pl_model_dropout(m, pl_model_block_linear(m, o, w, bias, PL_NONE), residual);
}

static pl_id feed_forward(pl_model *m, pl_id x, pl_id residual, int block)
{
    const pl_config_model *c = &m->config->model;
    char name[64];
    int64_t d = c->width, f = pl_config_feed_forward(m->config);
    snprintf(name, sizeof name, "transformer.h.%d.mlp.c_fc", block);
    pl_id w = pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, f, d), "%s.weight", name);
    pl_id h = pl_model_activation(m, pl_model_block_linear(m, x, w, bias_or_none(m, c->bias, f, name), PL_NONE));
    snprintf(name, sizeof name, "transformer.h.%d.mlp.c_proj", block);
    w = pl_model_weight(m, PL_INIT_PROJECTION, pl_shape_of(2, d, f), "%s.weight", name);
    pl_id bias = bias_or_none(m, c->bias, d, name);
    if (!pl_model_drops(m)) return pl_model_block_linear(m, h, w, bias, residual);
    return pl_model_dropout(m, pl_model_block_linear(m, h, w, bias, PL_NONE), residual);
}

static pl_id block_of(const pl_language *l, pl_id x, int block)
{
    pl_model *m = l->m;
    char name[64];
    pl_builder_enter_block(&m->b, "block", (uint32_t)block);
    pl_builder_enter(&m->b, "attention");
    snprintf(name, sizeof name, "transformer.h.%d.ln_1", block);
    x = attention(l, pl_model_norm(m, x, name), x, block);
    pl_builder_leave(&m->b);
    pl_builder_enter(&m->b, "feed_forward");
    snprintf(name, sizeof name, "transformer.h.%d.ln_2", block);
    x = feed_forward(m, pl_model_norm(m, x, name), x, block);
    pl_builder_leave(&m->b);
    pl_builder_leave(&m->b);
    return x;
}

pl_id pl_gpt_through(const pl_language *l, pl_id x)
{
    pl_model *m = l->m;
    for (int i = 0; i < m->config->model.layers; i++) x = block_of(l, x, i);
    if (!m->config->model.final_norm) return x;
    pl_builder_enter(&m->b, "head");
    x = pl_model_norm(m, x, "transformer.ln_f");
    pl_builder_leave(&m->b);
    return x;
}

pl_id pl_gpt_token_table(const pl_language *l)
{
    return pl_model_weight(l->m, PL_INIT_NORMAL, pl_shape_of(2, l->vocab, l->m->config->model.width),
                           "transformer.wte.weight");
}

pl_id pl_gpt_place_table(const pl_language *l)
{
    const pl_config_model *c = &l->m->config->model;
    return pl_model_weight(l->m, PL_INIT_NORMAL, pl_shape_of(2, c->sequence, c->width), "transformer.wpe.weight");
}

pl_id pl_gpt_output_weight(const pl_language *l)
{
    pl_model *m = l->m;
    const pl_config_model *c = &m->config->model;
    if (c->tie_embeddings) return pl_gpt_token_table(l);
    pl_builder_enter(&m->b, "head");
    pl_id weight = pl_model_weight(m, PL_INIT_NORMAL, pl_shape_of(2, l->vocab, c->width), "lm_head.weight");
    pl_builder_leave(&m->b);
    return weight;
}

static pl_id hidden(const pl_language *l, pl_id tokens, pl_id *output_weight)
{
    pl_model *m = l->m;
    pl_embedding_args embed = pl_embedding_none;
    pl_builder_enter(&m->b, "embedding");
    embed.tokens = tokens, embed.window = 1;
    embed.table = pl_gpt_token_table(l);
    const bool placed = m->config->model.positions;
    if (placed) embed.positions = pl_gpt_place_table(l);
    if (placed && l->generating) embed.position = m->input[PL_INPUT_POSITION];
    pl_id x = pl_model_dropout(m, pl_build_embedding(&m->b, &embed), PL_NONE);
    pl_builder_leave(&m->b);
    x = pl_gpt_through(l, x);
    *output_weight = pl_gpt_output_weight(l);
    return x;
}

static pl_status build(pl_model *m) { return pl_language_build(&(pl_language){.m = m, .read = 1, .hidden = hidden}); }

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
