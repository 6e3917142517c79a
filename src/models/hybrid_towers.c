/* Two vision transformers see the page, one frozen and one trained; a gate for each token (or attention between them)
 * makes one of the two, and an adapter refines that. Or there are none, and patches are embedded as they are. */
#include <math.h>
#include <stdio.h>

#include "base/colours.h"
#include "models/hybrid.h"

#define VIT_STD  0.02
#define CLIP_EPS 1e-5
#define VIT_EPS  1e-12
#define TEL_EPS  1e-5

/* The names of what both towers have. */
typedef struct tower {
    const char *class_token, *positions, *patches, *layers;
    const char *query, *key, *value, *out, *norm1, *norm2, *inner, *outer; /* of a layer */
    int64_t layer_count, thawed; /* layers; and so many of the last of a frozen tower are trained all the same */
    double eps;
    pl_activation activation;
    bool pretrained, frozen, patch_bias, standardize;
} tower;

static const tower clip = {.class_token = "clip.vision_model.embeddings.class_embedding",
                           .positions = "clip.vision_model.embeddings.position_embedding.weight",
                           .patches = "clip.vision_model.embeddings.patch_embedding",
                           .layers = "clip.vision_model.encoder.layers",
                           .query = "self_attn.q_proj",
                           .key = "self_attn.k_proj",
                           .value = "self_attn.v_proj",
                           .out = "self_attn.out_proj",
                           .norm1 = "layer_norm1",
                           .norm2 = "layer_norm2",
                           .inner = "mlp.fc1",
                           .outer = "mlp.fc2",
                           .eps = CLIP_EPS,
                           .activation = PL_ACT_QUICK_GELU,
                           .pretrained = true,
                           .frozen = true};

static const tower vit = {.class_token = "vit.embeddings.cls_token",
                          .positions = "vit.embeddings.position_embeddings",
                          .patches = "vit.embeddings.patch_embeddings.projection",
                          .layers = "vit.encoder.layer",
                          .query = "attention.attention.query",
                          .key = "attention.attention.key",
                          .value = "attention.attention.value",
                          .out = "attention.output.dense",
                          .norm1 = "layernorm_before",
                          .norm2 = "layernorm_after",
                          .inner = "intermediate.dense",
                          .outer = "output.dense",
                          .eps = VIT_EPS,
                          .activation = PL_ACT_GELU,
                          .patch_bias = true};

/* Normal weights, and a bias of zeros. */
typedef struct weights {
    pl_id weight, bias;
} weights;

static weights weights_of(const pl_hybrid *k, const tower *t, pl_shape weight, bool bias, const char *name)
{
    pl_model *m = k->m;
    weights w = {pl_model_freeze(m, t->frozen, pl_model_normal(m, VIT_STD, weight, "%s.weight", name)), PL_NONE};
    if (bias)
        w.bias = pl_model_freeze(m, t->frozen, pl_model_constant(m, 0, pl_shape_of(1, weight.dim[0]), "%s.bias", name));
    return w;
}

/* Of a layer: the frozen tower is never of signs, whatever of it is trained. */
static pl_id linear(const pl_hybrid *k, const tower *t, pl_id x, int64_t out, pl_id residual, const char *name)
{
    const int64_t in = k->m->b.status == PL_OK ? pl_shape_last(&k->m->b.graph->value[x].shape) : 1;
    const weights w = weights_of(k, t, pl_shape_of(2, out, in), true, name);
    return t->pretrained ? pl_model_linear(k->m, x, w.weight, w.bias, residual)
                         : pl_model_block_linear(k->m, x, w.weight, w.bias, residual);
}

/* Where numbers come in that 16 bits may hold: a step of that precision has them narrow from here on. */
static pl_id come_in(const pl_hybrid *k, pl_id x, const char *of, const char *what)
{
    pl_builder *b = &k->m->b;
    if (b->status != PL_OK) return PL_NONE;
    pl_cast_args cast = pl_cast_none;
    cast.x = x;
    cast.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F32, b->graph->value[x].shape, "%s.%s.%s",
                                k->m->training ? "train" : "evaluate", of, what);
    return pl_build_cast(b, &cast);
}

static pl_id add_positions(const pl_hybrid *k, pl_id x, pl_id positions)
{
    pl_add_positions_args a = pl_add_positions_none;
    a.x = x, a.positions = positions;
    return pl_build_add_positions(&k->m->b, &a);
}

