/* A model in the caller's memory: the program of plimsoll infer, planned for so many items at once, in a session whose
 * arena is the caller's; what it loads and stores goes straight from and to where the caller said. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/api.h"
#include "api/compile.h"
#include "base/alloc.h"
#include "ir/op.h"
#include "ir/properties.h"
#include "run/session_impl.h"

enum { VALUES_MAX = PL_NODE_OUT_MAX + PL_NODE_IN_MAX, PUBLIC_RANK_MAX = 6 };
_Static_assert((int)PL_RANK_MAX <= (int)PUBLIC_RANK_MAX, "dimensions of a value");

typedef struct bound {
    pl_infer_value is;
    uint32_t port; /* of its LOAD or STORE */
    int64_t below; /* ids; 0: any */
    char *at;      /* NULL: nothing */
} bound;

struct pl_infer {
    pl_config *config;
    pl_data *data;
    pl_plan *plan;
    pl_settings settings;
    pl_session *session; /* NULL: not loaded */
    pl_id program;
    char checkpoint[PL_FILE_PATH_MAX];
    bound value[VALUES_MAX];
    size_t values;
};

/* ---- which model ---- */

static pl_status load_folder(pl_config *c, const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, folder, "config.yaml", err));
    PL_TRY(pl_config_load_file(c, path, err));
    return pl_config_set(c, "run.out", folder, "the folder of the run", err);
}

static pl_status load_model(pl_config *c, const char *model, pl_error *err)
{
    struct stat st;
    const bool is_folder = stat(model, &st) == 0 && S_ISDIR(st.st_mode);
    return is_folder ? load_folder(c, model, err) : pl_config_load_file(c, model, err);
}

static pl_status set_number(pl_config *c, const char *key, uint32_t number, pl_error *err)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, number);
    return number ? pl_config_set(c, key, text, "the options", err) : PL_OK;
}

static pl_status read_config(pl_infer *m, const pl_infer_options *o, pl_error *err)
{
    m->config = o->config ? pl_config_copy(o->config) : pl_config_create();
    if (!m->config) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    if (!o->config && !o->model) return pl_fail(err, PL_E_USAGE, "no model is named: a config, its file or a folder");
    if (!o->config) PL_TRY(load_model(m->config, o->model, err));
    PL_TRY(pl_config_set(m->config, "infer.files", "", "the options", err));
    PL_TRY(set_number(m->config, "infer.batch", o->batch ? o->batch : 1, err));
    PL_TRY(set_number(m->config, "run.threads", o->threads, err));
    if (o->seeded) PL_TRY(pl_config_set(m->config, "infer.seeded", "true", "the options", err));
    if (o->seeded && o->checkpoint)
        return pl_fail(err, PL_E_USAGE, "first values and a checkpoint both are weights; leave one out");
    if (o->checkpoint && strlen(o->checkpoint) >= sizeof m->checkpoint)
        return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", o->checkpoint);
    snprintf(m->checkpoint, sizeof m->checkpoint, "%s", o->checkpoint ? o->checkpoint : "");
    return pl_config_check(m->config, err);
}

/* ---- what it takes and gives ---- */

static void see_value(pl_infer *m, pl_id id, uint32_t port, bool is_input)
{
    const pl_graph *g = m->plan->graph;
    const pl_value *v = &g->value[id];
    const char *dot = strchr(v->name, '.');
    if (pl_is_sample_number(v) || m->values == VALUES_MAX) return;
    bound *b = &m->value[m->values++];
    *b = (bound){.port = port,
                 .is = {.name = dot ? dot + 1 : v->name,
                        .is_input = is_input,
                        .is_whole = !pl_dtype_is_real(v->dtype),
                        .rank = v->shape.rank,
                        .bytes = pl_value_bytes(g, id)}};
    for (uint32_t i = 0; i < v->shape.rank; i++) b->is.dim[i] = (uint64_t)v->shape.dim[i];
    if (is_input && b->is.is_whole) (void)pl_graph_find_id_limit(g, id, &b->below);
}

static void see_values(pl_infer *m, pl_op op)
{
    const pl_graph *g = m->plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op != op || pl_region_program(g, n->region) != m->program) continue;
        for (uint32_t k = 0; op == PL_OP_LOAD && k < PL_NODE_OUT_MAX && n->out[k] != PL_NONE; k++)
            see_value(m, n->out[k], k, true);
        for (uint32_t k = 0; op == PL_OP_STORE && k < PL_NODE_IN_MAX && n->in[k] != PL_NONE; k++)
            if (pl_dtype_is_real(g->value[n->in[k]].dtype)) see_value(m, n->in[k], k, false);
    }
}

static pl_status plan(pl_infer *m, const pl_infer_options *o, pl_error *err)
{
    PL_TRY(read_config(m, o, err));
    PL_TRY(pl_open_data(m->config, PL_COMMAND_INFER, PL_DATA_FOR_RUN, NULL, &m->data, err));
    const pl_compile_options how = {.command = PL_COMMAND_INFER, .unmeasured = true, .data = m->data};
    PL_TRY(pl_compile(m->config, &how, NULL, &m->plan, err));
    PL_TRY(pl_settings_fill(m->config, PL_COMMAND_INFER, m->data, &m->settings, err));
    if (m->checkpoint[0]) m->settings.run.checkpoint = m->checkpoint;
    m->program = pl_graph_find_program(m->plan->graph, PL_INFER_PROGRAM);
    see_values(m, PL_OP_LOAD);
    see_values(m, PL_OP_STORE);
    return PL_OK;
}

