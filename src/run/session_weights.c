/* A model that begins with a file of weights (pl_data.weights), or with what its data bring: headers are matched with
 * the graph when a plan is made and when a session is opened, numbers are read into the arena just before
 * "committed". */
#include <string.h>

#include "backend/calls.h"
#include "base/alloc.h"
#include "ir/op.h"
#include "run/session_impl.h"
#include "store/weights.h"

/* The file's checksum is the fact by which plan and results know it. */
static pl_status open_matched(const pl_data *data, const pl_st_list *list, pl_safetensors **file, pl_error *err)
{
    PL_TRY(pl_safetensors_open(data->weights, file, err));
    return pl_weights_match(*file, data->weights_part, list, err);
}

static bool is_brought(const pl_graph *g, const pl_data *data, pl_id id)
{
    return data->brought && g->value[id].role == PL_ROLE_WEIGHT && pl_value_root(g, id) == id;
}

static pl_status match_brought(const pl_graph *g, const pl_data *data, pl_error *err)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (is_brought(g, data, (pl_id)i)) PL_TRY(data->brought->match(data->brought->from, g, (pl_id)i, err));
    return PL_OK;
}

/* NULL: the plan has no values in files. */
static const pl_arena *find_files(const pl_session *s)
{
    const pl_graph *g = s->o.plan->graph;
    for (pl_id k = 0; k < g->space_count; k++)
        if (pl_graph_space_is_files(g, k)) return &s->arena[k];
    return NULL;
}

static pl_status check_place(const pl_session *s, pl_id id, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_brought_weights *w = s->o.data->brought;
    if (w->place(w->from, g, id) == g->value[id].place) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: has the weight %s at another place than the plan says; plan again",
                   s->o.data->path, g->value[id].name);
}

static pl_status read_brought(pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_brought_weights *w = s->o.data->brought;
    const pl_arena *files = find_files(s);
    if (w && files) PL_TRY(w->map(w->from, files->base, files->bytes, err));
    for (size_t i = 0; i < g->value_count; i++) {
        if (!is_brought(g, s->o.data, (pl_id)i)) continue;
        if (pl_graph_space_is_files(g, g->value[i].space))
            PL_TRY(check_place(s, (pl_id)i, err));
        else
            PL_TRY(w->read(w->from, g, (pl_id)i, pl_session_address(s, (pl_id)i), err));
    }
    return PL_OK;
}

pl_status pl_session_check_files(const pl_session *s, pl_error *err)
{
    const pl_brought_weights *w = s->o.data->brought;
    return w && find_files(s) ? w->check(w->from, err) : PL_OK;
}

const char *pl_session_file_at(const pl_session *s, const void *address)
{
    const pl_brought_weights *w = s->o.data->brought;
    const pl_arena *files = w ? find_files(s) : NULL;
    const uintptr_t at = (uintptr_t)address, base = files ? (uintptr_t)files->base : 0;
    return files && at >= base && at - base < files->resident_bytes ? w->file_at(w->from, at - base) : NULL;
}

pl_status pl_session_check_weights(const pl_graph *g, const pl_data *data, pl_error *err)
{
    pl_st_entry *model = NULL, *state = NULL;
    pl_safetensors *file = NULL;
    pl_st_list list = {0};
    size_t states;
    PL_TRY(match_brought(g, data, err));
    if (!data->weights) return PL_OK;
    pl_status status = pl_session_lists(g, NULL, &model, &list.count, &state, &states, err);
    list.entries = model;
    if (status == PL_OK) status = open_matched(data, &list, &file, err);
    pl_safetensors_destroy(file);
    pl_free(model);
    pl_free(state);
    return status;
}

pl_status pl_session_open_weights(pl_session *s, pl_error *err)
{
    return s->o.data->weights ? open_matched(s->o.data, &s->spec.model, &s->weights, err) : PL_OK;
}

_Static_assert(offsetof(pl_linear_int8_args, range) == offsetof(pl_hidden_int8_args, range), "one function reads both");

pl_status pl_session_check_packed(const pl_graph *g, const pl_node *n, const char *path, const void *bytes,
                                  const float *span, pl_error *err)
{
    const pl_linear_int8_args *a = &n->linear_int8;
    const pl_id packed = pl_value_root(g, a->weight), range = pl_value_root(g, a->range);
    const pl_shape *w = &g->value[packed].shape;
    const int64_t row = pl_int8_check(w->dim[0], w->dim[1], bytes);
    if (row >= 0)
        return pl_fail(err, PL_E_DATA,
                       "%s: tensor \"%.200s\", row %lld: its scale is no number above 0, or too large for f32, or its "
                       "sum is not that of its numbers; the file is damaged: make it again (plimsoll quantize)",
                       path, g->value[packed].name, (long long)row);
    if (span[0] <= span[1]) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: tensor \"%.200s\" is a range from %g to %g; the least number comes first: make the file again "
                   "(plimsoll quantize)",
                   path, g->value[range].name, (double)span[0], (double)span[1]);
}

pl_status pl_session_take_weights(pl_session *s, pl_error *err)
{
    const uint64_t checksum = pl_facts_value(&s->o.data->identity, PL_FACT_WEIGHTS, 0);
    const pl_graph *g = s->o.plan->graph;
    PL_TRY(read_brought(s, err));
    if (!s->weights) return PL_OK;
    PL_TRY(pl_weights_load(s->weights, s->o.data->weights_part, &s->spec.model, checksum, err));
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->op == PL_OP_LINEAR_BINARY && g->value[pl_value_root(g, n->linear_binary.packed)].program == PL_NONE)
            PL_TRY(pl_session_check_binary(s, n, err));
        const pl_linear_int8_args *a = &n->linear_int8;
        if (!pl_op_is_int8(n->op) || g->value[pl_value_root(g, a->weight)].role != PL_ROLE_WEIGHT) continue;
        PL_TRY(pl_session_check_packed(g, n, s->o.data->weights, pl_session_address(s, a->weight),
                                       pl_session_address(s, a->range), err));
    }
    return PL_OK;
}

/* A state that evaluating needs and nothing changes is a weight by another name: constant statistics. */
static bool stays(const pl_graph *g, size_t i)
{
    const pl_value *v = &g->value[i];
    if (v->frozen) return true;
    if (v->role != PL_ROLE_STATE || !v->inference || v->view_of != PL_NONE || v->update_of != PL_NONE) return false;
    for (size_t k = 0; k < g->value_count; k++)
        if (g->value[k].update_of != PL_NONE && pl_value_root(g, (pl_id)k) == i) return false;
    return true;
}

/* Only a training keeps them: an evaluation of a run reads nothing that the run may be writing. */
pl_status pl_session_make_known(pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_source *source = s->o.data->source;
    pl_checksum sum;
    if (!source || !source->kind->known || !s->writes_checkpoints) return PL_OK;
    pl_checksum_init(&sum);
    for (size_t i = 0; i < g->value_count; i++)
        if (stays(g, i)) pl_checksum_update(&sum, pl_session_address(s, (pl_id)i), pl_value_bytes(g, (pl_id)i));
    return source->kind->known(source, pl_checksum_value(&sum), err);
}

void pl_session_begin_at_averages(pl_session *s)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_ema_args *a = &g->node[i].ema;
        if (g->node[i].op == PL_OP_EMA)
            memcpy(pl_session_address(s, a->weight), pl_session_address(s, a->average), pl_value_bytes(g, a->average));
    }
}
