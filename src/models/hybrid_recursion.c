/* The two recursions: blocks over the tokens of a page, which end in capsules, and blocks over capsules. Both are those
 * of the Tiny Recursive Model (Jolicoeur-Martineau 2025): h = norm(h + attention(h)), h = norm(h + swiglu(h)), without
 * biases, norms without a gain. */
#include <math.h>
#include <stdio.h>

#include "models/hybrid.h"

enum { GATED_ROWS = 784, CHECKSUM_WIDTH = 128 };
#define ENCODER_EPS  1e-6
#define REASONER_EPS 1e-5
#define ROPE_THETA   1e4

typedef struct blocks {
    const char *names; /* "encoder.L_blocks" */
    int64_t count, heads, inner;
    double eps;
    bool turned; /* with rotary positions */
    bool taped;  /* gradients will come back */
} blocks;

/* LeCun's, cut at two deviations; no bias. */
static pl_id matrix(const pl_hybrid *k, int64_t out, int64_t in, const char *name)
{
    return pl_model_truncated(k->m, PL_DTYPE_F32, 1 / sqrt((double)in), pl_shape_of(2, out, in), "%s.weight", name);
}

static pl_id norm(const pl_hybrid *k, const blocks *s, pl_id x)
{
    pl_id in[2] = {x, PL_NONE}, out[2] = {PL_NONE, PL_NONE};
    return pl_build_node(&k->m->b, PL_OP_RMS_NORM, (pl_attr[]){pl_attr_f(s->eps)}, 2, in,
                         k->m->training && s->taped ? 2 : 1, out);
}

static pl_id turn(const pl_hybrid *k, const blocks *s, pl_id qkv)
{
    const pl_attr attr[] = {pl_attr_i(3 * s->heads), pl_attr_i(2 * s->heads), pl_attr_f(ROPE_THETA), pl_attr_i(0)};
    pl_id out = PL_NONE;
    return s->turned ? pl_build_node(&k->m->b, PL_OP_ROPE, attr, 1, &qkv, 1, &out) : qkv;
}

static pl_id attention(const pl_hybrid *k, const blocks *s, pl_id x, int block)
{
    pl_model *m = k->m;
    const int64_t d = k->width;
    char name[96];
    pl_id in[3];
    pl_builder_enter(&m->b, "attention");
    snprintf(name, sizeof name, "%s.%d.self_attn.qkv_proj", s->names, block);
    pl_id qkv = turn(k, s, pl_model_linear(m, x, matrix(k, 3 * d, d, name), PL_NONE, PL_NONE));
    for (int i = 0; i < 3; i++) in[i] = pl_model_columns(m, qkv, i * d, d);
    pl_id o = pl_hybrid_attend(k, s->heads, in, 0, 1, s->taped);
    snprintf(name, sizeof name, "%s.%d.self_attn.o_proj", s->names, block);
    x = norm(k, s, pl_model_linear(m, o, matrix(k, d, d, name), PL_NONE, x));
    pl_builder_leave(&m->b);
    return x;
}

static pl_id feed_forward(const pl_hybrid *k, const blocks *s, pl_id x, int block)
{
    char name[96];
    pl_id in[4] = {x, PL_NONE, PL_NONE, x}, out = PL_NONE;
    pl_builder_enter(&k->m->b, "feed_forward");
    snprintf(name, sizeof name, "%s.%d.mlp.gate_up_proj", s->names, block);
    in[1] = matrix(k, 2 * s->inner, k->width, name);
    snprintf(name, sizeof name, "%s.%d.mlp.down_proj", s->names, block);
    in[2] = matrix(k, k->width, s->inner, name);
    pl_build_node(&k->m->b, PL_OP_GATED_FEED_FORWARD, (pl_attr[]){pl_attr_i(PL_ACT_SILU), pl_attr_i(GATED_ROWS)}, 4, in,
                  1, &out);
    out = norm(k, s, out);
    pl_builder_leave(&k->m->b);
    return out;
}

static pl_id through(const pl_hybrid *k, const blocks *s, pl_id x)
{
    for (int i = 0; i < s->count; i++) {
        pl_builder_enter(&k->m->b, "block.%d", i);
        x = feed_forward(k, s, attention(k, s, x, i), i);
        pl_builder_leave(&k->m->b);
    }
    return x;
}

/* ---- over tokens, and the capsule heads ---- */

static pl_id child_means(const pl_hybrid *k, pl_id tokens, pl_id attention)
{
    pl_builder *b = &k->m->b;
    const int64_t count = k->m->config->vision_encoder.children_per_capsule;
    pl_id index = PL_NONE, of = PL_NONE, mean = PL_NONE;
    pl_build_node(b, PL_OP_TOP_K, (pl_attr[]){pl_attr_i(count)}, 1, &attention, 1, &index);
    pl_build_node(b, PL_OP_GATHER_ROWS, NULL, 2, (pl_id[]){tokens, index}, 1, &of);
    of = pl_model_view(k->m, pl_hybrid_linear(k, of, k->width, "children_projection"),
                       pl_shape_of(4, PL_B(1), k->capsules, count, k->width));
    const pl_attr grid[] = {pl_attr_i(k->capsules), pl_attr_i(1)};
    pl_build_node(b, PL_OP_ADAPTIVE_AVG_POOL, grid, 1, &of, 1, &mean);
    return pl_model_view(k->m, mean, pl_shape_of(3, PL_B(1), k->capsules, k->width));
}

