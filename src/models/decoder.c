/* A pretrained language model (base/causal_lm.h), as its files describe it; the tensors have the names of llama in
 * Hugging Face's files. Of the programs of models/language.h it has "evaluate" and "generate", and two more, which take
 * many tokens of a text at once, i32 [1,n], the first at input.position; all but "evaluate" share the cache of keys and
 * values:
 *
 *   prefill   "prefill.tokens" only go into the cache
 *   score     "score.tokens", fewer at a time, do, too, and "score.losses" f32 [1,n] are those of "score.targets" i32
 *             [1,n], 0 where a target is −1
 *
 * The caches may have places for several sequences, which "generate" goes on with all at once; input.sequence then says
 * which one the others go on with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/schema.h"
#include "models/language.h"
#include "pretrained/pretrained.h"

#define PLACES "model.embed_positions.weight"

/* A row of logits is long: of a large vocabulary 32 are made at a time (layers_loss.c). */
enum { PREFILL_TOKENS = 128, SCORE_TOKENS = 32 };

typedef struct decoder {
    pl_language language; /* first */
    const pl_causal_lm *lm;
    int64_t context;   /* places of the cache, of each sequence */
    int64_t sequences; /* in it */
} decoder;

static const pl_init given = {PL_INIT_READ};

static pl_projection projection(bool has_bias, const char *weight, const char *bias)
{
    return (pl_projection){weight, bias, given, has_bias ? given : (pl_init){PL_INIT_ABSENT}};
}
#define PROJECTION(name, has_bias) projection(has_bias, name ".weight", name ".bias")

static pl_norm norm_of(const pl_causal_lm *m)
{
    return (pl_norm){.is_rms = !m->form.is_layer_norm, .eps = m->norm_eps};
}

static int64_t rows_of_prefill(const decoder *d)
{
    const int64_t asked = d->language.m->config->generate.prefill_tokens;
    const int64_t rows = asked == PL_CONFIG_AUTO ? PREFILL_TOKENS : asked;
    return d->context < rows ? d->context : rows;
}

static pl_transformer block_of(const decoder *d)
{
    static const pl_dtype types[] = {[PL_CONFIG_CACHE_F32] = PL_DTYPE_F32,
                                     [PL_CONFIG_CACHE_BF16] = PL_DTYPE_BF16,
                                     [PL_CONFIG_CACHE_FP16] = PL_DTYPE_F16,
                                     [PL_CONFIG_CACHE_Q8_0] = PL_DTYPE_F32};
    const pl_config_cache_type cache = d->language.m->config->generate.cache_type;
    const pl_causal_lm *m = d->lm;
    pl_transformer t = {.width = m->width,
                        .heads = m->heads,
                        .inner = m->inner,
                        .head_width = m->head_width,
                        .key_heads = m->key_heads,
                        .norm = norm_of(m),
                        .norm1 = "input_layernorm",
                        .norm2 = m->form.has_post_norms ? "pre_feedforward_layernorm" : "post_attention_layernorm",
                        .attention_norm = m->form.has_post_norms ? "post_attention_layernorm" : NULL,
                        .feed_forward_norm = m->form.has_post_norms ? "post_feedforward_layernorm" : NULL,
                        .query_norm = m->form.has_qk_norm ? "self_attn.q_norm" : NULL,
                        .lacks_input_norms = m->form.lacks_pre_norms,
                        .norms_all_heads = m->form.has_joint_qk_norm,
                        .key_norm = m->form.has_qk_norm ? "self_attn.k_norm" : NULL,
                        .query = PROJECTION("self_attn.q_proj", m->has_query_bias),
                        .key = PROJECTION("self_attn.k_proj", m->has_query_bias),
                        .value = PROJECTION("self_attn.v_proj", m->has_query_bias),
                        .output = PROJECTION("self_attn.o_proj", m->has_output_bias),
                        .is_causal = true,
                        .scale = m->attention_scale,
                        .cap = m->attention_cap,
                        .cached = d->language.generating ? d->context : 0,
                        .cached_sequences = d->sequences,
                        .cached_rows = rows_of_prefill(d),
                        .cache_type = types[cache],
                        .cache_encoding = cache == PL_CONFIG_CACHE_Q8_0 ? PL_ENCODING_Q8_0 : PL_ENCODING_F32,
                        .shares_cache = true,
                        .up = PROJECTION("mlp.up_proj", m->has_inner_bias),
                        .down = PROJECTION("mlp.down_proj", m->has_inner_bias),
                        .is_gated = m->form.is_gated,
                        .activation = m->activation};
    if (m->form.is_gated) t.gate = PROJECTION("mlp.gate_proj", m->has_inner_bias);
    return t;
}

static pl_id table(const decoder *d, int64_t rows, const char *name)
{
    return pl_net_weight(&d->language.m->net, given, PL_DTYPE_F32, pl_shape_of(2, rows, d->lm->width), "%s", name);
}

