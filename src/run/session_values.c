/* Values of a plan that a session and its jobs read and write themselves, and whether they are what they should be. */

#include "ir/op.h"
#include "ir/properties.h"
#include "run/session_impl.h"

bool pl_session_has_nodes(const pl_session *s, pl_id program)
{
    uint64_t first = 0, last = 0;
    if (program != PL_NONE) pl_plan_program_span(s->o.plan->graph, program, &first, &last);
    return last > 0;
}

pl_status pl_session_find_program(const pl_session *s, const char *name, pl_id *program, pl_error *err)
{
    *program = pl_graph_find_program(s->o.plan->graph, name);
    return pl_session_has_nodes(s, *program)
               ? PL_OK
               : pl_fail(err, PL_E_DATA, "the plan has no program \"%s\"; plan again", name);
}

/* Where a number lies that the session reads or writes itself; NULL when the plan has none of that name and dtype. */
static void *find_number(const pl_session *s, const char *name, pl_dtype dtype)
{
    const pl_graph *g = s->o.plan->graph;
    pl_id id = pl_graph_find_value(g, name);
    bool fits = id != PL_NONE && g->value[id].dtype == dtype && pl_shape_elems(&g->value[id].shape) == 1;
    return fits ? pl_session_value(s, name) : NULL;
}

void pl_session_find_values(pl_session *s)
{
    for (int k = 0; k < PL_INPUT_COUNT; k++)
        s->input[k] = find_number(s, pl_input_name((pl_input)k), pl_input_dtype((pl_input)k));
    s->loss_scale = find_number(s, "loss_scale", PL_DTYPE_F32);
    s->good_steps = find_number(s, "loss_scale.good_steps", PL_DTYPE_I32);
    s->skipped_steps = find_number(s, PL_SKIPPED_STEPS, PL_DTYPE_I32);
}

static bool is_known_input(const pl_session *s, pl_id value)
{
    for (int k = 0; k < PL_INPUT_COUNT; k++)
        if (s->input[k] && s->input[k] == pl_session_address(s, value)) return true;
    return false;
}

pl_status pl_session_check_values(const pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t v = 0; v < g->value_count; v++)
        if (g->value[v].role == PL_ROLE_INPUT && g->value[v].program == PL_NONE && !is_known_input(s, (pl_id)v))
            return pl_fail(err, PL_E_DATA, "this program did not make the plan: nothing writes the input %.100s",
                           g->value[v].name);
    bool scale = (s->loss_scale != NULL) == (s->good_steps != NULL) && (!s->loss_scale || s->skipped_steps);
    return scale ? PL_OK : pl_fail(err, PL_E_DATA, "this program did not make the plan: a state is missing");
}

pl_status pl_session_find_loss(const pl_session *s, pl_id program, const double **loss, pl_error *err)
{
    pl_id sum = pl_graph_find_loss(s->o.plan->graph, program);
    if (sum == PL_NONE)
        return pl_fail(err, PL_E_DATA, "the program \"%s\" of the plan has no loss; plan again",
                       s->o.plan->graph->region[program].name);
    *loss = pl_session_address(s, sum);
    return PL_OK;
}

void pl_session_set_real(pl_session *s, pl_input input, float value)
{
    if (s->input[input]) *(float *)s->input[input] = value;
}

void pl_session_set_integer(pl_session *s, pl_input input, int64_t value)
{
    if (!s->input[input]) return;
    if (pl_input_dtype(input) == PL_DTYPE_I32)
        *(int32_t *)s->input[input] = (int32_t)value;
    else
        *(int64_t *)s->input[input] = value;
}

void pl_session_set_step(pl_session *s, uint64_t step, uint64_t counted)
{
    pl_session_set_integer(s, PL_INPUT_STEP, (int64_t)step + 1);
    pl_session_set_real(s, PL_INPUT_ITEM_SCALE, counted ? 1.0f / (float)counted : 0);
}

pl_status pl_session_check_ids(const pl_session *s, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    pl_source_layout l;
    int64_t below;
    PL_TRY(s->o.data->source->kind->describe(s->o.data->source, s->settings->micro_batch, &l, err));
    for (size_t i = 0; i < g->node_count; i++)
        for (uint32_t k = 0; k < l.ports && g->node[i].op == PL_OP_LOAD; k++) {
            if (g->node[i].out[k] == PL_NONE || !pl_graph_find_id_limit(g, g->node[i].out[k], &below)) continue;
            if (l.port[k].below > 0 && l.port[k].below <= below) continue;
            return pl_fail(err, PL_E_DATA, "%s: holds %s up to %lld, but the plan has rows for %lld; plan again",
                           s->o.data->path, l.port[k].name, (long long)l.port[k].below - 1, (long long)below);
        }
    return PL_OK;
}
