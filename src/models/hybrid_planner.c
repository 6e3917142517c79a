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
    pl_id way[PL_NODE_IN_MAX], all = PL_NONE;
    char name[64];
    for (int p = 0; p < paths; p++) {
        snprintf(name, sizeof name, "planner.path_generators.%d", p);
        pl_builder_enter(&k->m->b, "path.%d", p);
        way[p] = pl_model_view(k->m, pl_hybrid_two_linears(k, x, k->width, k->width, name),
                               pl_shape_of(2, PL_B(1), k->capsules * k->width));
        pl_builder_leave(&k->m->b);
    }
    if (paths == 1)
        all = way[0];
    else
        pl_build_node(&k->m->b, PL_OP_CONCAT, NULL, (int)paths, way, 1, &all);
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
    const pl_attr attr[] = {pl_attr_i(paths), pl_attr_f(m->config->latent_planning.path_dropout),
                            pl_attr_i(m->config->train.seed), pl_attr_i(pl_model_stream(m, ""))};
    pl_id in[3] = {x, m->input[PL_INPUT_STEP], m->input[PL_INPUT_FIRST_SAMPLE]}, out = PL_NONE;
    return m->training && attr[1].f > 0 ? pl_build_node(&m->b, PL_OP_PATH_DROPOUT, attr, 3, in, 1, &out) : x;
}

/* Their mean by the softmax of a score of what each is in the mean. */
static pl_id weigh(const pl_hybrid *k, pl_id x, int64_t paths)
{
    pl_model *m = k->m;
    const pl_attr grid[] = {pl_attr_i(paths), pl_attr_i(1)};
    pl_id image = pl_model_view(m, x, pl_shape_of(4, PL_B(1), paths, k->capsules, k->width)), mean = PL_NONE,
          y = PL_NONE;
    pl_builder_enter(&m->b, "score");
    pl_build_node(&m->b, PL_OP_ADAPTIVE_AVG_POOL, grid, 1, &image, 1, &mean);
    mean = pl_model_view(m, mean, pl_shape_of(3, PL_B(1), paths, k->width));
    pl_id score = pl_hybrid_two_linears(k, mean, k->width / SCORE_SHARE, 1, "planner.path_scorer");
    if (k->told) k->told->scores = score;
    x = pl_model_view(m, x, pl_shape_of(3, PL_B(1), paths, k->capsules * k->width));
    pl_build_node(&m->b, PL_OP_SOFTMAX_POOL, NULL, 2, (pl_id[]){x, score}, 1, &y);
    pl_builder_leave(&m->b);
    return pl_model_view(m, y, pl_shape_of(3, PL_B(1), k->capsules, k->width));
}

static pl_id gate(const pl_hybrid *k, pl_id planned, pl_id high)
{
    pl_builder *b = &k->m->b;
    const pl_attr grid[] = {pl_attr_i(1), pl_attr_i(1)};
    const int64_t inner = k->width / GATE_SHARE;
    pl_id mean = PL_NONE;
    pl_builder_enter(b, "gate");
    pl_build_node(b, PL_OP_ADAPTIVE_AVG_POOL, grid, 1, &high, 1, &mean);
    pl_id logit = pl_hybrid_two_linears(k, mean, inner ? inner : 1, 1, "planner.gate");
    pl_id out = pl_hybrid_blend(k, planned, high, logit, k->told ? &k->told->planner_gate : NULL);
    pl_builder_leave(b);
    return out;
}

pl_id pl_hybrid_plan(const pl_hybrid *k, pl_id high)
{
    pl_builder *b = &k->m->b;
    const pl_config *c = k->m->config;
    const int64_t paths = c->latent_planning.latent_num_paths;
    pl_id out = PL_NONE;
    if (!c->latent_planning.enable_latent_planning) return high;
    pl_builder_enter(b, "planner");
    pl_id x = weigh(k, drop_ways(k, refine(k, part_ways(k, high, paths), paths), paths), paths);
    x = pl_hybrid_activate(k, PL_ACT_GELU, pl_hybrid_linear(k, x, k->width, "planner.output_projection.0"));
    x = pl_hybrid_norm(k, x, NORM_EPS, false, "planner.output_projection.2");
    pl_build_node(b, PL_OP_ADD, NULL, 2, (pl_id[]){x, high}, 1, &out);
    if (c->latent_planning.latent_use_adaptive_gate) out = gate(k, out, high);
    pl_builder_leave(b);
    return out;
}

/* Of three outputs, which the project that the head is from has, the first says it. It reads the first capsule. */
pl_id pl_hybrid_halt(const pl_hybrid *k, pl_id high)
{
    pl_model *m = k->m;
    pl_id flat = pl_model_view(m, high, pl_shape_of(2, PL_B(1), k->capsules * k->width)), first = PL_NONE, q = PL_NONE;
    pl_build_node(&m->b, PL_OP_SLICE, (pl_attr[]){pl_attr_i(0), pl_attr_i(k->width)}, 1, &flat, 1, &first);
    pl_id w = pl_model_constant(m, 0, pl_shape_of(2, (int64_t)HALT_OUTPUTS, k->width), "q_head.weight");
    pl_id bias = pl_model_constant(m, HALT_BIAS, pl_shape_of(1, (int64_t)HALT_OUTPUTS), "q_head.bias");
    pl_id all = pl_model_linear(m, first, w, bias, PL_NONE);
    return pl_build_node(&m->b, PL_OP_SLICE, (pl_attr[]){pl_attr_i(0), pl_attr_i(1)}, 1, &all, 1, &q);
}