static pl_id embed(const decoder *d, pl_id tokens)
{
    pl_net *n = &d->language.m->net;
    pl_embedding_args a = pl_embedding_none;
    pl_builder_enter(&n->b, "embedding");
    a.tokens = tokens, a.window = 1;
    a.table = table(d, d->lm->vocab, "model.embed_tokens.weight");
    if (d->lm->form.has_position_table) {
        a.positions = table(d, d->lm->context, PLACES);
        if (d->language.generating) a.position = n->input[PL_INPUT_POSITION];
    }
    pl_id x = pl_build_embedding(&n->b, &a);
    if (d->lm->embedding_scale != 1) x = pl_net_scale(n, x, d->lm->embedding_scale);
    pl_builder_leave(&n->b);
    return x;
}

/* Rotations that some block uses; tokens [B,T]. */
static void rotate(const decoder *d, pl_id tokens, pl_rotation rotation[PL_CAUSAL_LM_ROPES])
{
    static const char *const divisors[PL_CAUSAL_LM_ROPES] = {PL_ROPE_DIVISORS "0", PL_ROPE_DIVISORS "1"};
    pl_net *n = &d->language.m->net;
    const pl_id position = d->language.generating ? n->input[PL_INPUT_POSITION] : PL_NONE;
    const int64_t count = pl_net_extent(n, tokens, 1);
    bool is_used[PL_CAUSAL_LM_ROPES] = {false};
    for (int64_t i = 0; i < d->lm->layers; i++)
        if (d->lm->block[i].has_rope) is_used[d->lm->block[i].rope] = true;
    for (int k = 0; k < PL_CAUSAL_LM_ROPES; k++)
        if (is_used[k])
            rotation[k] = pl_net_rotation(n, &d->lm->rope[k], position, count, d->lm->head_width, divisors[k]);
}

static pl_id blocks(const decoder *d, pl_id tokens, pl_id x)
{
    pl_block_attention attention[PL_CAUSAL_LM_BLOCKS_MAX];
    pl_rotation rotation[PL_CAUSAL_LM_ROPES];
    const pl_transformer t = block_of(d);
    rotate(d, tokens, rotation);
    for (int64_t i = 0; i < d->lm->layers; i++) {
        const pl_causal_lm_block *b = &d->lm->block[i];
        attention[i] = (pl_block_attention){b->window, b->has_rope ? &rotation[b->rope] : NULL};
    }
    const pl_stack all = {"block", "model.layers", true, 0, d->lm->layers, attention};
    return pl_net_stack(&d->language.m->net, &all, &t, x);
}

static pl_id hidden(const pl_language *l, pl_id tokens, pl_id *output_weight)
{
    const decoder *d = (const decoder *)l;
    pl_net *n = &l->m->net;
    const pl_norm norm = norm_of(d->lm);
    pl_id x = blocks(d, tokens, embed(d, tokens));
    pl_builder_enter(&n->b, "head");
    x = pl_net_norm(n, x, &norm, "model.norm");
    *output_weight = table(d, d->lm->vocab, d->lm->is_tied ? "model.embed_tokens.weight" : "lm_head.weight");
    pl_builder_leave(&n->b);
    return x;
}

static pl_id chunk(const decoder *d, int64_t count, pl_role role, pl_dtype dtype, const char *name)
{
    return pl_build_temporary(&d->language.m->net.b, role, dtype, pl_shape_of(2, (int64_t)1, count), "%s", name);
}

static pl_status build_prefill(decoder *d)
{
    pl_model *m = d->language.m;
    pl_model_begin_program(m, "prefill");
    pl_id tokens = chunk(d, rows_of_prefill(d), PL_ROLE_INPUT, PL_DTYPE_I32, "prefill.tokens");
    blocks(d, tokens, embed(d, tokens));
    return m->net.b.status;
}

static pl_status build_score(decoder *d)
{
    pl_net *n = &d->language.m->net;
    pl_model_begin_program(d->language.m, "score");
    const pl_id loss = pl_model_loss(d->language.m, "score");
    const int64_t rows = rows_of_prefill(d) < SCORE_TOKENS ? rows_of_prefill(d) : SCORE_TOKENS;
    const pl_id tokens = chunk(d, rows, PL_ROLE_INPUT, PL_DTYPE_I32, "score.tokens");
    pl_linear_ce_args a = pl_linear_ce_none;
    a.target = chunk(d, rows, PL_ROLE_INPUT, PL_DTYPE_I32, "score.targets");
    a.row_loss = chunk(d, rows, PL_ROLE_OUTPUT, PL_DTYPE_F32, "score.losses");
    a.h = hidden(&d->language, tokens, &a.weight), a.loss = loss, a.cap = d->lm->output_cap;
    a.scale = n->input[PL_INPUT_ITEM_SCALE];
    pl_net_linear_losses(n, &a);
    return n->b.status;
}

