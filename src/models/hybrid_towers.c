/* Two vision transformers see the page, one frozen and one trained; a gate for each token (or attention between them)
 * makes one of the two, and an adapter refines that. Or there are none, and patches are embedded as they are. */
#include <math.h>
#include <stdio.h>

#include "base/colours.h"
#include "models/hybrid.h"

#define VIT_STD 0.02
#define TEL_EPS 1e-5

/* A tower begins with normal weights and a bias of zeros; `block` has its sizes when it is built. */
typedef struct tower {
    const char *scope, *patches, *class_token, *positions, *blocks;
    pl_transformer block;
    bool has_patch_bias, standardizes, is_frozen;
} tower;

#define VIT_LINEAR(name) PL_PROJECTION(name, VIT_NORMAL, VIT_ZERO)
#define VIT_NORMAL                                                                                                     \
    {                                                                                                                  \
        .kind = PL_INIT_NORMAL, .std = VIT_STD                                                                         \
    }
#define VIT_ZERO                                                                                                       \
    {                                                                                                                  \
        .kind = PL_INIT_ALL, .value = 0                                                                                \
    }

static const tower clip = {.scope = "frozen",
                           .patches = "clip.vision_model.embeddings.patch_embedding",
                           .class_token = "clip.vision_model.embeddings.class_embedding",
                           .positions = "clip.vision_model.embeddings.position_embedding.weight",
                           .blocks = "clip.vision_model.encoder.layers",
                           .block = {.norm = {.eps = 1e-5},
                                     .norm1 = "layer_norm1",
                                     .norm2 = "layer_norm2",
                                     .query = VIT_LINEAR("self_attn.q_proj"),
                                     .key = VIT_LINEAR("self_attn.k_proj"),
                                     .value = VIT_LINEAR("self_attn.v_proj"),
                                     .output = VIT_LINEAR("self_attn.out_proj"),
                                     .up = VIT_LINEAR("mlp.fc1"),
                                     .down = VIT_LINEAR("mlp.fc2"),
                                     .activation = PL_ACT_QUICK_GELU},
                           .is_frozen = true};

static const tower vit = {.scope = "vit",
                          .patches = "vit.embeddings.patch_embeddings.projection",
                          .class_token = "vit.embeddings.cls_token",
                          .positions = "vit.embeddings.position_embeddings",
                          .blocks = "vit.encoder.layer",
                          .block = {.norm = {.eps = 1e-12},
                                    .norm1 = "layernorm_before",
                                    .norm2 = "layernorm_after",
                                    .query = VIT_LINEAR("attention.attention.query"),
                                    .key = VIT_LINEAR("attention.attention.key"),
                                    .value = VIT_LINEAR("attention.attention.value"),
                                    .output = VIT_LINEAR("attention.output.dense"),
                                    .up = VIT_LINEAR("intermediate.dense"),
                                    .down = VIT_LINEAR("output.dense"),
                                    .activation = PL_ACT_GELU},
                          .has_patch_bias = true};

static const char *program_of(const pl_hybrid *k) { return k->n->training ? "train" : "evaluate"; }

/* Patches, and features that were kept, are numbers that 16 bits may hold: a step of that precision has them narrow
 * after this cast. */
static pl_id embed(const pl_hybrid *k, pl_patch_embedding *e, pl_id pages, const char *part)
{
    char cast[48];
    snprintf(cast, sizeof cast, "%s.%s.patches", program_of(k), part);
    e->patch = k->m->config->vision_encoder.patch_size, e->channels = PL_COLOURS;
    e->width = k->width, e->tokens = k->tokens, e->cast = cast;
    return pl_net_embed_patches(k->n, e, pages);
}

/* The frozen tower's patches are a window, as in its files. */
static pl_id embed_for(const pl_hybrid *k, const tower *t, pl_id pages)
{
    const int64_t p = k->m->config->vision_encoder.patch_size, colours = PL_COLOURS;
    pl_patch_embedding e = {.standardizes = t->standardizes,
                            .init = {.weight = VIT_NORMAL},
                            .position_init = VIT_NORMAL,
                            .patches = t->patches,
                            .class_token = t->class_token,
                            .positions = t->positions};
    e.weight_shape = t->is_frozen ? pl_shape_of(4, k->width, colours, p, p) : pl_shape_of(2, k->width, colours * p * p);
    if (t->has_patch_bias) e.init.bias = pl_init_all(0);
    return embed(k, &e, pages, t->scope);
}

