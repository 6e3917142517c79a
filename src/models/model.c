#include "models/model.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/philox.h"

/* ---- pieces shared by the models ---- */

static pl_activation activation_of(pl_config_activation a)
{
    static const pl_activation table[] = {[PL_ACTIVATION_GELU] = PL_ACT_GELU,
                                          [PL_ACTIVATION_SILU] = PL_ACT_SILU,
                                          [PL_ACTIVATION_RELU] = PL_ACT_RELU,
                                          [PL_ACTIVATION_TANH] = PL_ACT_TANH};
    return table[a];
}

static void add_init_node(pl_model *m, pl_model_init kind, pl_id weight, const char *name)
{
    double std = m->config->model.init_std;
    if (kind == PL_INIT_PROJECTION) std /= sqrt(2.0 * (double)m->config->model.layers);
    pl_id out = weight;
    snprintf(m->init.scope, sizeof m->init.scope, "%s", m->b.scope);
    if (kind == PL_INIT_ZERO || kind == PL_INIT_ONE)
        pl_build_node(&m->init, PL_OP_FILL, (pl_attr[]){pl_attr_f(kind == PL_INIT_ONE ? 1 : 0)}, 0, NULL, 1, &out);
    else
        pl_build_node(
            &m->init, PL_OP_NORMAL,
            (pl_attr[]){pl_attr_f(std), pl_attr_i(m->config->train.seed), pl_attr_i((int64_t)pl_stream_id(name))}, 0,
            NULL, 1, &out);
    if (m->b.status == PL_OK) m->b.status = m->init.status;
}

pl_id pl_model_weight(pl_model *m, pl_model_init kind, pl_shape shape, const char *fmt, ...)
{
    char name[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    if (m->b.status != PL_OK) return PL_NONE;
    pl_id id = pl_names_find(&m->weights, m->b.graph, name);
    if (id != PL_NONE) return id;
    id = pl_build_persistent(&m->b, PL_ROLE_WEIGHT, PL_DTYPE_F32, shape, "%s", name);
    if (id == PL_NONE) return id;
    m->b.status = pl_names_add(&m->weights, m->b.graph, id, m->b.err);
    if (m->b.status == PL_OK) add_init_node(m, kind, id, name);
    return id;
}

pl_id pl_model_linear(pl_model *m, pl_id x, pl_id weight, pl_id bias, pl_id residual)
{
    pl_id in[4] = {x, weight, bias, residual}, out = PL_NONE;
    return pl_build_node(&m->b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 4, in, 1, &out);
}

pl_id pl_model_activation(pl_model *m, pl_id x)
{
    pl_id out = PL_NONE;
    return pl_build_node(&m->b, PL_OP_ACTIVATION, (pl_attr[]){pl_attr_i(activation_of(m->config->model.activation))}, 1,
                         &x, 1, &out);
}

pl_id pl_model_norm(pl_model *m, pl_id x, const char *name)
{
    int64_t width = m->config->model.width;
    bool rms = m->config->model.norm == PL_NORM_RMS_NORM;
    pl_id in[3] = {x, pl_model_weight(m, PL_INIT_ONE, pl_shape_of(1, width), "%s.weight", name), PL_NONE};
    pl_id out[3] = {PL_NONE, PL_NONE, PL_NONE};
    if (!rms) in[2] = pl_model_weight(m, PL_INIT_ZERO, pl_shape_of(1, width), "%s.bias", name);
    int statistics = m->training ? rms ? 1 : 2 : 0;
    return pl_build_node(&m->b, rms ? PL_OP_RMS_NORM : PL_OP_LAYER_NORM,
                         (pl_attr[]){pl_attr_f(m->config->model.norm_eps)}, rms ? 2 : 3, in, 1 + statistics, out);
}

bool pl_model_drops(const pl_model *m) { return m->training && m->config->model.dropout > 0; }

pl_id pl_model_dropout(pl_model *m, pl_id x, pl_id residual)
{
    if (!pl_model_drops(m)) return x;
    pl_attr attr[3] = {pl_attr_f(m->config->model.dropout), pl_attr_i(m->config->train.seed),
                       pl_attr_i((int64_t)pl_stream_id(m->b.scope))};
    pl_id in[4] = {x, m->step, m->first_sample, residual}, out = PL_NONE;
    return pl_build_node(&m->b, PL_OP_DROPOUT, attr, 4, in, 1, &out);
}

/* ---- the programs ---- */

static pl_id hidden(pl_model *m, pl_id tokens, pl_id *output_weight)
{
    return m->config->model.arch == PL_ARCH_GPT ? pl_gpt_hidden(m, tokens, output_weight)
                                                : pl_mlp_hidden(m, tokens, output_weight);
}

/* Rows of logits alive at once: half a megabyte of them, at least 32 rows. */
static int64_t chunk_rows(int64_t vocab)
{
    int64_t rows = (512 << 10) / (4 * vocab) / 32 * 32;
    return rows < 32 ? 32 : rows;
}

static pl_id begin_program(pl_model *m, const char *name, pl_error *err)
{
    pl_graph *g = m->b.graph;
    pl_id program = pl_graph_add_region(g, name, PL_NONE, 1);
    m->b = pl_builder_begin(g, program, err);
    if (program == PL_NONE) m->b.status = pl_fail(err, PL_E_NOMEM, "no memory for the graph");
    return program;
}

/* train and evaluate: loss += Σ over the micro-batches */
static pl_status build_loss_program(pl_model *m, const char *name, bool training, pl_error *err)
{
    pl_graph *g = m->b.graph;
    pl_id program = begin_program(m, name, err), weight = PL_NONE, out = PL_NONE;
    m->training = training;
    m->generating = false;
    pl_builder *b = &m->b;
    pl_id loss = pl_build_temporary(b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1), "%s.loss", name);
    pl_id zeroed = loss;
    pl_build_node(b, PL_OP_FILL, (pl_attr[]){pl_attr_f(0)}, 0, NULL, 1, &zeroed);
    if (b->status != PL_OK) return b->status;
    b->region = pl_graph_add_region(g, "micro", program, 1);
    if (b->region == PL_NONE) return pl_fail(err, PL_E_NOMEM, "no memory for the graph");
    pl_builder_enter(b, "data");
    pl_shape shape = pl_shape_of(2, PL_B(1), m->config->model.sequence);
    pl_id load[2] = {pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, shape, "%s.tokens", name),
                     pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_I32, shape, "%s.targets", name)};
    pl_build_node(b, PL_OP_LOAD, NULL, 0, NULL, 2, load);
    if (b->status == PL_OK) g->node[g->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    pl_id h = hidden(m, load[0], &weight);
    pl_builder_enter(b, "loss");
    pl_build_node(b, PL_OP_LINEAR_CE, (pl_attr[]){pl_attr_i(chunk_rows(m->vocab))}, 5,
                  (pl_id[]){h, weight, load[1], m->token_scale, loss}, 1, &out);
    return b->status;
}

