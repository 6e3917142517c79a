#include "models/model.h"

pl_activation pl_model_activation_of(pl_config_activation a)
{
    static const pl_activation table[] = {[PL_ACTIVATION_GELU] = PL_ACT_GELU,
                                          [PL_ACTIVATION_SILU] = PL_ACT_SILU,
                                          [PL_ACTIVATION_RELU] = PL_ACT_RELU,
                                          [PL_ACTIVATION_TANH] = PL_ACT_TANH,
                                          [PL_ACTIVATION_GELU_TANH] = PL_ACT_GELU_TANH};
    return table[a];
}

bool pl_model_is_binary(const pl_config *c) { return c->model.binary != PL_CONFIG_BINARY_NONE; }

/* ---- programs ---- */

pl_id pl_model_begin_program(pl_model *m, const char *name)
{
    pl_graph *g = m->net.b.graph;
    pl_id program = pl_graph_add_region(g, name, PL_NONE, 1);
    m->net.b = pl_builder_begin(g, program, m->net.err);
    if (program == PL_NONE) m->net.b.status = pl_fail(m->net.err, PL_E_NOMEM, "no memory for the graph");
    return program;
}

pl_id pl_model_loss(pl_model *m, const char *program_name)
{
    pl_fill_args zero = pl_fill_none;
    const pl_id loss = zero.y = pl_build_temporary(&m->net.b, PL_ROLE_OUTPUT, PL_DTYPE_F64, pl_shape_of(1, (int64_t)1),
                                                   "%s.loss", program_name);
    pl_build_fill(&m->net.b, &zero);
    return loss;
}

pl_status pl_model_load(pl_model *m, const pl_model_port *port, size_t ports, pl_id load[])
{
    pl_builder *b = &m->net.b;
    pl_load_args a = pl_load_none;
    if (b->status != PL_OK) return b->status;
    const pl_id program = pl_region_program(b->graph, b->region);
    pl_builder_enter(b, "data");
    for (size_t k = 0; k < ports; k++)
        a.port[k] = load[k] = pl_build_temporary(b, PL_ROLE_TEMPORARY, port[k].dtype, port[k].shape, "%s.%s",
                                                 b->graph->region[program].name, port[k].name);
    pl_build_load(b, &a);
    if (b->status == PL_OK) b->graph->node[b->graph->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
    return b->status;
}

pl_status pl_model_begin_micro(pl_model *m, pl_id program, const pl_model_port *port, size_t ports, pl_id load[])
{
    pl_builder *b = &m->net.b;
    if (b->status != PL_OK) return b->status;
    b->region = pl_graph_add_region(b->graph, "micro", program, 1);
    if (b->region == PL_NONE) return b->status = pl_fail(m->net.err, PL_E_NOMEM, "no memory for the graph");
    return pl_model_load(m, port, ports, load);
}

void pl_model_inputs(pl_model *m, const pl_input *inputs, int count)
{
    for (int i = 0; i < count; i++)
        m->net.input[inputs[i]] = pl_build_persistent(&m->net.b, PL_ROLE_INPUT, pl_input_dtype(inputs[i]),
                                                      pl_shape_of(1, (int64_t)1), "%s", pl_input_name(inputs[i]));
}

/* ---- a graph ---- */

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
    pl_model m = {.config = config, .extents = extents};
    pl_graph *g = pl_graph_create();
    pl_id init = g ? pl_graph_add_region(g, "init", PL_NONE, 1) : PL_NONE;
    if (init == PL_NONE) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the graph"));
    pl_net_init(&m.net, g, init, err);
    m.net.seed = (uint64_t)config->train.seed, m.net.dropout_seed = config->train.seed;
    PL_TRY_DONE(arch_of(config)->build(&m));
    PL_TRY_DONE(pl_net_finish(&m.net));
    *graph = g;
    g = NULL;
done:
    pl_net_deinit(&m.net);
    pl_graph_destroy(g);
    return status;
}
