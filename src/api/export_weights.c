/* The weights of an exported model, in memory once: read from a checkpoint, or from a file that the config names; or
 * first values, which the program "init" makes in an arena of exactly its plan. */
#include "api/export.h"
#include "api/narrow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "base/machine.h"
#include "base/procfile.h"
#include "base/quantize.h"
#include "base/size.h"
#include "rewrite/rewrite.h"
#include "store/weights.h"

static pl_dtype stored_dtype(const pl_graph *g, pl_id id, const pl_st_entry *e)
{
    if (e->dtype == PL_ST_BF16) return PL_DTYPE_BF16;
    return e->dtype == PL_ST_F16 ? PL_DTYPE_F16 : g->value[id].dtype;
}

static void take_places(const pl_graph *g, pl_export_weights *w)
{
    for (size_t i = 0; i < w->models; i++) {
        const pl_id id = pl_graph_find_value(g, w->model[i].name);
        if (id == PL_NONE) continue;
        w->of[id] = (pl_lower_weight){.data = w->model[i].data, .dtype = stored_dtype(g, id, &w->model[i])};
    }
}

/* ---- from a checkpoint ---- */

static pl_status find_saved(const pl_export_options *o, const pl_settings *s, pl_saved *saved, pl_error *err)
{
    if (o->checkpoint) return pl_saved_open(o->checkpoint, PL_SAVED_WEIGHTS, saved, err);
    PL_TRY(pl_saved_find_best(s->run.out, PL_SAVED_WEIGHTS, saved, err));
    if (!saved->record) PL_TRY(pl_saved_find(s->run.out, PL_SAVED_WEIGHTS, saved, err));
    return saved->record ? PL_OK : pl_saved_refuse_none(s->run.out, saved, err);
}

static uint64_t largest_packed(const pl_export_weights *w)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < w->models; i++)
        if (w->model[i].dtype == PL_ST_U8 && w->model[i].bytes > bytes) bytes = w->model[i].bytes;
    return bytes;
}

/* What a budget allows; UINT64_MAX: anything. */
static pl_status find_budget(const pl_config *c, pl_machine m, uint64_t *bytes, pl_error *err)
{
    pl_machine_budget automatic;
    *bytes = c->memory.budget == PL_CONFIG_BYTES_NONE ? UINT64_MAX : c->memory.budget;
    if (*bytes != PL_CONFIG_BYTES_AUTO) return PL_OK;
    m.available_bytes += m.own_bytes;
    if (m.cgroup_room_bytes != PL_MACHINE_UNLIMITED) m.cgroup_room_bytes += m.own_bytes;
    PL_TRY(pl_machine_auto_budget(&m, &automatic, err));
    *bytes = automatic.bytes;
    return PL_OK;
}

/* Before anything large is taken. For the model in another form a node gets as much as any was seen to take, four times
 * over. */
static pl_status check_room(pl_export_weights *w, uint64_t weight_bytes, pl_error *err)
{
    enum { LEAST = 1 << 20, OF_NODE = 24 << 10 };
    pl_machine m;
    uint64_t budget, nodes = 0, own = 0;
    PL_TRY(pl_machine_read("", &m, err));
    pl_procfile_find("/proc/self/status", "VmRSS", &own);
    PL_TRY(find_budget(w->config, m, &budget, err));
    for (size_t i = 0; i < w->graph->node_count; i++) nodes += !w->graph->node[i].dead;
    w->planned_bytes = own + weight_bytes + largest_packed(w) + LEAST + nodes * OF_NODE;
    if (w->planned_bytes <= budget) return PL_OK;
    return pl_fail(err, PL_E_BUDGET,
                   "to export it takes up to %" PRIu64 " bytes, of which weights are %" PRIu64 ", and %" PRIu64
                   " bytes more than the budget of %" PRIu64
                   " bytes; raise the budget, or export it where there is more "
                   "memory",
                   w->planned_bytes, weight_bytes, w->planned_bytes - budget, budget);
}

static pl_status make_arena(pl_export_weights *w, uint64_t bytes, pl_error *err)
{
    PL_TRY(check_room(w, bytes, err));
    w->arena_bytes = bytes + PL_PLAN_ALIGNMENT;
    w->arena = mmap(NULL, (size_t)w->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w->arena != MAP_FAILED) return w->held_bytes = w->arena_bytes, PL_OK;
    w->arena = NULL;
    return pl_fail(err, PL_E_NOMEM, "no memory for the weights of the model, %" PRIu64 " bytes", w->arena_bytes);
}

/* A run may store what is frozen in 16 bits: then the list says so, too. */
static void take_dtypes(const pl_safetensors *file, pl_export_weights *w)
{
    for (size_t i = 0; i < w->models; i++) {
        pl_st_entry *e = &w->model[i];
        const pl_st_tensor *t = pl_safetensors_find(file, e->name);
        const bool is_narrow = t && (t->dtype == PL_ST_BF16 || t->dtype == PL_ST_F16);
        if (!is_narrow || e->dtype != PL_ST_F32) continue;
        e->bytes /= 2;
        e->dtype = t->dtype;
    }
}