static pl_id checksums(const pl_hybrid *k, pl_id sketches)
{
    pl_id h = pl_hybrid_linear(k, sketches, CHECKSUM_WIDTH, "checksum_head.0"), out = PL_NONE;
    pl_build_node(&k->m->b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(PL_ACT_RELU)}, 1, &h, 1, &out);
    return pl_hybrid_linear(k, out, k->m->config->vision_encoder.checksum_dim, "checksum_head.2");
}

void pl_hybrid_encode(const pl_hybrid *k, pl_id x, pl_hybrid_capsules *c)
{
    pl_builder *b = &k->m->b;
    const pl_config *cfg = k->m->config;
    const blocks s = {.names = "encoder.L_blocks",
                      .count = cfg->vision_encoder.num_layers,
                      .heads = cfg->vision_encoder.num_heads,
                      .inner = k->encoder_inner,
                      .eps = ENCODER_EPS,
                      .taped = true};
    pl_id pooled[2] = {PL_NONE, PL_NONE};
    pl_builder_enter(b, "encoder");
    for (int64_t i = 0; i < cfg->vision_encoder.H_cycles * cfg->vision_encoder.L_cycles; i++) {
        pl_builder_enter(b, "cycle.%d", (int)i);
        x = through(k, &s, x);
        pl_builder_leave(b);
    }
    x = pl_hybrid_norm(k, x, ENCODER_EPS, false, "encoder.pre_pool_norm");
    pl_id logits = pl_hybrid_linear(k, x, k->capsules, "encoder.spatial_pool.attn_conv");
    pl_build_node(b, PL_OP_CAPSULE_POOL, NULL, 2, (pl_id[]){x, logits}, k->m->training ? 2 : 1, pooled);
    c->sketches = pooled[0];
    if (k->m->training) { /* they are learnt; no word is read from them */
        c->child_means = child_means(k, x, pooled[1]);
        c->checksums = checksums(k, c->sketches);
    }
    pl_builder_leave(b);
}

/* ---- over capsules ---- */

/* A state is the same vector for all capsules at first. */
static pl_id plus(const pl_hybrid *k, pl_id state, pl_id x)
{
    pl_builder *b = &k->m->b;
    if (b->status != PL_OK) return PL_NONE;
    const bool is_vector = b->graph->value[state].shape.rank == 1;
    pl_id out = PL_NONE;
    return pl_build_node(b, is_vector ? PL_OP_ADD_POSITIONS : PL_OP_ADD, NULL, 2, (pl_id[]){x, state}, 1, &out);
}

static pl_id first_state(const pl_hybrid *k, const char *name)
{
    return pl_hybrid_freeze(k, true, pl_model_truncated(k->m, PL_DTYPE_F32, 1, pl_shape_of(1, k->width), "%s", name));
}

static pl_id detached(const pl_hybrid *k, pl_id x)
{
    pl_id out = PL_NONE;
    return k->m->training ? pl_build_node(&k->m->b, PL_OP_DETACH, NULL, 1, &x, 1, &out) : x;
}

pl_id pl_hybrid_reason(const pl_hybrid *k, pl_id capsules)
{
    pl_builder *b = &k->m->b;
    const pl_config *c = k->m->config;
    blocks s = {.names = "reasoner.L_level.layers",
                .count = c->reasoning.L_layers,
                .heads = c->reasoning.num_heads,
                .inner = k->reasoner_inner,
                .eps = REASONER_EPS,
                .turned = true};
    pl_builder_enter(b, "reasoner");
    pl_id high = first_state(k, "reasoner.H_init"), low = first_state(k, "reasoner.L_init");
    for (int64_t h = 0; h < c->reasoning.H_cycles; h++) {
        s.taped = h + 1 == c->reasoning.H_cycles;
        pl_builder_enter(b, "cycle.%d", (int)h);
        for (int64_t l = 0; l < c->reasoning.L_cycles; l++) {
            pl_builder_enter(b, "low.%d", (int)l);
            low = through(k, &s, plus(k, low, plus(k, high, capsules)));
            pl_builder_leave(b);
        }
        pl_builder_enter(b, "high");
        high = through(k, &s, plus(k, high, low));
        pl_builder_leave(b);
        if (!s.taped) high = detached(k, high), low = detached(k, low);
        pl_builder_leave(b);
    }
    pl_builder_leave(b);
    return high;
}
