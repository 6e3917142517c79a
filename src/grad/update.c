/* The optimizer as nodes of the graph. */
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "grad/differentiate.h"
#include "ir/index.h"
#include "ir/op.h"

/* The newest version of each gradient: the last node of the program that writes its storage. */
static void newest_versions(const pl_graph *g, pl_id program, pl_id *newest)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != program) continue;
        for (int k = 0; k < PL_NODE_OUT_MAX; k++)
            if (n->out[k] != PL_NONE) newest[pl_value_root(g, n->out[k])] = n->out[k];
    }
}

typedef struct updater {
    pl_builder b;
    const pl_grad_update *u;
    pl_id scale, finite, skipped;
} updater;

static void add_clipping(updater *t, size_t values, const pl_id *newest)
{
    pl_graph *g = t->b.graph;
    pl_clip_scale_args clip = pl_clip_scale_none;
    pl_fill_args zero = pl_fill_none;
    zero.y = pl_build_temporary(&t->b, PL_ROLE_STATE, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "grad_norm_squared");
    clip.sum = pl_build_fill(&t->b, &zero);
    for (size_t i = 0; i < values && t->b.status == PL_OK; i++) {
        if (g->value[i].role != PL_ROLE_GRADIENT || pl_value_root(g, (pl_id)i) != i) continue;
        pl_sum_squares_args squares = pl_sum_squares_none;
        squares.x = newest[i], squares.sum = clip.sum;
        clip.sum = pl_build_sum_squares(&t->b, &squares);
    }
    clip.skipped = t->skipped, clip.max_norm = t->u->clip;
    pl_build_clip_scale(&t->b, &clip);
    t->scale = clip.scale;
    t->finite = clip.finite;
    t->skipped = clip.skipped_new;
}

/* Moments and counts start at zero: nodes of the init program, where there is one. */
static void add_initial_zero(updater *t, pl_id value)
{
    const pl_id program = pl_graph_find_program(t->b.graph, "init");
    pl_fill_args zero = pl_fill_none;
    if (program == PL_NONE || t->b.status != PL_OK) return;
    pl_builder init = pl_builder_begin(t->b.graph, program, t->b.err);
    pl_builder_at_value(&init, value);
    zero.y = value;
    pl_build_fill(&init, &zero);
    t->b.status = init.status;
}

/* Steps whose update was skipped, of a run: in a program that skips none, too, for the run may have begun with another
 * precision. */
static void add_skipped(updater *t)
{
    t->skipped = pl_build_persistent(&t->b, PL_ROLE_STATE, PL_DTYPE_I32, pl_shape_of(1, (int64_t)1), PL_SKIPPED_STEPS);
    add_initial_zero(t, t->skipped);
}

/* The average follows what the optimizer has just written, and stands where the weight stands: begun as it, left as it
 * was by a step that is skipped. */
static void add_average(updater *t, pl_id weight, pl_id updated, const char *name)
{
    pl_graph *g = t->b.graph;
    if (t->u->ema_rate == 0 || t->b.status != PL_OK) return;
    pl_ema_args ema = pl_ema_none;
    ema.average = pl_build_persistent(&t->b, PL_ROLE_AVERAGE, PL_DTYPE_F32, g->value[weight].shape, "ema.%s", name);
    pl_build_belongs(&t->b, ema.average, weight);
    ema.weight = updated, ema.rate = t->u->ema_rate;
    pl_build_ema(&t->b, &ema);
    if (t->b.status != PL_OK) return;
    g->node[g->node_count - 1].predicate = t->finite;
    pl_id program = pl_graph_find_program(g, "init");
    if (program == PL_NONE) return;
    pl_builder init = pl_builder_begin(g, program, t->b.err);
    pl_builder_at_value(&init, ema.average);
    pl_cast_args first = pl_cast_none;
    first.x = weight, first.y = ema.average;
    pl_build_cast(&init, &first);
    t->b.status = init.status;
}

/* The two have all but epsilon. */
static void build_optimizer(updater *t, pl_adamw_args *a)
{
    pl_adam_atan2_args angle = pl_adam_atan2_none;
    a->beta1 = t->u->beta1, a->beta2 = t->u->beta2, a->eps = t->u->epsilon, a->seed = (int64_t)t->u->seed;
    a->rate = t->u->lr, a->step = t->u->step, a->scale = t->scale, a->skipped = t->skipped;
    if (!t->u->angle) {
        pl_build_adamw(&t->b, a);
        return;
    }
    memcpy(angle.in, a->in, sizeof angle.in);
    angle.beta1 = a->beta1, angle.beta2 = a->beta2, angle.weight_decay = a->weight_decay, angle.limit = a->limit;
    angle.seed = a->seed, angle.stream = a->stream;
    pl_build_adam_atan2(&t->b, &angle);
    a->weight_new = angle.weight_new;
}

static void add_optimizer(updater *t, pl_id weight, pl_id gradient)
{
    pl_graph *g = t->b.graph;
    char name[256];
    snprintf(name, sizeof name, "%s", g->value[weight].name);
    pl_builder_at_value(&t->b, weight);
    const pl_shape shape = g->value[weight].shape;
    const bool latent = g->value[weight].latent;
    pl_adamw_args a = pl_adamw_none;
    a.weight = weight, a.gradient = gradient;
    a.m = pl_build_persistent(&t->b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, shape, "m.%s", name);
    a.v = pl_build_persistent(&t->b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, shape, "v.%s", name);
    pl_build_belongs(&t->b, a.m, weight);
    pl_build_belongs(&t->b, a.v, weight);
    if (t->b.status != PL_OK) return;
    a.weight_decay = shape.rank >= 2 && !latent ? t->u->weight_decay : 0;
    a.stream = (int64_t)pl_stream_id(g->value[a.m].name);
    a.limit = latent ? 1 : 0;
    build_optimizer(t, &a);
    if (t->b.status != PL_OK) return;
    g->node[g->node_count - 1].predicate = t->finite;
    add_initial_zero(t, a.m);
    add_initial_zero(t, a.v);
    add_average(t, weight, a.weight_new, name);
}

pl_status pl_grad_add_update(pl_graph *g, pl_id program, const pl_grad_update *u, pl_error *err)
{
    size_t values = g->value_count;
    updater t = {.b = pl_builder_begin(g, program, err), .u = u, .scale = PL_NONE, .finite = PL_NONE};
    t.b.phase = PL_PHASE_UPDATE;
    pl_status status;
    pl_id *newest = pl_alloc(values, sizeof *newest);
    if (!newest) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the optimizer's nodes"));
    newest_versions(g, program, newest);
    pl_builder_enter(&t.b, "clip");
    add_skipped(&t);
    if (u->clip > 0) add_clipping(&t, values, newest);
    for (size_t i = 0; i < values && t.b.status == PL_OK; i++) {
        if (g->value[i].role != PL_ROLE_GRADIENT || pl_value_root(g, (pl_id)i) != i) continue;
        add_optimizer(&t, g->value[i].of, newest[i]);
    }
    PL_TRY_DONE(t.b.status);
    PL_TRY_DONE(pl_graph_group_programs(g, err));
done:
    pl_free(newest);
    return status;
}