/* The last layers of a frozen tower, `thawed` of them, are trained all the same. */
static pl_id through(const pl_hybrid *k, const tower *t, int64_t layers, int64_t thawed, pl_id x)
{
    const int64_t frozen = t->is_frozen ? layers - thawed : 0;
    pl_transformer block = t->block;
    block.width = k->width, block.heads = k->m->config->vision_encoder.vit_heads, block.inner = 4 * k->width;
    block.is_binary = !t->is_frozen && pl_model_is_binary(k->m->config);
    block.is_detached = true;
    const bool before = pl_net_freeze(k->n, true);
    x = pl_net_stack(k->n, &(pl_stack){"layer", t->blocks, false, 0, frozen}, &block, x);
    pl_net_thaw(k->n, before);
    block.is_detached = false;
    return pl_net_stack(k->n, &(pl_stack){"layer", t->blocks, false, frozen, layers - frozen}, &block, x);
}

/* The class token has been of use to the others. */
static pl_id without_class(const pl_hybrid *k, pl_id x)
{
    pl_drop_row_args rest = pl_drop_row_none;
    rest.x = x, rest.y = PL_NONE;
    return pl_build_drop_row(&k->n->b, &rest);
}

size_t pl_hybrid_node_count(const pl_hybrid *k) { return k->n->b.status == PL_OK ? k->n->b.graph->node_count : 0; }