static pl_status build_generate_program(pl_model *m, pl_error *err)
{
    begin_program(m, "generate", err);
    m->training = false;
    m->generating = true;
    bool gpt = m->config->model.arch == PL_ARCH_GPT;
    int64_t n = gpt ? 1 : m->config->model.window;
    pl_id weight = PL_NONE, out = PL_NONE;
    pl_builder *b = &m->b;
    pl_id tokens = pl_build_temporary(b, PL_ROLE_INPUT, PL_DTYPE_I32, pl_shape_of(2, (int64_t)1, n), "generate.tokens");
    pl_id h = hidden(m, tokens, &weight);
    if (b->status == PL_OK && n > 1)
        h = pl_build_view(b, h, pl_shape_of(3, (int64_t)1, (int64_t)1, m->config->model.width),
                          (n - 1) * m->config->model.width, NULL);
    pl_builder_enter(b, "head");
    pl_id logits = pl_build_temporary(b, PL_ROLE_OUTPUT, PL_DTYPE_F32, pl_shape_of(3, (int64_t)1, (int64_t)1, m->vocab),
                                      "generate.logits");
    out = logits;
    pl_build_node(b, PL_OP_LINEAR, (pl_attr[]){pl_attr_i(PL_ACT_NONE)}, 4, (pl_id[]){h, weight, PL_NONE, PL_NONE}, 1,
                  &out);
    return b->status;
}

static pl_id input(pl_model *m, pl_dtype dtype, const char *name)
{
    return pl_build_persistent(&m->b, PL_ROLE_INPUT, dtype, pl_shape_of(1, (int64_t)1), "%s", name);
}

static void build_inputs(pl_model *m)
{
    m->lr = input(m, PL_DTYPE_F32, "input.lr");
    m->step = input(m, PL_DTYPE_I64, "input.step");
    m->token_scale = input(m, PL_DTYPE_F32, "input.token_scale");
    m->first_sample = input(m, PL_DTYPE_I64, "input.first_sample");
    m->position = input(m, PL_DTYPE_I64, "input.position");
}

pl_status pl_model_build(const pl_config *config, int64_t vocab, pl_graph **graph, pl_error *err)
{
    if (config->model.vocab_size != PL_CONFIG_AUTO && config->model.vocab_size != vocab)
        return pl_fail(err, PL_E_CONFIG,
                       "model.vocab_size is %lld but the tokenizer has %lld tokens; set it to auto or to that number",
                       (long long)config->model.vocab_size, (long long)vocab);
    pl_graph *g = pl_graph_create();
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for the graph");
    pl_status status = PL_OK;
    pl_model m = {.config = config, .vocab = vocab};
    pl_id init = pl_graph_add_region(g, "init", PL_NONE, 1);
    if (init == PL_NONE) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the graph"));
    m.b = pl_builder_begin(g, init, err);
    m.init = pl_builder_begin(g, init, err);
    build_inputs(&m);
    PL_TRY_DONE(m.b.status);
    PL_TRY_DONE(build_loss_program(&m, "train", true, err));
    PL_TRY_DONE(build_loss_program(&m, "evaluate", false, err));
    PL_TRY_DONE(build_generate_program(&m, err));
    PL_TRY_DONE(pl_graph_group_programs(g, err)); /* init nodes came while the others were built */
    *graph = g;
    g = NULL;
done:
    pl_names_deinit(&m.weights);
    pl_graph_destroy(g);
    return status;
}
