#include "models/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"
#include "base/regression.h"

/* ---- pieces shared by the models ---- */

pl_activation pl_model_activation_of(pl_config_activation a)
{
    static const pl_activation table[] = {[PL_ACTIVATION_GELU] = PL_ACT_GELU,
                                          [PL_ACTIVATION_SILU] = PL_ACT_SILU,
                                          [PL_ACTIVATION_RELU] = PL_ACT_RELU,
                                          [PL_ACTIVATION_TANH] = PL_ACT_TANH};
    return table[a];
}

/* What lasts, by name: made the first time it is asked for, and *is_new then. */
static pl_id lasting(pl_model *m, pl_role role, pl_dtype dtype, pl_shape shape, const char *name, bool *is_new)
{
    *is_new = false;
    if (m->b.status != PL_OK) return PL_NONE;
    pl_id id = pl_names_find(&m->lasting, m->b.graph, name);
    if (id != PL_NONE) return id;
    id = pl_build_persistent(&m->b, role, dtype, shape, "%s", name);
    if (id != PL_NONE) m->b.status = pl_names_add(&m->lasting, m->b.graph, id, m->b.err);
    *is_new = m->b.status == PL_OK;
    if (*is_new) pl_builder_at_value(&m->init, id);
    return id;
}

/* The value, whose first content a node of "init" has just been asked for. */
static pl_id begun(pl_model *m, pl_id value)
{
    if (m->b.status == PL_OK) m->b.status = m->init.status;
    return value;
}

static void text_of(char name[256], const char *fmt, va_list args) { vsnprintf(name, 256, fmt, args); }

static pl_id constant(pl_model *m, pl_role role, pl_dtype dtype, double value, pl_shape shape, const char *name)
{
    bool is_new;
    pl_fill_args a = pl_fill_none;
    a.y = lasting(m, role, dtype, shape, name, &is_new), a.value = value;
    if (!is_new) return a.y;
    pl_build_fill(&m->init, &a);
    return begun(m, a.y);
}

static pl_id normal(pl_model *m, double std, pl_shape shape, const char *name)
{
    bool is_new;
    pl_normal_args a = pl_normal_none;
    a.y = lasting(m, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, name, &is_new);
    a.std = std, a.seed = (int64_t)m->seed, a.stream = (int64_t)pl_stream_id(name);
    if (!is_new) return a.y;
    pl_build_normal(&m->init, &a);
    return begun(m, a.y);
}

static pl_id uniform(pl_model *m, pl_role role, pl_dtype dtype, double low, double high, pl_shape shape,
                     const char *name)
{
    bool is_new;
    pl_uniform_args a = pl_uniform_none;
    a.y = lasting(m, role, dtype, shape, name, &is_new), a.item = m->input[PL_INPUT_ITEM];
    a.low = low, a.high = high, a.seed = (int64_t)m->seed, a.stream = (int64_t)pl_stream_id(name);
    if (!is_new) return a.y;
    pl_build_uniform(&m->init, &a);
    return begun(m, a.y);
}

#define NAMED(name, fmt)                                                                                               \
    char name[256];                                                                                                    \
    va_list args;                                                                                                      \
    va_start(args, fmt);                                                                                               \
    text_of(name, fmt, args);                                                                                          \
    va_end(args)

pl_id pl_model_weight(pl_model *m, pl_model_init kind, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    double std = m->config->model.init_std;
    if (kind == PL_INIT_ZERO || kind == PL_INIT_ONE)
        return constant(m, PL_ROLE_WEIGHT, PL_DTYPE_F32, kind == PL_INIT_ONE ? 1 : 0, shape, name);
    if (kind == PL_INIT_PROJECTION) std /= sqrt(2.0 * (double)m->config->model.layers);
    return normal(m, std, shape, name);
}

pl_id pl_model_normal(pl_model *m, double std, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return normal(m, std, shape, name);
}

pl_id pl_model_constant(pl_model *m, double value, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return constant(m, PL_ROLE_WEIGHT, PL_DTYPE_F32, value, shape, name);
}

pl_id pl_model_state(pl_model *m, double value, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    pl_id id = constant(m, PL_ROLE_STATE, PL_DTYPE_F32, value, shape, name);
    if (id != PL_NONE) m->b.graph->value[id].inference = true;
    return id;
}

