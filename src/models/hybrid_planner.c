/* The planner: several ways to go on from the state, each refined by the same layers, and their mean by a score; a gate
 * for each page says how much of it counts. And the head that says whether reasoning may end. */
#include <stdio.h>

#include "models/hybrid.h"

#define NORM_EPS  1e-5
#define HALT_BIAS (-5.0)
enum { HALT_OUTPUTS = 3, SCORE_SHARE = 2, GATE_SHARE = 4 };

/* [B,P·K,D]: the ways of a sample, one behind the other. */
static pl_id part_ways(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_concat_args ways = pl_concat_none;
    char name[64];
    for (int p = 0; p < paths; p++) {
        snprintf(name, sizeof name, "planner.path_generators.%d", p);
        pl_builder_enter(&k->m->b, "path.%d", p);
        ways.part[p] = pl_model_view(k->m, pl_hybrid_two_linears(k, x, k->width, k->width, name),
                                     pl_shape_of(2, PL_B(1), k->capsules * k->width));
        pl_builder_leave(&k->m->b);
    }
    pl_id all = paths == 1 ? ways.part[0] : pl_build_concat(&k->m->b, &ways);
    return pl_model_view(k->m, all, pl_shape_of(3, PL_B(1), paths * k->capsules, k->width));
}

static pl_id refine(const pl_hybrid *k, pl_id x, int64_t paths)
{
    const pl_config *c = k->m->config;
    const pl_hybrid_layer layer = {
        .heads = c->vision_encoder.heads, .sequences = paths, .eps = NORM_EPS, .dropout = c->vision_encoder.dropout};
    char name[64];
    for (int i = 0; i < c->latent_planning.latent_planning_depth; i++) {
        pl_builder_enter(&k->m->b, "layer.%d", i);
        snprintf(name, sizeof name, "planner.refinement.layers.%d", i);
        x = pl_hybrid_encoder_layer(k, &layer, x, name);
        pl_builder_leave(&k->m->b);
    }
    return x;
}

static pl_id drop_ways(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_model *m = k->m;
    pl_path_dropout_args drop = pl_path_dropout_none;
    drop.x = x, drop.step = m->input[PL_INPUT_STEP], drop.first_sample = m->input[PL_INPUT_FIRST_SAMPLE];
    drop.paths = paths, drop.probability = m->config->latent_planning.path_dropout;
    drop.seed = m->config->train.seed, drop.stream = pl_model_stream(m, "");
    return m->training && drop.probability > 0 ? pl_build_path_dropout(&m->b, &drop) : x;
}

/* [B,height,1,D] of an image [B,…,D]. */
static pl_id mean_of_grid(const pl_hybrid *k, pl_id image, int64_t height)
{
    pl_adaptive_avg_pool_args mean = pl_adaptive_avg_pool_none;
    mean.x = image, mean.height = height, mean.width = 1;
    return pl_build_adaptive_avg_pool(&k->m->b, &mean);
}

/* Their mean by the softmax of a score of what each is in the mean. */
static pl_id weigh(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_model *m = k->m;
    pl_softmax_pool_args pool = pl_softmax_pool_none;
    pl_id image = pl_model_view(m, x, pl_shape_of(4, PL_B(1), paths, k->capsules, k->width));
    pl_builder_enter(&m->b, "score");
    pl_id mean = pl_model_view(m, mean_of_grid(k, image, paths), pl_shape_of(3, PL_B(1), paths, k->width));
    pool.logits = pl_hybrid_two_linears(k, mean, k->width / SCORE_SHARE, 1, "planner.path_scorer");
    if (k->told) k->told->scores = pool.logits;
    pool.x = pl_model_view(m, x, pl_shape_of(3, PL_B(1), paths, k->capsules * k->width));
    pl_build_softmax_pool(&m->b, &pool);
    pl_builder_leave(&m->b);
    return pl_model_view(m, pool.y, pl_shape_of(3, PL_B(1), k->capsules, k->width));
}

static pl_id gate(const pl_hybrid *k, pl_id planned, pl_id high)
{
    pl_builder *b = &k->m->b;
    const int64_t inner = k->width / GATE_SHARE;
    pl_builder_enter(b, "gate");
    pl_id logit = pl_hybrid_two_linears(k, mean_of_grid(k, high, 1), inner ? inner : 1, 1, "planner.gate");
    pl_id out = pl_hybrid_blend(k, planned, high, logit, k->told ? &k->told->planner_gate : NULL);
    pl_builder_leave(b);
    return out;
}

pl_id pl_hybrid_plan(const pl_hybrid *k, pl_id high)
{
    pl_builder *b = &k->m->b;
    const pl_config *c = k->m->config;
    const int64_t paths = c->latent_planning.latent_num_paths;
    pl_add_args sum = pl_add_none;
    if (!c->latent_planning.enable_latent_planning) return high;
    pl_builder_enter(b, "planner");
    pl_id x = weigh(k, drop_ways(k, refine(k, part_ways(k, high, paths), paths), paths), paths);
    x = pl_hybrid_activate(k, PL_ACT_GELU, pl_hybrid_linear(k, x, k->width, "planner.output_projection.0"));
    sum.a = pl_hybrid_norm(k, x, NORM_EPS, false, "planner.output_projection.2"), sum.b = high;
    pl_id out = pl_build_add(b, &sum);
    if (c->latent_planning.latent_use_adaptive_gate) out = gate(k, out, high);
    pl_builder_leave(b);
    return out;
}

static pl_id first_columns(const pl_hybrid *k, pl_id x, int64_t columns)
{
    pl_slice_args first = pl_slice_none;
    first.x = x, first.channels = columns;
    return pl_build_slice(&k->m->b, &first);
}

/* Of three outputs, which the project that the head is from has, the first says it. It reads the first capsule. */
pl_id pl_hybrid_halt(const pl_hybrid *k, pl_id high)
{
    pl_model *m = k->m;
    pl_id flat = pl_model_view(m, high, pl_shape_of(2, PL_B(1), k->capsules * k->width));
    pl_id first = first_columns(k, flat, k->width);
    pl_id w = pl_model_constant(m, 0, pl_shape_of(2, (int64_t)HALT_OUTPUTS, k->width), "q_head.weight");
    pl_id bias = pl_model_constant(m, HALT_BIAS, pl_shape_of(1, (int64_t)HALT_OUTPUTS), "q_head.bias");
    return first_columns(k, pl_model_linear(m, first, w, bias, PL_NONE), 1);
}