static pl_id cut_patches(const pl_hybrid *k, const tower *t, pl_id pages)
{
    pl_patches_args a = pl_patches_none;
    a.image = pages;
    a.patch = k->m->config->vision_encoder.patch_size, a.channels = PL_COLOURS, a.standardize = t->standardize;
    return come_in(k, pl_build_patches(&k->m->b, &a), t->frozen ? "frozen" : "vit", "patches");
}

static pl_id embed(const pl_hybrid *k, const tower *t, pl_id pages)
{
    pl_builder *b = &k->m->b;
    pl_prepend_row_args all = pl_prepend_row_none;
    pl_builder_enter(b, "embedding");
    pl_id x = cut_patches(k, t, pages);
    const int64_t p = k->m->config->vision_encoder.patch_size;
    const pl_shape window = pl_shape_of(4, k->width, (int64_t)PL_COLOURS, p, p),
                   matrix = pl_shape_of(2, k->width, PL_COLOURS * p * p);
    const weights w = weights_of(k, t, t->frozen ? window : matrix, t->patch_bias, t->patches);
    all.x = pl_model_linear(k->m, x, pl_model_as_matrix(k->m, w.weight), w.bias, PL_NONE);
    pl_id token = pl_model_normal(k->m, VIT_STD, pl_shape_of(1, k->width), "%s", t->class_token);
    pl_id places = pl_model_normal(k->m, VIT_STD, pl_shape_of(2, k->tokens + 1, k->width), "%s", t->positions);
    all.row = pl_model_freeze(k->m, t->frozen, token);
    pl_build_prepend_row(b, &all);
    pl_id placed = add_positions(k, all.y, pl_model_freeze(k->m, t->frozen, places));
    pl_builder_leave(b);
    return placed;
}

static void name_part(char to[160], const tower *t, int layer, const char *part)
{
    snprintf(to, 160, "%s.%d.%s", t->layers, layer, part);
}

static pl_id attention(const pl_hybrid *k, const tower *t, pl_id x, int layer)
{
    const char *const parts[3] = {t->query, t->key, t->value};
    char name[160];
    pl_id qkv[3];
    pl_builder_enter(&k->m->b, "attention");
    name_part(name, t, layer, t->norm1);
    pl_id h = pl_hybrid_norm(k, x, t->eps, t->frozen, name);
    for (int i = 0; i < 3; i++) {
        name_part(name, t, layer, parts[i]);
        qkv[i] = linear(k, t, h, k->width, PL_NONE, name);
    }
    h = pl_hybrid_attend(k, k->m->config->vision_encoder.vit_heads, qkv, 0, 1, !t->frozen);
    name_part(name, t, layer, t->out);
    x = linear(k, t, h, k->width, x, name);
    pl_builder_leave(&k->m->b);
    return x;
}

static pl_id feed_forward(const pl_hybrid *k, const tower *t, pl_id x, int layer)
{
    char name[160];
    pl_builder_enter(&k->m->b, "feed_forward");
    name_part(name, t, layer, t->norm2);
    pl_id h = pl_hybrid_norm(k, x, t->eps, t->frozen, name);
    name_part(name, t, layer, t->inner);
    h = pl_hybrid_activate(k, t->activation, linear(k, t, h, 4 * k->width, PL_NONE, name));
    name_part(name, t, layer, t->outer);
    x = linear(k, t, h, k->width, x, name);
    pl_builder_leave(&k->m->b);
    return x;
}

static pl_id through(const pl_hybrid *k, const tower *t, pl_id x)
{
    for (int i = 0; i < t->layer_count; i++) {
        tower layer = *t;
        layer.frozen = t->frozen && i < t->layer_count - t->thawed;
        pl_builder_enter(&k->m->b, "layer.%d", i);
        x = feed_forward(k, &layer, attention(k, &layer, x, i), i);
        pl_builder_leave(&k->m->b);
    }
    return x;
}

/* The class token has been of use to the others. */
static pl_id without_class(const pl_hybrid *k, pl_id x)
{
    pl_drop_row_args rest = pl_drop_row_none;
    rest.x = x, rest.y = PL_NONE;
    return pl_build_drop_row(&k->m->b, &rest);
}

size_t pl_hybrid_node_count(const pl_hybrid *k) { return k->m->b.status == PL_OK ? k->m->b.graph->node_count : 0; }