static pl_status check_cache(const pl_model *m, const pl_causal_lm *lm)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t block = pl_encoding_block(PL_ENCODING_Q8_0);
    if (m->config->generate.cache_type != PL_CONFIG_CACHE_Q8_0 || lm->head_width % block == 0) return PL_OK;
    return pl_fail(
        m->net.err, PL_E_CONFIG,
        "%s: generate.cache_type is q8_0, which has blocks of %lld numbers, but a head of this model has %lld; "
        "take fp16",
        pl_config_where(m->config, "generate.cache_type", where, sizeof where), (long long)block,
        (long long)lm->head_width);
}

/* Whether anything is rounded is known when all is built. */
static pl_status check_activations(const pl_model *m)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (!m->net.flow || m->net.flowing != PL_NONE) return PL_OK;
    return pl_fail(m->net.err, PL_E_CONFIG,
                   "%s: generate.activations is int8, but no matrix of this model is in blocks; set model.encoding to "
                   "q8_0 or less, or leave activations as f32",
                   pl_config_where(m->config, "generate.activations", where, sizeof where));
}

static pl_status build_all(pl_model *m, const pl_causal_lm *lm)
{
    static const pl_input which = PL_INPUT_SEQUENCE;
    decoder d = {.lm = lm,
                 .context = (int64_t)pl_facts_value(m->extents, PL_FACT_CONTEXT, 0),
                 .sequences = (int64_t)pl_facts_value(m->extents, PL_FACT_SEQUENCES, 1)};
    d.language = (pl_language){.m = m,
                               .sequence = d.context,
                               .cap = lm->output_cap,
                               .only_used = true,
                               .read = 1,
                               .sequences = d.sequences,
                               .hidden = hidden};
    (void)pl_net_freeze(&m->net, true);
    if (m->config->generate.activations == PL_CONFIG_ACTIVATIONS_INT8) m->net.flow = PL_ENCODING_Q8_0;
    PL_TRY(check_cache(m, lm));
    PL_TRY(pl_language_build(&d.language));
    if (d.sequences > 1) pl_model_inputs(m, &which, 1);
    PL_TRY(build_prefill(&d));
    PL_TRY(build_score(&d));
    return check_activations(m);
}

typedef struct given_files {
    pl_pretrained *model;
    pl_encoding wanted; /* of matrices */
    pl_id space;        /* of weights that stay in the files; PL_NONE: all are read */
} given_files;

static void store(const void *files, pl_value *v)
{
    const given_files *f = files;
    const pl_pretrained_tensor *t = pl_pretrained_tensor_find(f->model, v->name);
    if (!t) return;
    v->encoding = pl_pretrained_use_as(t, f->wanted);
    const uint64_t place = pl_pretrained_place(f->model, t, v->encoding);
    if (f->space != PL_NONE && place != PL_PRETRAINED_NO_PLACE) v->space = f->space, v->place = place;
}

static pl_encoding wanted_of(const pl_config *c)
{
    pl_encoding e = PL_ENCODING_COUNT;
    (void)pl_encoding_parse(pl_config_find("model.encoding")->names[c->model.encoding], &e); /* or "stored" */
    return e;
}

static pl_status add_files(pl_model *m, given_files *files)
{
    files->space = PL_NONE;
    if (m->config->model.weights != PL_CONFIG_WEIGHTS_MMAP) return PL_OK;
    files->space = pl_graph_add_space(m->net.b.graph, PL_SPACE_FILES);
    return files->space != PL_NONE ? PL_OK : pl_fail(m->net.err, PL_E_NOMEM, "no memory for the graph");
}

/* A matrix, that is: vectors alone are not worth it. */
static pl_status check_mapped(const pl_model *m, pl_id space)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_graph *g = m->net.b.graph;
    if (space == PL_NONE) return PL_OK;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].space == space && g->value[i].shape.rank == 2) return PL_OK;
    return pl_fail(
        m->net.err, PL_E_CONFIG,
        "%s: model.weights is mmap, but no matrix of %.300s lies in its files as it is used (model.encoding is "
        "%s), so all would be read all the same; leave it out",
        pl_config_where(m->config, "model.weights", where, sizeof where), m->config->model.source,
        pl_config_find("model.encoding")->names[m->config->model.encoding]);
}

static pl_status build(pl_model *m)
{
    given_files files = {.wanted = wanted_of(m->config)};
    PL_TRY(add_files(m, &files));
    PL_TRY(pl_pretrained_open(m->config->model.source, &files.model, m->net.err));
    m->net.store = store, m->net.files = &files;
    pl_status status = build_all(m, pl_pretrained_model(files.model));
    if (status == PL_OK) status = check_mapped(m, files.space);
    pl_pretrained_close(files.model);
    return status;
}

/* Sizes are checked where the files are opened. */
static pl_status check(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (c->model.source[0]) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.arch is decoder, but model.source names no model; give its folder or GGUF file",
                   pl_config_where(c, "model.arch", where, sizeof where));
}

const pl_arch pl_arch_decoder = {.build = build, .check = check, .plan_bytes_per_layer = 16 << 10};