pl_id pl_model_uniform_state(pl_model *m, double low, double high, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    pl_id id = uniform(m, PL_ROLE_STATE, PL_DTYPE_F32, low, high, shape, name);
    if (id != PL_NONE) m->b.graph->value[id].inference = true;
    return id;
}

pl_id pl_model_carried(pl_model *m, pl_dtype dtype, double value, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return constant(m, PL_ROLE_STATE, dtype, value, shape, name);
}

pl_id pl_model_carried_copy(pl_model *m, pl_id of, const char *fmt, ...)
{
    NAMED(name, fmt);
    bool is_new;
    pl_cast_args a = pl_cast_none;
    if (of == PL_NONE) return PL_NONE;
    const pl_value v = m->b.graph->value[of];
    a.x = of, a.y = lasting(m, PL_ROLE_STATE, v.dtype, v.shape, name, &is_new);
    if (!is_new) return a.y;
    pl_build_cast(&m->init, &a);
    return begun(m, a.y);
}

pl_id pl_model_uniform(pl_model *m, pl_dtype dtype, double low, double high, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    return uniform(m, PL_ROLE_WEIGHT, dtype, low, high, shape, name);
}

pl_id pl_model_truncated(pl_model *m, pl_dtype dtype, double std, pl_shape shape, const char *fmt, ...)
{
    NAMED(name, fmt);
    bool is_new;
    pl_truncated_normal_args a = pl_truncated_normal_none;
    a.y = lasting(m, PL_ROLE_WEIGHT, dtype, shape, name, &is_new);
    a.std = std, a.seed = (int64_t)m->seed, a.stream = (int64_t)pl_stream_id(name);
    if (!is_new) return a.y;
    pl_build_truncated_normal(&m->init, &a);
    return begun(m, a.y);
}

pl_id pl_model_view(pl_model *m, pl_id x, pl_shape shape)
{
    int64_t stride[PL_RANK_MAX], elems = 1;
    for (uint32_t i = shape.rank; i-- > 0;) {
        stride[i] = elems;
        elems *= shape.dim[i];
    }
    return m->b.status == PL_OK ? pl_build_view(&m->b, x, shape, 0, stride) : PL_NONE;
}

pl_id pl_model_as_matrix(pl_model *m, pl_id weight)
{
    if (m->b.status != PL_OK) return PL_NONE;
    const pl_shape *s = &m->b.graph->value[weight].shape;
    int64_t rest = 1;
    for (uint32_t i = 1; i < s->rank; i++) rest *= s->dim[i];
    return s->rank == 2 ? weight : pl_model_view(m, weight, pl_shape_of(2, s->dim[0], rest));
}

pl_id pl_model_columns(pl_model *m, pl_id x, int64_t first, int64_t count)
{
    if (m->b.status != PL_OK) return PL_NONE;
    pl_shape s = m->b.graph->value[x].shape;
    const int64_t stride[PL_RANK_MAX] = {s.dim[1] * s.dim[2], s.dim[2], 1};
    s.dim[2] = count;
    return pl_build_view(&m->b, x, s, first, stride);
}

pl_id pl_model_linear(pl_model *m, pl_id x, pl_id weight, pl_id bias, pl_id residual)
{
    pl_linear_args a = pl_linear_none;
    a.x = x, a.weight = weight, a.bias = bias, a.residual = residual, a.act = PL_ACT_NONE;
    return pl_build_linear(&m->b, &a);
}

pl_id pl_model_activation(pl_model *m, pl_id x)
{
    pl_activation_args a = pl_activation_none;
    a.x = x, a.act = pl_model_activation_of(m->config->model.activation);
    return pl_build_activation(&m->b, &a);
}

static pl_id rms_norm(pl_model *m, pl_id x, const char *name)
{
    pl_rms_norm_args a = pl_rms_norm_none;
    a.x = x, a.eps = m->config->model.norm_eps;
    a.gamma = pl_model_weight(m, PL_INIT_ONE, pl_shape_of(1, m->config->model.width), "%s.weight", name);
    if (m->training) a.rstd = PL_NONE;
    return pl_build_rms_norm(&m->b, &a);
}