pl_status pl_infer_plan(const pl_infer_options *o, pl_infer **model, pl_error *err)
{
    *model = NULL;
    pl_infer *m = pl_alloc(1, sizeof *m);
    if (!m) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    pl_status status = plan(m, o, err);
    if (status != PL_OK) return pl_infer_close(m), status;
    *model = m;
    return PL_OK;
}

uint64_t pl_infer_bytes(const pl_infer *m) { return pl_plan_arena_bytes(m->plan); }

size_t pl_infer_values(const pl_infer *m) { return m->values; }
pl_infer_value pl_infer_value_at(const pl_infer *m, size_t i) { return m->value[i].is; }

/* ---- its weights ---- */

static pl_status check_memory(const pl_infer *m, const void *memory, uint64_t bytes, pl_error *err)
{
    if (m->session) return pl_fail(err, PL_E_USAGE, "the model is loaded already");
    if (memory && (uintptr_t)memory % PL_PLAN_ALIGNMENT)
        return pl_fail(err, PL_E_USAGE, "the model's memory must begin at a multiple of %d bytes",
                       (int)PL_PLAN_ALIGNMENT);
    if (memory && bytes < pl_infer_bytes(m))
        return pl_fail(err, PL_E_USAGE, "the model needs %" PRIu64 " bytes of memory, and is given %" PRIu64,
                       pl_infer_bytes(m), bytes);
    return PL_OK;
}

pl_status pl_infer_load(pl_infer *m, void *memory, uint64_t bytes, pl_error *err)
{
    PL_TRY(check_memory(m, memory, bytes, err));
    const pl_session_options so = {.plan = m->plan,
                                   .settings = &m->settings.run,
                                   .data = m->data,
                                   .jobs = m->settings.jobs,
                                   .memory = memory,
                                   .memory_bytes = bytes};
    pl_status status = pl_session_open(&so, &m->session, err);
    if (status == PL_OK) status = pl_session_commit(m->session, err);
    if (status != PL_OK) pl_session_close(m->session), m->session = NULL;
    return status;
}

pl_status pl_infer_open(const pl_infer_options *o, pl_infer **model, pl_error *err)
{
    PL_TRY(pl_infer_plan(o, model, err));
    pl_status status = pl_infer_load(*model, NULL, 0, err);
    if (status != PL_OK) pl_infer_close(*model), *model = NULL;
    return status;
}

/* ---- a step ---- */

static pl_status refuse_name(const pl_infer *m, const char *name, pl_error *err)
{
    char list[400];
    pl_str s = pl_str_fixed(list, sizeof list);
    for (size_t i = 0; i < m->values; i++) pl_str_printf(&s, "%s%s", i ? ", " : "", m->value[i].is.name);
    return pl_fail(err, PL_E_USAGE, "the model has no input or output \"%.60s\"; it has %s", name, list);
}

pl_status pl_infer_bind(pl_infer *m, const char *name, void *at, uint64_t bytes, pl_error *err)
{
    for (size_t i = 0; i < m->values; i++) {
        bound *b = &m->value[i];
        if (strcmp(b->is.name, name) != 0) continue;
        if (bytes != b->is.bytes)
            return pl_fail(err, PL_E_USAGE, "%s has %" PRIu64 " bytes, and is bound to %" PRIu64, name, b->is.bytes,
                           bytes);
        b->at = at;
        return PL_OK;
    }
    return refuse_name(m, name, err);
}

static pl_status check_ids(const bound *b, pl_error *err)
{
    const int32_t *id = (const int32_t *)(const void *)b->at;
    for (uint64_t i = 0; i < b->is.bytes / sizeof *id; i++)
        if (id[i] < -1 || id[i] >= b->below)
            return pl_fail(err, PL_E_DATA, "number %" PRIu64 " of %s is %d, where -1 to %" PRId64 " were expected", i,
                           b->is.name, (int)id[i], b->below - 1);
    return PL_OK;
}

static pl_status check_inputs(const pl_infer *m, pl_error *err)
{
    if (!m->session) return pl_fail(err, PL_E_USAGE, "the model has no weights yet; load it");
    for (size_t i = 0; i < m->values; i++) {
        const bound *b = &m->value[i];
        if (!b->is.is_input) continue;
        if (!b->at) return pl_fail(err, PL_E_USAGE, "the model's input %s is bound to nothing", b->is.name);
        if (b->below) PL_TRY(check_ids(b, err));
    }
    return PL_OK;
}

static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const pl_infer *m = context;
    (void)trips, (void)err;
    for (size_t i = 0; i < m->values; i++)
        if (m->value[i].is.is_input) memcpy(call->port[m->value[i].port].at, m->value[i].at, m->value[i].is.bytes);
    if (call->first_sample) *call->first_sample = 0;
    return PL_OK;
}

static pl_status store(void *context, const pl_trips *trips, const pl_store_call *call, pl_error *err)
{
    const pl_infer *m = context;
    (void)trips, (void)err;
    for (size_t i = 0; i < m->values; i++)
        if (!m->value[i].is.is_input && m->value[i].at)
            memcpy(m->value[i].at, call->port[m->value[i].port].at, m->value[i].is.bytes);
    return PL_OK;
}

pl_status pl_infer_step(pl_infer *m, pl_error *err)
{
    const pl_program_hooks hooks = {.load = load, .store = store, .context = m};
    PL_TRY(check_inputs(m, err));
    PL_TRY(pl_program_run(m->session->program, m->program, &hooks, err));
    return pl_session_check_files(m->session, err);
}

void pl_infer_close(pl_infer *m)
{
    if (!m) return;
    pl_session_close(m->session);
    pl_plan_destroy(m->plan);
    pl_settings_deinit(&m->settings);
    pl_data_close(m->data);
    pl_config_destroy(m->config);
    pl_free(m);
}