pl_id pl_hybrid_make_once(const pl_hybrid *k, size_t first, pl_id made, pl_id kept)
{
    pl_builder *b = &k->m->b;
    pl_replace_args replace = pl_replace_none;
    pl_store_args store = pl_store_none;
    if (kept == PL_NONE || b->status != PL_OK) return made;
    replace.x = made, replace.value = kept;
    store.port[0] = pl_build_replace(b, &replace), store.back = 1;
    pl_build_store(b, &store);
    if (b->status != PL_OK) return PL_NONE;
    for (size_t i = first; i < b->graph->node_count; i++)
        if (b->graph->node[i].region == b->region) b->graph->node[i].predicate = k->missing;
    return replace.value_new;
}

/* The norm behind the last layer is CLIP's for the class token alone. */
pl_id pl_hybrid_see_frozen(const pl_hybrid *k, pl_id pages)
{
    const pl_config *c = k->m->config;
    tower t = clip;
    t.layer_count = c->vision_encoder.pretrained_layers;
    t.thawed = c->vision_encoder.unfreeze_pretrained_layers;
    t.standardize = c->vision_encoder.clip_normalize;
    const size_t first = pl_hybrid_node_count(k);
    pl_builder_enter(&k->m->b, "frozen");
    pl_id x = pl_hybrid_norm(k, embed(k, &t, pages), t.eps, true, "clip.vision_model.pre_layrnorm");
    x = pl_hybrid_make_once(k, first, without_class(k, through(k, &t, x)), k->features);
    if (k->features != PL_NONE) x = come_in(k, x, "frozen", "features");
    pl_builder_leave(&k->m->b);
    return x;
}

static pl_id see_trained(const pl_hybrid *k, pl_id pages)
{
    tower t = vit;
    t.layer_count = k->m->config->vision_encoder.vit_layers;
    pl_builder_enter(&k->m->b, "vit");
    pl_id x = through(k, &t, embed(k, &t, pages));
    x = without_class(k, pl_hybrid_norm(k, x, t.eps, false, "vit.layernorm"));
    pl_builder_leave(&k->m->b);
    return x;
}

/* ---- fusion ---- */

#define BIAS       0.3
#define BIAS_UNTIL 0.2 /* of all steps */
#define BIAS_FALLS 0.7

void pl_hybrid_begin_fusion(pl_hybrid *k)
{
    pl_model *m = k->m;
    k->fusion_bias = PL_NONE;
    if (!m->config->vision_encoder.progressive_fusion) return;
    const int64_t steps = m->config->train.steps;
    pl_ramp_args ramp = pl_ramp_none;
    pl_builder_enter(&m->b, "fusion");
    k->fusion_bias = pl_model_state(m, BIAS, pl_shape_of(1, (int64_t)1), "fusion.progressive_bias");
    ramp.state = k->fusion_bias, ramp.step = m->input[PL_INPUT_STEP];
    ramp.high = BIAS, ramp.first = (int64_t)(BIAS_UNTIL * (double)steps);
    ramp.second = (int64_t)(BIAS_FALLS * (double)steps), ramp.last = steps;
    if (m->training) k->fusion_bias = pl_build_ramp(&m->b, &ramp);
    pl_builder_leave(&m->b);
}

/* A logit for each token: of both towers alike, or moved by one number for all tokens. */
static pl_id average(const pl_hybrid *k, bool learns)
{
    pl_id zeros = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->tokens, (int64_t)1));
    pl_id logit = pl_hybrid_cast(k, zeros);
    if (!learns) return logit;
    return add_positions(k, logit, pl_model_constant(k->m, 0.5, pl_shape_of(1, (int64_t)1), "fusion.alpha"));
}

static pl_id gate_by_token(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    pl_concat_args both = pl_concat_none;
    both.part[0] = frozen, both.part[1] = trained;
    return pl_hybrid_two_linears(k, pl_build_concat(&k->m->b, &both), k->width, 1, "fusion.gate");
}

/* Each token of the trained tower asks every token of both, and a softmax over the two towers weighs what these say: of
 * two it is a sigmoid of the difference of their scores. The keys of both come from one matrix, so that is the score of
 * the towers' difference, in which a bias would cancel. */
