/* The two recursions: over the tokens of a page, which ends in capsules, and over capsules. */
#include "models/hybrid.h"
#include "models/recursion.h"

enum { CHECKSUM_WIDTH = 128 };
#define ENCODER_EPS  1e-6
#define REASONER_EPS 1e-5

/* ---- over tokens, and the capsule heads ---- */

static pl_id children_of(const pl_hybrid *k, pl_id tokens, pl_id attention)
{
    const int64_t count = k->m->config->vision_encoder.children_per_capsule;
    pl_id children = pl_net_top_rows(k->n, tokens, attention, count);
    return pl_net_view(k->n, pl_hybrid_linear(k, children, k->width, "children_projection"),
                       pl_shape_of(4, PL_B(1), k->capsules, count, k->width));
}

static pl_id means_of(const pl_hybrid *k, pl_id children)
{
    return pl_net_view(k->n, pl_net_mean_of_grid(k->n, children, k->capsules, 1),
                       pl_shape_of(3, PL_B(1), k->capsules, k->width));
}

static pl_id checksums(const pl_hybrid *k, pl_id sketches)
{
    return pl_net_two_linears(k->n, sketches, PL_DTYPE_F32, CHECKSUM_WIDTH, PL_ACT_RELU,
                              k->m->config->vision_encoder.checksum_dim, "checksum_head");
}

void pl_hybrid_encode(const pl_hybrid *k, pl_id x, pl_hybrid_capsules *c)
{
    pl_builder *b = &k->n->b;
    const pl_config *cfg = k->m->config;
    const pl_recursion r = {.n = k->n,
                            .is_binary = pl_model_is_binary(k->m->config),
                            .names = "encoder.L_blocks",
                            .count = cfg->vision_encoder.layers,
                            .heads = cfg->vision_encoder.heads,
                            .width = k->width,
                            .inner = pl_recursion_inner(cfg->vision_encoder.expansion, k->width),
                            .eps = ENCODER_EPS,
                            .type = PL_DTYPE_F32};
    pl_capsule_pool_args pool = pl_capsule_pool_none;
    pl_builder_enter(b, "encoder");
    x = pl_recursion_flat(&r, x, cfg->vision_encoder.H_cycles * cfg->vision_encoder.L_cycles);
    pool.tokens = pl_net_norm(k->n, x, &(pl_norm){.eps = ENCODER_EPS}, "encoder.pre_pool_norm");
    pool.logits = pl_hybrid_linear(k, pool.tokens, k->capsules, "encoder.spatial_pool.attn_conv");
    const bool has_all = k->n->training || c->is_asked; /* they are learnt; no word is read from them */
    if (has_all) pool.assignment = PL_NONE;
    c->sketches = pl_build_capsule_pool(b, &pool);
    if (has_all) {
        c->children = children_of(k, pool.tokens, pool.assignment);
        if (k->n->training) c->child_means = means_of(k, c->children);
        c->checksums = checksums(k, c->sketches);
    }
    pl_builder_leave(b);
}

/* ---- over capsules ---- */

/* Training goes through them once a step, from the states in which the last step has left a page that stays; evaluation
 * as often as a page may stay. */
static pl_id reason(const pl_hybrid *k, const pl_recursion *r, pl_id capsules)
{
    const pl_config *c = k->m->config;
    const int64_t calls = k->n->training ? 1 : c->reasoning.halt_max_steps;
    pl_id state[PL_RECURSION_STATES];
    pl_recursion_begin(r, state);
    if (k->carried) {
        state[PL_RECURSION_HIGH] = pl_hybrid_take_state(k, k->carried->high, state[PL_RECURSION_HIGH]);
        state[PL_RECURSION_LOW] = pl_hybrid_take_state(k, k->carried->low, state[PL_RECURSION_LOW]);
    }
    for (int64_t i = 0; i < calls; i++) {
        if (calls > 1) pl_builder_enter(&k->n->b, "call.%d", (int)i);
        pl_recursion_go_on(r, capsules, c->reasoning.H_cycles, c->reasoning.L_cycles, state);
        if (calls > 1) pl_builder_leave(&k->n->b);
    }
    if (k->carried) {
        pl_hybrid_keep(k, &k->carried->high, pl_hybrid_cast(k, state[PL_RECURSION_HIGH]));
        pl_hybrid_keep(k, &k->carried->low, pl_hybrid_cast(k, state[PL_RECURSION_LOW]));
    }
    return state[PL_RECURSION_HIGH];
}

pl_id pl_hybrid_reason(const pl_hybrid *k, pl_id capsules)
{
    const pl_config *c = k->m->config;
    const pl_recursion r = {.n = k->n,
                            .is_binary = pl_model_is_binary(k->m->config),
                            .names = "reasoner.L_level.layers",
                            .states = "reasoner",
                            .count = c->reasoning.L_layers,
                            .heads = c->reasoning.heads,
                            .width = k->width,
                            .inner = pl_recursion_inner(c->reasoning.expansion, k->width),
                            .eps = REASONER_EPS,
                            .type = PL_DTYPE_F32,
                            .turned = true,
                            .keeps_states = true};
    pl_builder_enter(&k->n->b, "reasoner");
    pl_id high = reason(k, &r, capsules);
    pl_builder_leave(&k->n->b);
    return high;
}
