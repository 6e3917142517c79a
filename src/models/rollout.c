#include "models/rollout.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/philox.h"

/* ---- weights ---- */

pl_id pl_rollout_weight(const pl_rollout *r, int64_t fan_in, pl_shape shape, const char *fmt, ...)
{
    char name[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    const double bound = 1 / sqrt((double)fan_in);
    return pl_model_uniform(r->m, r->precision, -bound, bound, shape, "%s", name);
}

pl_id pl_rollout_bias(const pl_rollout *r, int64_t fan_in, int64_t count, const char *name)
{
    const double bound = 1 / sqrt((double)fan_in);
    return pl_model_uniform(r->m, PL_DTYPE_F32, -bound, bound, pl_shape_of(1, count), "%s.bias", name);
}

pl_id pl_rollout_noise(pl_rollout *r, pl_id x)
{
    pl_model *m = r->m;
    pl_attr attr[4] = {pl_attr_i((int64_t)m->seed), pl_attr_i((int64_t)pl_stream_id("noise")),
                       pl_attr_i((int64_t)pl_facts_value(m->extents, "correlated", 0)), pl_attr_i(0)};
    pl_id out = PL_NONE;
    if (r->silent) return x;
    r->quiet = x;
    return r->noisy = pl_build_node(&m->b, PL_OP_NOISE, attr, 4,
                                    (pl_id[]){x, r->parameters, r->ids, m->input[PL_INPUT_STEP]}, 1, &out);
}

bool pl_rollout_drops(const pl_rollout *r) { return pl_facts_value(r->m->extents, "dropout", 0) && !r->silent; }

pl_id pl_rollout_dropout(const pl_rollout *r, pl_id x, const char *name)
{
    pl_model *m = r->m;
    char stream[96];
    pl_id out = PL_NONE;
    if (!pl_rollout_drops(r)) return x;
    snprintf(stream, sizeof stream, "dropout %s", name);
    pl_attr attr[4] = {pl_attr_i((int64_t)m->seed), pl_attr_i((int64_t)pl_stream_id(stream)), pl_attr_i(0),
                       pl_attr_i(1)};
    return pl_build_node(&m->b, PL_OP_NOISE, attr, 4, (pl_id[]){x, r->parameters, r->ids, m->input[PL_INPUT_STEP]}, 1,
                         &out);
}

/* ---- programs ---- */

static pl_shape image_of(const pl_rollout *r)
{
    return pl_shape_of(4, PL_B(1), r->grid, r->grid, (int64_t)PL_ROLLOUT_CHANNELS);
}

static pl_id lasting(pl_rollout *r, pl_dtype dtype, pl_shape shape, const char *name)
{
    return pl_build_persistent(&r->m->b, PL_ROLE_STATE, dtype, shape, "%s", name);
}

/* The state, and what is measured of it. */
static void give_out(pl_rollout *r, pl_id state, pl_id previous)
{
    pl_builder *b = &r->m->b;
    pl_id metrics = PL_NONE;
    pl_builder_enter(b, "metrics");
    pl_build_node(b, PL_OP_FIELD_METRICS, NULL, 2, (pl_id[]){state, previous}, 1, &metrics);
    pl_builder_leave(b);
    pl_builder_enter(b, "results");
    const bool witness = previous != PL_NONE && pl_facts_value(r->m->extents, "witness", 0);
    pl_build_node(b, PL_OP_STORE, NULL, witness ? 4 : 2, (pl_id[]){state, metrics, r->quiet, r->noisy}, 0, NULL);
    pl_builder_leave(b);
}

static pl_status build_begin(pl_rollout *r)
{
    pl_builder *b = &r->m->b;
    pl_id ports[3] = {r->state, r->parameters, r->ids};
    pl_model_begin_program(r->m, "begin");
    pl_builder_enter(b, "data");
    pl_build_node(b, PL_OP_LOAD, NULL, 0, NULL, 3, ports);
    if (b->status == PL_OK) b->graph->node[b->graph->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    give_out(r, r->state, PL_NONE);
    return b->status;
}

/* In the precision of the network; f32 is as it is. */
static pl_id narrowed(pl_rollout *r, pl_id x, const char *name)
{
    pl_builder *b = &r->m->b;
    if (r->precision == PL_DTYPE_F32) return x;
    pl_id y = pl_build_temporary(b, PL_ROLE_TEMPORARY, r->precision, image_of(r), "%s", name);
    return pl_build_node(b, PL_OP_CAST, NULL, 1, &x, 1, &y);
}

static pl_status build_step(pl_rollout *r, pl_id previous)
{
    pl_builder *b = &r->m->b;
    pl_id out[2] = {PL_NONE, PL_NONE};
    pl_model_begin_program(r->m, "step");
    pl_id y = r->network(r, narrowed(r, r->state, "step.input"));
    pl_builder_enter(b, "policy");
    pl_build_node(b, PL_OP_EVOLVE, NULL, 4, (pl_id[]){r->state, y, r->parameters, previous}, 2, out);
    pl_builder_leave(b);
    give_out(r, out[0], out[1]);
    return b->status;
}

/* What an operator is does not hang on its noise, which would hide the answer to a small change: it is left out. */
static pl_status build_features(pl_rollout *r)
{
    pl_builder *b = &r->m->b;
    pl_model_begin_program(r->m, "features");
    r->silent = true;
    pl_id y = r->network(r, narrowed(r, r->state, "features.input"));
    pl_builder_enter(b, "results");
    pl_build_node(b, PL_OP_STORE, NULL, 1, &y, 0, NULL);
    pl_builder_leave(b);
    return b->status;
}

pl_status pl_rollout_build(pl_rollout *r)
{
    static const pl_input inputs[] = {PL_INPUT_STEP, PL_INPUT_ITEM};
    pl_model *m = r->m;
    const pl_facts *e = m->extents;
    r->layers = (int64_t)pl_facts_value(e, "num_layers", 2);
    r->channels = (int64_t)pl_facts_value(e, "base_channels", 16);
    r->kernel = (int64_t)pl_facts_value(e, "kernel_size", 3);
    r->grid = (int64_t)pl_facts_value(e, "grid_size", 32);
    r->norm = (pl_rollout_norm)pl_facts_value(e, "normalization", PL_ROLLOUT_NORM_INSTANCE);
    r->activation = (pl_activation)pl_facts_value(e, "activation", PL_ACT_GELU);
    r->precision = (pl_dtype)pl_facts_value(e, "precision", PL_DTYPE_F32);
    r->convolution = (int64_t)pl_facts_value(e, "convolution", 0) - 1;
    m->seed = pl_facts_value(e, "seed", 1);
    pl_model_inputs(m, inputs, sizeof inputs / sizeof *inputs);
    r->state = lasting(r, PL_DTYPE_F32, image_of(r), "state");
    pl_id previous = lasting(r, PL_DTYPE_F32, image_of(r), "previous");
    r->parameters = lasting(r, PL_DTYPE_F32, pl_shape_of(2, PL_B(1), (int64_t)PL_ROLLOUT_COLUMNS), "parameters");
    r->ids = lasting(r, PL_DTYPE_I64, pl_shape_of(2, PL_B(1), (int64_t)PL_ROLLOUT_IDS), "ids");
    PL_TRY(m->b.status);
    PL_TRY(build_begin(r));
    PL_TRY(build_step(r, previous));
    const bool is_asked = pl_facts_value(e, "features", 0) || pl_facts_value(e, "export", 0);
    return is_asked ? build_features(r) : PL_OK;
}