pl_id pl_hybrid_make_once(const pl_hybrid *k, size_t first, pl_id made, pl_id kept)
{
    pl_builder *b = &k->n->b;
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

/* The norm after the last layer is CLIP's for the class token alone. */
pl_id pl_hybrid_see_frozen(const pl_hybrid *k, pl_id pages)
{
    const pl_config_vision_encoder *c = &k->m->config->vision_encoder;
    tower t = clip;
    t.standardizes = c->clip_normalize;
    const pl_norm first_norm = {.eps = t.block.norm.eps, .is_detached = true};
    const size_t first = pl_hybrid_node_count(k);
    pl_builder_enter(&k->n->b, "%s", t.scope);
    const bool before = pl_net_freeze(k->n, true);
    pl_id x = pl_net_norm(k->n, embed_for(k, &t, pages), &first_norm, "clip.vision_model.pre_layrnorm");
    pl_net_thaw(k->n, before);
    x = without_class(k, through(k, &t, c->pretrained_layers, c->unfreeze_pretrained_layers, x));
    x = pl_hybrid_make_once(k, first, x, k->features);
    if (k->features != PL_NONE) x = pl_net_cast(k->n, x, PL_DTYPE_F32, "%s.frozen.features", program_of(k));
    pl_builder_leave(&k->n->b);
    return x;
}

static pl_id see_trained(const pl_hybrid *k, pl_id pages)
{
    pl_builder_enter(&k->n->b, "%s", vit.scope);
    pl_id x = through(k, &vit, k->m->config->vision_encoder.vit_layers, 0, embed_for(k, &vit, pages));
    x = without_class(k, pl_net_norm(k->n, x, &vit.block.norm, "vit.layernorm"));
    pl_builder_leave(&k->n->b);
    return x;
}

/* ---- fusion ---- */

#define BIAS       0.3
#define BIAS_UNTIL 0.2 /* of all steps */
#define BIAS_FALLS 0.7

void pl_hybrid_begin_fusion(pl_hybrid *k)
{
    const pl_config *c = k->m->config;
    pl_net *n = k->n;
    k->fusion_bias = PL_NONE;
    if (!c->vision_encoder.progressive_fusion) return;
    const int64_t steps = c->train.steps;
    pl_ramp_args ramp = pl_ramp_none;
    pl_builder_enter(&n->b, "fusion");
    k->fusion_bias = pl_net_state(n, pl_init_all(BIAS), pl_shape_of(1, (int64_t)1), "fusion.progressive_bias");
    ramp.state = k->fusion_bias, ramp.step = n->input[PL_INPUT_STEP];
    ramp.high = BIAS, ramp.first = (int64_t)(BIAS_UNTIL * (double)steps);
    ramp.second = (int64_t)(BIAS_FALLS * (double)steps), ramp.last = steps;
    if (n->training) k->fusion_bias = pl_build_ramp(&n->b, &ramp);
    pl_builder_leave(&n->b);
}

/* A logit for each token: of both towers alike, or moved by one number for all tokens. */
static pl_id average(const pl_hybrid *k, bool learns)
{
    pl_id zeros = pl_hybrid_fill(k, PL_DTYPE_F32, 0, pl_shape_of(3, PL_B(1), k->tokens, (int64_t)1));
    pl_id logit = pl_hybrid_cast(k, zeros);
    if (!learns) return logit;
    pl_id alpha = pl_net_weight(k->n, pl_init_all(0.5), PL_DTYPE_F32, pl_shape_of(1, (int64_t)1), "fusion.alpha");
    return pl_net_add_positions(k->n, logit, alpha);
}

static pl_id gate_by_token(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    return pl_hybrid_two_linears(k, pl_net_join(k->n, frozen, trained), k->width, 1, "fusion.gate");
}

/* Each token of the trained tower asks every token of both, and a softmax over the two towers weighs what these say: of
 * two it is a sigmoid of the difference of their scores. The keys of both come from one matrix, so that is the score of
 * the towers' difference, in which a bias would cancel. */
static pl_id attend_both(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    pl_net *n = k->n;
    const int64_t d = k->width;
    const double bound = 1 / sqrt((double)d);
    const pl_init init = pl_init_within(bound);
    const pl_shape square = pl_shape_of(2, d, d);
    pl_sigmoid_attention_args a = pl_sigmoid_attention_none;
    pl_affine key = {PL_NONE, PL_NONE}, value = key;
    pl_id apart = pl_hybrid_minus(k, frozen, trained);
    a.q = pl_hybrid_linear(k, trained, d, "fusion.query");
    key.weight = pl_net_weight(n, init, PL_DTYPE_F32, square, "fusion.key.weight");
    value.weight = pl_net_weight(n, init, PL_DTYPE_F32, square, "fusion.value.weight");
    pl_id bias = pl_net_weight(n, init, PL_DTYPE_F32, pl_shape_of(1, d), "fusion.value.bias");
    a.k = pl_net_linear(n, apart, key, PL_NONE);
    a.v = pl_net_linear(n, apart, value, PL_NONE);
    value.bias = bias;
    a.u = pl_net_linear(n, trained, value, PL_NONE);
    a.scale = bound;
    return pl_build_sigmoid_attention(&n->b, &a);
}

static pl_id choose(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    const pl_config_fusion type = k->m->config->vision_encoder.fusion_type;
    pl_id logit = type == PL_CONFIG_FUSION_GATED ? gate_by_token(k, frozen, trained)
                                                 : average(k, type == PL_CONFIG_FUSION_LEARNED_AVG);
    if (k->fusion_bias != PL_NONE) logit = pl_net_add_positions(k->n, logit, k->fusion_bias);
    return pl_hybrid_blend(k, frozen, trained, logit, k->told ? &k->told->fusion_gates : NULL);
}

static pl_id fuse(const pl_hybrid *k, pl_id frozen, pl_id trained)
{
    const bool attends = k->m->config->vision_encoder.fusion_type == PL_CONFIG_FUSION_ATTENTION;
    pl_builder_enter(&k->n->b, "fusion");
    pl_id f = attends ? attend_both(k, frozen, trained) : choose(k, frozen, trained);
    pl_builder_leave(&k->n->b);
    return f;
}

/* ---- adapter ---- */

pl_id pl_hybrid_adapt(const pl_hybrid *k, pl_id f)
{
    const pl_config *c = k->m->config;
    const pl_hybrid_layer layer = {
        .heads = c->vision_encoder.heads, .sequences = 1, .eps = TEL_EPS, .dropout = c->vision_encoder.dropout};
    if (c->vision_encoder.adapter_layers == 0) return f;
    const bool before = pl_net_freeze(k->n, c->task_training.freeze_n2n_adapter);
    pl_builder_enter(&k->n->b, "adapter");
    pl_id x = pl_hybrid_encoder_layers(k, &layer, c->vision_encoder.adapter_layers, f, "adapter.layers");
    x = pl_hybrid_blend(k, x, f, pl_hybrid_linear(k, f, 1, "adapter.gate"), k->told ? &k->told->adapter_gates : NULL);
    pl_builder_leave(&k->n->b);
    pl_net_thaw(k->n, before);
    return x;
}

/* ---- neither ---- */

/* The encoder's own embedding, that of arch capsules (models/capsules.c), whose weights begin likewise; here they are
 * matrices. */
static pl_id embed_alone(const pl_hybrid *k, pl_id pages)
{
    const int64_t p = k->m->config->vision_encoder.patch_size, in = PL_COLOURS * p * p;
    pl_patch_embedding e = {.weight_shape = pl_shape_of(2, k->width, in),
                            .init = pl_affine_torch(PL_DTYPE_F32, in),
                            .position_init = pl_init_truncated(VIT_STD),
                            .patches = "encoder.patch_embed",
                            .positions = "encoder.pos_embed.pos_embedding"};
    return embed(k, &e, pages, "encoder");
}

bool pl_hybrid_has_towers(const pl_config *c) { return c->vision_encoder.fusion_type != PL_CONFIG_FUSION_NONE; }

pl_id pl_hybrid_see(const pl_hybrid *k, pl_id pages)
{
    if (!pl_hybrid_has_towers(k->m->config)) return pl_hybrid_adapt(k, embed_alone(k, pages));
    pl_id frozen = pl_hybrid_see_frozen(k, pages);
    return pl_hybrid_adapt(k, fuse(k, frozen, see_trained(k, pages)));
}