/* Places for all weights, one after the other. */
static pl_status make_places(pl_export_weights *w, pl_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < w->models; i++) bytes += pl_align_up(w->model[i].bytes, PL_PLAN_ALIGNMENT);
    PL_TRY(make_arena(w, bytes, err));
    char *at = w->arena;
    for (size_t i = 0; i < w->models; at += pl_align_up(w->model[i++].bytes, PL_PLAN_ALIGNMENT)) w->model[i].data = at;
    return PL_OK;
}

/* Not mapped: a disk that fails would end the process, where reading says so. */
static pl_status read_all(const pl_safetensors *file, pl_export_weights *w, pl_error *err)
{
    const pl_st_list list = {.entries = w->model, .count = w->models, .more_numbers = true};
    PL_TRY(pl_safetensors_match_all(file, &list, err));
    PL_TRY(make_places(w, err));
    for (size_t i = 0; i < w->models; i++) PL_TRY(pl_safetensors_read(file, &w->model[i], err));
    return PL_OK;
}

static pl_status use_file(const pl_settings *s, const char *path, pl_export_weights *w, pl_error *err)
{
    pl_safetensors *file;
    const pl_st_list list = {.entries = w->model, .count = w->models};
    PL_TRY(pl_safetensors_open(path, &file, err));
    take_dtypes(file, w);
    pl_status status = pl_saved_match(&w->saved, s->run.model_hash, s->run.config_text, &list, err);
    if (status == PL_OK) status = read_all(file, w, err);
    pl_safetensors_destroy(file);
    return status;
}

static pl_status use_saved(const pl_export_options *o, const pl_settings *s, const pl_data *data, pl_export_weights *w,
                           pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(find_saved(o, s, &w->saved, err));
    snprintf(w->warning, sizeof w->warning, "%s", w->saved.warning);
    PL_TRY(data->kind->match(data, &w->saved.record->identity, w->saved.path, false, err));
    PL_TRY(pl_path_join(path, sizeof path, w->saved.path, PL_MODEL_FILE, err));
    snprintf(w->from, sizeof w->from, "the checkpoint %.1000s", w->saved.path);
    return use_file(s, path, w, err);
}

/* ---- from a file that the config names ---- */

static pl_status read_given(const pl_data *data, pl_export_weights *w, pl_error *err)
{
    const uint64_t checksum = pl_facts_value(&data->identity, PL_FACT_WEIGHTS, 0);
    const pl_st_list list = {.entries = w->model, .count = w->models};
    pl_safetensors *file;
    PL_TRY(pl_safetensors_open(data->weights, &file, err));
    pl_status status = pl_weights_match(file, data->weights_part, &list, err);
    if (status == PL_OK) status = pl_weights_load(file, data->weights_part, &list, checksum, err);
    pl_safetensors_destroy(file);
    return status;
}

/* What no header says about weights in 8 bits. */
static pl_status check_packed(const char *path, const pl_graph *g, const pl_export_weights *w, pl_error *err)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || n->op != PL_OP_LINEAR_INT8) continue;
        const pl_id packed = pl_value_root(g, n->linear_int8.weight), range = pl_value_root(g, n->linear_int8.range);
        PL_TRY(pl_session_check_packed(g, n, path, w->of[packed].data, w->of[range].data, err));
    }
    return PL_OK;
}

/* A file for the whole model: nothing needs first values. */
static pl_status use_given(const pl_data *data, pl_export_weights *w, pl_error *err)
{
    PL_TRY(make_places(w, err));
    PL_TRY(read_given(data, w, err));
    snprintf(w->from, sizeof w->from, "the file %.1000s", data->weights);
    return PL_OK;
}

/* ---- from the files of a pretrained model ---- */

static pl_status use_brought(const pl_data *data, const pl_graph *g, pl_export_weights *w, pl_error *err)
{
    const pl_brought_weights *from = data->brought;
    PL_TRY(make_places(w, err));
    for (size_t i = 0; i < w->models; i++) {
        const pl_id id = pl_graph_find_value(g, w->model[i].name);
        PL_TRY(from->match(from->from, g, id, err));
        PL_TRY(from->read(from->from, g, id, (void *)(uintptr_t)w->model[i].data, err));
    }
    snprintf(w->from, sizeof w->from, "%.1000s", data->path);
    return PL_OK;
}

/* ---- first values ---- */

