#include "models/rollout.h"

#include <stdio.h>

#include "base/philox.h"

static pl_noise_args noise_of(const pl_rollout *r, pl_id x, const char *stream)
{
    pl_noise_args a = pl_noise_none;
    a.x = x, a.parameters = r->parameters, a.ids = r->ids, a.step = r->m->net.input[PL_INPUT_STEP];
    a.seed = (int64_t)r->m->net.seed, a.stream = (int64_t)pl_stream_id(stream);
    return a;
}

pl_id pl_rollout_noise(pl_rollout *r, pl_id x)
{
    if (r->silent) return x;
    pl_noise_args a = noise_of(r, x, "noise");
    r->quiet = x;
    a.correlated = (int64_t)pl_facts_value(r->m->extents, "correlated", 0);
    return r->noisy = pl_build_noise(&r->m->net.b, &a);
}

bool pl_rollout_drops(const pl_rollout *r) { return pl_facts_value(r->m->extents, "dropout", 0) && !r->silent; }

pl_id pl_rollout_dropout(const pl_rollout *r, pl_id x, const char *name)
{
    char stream[96];
    if (!pl_rollout_drops(r)) return x;
    snprintf(stream, sizeof stream, "dropout %s", name);
    pl_noise_args a = noise_of(r, x, stream);
    a.dropout = 1;
    return pl_build_noise(&r->m->net.b, &a);
}

/* ---- programs ---- */

static pl_shape image_of(const pl_rollout *r)
{
    return pl_shape_of(4, PL_B(1), r->grid, r->grid, (int64_t)PL_ROLLOUT_CHANNELS);
}

static pl_id lasting(pl_rollout *r, pl_dtype dtype, pl_shape shape, const char *name)
{
    return pl_build_persistent(&r->m->net.b, PL_ROLE_STATE, dtype, shape, "%s", name);
}

/* The state, and what is measured of it. */
static void give_out(pl_rollout *r, pl_id state, pl_id previous)
{
    pl_builder *b = &r->m->net.b;
    pl_field_metrics_args metrics = pl_field_metrics_none;
    pl_store_args store = pl_store_none;
    pl_builder_enter(b, "metrics");
    metrics.x = state, metrics.before = previous;
    store.port[0] = state, store.port[1] = pl_build_field_metrics(b, &metrics);
    pl_builder_leave(b);
    pl_builder_enter(b, "results");
    const bool witness = previous != PL_NONE && pl_facts_value(r->m->extents, "witness", 0);
    if (witness) store.port[2] = r->quiet, store.port[3] = r->noisy;
    pl_build_store(b, &store);
    pl_builder_leave(b);
}

static pl_status build_begin(pl_rollout *r)
{
    pl_builder *b = &r->m->net.b;
    pl_load_args load = pl_load_none;
    pl_model_begin_program(r->m, "begin");
    pl_builder_enter(b, "data");
    load.port[0] = r->state, load.port[1] = r->parameters, load.port[2] = r->ids;
    pl_build_load(b, &load);
    if (b->status == PL_OK) b->graph->node[b->graph->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    give_out(r, r->state, PL_NONE);
    return b->status;
}

/* In the precision of the network; f32 is as it is. */
static pl_id narrowed(pl_rollout *r, pl_id x, const char *name)
{
    return r->precision == PL_DTYPE_F32 ? x : pl_net_cast(&r->m->net, x, r->precision, "%s", name);
}

static pl_status build_step(pl_rollout *r, pl_id previous)
{
    pl_builder *b = &r->m->net.b;
    pl_evolve_args a = pl_evolve_none;
    pl_model_begin_program(r->m, "step");
    a.y = r->network(r, narrowed(r, r->state, "step.input"));
    pl_builder_enter(b, "policy");
    a.x = r->state, a.parameters = r->parameters, a.previous = previous;
    pl_build_evolve(b, &a);
    pl_builder_leave(b);
    give_out(r, a.x_new, a.previous_new);
    return b->status;
}

/* What an operator is does not hang on its noise, which would hide the answer to a small change: it is left out. */
static pl_status build_features(pl_rollout *r)
{
    pl_builder *b = &r->m->net.b;
    pl_store_args store = pl_store_none;
    pl_model_begin_program(r->m, "features");
    r->silent = true;
    store.port[0] = r->network(r, narrowed(r, r->state, "features.input"));
    pl_builder_enter(b, "results");
    pl_build_store(b, &store);
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
    m->net.seed = pl_facts_value(e, "seed", 1);
    pl_model_inputs(m, inputs, sizeof inputs / sizeof *inputs);
    r->state = lasting(r, PL_DTYPE_F32, image_of(r), "state");
    pl_id previous = lasting(r, PL_DTYPE_F32, image_of(r), "previous");
    r->parameters = lasting(r, PL_DTYPE_F32, pl_shape_of(2, PL_B(1), (int64_t)PL_ROLLOUT_COLUMNS), "parameters");
    r->ids = lasting(r, PL_DTYPE_I64, pl_shape_of(2, PL_B(1), (int64_t)PL_ROLLOUT_IDS), "ids");
    PL_TRY(m->net.b.status);
    PL_TRY(build_begin(r));
    PL_TRY(build_step(r, previous));
    const bool is_asked = pl_facts_value(e, "features", 0) || pl_facts_value(e, "export", 0);
    return is_asked ? build_features(r) : PL_OK;
}