static pl_id layer_norm(pl_model *m, pl_id x, const char *name)
{
    const pl_shape width = pl_shape_of(1, m->config->model.width);
    pl_layer_norm_args a = pl_layer_norm_none;
    a.x = x, a.eps = m->config->model.norm_eps;
    a.gamma = pl_model_weight(m, PL_INIT_ONE, width, "%s.weight", name);
    a.beta = pl_model_weight(m, PL_INIT_ZERO, width, "%s.bias", name);
    if (m->training) a.mean = a.rstd = PL_NONE;
    return pl_build_layer_norm(&m->b, &a);
}

pl_id pl_model_norm(pl_model *m, pl_id x, const char *name)
{
    return m->config->model.norm == PL_NORM_RMS_NORM ? rms_norm(m, x, name) : layer_norm(m, x, name);
}

bool pl_model_drops(const pl_model *m) { return m->training && m->config->model.dropout > 0; }

int64_t pl_model_stream(const pl_model *m, const char *part)
{
    char name[sizeof m->b.scope + 16];
    snprintf(name, sizeof name, "%s%s%s", m->b.scope, part[0] ? "/" : "", part);
    return (int64_t)pl_stream_id(name);
}

pl_id pl_model_drop(pl_model *m, double probability, pl_id x, pl_id residual)
{
    pl_dropout_args a = pl_dropout_none;
    a.x = x, a.step = m->input[PL_INPUT_STEP], a.first_sample = m->input[PL_INPUT_FIRST_SAMPLE], a.residual = residual;
    a.probability = probability, a.seed = m->config->train.seed, a.stream = pl_model_stream(m, "");
    return pl_build_dropout(&m->b, &a);
}

pl_id pl_model_dropout(pl_model *m, pl_id x, pl_id residual)
{
    return pl_model_drops(m) ? pl_model_drop(m, m->config->model.dropout, x, residual) : x;
}

pl_id pl_model_freeze(pl_model *m, bool frozen, pl_id weight)
{
    if (frozen && weight != PL_NONE) m->b.graph->value[weight].frozen = true;
    return weight;
}

void pl_model_freeze_all(pl_model *m, const char *prefix)
{
    for (size_t i = 0; m->b.status == PL_OK && i < m->b.graph->value_count; i++) {
        pl_value *v = &m->b.graph->value[i];
        if (v->role == PL_ROLE_WEIGHT && strncmp(v->name, prefix, strlen(prefix)) == 0) v->frozen = true;
    }
}

/* ---- a graph ---- */

pl_id pl_model_begin_program(pl_model *m, const char *name)
{
    pl_graph *g = m->b.graph;
    pl_id program = pl_graph_add_region(g, name, PL_NONE, 1);
    m->b = pl_builder_begin(g, program, m->err);
    if (program == PL_NONE) m->b.status = pl_fail(m->err, PL_E_NOMEM, "no memory for the graph");
    return program;
}

pl_id pl_model_loss(pl_model *m, const char *program_name)
{
    pl_fill_args zero = pl_fill_none;
    const pl_id loss = zero.y =
        pl_build_temporary(&m->b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "%s.loss", program_name);
    pl_build_fill(&m->b, &zero);
    return loss;
}