static pl_status plan_init(const pl_config *c, const pl_graph *graph, pl_export_weights *w, pl_error *err)
{
    const char *const name[] = {"init"};
    const pl_plan_options o = {.team = {1, pl_config_find_isa(c)}, .process = pl_process_options_default()};
    pl_graph *g = pl_graph_copy(graph);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory to make first values");
    pl_status status = pl_rewrite_keep_programs(g, name, 1, err);
    for (size_t i = 0; i < g->region_count && status == PL_OK; i++)
        if (g->region[i].parent == PL_NONE) status = pl_rewrite_bind_batch(g, (pl_id)i, 1, NULL, 1, err);
    if (status == PL_OK) status = pl_plan_create(g, &o, &w->plan, err);
    if (status != PL_OK) pl_graph_destroy(g);
    return status;
}

static pl_status make_first(const pl_config *c, const char *given, const pl_data *data, const pl_graph *g,
                            pl_export_weights *w, pl_error *err)
{
    const pl_program_hooks hooks = {0};
    PL_TRY(plan_init(c, g, w, err));
    PL_TRY(make_arena(w, w->plan->arena[PL_SPACE_RAM].bytes, err));
    PL_TRY(pl_program_create(w->plan, w->arena, w->arena_bytes, &w->program, err));
    PL_TRY(pl_program_run(w->program, pl_graph_find_program(w->plan->graph, "init"), &hooks, err));
    snprintf(w->from, sizeof w->from, "%s%.1000s", given ? "the file " : "first values", given ? given : "");
    for (size_t i = 0; i < w->models; i++) {
        const pl_id id = pl_graph_find_value(w->plan->graph, w->model[i].name);
        w->model[i].data = pl_program_address(w->program, id);
    }
    return given ? read_given(data, w, err) : PL_OK;
}

/* ---- in 8 bits ---- */

/* In place: the scales, which stand there already, then the matrix. */
static void unpack(const pl_shape *matrix, pl_lower_weight *w, void *copy)
{
    const int64_t rows = matrix->dim[0], width = matrix->dim[1];
    char *place = (char *)(uintptr_t)w->data;
    memcpy(copy, place, pl_int8_packed_bytes(rows, width));
    w->scale = (const float *)(void *)place;
    w->data = place + (size_t)rows * sizeof(float);
    pl_int8_unpack(rows, width, copy, (int8_t *)(place + (size_t)rows * sizeof(float)));
}

pl_status pl_export_unpack(const pl_graph *g, pl_export_weights *w, pl_error *err)
{
    const uint64_t bytes = largest_packed(w);
    if (bytes == 0) return PL_OK;
    void *copy = pl_alloc(bytes, 1);
    if (!copy) return pl_fail(err, PL_E_NOMEM, "no memory for a matrix of the model, %" PRIu64 " bytes", bytes);
    w->held_bytes += bytes;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || n->op != PL_OP_LINEAR_INT8) continue;
        const pl_id root = pl_value_root(g, n->linear_int8.weight);
        if (!w->of[root].scale) unpack(&g->value[root].shape, &w->of[root], copy);
    }
    pl_free(copy);
    return PL_OK;
}

/* ---- any ---- */

pl_status pl_export_find_weights(const pl_config *c, const pl_export_options *o, const pl_settings *s,
                                 const pl_data *data, const pl_graph *g, pl_export_weights *w, pl_error *err)
{
    w->config = c, w->graph = g;
    const bool is_given = !o->seeded && data->weights && !data->weights_part;
    const bool is_saved = !o->seeded && !is_given && pl_task_of(c)->job[PL_COMMAND_TRAIN];
    if (!is_saved && o->checkpoint)
        return pl_fail(err, PL_E_USAGE, "`checkpoint` names weights of a model that is trained here%s; leave it out",
                       is_given ? ", and the config names other ones" : "");
    PL_TRY(pl_session_lists(g, NULL, &w->model, &w->models, &w->state, &w->states, err));
    for (size_t i = 0; i < w->models; i++) w->model[i].converts = pl_narrow_dtype(c) != PL_DTYPE_F32;
    w->of = pl_alloc(g->value_count + 1, sizeof *w->of);
    if (!w->of) return pl_fail(err, PL_E_NOMEM, "no memory for the list of weights");
    PL_TRY(data->brought ? use_brought(data, g, w, err)
           : is_given    ? use_given(data, w, err)
           : is_saved    ? use_saved(o, s, data, w, err)
                         : make_first(c, o->seeded ? NULL : data->weights, data, g, w, err));
    take_places(g, w);
    return is_given ? check_packed(data->weights, g, w, err) : PL_OK;
}

void pl_export_weights_deinit(pl_export_weights *w)
{
    pl_program_destroy(w->program);
    pl_plan_destroy(w->plan);
    if (w->arena) munmap(w->arena, (size_t)w->arena_bytes);
    pl_saved_deinit(&w->saved);
    pl_export_binary_deinit(&w->binary);
    pl_free(w->model);
    pl_free(w->state);
    pl_free(w->of);
}
