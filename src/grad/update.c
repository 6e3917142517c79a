/* The optimizer as nodes of the graph. */
#include <stdio.h>

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
    pl_id sum = pl_build_temporary(&t->b, PL_ROLE_STATE, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "grad_norm_squared"),
          out = sum;
    pl_build_node(&t->b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
    for (size_t i = 0; i < values && t->b.status == PL_OK; i++) {
        if (g->value[i].role != PL_ROLE_GRADIENT || pl_value_root(g, (pl_id)i) != i) continue;
        out = PL_NONE;
        sum = pl_build_node(&t->b, PL_OP_SUM_SQUARES, NULL, 2, (pl_id[]){newest[i], sum}, 1, &out);
    }
    pl_id ins[3] = {sum, PL_NONE, t->skipped}, outs[3] = {PL_NONE, PL_NONE, PL_NONE};
    pl_build_node(&t->b, PL_OP_CLIP_SCALE, (pl_attr[]){pl_attr_f(t->u->clip)}, 3, ins, 3, outs);
    t->scale = outs[0];
    t->finite = outs[1];
    t->skipped = outs[2];
}

/* Moments and counts start at zero: nodes of the init program, where there is one. */
static void add_initial_zero(updater *t, pl_id value)
{
    pl_id program = pl_graph_find_program(t->b.graph, "init"), out = value;
    if (program == PL_NONE || t->b.status != PL_OK) return;
    pl_builder init = pl_builder_begin(t->b.graph, program, t->b.err);
    snprintf(init.scope, sizeof init.scope, "%s", t->b.scope);
    pl_build_node(&init, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &out);
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
    pl_id average = pl_build_persistent(&t->b, PL_ROLE_AVERAGE, PL_DTYPE_F32, g->value[weight].shape, "ema.%s", name);
    pl_id in[2] = {average, updated}, out = PL_NONE;
    pl_build_node(&t->b, PL_OP_EMA, (pl_attr[]){pl_attr_f(t->u->ema_rate)}, 2, in, 1, &out);
    if (t->b.status != PL_OK) return;
    g->node[g->node_count - 1].predicate = t->finite;
    pl_id program = pl_graph_find_program(g, "init");
    if (program == PL_NONE) return;
    pl_builder init = pl_builder_begin(g, program, t->b.err);
    snprintf(init.scope, sizeof init.scope, "%s", t->b.scope);
    pl_build_node(&init, PL_OP_CAST, NULL, 1, &weight, 1, &average);
    t->b.status = init.status;
}

static void add_optimizer(updater *t, pl_id weight, pl_id gradient)
{
    pl_graph *g = t->b.graph;
    char name[256];
    snprintf(name, sizeof name, "%s", g->value[weight].name);
    snprintf(t->b.scope, sizeof t->b.scope, "%s", g->value[weight].scope);
    pl_shape shape = g->value[weight].shape;
    pl_id m = pl_build_persistent(&t->b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, shape, "m.%s", name);
    pl_id v = pl_build_persistent(&t->b, PL_ROLE_OPTIMIZER, PL_DTYPE_F32, shape, "v.%s", name);
    if (t->b.status != PL_OK) return;
    const bool latent = g->value[weight].latent;
    pl_attr attr[PL_ATTR_MAX];
    int attrs = 0;
    attr[attrs++] = pl_attr_f(t->u->beta1);
    attr[attrs++] = pl_attr_f(t->u->beta2);
    if (!t->u->angle) attr[attrs++] = pl_attr_f(t->u->epsilon);
    attr[attrs++] = pl_attr_f(shape.rank >= 2 && !latent ? t->u->weight_decay : 0);
    attr[attrs++] = pl_attr_i((int64_t)t->u->seed);
    attr[attrs++] = pl_attr_i((int64_t)pl_stream_id(g->value[m].name));
    attr[attrs++] = pl_attr_f(latent ? 1 : 0);
    pl_id in[8] = {weight, gradient, m, v, t->u->lr, t->u->step, t->scale, t->skipped},
          out[3] = {PL_NONE, PL_NONE, PL_NONE};
    pl_build_node(&t->b, t->u->angle ? PL_OP_ADAM_ATAN2 : PL_OP_ADAMW, attr, 8, in, 3, out);
    if (t->b.status != PL_OK) return;
    g->node[g->node_count - 1].predicate = t->finite;
    add_initial_zero(t, m);
    add_initial_zero(t, v);
    add_average(t, weight, out[0], name);
}

pl_status pl_grad_add_update(pl_graph *g, pl_id program, const pl_grad_update *u, pl_error *err)
{
    size_t values = g->value_count;
    updater t = {.b = pl_builder_begin(g, program, err), .u = u, .scale = PL_NONE, .finite = PL_NONE};
    t.b.phase = PL_PHASE_UPDATE;
    pl_status status;
    pl_names names = {0};
    pl_id *newest = pl_alloc(values, sizeof *newest);
    if (!newest) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the optimizer's nodes"));
    PL_TRY_DONE(pl_names_init(&names, g, err));
    newest_versions(g, program, newest);
    pl_builder_enter(&t.b, "clip");
    add_skipped(&t);
    if (u->clip > 0) add_clipping(&t, values, newest);
    for (size_t i = 0; i < values && t.b.status == PL_OK; i++) {
        if (g->value[i].role != PL_ROLE_GRADIENT || pl_value_root(g, (pl_id)i) != i) continue;
        add_optimizer(&t, pl_names_find(&names, g, g->value[i].name + sizeof "grad." - 1), newest[i]);
    }
    PL_TRY_DONE(t.b.status);
    PL_TRY_DONE(pl_graph_group_programs(g, err));
done:
    pl_names_deinit(&names);
    pl_free(newest);
    return status;
}