pl_status pl_model_begin_micro(pl_model *m, pl_id program, const pl_model_port *port, size_t ports, pl_id load[])
{
    pl_builder *b = &m->b;
    pl_load_args a = pl_load_none;
    if (b->status != PL_OK) return b->status;
    b->region = pl_graph_add_region(b->graph, "micro", program, 1);
    if (b->region == PL_NONE) return b->status = pl_fail(m->err, PL_E_NOMEM, "no memory for the graph");
    pl_builder_enter(b, "data");
    for (size_t k = 0; k < ports; k++)
        a.port[k] = load[k] = pl_build_temporary(b, PL_ROLE_TEMPORARY, port[k].dtype, port[k].shape, "%s.%s",
                                                 b->graph->region[program].name, port[k].name);
    pl_build_load(b, &a);
    if (b->status == PL_OK) b->graph->node[b->graph->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    return b->status;
}

/* Rows of logits alive at once: half a megabyte of them, at least 32 rows. */
static int64_t chunk_rows(int64_t classes)
{
    int64_t rows = (512 << 10) / (4 * classes) / 32 * 32;
    return rows < 32 ? 32 : rows;
}

pl_id pl_model_cross_entropy(pl_model *m, pl_id h, pl_id weight, pl_id targets, pl_id loss)
{
    pl_linear_ce_args a = pl_linear_ce_none;
    if (m->b.status != PL_OK) return PL_NONE;
    a.h = h, a.weight = weight, a.target = targets, a.scale = m->input[PL_INPUT_ITEM_SCALE], a.loss = loss;
    a.chunk_rows = chunk_rows(m->b.graph->value[weight].shape.dim[0]);
    return pl_build_linear_ce(&m->b, &a);
}

static pl_regression_kind kind_of(pl_config_regression_loss loss)
{
    static const pl_regression_kind table[] = {[PL_CONFIG_LOSS_HUBER] = PL_REGRESSION_HUBER,
                                               [PL_CONFIG_LOSS_MSE_MAE] = PL_REGRESSION_MSE_MAE,
                                               [PL_CONFIG_LOSS_HUBER_MAE] = PL_REGRESSION_HUBER_MAE,
                                               [PL_CONFIG_LOSS_WEIGHTED_HUBER] = PL_REGRESSION_WEIGHTED_HUBER,
                                               [PL_CONFIG_LOSS_WEIGHTED_HUBER_MAE] = PL_REGRESSION_WEIGHTED_HUBER_MAE};
    return table[loss];
}

_Static_assert(offsetof(pl_mined_regression_loss_args, loss) == offsetof(pl_regression_loss_args, loss) &&
                   offsetof(pl_mined_regression_loss_args, under_weight) ==
                       offsetof(pl_regression_loss_args, under_weight),
               "the one's args are the other's");

pl_id pl_model_regression_loss(pl_model *m, pl_id prediction, pl_id target, pl_id loss)
{
    const pl_config_clouds *c = &m->config->clouds;
    const bool mined = m->training && c->hard_mining_k > 0 && c->hard_mining_factor != 1;
    pl_mined_regression_loss_args a = pl_mined_regression_loss_none;
    a.prediction = prediction, a.target = target, a.scale = m->input[PL_INPUT_ITEM_SCALE], a.loss = loss;
    a.kind = kind_of(c->loss_type), a.delta = c->huber_delta, a.alpha = c->loss_alpha, a.gamma = c->gamma;
    a.under_weight = c->under_weight, a.share = c->hard_mining_k, a.factor = c->hard_mining_factor;
    return mined ? pl_build_mined_regression_loss(&m->b, &a)
                 : pl_build_regression_loss(&m->b, (pl_regression_loss_args *)&a);
}

void pl_model_inputs(pl_model *m, const pl_input *inputs, int count)
{
    for (int i = 0; i < count; i++)
        m->input[inputs[i]] = pl_build_persistent(&m->b, PL_ROLE_INPUT, pl_input_dtype(inputs[i]),
                                                  pl_shape_of(1, (int64_t)1), "%s", pl_input_name(inputs[i]));
}

static const pl_arch *arch_of(const pl_config *config)
{
    static const pl_arch *const archs[] = {
#define PL_SYSTEM_ROW(id, name)
#define PL_ARCH_ROW(id, name, system) [PL_ARCH_##id] = &pl_arch_##name,
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
    };
    return archs[config->model.arch];
}

pl_status pl_model_check(const pl_config *config, pl_error *err) { return arch_of(config)->check(config, err); }

uint64_t pl_model_plan_bytes_per_layer(const pl_config *config) { return arch_of(config)->plan_bytes_per_layer; }

pl_status pl_model_build(const pl_config *config, const pl_facts *extents, pl_graph **graph, pl_error *err)
{
    pl_status status = PL_OK;
    pl_model m = {.config = config, .extents = extents, .err = err, .seed = (uint64_t)config->train.seed};
    pl_graph *g = pl_graph_create();
    pl_id init = g ? pl_graph_add_region(g, "init", PL_NONE, 1) : PL_NONE;
    if (init == PL_NONE) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the graph"));
    for (int i = 0; i < PL_INPUT_COUNT; i++) m.input[i] = PL_NONE;
    m.b = m.init = pl_builder_begin(g, init, err);
    PL_TRY_DONE(arch_of(config)->build(&m));
    PL_TRY_DONE(pl_model_put_packing_first(g, err));
    PL_TRY_DONE(pl_graph_group_programs(g, err)); /* init nodes came while the others were built */
    *graph = g;
    g = NULL;
done:
    pl_names_deinit(&m.lasting);
    pl_graph_destroy(g);
    return status;
}
