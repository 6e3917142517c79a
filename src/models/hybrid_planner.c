/* The planner: several ways to go on from the state, each refined by the same layers, and their mean by a score; a gate
 * for each page says how much of it counts. And the head that says whether reasoning may end. */
#include <stdio.h>

#include "models/hybrid.h"

#define NORM_EPS  1e-5
#define HALT_BIAS (-5.0)
enum { HALT_OUTPUTS = 3, SCORE_SHARE = 2, GATE_SHARE = 4 };

/* [B,P·K,D]: the ways of a sample, one after the other. */
static pl_id part_ways(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_concat_args ways = pl_concat_none;
    char name[64];
    for (int p = 0; p < paths; p++) {
        snprintf(name, sizeof name, "planner.path_generators.%d", p);
        pl_builder_enter(&k->n->b, "path.%d", p);
        ways.part[p] = pl_net_view(k->n, pl_hybrid_two_linears(k, x, k->width, k->width, name),
                                   pl_shape_of(2, PL_B(1), k->capsules * k->width));
        pl_builder_leave(&k->n->b);
    }
    pl_id all = paths == 1 ? ways.part[0] : pl_build_concat(&k->n->b, &ways);
    return pl_net_view(k->n, all, pl_shape_of(3, PL_B(1), paths * k->capsules, k->width));
}

static pl_id refine(const pl_hybrid *k, pl_id x, int64_t paths)
{
    const pl_config *c = k->m->config;
    const pl_hybrid_layer layer = {
        .heads = c->vision_encoder.heads, .sequences = paths, .eps = NORM_EPS, .dropout = c->vision_encoder.dropout};
    return pl_hybrid_encoder_layers(k, &layer, c->latent_planning.latent_planning_depth, x,
                                    "planner.refinement.layers");
}

static pl_id drop_ways(const pl_hybrid *k, pl_id x, int64_t paths)
{
    const pl_config *c = k->m->config;
    pl_net *n = k->n;
    pl_path_dropout_args drop = pl_path_dropout_none;
    drop.x = x, drop.step = n->input[PL_INPUT_STEP], drop.first_sample = n->input[PL_INPUT_FIRST_SAMPLE];
    drop.paths = paths, drop.probability = c->latent_planning.path_dropout;
    drop.seed = n->dropout_seed, drop.stream = pl_net_stream(k->n, "");
    return pl_net_drops(n, drop.probability) ? pl_build_path_dropout(&n->b, &drop) : x;
}

/* Their mean by the softmax of a score of what each is in the mean. */
static pl_id weigh(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_builder *b = &k->n->b;
    pl_softmax_pool_args pool = pl_softmax_pool_none;
    pl_id image = pl_net_view(k->n, x, pl_shape_of(4, PL_B(1), paths, k->capsules, k->width));
    pl_builder_enter(b, "score");
    pl_id mean =
        pl_net_view(k->n, pl_net_mean_of_grid(k->n, image, paths, 1), pl_shape_of(3, PL_B(1), paths, k->width));
    pool.logits = pl_hybrid_two_linears(k, mean, k->width / SCORE_SHARE, 1, "planner.path_scorer");
    if (k->told) k->told->scores = pool.logits;
    pool.x = pl_net_view(k->n, x, pl_shape_of(3, PL_B(1), paths, k->capsules * k->width));
    pl_build_softmax_pool(b, &pool);
    pl_builder_leave(b);
    return pl_net_view(k->n, pool.y, pl_shape_of(3, PL_B(1), k->capsules, k->width));
}

static pl_id gate(const pl_hybrid *k, pl_id planned, pl_id high)
{
    pl_builder *b = &k->n->b;
    const int64_t inner = k->width / GATE_SHARE;
    pl_builder_enter(b, "gate");
    pl_id logit = pl_hybrid_two_linears(k, pl_net_mean_of_grid(k->n, high, 1, 1), inner ? inner : 1, 1, "planner.gate");
    pl_id out = pl_hybrid_blend(k, planned, high, logit, k->told ? &k->told->planner_gate : NULL);
    pl_builder_leave(b);
    return out;
}

pl_id pl_hybrid_plan(const pl_hybrid *k, pl_id high)
{
    pl_builder *b = &k->n->b;
    const pl_config *c = k->m->config;
    const int64_t paths = c->latent_planning.latent_num_paths;
    if (!c->latent_planning.enable_latent_planning) return high;
    pl_builder_enter(b, "planner");
    pl_id x = weigh(k, drop_ways(k, refine(k, part_ways(k, high, paths), paths), paths), paths);
    x = pl_net_activate(k->n, PL_ACT_GELU, pl_hybrid_linear(k, x, k->width, "planner.output_projection.0"));
    x = pl_net_norm(k->n, x, &(pl_norm){.eps = NORM_EPS}, "planner.output_projection.2");
    pl_id out = pl_net_add(k->n, x, high);
    if (c->latent_planning.latent_use_adaptive_gate) out = gate(k, out, high);
    pl_builder_leave(b);
    return out;
}

/* The project that the head comes from has three outputs; the first is this logit. The head reads the first capsule. */
pl_id pl_hybrid_halt(const pl_hybrid *k, pl_id high)
{
    pl_net *n = k->n;
    const int64_t outputs = HALT_OUTPUTS;
    const pl_affine_init init = {.weight = pl_init_all(0), .bias = pl_init_all(HALT_BIAS)};
    pl_id flat = pl_net_view(n, high, pl_shape_of(2, PL_B(1), k->capsules * k->width));
    pl_id first = pl_net_slice(n, flat, 0, k->width);
    const pl_affine w = pl_net_affine(n, &init, pl_shape_of(2, outputs, k->width), "q_head");
    return pl_net_slice(n, pl_net_linear(n, first, w, PL_NONE), 0, 1);
}