static pl_id attend_both(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    pl_model *m = k->m;
    const int64_t d = k->width;
    const double bound = 1 / sqrt((double)d);
    pl_sigmoid_attention_args a = pl_sigmoid_attention_none;
    pl_id apart = pl_hybrid_minus(k, frozen, trained);
    a.q = pl_hybrid_linear(k, trained, d, "fusion.query");
    pl_id key = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(2, d, d), "fusion.key.weight");
    pl_id value = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(2, d, d), "fusion.value.weight");
    pl_id bias = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(1, d), "fusion.value.bias");
    a.k = pl_model_linear(m, apart, key, PL_NONE, PL_NONE);
    a.v = pl_model_linear(m, apart, value, PL_NONE, PL_NONE);
    a.u = pl_model_linear(m, trained, value, bias, PL_NONE);
    a.scale = bound;
    return pl_build_sigmoid_attention(&m->b, &a);
}

static pl_id choose(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    const pl_config_fusion type = k->m->config->vision_encoder.fusion_type;
    pl_id logit = type == PL_CONFIG_FUSION_GATED ? gate_by_token(k, frozen, trained)
                                                 : average(k, type == PL_CONFIG_FUSION_LEARNED_AVG);
    if (k->fusion_bias != PL_NONE) logit = add_positions(k, logit, k->fusion_bias);
    return pl_hybrid_blend(k, frozen, trained, logit, k->told ? &k->told->fusion_gates : NULL);
}

static pl_id fuse(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    const bool attends = k->m->config->vision_encoder.fusion_type == PL_CONFIG_FUSION_ATTENTION;
    pl_builder_enter(&k->m->b, "fusion");
    pl_id f = attends ? attend_both(k, frozen, trained) : choose(k, frozen, trained);
    pl_builder_leave(&k->m->b);
    return f;
}

/* ---- adapter ---- */

pl_id pl_hybrid_adapt(const pl_hybrid *k, pl_id f)
{
    const pl_config *c = k->m->config;
    const pl_hybrid_layer layer = {
        .heads = c->vision_encoder.heads, .sequences = 1, .eps = TEL_EPS, .dropout = c->vision_encoder.dropout};
    pl_id x = f;
    char name[64];
    if (c->vision_encoder.adapter_layers == 0) return f;
    pl_builder_enter(&k->m->b, "adapter");
    for (int i = 0; i < c->vision_encoder.adapter_layers; i++) {
        pl_builder_enter(&k->m->b, "layer.%d", i);
        snprintf(name, sizeof name, "adapter.layers.%d", i);
        x = pl_hybrid_encoder_layer(k, &layer, x, name);
        pl_builder_leave(&k->m->b);
    }
    x = pl_hybrid_blend(k, x, f, pl_hybrid_linear(k, f, 1, "adapter.gate"), k->told ? &k->told->adapter_gates : NULL);
    pl_builder_leave(&k->m->b);
    if (c->task_training.freeze_n2n_adapter) pl_model_freeze_all(k->m, "adapter.");
    return x;
}

/* ---- neither ---- */

/* The encoder's own embedding, that of arch capsules (models/capsules.c), whose weights begin likewise; here they are
 * matrices. */
static pl_id embed_alone(const pl_hybrid *k, pl_id pages)
{
    static const char what[] = "encoder.patch_embed";
    pl_model *m = k->m;
    const int64_t p = m->config->vision_encoder.patch_size, in = PL_COLOURS * p * p;
    const double bound = 1 / sqrt((double)in);
    pl_patches_args cut = pl_patches_none;
    pl_builder_enter(&m->b, "embedding");
    cut.image = pages, cut.patch = p, cut.channels = PL_COLOURS;
    pl_id x = come_in(k, pl_build_patches(&m->b, &cut), "encoder", "patches");
    pl_id weight = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(2, k->width, in), "%s.weight", what);
    pl_id bias = pl_model_uniform(m, PL_DTYPE_F32, -bound, bound, pl_shape_of(1, k->width), "%s.bias", what);
    pl_id places = pl_model_truncated(m, PL_DTYPE_F32, VIT_STD, pl_shape_of(2, k->tokens, k->width),
                                      "encoder.pos_embed.pos_embedding");
    x = add_positions(k, pl_model_linear(m, x, weight, bias, PL_NONE), places);
    pl_builder_leave(&m->b);
    return x;
}

bool pl_hybrid_has_towers(const pl_config *c) { return c->vision_encoder.fusion_type != PL_CONFIG_FUSION_NONE; }

pl_id pl_hybrid_see(const pl_hybrid *k, pl_id pages)
{
    if (!pl_hybrid_has_towers(k->m->config)) return pl_hybrid_adapt(k, embed_alone(k, pages));
    pl_id frozen = pl_hybrid_see_frozen(k, pages);
    return pl_hybrid_adapt(k, fuse(k, frozen, see_trained(k, pages)));
}
